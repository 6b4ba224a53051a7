/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope_table.c - scopes by number.
 *
 * Open addressing over pointers, at most half full. A slot goes from NULL to a scope once and
 * never changes again. A reader that meets NULL knows that the scope was absent when its slots
 * were current. It then looks again under the mutex before it adds.
 *
 *  (1) Scope number n is in block floor(log2(n + 1)), so numbers never move.
 *  (2) A scope is published in by_id before its slot, so a reader that finds it by name can find
 *      it by number.
 */
#include "store/scope_table.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/siphash.h"

enum { SLOTS_MIN = 64 };

struct hx_scope_slots {
	struct hx_scope_slots *older; /* outgrown, kept for readers that still use it */
	size_t mask;
	_Atomic(struct hx_scope *) slot[];
};

static const struct hapax_bytes default_name = {"default", 7};
static const struct hapax_bytes no_name = {"", 0};

_Static_assert(HX_SCOPES_MAX <= (1u << 21) - 1, "by_id has a block for every scope");

static uint64_t hash_names(
	const struct hx_scope_table *table, struct hapax_bytes tenant, struct hapax_bytes group)
{
	unsigned char text[2 * HX_SCOPE_PART_SIZE_MAX + 1];

	/* The length byte keeps "ab"+"c" apart from "a"+"bc". */
	text[0] = (unsigned char)tenant.size;
	memcpy(text + 1, tenant.data, tenant.size);
	memcpy(text + 1 + tenant.size, group.data, group.size);
	return hx_siphash13(table->hash_key, text, 1 + tenant.size + group.size);
}

static struct hx_scope *find(
	const struct hx_scope_slots *slots, uint64_t hash, struct hapax_bytes tenant,
	struct hapax_bytes group)
{
	for (size_t i = hash & slots->mask;; i = (i + 1) & slots->mask) {
		struct hx_scope *scope =
			atomic_load_explicit(&slots->slot[i], memory_order_acquire);

		if (scope == NULL)
			return NULL;
		if (scope->hash == hash && hx_bytes_equal(scope->tenant, tenant) &&
		    hx_bytes_equal(scope->group, group))
			return scope;
	}
}

static void slots_add(struct hx_scope_slots *slots, struct hx_scope *scope)
{
	size_t i = scope->hash & slots->mask;

	while (atomic_load_explicit(&slots->slot[i], memory_order_relaxed) != NULL)
		i = (i + 1) & slots->mask;
	atomic_store_explicit(&slots->slot[i], scope, memory_order_release);
}

static struct hx_scope_slots *slots_new(size_t count)
{
	struct hx_scope_slots *slots =
		hx_alloc_zero(1, sizeof(*slots) + count * sizeof(slots->slot[0]));

	if (slots != NULL)
		slots->mask = count - 1;
	return slots;
}

static unsigned block_of(uint32_t id)
{
	return 31u - (unsigned)__builtin_clz(id + 1);
}

static struct hx_scope *scope_new(
	uint32_t id, uint64_t hash, struct hapax_bytes tenant, struct hapax_bytes group)
{
	struct hx_scope *scope = hx_alloc_zero(1, sizeof(*scope) + tenant.size + group.size);
	unsigned char *names;

	if (scope == NULL)
		return NULL;
	names = (unsigned char *)(scope + 1);
	memcpy(names, tenant.data, tenant.size);
	memcpy(names + tenant.size, group.data, group.size);
	scope->id = id;
	scope->hash = hash;
	scope->tenant = hx_bytes(names, tenant.size);
	scope->group = hx_bytes(names + tenant.size, group.size);
	return scope;
}

/* Room for one more slot and one more number. Locks: table->mutex held. */
static bool make_room(struct hx_scope_table *table, uint32_t id)
{
	struct hx_scope_slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
	unsigned block = block_of(id);

	if (atomic_load_explicit(&table->by_id[block], memory_order_relaxed) == NULL) {
		struct hx_scope **scopes =
			hx_alloc_zero((size_t)1 << block, sizeof(struct hx_scope *));

		if (scopes == NULL)
			return false;
		atomic_store_explicit(&table->by_id[block], scopes, memory_order_release);
	}
	if ((size_t)id * 2 >= slots->mask) {
		struct hx_scope_slots *larger = slots_new((slots->mask + 1) * 4);

		if (larger == NULL)
			return false;
		for (size_t i = 0; i <= slots->mask; i++) {
			struct hx_scope *scope =
				atomic_load_explicit(&slots->slot[i], memory_order_relaxed);

			if (scope != NULL)
				slots_add(larger, scope);
		}
		larger->older = slots;
		atomic_store_explicit(&table->slots, larger, memory_order_release);
	}
	return true;
}

