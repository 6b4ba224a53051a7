/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_explain.c - hapax explain: what is known of a key, in words, and what to do.
 *
 * A story is a few sentences, what the next claim is told, and commands that help. It
 * is told once and printed as text or as JSON.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <hapax/hapax.h>

#include "base/bytes.h"
#include "cli/frame/key_command.h"
#include "cli/print/record_out.h"
#include "cli/print/text.h"
#include "cli/run/run_lock.h"

enum { LINES_MAX = 6, LINE_SIZE = 1536, ACTIONS_MAX = 3 };

struct story {
	const struct hapax_record *record; /* NULL: absent */
	enum hx_run_lock_state lock;
	int64_t now_ms;
	int64_t lease_left_ms;
	char lines[LINES_MAX][LINE_SIZE];
	size_t line_count;
	enum hapax_outcome next;          /* what a claim would be told now */
	const char *actions[ACTIONS_MAX]; /* what follows the key on a command line */
	const char *action_commands[ACTIONS_MAX];
	const char *action_reasons[ACTIONS_MAX];
	size_t action_count;
};

__attribute__((format(printf, 2, 3))) static void tell(struct story *story, const char *format, ...)
{
	va_list arguments;

	if (story->line_count == LINES_MAX)
		return;
	va_start(arguments, format);
	(void)vsnprintf(story->lines[story->line_count++], LINE_SIZE, format, arguments);
	va_end(arguments);
}

static void suggest(
	struct story *story, const char *command, const char *options, const char *reason)
{
	if (story->action_count == ACTIONS_MAX)
		return;
	story->action_commands[story->action_count] = command;
	story->actions[story->action_count] = options;
	story->action_reasons[story->action_count++] = reason;
}

/* "2026-11-15T20:22:15Z (5m ago)". */
static void time_ago(const struct story *story, int64_t ms, char *out, size_t size)
{
	char time[HX_TEXT_SIZE], span[HX_TEXT_SIZE];

	hx_text_time(ms, time);
	hx_text_span(ms > story->now_ms ? ms - story->now_ms : story->now_ms - ms, span);
	if (ms == HAPAX_TIME_NEVER)
		(void)snprintf(out, size, "never");
	else if (ms > story->now_ms)
		(void)snprintf(out, size, "%s (in %s)", time, span);
	else
		(void)snprintf(out, size, "%s (%s ago)", time, span);
}

static void tell_history(struct story *story)
{
	const struct hapax_record *record = story->record;
	char first[128], changed[128];

	time_ago(story, record->first_seen_ms, first, sizeof(first));
	time_ago(story, record->changed_ms, changed, sizeof(changed));
	tell(story, "It was first seen %s; %u %s begun, and it is %s since %s.", first,
	     (unsigned)record->attempt, record->attempt == 1 ? "run was" : "runs were",
	     hapax_state_name(record->state), changed);
}

static void tell_lock(struct story *story)
{
	if (story->lock == HX_RUN_LOCK_HELD)
		tell(story,
		     "A 'hapax run' of it, or the command that one started, is alive on this "
		     "host: no other one starts here, whatever its lease.");
	else if (story->lock == HX_RUN_LOCK_FREE)
		tell(story,
		     "Its process died on this host: the next 'hapax run' here gives the claim "
		     "back at once.");
}

static void tell_claimed(struct story *story)
{
	const struct hapax_record *record = story->record;
	char span[HX_TEXT_SIZE];
	bool parks = record->on_lapse == HAPAX_ON_LAPSE_PARK;

	hx_text_span(
		story->lease_left_ms > 0 ? story->lease_left_ms
					 : story->now_ms - record->lease_ends_ms,
		span);
	if (story->lease_left_ms > 0) {
		tell(story, "It is held by %.*s, for another %s unless it is renewed.",
		     (int)record->owner.size, (const char *)record->owner.data, span);
		story->next = HAPAX_OUTCOME_IN_PROGRESS;
	} else {
		tell(story, "%.*s holds it, but its lease ended %s ago: %s.",
		     (int)record->owner.size, (const char *)record->owner.data, span,
		     parks ? "the next claim parks it" : "the next claim takes over");
		story->next = parks ? HAPAX_OUTCOME_PARKED : HAPAX_OUTCOME_ACQUIRED;
		suggest(story, "resolve", "--retry", "it did not happen: let the next claim run");
		suggest(story, "resolve", "--done", "it happened: never run it again");
	}
}

