/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.h - decisions as server-sent events, and the duplicates among the last ones.
 *
 * The API takes decisions from the feed and numbers them, ten times a second while there is a
 * listener, once a second otherwise. A listener is a position in that ring: only what its
 * connection has not sent yet is kept for it (64 KiB). A listener that falls behind by more than
 * the length of the ring is dropped. An ID is "PROCESS-NUMBER": a client that reconnects with one
 * continues after it, or learns how many decisions it missed.
 *
 * Threads: the reactor's.
 */
#ifndef HX_API_EVENTS_H
#define HX_API_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/http/http_server.h"
#include "base/timer_heap.h"
#include "observe/feed.h"

struct hx_api;
struct hx_listener_client;

enum {
	HX_EVENTS_KEPT_MAX = 1024,
	HX_DUPLICATES_KEPT_MAX = 1000,
	HX_LISTENERS_MAX = 100,
	HX_LISTENERS_PER_ADDRESS_MAX = 12, /* per address that a request counts for: see
	                                      http_server.h */
};

struct hx_api_events {
	struct hx_feed_slot *kept;       /* [number % HX_EVENTS_KEPT_MAX]; NULL until needed */
	struct hx_feed_slot *duplicates; /* the same, with their own numbers */
	uint64_t number;                 /* of the last decision; the first is 1 */
	uint64_t duplicate_number;
	uint64_t lost;    /* dropped by the feed before they were taken */
	uint64_t process; /* the process that numbered them */
	struct hx_listener_client *listeners;
	size_t listener_count;
	int64_t listened_ns; /* time of the last listener */
	struct hx_timer timer;
	struct hapax_buf text; /* text to be sent next */
};

enum hapax_status hx_api_events_init(struct hx_api *api, struct hapax_error *err);

/* End every stream. */
void hx_api_events_stop(struct hx_api *api);
void hx_api_events_done(struct hx_api *api);

/* Parse Last-Event-ID. True, with the number, if it is from this process. */
bool hx_event_id_parse(struct hapax_bytes text, uint64_t process, uint64_t *ret_number);

/* Parse the decisions that a listener wants: "replay,mismatch". INVALID: an unknown word. */
enum hapax_status hx_event_decisions_parse(
	struct hapax_bytes text, unsigned *ret_bits, struct hapax_error *err);

#endif
