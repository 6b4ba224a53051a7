/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_place.h - the URL of a queue of RabbitMQ, taken apart.
 *
 *	amqp://[user[:password]@]host[:port]/[VHOST/]QUEUE[?option=value&...]
 *	amqps://...                        the same over TLS
 *
 * The last part of the path is the queue, what stands before it the vhost; without one it is
 * "/". A slash within a name is %2F. Options, beside those for TLS of rabbit_place.h:
 * prefetch=N, size_max=BYTES, held_max=BYTES, dead_exchange=NAME, declare=quorum.
 *
 * Threads: any; the functions keep nothing.
 */
#ifndef HX_SOURCE_QUEUE_PLACE_H
#define HX_SOURCE_QUEUE_PLACE_H

#include <stddef.h>
#include <stdint.h>

#include "broker/rabbit_place.h"

enum {
	HX_QUEUE_URL_SIZE = 4096,

	/* Messages that the broker sends ahead of their acknowledgement. */
	HX_QUEUE_PREFETCH_DEFAULT = 256,
	HX_QUEUE_PREFETCH_MAX = 10000,

	/* As much as is read as an event (HX_ENVELOPE_TEXT_MAX). */
	HX_QUEUE_SIZE_MAX_DEFAULT = 64 * 1024 * 1024,
	HX_QUEUE_SIZE_MAX_MAX = 512 * 1024 * 1024,

	/* Of all messages in hand. One is taken in any case, up to size_max. */
	HX_QUEUE_HELD_MAX_DEFAULT = 128 * 1024 * 1024,
};

struct hx_queue_place {
	struct hx_rabbit_place rabbit; /* queue is the source; exchange the one of dead letters */
	uint16_t prefetch;
	size_t size_max;                /* of a message that is taken */
	size_t held_max;                /* of those in hand, in bytes */
	char shown[HX_QUEUE_URL_SIZE];  /* the URL without what is secret */
	char origin[HX_QUEUE_URL_SIZE]; /* amqp://HOST:PORT/VHOST */
};

/* INVALID with what is wrong; the password is never in the message. */
enum hapax_status hx_queue_place_parse(
	const char *text, struct hx_queue_place *ret_place, struct hapax_error *err);

#endif
