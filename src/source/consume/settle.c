/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settle.c - decides about a message: acknowledge, retry, hand on or give back.
 *
 * The table is in source.h. Only hx_settle_ack() calls ack: for a message that the processor
 * reports as stored or already done, and for one that the broker accepted as a dead letter (I4).
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/backoff.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "processor/request_key.h"
#include "source/consume/consumer.h"
#include "wire/http1/http1_text.h"

/* Release the message; the next of its ordering queue becomes ready. */
static void let_go(struct hx_in_flight *in_flight)
{
	struct hx_consumer *consumer = in_flight->consumer;
	struct hx_in_flight *behind =
		hx_ordering_queues_leave(&consumer->ordering_queues, in_flight);

	in_flight->message = NULL;
	in_flight->state = HX_IN_FLIGHT_FREE;
	/* The last one used is still in the cache: reuse it first. */
	hx_in_flight_list_add_first(&consumer->spare, in_flight);
	if (behind != NULL)
		hx_in_flight_list_add(&consumer->ready, behind);
}

void hx_settle_ack(struct hx_in_flight *in_flight)
{
	struct hx_consumer *consumer = in_flight->consumer;

	consumer->stats.acknowledged++;
	consumer->source->ops->ack(consumer->source, in_flight->message);
	let_go(in_flight);
}

void hx_settle_give_back(struct hx_in_flight *in_flight)
{
	struct hx_consumer *consumer = in_flight->consumer;

	consumer->stats.given_back++;
	consumer->source->ops->give_back(consumer->source, in_flight->message);
	let_go(in_flight);
}

int64_t hx_consumer_delay_ms(struct hx_consumer *consumer, uint32_t delays)
{
	const struct hapax_consumer_options *options = &consumer->options;

	return hx_backoff(
		options->backoff_ms, options->backoff_ms_max, delays,
		hx_prng_next(&consumer->prng));
}

void hx_settle_wait(struct hx_in_flight *in_flight, int64_t delay_ms)
{
	struct hx_consumer *consumer = in_flight->consumer;

	if (hx_add_i64(consumer->now_ms, delay_ms, &in_flight->due_ms))
		in_flight->due_ms = INT64_MAX;
	in_flight->delays++;
	in_flight->state = HX_IN_FLIGHT_WAITING;
	hx_in_flight_list_add(&consumer->waiting, in_flight);
}

void hx_settle_retry(
	struct hx_in_flight *in_flight, struct hapax_consumer_event *event, uint32_t delays)
{
	event->delay_ms = hx_consumer_delay_ms(in_flight->consumer, delays);
	hx_consumer_tell(in_flight->consumer, in_flight, event);
	hx_settle_wait(in_flight, event->delay_ms);
}

void hx_settle_describe(
	char ret_why[HAPAX_ERROR_MESSAGE_SIZE], const char *prefix, enum hapax_run_outcome outcome,
	struct hapax_bytes error)
{
	(void)snprintf(
		ret_why, HAPAX_ERROR_MESSAGE_SIZE, "%s%s%s%.*s", prefix,
		hapax_run_outcome_name(outcome), error.size > 0 ? ": " : "",
		(int)(error.size < 200 ? error.size : 200), (const char *)error.data);
}

void hx_settle_store_refused(struct hx_consumer *consumer, enum hapax_status status)
{
	struct hapax_consumer_event event = {
		.fact = HAPAX_FACT_STORE_AWAY, .why = hapax_status_name(status)};

	consumer->stats.refused++;
	if (status == HAPAX_ERR_FAILED) {
		consumer->is_failed = true;
		consumer->failure.status = status;
		(void)snprintf(
			consumer->failure.message, sizeof(consumer->failure.message),
			"the store stopped after an error; restart the consumer");
	}
	if (!consumer->is_away) {
		consumer->is_away = true;
		consumer->away_delays = 0;
		hx_consumer_tell(consumer, NULL, &event);
	} else if (consumer->now_ms < consumer->away_until_ms) {
		/* Sent before the outage was known: already reported. */
		return;
	}
	consumer->away_until_ms =
		consumer->now_ms + hx_consumer_delay_ms(consumer, consumer->away_delays++);
}

void hx_settle_store_answered(struct hx_consumer *consumer)
{
	struct hapax_consumer_event event = {.fact = HAPAX_FACT_STORE_BACK};

	if (!consumer->is_away)
		return;
	consumer->is_away = false;
	hx_consumer_tell(consumer, NULL, &event);
}

/* The original's place, stored beside the result; empty: none. */
static struct hapax_bytes original_of(const struct hapax_result *result)
{
	static const char name[] = HX_PLACE_FIELD ": ";
	const char *at = result->headers.data;
	size_t left = result->headers.size;

