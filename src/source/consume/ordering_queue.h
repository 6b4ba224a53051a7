/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ordering_queue.h - which messages wait for each other.
 *
 * A lane is a line of messages with one hash; only its first one is worked on. It exists
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

struct hx_intake;

struct hx_lanes {
	struct hx_intake **buckets; /* the first of each lane */
	size_t mask;
	uint64_t secret[2];
};

/* For at most count messages. NO_MEMORY. */
enum hapax_status hx_lanes_init(struct hx_lanes *lanes, size_t count, const uint64_t secret[2]);
void hx_lanes_done(struct hx_lanes *lanes);

/* Put it behind those of its lane. True: it is the first, and may be worked on. */
bool hx_lanes_join(struct hx_lanes *lanes, struct hx_intake *intake);

/* It is over, or given back. The one that is the first now, if there is one and it was not before; else NULL. */
struct hx_intake *hx_lanes_leave(struct hx_lanes *lanes, struct hx_intake *intake);

#endif
