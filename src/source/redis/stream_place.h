/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_place.h - parses the URL of a Redis stream.
 *
 *	redis://[user[:password]@]host[:port]/STREAM?group=G[&option=value&...]
 *	rediss://...                        the same over TLS
 *	redis+unix:PATH?stream=STREAM&group=G[&option=value&...]
 *
 * Options, in addition to db, ca, cert and key of net/redis_place.h: instance=NAME, our name in the
 * group (default: a new name each time); start=earliest|latest; min_idle=D, after which we take the
 * entries of a silent member (30s); prefetch=N, entries in flight (256); size_max=BYTES of an entry
 * that is read (64 MiB).
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

	/* The limit of an event (HX_ENVELOPE_TEXT_MAX). */
	HX_STREAM_SIZE_MAX_DEFAULT = 64 * 1024 * 1024,
	/* A reply has room for it and its framing. */
	HX_STREAM_SIZE_MAX_MAX = 240 * 1024 * 1024,
};

struct hx_stream_place {
	struct hx_redis_place redis;
	char stream[HX_STREAM_NAME_SIZE];
	char group[HX_STREAM_NAME_SIZE];
	char instance[HX_STREAM_NAME_SIZE]; /* "": generate one */
	bool starts_latest;
	bool deletes; /* acknowledged entries, too; not an option of a URL */
	int64_t min_idle_ms;
	size_t prefetch;
	size_t size_max;
	char shown[HX_STREAM_URL_SIZE];  /* the URL without secrets */
	char origin[HX_STREAM_URL_SIZE]; /* redis://HOST:PORT */
};

/* INVALID says what is wrong; the message never contains the password. */
enum hapax_status hx_stream_place_parse(
	const char *text, struct hx_stream_place *ret_place, struct hapax_error *err);

#endif
