/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_consume_manage.c - the actions of hapax consume: the consumers of a daemon, by its API; and
 * rebuild, also without one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hapax/source.h>

#include "base/bytes.h"
#include "base/utf8.h"
#include "cli/consume/cmd_consume.h"
#include "cli/frame/progress.h"
#include "cli/frame/report.h"
#include "cli/print/columns.h"
#include "cli/print/text.h"
#include "wire/date.h"
#include "wire/json/json_object.h"
#include "wire/percent.h"

enum {
	REPLY_SIZE_MAX = 64 * 1024 * 1024,
	BODY_SIZE_MAX = 128 * 1024,
	LIMIT_DEFAULT = 100,
	NAME_SIZE_MAX = 128, /* of a consumer in the configuration */
};

/* A call to the daemon, and its reply. */
struct call {
	struct hx_invocation *inv;
	struct hapax_buf path;
	struct hapax_buf body;
	struct hapax_buf reply;
	struct hapax_buf text; /* of one value */
	struct hx_json_reader reader;
};

static void call_init(struct call *call, struct hx_invocation *inv)
{
	call->inv = inv;
	hx_buf_init(&call->path, BODY_SIZE_MAX);
	hx_buf_init(&call->body, BODY_SIZE_MAX);
	hx_buf_init(&call->reply, REPLY_SIZE_MAX);
	hx_buf_init(&call->text, REPLY_SIZE_MAX);
	hx_json_reader_init(&call->reader, REPLY_SIZE_MAX, NULL);
}

static void call_done(struct call *call)
{
	hx_buf_done(&call->path);
	hx_buf_done(&call->body);
	hx_buf_done(&call->reply);
	hx_buf_done(&call->text);
	hx_json_reader_done(&call->reader);
}

/* /consumers, or /consumers/NAME/ACTION, where action may have a query; with its NUL. */
static enum hapax_status make_path(struct hapax_buf *path, const char *name, const char *action)
{
	const char *const parts[] = {"/consumers", "/", name, "/", action};
	size_t count = name == NULL ? 1 : HX_COUNT(parts);
	enum hapax_status status = HAPAX_OK;

	for (size_t i = 0; i < count && status == HAPAX_OK; i++)
		status = i == 2 ? hx_percent_encode(path, hapax_bytes_from_text(parts[i]))
				: hx_buf_append(path, parts[i], strlen(parts[i]));
	return status == HAPAX_OK ? hx_buf_append_byte(path, '\0') : status;
}

/* HX_EXIT_OK: the reply was read as JSON. */
static int call_send(struct call *call, const char *method, const char *name, const char *action)
{
	struct hx_invocation *inv = call->inv;
	struct hapax_buf *path = &call->path;
	struct hapax_store *store = NULL;
	char why[HX_UTF8_FAULT_SIZE];
	struct hapax_error err;
	int code;

	if (strncmp(inv->settings.store_url, "http", 4) != 0)
		return hx_report_misuse(
			inv->command->name,
			"use the admin listener of the daemon that runs the consumer: "
			"--server http://HOST:8099",
			"missing option --server");
	if (name != NULL && hx_utf8_fault(hapax_bytes_from_text(name), NAME_SIZE_MAX, why))
		return hx_report_misuse(
			inv->command->name, "'hapax consume list' shows the consumers",
			"the NAME of the consumer %s", why);
	hx_buf_clear(path);
	hx_buf_clear(&call->reply);
	if (make_path(path, name, action) != HAPAX_OK)
		return hx_report_no_memory(inv->command->name);
	code = hx_settings_open(inv, HX_OPEN_EXISTING, &store);
	if (code != HX_EXIT_OK)
		return code;
	if (hapax_store_call(
		    store, method, (const char *)path->data, hapax_buf_bytes(&call->body),
		    &call->reply, &err) != HAPAX_OK ||
	    hx_json_reader_read(&call->reader, hapax_buf_bytes(&call->reply), &err) != HAPAX_OK)
		code = hx_report_error(inv->command->name, &err);
	hapax_store_close(store);
	return code;
}

