/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill_set.c - keys whose older versions are dead.
 */
#include "store/log/read/kill_set.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

enum { CAPACITY_FIRST = 64 };

/* The maximum number of keys; 2^32 bytes hold more than a store will forget at once. */
#define TEXT_SIZE_MAX ((size_t)1 << 36)

void hx_log_kill_set_init(struct hx_log_kill_set *set)
{
	memset(set, 0, sizeof(*set));
	hx_buf_init(&set->text, TEXT_SIZE_MAX);
}

void hx_log_kill_set_done(struct hx_log_kill_set *set)
{
	hx_free(set->slots);
	hx_buf_done(&set->text);
	memset(set, 0, sizeof(*set));
}

/* Half of the slots are empty: a search always ends. */
static void set_assert(const struct hx_log_kill_set *set)
{
	assert((set->capacity & (set->capacity - 1)) == 0);
	assert(set->count <= set->capacity / 2);
	assert((set->capacity == 0) == (set->slots == NULL));
}

static bool is_key(
	const struct hx_log_kill_set *set, const struct hx_log_kill *slot,
	const struct hx_index_key *key)
{
	assert(slot->offset + slot->size <= set->text.size);
	return slot->hash == key->hash && slot->scope_id == key->packed.scope_id &&
		slot->encoding == key->packed.encoding && slot->size == key->packed.size &&
		memcmp(set->text.data + slot->offset, key->packed.data, slot->size) == 0;
}

/* The slot of key, or the empty one for it. */
static struct hx_log_kill *find(const struct hx_log_kill_set *set, const struct hx_index_key *key)
{
	size_t at = (size_t)key->hash & (set->capacity - 1);

	set_assert(set);
	assert(set->capacity != 0);
	while (set->slots[at].lsn != 0 && !is_key(set, &set->slots[at], key))
		at = (at + 1) & (set->capacity - 1);
	return &set->slots[at];
}

static bool grow(struct hx_log_kill_set *set)
{
	size_t capacity = set->capacity != 0 ? set->capacity * 2 : CAPACITY_FIRST;
	struct hx_log_kill *slots;

	if (set->capacity != 0 && set->count < set->capacity / 2)
		return true;
	slots = hx_alloc_zero(capacity, sizeof(*slots));
	if (slots == NULL)
		return false;
	for (size_t i = 0; i < set->capacity; i++) {
		size_t at = (size_t)set->slots[i].hash & (capacity - 1);

		if (set->slots[i].lsn == 0)
			continue;
		while (slots[at].lsn != 0)
			at = (at + 1) & (capacity - 1);
		slots[at] = set->slots[i];
	}
	assert(capacity > set->capacity);
	hx_free(set->slots);
	set->slots = slots;
	set->capacity = capacity;
	return true;
}

bool hx_log_kill_set_add(struct hx_log_kill_set *set, const struct hx_index_key *key, uint64_t lsn)
{
	struct hx_log_kill *slot;
	size_t offset;

	if (!grow(set))
		return false;
	assert(set->count < set->capacity / 2);
	slot = find(set, key);
	if (slot->lsn != 0) {
		slot->lsn = slot->lsn > lsn ? slot->lsn : lsn;
		return true;
	}
	offset = set->text.size;
	if (hx_buf_append(&set->text, key->packed.data, key->packed.size) != HAPAX_OK)
		return false;
	*slot = (struct hx_log_kill){
		.hash = key->hash,
		.lsn = lsn,
		.offset = offset,
		.scope_id = key->packed.scope_id,
		.size = key->packed.size,
		.encoding = key->packed.encoding,
	};
	set->count++;
	set_assert(set);
	return true;
}

bool hx_log_kill_set_has(
	const struct hx_log_kill_set *set, const struct hx_index_key *key, uint64_t lsn)
{
	return set->count != 0 && find(set, key)->lsn > lsn;
}