/* Locks: table->mutex held. */
static struct hx_scope *add(
	struct hx_scope_table *table, uint64_t hash, struct hapax_bytes tenant,
	struct hapax_bytes group, enum hapax_status *ret_status)
{
	uint32_t id = atomic_load_explicit(&table->count, memory_order_relaxed);
	struct hx_scope *scope;
	unsigned block;

	*ret_status = HAPAX_ERR_LIMIT;
	if (id >= HX_SCOPES_MAX)
		return NULL;
	*ret_status = HAPAX_ERR_NO_MEMORY;
	if (!make_room(table, id))
		return NULL;
	scope = scope_new(id, hash, tenant, group);
	if (scope == NULL)
		return NULL;
	block = block_of(id);
	atomic_load_explicit(&table->by_id[block], memory_order_relaxed)[id + 1 - (1u << block)] =
		scope;
	atomic_store_explicit(&table->count, id + 1, memory_order_release);
	slots_add(atomic_load_explicit(&table->slots, memory_order_relaxed), scope);
	*ret_status = HAPAX_OK;
	return scope;
}

struct hx_scope *hx_scope_table_find(
	struct hx_scope_table *table, struct hapax_bytes tenant, struct hapax_bytes group)
{
	assert(tenant.size <= HX_SCOPE_PART_SIZE_MAX && group.size <= HX_SCOPE_PART_SIZE_MAX);
	if (tenant.size == 0)
		tenant = default_name;
	if (group.size == 0)
		group = default_name;
	return find(
		atomic_load_explicit(&table->slots, memory_order_acquire),
		hash_names(table, tenant, group), tenant, group);
}

struct hx_scope *hx_scope_table_intern(
	struct hx_scope_table *table, struct hapax_bytes tenant, struct hapax_bytes group,
	enum hapax_status *ret_status)
{
	struct hx_scope *scope = hx_scope_table_find(table, tenant, group);

	*ret_status = HAPAX_OK;
	if (scope != NULL)
		return scope;
	if (tenant.size == 0)
		tenant = default_name;
	if (group.size == 0)
		group = default_name;
	hx_mutex_lock(&table->mutex);
	scope = hx_scope_table_find(table, tenant, group);
	if (scope == NULL)
		scope = add(table, hash_names(table, tenant, group), tenant, group, ret_status);
	hx_mutex_unlock(&table->mutex);
	return scope;
}

enum hapax_status hx_scope_table_init(struct hx_scope_table *table)
{
	enum hapax_status status;

	memset(table, 0, sizeof(*table));
	hx_mutex_init(&table->mutex);
	hx_random_bytes(table->hash_key, sizeof(table->hash_key));
	atomic_store_explicit(&table->slots, slots_new(SLOTS_MIN), memory_order_release);
	/* Names are never empty, so no lookup by name finds the second scope. */
	if (atomic_load_explicit(&table->slots, memory_order_relaxed) == NULL ||
	    hx_scope_table_intern(table, default_name, default_name, &status) == NULL ||
	    add(table, 0, no_name, no_name, &status) == NULL) {
		hx_scope_table_done(table);
		return HAPAX_ERR_NO_MEMORY;
	}
	return HAPAX_OK;
}

void hx_scope_table_done(struct hx_scope_table *table)
{
	struct hx_scope_slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
	uint32_t count = atomic_load_explicit(&table->count, memory_order_relaxed);

	for (uint32_t id = 0; id < count; id++)
		hx_free(hx_scope_table_get(table, id));
	for (size_t i = 0; i < HX_COUNT(table->by_id); i++)
		hx_free(atomic_load_explicit(&table->by_id[i], memory_order_relaxed));
	while (slots != NULL) {
		struct hx_scope_slots *older = slots->older;

		hx_free(slots);
		slots = older;
	}
	hx_mutex_done(&table->mutex);
	memset(table, 0, sizeof(*table));
}
