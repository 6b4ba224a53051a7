/* SPDX-License-Identifier: Apache-2.0 */
#include "source/consume/tag.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "source/consume/consumer.h"

void hx_tag_begin(struct hx_intake *intake, const struct hapax_consumer_event *event)
{
	struct hapax_bytes original = event->original;

	/* The answer goes, and the place of the original with it. */
	if (original.size > sizeof(intake->target))
		original.size = sizeof(intake->target);
	if (original.size > 0)
		memcpy(intake->target, original.data, original.size);
	intake->duplicate = (struct hapax_duplicate){
		.cause = event->cause,
		.original = hx_bytes(intake->target, original.size),
		.first_seen_ms = event->first_seen_ms,
		.token = event->token};
	intake->is_tagged = true;
	intake->failures = 0;
	intake->delays = 0;
	hx_tag_run(intake);
}

void hx_tag_run(struct hx_intake *intake)
{
	struct hx_consumer *consumer = intake->consumer;

	assert(intake->is_tagged);
	intake->token = 0;
	intake->attempt = intake->failures + 1;
	consumer->claimed++;
	hx_consumer_start(intake);
}

static void failed(struct hx_intake *intake)
{
	struct hx_consumer *consumer = intake->consumer;
	char why[HAPAX_ERROR_MESSAGE_SIZE];
	struct hapax_consumer_event event = {.fact = HAPAX_FACT_RETRY, .why = why};

	(void)snprintf(
		why, sizeof(why), "a tagged duplicate: %s%s%.*s",
		hapax_run_outcome_name(intake->outcome), intake->error.size > 0 ? ": " : "",
		(int)(intake->error.size < 180 ? intake->error.size : 180),
		(const char *)intake->error.data);
	intake->failures++;
	if (intake->failures >= consumer->options.attempts_max) {
		event.fact = HAPAX_FACT_UNDELIVERED;
		hx_consumer_tell(consumer, intake, &event);
		hx_settle_ack(intake);
		return;
	}
	consumer->stats.retries++;
	event.delay_ms = hx_consumer_delay_ms(consumer, intake->failures - 1);
	hx_consumer_tell(consumer, intake, &event);
	hx_settle_wait(intake, event.delay_ms);
}

void hx_tag_end(struct hx_intake *intake)
{
	struct hx_consumer *consumer = intake->consumer;

	consumer->claimed--;
	switch (intake->outcome) {
	case HAPAX_RUN_OK:
	case HAPAX_RUN_DEFINITIVE:
		consumer->stats.tagged++;
		hx_settle_ack(intake);
		return;
	case HAPAX_RUN_TRANSIENT:
	case HAPAX_RUN_AMBIGUOUS: failed(intake); return;
	}
}
