/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.h - one of the daemon's loops: a thread, its reactor, its part of each door.
 *
 * Loops share only the store, the processor and the configuration. Each has its own listener on the
 * same port, its own connections to upstreams, its own memory. The processor is common to all
 * loops, so a duplicate on one loop attaches to the run of another. Steps that the processor
 * reports on another thread are posted to their loop.
 *
 * Requests of one turn are read as events one after the other, then claimed together. Runs that
 * ended in one turn are completed together: one submit each. So the code of each step stays in the
 * caches for all of them; the system calls between two requests would evict it.
 *
 * Threads: the loop's own, except where it is said.
 */
#ifndef HX_SERVE_DAEMON_LOOP_H
#define HX_SERVE_DAEMON_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/processor.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/random.h"
#include "base/sha256.h"
#include "base/thread.h"
#include "config/config.h"
#include "net/http/http_client.h"
#include "net/http/http_server.h"
#include "net/reactor.h"
#include "observe/decision.h"
#include "observe/metrics/metrics.h"
#include "serve/resp/resp_door.h"
#include "wire/cloudevents/cloudevents.h"

enum {
	/* The decoded parts of an event. */
	HX_EVENT_TEXT_MAX = 64 * 1024 * 1024,

	/*
	 * To compare the data of an event it is read as JSON, which usually takes 16 times its
	 * size: enough for 8 MiB. Larger data is refused.
	 */
	HX_KEY_SCRATCH_MAX = 128 * 1024 * 1024,
};

struct hx_delivery;
struct hx_serve;

/* Connections to one upstream. */
struct hx_upstream {
	struct hx_http_client client;
	bool is_tls;
	struct hx_upstream *next;
};

/* A configuration, and the number of this loop's deliveries that use it. */
struct hx_loop_config {
	struct hx_config *config;       /* kept */
	struct hx_upstream **upstreams; /* by index: the gateway's routes, then the proxy's */
	size_t users;
	struct hx_loop_config *next;
};

struct hx_loop {
	struct hx_serve *serve;
	size_t index;
	struct hx_thread thread;
	uint32_t thread_id;
	struct hx_reactor reactor;
	struct hx_http_server gateway;
	struct hx_http_server proxy;
	struct hx_resp_door resp;
	struct hx_cells *cells;
	struct hx_observer observer;   /* of its decisions */
	struct hx_loop_config *config; /* in force; older ones in use follow */
	struct hx_upstream *upstreams;

	struct hx_delivery *spare;
	size_t spare_count;
	size_t delivery_count;                 /* in use */
	HX_LIST(struct hx_delivery) to_read;   /* to be read as events at the end of the turn */
	HX_LIST(struct hx_delivery) to_begin;  /* to be claimed at the end of the turn */
	HX_LIST(struct hx_delivery) to_finish; /* to be completed at the end of the turn */
	uint64_t turn_bytes;                   /* of bodies that it has read in this turn */
	struct hx_task read_task;
	struct hx_task begin_task;
	struct hx_task finish_task;
	struct hx_task leave_task; /* posted to announce a drain */
	struct hx_task drain_task; /* posted to drain now */
	struct hx_task beat_task;  /* posted by the control loop, to check that it turns */
	_Atomic int64_t beat_ns;   /* since when beat_task waits; INT64_MAX: it has run */
	bool is_draining;
	bool is_idle; /* has drained, and reported it */

	struct hx_cloudevent event;  /* the one being read */
	struct hapax_buf event_text; /* its decoded parts */
	struct hapax_buf key_scratch;
	struct hapax_buf body_text; /* a body from a file, contiguous */
	struct hx_sha256 sha;       /* for keys of the proxy */
	struct hx_prng trace_lot;   /* ids of spans */
};

/* Sets up reactor and memory; the door is opened later. NO_MEMORY, and errors of the system. */
enum hapax_status hx_loop_init(
	struct hx_loop *loop, struct hx_serve *serve, size_t index, struct hapax_error *err);

/*
 * Opens the gateway or the proxy; the other loops use the address of the first. Call it before the
 * thread starts.
 */
enum hapax_status hx_loop_listen(
	struct hx_loop *loop, struct hx_http_server *door, const struct hx_address *address,
	struct hapax_error *err);

/* Turns until stopped. This and the following run on the loop's own thread. */
void hx_loop_run(struct hx_loop *loop);

/* Nothing runs any more: frees its memory. */
void hx_loop_done(struct hx_loop *loop);

/* Announces a drain: connections are no longer kept alive. From any thread. */
void hx_loop_leave(struct hx_loop *loop);

/* Drains, from any thread. */
void hx_loop_drain(struct hx_loop *loop);

/* Checks that it still turns. Call it periodically, on the control loop. */
void hx_loop_beat(struct hx_loop *loop);

/* How long a requested turn has not happened. Threads: any. */
int64_t hx_loop_stalled_ns(const struct hx_loop *loop, int64_t now_ns);

/* A delivery or a connection has ended: checks whether the loop has drained. */
void hx_loop_check_idle(struct hx_loop *loop);

/*
 * Counts a client that a door refused: by door and status, unless that is 0, and by the limit that
 * refused it, if any. Threads: that of the cells.
 */
void hx_loop_count_refused(
	struct hx_cells *cells, enum hx_door door, unsigned status, enum hx_http_refusal why);

/* The configuration in force, for one more delivery. NULL: no memory. */
struct hx_loop_config *hx_loop_config_use(struct hx_loop *loop);
void hx_loop_config_give(struct hx_loop *loop, struct hx_loop_config *config);

#endif
