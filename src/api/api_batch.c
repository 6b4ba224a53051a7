/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_batch.c - POST /claim, /renew, /complete, /release, /park, /check and /operations: one
 * submit to the store for each request.
 */
#include "api/api_request.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "config/config.h"
#include "observe/metrics/metrics.h"

static void count_one(struct hx_api *api, const struct hapax_op *op, int64_t took_ns)
{
	struct hx_observer *observer = &api->observer;
	enum hapax_decision decision = HAPAX_DECISION_ACQUIRED;
	struct hx_decision_end end;
	struct hx_decision details;
	enum hx_op_report report = hx_decision_sort_op(op, &decision, &end);

	if (observer->cells != NULL)
		hx_metrics_operation(observer->cells, op->type, op->status);
	if (report == HX_OP_OTHER)
		return;
	hx_decision_read_op(op, HX_DOOR_ADMIN, decision, &details);
	details.took_ns = took_ns;
	if (report == HX_OP_DECIDED)
		hx_decision_tell(observer, &details);
	else
		hx_decision_end(observer, &details, &end);
}

void hx_api_count(struct hx_api_request *request, const struct hapax_op *ops, size_t count)
{
	struct hx_api *api = request->api;
	int64_t took_ns = hx_clock_mono_ns() - request->came_ns;
	bool is_suspect = false;

	for (size_t i = 0; i < count; i++) {
		count_one(api, &ops[i], took_ns);
		is_suspect = is_suspect || ops[i].status == HAPAX_ERR_UNCERTAIN ||
			ops[i].status == HAPAX_ERR_FAILED;
	}
	if (is_suspect && api->options.suspect != NULL)
		api->options.suspect(api->options.context);
}

/* Does the answer contain a record? A record has at least one attempt. */
static bool has_record(const struct hapax_op *op)
{
	return op->attempt > 0;
}

const char *hx_api_outcome_name(const struct hapax_op *op)
{
	return op->status == HAPAX_OK ? hapax_outcome_name(op->outcome)
				      : hapax_status_name(op->status);
}

/* The existing claim or result. */
static void write_other(
	struct hx_json_write *json, const struct hx_api_item *item, const struct hapax_op *op)
{
	if (op->outcome == HAPAX_OUTCOME_ACQUIRED && op->type == HAPAX_OP_CLAIM)
		hx_json_write_hex(json, "attempt_id", op->attempt_id, HAPAX_ATTEMPT_ID_SIZE);
	if (op->outcome == HAPAX_OUTCOME_ACQUIRED || op->record == NULL || !has_record(op))
		return;
	if (item->record.owner.size > 0)
		hx_json_write_any(json, "owner", item->record.owner);
	if (item->record.error.size > 0)
		hx_json_write_body(json, "error", item->record.error);
	hx_record_cause_write_json(json, item->record.cause);
	if (op->outcome == HAPAX_OUTCOME_REPLAY && op->type == HAPAX_OP_CLAIM)
		hx_record_result_write_json(json, &item->record.result, 0);
}

static void write_failure(struct hx_json_write *json, const struct hapax_op *op)
{
	hx_json_write_text(json, "failure", hapax_status_name(op->status));
	hx_json_write_text(json, "detail", hx_api_status_text(op->status));
}

static void write_record(
	struct hx_json_write *json, const struct hapax_record *record, bool has_secrets)
{
	unsigned flags = HX_RECORD_JSON_WITH_RESULT;

	flags |= has_secrets ? (unsigned)HX_RECORD_JSON_WITH_SECRETS : 0;
	hx_json_write_begin(json, "record", '{');
	hx_record_write_json(json, record, flags);
	hx_json_write_end(json, '}');
}

void hx_api_answer_write(
	struct hx_json_write *json, const struct hx_api_item *item, const struct hapax_op *op,
	enum hx_operation_use use, bool has_secrets)
{
	hx_json_write_begin(json, NULL, '{');
	if (op->status == HAPAX_OK)
		hx_json_write_text(json, "outcome", hapax_outcome_name(op->outcome));
	else
		write_failure(json, op);
	hx_json_write_any(json, "tenant", op->tenant);
	hx_json_write_any(json, "group", op->group);
	hx_json_write_any(json, "key", op->key);
	if (op->status == HAPAX_OK && op->token > 0)
		hx_json_write_unsigned(json, "token", op->token);
	if (op->status == HAPAX_OK && has_record(op)) {
		hx_json_write_unsigned(json, "attempt", op->attempt);
		hx_json_write_time(json, "first_seen", op->first_seen_ms);
		hx_json_write_time(json, "expires_at", op->expires_ms);
		if (op->lease_left_ms > 0)
			hx_json_write_signed(json, "lease_left_ms", op->lease_left_ms);
	}
	if (op->status == HAPAX_OK && op->unverified)
		hx_json_write_boolean(json, "unverified", true);
	if (op->status == HAPAX_OK && op->repeated)
		hx_json_write_boolean(json, "repeated", true);
	if (op->status == HAPAX_OK && use != HX_USE_ANY)
		write_other(json, item, op);
	if (op->status == HAPAX_OK && use == HX_USE_ANY && op->record != NULL &&
	    item->record.state != HAPAX_STATE_ABSENT)
		write_record(json, &item->record, has_secrets);
	hx_json_write_end(json, '}');
}

