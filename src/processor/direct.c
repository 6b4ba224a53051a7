/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/direct.h"

#include <assert.h>
#include <string.h>

#include <hapax/ext/store_ops.h>

#include "base/bytes.h"

/* The processor's options, or those of the request completed in *room. NULL: invalid. */
static const struct hapax_run_options *options_of(
	const struct hapax_processor *processor, const struct hapax_request *request,
	struct hapax_run_options *room)
{
	if (request->options == NULL)
		return &processor->options.run;
	if (hx_run_options_complete(processor, request->options, room, NULL) != HAPAX_OK)
		return NULL;
	return room;
}

static void fill(
	struct hapax_processor *processor, const struct hapax_request *request,
	const struct hapax_run_options *options, struct hx_direct *direct, struct hapax_buf *buf)
{
	struct hapax_op *op = &direct->op;

	assert(request->key_count == 0);
	assert(options->lease_ms > 0);
	hx_processor_attempt_id(processor, direct->attempt_id);
	memset(op, 0, sizeof(*op));
	memset(&direct->record, 0, sizeof(direct->record));
	op->type = HAPAX_OP_CLAIM;
	op->tenant = request->tenant;
	op->group = request->group;
	op->key = request->key;
	op->fingerprint = request->fingerprint;
	op->attempt_id = direct->attempt_id;
	op->owner = request->owner;
	if (op->owner.size == 0)
		op->owner = hapax_bytes_from_text(processor->owner);
	if (!options->omits_cause)
		op->cause = request->cause;
	op->lease_ms = options->lease_ms;
	op->ttl_ms = options->ttl_ms;
	op->on_lapse = options->on_lapse;
	op->record = buf == NULL ? NULL : &direct->record;
	op->buf = buf;
	direct->claim.op = op;
	direct->claim.sent_ms = hx_processor_now(processor);
}

/* The outcome of a mismatch under on_mismatch. */
static enum hapax_outcome outcome_of(
	const struct hx_direct *direct, const struct hapax_run_options *options)
{
	assert(direct->op.status == HAPAX_OK);
	if (direct->op.outcome != HAPAX_OUTCOME_MISMATCH ||
	    options->on_mismatch == HAPAX_ON_MISMATCH_REJECT)
		return direct->op.outcome;
	if (direct->record.state == HAPAX_STATE_CLAIMED)
		return HAPAX_OUTCOME_IN_PROGRESS;
	return direct->record.state == HAPAX_STATE_PARKED ? HAPAX_OUTCOME_PARKED
							  : HAPAX_OUTCOME_REPLAY;
}

static void answer_from(
	const struct hx_direct *direct, enum hapax_outcome outcome, struct hapax_answer *answer)
{
	const struct hapax_op *op = &direct->op;

	/* A caller that may run begins a run: an answer alone would leave the claim to lapse. */
	assert(op->outcome != HAPAX_OUTCOME_ACQUIRED);
	assert(outcome == op->outcome || op->outcome == HAPAX_OUTCOME_MISMATCH);
	*answer = (struct hapax_answer)HAPAX_ANSWER_INIT;
	answer->outcome = outcome;
	answer->flags = op->unverified ? HAPAX_ANSWER_UNVERIFIED : 0;
	if (op->continued)
		answer->flags |= HAPAX_ANSWER_CONTINUED;
	if (outcome != op->outcome)
		answer->flags |= HAPAX_ANSWER_MISMATCH;
	answer->attempt = op->attempt;
	answer->token = op->token;
	answer->first_seen_ms = op->first_seen_ms;
	answer->expires_ms = op->expires_ms;
	answer->lease_left_ms = op->lease_left_ms;
	if (outcome == HAPAX_OUTCOME_MISMATCH)
		return;
	answer->owner = direct->record.owner;
	answer->error = direct->record.error;
	answer->original_cause = direct->record.cause;
	if (outcome == HAPAX_OUTCOME_REPLAY)
		answer->original_token = direct->record.token;
	if (op->outcome == HAPAX_OUTCOME_REPLAY)
		answer->result = direct->record.result;
}

static void report(
	const struct hapax_processor *processor, const struct hx_direct *direct,
	const struct hx_run_origin *origin, const struct hapax_answer *answer)
{
	struct hapax_decided decided = {
		.tenant = direct->op.tenant,
		.group = direct->op.group,
		.key = direct->op.key,
		.answer = answer,
	};

	if (processor->options.decided == NULL)
		return;
	assert(answer->outcome != HAPAX_OUTCOME_ACQUIRED);
	if (origin != NULL) {
		decided.shadow = origin->shadow;
		decided.event = origin->event;
	}
	processor->options.decided(&decided, processor->options.decided_context);
}

static void ignore(struct hapax_op *ops, size_t count, void *context)
{
	assert(count == 1);
	(void)ops;
	(void)count;
	(void)context;
}

enum hx_directly hx_direct_claim(
	struct hapax_processor *processor, const struct hapax_request *request,
	const struct hx_run_origin *origin, struct hx_direct *direct, struct hapax_answer *answer,
	struct hapax_buf *buf)
{
	struct hapax_run_options room;
	const struct hapax_run_options *options = options_of(processor, request, &room);
	enum hapax_outcome outcome;

	if (!processor->store->ops->is_synchronous || !processor->has_lease || options == NULL ||
	    options->is_disabled || request->key_count != 0)
		return HX_DIRECTLY_NOT;
	/* Only the record says whether a different payload must wait. */
	if (buf == NULL && options->wait_ms > 0 && options->on_mismatch != HAPAX_ON_MISMATCH_REJECT)
		return HX_DIRECTLY_NOT;
	fill(processor, request, options, direct, buf);
	hapax_store_submit(
		processor->store, &direct->op, 1, (struct hapax_completion){ignore, NULL});
	if (direct->op.status != HAPAX_OK)
		return HX_DIRECTLY_NOT;
	if (direct->op.outcome == HAPAX_OUTCOME_ACQUIRED)
		return HX_DIRECTLY_ACQUIRED;
	outcome = outcome_of(direct, options);
	/* A run that may wait must join the queue before it claims, or it misses the wake-up. */
	if (outcome == HAPAX_OUTCOME_IN_PROGRESS && options->wait_ms > 0)
		return HX_DIRECTLY_NOT;
	answer_from(direct, outcome, answer);
	report(processor, direct, origin, answer);
	return HX_DIRECTLY_ANSWERED;
}

void hx_direct_release(struct hapax_processor *processor, const struct hx_direct *direct)
{
	struct hapax_op op = {
		.type = HAPAX_OP_RELEASE,
		.tenant = direct->op.tenant,
		.group = direct->op.group,
		.key = direct->op.key,
		.token = direct->op.token,
		.error = HX_BYTES_LIT("not enough memory"),
	};

	assert(direct->op.status == HAPAX_OK);
	assert(direct->op.outcome == HAPAX_OUTCOME_ACQUIRED);
	assert(direct->claim.op == &direct->op);
	/* If the release fails, too, the lease lapses. */
	hapax_store_submit(processor->store, &op, 1, (struct hapax_completion){ignore, NULL});
}
