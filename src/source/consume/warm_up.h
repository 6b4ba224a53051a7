/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm_up.h - marks messages of the past as done, without running them.
 *
 * On request, a source delivers messages that its group had acknowledged before
 * (HAPAX_MESSAGE_WARM_UP). Each becomes a mark in the store, unless the store has any record of it:
 * a failed one is a dead letter that may be sent again. One batch is in progress at a time: first a
 * lookup of known keys, then the marks.
 *
 * Threads: the consumer's, except the store's answer.
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
	struct hapax_op *ops; /* of the batch; context: its in_flight. NULL: none yet */
	size_t count;
	enum hx_warm_up_step step;
	_Atomic bool is_answered;
	struct hx_lock lock; /* held by the answering thread until it has woken the consumer */
};

/* Zero is allowed. No batch is in progress. */
void hx_warm_up_done(struct hx_warm_up *warm_up);

/* Whether the batch has room and is not in progress. */
bool hx_warm_up_has_room(struct hx_consumer *consumer);

/* Add a message of the past; it is acknowledged when the store has its mark. */
void hx_warm_up_add(struct hx_in_flight *in_flight);

/* Send the batch, process the store's answer. True: made progress. */
bool hx_warm_up_turn(struct hx_consumer *consumer);

#endif
