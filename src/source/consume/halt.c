/* SPDX-License-Identifier: Apache-2.0 */
/*
 * halt.c - when nothing begins: an operator paused the consumer, or a message has no ID.
 */
#include <stdio.h>

#include "base/error.h"
#include "source/consume/advice.h"
#include "source/consume/consumer.h"

static void set_source_pause(struct hx_consumer *consumer)
{
	if (consumer->source->ops->pause != NULL)
		consumer->source->ops->pause(consumer->source, hx_consumer_is_held_up(consumer));
}

void hx_consumer_pause(struct hx_consumer *consumer, bool is_paused)
{
	if (consumer->is_paused == is_paused)
		return;
	consumer->is_paused = is_paused;
	set_source_pause(consumer);
}

void hx_consumer_resume(struct hx_consumer *consumer)
{
	consumer->is_halted = false;
	set_source_pause(consumer);
}

/*
 * A missing strategy must not make a message a dead letter: the whole queue would become
 * dead letters. Nothing begins; what has not begun goes back to the broker.
 */
static void halt(struct hx_in_flight *in_flight, const char *strategy)
{
	struct hx_consumer *consumer = in_flight->consumer;
	struct hapax_consumer_event event = {
		.fact = HAPAX_FACT_NO_KEY,
		.why = "the message has no ID, and no key strategy is configured",
		.strategy = strategy};

	consumer->is_halted = true;
	if (consumer->options.flags & HAPAX_CONSUMER_HALTS) {
		set_source_pause(consumer);
	} else {
		consumer->is_failed = true;
		(void)hx_error_set(
			&consumer->failure, HAPAX_ERR_INVALID, 0,
			"a message of '%.*s' has no ID, and its broker has no position that could be "
			"its key",
			(int)in_flight->message->topic.size,
			(const char *)in_flight->message->topic.data);
	}
	hx_consumer_tell(consumer, in_flight, &event);
}

void hx_consumer_lacks_id(struct hx_in_flight *in_flight)
{
	struct hx_consumer *consumer = in_flight->consumer;
	struct hapax_consumer_event event = {.fact = HAPAX_FACT_PLACE_KEY};
	char strategy[HX_ADVICE_SIZE];

	if (in_flight->message->flags & HAPAX_MESSAGE_WARM_UP)
		return;
	if (in_flight->reason == HX_REASON_NO_KEY && in_flight->message->place.size == 0) {
		if (consumer->is_halted ||
		    in_flight->route->identity->on_missing != HAPAX_ON_MISSING_REJECT)
			return;
		hx_advice_strategy(&in_flight->envelope, strategy);
		halt(in_flight, strategy);
	} else if (in_flight->reason == HX_REASON_NONE && in_flight->message->place.size > 0) {
		if (consumer->stats.placed++ > 0)
			return;
		hx_advice_strategy(&in_flight->envelope, strategy);
		event.strategy = strategy;
		hx_consumer_tell(consumer, in_flight, &event);
	}
}
