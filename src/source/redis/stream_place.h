/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_place.h - the URL of a stream of Redis, taken apart.
 *
 *	redis://[user[:password]@]host[:port]/STREAM?group=G[&option=value&...]
 *	rediss://...                        the same over TLS
 *	redis+unix:PATH?stream=STREAM&group=G[&option=value&...]
 *
 * Options, beside db, ca, cert and key of net/redis_place.h: instance=NAME, who we are in
 * the group (a new name each time); start=earliest|latest; min_idle=D, after which entries of
 * a member that says nothing are ours to take (30s); prefetch=N, entries in hand (256);
 * size_max=BYTES of an entry that is read (64 MiB).
 *
 * Threads: any; the functions keep nothing.
 */
#ifndef HX_SOURCE_STREAM_PLACE_H
#define HX_SOURCE_STREAM_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/error.h>

#include "net/redis_place.h"

enum {
	HX_STREAM_URL_SIZE = 4096,
	HX_STREAM_NAME_SIZE = 256,
	HX_STREAM_PREFETCH_DEFAULT = 256,
	HX_STREAM_PREFETCH_MAX = 10000,
	HX_STREAM_MIN_IDLE_MS_DEFAULT = 30 * 1000,

	/* As much as is read as an event (HX_ENVELOPE_TEXT_MAX). */
	HX_STREAM_SIZE_MAX_DEFAULT = 64 * 1024 * 1024,
	/* A reply has room for it, and for what is around it. */
	HX_STREAM_SIZE_MAX_MAX = 240 * 1024 * 1024,
};

struct hx_stream_place {
	struct hx_redis_place redis;
	char stream[HX_STREAM_NAME_SIZE];
	char group[HX_STREAM_NAME_SIZE];
	char instance[HX_STREAM_NAME_SIZE]; /* "": one is made up */
	bool starts_latest;
	int64_t min_idle_ms;
	size_t prefetch;
	size_t size_max;
	char shown[HX_STREAM_URL_SIZE];  /* the URL without what is secret */
	char origin[HX_STREAM_URL_SIZE]; /* redis://HOST:PORT */
};

/* INVALID with what is wrong; the password is never in the message. */
enum hapax_status hx_stream_place_parse(
	const char *text, struct hx_stream_place *ret_place, struct hapax_error *err);

#endif
