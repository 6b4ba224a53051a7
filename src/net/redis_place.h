/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_place.h - parse the URL of a Redis server.
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
 * Stores use exactly this form; sources (stream_place.h) and sinks (redis_target.h) have their own
 * paths and options, besides db, ca, cert and key.
 *
 * Threads: any; the functions keep no state.
 */
#ifndef HX_NET_REDIS_PLACE_H
#define HX_NET_REDIS_PLACE_H

#include <stdbool.h>

#include <hapax/error.h>

#include "net/address.h"
#include "wire/url.h"

enum {
	HX_REDIS_TEXT_SIZE = 256,
	HX_REDIS_PREFIX_SIZE_MAX = 64,
	HX_REDIS_PORT = 6379,
	HX_REDIS_DB_MAX = 65535,
	HX_REDIS_ENDPOINTS_MAX = 16,
};

struct hx_redis_place {
	struct hx_endpoint
		endpoints[HX_REDIS_ENDPOINTS_MAX]; /* for a Cluster: some of its servers */
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

/* INVALID: the message says what is wrong, never with the password. */
enum hapax_status hx_redis_place_parse(
	const char *text, struct hx_redis_place *ret_place, struct hapax_error *err);

/*
 * The steps of it, for URLs of sinks and sources, which have other paths and options: everything
 * before the path, which is empty for a socket; a database from the path; options into bound, whose
 * rows end with these and their place. The caller wipes place if a step fails.
 */
enum hapax_status hx_redis_place_begin(
	const char *text, struct hx_url *ret_url, struct hx_redis_place *place,
	struct hapax_error *err);
enum hapax_status hx_redis_place_set_db(
	struct hx_redis_place *place, struct hapax_bytes text, struct hapax_error *err);
enum hapax_status hx_redis_place_end(
	struct hx_redis_place *place, const struct hx_url_options *options,
	struct hapax_bytes query, void *bound, struct hapax_error *err);
extern const struct hx_url_option hx_redis_options[]; /* db, ca, cert, key */

#endif
