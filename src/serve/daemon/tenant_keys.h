/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tenant_keys.h - which tenants have more keys than store.max_keys_per_tenant.
 *
 * No store counts keys by tenant, but every store keeps what was decided by scope and hour.
 * The keys of a tenant are taken to be the runs that were given out (acquired) within the ttl
 * of their scope, or of a route of the proxy with that scope if it is longer, by whole hours:
 * what an hour has that lies in the window in part counts in full. So a key may count for up
 * to an hour longer than it lives, and a repeated run of a failed key counts again; one that
 * was forgotten still counts. A plain SET of Redis is not counted, since the store does not tell
 * whether it made a record: it is refused above the limit, and does not lead there.
 *
 * Threads: one at a time: that of the store view.
 */
#ifndef HX_SERVE_DAEMON_TENANT_KEYS_H
#define HX_SERVE_DAEMON_TENANT_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include <hapax/store.h>

struct hx_config_current;
struct hx_tenant_sum;

struct hx_tenant_keys {
	struct hapax_store *limit; /* hx_tenant_limit_open(); NULL: there is no limit */
	uint64_t keys_max;
	struct hx_config_current *current; /* for the ttl of scopes */
	int64_t asked_ns;                  /* when it was found out last; 0: never */
};

/*
 * Ask store, if there is a limit and it was not asked a moment ago, and tell the limit who is
 * above it. Blocks. When the store does not answer, it stays as it was.
 */
void hx_tenant_keys_look(struct hx_tenant_keys *keys, struct hapax_store *store);

#endif
