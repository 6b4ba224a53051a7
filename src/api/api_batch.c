/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_batch.c - POST /claim, /renew, /complete, /release, /park, /check and /operations: one
 * submit to the store for each request.
 */
#include "api/api_batch.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "config/config.h"
#include "observe/feed.h"
#include "observe/metrics/metrics.h"

/* The decision to count for an answer; false: there is none. */
static bool decision_of(const struct hapax_op *op, enum hapax_decision *ret)
{
	if (op->status == HAPAX_ERR_FENCED) {
		*ret = HAPAX_DECISION_FENCED;
		return true;
	}
	if (op->type != HAPAX_OP_CLAIM && op->type != HAPAX_OP_CHECK)
		return false;
	switch (op->outcome) {
	case HAPAX_OUTCOME_ACQUIRED: *ret = HAPAX_DECISION_ACQUIRED; return true;
	case HAPAX_OUTCOME_REPLAY: *ret = HAPAX_DECISION_REPLAY; return true;
	case HAPAX_OUTCOME_IN_PROGRESS: *ret = HAPAX_DECISION_IN_PROGRESS; return true;
	case HAPAX_OUTCOME_MISMATCH: *ret = HAPAX_DECISION_MISMATCH; return true;
	case HAPAX_OUTCOME_PARKED: *ret = HAPAX_DECISION_PARKED; return true;
	case HAPAX_OUTCOME_NONE:
	case HAPAX_OUTCOME_APPLIED:
	case HAPAX_OUTCOME_FOUND:
	case HAPAX_OUTCOME_ABSENT:
	case HAPAX_OUTCOME_BUSY:
	case HAPAX_OUTCOME_NOT_MET:
	case HAPAX_OUTCOME_SKIPPED: break;
	}
	return false;
}

static void count_one(struct hx_api *api, const struct hapax_op *op, int64_t took_ns)
{
	struct hx_cells *cells = api->options.cells;
	enum hapax_decision decision;

	if (cells != NULL)
		hx_metrics_operation(cells, op->type, op->status);
	if (!decision_of(op, &decision))
		return;
	if (cells != NULL) {
		uint32_t scope = hx_metrics_scope(cells, op->tenant, op->group);

		hx_metrics_decision(cells, HX_DOOR_ADMIN, scope, decision);
		if (op->unverified)
			hx_metrics_add(cells, HX_METRIC_UNVERIFIED, scope, 0, 1);
		hx_metrics_observe_ns(cells, HX_METRIC_CHECK_DURATION, 0, HX_DOOR_ADMIN, took_ns);
		if (decision == HAPAX_DECISION_ACQUIRED)
			hx_metrics_observe_ns(
				cells, HX_METRIC_KEY_TTL, 0, 0,
				op->ttl_ms == HAPAX_TTL_FOREVER ? INT64_MAX
								: op->ttl_ms * HX_NS_PER_MS);
	}
	hx_feed_add(
		api->options.feed, api->options.writer,
		&(struct hx_feed_note){
			.at_ms = hx_api_now_ms(api),
			.first_seen_ms = op->first_seen_ms,
			.token = op->token,
			.attempt = op->attempt,
			.decision = decision,
			.door = HX_DOOR_ADMIN,
			.tenant = op->tenant,
			.group = op->group,
			.key = op->key,
		});
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
		if (hx_api_is_foreign(request, batch->ops[i].tenant)) {
			hx_api_refuse_tenant(request);
			return false;
		}
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