/* The reply as it is. */
static void print_reply(struct call *call)
{
	hx_out_write(&call->inv->out, call->reply.data, call->reply.size);
	hx_out_text(&call->inv->out, "\n");
}

/* The value of a member, as text; "-": it is missing or null. Borrowed until the next call. */
static struct hapax_bytes value_of(
	struct call *call, const struct hx_json_node *node, const char *name)
{
	const struct hx_json_tree *tree = &call->reader.tree;
	const struct hx_json_node *member =
		hx_json_tree_member(tree, node, hapax_bytes_from_text(name));
	struct hx_json_string string;

	if (member == NULL || member->token.type == HX_JSON_NULL)
		return HX_BYTES_LIT("-");
	if (member->token.type != HX_JSON_STRING)
		return hx_json_node_text(tree, member);
	string = hx_json_node_string(tree, member);
	hx_buf_clear(&call->text);
	if (hx_buf_reserve(&call->text, string.size) != HAPAX_OK)
		return HX_BYTES_LIT("?");
	return hx_bytes(call->text.data, hx_json_string_value(string, call->text.data));
}

/* Is this member of the reply true? */
static bool is_true(struct call *call, const char *name)
{
	return hx_bytes_equal(
		value_of(call, &call->reader.tree.nodes[0], name), HX_BYTES_LIT("true"));
}

/* ------------------------------------------------------------------ list */

static const struct hx_column columns[] = {
	{"NAME", false},      {"STATE", false}, {"RUNNING", true},
	{"IN HAND", true},    {"LAG", true},    {"DEAD SINCE START", true},
	{"PAUSED BY", false}, {"SINCE", false}, {"REASON", false},
};

static void print_consumers(struct call *call)
{
	static const char *const members[] = {"name",      "state",     "running",
					      "in_hand",   "lag",       "dead_letters",
					      "paused_by", "paused_at", "reason"};
	const struct hx_json_tree *tree = &call->reader.tree;
	const struct hx_json_node *list =
		hx_json_tree_member(tree, &tree->nodes[0], HX_BYTES_LIT("consumers"));
	struct hx_columns table;

	hx_columns_init(&table, columns, HX_COUNT(columns));
	for (uint32_t at = list == NULL ? 0 : list->child; at != 0; at = tree->nodes[at].next) {
		for (size_t i = 0; i < HX_COUNT(members); i++)
			hx_columns_bytes(&table, value_of(call, &tree->nodes[at], members[i]));
	}
	(void)hx_columns_print(&table, &call->inv->out);
	hx_columns_done(&table);
}

static int run_list(struct hx_invocation *inv)
{
	struct call call;
	int code;

	call_init(&call, inv);
	code = call_send(&call, "GET", NULL, NULL);
	if (code == HX_EXIT_OK && inv->settings.format == HX_FORMAT_JSON)
		print_reply(&call);
	else if (code == HX_EXIT_OK)
		print_consumers(&call);
	call_done(&call);
	return code;
}

/* ------------------------------------------------------------------ pause, resume */

static int change(struct hx_invocation *inv, const char *action, const char *done)
{
	const char *name = inv->options.operands[0];
	const char *reason = hx_options_text(&inv->options, HX_CONSUME_REASON);
	struct hx_json_write json;
	struct call call;
	int code;

	call_init(&call, inv);
	if (reason != NULL) {
		hx_json_write_init(&json, &call.body);
		hx_json_write_begin(&json, NULL, '{');
		hx_json_write_any(&json, "reason", hapax_bytes_from_text(reason));
		hx_json_write_end(&json, '}');
	}
	code = call_send(&call, "POST", name, action);
	if (code == HX_EXIT_OK && inv->settings.format == HX_FORMAT_JSON) {
		print_reply(&call);
	} else if (code == HX_EXIT_OK) {
		hx_out_escaped(&inv->out, hapax_bytes_from_text(name));
		hx_out_printf(&inv->out, ": %s\n", done);
	}
	call_done(&call);
	return code;
}

