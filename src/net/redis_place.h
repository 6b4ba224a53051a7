/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_place.h - the URL of a Redis server, taken apart.
 *
 *	redis://[user[:password]@]host[:port][/db][?option=value&...]
 *	rediss://...                       the same over TLS
 *	redis+cluster://host[:port][,host[:port]...][?option=value&...]
 *	rediss+cluster://...               a Redis Cluster, by some of its servers
 *	redis+unix:PATH[?option=value&...] a unix socket
 *
 * Options: prefix=NAME (hapax), db=N, require=durable, allow=eviction, and for TLS
 * ca=FILE, cert=FILE, key=FILE. User, password and values are percent-decoded.
 *
 * Stores read it as it is; sources (stream_place.h) and sinks (redis_target.h) take their own
 * options out first.
 *
 * Threads: any; the functions keep nothing.
 */
#ifndef HX_NET_REDIS_PLACE_H
#define HX_NET_REDIS_PLACE_H

#include <stdbool.h>

#include <hapax/error.h>

#include "net/address.h"

enum {
	HX_REDIS_TEXT_SIZE = 256,
	HX_REDIS_PREFIX_SIZE_MAX = 64,
	HX_REDIS_PORT = 6379,
	HX_REDIS_ENDPOINTS_MAX = 16,
};

struct hx_redis_place {
	struct hx_endpoint
		endpoints[HX_REDIS_ENDPOINTS_MAX]; /* of a Cluster: some of its servers */
	size_t endpoint_count;
	bool is_cluster;
	bool has_tls;
	bool requires_durable;
	bool allows_eviction;
	int db;
	char prefix[HX_REDIS_PREFIX_SIZE_MAX + 1];
	char user[HX_REDIS_TEXT_SIZE];
	char password[HX_REDIS_TEXT_SIZE];
	char authority_file[HX_REDIS_TEXT_SIZE];
	char certificate_file[HX_REDIS_TEXT_SIZE];
	char key_file[HX_REDIS_TEXT_SIZE];
};

/* INVALID with what is wrong; the password is never in the message. */
enum hapax_status hx_redis_place_parse(
	const char *url, struct hx_redis_place *ret_place, struct hapax_error *err);

#endif