static void tell_done(struct story *story)
{
	const struct hapax_record *record = story->record;
	char expires[128];

	time_ago(story, record->expires_ms, expires, sizeof(expires));
	if (record->result.kind == HAPAX_RESULT_NONE)
		tell(story, "There is no result to replay%s.",
		     record->origin == HAPAX_ORIGIN_CHECK ? ": it was marked by 'hapax check'"
		                                          : "");
	else if (record->result.omitted_bytes > 0)
		tell(story,
		     "Its result (%s, status %" PRId32 ") is replayed without its %" PRIu64
		     " bytes of body, which were too many to keep.",
		     hapax_result_kind_name(record->result.kind), record->result.status,
		     record->result.omitted_bytes);
	else
		tell(story, "Its result (%s, %s, status %" PRId32 ", %zu bytes) is replayed.",
		     hapax_result_kind_name(record->result.kind),
		     hapax_result_class_name(record->result.result_class), record->result.status,
		     record->result.body.size);
	tell(story, "It expires %s; from then on the key counts as new.", expires);
	story->next = HAPAX_OUTCOME_REPLAY;
	suggest(story, "forget", "", "let the next delivery count as the first");
}

static void tell_error(struct story *story, const char *what)
{
	struct hapax_bytes error = story->record->error;

	if (error.size > 0)
		tell(story, "%s: %.*s.", what, (int)error.size, (const char *)error.data);
}

static void tell_failed(struct story *story)
{
	tell_error(story, "The last run failed");
	tell(story, "No success is known, so the next claim runs. Nothing runs by itself.");
	story->next = HAPAX_OUTCOME_ACQUIRED;
}

static void tell_parked(struct story *story)
{
	tell_error(story, "Nobody knows whether its work happened");
	tell(story, "Nobody runs it until somebody has found out and said so.");
	story->next = HAPAX_OUTCOME_PARKED;
	suggest(story, "resolve", "--done", "it happened: never run it again");
	suggest(story, "resolve", "--retry", "it did not happen: let the next claim run");
}

static void tell_all(struct story *story)
{
	if (story->record == NULL) {
		tell(story,
		     "There is no record of it: it was never seen, or its record has expired or was "
		     "removed.");
		story->next = HAPAX_OUTCOME_ACQUIRED;
		tell_lock(story);
		return;
	}
	tell_history(story);
	switch (story->record->state) {
	case HAPAX_STATE_ABSENT: break;
	case HAPAX_STATE_CLAIMED: tell_claimed(story); break;
	case HAPAX_STATE_DONE: tell_done(story); break;
	case HAPAX_STATE_FAILED: tell_failed(story); break;
	case HAPAX_STATE_PARKED: tell_parked(story); break;
	}
	tell_lock(story);
}

/* Can the key stand in a shell's line as it is? */
static bool is_plain(struct hapax_bytes key)
{
	const char *data = key.data;

	for (size_t i = 0; i < key.size; i++) {
		bool is_word = (data[i] >= 'a' && data[i] <= 'z') ||
			(data[i] >= 'A' && data[i] <= 'Z') || (data[i] >= '0' && data[i] <= '9');

		if (!is_word && (i == 0 || strchr("-_.:/@+=,%", data[i]) == NULL))
			return false;
	}
	return true;
}

/* A line that can be typed, for a key in the scope that was asked for. */
static void print_action(
	const struct hx_invocation *inv, struct hx_out *out, const struct hapax_op *op,
	const char *command, const char *options)
{
	const struct hx_option_value *scope = hx_options_get(&inv->options, HX_OPTION_SCOPE);

	hx_out_printf(out, "  hapax %s ", command);
	if (is_plain(op->key))
		hx_out_write(out, op->key.data, op->key.size);
	else
		hx_out_text(out, "KEY");
	hx_out_printf(out, "%s%s", options[0] != '\0' ? " " : "", options);
	if (scope != NULL && is_plain(hapax_bytes_from_text(scope->text)))
		hx_out_printf(out, " --scope %s", scope->text);
	hx_out_text(out, "\n");
}