static int run_pause(struct hx_invocation *inv)
{
	return change(inv, "pause", "paused; runs in progress finish");
}

static int run_resume(struct hx_invocation *inv)
{
	return change(inv, "resume", "resumed");
}

/* ------------------------------------------------------------------ dead-letters */

static void print_letter(struct call *call, const struct hx_json_node *letter)
{
	static const char *const members[] = {
		"id", "reason", "error", "place", "attempts", "key", "size", "data"};
	const struct hx_json_tree *tree = &call->reader.tree;

	for (size_t i = 0; i < HX_COUNT(members); i++) {
		if (hx_json_tree_member(tree, letter, hapax_bytes_from_text(members[i])) != NULL)
			hx_out_line_escaped(
				&call->inv->out, members[i], value_of(call, letter, members[i]));
	}
	hx_out_text(&call->inv->out, "\n");
}

static void print_letters(struct call *call)
{
	const struct hx_json_tree *tree = &call->reader.tree;
	const struct hx_json_node *list =
		hx_json_tree_member(tree, &tree->nodes[0], HX_BYTES_LIT("letters"));
	uint64_t count = 0;

	for (uint32_t at = list == NULL ? 0 : list->child; at != 0; at = tree->nodes[at].next) {
		print_letter(call, &tree->nodes[at]);
		count++;
	}
	hx_out_printf(
		&call->inv->out, "%" PRIu64 " dead letter%s%s\n", count, hx_text_plural(count),
		is_true(call, "more") ? "; there may be more" : "");
}

static int run_letters(struct hx_invocation *inv)
{
	const char *match = hx_options_text(&inv->options, HX_CONSUME_MATCH);
	int64_t limit = hx_options_number(&inv->options, HX_CONSUME_LIMIT);
	struct hapax_buf action;
	struct call call;
	enum hapax_status status;
	int code;

	hx_buf_init(&action, BODY_SIZE_MAX);
	call_init(&call, inv);
	status = hx_buf_printf(
		&action, "dead-letters?limit=%" PRId64, limit > 0 ? limit : LIMIT_DEFAULT);
	if (status == HAPAX_OK && match != NULL)
		status = hx_buf_printf(&action, "&match=");
	if (status == HAPAX_OK && match != NULL)
		status = hx_percent_encode(&action, hapax_bytes_from_text(match));
	if (status == HAPAX_OK)
		status = hx_buf_append_byte(&action, '\0');
	code = status != HAPAX_OK
		? hx_report_no_memory(inv->command->name)
		: call_send(&call, "GET", inv->options.operands[0], (const char *)action.data);
	if (code == HX_EXIT_OK && inv->settings.format == HX_FORMAT_JSON)
		print_reply(&call);
	else if (code == HX_EXIT_OK)
		print_letters(&call);
	call_done(&call);
	hx_buf_done(&action);
	return code;
}

/* ------------------------------------------------------------------ retry */

static void write_choice(struct hx_invocation *inv, struct hapax_buf *body)
{
	const char *match = hx_options_text(&inv->options, HX_CONSUME_MATCH);
	struct hx_json_write json;
	struct hapax_buf ids;

	hx_buf_init(&ids, BODY_SIZE_MAX);
	for (size_t i = 1; i < inv->options.operand_count; i++)
		(void)hx_buf_printf(&ids, "%s%s", i > 1 ? "," : "", inv->options.operands[i]);
	hx_buf_clear(body);
	hx_json_write_init(&json, body);
	hx_json_write_begin(&json, NULL, '{');
	if (ids.size > 0)
		hx_json_write_any(&json, "ids", hapax_buf_bytes(&ids));
	else if (match != NULL)
		hx_json_write_any(&json, "match", hapax_bytes_from_text(match));
	else
		hx_json_write_boolean(&json, "all", true);
	hx_json_write_end(&json, '}');
	hx_buf_done(&ids);
}