	while (left > 0) {
		const char *end = memchr(at, '\r', left);
		size_t size = end == NULL ? left : (size_t)(end - at);

		if (size >= sizeof(name) - 1 && memcmp(at, name, sizeof(name) - 1) == 0)
			return hx_bytes(at + sizeof(name) - 1, size - (sizeof(name) - 1));
		if (end == NULL || left - size < 2)
			break;
		at += size + 2;
		left -= size + 2;
	}
	return hx_bytes(NULL, 0);
}

static enum hapax_duplicate_cause cause_of(
	const struct hx_in_flight *in_flight, struct hapax_bytes original)
{
	const struct hapax_message *message = in_flight->message;
	bool has_places = message->place.size > 0 && original.size > 0;

	/* Places are proof: a message that the broker delivers twice has the same place. */
	if (has_places && hx_bytes_equal(original, hapax_bytes_from_text(in_flight->place)))
		return HAPAX_CAUSE_REREAD;
	if (hx_envelope_header(&in_flight->envelope, "hapax-dead-reason").data != NULL)
		return HAPAX_CAUSE_DEAD_LETTER;
	if (has_places)
		return HAPAX_CAUSE_PRODUCER;
	if (message->flags & HAPAX_MESSAGE_REDELIVERED)
		return HAPAX_CAUSE_REDELIVERED;
	return original.size > 0 ? HAPAX_CAUSE_PRODUCER : HAPAX_CAUSE_OTHER_DOOR;
}

void hx_settle_hand_on(
	struct hx_in_flight *in_flight, enum hx_in_flight_reason reason, const char *why)
{
	in_flight->reason = reason;
	in_flight->delays = 0;
	(void)snprintf(in_flight->reason_text, sizeof(in_flight->reason_text), "%s", why);
	hx_settle_publish(in_flight);
}

static void duplicate(struct hx_in_flight *in_flight, const struct hapax_answer *answer)
{
	struct hx_consumer *consumer = in_flight->consumer;
	struct hapax_bytes original = original_of(&answer->result);
	struct hapax_consumer_event event = {
		.fact = HAPAX_FACT_DUPLICATE,
		.original = original,
		.cause = cause_of(in_flight, original),
		.first_seen_ms = answer->first_seen_ms,
		.token = answer->original_token,
		.expires_ms = answer->expires_ms,
		.answer = answer,
		.took_ns = hx_consumer_claim_ns(in_flight)};

	/* The result is a permanent failure: its dead letter may not have been sent. */
	if (answer->result.result_class == HAPAX_RESULT_DEFINITIVE &&
	    !(answer->flags & HAPAX_ANSWER_MISMATCH)) {
		event.fact = HAPAX_FACT_DECIDED;
		hx_consumer_tell(consumer, in_flight, &event);
		hx_settle_hand_on(
			in_flight, HX_REASON_DEFINITIVE, "its handler rejected it before");
		return;
	}
	consumer->stats.duplicates[event.cause]++;
	event.target = consumer->divert;
	in_flight->attempt = answer->attempt;
	hx_consumer_tell(consumer, in_flight, &event);
	switch (consumer->options.on_duplicate) {
	case HAPAX_ON_DUPLICATE_DROP: hx_settle_ack(in_flight); return;
	case HAPAX_ON_DUPLICATE_DIVERT:
		hx_settle_hand_on(
			in_flight, HX_REASON_DUPLICATE, hapax_duplicate_cause_name(event.cause));
		return;
	case HAPAX_ON_DUPLICATE_TAG: hx_tag_begin(in_flight, &event); return;
	}
}

/* A run failed. */
static void failed(struct hx_in_flight *in_flight, const struct hapax_answer *answer)
{
	struct hx_consumer *consumer = in_flight->consumer;
	char why[HAPAX_ERROR_MESSAGE_SIZE];
	struct hapax_consumer_event event = {.fact = HAPAX_FACT_RETRY, .why = why};

	hx_settle_describe(why, "", answer->run_outcome, answer->error);
	in_flight->failures++;
	if (in_flight->attempt >= consumer->options.attempts_max && consumer->dead_letter != NULL) {
		hx_settle_hand_on(in_flight, HX_REASON_ATTEMPTS, why);
		return;
	}
	consumer->stats.retries++;
	hx_settle_retry(in_flight, &event, in_flight->failures - 1);
}

