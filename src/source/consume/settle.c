/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settle.c - what becomes of a message: acknowledged, tried again, handed on, given back.
 *
 * The table stands in source.h. This file has the only calls of ack, in hx_settle_ack(): for
 * what the processor says is stored or done already, and for what the broker has taken as
 * a dead letter (I4).
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/backoff.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "source/consume/consumer.h"
#include "source/consume/tag.h"
#include "wire/http1/http1_text.h"

/* Out of the consumer's hands; who waited for it comes next. */
static void let_go(struct hx_intake *intake)
{
	struct hx_consumer *consumer = intake->consumer;
	struct hx_intake *behind = hx_lanes_leave(&consumer->lanes, intake);

	intake->message = NULL;
	intake->state = HX_INTAKE_FREE;
	/* The one that was used last is warm: it comes first. */
	hx_intakes_add_first(&consumer->spare, intake);
	if (behind != NULL)
		hx_intakes_add(&consumer->ready, behind);
}

void hx_settle_ack(struct hx_intake *intake)
{
	struct hx_consumer *consumer = intake->consumer;

	consumer->stats.acknowledged++;
	consumer->source->ops->ack(consumer->source, intake->message);
	let_go(intake);
}

void hx_settle_give_back(struct hx_intake *intake)
{
	struct hx_consumer *consumer = intake->consumer;

	consumer->stats.given_back++;
	consumer->source->ops->give_back(consumer->source, intake->message);
	let_go(intake);
}

int64_t hx_consumer_delay_ms(struct hx_consumer *consumer, uint32_t delays)
{
	const struct hapax_consumer_options *options = &consumer->options;

	return hx_backoff(
		options->backoff_ms, options->backoff_ms_max, delays,
		hx_prng_next(&consumer->prng));
}

void hx_settle_wait(struct hx_intake *intake, int64_t delay_ms)
{
	struct hx_consumer *consumer = intake->consumer;

	if (hx_add_i64(consumer->now_ms, delay_ms, &intake->due_ms))
		intake->due_ms = INT64_MAX;
	intake->delays++;
	intake->state = HX_INTAKE_WAITING;
	hx_intakes_add(&consumer->waiting, intake);
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
			"the store failed and has to be opened anew");
	}
	if (!consumer->is_away) {
		consumer->is_away = true;
		consumer->away_delays = 0;
		hx_consumer_tell(consumer, NULL, &event);
	} else if (consumer->now_ms < consumer->away_until_ms) {
		/* Another one of those that were on their way: known already. */
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

/* The place of what was done, as a source wrote it beside the result; empty: none did. */
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
	const struct hx_intake *intake, struct hapax_bytes original)
{
	const struct hapax_message *message = intake->message;
	bool has_places = message->place.size > 0 && original.size > 0;

	/* Where places can be told, they are proof: what the broker delivers twice has one. */
	if (has_places && hx_bytes_equal(original, hapax_bytes_from_text(intake->place)))
		return HAPAX_CAUSE_REREAD;
	if (hx_envelope_header(&intake->envelope, "hapax-dead-reason").data != NULL)
		return HAPAX_CAUSE_DEAD_LETTER;
	if (has_places)
		return HAPAX_CAUSE_PRODUCER;
	if (message->flags & HAPAX_MESSAGE_REDELIVERED)
		return HAPAX_CAUSE_REDELIVERED;
	return original.size > 0 ? HAPAX_CAUSE_PRODUCER : HAPAX_CAUSE_OTHER_DOOR;
}

void hx_settle_hand_on(struct hx_intake *intake, enum hx_intake_reason reason, const char *why)
{
	intake->reason = reason;
	intake->delays = 0;
	(void)snprintf(intake->reason_text, sizeof(intake->reason_text), "%s", why);
	hx_settle_publish(intake);
}

static void duplicate(struct hx_intake *intake, const struct hapax_answer *answer)
{
	struct hx_consumer *consumer = intake->consumer;
	struct hapax_bytes original = original_of(&answer->result);
	struct hapax_consumer_event event = {
		.fact = HAPAX_FACT_DUPLICATE,
		.original = original,
		.cause = cause_of(intake, original),
		.first_seen_ms = answer->first_seen_ms,
		.token = answer->original_token,
		.expires_ms = answer->expires_ms};

	/* It is done, and its failure is the result: the letter may not have been sent. */
	if (answer->result.result_class == HAPAX_RESULT_DEFINITIVE &&
	    !(answer->flags & HAPAX_ANSWER_MISMATCH)) {
		hx_settle_hand_on(intake, HX_REASON_DEFINITIVE, "its handler refused it before");
		return;
	}
	consumer->stats.duplicates[event.cause]++;
	event.target = consumer->divert;
	intake->attempt = answer->attempt;
	hx_consumer_tell(consumer, intake, &event);
	switch (consumer->options.on_duplicate) {
	case HAPAX_ON_DUPLICATE_DROP: hx_settle_ack(intake); return;
	case HAPAX_ON_DUPLICATE_DIVERT:
		hx_settle_hand_on(
			intake, HX_REASON_DUPLICATE, hapax_duplicate_cause_name(event.cause));
		return;
	case HAPAX_ON_DUPLICATE_TAG: hx_tag_begin(intake, &event); return;
	}
}

