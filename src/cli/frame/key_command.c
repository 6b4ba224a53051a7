/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_command.c - commands that apply one operation to the given key.
 */
#include "cli/frame/key_command.h"

#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "cli/frame/report.h"
#include "cli/input/key_text.h"
#include "cli/print/record_out.h"
#include "wire/sfstring.h"

/* How often a claim with a lost answer is sent. */
enum { CLAIMS_MAX = 3 };

/* The digits before the slash in a key of the proxy: serve/http/proxy_key.h. */
enum { OPERATION_DIGITS = 32, FOUND_SHOWN_MAX = 10 };

/* Records of the proxy with one Idempotency-Key; the first is kept. */
struct search {
	const struct hx_invocation *inv;
	struct hapax_bytes id;
	size_t count;
	char key[HAPAX_KEY_SIZE_MAX];
	size_t key_size;
	char tenant[HAPAX_SCOPE_SIZE_MAX];
	char group[HAPAX_SCOPE_SIZE_MAX];
	struct hapax_bytes scope[2];
};

static bool is_wanted(const struct search *search, struct hapax_bytes key)
{
	const char *text = key.data;

	if (key.size != OPERATION_DIGITS + 1 + search->id.size || text[OPERATION_DIGITS] != '/')
		return false;
	for (size_t i = 0; i < OPERATION_DIGITS; i++) {
		if (text[i] == '\0' || strchr("0123456789abcdef", text[i]) == NULL)
			return false;
	}
	return hx_bytes_equal(hx_bytes(text + OPERATION_DIGITS + 1, search->id.size), search->id);
}

static int each_found(const struct hapax_record *record, void *context)
{
	struct search *search = context;

	if (!is_wanted(search, record->key))
		return 0;
	/* A scan may return a record twice. */
	if (search->count == 1 &&
	    hx_bytes_equal(record->key, hx_bytes(search->key, search->key_size)) &&
	    hx_bytes_equal(record->tenant, search->scope[0]) &&
	    hx_bytes_equal(record->group, search->scope[1]))
		return 0;
	if (search->count++ == 0) {
		memcpy(search->key, record->key.data, record->key.size);
		search->key_size = record->key.size;
		memcpy(search->tenant, record->tenant.data, record->tenant.size);
		memcpy(search->group, record->group.data, record->group.size);
		search->scope[0] = hx_bytes(search->tenant, record->tenant.size);
		search->scope[1] = hx_bytes(search->group, record->group.size);
	}
	return 0;
}

/* Print those that are found once more: a person chooses. */
static int each_shown(const struct hapax_record *record, void *context)
{
	struct search *search = context;

	if (is_wanted(search, record->key) && search->count++ < FOUND_SHOWN_MAX)
		hx_report(
			search->inv->command->name, "note: '%.*s' in scope %.*s/%.*s is %s",
			(int)record->key.size, (const char *)record->key.data,
			(int)record->tenant.size, (const char *)record->tenant.data,
			(int)record->group.size, (const char *)record->group.data,
			hapax_state_name(record->state));
	return 0;
}

static int scan_all(
	struct hx_invocation *inv, struct hapax_store *store, hapax_scan_fn *each,
	struct search *search)
{
	struct hapax_scan scan = HAPAX_SCAN_INIT;
	struct hapax_cursor cursor = {.size = 0};
	struct hapax_error err;

	if (inv->settings.scope_given) {
		scan.tenant = inv->settings.tenant;
		scan.group = inv->settings.group;
	}
	do {
		if (hapax_store_scan(store, &scan, &cursor, each, search, &err) != HAPAX_OK)
			return hx_report_error(inv->command->name, &err);
	} while (!cursor.done);
	return HX_EXIT_OK;
}

/* The key and the scope of the only record with this Idempotency-Key. */
static int find_proxy_key(struct hx_invocation *inv, struct hapax_op *op)
{
	static struct search search; /* op points into it */
	static char id[HX_SFSTRING_MAX];
	const char *text = inv->options.operands[0];
	struct hapax_store *store;
	struct hapax_error err;
	size_t size;
	int code;

	search = (struct search){.inv = inv};
	if (hx_sfstring_read(hapax_bytes_from_text(text), id, &size, &err) != HAPAX_OK)
		return hx_report_usage(
			inv->command->name, "'%s' is not an Idempotency-Key: %s", text,
			err.message);
	search.id = hx_bytes(id, size);
	code = hx_settings_open(inv, HX_OPEN_EXISTING, &store);
	if (code != HX_EXIT_OK)
		return code;
	code = scan_all(inv, store, each_found, &search);
	if (code == HX_EXIT_OK && search.count != 1) {
		hx_report(
			inv->command->name, "Idempotency-Key '%s' has %s in %s", text,
			search.count == 0 ? "no record of the proxy" : "several records",
			hapax_store_url(store));
		code = HX_EXIT_NO;
	}
	if (search.count > 1) {
		hx_report_hint("name one by its key and --scope");
		search.count = 0;
		(void)scan_all(inv, store, each_shown, &search);
	}
	hapax_store_close(store);
	op->key = hx_bytes(search.key, search.key_size);
	op->tenant = search.scope[0];
	op->group = search.scope[1];
	return code;
}

