/* SPDX-License-Identifier: Apache-2.0 */
/*
 * label_table.c - values of a label, numbered as they appear.
 */
#include "observe/metrics/label_table.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/random.h"
#include "base/siphash.h"

/* Longer values are distinguished by their beginning: a label is for people. */
enum { VALUE_SIZE_MAX = 256, COUNT_LIMIT = 1 << 20 };

enum hapax_status hx_label_table_init(struct hx_label_table *table, uint64_t count_max)
{
	uint32_t slots = 16;

	*table = (struct hx_label_table){0};
	table->count_max = (uint32_t)(count_max > COUNT_LIMIT ? COUNT_LIMIT : count_max);
	while (slots < 2 * table->count_max)
		slots *= 2;
	table->slot_mask = slots - 1;
	hx_random_bytes(table->hash_key, sizeof(table->hash_key));
	table->slots = hx_alloc_zero(slots, sizeof(*table->slots));
	table->entries = hx_alloc_zero(table->count_max + 1, sizeof(struct hx_label_entry *));
	if (table->slots == NULL || table->entries == NULL) {
		hx_label_table_done(table);
		return HAPAX_ERR_NO_MEMORY;
	}
	return HAPAX_OK;
}

void hx_label_table_done(struct hx_label_table *table)
{
	for (uint32_t i = 0; table->entries != NULL && i < table->count; i++)
		hx_free(table->entries[i]);
	hx_free(table->slots);
	hx_free(table->entries);
	*table = (struct hx_label_table){0};
}

static struct hapax_bytes cut(struct hapax_bytes value)
{
	return hx_bytes(value.data, value.size > VALUE_SIZE_MAX ? VALUE_SIZE_MAX : value.size);
}

static bool is_entry(
	const struct hx_label_entry *entry, struct hapax_bytes first, struct hapax_bytes second)
{
	return hx_bytes_equal(hx_bytes(entry->text, entry->first_size), first) &&
		hx_bytes_equal(
			hx_bytes(entry->text + entry->first_size, entry->second_size), second);
}

static uint32_t hash_of(
	const struct hx_label_table *table, struct hapax_bytes first, struct hapax_bytes second)
{
	unsigned char text[2 * VALUE_SIZE_MAX + 1];
	size_t size = 0;

	if (first.size > 0)
		memcpy(text, first.data, first.size);
	size += first.size;
	text[size++] = 0;
	if (second.size > 0)
		memcpy(text + size, second.data, second.size);
	size += second.size;
	return (uint32_t)hx_siphash13(table->hash_key, text, size);
}

/* Its slot, or the free slot for it. One always exists: half of them are free. */
static uint32_t find_slot(
	const struct hx_label_table *table, struct hapax_bytes first, struct hapax_bytes second,
	uint32_t *ret_number)
{
	uint32_t slot = hash_of(table, first, second) & table->slot_mask;

	for (;; slot = (slot + 1) & table->slot_mask) {
		uint32_t number = atomic_load_explicit(&table->slots[slot], memory_order_acquire);

		if (number == 0 || is_entry(table->entries[number - 1], first, second)) {
			*ret_number = number;
			return slot;
		}
	}
}

/* Locks: table->lock held. 0: full, or out of memory. */
static uint32_t add(
	struct hx_label_table *table, uint32_t slot, struct hapax_bytes first,
	struct hapax_bytes second)
{
	uint32_t count = atomic_load_explicit(&table->count, memory_order_relaxed);
	struct hx_label_entry *entry;

	if (count == table->count_max)
		return 0;
	entry = hx_alloc(sizeof(*entry) + first.size + second.size);
	if (entry == NULL)
		return 0;
	entry->first_size = first.size;
	entry->second_size = second.size;
	if (first.size > 0)
		memcpy(entry->text, first.data, first.size);
	if (second.size > 0)
		memcpy(entry->text + first.size, second.data, second.size);
	table->entries[count] = entry;
	/* Write the slot first: a reader that sees a full table then finds everything in it. */
	atomic_store_explicit(&table->slots[slot], count + 1, memory_order_release);
	atomic_store_explicit(&table->count, count + 1, memory_order_release);
	return count + 1;
}

uint32_t hx_label_table_number(
	struct hx_label_table *table, struct hapax_bytes first, struct hapax_bytes second)
{
	/* Read before the search: the last value may be added between the two. */
	bool is_full = hx_label_table_count(table) == table->count_max;
	uint32_t number;

	first = cut(first);
	second = cut(second);
	(void)find_slot(table, first, second, &number);
	if (number != 0 || is_full)
		return number;
	hx_lock_acquire(&table->lock);
	{
		uint32_t slot = find_slot(table, first, second, &number);

		if (number == 0)
			number = add(table, slot, first, second);
	}
	hx_lock_release(&table->lock);
	return number;
}

uint32_t hx_label_table_count(const struct hx_label_table *table)
{
	return atomic_load_explicit(&table->count, memory_order_acquire);
}

const struct hx_label_entry *hx_label_table_entry(
	const struct hx_label_table *table, uint32_t number)
{
	assert(number > 0 && number <= hx_label_table_count(table));
	return table->entries[number - 1];
}
