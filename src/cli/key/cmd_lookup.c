/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_lookup.c - hapax lookup: show the record of a key.
 */
#include <assert.h>
#include <inttypes.h>

#include <hapax/hapax.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/hex.h"
#include "cli/frame/key_command.h"
#include "cli/print/record_out.h"
#include "cli/frame/report.h"
#include "cli/print/text.h"

/* How much of a body the text form shows; JSON shows all. */
enum { BODY_SHOWN_MAX = 512 };

static void print_time(struct hx_out *out, const char *name, int64_t ms, int64_t now_ms)
{
	char time[HX_TEXT_SIZE], span[HX_TEXT_SIZE];

	hx_out_field(out, name);
	hx_text_time(ms, time);
	hx_duration_span(ms > now_ms ? ms - now_ms : now_ms - ms, span);
	if (ms == HAPAX_TIME_NEVER)
		hx_out_printf(out, "%s\n", time);
	else if (ms > now_ms)
		hx_out_printf(out, "%s (in %s)\n", time, span);
	else
		hx_out_printf(out, "%s (%s ago)\n", time, span);
}

static void print_result(struct hx_out *out, const struct hapax_result *result)
{
	struct hapax_bytes shown = result->body;

	if (result->kind == HAPAX_RESULT_NONE)
		return;
	hx_out_line(
		out, "result", "%s %s, status %" PRId32 ", %zu bytes",
		hapax_result_kind_name(result->kind), hapax_result_class_name(result->result_class),
		result->status, result->body.size);
	if (result->omitted_bytes > 0) {
		hx_out_line(
			out, "omitted", "%" PRIu64 " bytes, too large to keep",
			result->omitted_bytes);
	}
	if (result->body.size == 0)
		return;
	if (shown.size > BODY_SHOWN_MAX)
		shown.size = BODY_SHOWN_MAX;
	hx_out_field(out, "body");
	hx_out_escaped(out, shown);
	hx_out_text(out, shown.size < result->body.size ? "... (-o json shows all)\n" : "\n");
}

static void print_fingerprint(struct hx_out *out, const struct hapax_record *record)
{
	char text[2 * HAPAX_FINGERPRINT_SIZE];

	hx_out_field(out, "fingerprint");
	if (record->fingerprint_size == 0) {
		hx_out_text(out, "none\n");
		return;
	}
	assert(record->fingerprint_size <= HAPAX_FINGERPRINT_SIZE);
	hx_hex_encode(record->fingerprint, record->fingerprint_size, text);
	hx_out_write(out, text, (size_t)2 * record->fingerprint_size);
	hx_out_text(out, "\n");
}

static void print_ttl(struct hx_out *out, int64_t ttl_ms)
{
	char text[HX_DURATION_TEXT_SIZE] = "forever";

	if (ttl_ms != HAPAX_TTL_FOREVER)
		hx_duration_format(ttl_ms, text);
	hx_out_line(out, "ttl", "%s", text);
}

static void print_event(struct hx_out *out, struct hapax_bytes cause, int64_t now_ms)
{
	struct hapax_cause event;

	(void)hapax_cause_read(cause, &event);
	if (event.id.size > 0)
		hx_out_line_escaped(out, "event id", event.id);
	if (event.type.size > 0)
		hx_out_line_escaped(out, "event type", event.type);
	if (event.source.size > 0)
		hx_out_line_escaped(out, "event source", event.source);
	if (event.time_ms != 0)
		print_time(out, "event time", event.time_ms, now_ms);
}

