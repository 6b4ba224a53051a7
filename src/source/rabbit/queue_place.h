/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_place.h - parses the URL of a RabbitMQ queue.
 *
 *	amqp://[user[:password]@]host[:port]/[VHOST/]QUEUE[?option=value&...]
 *	amqps://...                        the same over TLS
 *
 * The last part of the path is the queue; the vhost comes before it (default: "/"). A slash within
 * a name is %2F. Options, in addition to those for TLS of rabbit_place.h: prefetch=N,
 * size_max=BYTES, held_max=BYTES, dead_exchange=NAME, declare=quorum.
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

	/* Unacknowledged messages that the broker sends ahead. */
	HX_QUEUE_PREFETCH_DEFAULT = 256,
	HX_QUEUE_PREFETCH_MAX = 10000,

	/* The limit of an event (HX_ENVELOPE_TEXT_MAX). */
	HX_QUEUE_SIZE_MAX_DEFAULT = 64 * 1024 * 1024,
	HX_QUEUE_SIZE_MAX_MAX = 512 * 1024 * 1024,

	/* For all messages in flight. One is always accepted, up to size_max. */
	HX_QUEUE_HELD_MAX_DEFAULT = 128 * 1024 * 1024,
};

struct hx_queue_place {
	struct hx_rabbit_place rabbit; /* queue: the source; exchange: for dead letters */
	uint16_t prefetch;
	size_t size_max;                /* of an accepted message */
	size_t held_max;                /* of those in flight, in bytes */
	char shown[HX_QUEUE_URL_SIZE];  /* the URL without secrets */
	char origin[HX_QUEUE_URL_SIZE]; /* amqp://HOST:PORT/VHOST */
};

/* INVALID says what is wrong; the message never contains the password. */
enum hapax_status hx_queue_place_parse(
	const char *text, struct hx_queue_place *ret_place, struct hapax_error *err);

#endif
