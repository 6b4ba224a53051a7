/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.h - scope and ttl as one number.
 *
 * Most records of a store share a handful of scopes and times to live. A profile is such a pair,
 * interned, so that a record spends two bytes on both. A caller that keeps changing its times to
 * live cannot fill the table: beyond a bound, ttl 0 stands for "written in the record".
 *
 * Threads: any. Readers do not lock; profiles never move and live as long as the table.
 */
#ifndef HX_STORE_INDEX_PROFILE_H
#define HX_STORE_INDEX_PROFILE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/thread.h"
#include "store/scope_table.h"

struct hx_profile {
	struct hx_scope *scope;
	int64_t ttl_ms; /* 0: in the record */
	uint32_t scope_id;
};

enum { HX_PROFILE_BLOCKS = 22, HX_PROFILE_NONE = UINT32_MAX };

struct hx_profile_slots;

struct hx_profile_table {
	struct hx_mutex mutex; /* held to add */
	struct hx_scope_table *scopes;
	_Atomic(struct hx_profile_slots *) slots;
	_Atomic(struct hx_profile *) blocks[HX_PROFILE_BLOCKS]; /* block n holds 2^n */
	_Atomic uint32_t count;
};

enum hapax_status hx_profile_table_init(
	struct hx_profile_table *table, struct hx_scope_table *scopes);
void hx_profile_table_done(struct hx_profile_table *table);

/* The number of the profile for this scope and ttl. HX_PROFILE_NONE: no memory. */
uint32_t hx_profile_intern(struct hx_profile_table *table, uint32_t scope_id, int64_t ttl_ms);

/* id must have been assigned. */
static inline const struct hx_profile *hx_profile_get(struct hx_profile_table *table, uint32_t id)
{
	unsigned block = 31u - (unsigned)__builtin_clz(id + 1);

	return &atomic_load_explicit(
		&table->blocks[block], memory_order_acquire)[id + 1 - (1u << block)];
}

#endif
