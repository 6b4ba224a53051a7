/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decision.c - one decision, all listeners.
 */
#include "observe/decision.h"

#include <assert.h>

#include "base/clock.h"
#include "base/time.h"
#include "observe/feed.h"
#include "observe/logger/logger.h"
#include "observe/logger/logger_line.h"

/* ------------------------------------------------------------------ metrics */

static void count_event(
	struct hx_cells *cells, const struct hx_decision *decision, enum hx_event_outcome outcome,
	int64_t count)
{
	hx_metrics_add(
		cells, HX_METRIC_EVENTS,
		hx_metrics_event(cells, decision->event.type, decision->group), outcome, count);
}

static void count_decided(
	struct hx_cells *cells, const struct hx_decision *decision, uint32_t scope, int64_t count)
{
	hx_metrics_decisions(cells, decision->door, scope, decision->decision, count);
	if (decision->flags & HX_DECISION_UNVERIFIED)
		hx_metrics_add(cells, HX_METRIC_UNVERIFIED, scope, 0, count);
	if (decision->decision == HAPAX_DECISION_REPLAY)
		hx_metrics_add(
			cells, HX_METRIC_DUPLICATES, hx_metrics_type(cells, decision->event.type),
			0, count);
	switch (decision->decision) {
	case HAPAX_DECISION_REPLAY:
	case HAPAX_DECISION_IN_PROGRESS:
		/* A consumer asks again: the message will run, or be a duplicate then. */
		if (decision->decision == HAPAX_DECISION_REPLAY ||
		    decision->door != HX_DOOR_CONSUMER)
			count_event(cells, decision, HX_EVENT_DUPLICATE, count);
		return;
	case HAPAX_DECISION_MISMATCH:
	case HAPAX_DECISION_PARKED: count_event(cells, decision, HX_EVENT_FAILED, count); return;
	case HAPAX_DECISION_ACQUIRED:
		if (decision->flags & HX_DECISION_MARKED)
			count_event(cells, decision, HX_EVENT_PROCESSED, count);
		return;
	default: return;
	}
}

static void count_unprotected(struct hx_cells *cells, const struct hx_decision *decision)
{
	if (decision->flags & HX_DECISION_PASSED)
		return;
	hx_metrics_add(
		cells, HX_METRIC_UNPROTECTED,
		hx_metrics_scope(cells, decision->tenant, decision->group),
		decision->key.size == 0 ? HX_UNPROTECTED_NO_KEY : HX_UNPROTECTED_DISABLED, 1);
}

void hx_decision_count(
	struct hx_observer *observer, const struct hx_decision *decision, int64_t count)
{
	struct hx_cells *cells = observer->cells;

	if (cells == NULL || count == 0)
		return;
	if (decision->flags & HX_DECISION_UNPROTECTED) {
		count_unprotected(cells, decision);
		return;
	}
	if (decision->status != HAPAX_OK) {
		hx_metrics_check_errors(cells, decision->door, decision->status, count);
		return;
	}
	if (decision->flags & HX_DECISION_CONTINUED)
		hx_metrics_check_errors(cells, decision->door, HAPAX_ERR_UNAVAILABLE, count);
	if (decision->took_ns >= 0)
		hx_metrics_observe_ns(
			cells, HX_METRIC_CHECK_DURATION, 0, decision->door, decision->took_ns);
	if (decision->decision == HAPAX_DECISION_ACQUIRED && decision->ttl_ms > 0)
		hx_metrics_observe_ns(
			cells, HX_METRIC_KEY_TTL, 0, 0,
			decision->ttl_ms == HAPAX_TTL_FOREVER ? INT64_MAX
							      : decision->ttl_ms * HX_NS_PER_MS);
	count_decided(
		cells, decision, hx_metrics_scope(cells, decision->tenant, decision->group), count);
}

void hx_decision_count_end(
	struct hx_observer *observer, const struct hx_decision *decision,
	const struct hx_decision_end *end, int64_t count)
{
	struct hx_cells *cells = observer->cells;
	bool is_processed = end->status == HAPAX_OK && end->outcome == HAPAX_RUN_OK;
	uint32_t scope;

	if (cells == NULL || count == 0 || decision->flags & HX_DECISION_PASSED)
		return;
	count_event(cells, decision, is_processed ? HX_EVENT_PROCESSED : HX_EVENT_FAILED, count);
	if (decision->consumer != NULL && end->took_ns >= 0)
		hx_metrics_observe_ns(
			cells, HX_METRIC_HANDLER_DURATION,
			hx_metrics_consumer(cells, decision->consumer), 0, end->took_ns);
	if (decision->flags & HX_DECISION_UNPROTECTED)
		return;
	scope = hx_metrics_scope(cells, decision->tenant, decision->group);
	hx_metrics_add(
		cells, HX_METRIC_RUNS, scope,
		end->status == HAPAX_OK ? (unsigned)end->outcome : (unsigned)HX_RUN_UNSTORED,
		count);
	if (end->status == HAPAX_ERR_FENCED)
		hx_metrics_decisions(cells, decision->door, scope, HAPAX_DECISION_FENCED, count);
}

