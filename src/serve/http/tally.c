/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally.c - counts a delivery when it is decided and when it has ended; and refused clients.
 */
#include "serve/http/tally.h"

#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "observe/feed.h"
#include "observe/metrics/metrics.h"
#include "serve/daemon/daemon.h"
#include "serve/http/delivery.h"

static void count_unprotected(struct hx_delivery *delivery)
{
	hx_metrics_add(
		delivery->loop->cells, HX_METRIC_UNPROTECTED, delivery->claim.scope_number,
		delivery->claim.identity.key.size == 0 ? HX_UNPROTECTED_NO_KEY
						       : HX_UNPROTECTED_DISABLED,
		1);
}

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

static void count_decision(struct hx_delivery *delivery, const struct hapax_answer *answer)
{
	struct hx_cells *cells = delivery->loop->cells;

	hx_metrics_decision(
		cells, delivery->door, delivery->claim.scope_number, decision_of(answer));
	/* By event type: requests of the proxy have none. */
	if (answer->outcome == HAPAX_OUTCOME_REPLAY && delivery->door == HX_DOOR_GATEWAY)
		hx_metrics_add(
			cells, HX_METRIC_DUPLICATES,
			hx_metrics_type(cells, hapax_bytes_from_text(delivery->claim.type)), 0, 1);
	if (answer->flags & HAPAX_ANSWER_UNVERIFIED)
		hx_metrics_add(cells, HX_METRIC_UNVERIFIED, delivery->claim.scope_number, 0, 1);
}

/* For watchers of the feed. */
static void note_decision(struct hx_delivery *delivery, const struct hapax_answer *answer)
{
	struct hx_loop *loop = delivery->loop;
	const struct hapax_clock *clock = hapax_clock_system();
	const struct hx_delivery_identity *identity = &delivery->claim.identity;
	enum hapax_decision decision = decision_of(answer);
	unsigned flags = answer->flags & HAPAX_ANSWER_WAITED ? HX_FEED_WAITED : 0;

	if (!hx_feed_wants(loop->serve->feed, loop->index, decision))
		return;
	if (delivery->claim.route != NULL &&
	    strcmp(delivery->claim.route->keying.key, "event-id") == 0)
		flags |= HX_FEED_EVENT_ID;
	hx_feed_add(
		loop->serve->feed, loop->index,
		&(struct hx_feed_note){
			.at_ms = clock->wall_ms(clock->context),
			.first_seen_ms = answer->first_seen_ms,
			.token = answer->token,
			.attempt = answer->attempt,
			.flags = flags,
			.decision = decision,
			.door = delivery->door,
			.tenant = identity->tenant,
			.group = identity->group,
			.key = identity->key,
			.type = hapax_bytes_from_text(delivery->claim.type),
			.source = hapax_bytes_from_text(delivery->claim.source),
		});
}

void hx_tally_decided(struct hx_delivery *delivery, const struct hapax_answer *answer)
{
	struct hx_cells *cells = delivery->loop->cells;
	int64_t ttl_ms = delivery->claim.options.ttl_ms;

	hx_tracing_decided(delivery, answer);
	if (answer->flags & HAPAX_ANSWER_UNPROTECTED) {
		if (!delivery->claim.passes || delivery->claim.lacks_key)
			count_unprotected(delivery);
		return;
	}
	hx_metrics_operation(cells, HAPAX_OP_CLAIM, answer->status);
	if (answer->outcome == HAPAX_OUTCOME_NONE)
		return;
	hx_metrics_observe_ns(
		cells, HX_METRIC_CHECK_DURATION, 0, delivery->door,
		hx_clock_mono_ns() - delivery->claim.asked_ns);
	count_decision(delivery, answer);
	note_decision(delivery, answer);
	if (answer->outcome == HAPAX_OUTCOME_ACQUIRED)
		hx_metrics_observe_ns(
			cells, HX_METRIC_KEY_TTL, 0, 0,
			ttl_ms == HAPAX_TTL_FOREVER ? INT64_MAX : ttl_ms * HX_NS_PER_MS);
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

void hx_tally_ended(struct hx_delivery *delivery, const struct hapax_answer *answer)
{
	struct hx_cells *cells = delivery->loop->cells;

	if (answer->outcome != HAPAX_OUTCOME_ACQUIRED) {
		hx_tally_decided(delivery, answer);
		return;
	}
	if (answer->flags & HAPAX_ANSWER_UNPROTECTED)
		return;
	hx_metrics_operation(cells, operation_of(delivery), answer->status);
	hx_metrics_add(
		cells, HX_METRIC_RUNS, delivery->claim.scope_number,
		answer->status == HAPAX_OK ? (unsigned)answer->run_outcome
					   : (unsigned)HX_RUN_UNSTORED,
		1);
	if (answer->status == HAPAX_ERR_FENCED)
		hx_metrics_decision(
			cells, delivery->door, delivery->claim.scope_number, HAPAX_DECISION_FENCED);
}

void hx_tally_refused(
	struct hx_cells *cells, enum hx_door door, unsigned status, enum hx_http_refusal why)
{
	static const unsigned reasons[] = {
		[HX_HTTP_REFUSED_MESSAGE] =
			HX_REFUSED_COUNT, /* not a limit: counted by its status */
		[HX_HTTP_REFUSED_HEAD] = HX_REFUSED_HEAD_TIMEOUT,
		[HX_HTTP_REFUSED_BODY] = HX_REFUSED_BODY_TIMEOUT,
		[HX_HTTP_REFUSED_UNREAD] = HX_REFUSED_SEND_TIMEOUT,
		[HX_HTTP_REFUSED_REQUESTS] = HX_REFUSED_REQUESTS,
		[HX_HTTP_REFUSED_MEMORY] = HX_REFUSED_MEMORY,
		[HX_HTTP_REFUSED_FILE] = HX_REFUSED_FILE,
		[HX_HTTP_REFUSED_ADMIT] = HX_REFUSED_ADDRESS,
		[HX_HTTP_REFUSED_IDLE] = HX_REFUSED_IDLE,
	};

	if (status != 0)
		hx_metrics_add(cells, HX_METRIC_REQUESTS, 0, hx_metrics_request(door, status), 1);
	if (reasons[why] != HX_REFUSED_COUNT)
		hx_metrics_add(cells, HX_METRIC_REFUSED, 0, reasons[why], 1);
}
