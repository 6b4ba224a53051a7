/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tag.h - a duplicate that its handler gets all the same, marked as one.
 *
 * It has no claim: nothing of it reaches the store, and it counts neither as a run nor as an
 * attempt of its key. A handler that fails it gets it again, as any message, up to
 * attempts_max times; then it is acknowledged without, because what it is a duplicate of
 * is done.
 *
 * Threads: the consumer's.
 */
#ifndef HX_SOURCE_CONSUME_TAG_H
#define HX_SOURCE_CONSUME_TAG_H

#include <hapax/source.h>

struct hx_in_flight;

/* The store says that it is done: of what, and why it came, stands in event. */
void hx_tag_begin(struct hx_in_flight *in_flight, const struct hapax_consumer_event *event);

/* Hand it to its handler, for the first time or again. */
void hx_tag_run(struct hx_in_flight *in_flight);

/* Its handler has ended. */
void hx_tag_end(struct hx_in_flight *in_flight);

#endif
