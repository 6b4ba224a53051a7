/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolve.c - POST /resolve: a person decides the outcome of a parked key.
 *
 * The handler looks up the record and completes or releases it with its own token: the former
 * holder is FENCED from then on. It leaves alone a claim that may still be running, unless forced.
 */
#include "api/api_request.h"
#include "base/alloc.h"
#include "base/bytes.h"

static const struct hapax_bytes retry_text = {"resolved: to be tried again", 27};

/* An item that the second step did not decide keeps the answer of the first. */
static bool is_decidable(const struct hx_api_item *item, struct hapax_op *op)
{
	if (op->status != HAPAX_OK || op->outcome != HAPAX_OUTCOME_FOUND)
		return false;
	if (item->record.state == HAPAX_STATE_CLAIMED && op->lease_left_ms > 0 &&
	    !item->said.force) {
		op->outcome = HAPAX_OUTCOME_BUSY;
		return false;
	}
	return true;
}

static void audit(struct hx_api_request *request, size_t index)
{
	struct hx_api_item *item = &request->batch->items[index];
	const struct hapax_op *op = &request->batch->ops[index];
	bool is_done = item->said.as == HX_RESOLVE_DONE;

	hx_api_audit_request(
		request,
		&(struct hx_audit_entry){
			.action = "resolve",
			.outcome = hx_api_outcome_name(op),
			.tenant = op->tenant,
			.group = op->group,
			.key = op->key,
			.before = item->record.state != HAPAX_STATE_ABSENT ? &item->record : NULL,
			.after = op->status == HAPAX_OK && op->outcome == HAPAX_OUTCOME_APPLIED
				? is_done ? "done" : "failed"
				: NULL,
		});
}

/* A single one also sets the HTTP status. */
static void answer(struct hx_api_request *request)
{
	const struct hapax_op *op = &request->batch->ops[0];

	if (request->batch->is_array || op->status != HAPAX_OK)
		hx_api_answer_batch(request);
	else if (op->outcome == HAPAX_OUTCOME_ABSENT)
		hx_api_problem(
			request, 404, HX_API_PROBLEM("absent"), "there is no record of the key");
	else if (op->outcome == HAPAX_OUTCOME_BUSY)
		hx_api_problem(
			request, 409, HX_API_PROBLEM("busy"),
			"the claim has a holder, and its lease has not lapsed; force decides it "
			"anyway, and the work may happen twice");
	else
		hx_api_answer_batch(request);
}

static void on_decided(struct hx_api_request *request)
{
	struct hx_api_batch *batch = request->batch;

	hx_api_count(request, batch->second, batch->second_count);
	for (size_t i = 0; i < batch->second_count; i++) {
		struct hapax_op *op = &batch->ops[batch->indexes[i]];

		op->status = batch->second[i].status;
		op->outcome = batch->second[i].outcome;
		op->expires_ms = batch->second[i].expires_ms;
		op->lease_left_ms = 0;
		audit(request, batch->indexes[i]);
	}
	answer(request);
}

static void decide(
	const struct hx_api_item *item, const struct hapax_op *found, struct hapax_op *op)
{
	*op = (struct hapax_op){
		.type = item->said.as == HX_RESOLVE_DONE ? HAPAX_OP_COMPLETE : HAPAX_OP_RELEASE,
		.tenant = found->tenant,
		.group = found->group,
		.key = found->key,
		.token = found->token,
		.result = item->said.as == HX_RESOLVE_DONE && item->said.result.given != 0
			? &item->result
			: NULL,
		.error = item->said.error.size > 0 ? item->said.error : retry_text,
	};
}

static void on_found(struct hx_api_request *request)
{
	struct hx_api_batch *batch = request->batch;

	hx_api_count(request, batch->ops, batch->count);
	batch->second = hx_alloc_zero(batch->count + 1, sizeof(batch->second[0]));
	batch->indexes = hx_alloc_zero(batch->count + 1, sizeof(batch->indexes[0]));
	if (batch->second == NULL || batch->indexes == NULL) {
		hx_api_fail(request, HAPAX_ERR_NO_MEMORY, NULL);
		return;
	}
	for (size_t i = 0; i < batch->count; i++) {
		if (is_decidable(&batch->items[i], &batch->ops[i])) {
			batch->indexes[batch->second_count] = i;
			decide(&batch->items[i], &batch->ops[i],
			       &batch->second[batch->second_count++]);
		} else {
			audit(request, i);
		}
	}
	if (batch->second_count == 0)
		answer(request);
	else
		hx_api_submit(request, batch->second, batch->second_count, on_decided);
}

void hx_api_post_resolve(struct hx_api_request *request)
{
	if (hx_api_read_batch(request))
		hx_api_submit(request, request->batch->ops, request->batch->count, on_found);
}
