/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tenant_keys.h - estimates the keys of each scope, for metrics, and finds the tenants that have more
 * than store.max_keys_per_tenant.
 *
 * No store counts keys by scope, but every store counts decisions by scope and hour. The keys of a
 * scope are estimated as the claims granted (acquired) within the ttl of their scope, or of a
 * proxy route or a consumer with that scope if it is longer. Hours count whole, even if only part of one lies in
 * the window. So a key may count for up to an hour longer than it lives. A repeated run of a failed
 * key counts again, and a forgotten key still counts. A plain SET of Redis that makes a record counts
 * as a granted claim (store/tenant/tenant_limit.h). A key with a ttl of its own counts for the ttl of
 * its scope all the same. The store keeps its counters for 30 days, so keys with a longer ttl are
 * undercounted.
 *
 * Threads: one at a time: that of the store view; hold and release any.
 */
#ifndef HX_SERVE_DAEMON_TENANT_KEYS_H
#define HX_SERVE_DAEMON_TENANT_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include <hapax/store.h>

#include "base/thread.h"

struct hx_config_current;
struct hx_scope_keys;
struct hx_tenant_sums;

struct hx_tenant_keys {
	struct hapax_store *limit; /* hx_tenant_limit_open(); NULL: no limit */
	uint64_t keys_max;
	struct hx_config_current *current; /* for the ttl of scopes */
	uint64_t scopes_max;               /* to show; later ones are one, "other". 0: none */
	int64_t asked_ns;                  /* when the store was last asked; 0: never */
	struct hx_mutex mutex;
	struct hx_tenant_sums *shown; /* NULL: none yet. Locks: mutex */
};

/* keys is zeros, except for its settings. Done works on zeros. */
void hx_tenant_keys_init(struct hx_tenant_keys *keys);
void hx_tenant_keys_done(struct hx_tenant_keys *keys);

/*
 * If there is a limit or scopes_max, and the store was not asked recently, asks it, and gives the
 * limit the tenants above it. Blocks. If the store does not answer, all stays as it was. now_ms: by
 * the clock of the store, like its hours.
 */
void hx_tenant_keys_look(struct hx_tenant_keys *keys, struct hapax_store *store, int64_t now_ms);

/* The keys of each scope, borrowed until release; hold it briefly. */
const struct hx_scope_keys *hx_tenant_keys_hold(struct hx_tenant_keys *keys, size_t *ret_count);
void hx_tenant_keys_release(struct hx_tenant_keys *keys);

#endif