/* A run failed without success. */
static void failed(struct hx_intake *intake, const struct hapax_answer *answer)
{
	struct hx_consumer *consumer = intake->consumer;
	char why[HAPAX_ERROR_MESSAGE_SIZE];
	struct hapax_consumer_event event = {.fact = HAPAX_FACT_RETRY, .why = why};

	(void)snprintf(
		why, sizeof(why), "%s%s%.*s", hapax_run_outcome_name(answer->run_outcome),
		answer->error.size > 0 ? ": " : "",
		(int)(answer->error.size < 200 ? answer->error.size : 200),
		(const char *)answer->error.data);
	intake->failures++;
	if (intake->attempt >= consumer->options.attempts_max && consumer->dead_letter != NULL) {
		hx_settle_hand_on(intake, HX_REASON_ATTEMPTS, why);
		return;
	}
	consumer->stats.retries++;
	event.delay_ms = hx_consumer_delay_ms(consumer, intake->failures - 1);
	hx_consumer_tell(consumer, intake, &event);
	hx_settle_wait(intake, event.delay_ms);
}

static void ran(struct hx_intake *intake, const struct hapax_answer *answer)
{
	struct hx_consumer *consumer = intake->consumer;
	char why[HAPAX_ERROR_MESSAGE_SIZE];

	consumer->stats.runs[answer->run_outcome]++;
	switch (answer->run_outcome) {
	case HAPAX_RUN_OK: hx_settle_ack(intake); return;
	case HAPAX_RUN_DEFINITIVE:
		(void)snprintf(
			why, sizeof(why), "%.*s",
			(int)(intake->error.size < 200 ? intake->error.size : 200),
			(const char *)intake->error.data);
		hx_settle_hand_on(
			intake, HX_REASON_DEFINITIVE,
			why[0] != '\0' ? why : "its handler refused it");
		return;
	case HAPAX_RUN_TRANSIENT:
	case HAPAX_RUN_AMBIGUOUS: failed(intake, answer); return;
	}
}

/* The outcome of a run is not known to be stored: the next claim finds out. */
static void unstored(struct hx_intake *intake, const struct hapax_answer *answer)
{
	struct hx_consumer *consumer = intake->consumer;

	consumer->stats.unstored++;
	if (answer->status != HAPAX_ERR_FENCED)
		hx_settle_store_refused(consumer, answer->status);
	hx_settle_wait(intake, hx_consumer_delay_ms(consumer, intake->delays));
}

/*
 * A message that nobody can run and that has nowhere to go stays with us, and is tried
 * again: a key may be resolved, a route be added at the next start.
 */
static void keep_trying(struct hx_intake *intake)
{
	struct hx_consumer *consumer = intake->consumer;
	struct hapax_consumer_event event = {
		.fact = HAPAX_FACT_UNDELIVERED,
		.why = intake->reason_text,
		.delay_ms = hx_consumer_delay_ms(consumer, intake->delays)};

	hx_consumer_tell(consumer, intake, &event);
	if (intake->reason > HX_REASON_NO_ROUTE)
		intake->reason = HX_REASON_NONE;
	hx_settle_wait(intake, event.delay_ms);
}

/*
 * The store answers, and refuses this one: it is of a tenant that the store is not for, or its user
 * lacks a right. The others go on. Nothing is handed on for it: a right that was taken away would
 * turn a whole topic into dead letters.
 */
static void refused(struct hx_intake *intake)
{
	hx_settle_store_answered(intake->consumer);
	intake->consumer->stats.refused++;
	(void)snprintf(
		intake->reason_text, sizeof(intake->reason_text),
		"the store does not take its key: it is for another tenant, or its user lacks a right");
	keep_trying(intake);
}

/*
 * The store answers, and what it has for this key is damaged: that is no store that is away,
 * for which one message asks and all others wait. A key that is known to be done is a dead
 * letter. Of any other nobody can tell, and it may be so of every key: nothing is
 * handed on for it, or a damaged store would turn a whole topic into dead letters.
 */