/* The number of a member of the reply; -1: there is none. */
static int64_t number_of(struct call *call, const char *name)
{
	const struct hx_json_tree *tree = &call->reader.tree;
	struct hapax_bytes text = value_of(call, &tree->nodes[0], name);
	char digits[24];

	(void)snprintf(digits, sizeof(digits), "%.*s", (int)text.size, (const char *)text.data);
	return digits[0] == '-' ? -1 : strtoll(digits, NULL, 10);
}

static int report_retried(struct call *call, int64_t retried, int64_t failed, int64_t left)
{
	struct hx_invocation *inv = call->inv;
	struct hx_json_write json;

	if (inv->settings.format == HX_FORMAT_JSON) {
		hx_out_json(&json, &inv->out);
		hx_json_write_signed(&json, "retried", retried);
		hx_json_write_signed(&json, "failed", failed);
		hx_json_write_signed(&json, "left", left);
		hx_json_write_end(&json, '}');
	} else {
		hx_out_printf(
			&inv->out, "%" PRId64 " dead letter%s sent again\n", retried,
			hx_text_plural((uint64_t)retried));
	}
	if (failed == 0 && left > 0) {
		hx_report(
			inv->command->name,
			"up to %" PRId64
			" dead letter%s not looked at: older ones that do not match are in front of them",
			left, left == 1 ? " was" : "s were");
		hx_report_hint("send those by --all, or remove them at the broker");
		return HX_EXIT_BUSY;
	}
	if (failed == 0)
		return retried > 0 ? HX_EXIT_OK : HX_EXIT_NO;
	hx_report(
		inv->command->name,
		"could not send %" PRId64 " dead letter%s, kept at the broker: %.*s", failed,
		hx_text_plural((uint64_t)failed),
		(int)value_of(call, &call->reader.tree.nodes[0], "why").size,
		(const char *)value_of(call, &call->reader.tree.nodes[0], "why").data);
	return HX_EXIT_STORE;
}

/*
 * A call handles the oldest 1,000, among them those that an earlier one has kept and not moved.
 * Letters that come back meanwhile are not sent again: no more calls than the letters of the first
 * need. On Kafka a kept letter holds the offset, and the next call would send those behind it twice.
 */
static int run_retry(struct hx_invocation *inv)
{
	bool has_all = hx_options_has(&inv->options, HX_CONSUME_ALL);
	bool has_match = hx_options_has(&inv->options, HX_CONSUME_MATCH);
	bool has_ids = inv->options.operand_count > 1;
	int64_t retried = 0, failed = 0, left = 0, kept = 0;
	struct hx_progress progress;
	struct call call;
	int code;

	if (has_ids + has_match + has_all != 1)
		return hx_report_usage(
			inv->command->name,
			"exactly one of ID..., --match TEXT and --all is required");
	hx_progress_init(&progress);
	call_init(&call, inv);
	do {
		write_choice(inv, &call.body);
		code = call_send(&call, "POST", inv->options.operands[0], "retry");
		if (code != HX_EXIT_OK)
			break;
		if (retried == 0)
			left = number_of(&call, "left") + number_of(&call, "seen");
		left -= number_of(&call, "seen") - kept;
		kept = number_of(&call, "seen") - number_of(&call, "retried") -
			number_of(&call, "moved");
		retried += number_of(&call, "retried");
		failed = number_of(&call, "failed");
		hx_progress_show(
			&progress, "%" PRId64 " dead letter%s sent again", retried,
			hx_text_plural((uint64_t)retried));
	} while (!has_ids && left > 0 && failed == 0 && number_of(&call, "retried") > 0 &&
		 number_of(&call, "listed_again") == 0);
	hx_progress_done(&progress);
	if (code == HX_EXIT_OK)
		code = report_retried(&call, retried, failed, has_ids || left < 0 ? 0 : left);
	call_done(&call);
	return code;
}

/* ------------------------------------------------------------------ rebuild */

enum { SCOPE_SIZE = HAPAX_SCOPE_SIZE_MAX * 2 + 2 };