static void print_text(
	struct hx_invocation *inv, const struct story *story, const struct hapax_op *op)
{
	enum hapax_state state = story->record != NULL ? story->record->state : HAPAX_STATE_ABSENT;
	struct hx_out *out = &inv->out;
	char scope[HX_SCOPE_SIZE_MAX];

	hx_out_escaped(out, op->key);
	hx_out_text(out, " in ");
	hx_out_escaped(out, hx_record_out_scope(op->tenant, op->group, scope));
	hx_out_text(out, " is ");
	hx_out_coloured(out, hx_record_out_colour(state), hapax_state_name(state));
	hx_out_text(out, ".\n");
	for (size_t i = 0; i < story->line_count; i++) {
		hx_out_escaped(out, hapax_bytes_from_text(story->lines[i]));
		hx_out_text(out, "\n");
	}
	hx_out_printf(
		out, "A claim with the same payload is told now: %s.\n",
		hapax_outcome_name(story->next));
	for (size_t i = 0; i < story->action_count; i++) {
		print_action(inv, out, op, story->action_commands[i], story->actions[i]);
		hx_out_printf(out, "      %s\n", story->action_reasons[i]);
	}
}

static void print_json(
	struct hx_invocation *inv, const struct story *story, const struct hapax_op *op)
{
	enum hapax_state state = story->record != NULL ? story->record->state : HAPAX_STATE_ABSENT;
	struct hx_json_write json;

	hx_out_json(&json, &inv->out);
	hx_json_write_begin(&json, NULL, '{');
	hx_record_out_name(&json, op->tenant, op->group, op->key);
	hx_json_write_text(&json, "state", hapax_state_name(state));
	hx_json_write_text(&json, "next_claim", hapax_outcome_name(story->next));
	hx_json_write_begin(&json, "explanation", '[');
	for (size_t i = 0; i < story->line_count; i++)
		hx_json_write_any(&json, NULL, hapax_bytes_from_text(story->lines[i]));
	hx_json_write_end(&json, ']');
	hx_json_write_end(&json, '}');
}

static int explain(struct hx_invocation *inv, struct hapax_store *store, struct hapax_op *op)
{
	static struct hx_run_folders folders; /* too large for a stack */
	static struct hx_run_lock lock;
	static struct story story;

	story.now_ms = hx_settings_now_ms(store);
	if (op->outcome == HAPAX_OUTCOME_FOUND) {
		story.record = op->record;
		story.lease_left_ms = op->lease_left_ms;
	}
	hx_run_folders_find(&folders);
	hx_run_lock_init(
		&lock, &folders,
		&(struct hx_run_lock_key){inv->settings.store_url, op->tenant, op->group, op->key});
	story.lock = hx_run_lock_probe(&lock, story.record);
	tell_all(&story);
	if (inv->settings.format == HX_FORMAT_JSON)
		print_json(inv, &story, op);
	else
		print_text(inv, &story, op);
	return story.record != NULL ? HX_EXIT_OK : HX_EXIT_NO;
}

static int run(struct hx_invocation *inv)
{
	struct hapax_op op;
	int code = hx_key_command_init(inv, HAPAX_OP_LOOKUP, &op);

	return code == HX_EXIT_OK ? hx_key_command_run(inv, HX_OPEN_EXISTING, &op, explain) : code;
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "there is a record, and this is its story"},
	{HX_EXIT_NO, "absent: no record, or an expired one"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"hapax explain order-17", "why does it not run, and what can be done?"},
	{"hapax explain order-17 -o json", "the same for a program"},
	{NULL, NULL},
};

const struct command hx_cmd_explain = {
	.name = "explain",
	.summary = "tell in words what became of a key, and what happens next",
	.usage = "KEY [OPTION]...",
	.description =
		"Tells what is known of KEY, what a claim would be told now, and which commands\n"
		"help. Changes nothing. For a claim of 'hapax run' it also tells whether its\n"
		"process is alive on this host.\n",
	.flags = COMMAND_STORE | COMMAND_SCOPE,
	.operands_min = 1,
	.operands_max = 1,
	.exits = exits,
	.examples = examples,
	.run = run,
};
