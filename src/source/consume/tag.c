/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tag.c - delivers a duplicate to its handler, marked as a duplicate.
 *
 * It has no claim: it does not reach the store, and counts neither as a run nor as an attempt of
 * its key. If the handler fails, it is retried like any message, up to attempts_max times. It is
 * then acknowledged anyway, because its original is done.
 */
#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "source/consume/consumer.h"

void hx_tag_begin(struct hx_in_flight *in_flight, const struct hapax_consumer_event *event)
{
	struct hapax_bytes original = event->original;

	/* Copy the original's place: the answer is about to be freed. */
	if (original.size > sizeof(in_flight->target))
		original.size = sizeof(in_flight->target);
	if (original.size > 0)
		memcpy(in_flight->target, original.data, original.size);
	in_flight->duplicate = (struct hapax_duplicate){
		.cause = event->cause,
		.original = hx_bytes(in_flight->target, original.size),
		.first_seen_ms = event->first_seen_ms,
		.token = event->token};
	in_flight->is_tagged = true;
	in_flight->failures = 0;
	in_flight->delays = 0;
	hx_tag_run(in_flight);
}

void hx_tag_run(struct hx_in_flight *in_flight)
{
	struct hx_consumer *consumer = in_flight->consumer;

	assert(in_flight->is_tagged);
	in_flight->token = 0;
	in_flight->attempt = in_flight->failures + 1;
	consumer->claimed++;
	hx_consumer_start(in_flight);
}

static void failed(struct hx_in_flight *in_flight)
{
	struct hx_consumer *consumer = in_flight->consumer;
	char why[HAPAX_ERROR_MESSAGE_SIZE];
	struct hapax_consumer_event event = {.fact = HAPAX_FACT_RETRY, .why = why};

	hx_settle_describe(why, "a tagged duplicate: ", in_flight->outcome, in_flight->error);
	in_flight->failures++;
	if (in_flight->failures >= consumer->options.attempts_max) {
		event.fact = HAPAX_FACT_UNDELIVERED;
		hx_consumer_tell(consumer, in_flight, &event);
		hx_settle_ack(in_flight);
		return;
	}
	consumer->stats.retries++;
	hx_settle_retry(in_flight, &event, in_flight->failures - 1);
}

void hx_tag_end(struct hx_in_flight *in_flight)
{
	struct hx_consumer *consumer = in_flight->consumer;

	consumer->claimed--;
	switch (in_flight->outcome) {
	case HAPAX_RUN_OK:
	case HAPAX_RUN_DEFINITIVE:
		consumer->stats.tagged++;
		hx_settle_ack(in_flight);
		return;
	case HAPAX_RUN_TRANSIENT:
	case HAPAX_RUN_AMBIGUOUS: failed(in_flight); return;
	}
}
