/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_target.h - the URL of a sink that is Redis Streams, taken apart.
 *
 *	redis://[user[:password]@]host[:port][/db][/stream][?option=value&...]
 *	rediss://..., redis+cluster://..., rediss+cluster://...   as of a store
 *	redis+unix:PATH[?option=value&...]
 *
 * A first part of the path that is a number is a database. Without a stream an event goes to
 * the one that is named as its topic. Options: stream=NAME, db=N, maxlen=N (a stream is trimmed
 * to about so many entries), create=no (streams that are not there are not made), and for TLS
 * ca=FILE, cert=FILE, key=FILE.
 *
 * Threads: any; the functions keep nothing.
 */
#ifndef HX_OUTBOX_SINK_REDIS_TARGET_H
#define HX_OUTBOX_SINK_REDIS_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/error.h>

#include "net/redis_place.h"
#include "outbox/outbox.h"

struct hx_redis_target {
	struct hx_redis_place place;
	char stream[HX_OUTBOX_TEXT_SIZE_MAX + 1]; /* empty: the topic */
	int64_t length_max;                       /* 0: it is not trimmed */
	bool creates;
};

/* INVALID with what is wrong; the password is never in the message. */
enum hapax_status hx_redis_target_parse(
	const char *text, struct hx_redis_target *ret_target, struct hapax_error *err);

#endif
