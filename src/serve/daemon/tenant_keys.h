/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tenant_keys.h - finds the tenants that have more keys than store.max_keys_per_tenant.
 *
 * No store counts keys by tenant, but every store counts decisions by scope and hour. The keys of a
 * tenant are estimated as the claims granted (acquired) within the ttl of their scope, or of a
 * proxy route with that scope if it is longer. Hours count whole, even if only part of one lies in
 * the window. So a key may count for up to an hour longer than it lives. A repeated run of a failed
 * key counts again, and a forgotten key still counts. A plain SET of Redis that makes a record counts
 * as a granted claim (store/tenant/tenant_limit.h). A key with a ttl of its own counts for the ttl of
 * its scope all the same.
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
	struct hapax_store *limit; /* hx_tenant_limit_open(); NULL: no limit */
	uint64_t keys_max;
	struct hx_config_current *current; /* for the ttl of scopes */
	int64_t asked_ns;                  /* when the store was last asked; 0: never */
};

/*
 * If there is a limit and the store was not asked recently, asks it, and gives the limit the
 * tenants above it. Blocks. If the store does not answer, the tenants stay as they were.
 */
void hx_tenant_keys_look(struct hx_tenant_keys *keys, struct hapax_store *store);

#endif
