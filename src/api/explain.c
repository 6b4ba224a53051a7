/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.c - GET /keys/{tenant}/{group}/{key}/explain: what became of a key, in words,
 * what a claim would be told now, and which requests help.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/api_batch.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "wire/percent.h"

enum { LINE_SIZE = 1536, ACTIONS_MAX = 2 };

/* A request that helps. */
struct action {
	const char *method;
	const char *path; /* NULL: the key's own */
	const char *as;   /* of resolve */
	const char *reason;
};

struct story {
	struct hx_json_write json;
	const struct hapax_op *op;
	const struct hapax_record *record;
	enum hapax_outcome next;
	struct action actions[ACTIONS_MAX];
	size_t action_count;
};

__attribute__((format(printf, 2, 3))) static void tell(struct story *story, const char *format, ...)
{
	char line[LINE_SIZE];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	hx_json_write_bytes(&story->json, NULL, hapax_bytes_from_text(line));
}

static void suggest(struct story *story, struct action action)
{
	if (story->action_count < ACTIONS_MAX)
		story->actions[story->action_count++] = action;
}

static void suggest_resolve(struct story *story)
{
	suggest(story,
	        (struct action){
			"POST", "/api/v1/resolve", "done", "it happened: never run it again"});
	suggest(story,
	        (struct action){
			"POST", "/api/v1/resolve", "retry",
			"it did not happen: let the next claim run"});
}

static void tell_claimed(struct story *story)
{
	const struct hapax_record *record = story->record;
	bool parks = record->on_lapse == HAPAX_ON_LAPSE_PARK;
	int size = (int)record->owner.size;
	const char *owner = record->owner.data;

	if (story->op->lease_left_ms > 0) {
		tell(story, "It is held by %.*s, for another %" PRId64 " s unless it is renewed.",
		     size > 0 ? size : 7, size > 0 ? owner : "someone",
		     (story->op->lease_left_ms + 999) / 1000);
		story->next = HAPAX_OUTCOME_IN_PROGRESS;
		return;
	}
	tell(story, "%.*s holds it, but its lease has ended: %s.", size > 0 ? size : 7,
	     size > 0 ? owner : "Someone",
	     parks ? "the next claim parks it" : "the next claim takes over");
	story->next = parks ? HAPAX_OUTCOME_PARKED : HAPAX_OUTCOME_ACQUIRED;
	suggest_resolve(story);
}

static void tell_done(struct story *story)
{
	const struct hapax_result *result = &story->record->result;
	char time[32];

	if (result->kind == HAPAX_RESULT_NONE)
		tell(story, "There is no result to replay.");
	else if (result->omitted_bytes > 0)
		tell(story,
		     "Its result (%s, status %" PRId32 ") is replayed without its %" PRIu64
		     " bytes of body, which were too many to keep.",
		     hapax_result_kind_name(result->kind), result->status, result->omitted_bytes);
	else
		tell(story, "Its result (%s, %s, status %" PRId32 ", %zu bytes) is replayed.",
		     hapax_result_kind_name(result->kind),
		     hapax_result_class_name(result->result_class), result->status,
		     result->body.size);
	hx_clock_format_utc(story->record->expires_ms, time);
	if (story->record->expires_ms == HAPAX_TIME_NEVER)
		tell(story, "It never expires.");
	else
		tell(story, "It expires %s; from then on the key counts as new.", time);
	story->next = HAPAX_OUTCOME_REPLAY;
	suggest(story,
	        (struct action){"DELETE", NULL, NULL, "let the next delivery count as the first"});
}

static void tell_error(struct story *story, const char *what)
{
	struct hapax_bytes error = story->record->error;

	if (error.size > 0)
		tell(story, "%s: %.*s.", what, (int)error.size, (const char *)error.data);
}

