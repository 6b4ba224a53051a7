/* SPDX-License-Identifier: Apache-2.0 */
#include "source/consume/tag.h"

#include <assert.h>
#include <stdio.h>
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

	(void)snprintf(
		why, sizeof(why), "a tagged duplicate: %s%s%.*s",
		hapax_run_outcome_name(in_flight->outcome), in_flight->error.size > 0 ? ": " : "",
		(int)(in_flight->error.size < 180 ? in_flight->error.size : 180),
		(const char *)in_flight->error.data);
	in_flight->failures++;
	if (in_flight->failures >= consumer->options.attempts_max) {
		event.fact = HAPAX_FACT_UNDELIVERED;
		hx_consumer_tell(consumer, in_flight, &event);
		hx_settle_ack(in_flight);
		return;
	}
	consumer->stats.retries++;
	event.delay_ms = hx_consumer_delay_ms(consumer, in_flight->failures - 1);
	hx_consumer_tell(consumer, in_flight, &event);
	hx_settle_wait(in_flight, event.delay_ms);
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