void hx_api_answer_batch(struct hx_api_request *request)
{
	struct hx_api_batch *batch = request->batch;
	enum hx_operation_use use = (enum hx_operation_use)request->route->use;
	struct hx_json_write json;

	hx_json_write_init(&json, &request->out);
	if (!batch->is_array && batch->ops[0].status != HAPAX_OK) {
		hx_api_fail(request, batch->ops[0].status, NULL);
		return;
	}
	if (batch->is_array)
		hx_json_write_begin(&json, NULL, '[');
	for (size_t i = 0; i < batch->count; i++)
		hx_api_answer_write(
			&json, &batch->items[i], &batch->ops[i], use,
			request->caller.role >= HX_API_ROLE_WRITE);
	if (batch->is_array)
		hx_json_write_end(&json, ']');
	if (json.status != HAPAX_OK)
		hx_api_problem(
			request, 500, NULL,
			"the operations were done, but the answers exceed %d MiB; send fewer "
			"operations at once",
			HX_API_REPLY_MAX / 1024 / 1024);
	else
		hx_api_reply(request, 200);
}

/* Audit records that a command with --server removed or loaded. */
static void audit(struct hx_api_request *request)
{
	const struct hx_api_batch *batch = request->batch;

	for (size_t i = 0; i < batch->count && request->route->use == HX_USE_ANY; i++) {
		const struct hapax_op *op = &batch->ops[i];
		bool is_applied = op->status == HAPAX_OK && op->outcome == HAPAX_OUTCOME_APPLIED;
		bool is_forget = op->type == HAPAX_OP_FORGET;

		if (is_applied && (is_forget || op->type == HAPAX_OP_LOAD))
			hx_api_audit_request(
				request,
				&(struct hx_audit_entry){
					.action = !is_forget                   ? "load"
						: (op->flags & HAPAX_OP_FORCE) ? "forget.force"
									       : "forget",
					.outcome = "applied",
					.tenant = op->tenant,
					.group = op->group,
					.key = op->key,
					.before =
						is_forget && op->record != NULL ? op->record : NULL,
					.after = is_forget ? "absent" : NULL,
				});
	}
}

static void on_answered(struct hx_api_request *request)
{
	audit(request);
	hx_api_count(request, request->batch->ops, request->batch->count);
	hx_api_answer_batch(request);
}

/* The role required by an operation of /operations; other paths have one type each. */
static enum hx_api_role role_of(const struct hapax_op *op)
{
	if (op->type == HAPAX_OP_LOOKUP)
		return HX_API_ROLE_READ;
	return op->type == HAPAX_OP_LOAD || (op->flags & HAPAX_OP_FORCE) ? HX_API_ROLE_ADMIN
									 : HX_API_ROLE_WRITE;
}

/* May the caller do all of it? Otherwise nothing is done. False: answered. */
static bool may_all(struct hx_api_request *request)
{
	const struct hx_api_batch *batch = request->batch;

	for (size_t i = 0; i < batch->count; i++) {
		if (!hx_api_may_use(request, batch->ops[i].tenant))
			return false;
		if (request->route->use == HX_USE_ANY &&
		    request->caller.role < role_of(&batch->ops[i])) {
			hx_api_refuse_role(request, role_of(&batch->ops[i]));
			return false;
		}
	}
	return true;
}

bool hx_api_read_batch(struct hx_api_request *request)
{
	struct hx_config_current *current = request->api->options.current;
	struct hx_config *config = current != NULL ? hx_config_current_keep(current) : NULL;
	struct hapax_error err;
	enum hapax_status status = hx_api_batch_read(
		&request->reader, (enum hx_operation_use)request->route->use, config,
		&request->batch, &err);

	hx_config_release(config);
	if (status == HAPAX_ERR_LIMIT)
		hx_api_problem(request, 413, NULL, "%s", err.message);
	else if (status != HAPAX_OK)
		hx_api_fail(request, status, err.message);
	else
		return may_all(request);
	return false;
}

void hx_api_post_operations(struct hx_api_request *request)
{
	if (hx_api_read_batch(request))
		hx_api_submit(request, request->batch->ops, request->batch->count, on_answered);
}
