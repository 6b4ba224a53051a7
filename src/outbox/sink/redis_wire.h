/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_wire.h - a connection to a Redis server, over which commands go without waiting for the
 * replies to those before.
 *
 * Opening and closing turn the reactor, and so block; opening until a deadline. Replies come
 * while it is turned, in the order of the commands.
 *
 * Threads: the reactor's thread.
 */
#ifndef HX_OUTBOX_SINK_REDIS_WIRE_H
#define HX_OUTBOX_SINK_REDIS_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/error.h>

#include "net/connection.h"
#include "net/dial.h"
#include "net/tls/tls.h"
#include "net/redis_place.h"
#include "wire/resp/resp_reply.h"

struct hx_redis_wire;

/* One whole reply, borrowed for the call. */
typedef void hx_redis_wire_reply_fn(struct hx_redis_wire *wire, struct hapax_bytes reply);

enum hx_redis_wire_state {
	HX_REDIS_WIRE_CLOSED,
	HX_REDIS_WIRE_DIALLING,
	HX_REDIS_WIRE_GREETING,
	HX_REDIS_WIRE_OPEN,
};

enum { HX_REDIS_WIRE_STEPS_MAX = 4 };

struct hx_redis_wire {
	struct hx_reactor *reactor;
	const struct hx_redis_place *place;
	struct hx_tls_context *tls; /* NULL: plain */
	struct hx_endpoint endpoint;
	hx_redis_wire_reply_fn *fn;
	void *context;

	enum hx_redis_wire_state state;
	struct hx_dial dial;
	struct hx_connection connection;
	struct hx_resp_scan scan;
	unsigned char steps[HX_REDIS_WIRE_STEPS_MAX]; /* of the greeting */
	unsigned step_count;
	unsigned step_next;
	int64_t deadline_ns;    /* of opening */
	int64_t value_size_max; /* that the server takes; 0: it does not tell */
	struct hapax_error why; /* it is closed */
};

/* What it points to outlives it. NO_MEMORY: nothing was made. */
enum hapax_status hx_redis_wire_init(
	struct hx_redis_wire *wire, struct hx_reactor *reactor, struct hx_resolver *resolver,
	struct hx_tls_context *tls, const struct hx_redis_place *place,
	const struct hx_endpoint *endpoint, hx_redis_wire_reply_fn *fn, void *context);

/* It closes first. Does nothing for zeros. */
void hx_redis_wire_done(struct hx_redis_wire *wire);

/* Connect, and say who we are; unless it is open. UNAVAILABLE says why not. */
enum hapax_status hx_redis_wire_open(
	struct hx_redis_wire *wire, int64_t deadline_ns, struct hapax_error *err);

static inline bool hx_redis_wire_is_open(const struct hx_redis_wire *wire)
{
	return wire->state == HX_REDIS_WIRE_OPEN;
}

/* What was not answered never will be. */
void hx_redis_wire_close(struct hx_redis_wire *wire);

#endif
