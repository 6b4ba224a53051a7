/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delivery_report.c - reports what became of a delivery: its decision, and the end of its run.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "observe/logger/logger.h"
#include "processor/request_key.h"
#include "serve/daemon/daemon.h"
#include "serve/http/delivery.h"

static enum hapax_decision decision_of(const struct hapax_answer *answer)
{
	static const int decisions[] = {
		[HAPAX_OUTCOME_ACQUIRED] = HAPAX_DECISION_ACQUIRED,
		[HAPAX_OUTCOME_REPLAY] = HAPAX_DECISION_REPLAY,
		[HAPAX_OUTCOME_IN_PROGRESS] = HAPAX_DECISION_IN_PROGRESS,
		[HAPAX_OUTCOME_MISMATCH] = HAPAX_DECISION_MISMATCH,
		[HAPAX_OUTCOME_PARKED] = HAPAX_DECISION_PARKED,
	};

	return (enum hapax_decision)decisions[answer->outcome];
}

static unsigned flags_of(const struct hx_delivery *delivery, const struct hapax_answer *answer)
{
	const struct hx_delivery_claim *claim = &delivery->claim;
	unsigned flags = 0;

	if (answer->flags & HAPAX_ANSWER_WAITED)
		flags |= HX_DECISION_WAITED;
	if (answer->flags & HAPAX_ANSWER_UNVERIFIED)
		flags |= HX_DECISION_UNVERIFIED;
	if (answer->flags & HAPAX_ANSWER_CONTINUED)
		flags |= HX_DECISION_CONTINUED;
	if (answer->flags & HAPAX_ANSWER_UNPROTECTED)
		flags |= HX_DECISION_UNPROTECTED;
	if (claim->passes && !claim->lacks_key)
		flags |= HX_DECISION_PASSED;
	if (claim->route != NULL && strcmp(claim->route->keying.key, "event-id") == 0)
		flags |= HX_DECISION_EVENT_ID;
	return flags;
}

/* The decision that an answer reports. */
static struct hx_decision describe(
	const struct hx_delivery *delivery, const struct hapax_answer *answer)
{
	const struct hx_delivery_claim *claim = &delivery->claim;
	struct hapax_cause original;

	(void)hapax_cause_read(answer->original_cause, &original);
	return (struct hx_decision){
		.door = delivery->door,
		.route = claim->route_name,
		.tenant = claim->identity.tenant,
		.group = claim->identity.group,
		.key = claim->identity.key,
		.event = claim->event,
		.status = answer->outcome == HAPAX_OUTCOME_NONE ? answer->status : HAPAX_OK,
		.decision = decision_of(answer),
		.flags = flags_of(delivery, answer),
		.attempt = answer->attempt,
		.token = answer->outcome == HAPAX_OUTCOME_ACQUIRED ? answer->token
								   : answer->original_token,
		.ttl_ms = claim->options.ttl_ms,
		.took_ns = -1,
		.expires_ms = answer->expires_ms,
		.first_seen_ms = answer->first_seen_ms,
		.original = original,
	};
}

/* The trace in digits, if a line needs it. */
static void add_trace(
	const struct hx_delivery *delivery, enum hx_logger_level level,
	struct hx_tracing_text *text, struct hx_decision *decision)
{
	if (!hx_logger_takes(delivery->loop->serve->log, level) &&
	    delivery->loop->observer.decisions == NULL)
		return;
	hx_tracing_text(delivery, text);
	decision->trace_id = hx_bytes(text->trace_id, text->trace_id_size);
	decision->span_id = hx_bytes(text->span_id, text->span_id_size);
}

/* The event has two keys: do they agree on what it is? */
static void note_divergence(const struct hx_delivery *delivery, enum hx_divergence divergence)
{
	struct hx_cells *cells = delivery->loop->cells;
	const struct hx_delivery_claim *claim = &delivery->claim;
	const struct hx_logger_field fields[] = {
		HX_LOGGER_TEXT("route", claim->route_name),
		HX_LOGGER_TEXT("reason", hx_divergence_name(divergence)),
		HX_LOGGER_KEY("idempotency_key", hx_bytes(claim->key.key, claim->key.key_size)),
		HX_LOGGER_KEY("key_also", hx_bytes(claim->key.also, claim->key.also_size)),
		HX_LOGGER_BYTES("event_id", claim->event.id),
	};

	if (divergence == HX_DIVERGENCE_NONE)
		return;
	hx_metrics_add(
		cells, HX_METRIC_KEY_DIVERGENCE,
		hx_metrics_scope(cells, claim->identity.tenant, claim->identity.group),
		divergence - 1, 1);
	hx_logger(
		delivery->loop->serve->log, HX_LOGGER_INFO, "key strategies disagree", fields,
		HX_COUNT(fields));
}

void hx_delivery_decided(struct hx_delivery *delivery, const struct hapax_answer *answer)
{
	struct hx_decision decision = describe(delivery, answer);
	struct hx_tracing_text trace;

	hx_tracing_decided(delivery, answer);
	if (!(decision.flags & HX_DECISION_UNPROTECTED)) {
		hx_metrics_operation(delivery->loop->cells, HAPAX_OP_CLAIM, answer->status);
		decision.took_ns = hx_clock_mono_ns() - delivery->claim.asked_ns;
	}
	add_trace(
		delivery,
		hx_decision_is_duplicate(decision.decision) ? HX_LOGGER_INFO : HX_LOGGER_DEBUG,
		&trace, &decision);
	hx_decision_tell(&delivery->loop->observer, &decision);
	if (delivery->claim.identity.is_two)
		note_divergence(delivery, hx_request_key_divergence(answer));
}

/* The store operation at the end of a run. */
static enum hapax_op_type operation_of(const struct hx_delivery *delivery)
{
	switch (delivery->call.outcome) {
	case HAPAX_RUN_OK:
	case HAPAX_RUN_DEFINITIVE: return HAPAX_OP_COMPLETE;
	case HAPAX_RUN_TRANSIENT: break;
	case HAPAX_RUN_AMBIGUOUS:
		if (delivery->claim.options.on_lapse == HAPAX_ON_LAPSE_PARK)
			return HAPAX_OP_PARK;
		break;
	}
	return HAPAX_OP_RELEASE;
}

void hx_delivery_ran(struct hx_delivery *delivery, const struct hapax_answer *answer)
{
	struct hx_decision decision = describe(delivery, answer);
	struct hx_tracing_text trace;

	if (!(decision.flags & HX_DECISION_UNPROTECTED))
		hx_metrics_operation(delivery->loop->cells, operation_of(delivery), answer->status);
	add_trace(delivery, HX_LOGGER_DEBUG, &trace, &decision);
	hx_decision_end(
		&delivery->loop->observer, &decision,
		&(struct hx_decision_end){
			.status = answer->status,
			.outcome = delivery->call.outcome,
			.code = delivery->call.status,
			.took_ns = delivery->call.took_ns,
			.why = hapax_bytes_from_text(
				delivery->call.outcome == HAPAX_RUN_OK
					? ""
					: delivery->call.failure.message),
		});
}
