/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ordering_queue.h - which messages wait for each other.
 *
 * An ordering queue is a line of messages with one hash; only its first one is worked on. It exists
 * while a message is in it, is made of links in the messages, and allocates nothing. Two
 * keys whose hashes are equal wait for each other without need, and nothing worse.
 *
 * Threads: one at a time.
 */
#ifndef HX_SOURCE_CONSUME_ORDERING_QUEUE_H
#define HX_SOURCE_CONSUME_ORDERING_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/error.h>

struct hx_in_flight;

struct hx_ordering_queues {
	struct hx_in_flight **buckets; /* the first of each ordering queue */
	size_t mask;
	uint64_t secret[2];
};

/* For at most count messages. NO_MEMORY. */
enum hapax_status hx_ordering_queues_init(
	struct hx_ordering_queues *ordering_queues, size_t count, const uint64_t secret[2]);
void hx_ordering_queues_done(struct hx_ordering_queues *ordering_queues);

/* Put it behind those of its ordering queue. True: it is the first, and may be worked on. */
bool hx_ordering_queues_join(
	struct hx_ordering_queues *ordering_queues, struct hx_in_flight *in_flight);

/* It is over, or given back. The one that is the first now, if there is one and it was not before; else NULL. */
struct hx_in_flight *hx_ordering_queues_leave(
	struct hx_ordering_queues *ordering_queues, struct hx_in_flight *in_flight);

#endif
