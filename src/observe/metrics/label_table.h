/* SPDX-License-Identifier: Apache-2.0 */
/*
 * label_table.h - values of a label, numbered from 1 as they appear, up to a limit.
 *
 * Values beyond the limit are 0. Finding a value takes no lock; a new one takes a short one. The
 * hash is keyed: values come from outside.
 *
 * Threads: any.
 */
#ifndef HX_LABEL_TABLE_H
#define HX_LABEL_TABLE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

#include "base/thread.h"

/* A value, or two that belong together. */
struct hx_label_entry {
	size_t first_size;
	size_t second_size;
	unsigned char text[]; /* the first, then the second */
};

struct hx_label_table {
	struct hx_lock lock;
	_Atomic uint32_t count;
	uint32_t count_max;
	uint32_t slot_mask;
	uint64_t hash_key[2];
	_Atomic uint32_t *slots;         /* numbers; 0: free */
	struct hx_label_entry **entries; /* [number - 1]; written before its slot */
};

enum hapax_status hx_label_table_init(struct hx_label_table *table, uint64_t count_max);

/* Works on a struct of zeros. */
void hx_label_table_done(struct hx_label_table *table);

uint32_t hx_label_table_number(
	struct hx_label_table *table, struct hapax_bytes first, struct hapax_bytes second);

/* The same; hint is the caller's last number, or 0, and is checked first. */
static inline uint32_t hx_label_table_number_near(
	struct hx_label_table *table, uint32_t hint, struct hapax_bytes first,
	struct hapax_bytes second)
{
	const struct hx_label_entry *entry = hint == 0 ? NULL : table->entries[hint - 1];

	if (entry != NULL && entry->first_size == first.size && entry->second_size == second.size &&
	    (first.size == 0 || memcmp(entry->text, first.data, first.size) == 0) &&
	    (second.size == 0 || memcmp(entry->text + first.size, second.data, second.size) == 0))
		return hint;
	return hx_label_table_number(table, first, second);
}

/* Numbers up to this one are in use. */
uint32_t hx_label_table_count(const struct hx_label_table *table);

/* For a number from 1 to count. */
const struct hx_label_entry *hx_label_table_entry(
	const struct hx_label_table *table, uint32_t number);

#endif
