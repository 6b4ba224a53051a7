/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.c - scope and ttl as one number. Built like scope_table.c: open
 * addressing over numbers, at most half full; outgrown slots stay until the end.
 */
#include "store/index/profile.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/limits.h"

/* The narrow form of a record holds 16 bits; the rest above this is for new scopes. */
enum { OWN_TTL_PROFILES_MAX = 60000, SLOTS_MIN = 64 };

_Static_assert(
	HX_SCOPES_MAX + OWN_TTL_PROFILES_MAX < (1 << HX_PROFILE_BLOCKS) - 1, "blocks for all");

struct hx_profile_slots {
	struct hx_profile_slots *older;
	uint32_t mask;
	_Atomic uint32_t slot[]; /* number + 1; 0: empty */
};

static uint32_t hash_of(uint32_t scope_id, int64_t ttl_ms)
{
	uint64_t mixed = ((uint64_t)scope_id << 32) ^ (uint64_t)ttl_ms;

	/* Not keyed: an attacker that chooses times to live meets the bound, not a long chain. */
	mixed *= UINT64_C(0x9e3779b97f4a7c15);
	mixed ^= mixed >> 29;
	mixed *= UINT64_C(0xbf58476d1ce4e5b9);
	return (uint32_t)(mixed >> 32);
}

static uint32_t find(
	struct hx_profile_table *table, const struct hx_profile_slots *slots, uint32_t scope_id,
	int64_t ttl_ms)
{
	for (uint32_t i = hash_of(scope_id, ttl_ms) & slots->mask;; i = (i + 1) & slots->mask) {
		uint32_t number = atomic_load_explicit(&slots->slot[i], memory_order_acquire);
		const struct hx_profile *profile;

		if (number == 0)
			return HX_PROFILE_NONE;
		/* Counted before a slot named it. */
		assert(number <= atomic_load_explicit(&table->count, memory_order_relaxed));
		profile = hx_profile_get(table, number - 1);
		if (profile->scope_id == scope_id && profile->ttl_ms == ttl_ms)
			return number - 1;
	}
}

static void slots_add(struct hx_profile_slots *slots, uint32_t id, uint32_t hash)
{
	uint32_t i = hash & slots->mask;

	/* At most half full, so that every search meets an empty slot. */
	assert(id <= slots->mask / 2);
	while (atomic_load_explicit(&slots->slot[i], memory_order_relaxed) != 0)
		i = (i + 1) & slots->mask;
	atomic_store_explicit(&slots->slot[i], id + 1, memory_order_release);
}

static struct hx_profile_slots *slots_new(uint32_t count)
{
	struct hx_profile_slots *slots =
		hx_alloc_zero(1, sizeof(*slots) + count * sizeof(slots->slot[0]));

	assert(count >= SLOTS_MIN);
	assert((count & (count - 1)) == 0);
	if (slots != NULL)
		slots->mask = count - 1;
	return slots;
}

/* Locks: table->mutex held, or one thread. */
static void profile_table_assert(const struct hx_profile_table *table)
{
	const struct hx_profile_slots *slots =
		atomic_load_explicit(&table->slots, memory_order_relaxed);
	uint32_t count = atomic_load_explicit(&table->count, memory_order_relaxed);

	assert(slots != NULL);
	assert((slots->mask & (slots->mask + 1)) == 0);
	assert(slots->mask >= SLOTS_MIN - 1);
	assert(count <= (slots->mask + 1) / 2);
	assert(count < (1u << HX_PROFILE_BLOCKS) - 1);
	/* Outgrown slots are smaller: readers that still search them end. */
	assert(slots->older == NULL || slots->older->mask < slots->mask);
	/* The last profile lies in a block that exists. */
	assert(count == 0 ||
	       atomic_load_explicit(
		       &table->blocks[31u - (unsigned)__builtin_clz(count)],
		       memory_order_relaxed) != NULL);
}

