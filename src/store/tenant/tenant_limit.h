/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tenant_limit.h - a store that stands before another one and refuses new keys of tenants
 * that have too many.
 *
 * No store counts keys by tenant, so whoever opens it finds out which tenants these are and
 * names them. A claim, check or set of such a tenant is preceded by a lookup: LIMIT if there
 * is no record; otherwise it goes on, so that replays, completions and repeated runs work as
 * before. Between the lookup and the claim the record may come or go; then one key more or
 * less is let in. While no tenant is named, operations pass as they are.
 */
#ifndef HX_STORE_TENANT_LIMIT_H
#define HX_STORE_TENANT_LIMIT_H

#include <stddef.h>

#include <hapax/bytes.h>
#include <hapax/error.h>
#include <hapax/store.h>

/* store outlives the new one. Owned: *ret_store, by the caller; see hapax_store_close(). */
enum hapax_status hx_tenant_limit_open(
	struct hapax_store *store, struct hapax_store **ret_store, struct hapax_error *err);

/*
 * From now on these tenants get no new keys, and all others do. The names are copied; none is
 * there twice. NO_MEMORY: it stays as it was. Threads: any, one at a time.
 */
enum hapax_status hx_tenant_limit_set(
	struct hapax_store *store, const struct hapax_bytes *tenants, size_t count);

#endif
