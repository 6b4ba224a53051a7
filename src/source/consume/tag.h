/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tag.h - delivers a duplicate to its handler, marked as a duplicate.
 *
 * It has no claim: it does not reach the store, and counts neither as a run nor as an attempt of
 * its key. If the handler fails, it is retried like any message, up to attempts_max times. It is
 * then acknowledged anyway, because its original is done.
 *
 * Threads: the consumer's.
 */
#ifndef HX_SOURCE_CONSUME_TAG_H
#define HX_SOURCE_CONSUME_TAG_H

#include <hapax/source.h>

struct hx_in_flight;

/* The store reports it as done; event has its original and its cause. */
void hx_tag_begin(struct hx_in_flight *in_flight, const struct hapax_consumer_event *event);

/* Pass it to its handler, for the first time or again. */
void hx_tag_run(struct hx_in_flight *in_flight);

/* Its handler has ended. */
void hx_tag_end(struct hx_in_flight *in_flight);

#endif