/* Locks: table->mutex held. */
static bool make_room(struct hx_profile_table *table, uint32_t id)
{
	struct hx_profile_slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
	unsigned block = 31u - (unsigned)__builtin_clz(id + 1);
	struct hx_profile_slots *larger;

	if (atomic_load_explicit(&table->blocks[block], memory_order_relaxed) == NULL) {
		struct hx_profile *profiles = hx_alloc_zero((size_t)1 << block, sizeof(*profiles));

		if (profiles == NULL)
			return false;
		atomic_store_explicit(&table->blocks[block], profiles, memory_order_release);
	}
	if (id * 2 < slots->mask)
		return true;
	larger = slots_new((slots->mask + 1) * 4);
	if (larger == NULL)
		return false;
	for (uint32_t i = 0; i < id; i++) {
		const struct hx_profile *profile = hx_profile_get(table, i);

		slots_add(larger, i, hash_of(profile->scope_id, profile->ttl_ms));
	}
	assert(larger->mask > slots->mask);
	larger->older = slots;
	atomic_store_explicit(&table->slots, larger, memory_order_release);
	return true;
}

/* Locks: table->mutex held. */
static uint32_t add(struct hx_profile_table *table, uint32_t scope_id, int64_t ttl_ms)
{
	uint32_t id = atomic_load_explicit(&table->count, memory_order_relaxed);
	unsigned block = 31u - (unsigned)__builtin_clz(id + 1);
	struct hx_profile *profile;

	profile_table_assert(table);
	assert(block < HX_PROFILE_BLOCKS);
	if (!make_room(table, id))
		return HX_PROFILE_NONE;
	profile = &atomic_load_explicit(
		&table->blocks[block], memory_order_relaxed)[id + 1 - (1u << block)];
	assert(profile->scope == NULL);
	profile->scope = hx_scope_table_get(table->scopes, scope_id);
	profile->scope_id = scope_id;
	profile->ttl_ms = ttl_ms;
	atomic_store_explicit(&table->count, id + 1, memory_order_release);
	slots_add(
		atomic_load_explicit(&table->slots, memory_order_relaxed), id,
		hash_of(scope_id, ttl_ms));
	assert(hx_profile_get(table, id) == profile);
	profile_table_assert(table);
	return id;
}

static uint32_t find_now(struct hx_profile_table *table, uint32_t scope_id, int64_t ttl_ms)
{
	return find(
		table, atomic_load_explicit(&table->slots, memory_order_acquire), scope_id, ttl_ms);
}

uint32_t hx_profile_intern(struct hx_profile_table *table, uint32_t scope_id, int64_t ttl_ms)
{
	uint32_t id = find_now(table, scope_id, ttl_ms);

	assert(ttl_ms > 0);
	assert(scope_id < HX_SCOPES_MAX);
	if (id != HX_PROFILE_NONE)
		return id;
	hx_mutex_lock(&table->mutex);
	id = find_now(table, scope_id, ttl_ms);
	if (id == HX_PROFILE_NONE &&
	    atomic_load_explicit(&table->count, memory_order_relaxed) < OWN_TTL_PROFILES_MAX)
		id = add(table, scope_id, ttl_ms);
	else if (id == HX_PROFILE_NONE) {
		id = find_now(table, scope_id, 0);
		if (id == HX_PROFILE_NONE)
			id = add(table, scope_id, 0);
	}
	hx_mutex_unlock(&table->mutex);
	assert(id == HX_PROFILE_NONE || hx_profile_get(table, id)->scope_id == scope_id);
	return id;
}

enum hapax_status hx_profile_table_init(
	struct hx_profile_table *table, struct hx_scope_table *scopes)
{
	struct hx_profile_slots *slots = slots_new(SLOTS_MIN);

	memset(table, 0, sizeof(*table));
	if (slots == NULL)
		return HAPAX_ERR_NO_MEMORY;
	hx_mutex_init(&table->mutex);
	table->scopes = scopes;
	atomic_store_explicit(&table->slots, slots, memory_order_release);
	profile_table_assert(table);
	return HAPAX_OK;
}

void hx_profile_table_done(struct hx_profile_table *table)
{
	struct hx_profile_slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);

	if (slots == NULL)
		return;
	profile_table_assert(table);
	for (size_t i = 0; i < HX_PROFILE_BLOCKS; i++)
		hx_free(atomic_load_explicit(&table->blocks[i], memory_order_relaxed));
	while (slots != NULL) {
		struct hx_profile_slots *older = slots->older;

		hx_free(slots);
		slots = older;
	}
	hx_mutex_done(&table->mutex);
	memset(table, 0, sizeof(*table));
}