/* True: the user typed the scope. */
static bool is_confirmed(const struct hx_invocation *inv, const char *scope)
{
	char line[SCOPE_SIZE + 8];

	if (hx_options_has(&inv->options, HX_CONSUME_YES))
		return true;
	hx_report(
		inv->command->name,
		"this forgets every key of the scope '%s', and all messages of the group run again",
		scope);
	hx_report_hint("type '%s' to go on", scope);
	if (fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strcmp(line, scope) == 0)
			return true;
	}
	hx_report(inv->command->name, "not confirmed; nothing changed");
	return false;
}

static int show_forgotten(void *context, uint64_t forgotten)
{
	hx_progress_show(
		context, "%" PRIu64 " key%s forgotten", forgotten, hx_text_plural(forgotten));
	return 0;
}

static int report_rebuilt(struct hx_invocation *inv, uint64_t forgotten)
{
	struct hx_json_write json;

	if (inv->settings.format == HX_FORMAT_JSON) {
		hx_out_json(&json, &inv->out);
		hx_json_write_unsigned(&json, "forgotten", forgotten);
		hx_json_write_end(&json, '}');
	} else {
		hx_out_printf(
			&inv->out, "%" PRIu64 " key%s forgotten; the group starts over\n",
			forgotten, hx_text_plural(forgotten));
	}
	return HX_EXIT_OK;
}

static int found_one(const struct hapax_record *record, void *context)
{
	(void)record;
	*(bool *)context = true;
	return 1;
}

/* HX_EXIT_OK: the scope has a key. A scope that was mistyped has none, and the group another. */
static int check_scope(struct hx_invocation *inv, struct hapax_store *store)
{
	const struct hx_settings *settings = &inv->settings;
	struct hapax_cursor cursor = {.size = 0};
	struct hapax_scan scan = HAPAX_SCAN_INIT;
	struct hapax_error err;
	bool has_key = hx_options_has(&inv->options, HX_CONSUME_EMPTY_SCOPE);

	scan.tenant = settings->tenant;
	scan.group = settings->group;
	while (!has_key && !cursor.done) {
		if (hapax_store_scan(store, &scan, &cursor, found_one, &has_key, &err) != HAPAX_OK)
			return hx_report_error(inv->command->name, &err);
	}
	if (has_key)
		return HX_EXIT_OK;
	return hx_report_misuse(
		inv->command->name,
		"'hapax keys' shows the scopes of keys; --empty-scope starts over all the same, for "
		"example where the keys were forgotten before",
		"the scope '%.*s/%.*s' has no keys; nothing changed", (int)settings->tenant.size,
		(const char *)settings->tenant.data, (int)settings->group.size,
		(const char *)settings->group.data);
}

/*
 * A group that no daemon runs. The broker first: it refuses a group that has members. And again: a
 * member that came meanwhile has passed messages whose keys were done.
 */
static int forget_and_rewind(struct hx_invocation *inv, const char *url, int64_t from_ms)
{
	const struct hx_settings *settings = &inv->settings;
	struct hapax_store *store = NULL;
	struct hx_progress progress;
	struct hapax_error err;
	uint64_t forgotten = 0;
	int code = hx_settings_open(inv, HX_OPEN_EXISTING, &store);

	if (code != HX_EXIT_OK)
		return code;
	code = check_scope(inv, store);
	if (code != HX_EXIT_OK) {
		hapax_store_close(store);
		return code;
	}
	hx_progress_init(&progress);
	if (hapax_source_rewind(url, from_ms, &err) != HAPAX_OK ||
	    hapax_store_forget_scope(
		    store, settings->tenant, settings->group, show_forgotten, &progress, &forgotten,
		    &err) != HAPAX_OK ||
	    hapax_source_rewind(url, from_ms, &err) != HAPAX_OK)
		code = hx_report_error(inv->command->name, &err);
	hx_progress_done(&progress);
	hapax_store_close(store);
	return code == HX_EXIT_OK ? report_rebuilt(inv, forgotten) : code;
}

