/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_member.h - the names of records in Redis, after the prefix of their store.
 *
 * Threads: any; the functions keep no state.
 */
#ifndef HX_STORE_REDIS_REDIS_MEMBER_H
#define HX_STORE_REDIS_REDIS_MEMBER_H

#include <stdbool.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

#include "base/buf.h"

/* A scope as text: "tenant/group", with % / : { } escaped as %25 and so on. */
enum hapax_status hx_redis_scope_append(
	struct hapax_buf *buf, struct hapax_bytes tenant, struct hapax_bytes group);

/* A record's name without the prefix: "tenant/group:key". */
enum hapax_status hx_redis_member_append(
	struct hapax_buf *buf, struct hapax_bytes tenant, struct hapax_bytes group,
	struct hapax_bytes key);

/*
 * Split a member. tenant and group are unescaped into scratch, of at least 2 *
 * HX_SCOPE_PART_SIZE_MAX bytes. False: not a name of hapax.
 */
bool hx_redis_member_split(
	struct hapax_bytes member, unsigned char *scratch, struct hapax_bytes *ret_tenant,
	struct hapax_bytes *ret_group, struct hapax_bytes *ret_key);

#endif
