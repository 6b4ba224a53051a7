/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_place.h - a Redis store's URL, taken apart, and the names of what lies there.
 *
 *	redis://[user[:password]@]host[:port][/db][?option=value&...]
 *	rediss://...                       the same over TLS
 *	redis+cluster://host[:port][,host[:port]...][?option=value&...]
 *	rediss+cluster://...               a Redis Cluster, by some of its servers
 *	redis+unix:PATH[?option=value&...] a unix socket
 *
 * Options: prefix=NAME (hapax), db=N, require=durable, allow=eviction, and for TLS
 * ca=FILE, cert=FILE, key=FILE. User, password and values are percent-decoded.
 */
#ifndef HX_NET_REDIS_PLACE_H
#define HX_NET_REDIS_PLACE_H

#include <stdbool.h>

#include <hapax/store.h>

#include "base/buf.h"
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

/* A scope as text: "tenant/group", with % / : { } escaped as %25 and so on. */
enum hapax_status hx_redis_scope_append(
	struct hapax_buf *buf, struct hapax_bytes tenant, struct hapax_bytes group);

/* A record's name without the prefix: "tenant/group:key". */
enum hapax_status hx_redis_member_append(
	struct hapax_buf *buf, struct hapax_bytes tenant, struct hapax_bytes group,
	struct hapax_bytes key);

/*
 * Take a member apart. tenant and group are unescaped into scratch, of at least
 * 2 * HX_SCOPE_PART_SIZE_MAX bytes. False: nobody here made that name.
 */
bool hx_redis_member_split(
	struct hapax_bytes member, unsigned char *scratch, struct hapax_bytes *ret_tenant,
	struct hapax_bytes *ret_group, struct hapax_bytes *ret_key);

#endif
