/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.c - GET /keys, and GET and DELETE of one key.
 */
#include <string.h>

#include "api/api_request.h"
#include "api/cursor.h"
#include "base/bytes.h"
#include "base/siphash.h"

enum { LIMIT_DEFAULT = 100 };

/* In the order of the table's parameters. */
enum {
	VALUE_TENANT,
	VALUE_GROUP,
	VALUE_STATE,
	VALUE_PREFIX,
	VALUE_LIMIT,
	VALUE_CURSOR,
	VALUE_EXPIRED,
	VALUE_WHOLE
};

/* ------------------------------------------------------------------ listing */

struct listing {
	struct hapax_scan scan;
	struct hapax_cursor cursor;
	uint64_t question;
	unsigned flags; /* enum hx_record_json_flag */
	struct hx_json_write json;
};

static int write_key(const struct hapax_record *record, void *context)
{
	struct listing *listing = context;

	hx_json_write_begin(&listing->json, NULL, '{');
	hx_record_write_json(&listing->json, record, listing->flags);
	hx_json_write_end(&listing->json, '}');
	return listing->json.status != HAPAX_OK;
}

/* Threads: the worker's. */
static void scan(struct hx_api_job *job)
{
	struct hx_api_request *request = hx_api_request_of(job);
	struct listing *listing = request->extra;
	struct hx_json_write *json = &listing->json;

	hx_json_write_init(json, &request->out);
	hx_json_write_begin(json, NULL, '{');
	hx_json_write_begin(json, "keys", '[');
	request->status = hapax_store_scan(
		request->api->options.store, &listing->scan, &listing->cursor, write_key, listing,
		&request->err);
	hx_json_write_end(json, ']');
	if (listing->cursor.done) {
		hx_json_write_null(json, "cursor");
	} else {
		hx_json_write_name(json, "cursor");
		if (json->status == HAPAX_OK)
			json->status = hx_buf_append_byte(json->out, '"');
		if (json->status == HAPAX_OK)
			json->status = hx_api_cursor_write(
				request->api->cursor_key, listing->question, &listing->cursor,
				json->out);
		if (json->status == HAPAX_OK)
			json->status = hx_buf_append_byte(json->out, '"');
	}
	hx_json_write_end(json, '}');
	if (request->status == HAPAX_OK)
		request->status = json->status;
}

static void on_scanned(struct hx_api_request *request)
{
	hx_api_reply(request, 200);
}

static uint64_t mix(const uint64_t key[2], uint64_t sum, struct hapax_bytes text)
{
	/* The hash includes sizes, so that parts cannot run into one another. */
	return hx_siphash13(key, text.data, text.size) * 31 + sum * 1000003 + text.size;
}

/* A cursor is valid only for the query that it was created for. */
static uint64_t question_of(const uint64_t key[2], const struct hapax_scan *scan)
{
	uint64_t sum = (uint64_t)scan->state << 8 | scan->flags;

	sum = mix(key, sum, scan->tenant);
	sum = mix(key, sum, scan->group);
	return mix(key, sum, scan->prefix);
}

void hx_api_get_keys(struct hx_api_request *request)
{
	const struct hx_api_value *values = request->values;
	struct hapax_bytes own = hapax_bytes_from_text(request->caller.tenant);
	struct listing *listing;

	if (values[VALUE_TENANT].is_given && !hx_api_may_use(request, values[VALUE_TENANT].text))
		return;
	listing = hx_api_extra(request, sizeof(*listing), NULL);
	if (listing == NULL)
		return;
	listing->scan = (struct hapax_scan)HAPAX_SCAN_INIT;
	listing->scan.tenant = own.size > 0 ? own : values[VALUE_TENANT].text;
	listing->scan.group = values[VALUE_GROUP].text;
	listing->scan.prefix = values[VALUE_PREFIX].text;
	if (values[VALUE_STATE].is_given)
		listing->scan.state = (enum hapax_state)(values[VALUE_STATE].number + 1);
	if (values[VALUE_EXPIRED].number != 0)
		listing->scan.flags |= HAPAX_SCAN_EXPIRED;
	if (values[VALUE_WHOLE].number != 0)
		listing->flags = HX_RECORD_JSON_WITH_RESULT |
			(request->caller.role >= HX_API_ROLE_WRITE ? HX_RECORD_JSON_WITH_SECRETS
								   : 0);
	listing->scan.count_max =
		values[VALUE_LIMIT].is_given ? (size_t)values[VALUE_LIMIT].number : LIMIT_DEFAULT;
	listing->question = question_of(request->api->cursor_key, &listing->scan);
	if (values[VALUE_CURSOR].is_given &&
	    !hx_api_cursor_read(
		    request->api->cursor_key, listing->question, values[VALUE_CURSOR].text,
		    &listing->cursor)) {
		hx_api_problem(
			request, 400, HX_API_PROBLEM("cursor"),
			"invalid cursor: it belongs to another daemon or query; start again "
			"without it");
		return;
	}
	hx_api_work(request, &request->api->worker, scan, on_scanned);
}

