/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ordering_queue.h - which messages wait for each other.
 *
 * An ordering queue holds the messages of one hash; only its first one is worked on. It exists
 * while it has a message, consists of links in the messages, and allocates nothing. Two keys with
 * equal hashes wait for each other needlessly, without other harm.
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
	struct hx_in_flight **buckets; /* the first message of each ordering queue */
	size_t mask;
	uint64_t secret[2];
};

/* For at most count messages. NO_MEMORY. */
enum hapax_status hx_ordering_queues_init(
	struct hx_ordering_queues *ordering_queues, size_t count, const uint64_t secret[2]);
void hx_ordering_queues_done(struct hx_ordering_queues *ordering_queues);

/* Append to its ordering queue. True: it is the first, and may be worked on. */
bool hx_ordering_queues_join(
	struct hx_ordering_queues *ordering_queues, struct hx_in_flight *in_flight);

/* The message is done or given back. Returns the new first message of its queue, or NULL. */
struct hx_in_flight *hx_ordering_queues_leave(
	struct hx_ordering_queues *ordering_queues, struct hx_in_flight *in_flight);

#endif