static int rebuild_url(struct hx_invocation *inv, const char *url, int64_t from_ms)
{
	const struct hx_settings *settings = &inv->settings;
	char scope[SCOPE_SIZE];

	(void)snprintf(
		scope, sizeof(scope), "%.*s/%.*s", (int)settings->tenant.size,
		(const char *)settings->tenant.data, (int)settings->group.size,
		(const char *)settings->group.data);
	if (strcmp(scope, "default/default") == 0 &&
	    !hx_options_has(&inv->options, HX_CONSUME_SHARED_SCOPE))
		return hx_report_misuse(
			inv->command->name,
			"use --shared-scope to forget the keys of all that use it",
			"the scope 'default/default' is that of every client that names no scope");
	return is_confirmed(inv, scope) ? forget_and_rewind(inv, url, from_ms) : HX_EXIT_NO;
}

/* The scope of that consumer, which the daemon knows; "-": it has none, or there is no consumer. */
static int ask_scope(struct call *call, const char *name, char out[SCOPE_SIZE])
{
	const struct hx_json_tree *tree = &call->reader.tree;
	const struct hx_json_node *list;
	int code = call_send(call, "GET", NULL, NULL);

	(void)snprintf(out, SCOPE_SIZE, "-");
	if (code != HX_EXIT_OK)
		return code;
	list = hx_json_tree_member(tree, &tree->nodes[0], HX_BYTES_LIT("consumers"));
	for (uint32_t at = list == NULL ? 0 : list->child; at != 0; at = tree->nodes[at].next) {
		struct hapax_bytes scope;

		if (!hx_bytes_equal(
			    value_of(call, &tree->nodes[at], "name"), hapax_bytes_from_text(name)))
			continue;
		scope = value_of(call, &tree->nodes[at], "scope");
		(void)snprintf(out, SCOPE_SIZE, "%.*s", (int)scope.size, (const char *)scope.data);
	}
	return code;
}

/* A call forgets for some seconds; the daemon says whether that was all. */
static int rebuild_name(struct hx_invocation *inv, const char *name, int64_t from_ms)
{
	struct hx_json_write json;
	struct hx_progress progress;
	char scope[SCOPE_SIZE];
	uint64_t forgotten = 0;
	bool is_done = false;
	struct call call;
	int code;

	call_init(&call, inv);
	code = ask_scope(&call, name, scope);
	/* Without a scope, the daemon refuses it and says why. */
	if (code == HX_EXIT_OK && strcmp(scope, "-") != 0 && !is_confirmed(inv, scope))
		code = HX_EXIT_NO;
	hx_json_write_init(&json, &call.body);
	hx_json_write_begin(&json, NULL, '{');
	hx_json_write_any(&json, "confirm", hapax_bytes_from_text(scope));
	if (hx_options_has(&inv->options, HX_CONSUME_SHARED_SCOPE))
		hx_json_write_boolean(&json, "shared", true);
	if (from_ms > 0)
		hx_json_write_time(&json, "from_time", from_ms);
	hx_json_write_end(&json, '}');
	hx_progress_init(&progress);
	while (code == HX_EXIT_OK && !is_done) {
		code = call_send(&call, "POST", name, "rebuild");
		if (code == HX_EXIT_OK) {
			forgotten += (uint64_t)number_of(&call, "forgotten");
			is_done = is_true(&call, "done");
			(void)show_forgotten(&progress, forgotten);
		}
	}
	hx_progress_done(&progress);
	if (code == HX_EXIT_OK)
		code = report_rebuilt(inv, forgotten);
	call_done(&call);
	return code;
}

static int run_rebuild(struct hx_invocation *inv)
{
	const char *url = hx_options_text(&inv->options, HX_CONSUME_FROM);
	const char *time = hx_options_text(&inv->options, HX_CONSUME_FROM_TIME);
	const char *name = inv->options.operand_count > 0 ? inv->options.operands[0] : NULL;
	int64_t from_ms = 0;

	if ((name != NULL) == (url != NULL) || (url != NULL && !inv->settings.scope_given))
		return hx_report_usage(
			inv->command->name,
			"rebuild needs the NAME of a consumer, or --from URL and --scope TENANT/GROUP");
	if (time != NULL && (!hx_date_parse(hapax_bytes_from_text(time), &from_ms) || from_ms <= 0))
		return hx_report_misuse(
			inv->command->name, "use RFC 3339, as in 2026-11-01T00:00:00Z",
			"--from-time: invalid time '%s'", time);
	return name != NULL ? rebuild_name(inv, name, from_ms) : rebuild_url(inv, url, from_ms);
}

