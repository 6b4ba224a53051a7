/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_command.c - commands that apply one operation to the given key.
 */
#include "cli/frame/key_command.h"

#include <string.h>

#include "base/buf.h"
#include "cli/frame/report.h"
#include "cli/input/key_text.h"
#include "cli/print/record_out.h"

/* How often a claim with a lost answer is sent. */
enum { CLAIMS_MAX = 3 };

int hx_key_command_init(struct hx_invocation *inv, enum hapax_op_type type, struct hapax_op *ret_op)
{
	*ret_op = (struct hapax_op){
		.type = type,
		.tenant = inv->settings.tenant,
		.group = inv->settings.group,
		.ttl_ms = inv->command->flags & COMMAND_TTL ? inv->settings.ttl_ms : 0,
	};
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