static void print_text(struct hx_out *out, const struct hapax_record *record, int64_t now_ms)
{
	char scope[HX_SCOPE_SIZE_MAX];

	hx_out_line_escaped(out, "key", record->key);
	hx_out_line_escaped(
		out, "scope", hx_record_out_scope(record->tenant, record->group, scope));
	hx_out_field(out, "state");
	hx_out_colored(out, hx_record_out_color(record->state), hapax_state_name(record->state));
	hx_out_text(out, "\n");
	hx_out_line(out, "origin", "%s", hapax_origin_name(record->origin));
	hx_out_line(out, "attempt", "%" PRIu32, record->attempt);
	hx_out_line(out, "token", "%" PRIu64, record->token);
	print_time(out, "first seen", record->first_seen_ms, now_ms);
	print_time(out, "changed", record->changed_ms, now_ms);
	if (record->state == HAPAX_STATE_CLAIMED)
		print_time(out, "lease ends", record->lease_ends_ms, now_ms);
	print_time(out, "expires", record->expires_ms, now_ms);
	print_ttl(out, record->ttl_ms);
	if (record->state == HAPAX_STATE_CLAIMED || record->state == HAPAX_STATE_PARKED) {
		hx_out_line(out, "on lapse", "%s", hapax_on_lapse_name(record->on_lapse));
	}
	print_fingerprint(out, record);
	if (record->owner.size > 0)
		hx_out_line_escaped(out, "owner", record->owner);
	if (record->error.size > 0)
		hx_out_line_escaped(out, "error", record->error);
	print_event(out, record->cause, now_ms);
	print_result(out, &record->result);
}

static void print_json(struct hx_out *out, const struct hapax_op *op)
{
	struct hx_json_write json;

	hx_out_json(&json, out);
	hx_record_out_name(&json, op->tenant, op->group, op->key);
	if (op->outcome == HAPAX_OUTCOME_FOUND)
		hx_record_write_json(
			&json, op->record, HX_RECORD_JSON_BRIEF | HX_RECORD_JSON_WITH_RESULT);
	else
		hx_json_write_text(&json, "state", hapax_state_name(HAPAX_STATE_ABSENT));
	hx_json_write_end(&json, '}');
}

static int print(struct hx_invocation *inv, struct hapax_store *store, struct hapax_op *op)
{
	bool is_found = op->outcome == HAPAX_OUTCOME_FOUND;

	if (inv->settings.format == HX_FORMAT_JSON)
		print_json(&inv->out, op);
	else if (is_found)
		print_text(&inv->out, op->record, hx_settings_now_ms(store));
	else
		hx_report(
			inv->command->name, "'%s' has no record in scope %.*s/%.*s of %s",
			inv->options.operands[0], (int)op->tenant.size,
			(const char *)op->tenant.data, (int)op->group.size,
			(const char *)op->group.data, hapax_store_url(store));
	return is_found ? HX_EXIT_OK : HX_EXIT_NO;
}

static const struct hx_option options[] = {HX_IDEMPOTENCY_KEY_ROW, {.name = NULL}};

static int run_lookup(struct hx_invocation *inv)
{
	return hx_key_command_look(inv, print);
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "the key has a record"},
	{HX_EXIT_NO, "absent: the key has no record, or it has expired"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"hapax lookup order-17", "show the record, one field per line"},
	{"hapax lookup order-17 -o json", "print JSON with the result; binary data is base64"},
	{"hapax lookup 8e03978e --idempotency-key || true",
	 "show the record of a request to the proxy, by its Idempotency-Key"},
	{NULL, NULL},
};

const struct command hx_cmd_lookup = {
	.name = "lookup",
	.summary = "show the record of a key",
	.usage = "KEY [OPTION]...",
	.description =
		"Shows the record of KEY. Changes nothing.\n"
		"\n"
		"The proxy puts a hash of credential, method, host and path before the Idempotency-Key of a\n"
		"request. With --idempotency-key, KEY is what the client sent: all records of the store, or\n"
		"of --scope, are searched for it, and there must be only one.\n",
	.flags = COMMAND_STORE | COMMAND_SCOPE,
	.operands = {1, 1},
	.options = options,
	.exits = exits,
	.examples = examples,
	.run = run_lookup,
};