static void tell_record(struct story *story)
{
	const struct hapax_record *record = story->record;
	char first[32], changed[32];

	hx_clock_format_utc(record->first_seen_ms, first);
	hx_clock_format_utc(record->changed_ms, changed);
	tell(story, "It was first seen %s; %u %s begun, and it is %s since %s.", first,
	     (unsigned)record->attempt, record->attempt == 1 ? "run was" : "runs were",
	     hapax_state_name(record->state), changed);
	switch (record->state) {
	case HAPAX_STATE_ABSENT: break;
	case HAPAX_STATE_CLAIMED: tell_claimed(story); break;
	case HAPAX_STATE_DONE: tell_done(story); break;
	case HAPAX_STATE_FAILED:
		tell_error(story, "The last run failed");
		tell(story, "No success is known, so the next claim runs. Nothing runs by itself.");
		story->next = HAPAX_OUTCOME_ACQUIRED;
		break;
	case HAPAX_STATE_PARKED:
		tell_error(story, "Nobody knows whether its work happened");
		tell(story, "Nobody runs it until somebody has found out and said so.");
		story->next = HAPAX_OUTCOME_PARKED;
		suggest_resolve(story);
		break;
	}
}

static void write_key_path(struct hx_json_write *json, const struct hapax_op *op)
{
	struct hapax_bytes names[] = {op->tenant, op->group, op->key};
	static const char prefix[] = "\"/api/v1/keys";

	hx_json_write_name(json, "path");
	if (json->status == HAPAX_OK)
		json->status = hx_buf_append(json->out, prefix, sizeof(prefix) - 1);
	for (size_t i = 0; i < 3 && json->status == HAPAX_OK; i++) {
		json->status = hx_buf_append_byte(json->out, '/');
		if (json->status == HAPAX_OK)
			json->status = hx_percent_encode(json->out, names[i]);
	}
	if (json->status == HAPAX_OK)
		json->status = hx_buf_append_byte(json->out, '"');
}

static void write_action(struct story *story, const struct action *action)
{
	struct hx_json_write *json = &story->json;

	hx_json_write_begin(json, NULL, '{');
	hx_json_write_text(json, "method", action->method);
	if (action->path != NULL)
		hx_json_write_text(json, "path", action->path);
	else
		write_key_path(json, story->op);
	if (action->as != NULL) {
		hx_json_write_begin(json, "body", '{');
		hx_json_write_any(json, "tenant", story->op->tenant);
		hx_json_write_any(json, "group", story->op->group);
		hx_json_write_any(json, "key", story->op->key);
		hx_json_write_text(json, "as", action->as);
		hx_json_write_end(json, '}');
	}
	hx_json_write_text(json, "reason", action->reason);
	hx_json_write_end(json, '}');
}

static void on_looked(struct hx_api_request *request)
{
	const struct hapax_op *op = &request->batch->ops[0];
	struct story story = {.op = op, .next = HAPAX_OUTCOME_ACQUIRED};
	struct hx_json_write *json = &story.json;
	bool is_found = op->outcome == HAPAX_OUTCOME_FOUND;

	hx_api_count(request, op, 1);
	if (op->status != HAPAX_OK) {
		hx_api_fail(request, op->status, NULL);
		return;
	}
	story.record = is_found ? op->record : NULL;
	hx_json_write_init(json, &request->out);
	hx_json_write_begin(json, NULL, '{');
	hx_json_write_any(json, "tenant", op->tenant);
	hx_json_write_any(json, "group", op->group);
	hx_json_write_any(json, "key", op->key);
	hx_json_write_text(
		json, "state", hapax_state_name(is_found ? op->record->state : HAPAX_STATE_ABSENT));
	hx_json_write_begin(json, "explanation", '[');
	if (is_found)
		tell_record(&story);
	else
		tell(&story,
		     "There is no record of it: it was never seen, or its record has expired or was "
		     "removed.");
	hx_json_write_end(json, ']');
	hx_json_write_text(json, "next_claim", hapax_outcome_name(story.next));
	hx_json_write_begin(json, "actions", '[');
	for (size_t i = 0; i < story.action_count; i++)
		write_action(&story, &story.actions[i]);
	hx_json_write_end(json, ']');
	hx_json_write_end(json, '}');
	if (json->status != HAPAX_OK)
		hx_api_fail(request, json->status, NULL);
	else
		hx_api_reply(request, 200);
}

void hx_api_get_explain(struct hx_api_request *request)
{
	if (hx_api_name_key(request, HAPAX_OP_LOOKUP))
		hx_api_submit(request, request->batch->ops, 1, on_looked);
}
