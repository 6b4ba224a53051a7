/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tenant_limit.h - a store in front of another one, which refuses new keys of tenants that have
 * too many, and counts new keys that no other store counts.
 *
 * No store counts keys by tenant, so the opener determines these tenants and names them. A claim,
 * check or set of such a tenant is preceded by a lookup. If there is no record, the operation
 * gets LIMIT. Otherwise it continues, so replays, completions and repeated runs work as before.
 * The record may appear or vanish between lookup and claim, which admits one key more or less.
 *
 * Claims, checks and sets of absent keys are counted by the store that decides them. A plain set
 * (HAPAX_SET_ALWAYS) is not, because its answer does not tell whether it made a record. So every
 * plain set is preceded by a lookup here, and one that makes a record counts as acquired. All other
 * operations pass unchanged while no tenant is named.
 */
#ifndef HX_STORE_TENANT_LIMIT_H
#define HX_STORE_TENANT_LIMIT_H

#include <stddef.h>

#include <hapax/bytes.h>
#include <hapax/error.h>
#include <hapax/store.h>

/*
 * counters is the store that counts decisions: store, or the last one behind it. Both outlive the
 * new one. Owned: *ret_store, by the caller; see hapax_store_close().
 */
enum hapax_status hx_tenant_limit_open(
	struct hapax_store *store, struct hapax_store *counters, struct hapax_store **ret_store,
	struct hapax_error *err);

/*
 * Refuse new keys of these tenants from now on, and allow all others. The names are copied and
 * must be unique. NO_MEMORY: no change. Threads: any, one at a time.
 */
enum hapax_status hx_tenant_limit_set(
	struct hapax_store *store, const struct hapax_bytes *tenants, size_t count);

#endif
