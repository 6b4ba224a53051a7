/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_target.h - parses the URL of a Redis Streams sink.
 *
 *	redis://[user[:password]@]host[:port][/db][/stream][?option=value&...]
 *	rediss://..., redis+cluster://..., rediss+cluster://...   as for a store
 *	redis+unix:PATH[?option=value&...]
 *
 * If the first part of the path is a number, it is a database. Without a stream, each event goes to
 * the stream named like its topic. Options: stream=NAME, db=N, maxlen=N (trim a stream to about so
 * many entries), create=no (do not create missing streams), and for TLS ca=FILE, cert=FILE,
 * key=FILE.
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
	int64_t length_max;                       /* 0: not trimmed */
	bool creates;
};

/* INVALID says what is wrong; the message never contains the password. */
enum hapax_status hx_redis_target_parse(
	const char *text, struct hx_redis_target *ret_target, struct hapax_error *err);

#endif
