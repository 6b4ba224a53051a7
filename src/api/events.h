/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.h - decisions as they are made, to whoever listens (server-sent events), and the
 * duplicates among the last ones.
 *
 * Decisions are taken over from the feed ten times a second while somebody listens, once a
 * second otherwise, and numbered. A listener is a place in that row: nothing is kept for it
 * but what its connection has not sent yet (64 KiB), and one that falls behind by more than
 * the row is long is dropped. An id is "PROCESS-NUMBER": whoever comes back with one goes on
 * behind it, or is told how many it has missed.
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
	HX_LISTENERS_PER_ADDRESS_MAX = 12, /* for whom a request counts: see http_server.h */
};

struct hx_api_events {
	struct hx_feed_slot *kept;       /* [number % HX_EVENTS_KEPT_MAX]; NULL until needed */
	struct hx_feed_slot *duplicates; /* the same, numbered by themselves */
	uint64_t number;                 /* of the last decision; the first is 1 */
	uint64_t duplicate_number;
	uint64_t lost;    /* that nobody took in time */
	uint64_t process; /* which process numbered them */
	struct hx_listener_client *listeners;
	size_t listener_count;
	int64_t listened_ns; /* when somebody listened last */
	struct hx_timer timer;
	struct hapax_buf text; /* what is about to be sent */
};

enum hapax_status hx_api_events_init(struct hx_api *api, struct hapax_error *err);

/* End every stream. */
void hx_api_events_stop(struct hx_api *api);
void hx_api_events_done(struct hx_api *api);

/* Take over what was decided. */
void hx_api_events_take(struct hx_api *api);

/* Of Last-Event-ID: true and the number, if it is of this process. */
bool hx_event_id_parse(struct hapax_bytes text, uint64_t process, uint64_t *ret_number);

/* Which decisions a listener wants: "replay,mismatch". INVALID: an unknown word. */
enum hapax_status hx_event_decisions_parse(
	struct hapax_bytes text, unsigned *ret_bits, struct hapax_error *err);

#endif