static void ran(struct hx_in_flight *in_flight, const struct hapax_answer *answer)
{
	struct hx_consumer *consumer = in_flight->consumer;
	char why[HAPAX_ERROR_MESSAGE_SIZE];

	consumer->stats.runs[answer->run_outcome]++;
	switch (answer->run_outcome) {
	case HAPAX_RUN_OK: hx_settle_ack(in_flight); return;
	case HAPAX_RUN_DEFINITIVE:
		(void)snprintf(
			why, sizeof(why), "%.*s",
			(int)(in_flight->error.size < 200 ? in_flight->error.size : 200),
			(const char *)in_flight->error.data);
		hx_settle_hand_on(
			in_flight, HX_REASON_DEFINITIVE,
			why[0] != '\0' ? why : "its handler rejected it");
		return;
	case HAPAX_RUN_TRANSIENT:
	case HAPAX_RUN_AMBIGUOUS: failed(in_flight, answer); return;
	}
}

/* It is unknown whether the outcome was stored: the next claim finds out. */
static void unstored(struct hx_in_flight *in_flight, const struct hapax_answer *answer)
{
	struct hx_consumer *consumer = in_flight->consumer;

	consumer->stats.unstored++;
	if (answer->status != HAPAX_ERR_FENCED)
		hx_settle_store_refused(consumer, answer->status);
	hx_settle_wait(in_flight, hx_consumer_delay_ms(consumer, in_flight->delays));
}

/*
 * A message that cannot run and cannot be handed on is kept and retried: its key may be resolved,
 * or a route added at the next start.
 */
static void keep_trying(struct hx_in_flight *in_flight)
{
	struct hapax_consumer_event event = {
		.fact = HAPAX_FACT_UNDELIVERED, .why = in_flight->reason_text};

	if (in_flight->reason > HX_REASON_NO_ROUTE)
		in_flight->reason = HX_REASON_NONE;
	hx_settle_retry(in_flight, &event, in_flight->delays);
}

/*
 * The store answers, but refuses this message: wrong tenant, or a missing permission. Other
 * messages continue. It is not handed on: a revoked permission would turn a whole topic into dead
 * letters.
 */
static void refused(struct hx_in_flight *in_flight)
{
	hx_settle_store_answered(in_flight->consumer);
	in_flight->consumer->stats.refused++;
	(void)snprintf(
		in_flight->reason_text, sizeof(in_flight->reason_text),
		"the store rejected its key: it belongs to another tenant, or the user lacks a "
		"permission");
	keep_trying(in_flight);
}

/*
 * The store answers, but its data for this key is damaged. This is not an outage, in which one
 * message probes and all others wait. A key that is known to be done becomes a dead letter. For any
 * other key the state is unknown, and all keys may be affected: nothing is handed on, or a damaged
 * store would turn a whole topic into dead letters.
 */
static void damaged(struct hx_in_flight *in_flight, const struct hapax_answer *answer)
{
	struct hx_consumer *consumer = in_flight->consumer;

	hx_settle_store_answered(consumer);
	if (answer->flags & HAPAX_ANSWER_UNREADABLE) {
		consumer->stats.unreadable++;
		hx_settle_hand_on(
			in_flight, HX_REASON_UNREADABLE,
			"its key is done, but the stored record cannot be read; run 'hapax fsck'");
		return;
	}
	consumer->stats.refused++;
	(void)snprintf(
		in_flight->reason_text, sizeof(in_flight->reason_text),
		"the stored record of its key cannot be read; run 'hapax fsck'");
	keep_trying(in_flight);
}

/* DUPLICATE is reported with its cause. A message is asked for again and again while it is held. */
static void report(struct hx_in_flight *in_flight, const struct hapax_answer *answer)
{
	bool was_held = in_flight->is_held;

	in_flight->is_held = answer->outcome == HAPAX_OUTCOME_IN_PROGRESS;
	if (answer->outcome == HAPAX_OUTCOME_ACQUIRED)
		hx_consumer_tell_answer(in_flight, HAPAX_FACT_ENDED, answer);
	else if (answer->outcome != HAPAX_OUTCOME_REPLAY && !(was_held && in_flight->is_held))
		hx_consumer_tell_answer(in_flight, HAPAX_FACT_DECIDED, answer);
}

/* The message has two keys: do they agree on what it is? */
static void tell_divergence(struct hx_in_flight *in_flight, enum hx_divergence divergence)
{
	struct hapax_consumer_event event = {
		.fact = HAPAX_FACT_KEYS_DIFFER, .why = hx_divergence_name(divergence)};

	if (divergence == HX_DIVERGENCE_NONE)
		return;
	in_flight->consumer->stats.diverged++;
	hx_consumer_tell(in_flight->consumer, in_flight, &event);
}