static void damaged(struct hx_intake *intake, const struct hapax_answer *answer)
{
	struct hx_consumer *consumer = intake->consumer;

	hx_settle_store_answered(consumer);
	if (answer->flags & HAPAX_ANSWER_UNREADABLE) {
		consumer->stats.unreadable++;
		hx_settle_hand_on(
			intake, HX_REASON_UNREADABLE,
			"its key is done, but what is stored for it cannot be read: see hapax fsck");
		return;
	}
	consumer->stats.refused++;
	(void)snprintf(
		intake->reason_text, sizeof(intake->reason_text),
		"what is stored for its key cannot be read: see hapax fsck");
	keep_trying(intake);
}

void hx_settle_answer(struct hx_intake *intake, const struct hapax_answer *answer)
{
	struct hx_consumer *consumer = intake->consumer;
	bool was_joint = false;

	/* The claim was made in a transaction: what counts is what was answered there. */
	if (intake->has_answer) {
		intake->has_answer = false;
		was_joint = true;
		answer = &intake->answer;
		/* An attempt whose transaction went, or that has no record, is known here alone. */
		intake->attempt = answer->attempt > intake->failures + 1 ? answer->attempt
									 : intake->failures + 1;
	}
	if (answer->status != HAPAX_OK) {
		if (answer->outcome == HAPAX_OUTCOME_ACQUIRED) {
			unstored(intake, answer);
			return;
		}
		if (answer->status == HAPAX_ERR_CORRUPT) {
			damaged(intake, answer);
			return;
		}
		if (answer->status == HAPAX_ERR_INVALID) {
			refused(intake);
			return;
		}
		hx_settle_store_refused(consumer, answer->status);
		hx_settle_wait(intake, 0);
		return;
	}
	/* A transaction was committed, whatever it protected. */
	if (was_joint || !(answer->flags & HAPAX_ANSWER_UNPROTECTED))
		hx_settle_store_answered(consumer);
	switch (answer->outcome) {
	case HAPAX_OUTCOME_ACQUIRED: ran(intake, answer); return;
	case HAPAX_OUTCOME_REPLAY: duplicate(intake, answer); return;
	case HAPAX_OUTCOME_MISMATCH:
		consumer->stats.mismatches++;
		hx_settle_hand_on(
			intake, HX_REASON_MISMATCH, "its key was seen with another payload");
		return;
	case HAPAX_OUTCOME_PARKED:
		consumer->stats.parked++;
		hx_settle_hand_on(intake, HX_REASON_PARKED, "its key waits for a decision");
		return;
	default:
		/* Somebody else is at it, and may yet fail. */
		consumer->stats.in_progress++;
		hx_settle_wait(intake, hx_consumer_delay_ms(consumer, intake->delays));
		return;
	}
}

static void on_published(
	struct hapax_publication *publication, enum hapax_status status, const char *why)
{
	struct hx_intake *intake = publication->context;
	struct hx_consumer *consumer = intake->consumer;
	bool is_dead = intake->reason != HX_REASON_DUPLICATE;
	struct hapax_consumer_event event = {
		.fact = HAPAX_FACT_DEAD_LETTER,
		.why = intake->reason_text,
		.target = intake->target};

	consumer->publishing--;
	if (status != HAPAX_OK) {
		event.fact = HAPAX_FACT_UNDELIVERED;
		event.why = why;
		event.delay_ms = hx_consumer_delay_ms(consumer, intake->delays);
		hx_consumer_tell(consumer, intake, &event);
		hx_settle_wait(intake, event.delay_ms);
		return;
	}
	if (is_dead) {
		consumer->stats.dead_letters++;
		hx_consumer_tell(consumer, intake, &event);
	} else {
		consumer->stats.diverted++;
	}
	hx_settle_ack(intake);
}

/* Trying again would keep all of it in memory, and change nothing. */
static void refuse(struct hx_intake *intake)
{
	struct hapax_consumer_event event = {
		.fact = HAPAX_FACT_UNDELIVERED, .why = intake->reason_text, .delay_ms = -1};

	hx_consumer_tell(intake->consumer, intake, &event);
	hx_settle_give_back(intake);
}

/* A letter that nobody takes. */
static void keep(struct hx_intake *intake)
{
	/* A definitive failure is kept in the ledger, which is a record of it. */
	if (intake->reason == HX_REASON_DEFINITIVE)
		hx_settle_ack(intake);
	else if (intake->message->flags & HAPAX_MESSAGE_TOO_LARGE)
		refuse(intake);
	else
		keep_trying(intake);
}

void hx_settle_publish(struct hx_intake *intake)
{
	struct hx_consumer *consumer = intake->consumer;

	if (intake->reason != HX_REASON_DUPLICATE && consumer->dead_letter == NULL) {
		keep(intake);
		return;
	}
	hx_handover_prepare(intake);
	intake->publication.done = on_published;
	intake->publication.context = intake;
	intake->state = HX_INTAKE_PUBLISHING;
	consumer->publishing++;
	consumer->source->ops->publish(consumer->source, &intake->publication);
}
