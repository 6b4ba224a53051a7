/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_consume_manage.c - hapax consume list, pause and resume: the consumers of a daemon, by its API.
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "cli/consume/cmd_consume.h"
#include "cli/frame/report.h"
#include "cli/print/columns.h"
#include "wire/json/json_object.h"
#include "wire/percent.h"

enum { REPLY_SIZE_MAX = 64 * 1024 * 1024, BODY_SIZE_MAX = 64 * 1024 };

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

/* /consumers, or /consumers/NAME/ACTION; with its NUL. */
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

/* HX_EXIT_OK: the reply was read as JSON, and printed if that is the output format. */
static int call_send(struct call *call, const char *method, const char *name, const char *action)
{
	struct hx_invocation *inv = call->inv;
	struct hapax_buf *path = &call->path;
	struct hapax_store *store = NULL;
	struct hapax_error err;
	int code;

	if (strncmp(inv->settings.store_url, "http", 4) != 0)
		return hx_report_misuse(
			inv->command->name,
			"use the admin listener of the daemon that runs the consumer: "
			"--server http://HOST:8099",
			"missing option --server");
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
	if (code == HX_EXIT_OK && inv->settings.format == HX_FORMAT_JSON) {
		hx_out_write(&inv->out, call->reply.data, call->reply.size);
		hx_out_text(&inv->out, "\n");
	}
	return code;
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

/* ------------------------------------------------------------------ list */

static const struct hx_column columns[] = {
	{"NAME", false}, {"STATE", false},     {"RUNNING", true}, {"IN HAND", true}, {"LAG", true},
	{"DEAD", true},  {"PAUSED BY", false}, {"SINCE", false},  {"REASON", false},
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

int hx_consume_list(struct hx_invocation *inv)
{
	struct call call;
	int code;

	call_init(&call, inv);
	code = call_send(&call, "GET", NULL, NULL);
	if (code == HX_EXIT_OK && inv->settings.format == HX_FORMAT_TEXT)
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
	if (code == HX_EXIT_OK && inv->settings.format == HX_FORMAT_TEXT) {
		hx_out_escaped(&inv->out, hapax_bytes_from_text(name));
		hx_out_printf(&inv->out, ": %s\n", done);
	}
	call_done(&call);
	return code;
}

int hx_consume_pause(struct hx_invocation *inv)
{
	return change(inv, "pause", "paused; runs in progress finish");
}

int hx_consume_resume(struct hx_invocation *inv)
{
	return change(inv, "resume", "resumed");
}