/* ------------------------------------------------------------------ the table */

static const struct command_exit action_exits[] = {
	{HX_EXIT_OK, "done"},
	{HX_EXIT_STORE, "could not reach the daemon, or it refused"},
	{0, NULL},
};

static const struct command_exit retry_exits[] = {
	{HX_EXIT_OK, "at least one was sent again"},
	{HX_EXIT_NO, "there was none to send"},
	{HX_EXIT_BUSY, "some were not looked at: older ones are in front of them"},
	{HX_EXIT_STORE, "could not reach the daemon, or some were not sent"},
	{0, NULL},
};

static const struct command_exit rebuild_exits[] = {
	{HX_EXIT_OK, "the group starts over"},
	{HX_EXIT_NO, "not confirmed; nothing changed"},
	{HX_EXIT_STORE, "could not reach the daemon, the store or the broker, or it refused"},
	{0, NULL},
};

const struct command_action hx_consume_actions[] = {
	{.name = "list",
	 .summary = "list the consumers of a daemon with their state",
	 .usage = "--server URL",
	 .exits = action_exits,
	 .run = run_list},
	{.name = "pause",
	 .summary = "pause a consumer of a daemon, also over a restart",
	 .usage = "NAME --server URL [--reason TEXT]",
	 .description =
		 "Runs in progress finish, and nothing new begins. Messages that were fetched and have not\n"
		 "begun stay in memory; the connection to the broker stays. The store keeps the pause, so\n"
		 "it outlives the daemon and applies to all consumers of that name on the store.\n",
	 .operands = {1, 1},
	 .exits = action_exits,
	 .run = run_pause},
	{.name = "resume",
	 .summary = "resume a paused consumer of a daemon",
	 .usage = "NAME --server URL",
	 .operands = {1, 1},
	 .exits = action_exits,
	 .run = run_resume},
	{.name = "dead-letters",
	 .summary = "list the dead letters of a consumer with payload and reason",
	 .usage = "NAME --server URL [--match TEXT] [--limit N]",
	 .description = "Reads the oldest dead letters from the broker and leaves them there.\n",
	 .operands = {1, 1},
	 .exits = action_exits,
	 .run = run_letters},
	{.name = "retry",
	 .summary = "send dead letters of a consumer again",
	 .usage = "NAME (ID... | --match TEXT | --all) --server URL",
	 .description =
		 "Publishes each message to its original place, then removes the letter. Between the two,\n"
		 "a crash leaves both: the consumer finds the key done, or runs it. A parked key is released\n"
		 "first, and a stored permanent failure is forgotten. A topic of Kafka keeps its letters: the\n"
		 "group GROUP.letters moves over those that were sent, from the oldest on.\n",
	 .operands = {1, 200},
	 .exits = retry_exits,
	 .run = run_retry},
	{.name = "rebuild",
	 .summary = "forget the keys of a group and let it start over",
	 .usage = "(NAME --server URL | --from URL --scope TENANT/GROUP) [--yes]",
	 .description =
		 "For a projection that is built again. Sets the offsets of the group back, to the beginning\n"
		 "or to --from-time, then forgets every key of the scope: each message runs again. Asks\n"
		 "for the scope before. A scope that others use, like default/default, needs\n"
		 "--shared-scope: their keys are forgotten, too. With --from, a scope without keys is\n"
		 "taken for a mistake, unless --empty-scope is given. A consumer of a daemon must be disabled\n"
		 "first (enabled: false); with --from, the group's consumers must be stopped. A queue of\n"
		 "RabbitMQ has no past.\n",
	 .operands = {0, 1},
	 .exits = rebuild_exits,
	 .run = run_rebuild},
	{.name = NULL},
};
