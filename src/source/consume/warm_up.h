/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm_up.h - messages of the past, marked as done without running them.
 *
 * A source that is asked to hands out what its group had acknowledged before
 * (HAPAX_MESSAGE_WARM_UP). Each becomes a mark in the store, unless the store has a record
 * of it, whatever it says: a failed one is a dead letter that may be sent again. One batch
 * is at the store at a time: first the question which are known, then the marks.
 *
 * Threads: the consumer's, but for the store's answer.
 */
#ifndef HX_SOURCE_CONSUME_WARM_UP_H
#define HX_SOURCE_CONSUME_WARM_UP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <hapax/store.h>

#include "base/thread.h"

struct hx_consumer;
struct hx_in_flight;

enum hx_warm_up_step {
	HX_WARM_UP_IDLE = 0,
	HX_WARM_UP_ASKS,
	HX_WARM_UP_MARKS,
};

struct hx_warm_up {
	struct hapax_op
		*ops; /* of the batch; the context of each is its in_flight. NULL: none yet */
	size_t count;
	enum hx_warm_up_step step;
	_Atomic bool is_answered;
	struct hx_lock lock; /* held by who answers until the consumer was woken */
};

/* Zeros are allowed. No batch is at the store. */
void hx_warm_up_done(struct hx_warm_up *warm_up);

/* Is there room for one more in the batch, and is it not at the store? */
bool hx_warm_up_has_room(struct hx_consumer *consumer);

/* A message of the past, QUEUED no more: it is acknowledged when the store has it. */
void hx_warm_up_add(struct hx_in_flight *in_flight);

/* Send the batch, take up what the store answered. True: something was done. */
bool hx_warm_up_turn(struct hx_consumer *consumer);

#endif