/* ------------------------------------------------------------------ details */

void hx_observer_begin_round(struct hx_observer *observer)
{
	assert(!observer->is_round && observer->hushed == 0);
	observer->is_round = true;
}

void hx_observer_end_round(struct hx_observer *observer)
{
	/* The first of them was counted by the log. */
	if (observer->hushed > 1)
		hx_logger_duplicates_suppressed(observer->log, observer->hushed - 1);
	observer->is_round = false;
	observer->hushed = 0;
}

unsigned hx_observer_wants(struct hx_observer *observer, enum hapax_decision decision)
{
	bool is_duplicate = hx_decision_is_duplicate(decision);
	unsigned wants = 0;

	if (hx_logger_takes(observer->log, is_duplicate ? HX_LOGGER_INFO : HX_LOGGER_DEBUG)) {
		if (is_duplicate && observer->hushed > 0)
			observer->hushed++;
		else
			wants |= HX_OBSERVER_LOG;
	}
	if (hx_feed_wants(observer->feed, observer->writer, decision))
		wants |= HX_OBSERVER_FEED;
	if (observer->decisions != NULL)
		wants |= HX_OBSERVER_FILE;
	return wants;
}

static void log_decision(
	struct hx_observer *observer, const struct hx_decision *decision, int64_t now_ms)
{
	if (!hx_decision_is_duplicate(decision->decision))
		hx_logger_received(observer->log, decision);
	else if (!hx_logger_duplicate(observer->log, decision, now_ms) && observer->is_round)
		observer->hushed++;
}

static void feed_decision(
	struct hx_observer *observer, const struct hx_decision *decision, int64_t now_ms)
{
	unsigned flags = 0;

	if (decision->flags & HX_DECISION_WAITED)
		flags |= HX_FEED_WAITED;
	if (decision->flags & HX_DECISION_EVENT_ID)
		flags |= HX_FEED_EVENT_ID;
	hx_feed_add(
		observer->feed, observer->writer,
		&(struct hx_feed_note){
			.at_ms = now_ms,
			.first_seen_ms = decision->first_seen_ms,
			.token =
				decision->decision == HAPAX_DECISION_ACQUIRED ? decision->token : 0,
			.attempt = decision->attempt,
			.flags = flags,
			.decision = decision->decision,
			.door = decision->door,
			.cause = decision->cause,
			.tenant = decision->tenant,
			.group = decision->group,
			.key = decision->key,
			.event = decision->event,
			.original = decision->original,
		});
}

void hx_decision_note(
	struct hx_observer *observer, unsigned wants, const struct hx_decision *decision)
{
	const struct hapax_clock *clock =
		observer->clock == NULL ? hapax_clock_system() : observer->clock;
	int64_t now_ms;

	if (wants == 0)
		return;
	now_ms = clock->wall_ms(clock->context);
	if (wants & HX_OBSERVER_LOG)
		log_decision(observer, decision, now_ms);
	if (wants & HX_OBSERVER_FEED)
		feed_decision(observer, decision, now_ms);
	if (wants & HX_OBSERVER_FILE)
		hx_logger_decided(observer->decisions, decision);
}

void hx_decision_tell(struct hx_observer *observer, const struct hx_decision *decision)
{
	hx_decision_count(observer, decision, 1);
	if (decision->status == HAPAX_OK && decision->flags & HX_DECISION_UNPROTECTED)
		hx_logger_received(observer->log, decision);
	if (decision->status != HAPAX_OK || decision->flags & HX_DECISION_UNPROTECTED)
		hx_logger_decided(observer->decisions, decision);
	else
		hx_decision_note(
			observer, hx_observer_wants(observer, decision->decision), decision);
}

void hx_decision_note_end(
	struct hx_observer *observer, const struct hx_decision *decision,
	const struct hx_decision_end *end)
{
	/* Most runs have no listener: do not even make the fields. */
	if (hx_logger_takes(observer->log, HX_LOGGER_DEBUG))
		hx_logger_ended(observer->log, decision, end);
	if (observer->decisions != NULL)
		hx_logger_run_ended(observer->decisions, decision, end);
}

void hx_decision_end(
	struct hx_observer *observer, const struct hx_decision *decision,
	const struct hx_decision_end *end)
{
	hx_decision_count_end(observer, decision, end, 1);
	hx_decision_note_end(observer, decision, end);
}

/* ------------------------------------------------------------------ operations of a client */

