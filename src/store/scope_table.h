/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope_table.h - scopes by number, and the decisions counted in each.
 *
 * A scope is interned when it is first seen and stays until the store is closed, so that records
 * in memory need only a number. Readers do not lock. Slots and scopes are never moved or freed
 * while the table lives, and a grown slot array keeps the old one until the end.
 *
 * Threads: any.
 */
#ifndef HX_STORE_SCOPE_TABLE_H
#define HX_STORE_SCOPE_TABLE_H

#include <stdatomic.h>
#include <stdint.h>

#include <hapax/store.h>

#include "base/thread.h"

struct hx_scope {
	uint32_t id;
	uint64_t hash;
	struct hapax_bytes tenant; /* the bytes lie behind the struct */
	struct hapax_bytes group;
	_Atomic uint64_t parked; /* kept by stores that count there */
	/* Not yet taken: decisions that compared fingerprints, and decisions that did not. */
	_Atomic uint64_t counts[2][HAPAX_DECISION_COUNT];
};

struct hx_scope_slots;

struct hx_scope_table {
	struct hx_mutex mutex; /* held to add */
	uint64_t hash_key[2];
	_Atomic(struct hx_scope_slots *) slots;
	_Atomic(struct hx_scope **) by_id[21]; /* block n holds 2^n scopes */
	_Atomic uint32_t count;
};

enum hapax_status hx_scope_table_init(struct hx_scope_table *table);
void hx_scope_table_done(struct hx_scope_table *table);

enum {
	HX_SCOPE_DEFAULT = 0, /* the number of default/default */
	HX_SCOPE_NOWHERE = 1, /* a scope without names: nothing can be written there */
};

/* Not a scope: the check refused the operation, whatever it names. */
#define HX_SCOPE_REFUSED UINT32_MAX

/*
 * The scope with these names; an empty name is "default". default/default is number 0. NULL: no
 * memory, or HX_SCOPES_MAX reached; *ret_status says which.
 */
struct hx_scope *hx_scope_table_intern(
	struct hx_scope_table *table, struct hapax_bytes tenant, struct hapax_bytes group,
	enum hapax_status *ret_status);

/* The same, or NULL if the scope is not interned: a lookup does not fill the table. */
struct hx_scope *hx_scope_table_find(
	struct hx_scope_table *table, struct hapax_bytes tenant, struct hapax_bytes group);

/* id must have been assigned. */
static inline struct hx_scope *hx_scope_table_get(struct hx_scope_table *table, uint32_t id)
{
	unsigned block = 31u - (unsigned)__builtin_clz(id + 1);

	return atomic_load_explicit(
		&table->by_id[block], memory_order_acquire)[id + 1 - (1u << block)];
}

#endif