/* ------------------------------------------------------------------ one of them */

bool hx_api_name_key(struct hx_api_request *request, enum hapax_op_type type)
{
	struct hapax_op *op;

	if (!hx_api_may_use(request, request->names[0]))
		return false;
	request->batch = hx_api_batch_new(1, false, request->api->options.budget);
	if (request->batch == NULL) {
		hx_api_fail(request, HAPAX_ERR_NO_MEMORY, NULL);
		return false;
	}
	op = &request->batch->ops[0];
	op->type = type;
	op->tenant = request->names[0];
	op->group = request->names[1];
	op->key = request->names[2];
	op->record = &request->batch->items[0].record;
	op->buf = &request->batch->items[0].buf;
	return true;
}

static void refuse_absent(struct hx_api_request *request)
{
	hx_api_problem(
		request, 404, HX_API_PROBLEM("absent"),
		"there is no record of the key: it was never used, or has expired or was deleted");
}

static void on_looked(struct hx_api_request *request)
{
	const struct hapax_op *op = &request->batch->ops[0];
	struct hx_json_write json;

	hx_api_count(request, op, 1);
	if (op->status != HAPAX_OK) {
		hx_api_fail(request, op->status, NULL);
		return;
	}
	if (op->outcome != HAPAX_OUTCOME_FOUND) {
		refuse_absent(request);
		return;
	}
	hx_api_json(request, &json);
	hx_record_write_json(&json, op->record, HX_RECORD_JSON_WITH_RESULT);
	if (op->record->state == HAPAX_STATE_CLAIMED)
		hx_json_write_signed(&json, "lease_left_ms", op->lease_left_ms);
	hx_api_reply_json(request, &json);
}

void hx_api_get_key(struct hx_api_request *request)
{
	if (hx_api_name_key(request, HAPAX_OP_LOOKUP))
		hx_api_submit(request, request->batch->ops, 1, on_looked);
}

static void on_forgotten(struct hx_api_request *request)
{
	const struct hapax_op *op = &request->batch->ops[0];
	bool is_forced = (op->flags & HAPAX_OP_FORCE) != 0;

	hx_api_count(request, op, 1);
	hx_api_audit_request(
		request,
		&(struct hx_audit_entry){
			.action = is_forced ? "forget.force" : "forget",
			.outcome = hx_api_outcome_name(op),
			.tenant = op->tenant,
			.group = op->group,
			.key = op->key,
			.before = op->status == HAPAX_OK && op->outcome == HAPAX_OUTCOME_APPLIED
				? op->record
				: NULL,
			.after = op->outcome == HAPAX_OUTCOME_APPLIED ? "absent" : NULL,
		});
	if (op->status != HAPAX_OK)
		hx_api_fail(request, op->status, NULL);
	else if (op->outcome == HAPAX_OUTCOME_ABSENT)
		refuse_absent(request);
	else if (op->outcome == HAPAX_OUTCOME_BUSY)
		hx_api_problem(
			request, 409, HX_API_PROBLEM("busy"),
			"the key is claimed or parked; ?force=true deletes it and fences the "
			"holder");
	else
		hx_api_reply(request, 204);
}

void hx_api_delete_key(struct hx_api_request *request)
{
	if (request->values[0].number != 0 && request->caller.role < HX_API_ROLE_ADMIN) {
		hx_api_refuse_role(request, HX_API_ROLE_ADMIN);
		return;
	}
	if (!hx_api_name_key(request, HAPAX_OP_FORGET))
		return;
	if (request->values[0].number != 0)
		request->batch->ops[0].flags = HAPAX_OP_FORCE;
	hx_api_submit(request, request->batch->ops, 1, on_forgotten);
}