/* The decision that the client got; negative: none. */
static int decision_of(const struct hapax_op *op)
{
	switch (op->outcome) {
	case HAPAX_OUTCOME_APPLIED:
	case HAPAX_OUTCOME_ACQUIRED: return HAPAX_DECISION_ACQUIRED;
	case HAPAX_OUTCOME_NOT_MET:
	case HAPAX_OUTCOME_REPLAY: return HAPAX_DECISION_REPLAY;
	case HAPAX_OUTCOME_IN_PROGRESS: return HAPAX_DECISION_IN_PROGRESS;
	case HAPAX_OUTCOME_MISMATCH: return HAPAX_DECISION_MISMATCH;
	case HAPAX_OUTCOME_PARKED: return HAPAX_DECISION_PARKED;
	case HAPAX_OUTCOME_NONE:
	case HAPAX_OUTCOME_FOUND:
	case HAPAX_OUTCOME_ABSENT:
	case HAPAX_OUTCOME_BUSY:
	case HAPAX_OUTCOME_SKIPPED: break;
	}
	return -1;
}

static bool ends_run(const struct hapax_op *op)
{
	return op->type == HAPAX_OP_COMPLETE || op->type == HAPAX_OP_RELEASE ||
		op->type == HAPAX_OP_PARK;
}

enum hx_op_report hx_decision_sort_op(
	const struct hapax_op *op, enum hapax_decision *ret_decision,
	struct hx_decision_end *ret_end)
{
	/* Whether the client asks for permission to run: SET NX does, too. */
	bool asks = op->type == HAPAX_OP_CLAIM || op->type == HAPAX_OP_CHECK ||
		(op->type == HAPAX_OP_SET && op->set_if == HAPAX_SET_IF_ABSENT);
	int decision = asks && op->status == HAPAX_OK ? decision_of(op) : -1;
	bool is_done = op->type == HAPAX_OP_COMPLETE;

	if (asks && (op->status != HAPAX_OK || decision >= 0)) {
		*ret_decision = (enum hapax_decision)(decision < 0 ? 0 : decision);
		return HX_OP_DECIDED;
	}
	/* One that another operation of its group held back ends nothing, nor does a repeat. */
	if (ends_run(op) && (op->outcome == HAPAX_OUTCOME_SKIPPED || op->repeated))
		return HX_OP_OTHER;
	if (ends_run(op)) {
		bool is_definitive =
			op->result != NULL && op->result->result_class == HAPAX_RESULT_DEFINITIVE;

		*ret_end = (struct hx_decision_end){.status = op->status, .took_ns = -1};
		ret_end->outcome = is_done && is_definitive ? HAPAX_RUN_DEFINITIVE
			: is_done                           ? HAPAX_RUN_OK
			: op->type == HAPAX_OP_RELEASE      ? HAPAX_RUN_TRANSIENT
							    : HAPAX_RUN_AMBIGUOUS;
		ret_end->why = op->error;
		return HX_OP_ENDED;
	}
	*ret_decision = HAPAX_DECISION_FENCED;
	return op->status == HAPAX_ERR_FENCED ? HX_OP_DECIDED : HX_OP_OTHER;
}

void hx_decision_read_op(
	const struct hapax_op *op, enum hx_door door, enum hapax_decision decision,
	struct hx_decision *ret_decision)
{
	const struct hapax_record *record = op->attempt > 0 ? op->record : NULL;

	*ret_decision = (struct hx_decision){
		.door = door,
		.tenant = op->tenant,
		.group = op->group,
		.key = op->key,
		.status = op->status == HAPAX_ERR_FENCED ? HAPAX_OK : op->status,
		.decision = decision,
		.flags = (op->unverified ? (unsigned)HX_DECISION_UNVERIFIED : 0) |
			(op->continued ? (unsigned)HX_DECISION_CONTINUED : 0) |
			(op->type == HAPAX_OP_CLAIM ? 0 : (unsigned)HX_DECISION_MARKED),
		.attempt = op->attempt,
		.token = op->token,
		.ttl_ms = op->flags & HAPAX_OP_TTL_IS_TIME ? 0 : op->ttl_ms,
		.took_ns = -1,
		.expires_ms = op->expires_ms,
		.first_seen_ms = op->first_seen_ms,
	};
	(void)hapax_cause_read(op->cause, &ret_decision->event);
	if (op->status != HAPAX_OK || record == NULL)
		return;
	/* The holder that ends a run does not tell its event again. */
	if (ends_run(op))
		(void)hapax_cause_read(record->cause, &ret_decision->event);
	if (decision == HAPAX_DECISION_REPLAY)
		ret_decision->token = record->token;
	if (hx_decision_is_duplicate(decision))
		(void)hapax_cause_read(record->cause, &ret_decision->original);
}