int hx_key_command_init(struct hx_invocation *inv, enum hapax_op_type type, struct hapax_op *ret_op)
{
	*ret_op = (struct hapax_op){
		.type = type,
		.tenant = inv->settings.tenant,
		.group = inv->settings.group,
		.ttl_ms = inv->command->flags & COMMAND_TTL ? inv->settings.ttl_ms : 0,
	};
	if (hx_options_has(&inv->options, HX_OPTION_IDEMPOTENCY_KEY))
		return find_proxy_key(inv, ret_op);
	return hx_key_text_read(
		inv->command->name, "the key", inv->options.operands[0], &ret_op->key);
}

/* The role that a daemon requires for op. */
static const char *role_of(const struct hapax_op *op)
{
	if (op->type == HAPAX_OP_LOOKUP)
		return "read";
	return op->flags & HAPAX_OP_FORCE ? "admin" : "write";
}

int hx_key_command_report(
	struct hx_invocation *inv, struct hapax_store *store, const struct hapax_op *op,
	const struct hapax_error *err)
{
	const char *name = inv->command->name;
	bool is_server = store != NULL && strcmp(hapax_store_name(store), "http") == 0;
	int code = hx_report_error(name, err);

	if (err->status == HAPAX_ERR_UNCERTAIN)
		hx_report_hint("'hapax lookup KEY' shows what is stored");
	else if (err->status == HAPAX_ERR_LIMIT && err->os_errno == 0)
		hx_report_hint(
			"delete expired records with 'hapax gc', or raise the limit of the store");
	else if (err->status == HAPAX_ERR_UNSUPPORTED && is_server)
		hx_report_hint(
			"'%s' needs an API token with the role '%s': see --auth-file, and 'hapax config "
			"token'",
			name, role_of(op));
	return code;
}

int hx_key_command_apply(
	struct hx_invocation *inv, struct hapax_store *store, struct hapax_op *op,
	hx_key_command_fn *answer)
{
	struct hapax_record record = {.state = HAPAX_STATE_ABSENT};
	int sends = op->type == HAPAX_OP_CLAIM ? CLAIMS_MAX : 1;
	enum hapax_status status;
	struct hapax_error err;
	struct hapax_buf buf;
	int code;

	hx_buf_init(&buf, HX_RECORD_SIZE_MAX);
	op->record = &record;
	op->buf = &buf;
	do {
		status = hapax_store_run(store, op, 1, &err);
	} while (status == HAPAX_ERR_UNCERTAIN && --sends > 0);
	if (status == HAPAX_OK || status == HAPAX_ERR_FENCED)
		code = answer(inv, store, op);
	else
		code = hx_key_command_report(inv, store, op, &err);
	op->record = NULL;
	op->buf = NULL;
	hx_buf_done(&buf);
	return code;
}

int hx_key_command_run(
	struct hx_invocation *inv, enum hx_open mode, struct hapax_op *op,
	hx_key_command_fn *answer)
{
	struct hapax_store *store;
	int code = hx_settings_open(inv, mode, &store);

	if (code != HX_EXIT_OK)
		return code;
	code = hx_key_command_apply(inv, store, op, answer);
	hapax_store_close(store);
	return code;
}

/* Did the store answer, so that it can be asked about the next key? */
static bool is_answer(int code)
{
	return code == HX_EXIT_OK || code == HX_EXIT_NO || code == HX_EXIT_MISMATCH ||
		code == HX_EXIT_BUSY;
}

int hx_key_command_each(
	struct hx_invocation *inv, enum hx_open mode, const struct hapax_op *op,
	hx_key_command_fn *answer)
{
	struct hapax_store *store;
	struct hapax_op next = *op;
	int code = HX_EXIT_OK, worst = HX_EXIT_OK;

	for (size_t i = 0; i < inv->options.operand_count && code == HX_EXIT_OK; i++)
		code = hx_key_text_read(
			inv->command->name, "the key", inv->options.operands[i], &next.key);
	if (code == HX_EXIT_OK)
		code = hx_settings_open(inv, mode, &store);
	if (code != HX_EXIT_OK)
		return code;
	for (size_t i = 0; i < inv->options.operand_count && is_answer(code); i++) {
		next = *op;
		(void)hx_key_text_read(
			inv->command->name, "the key", inv->options.operands[i], &next.key);
		code = hx_key_command_apply(inv, store, &next, answer);
		worst = code > worst ? code : worst;
	}
	hapax_store_close(store);
	return worst;
}

void hx_key_command_name(struct hx_invocation *inv, const struct hapax_op *op)
{
	if (inv->options.operand_count < 2)
		return;
	hx_out_escaped(&inv->out, op->key);
	hx_out_text(&inv->out, "  ");
}

int hx_key_command_look(struct hx_invocation *inv, hx_key_command_fn *answer)
{
	struct hapax_op op;
	int code = hx_key_command_init(inv, HAPAX_OP_LOOKUP, &op);

	return code == HX_EXIT_OK ? hx_key_command_run(inv, HX_OPEN_EXISTING, &op, answer) : code;
}
