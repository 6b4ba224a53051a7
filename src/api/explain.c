/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.c - GET /keys/{tenant}/{group}/{key}/explain: the state of a key in words, the answer
 * that a claim would get now, and requests that help.
 */
#include "api/api_request.h"
#include "base/bytes.h"
#include "wire/percent.h"
#include "wire/record/record_json.h"
#include "wire/record/story.h"

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

/* A request that helps. */
static void write_action(
	struct hx_json_write *json, const struct hapax_op *op, enum hx_story_action action)
{
	hx_json_write_begin(json, NULL, '{');
	if (action == HX_STORY_FORGET) {
		hx_json_write_text(json, "method", "DELETE");
		write_key_path(json, op);
	} else {
		hx_json_write_text(json, "method", "POST");
		hx_json_write_text(json, "path", "/api/v1/resolve");
		hx_json_write_begin(json, "body", '{');
		hx_json_write_any(json, "tenant", op->tenant);
		hx_json_write_any(json, "group", op->group);
		hx_json_write_any(json, "key", op->key);
		hx_json_write_text(json, "as", action == HX_STORY_DONE ? "done" : "retry");
		hx_json_write_end(json, '}');
	}
	hx_json_write_text(json, "reason", hx_story_reason(action));
	hx_json_write_end(json, '}');
}

static void on_looked(struct hx_api_request *request)
{
	const struct hapax_op *op = &request->batch->ops[0];
	bool is_found = op->outcome == HAPAX_OUTCOME_FOUND;
	struct hx_story story = {
		.record = is_found ? op->record : NULL, .lease_left_ms = op->lease_left_ms};
	struct hx_json_write json;

	hx_api_count(request, op, 1);
	if (op->status != HAPAX_OK) {
		hx_api_fail(request, op->status, NULL);
		return;
	}
	hx_story_tell(&story);
	hx_api_json(request, &json);
	hx_json_write_any(&json, "tenant", op->tenant);
	hx_json_write_any(&json, "group", op->group);
	hx_json_write_any(&json, "key", op->key);
	hx_json_write_text(
		&json, "state",
		hapax_state_name(is_found ? op->record->state : HAPAX_STATE_ABSENT));
	if (is_found)
		hx_record_cause_write_json(&json, op->record->cause);
	hx_json_write_begin(&json, "explanation", '[');
	for (size_t i = 0; i < story.link_count; i++)
		hx_json_write_text(&json, NULL, story.lines[i]);
	hx_json_write_end(&json, ']');
	hx_json_write_text(&json, "next_claim", hapax_outcome_name(story.next));
	hx_json_write_begin(&json, "actions", '[');
	for (size_t i = 0; i < story.action_count; i++)
		write_action(&json, op, story.actions[i]);
	hx_json_write_end(&json, ']');
	hx_api_reply_json(request, &json);
}

void hx_api_get_explain(struct hx_api_request *request)
{
	if (hx_api_name_key(request, HAPAX_OP_LOOKUP))
		hx_api_submit(request, request->batch->ops, 1, on_looked);
}