void hx_settle_answer(struct hx_in_flight *in_flight, const struct hapax_answer *answer)
{
	struct hx_consumer *consumer = in_flight->consumer;
	bool was_in_tx = false;

	/* The claim was made in a transaction: its answer counts. */
	if (in_flight->has_answer) {
		in_flight->has_answer = false;
		was_in_tx = true;
		answer = &in_flight->answer;
		/* Only the consumer knows attempts that were rolled back or have no record. */
		in_flight->attempt = answer->attempt > in_flight->failures + 1
			? answer->attempt
			: in_flight->failures + 1;
	}
	report(in_flight, answer);
	if (answer->status != HAPAX_OK) {
		if (answer->outcome == HAPAX_OUTCOME_ACQUIRED) {
			unstored(in_flight, answer);
			return;
		}
		if (answer->status == HAPAX_ERR_CORRUPT) {
			damaged(in_flight, answer);
			return;
		}
		if (answer->status == HAPAX_ERR_INVALID) {
			refused(in_flight);
			return;
		}
		hx_settle_store_refused(consumer, answer->status);
		hx_settle_wait(in_flight, 0);
		return;
	}
	/* A committed transaction proves that the store answers, even if unprotected. */
	if (was_in_tx || !(answer->flags & HAPAX_ANSWER_UNPROTECTED))
		hx_settle_store_answered(consumer);
	if (in_flight->key.also_size > 0 && answer->outcome != HAPAX_OUTCOME_ACQUIRED &&
	    answer->outcome != HAPAX_OUTCOME_IN_PROGRESS)
		tell_divergence(in_flight, hx_request_key_divergence(answer));
	switch (answer->outcome) {
	case HAPAX_OUTCOME_ACQUIRED: ran(in_flight, answer); return;
	case HAPAX_OUTCOME_REPLAY: duplicate(in_flight, answer); return;
	case HAPAX_OUTCOME_MISMATCH:
		consumer->stats.mismatches++;
		hx_settle_hand_on(
			in_flight, HX_REASON_MISMATCH, "its key was used with a different payload");
		return;
	case HAPAX_OUTCOME_PARKED:
		consumer->stats.parked++;
		hx_settle_hand_on(
			in_flight, HX_REASON_PARKED, "its key is parked; run 'hapax resolve'");
		return;
	default:
		/* In progress elsewhere, and may still fail. */
		consumer->stats.in_progress++;
		hx_settle_wait(in_flight, hx_consumer_delay_ms(consumer, in_flight->delays));
		return;
	}
}

static void on_published(
	struct hapax_publication *publication, enum hapax_status status, const char *why)
{
	struct hx_in_flight *in_flight = publication->context;
	struct hx_consumer *consumer = in_flight->consumer;
	bool is_dead = in_flight->reason != HX_REASON_DUPLICATE;
	struct hapax_consumer_event event = {
		.fact = HAPAX_FACT_DEAD_LETTER,
		.why = in_flight->reason_text,
		.target = in_flight->target};

	consumer->publishing--;
	if (status != HAPAX_OK) {
		event.fact = HAPAX_FACT_UNDELIVERED;
		event.why = why;
		hx_settle_retry(in_flight, &event, in_flight->delays);
		return;
	}
	if (is_dead) {
		consumer->stats.dead_letters++;
		hx_consumer_tell(consumer, in_flight, &event);
	} else {
		consumer->stats.diverted++;
	}
	hx_settle_ack(in_flight);
}

/* A retry would keep it all in memory and change nothing. */
static void settle_refuse(struct hx_in_flight *in_flight)
{
	struct hapax_consumer_event event = {
		.fact = HAPAX_FACT_UNDELIVERED, .why = in_flight->reason_text, .delay_ms = -1};

	hx_consumer_tell(in_flight->consumer, in_flight, &event);
	hx_settle_give_back(in_flight);
}

/* A dead letter without a target. */
static void settle_keep(struct hx_in_flight *in_flight)
{
	/* The ledger already records a definitive failure. */
	if (in_flight->reason == HX_REASON_DEFINITIVE)
		hx_settle_ack(in_flight);
	else if (in_flight->message->flags & HAPAX_MESSAGE_TOO_LARGE)
		settle_refuse(in_flight);
	else
		keep_trying(in_flight);
}

void hx_settle_publish(struct hx_in_flight *in_flight)
{
	struct hx_consumer *consumer = in_flight->consumer;

	if (in_flight->reason != HX_REASON_DUPLICATE && consumer->dead_letter == NULL) {
		settle_keep(in_flight);
		return;
	}
	hx_handover_prepare(in_flight);
	in_flight->publication.done = on_published;
	in_flight->publication.context = in_flight;
	in_flight->state = HX_IN_FLIGHT_PUBLISHING;
	consumer->publishing++;
	consumer->source->ops->publish(consumer->source, &in_flight->publication);
}
