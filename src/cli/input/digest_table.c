/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest_table.c - open addressing, linear probing, at most four fifths full.
 *
 * Digests are as good as random, so their own bits give the position. The table grows by half:
 * doubling would leave it half empty on average.
 */
#include "cli/input/digest_table.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

enum { CAPACITY_MIN = 1024 };

/* The digest of a free entry. */
static const struct hx_digest none;

void hx_digest_table_init(struct hx_digest_table *table, size_t entry_size, size_t bytes_max)
{
	assert(entry_size >= sizeof(struct hx_digest));
	*table = (struct hx_digest_table){.entry_size = entry_size, .bytes_max = bytes_max};
}

void hx_digest_table_done(struct hx_digest_table *table)
{
	hx_free(table->entries);
	*table = (struct hx_digest_table){.entries = NULL};
}

struct hx_digest hx_digest_of(const unsigned char *sha256)
{
	struct hx_digest digest;

	memcpy(digest.words, sha256, sizeof(digest.words));
	return digest;
}

static bool is_equal(const struct hx_digest *a, const struct hx_digest *b)
{
	return a->words[0] == b->words[0] && a->words[1] == b->words[1];
}

/* The position of the digest, present or not. */
static struct hx_digest *find(const struct hx_digest_table *table, const struct hx_digest *digest)
{
	size_t at = (size_t)((digest->words[0] >> 32) * table->capacity >> 32);

	for (;;) {
		void *entry = table->entries + at * table->entry_size;

		if (is_equal(entry, &none) || is_equal(entry, digest))
			return entry;
		at = at + 1 == table->capacity ? 0 : at + 1;
	}
}

static bool grow(struct hx_digest_table *table)
{
	struct hx_digest_table larger = *table;

	larger.capacity += table->capacity == 0 ? (size_t)CAPACITY_MIN : table->capacity / 2;
	/* The old entries exist until the new ones do. */
	if (larger.capacity >= UINT32_MAX ||
	    larger.capacity + table->capacity > table->bytes_max / table->entry_size)
		return false;
	larger.entries = hx_alloc_zero(larger.capacity, larger.entry_size);
	if (larger.entries == NULL)
		return false;
	for (size_t i = 0; i < table->capacity; i++) {
		const void *entry = table->entries + i * table->entry_size;

		if (!is_equal(entry, &none))
			memcpy(find(&larger, entry), entry, table->entry_size);
	}
	hx_free(table->entries);
	*table = larger;
	return true;
}

void *hx_digest_table_at(
	struct hx_digest_table *table, const struct hx_digest *digest, bool *ret_is_new)
{
	struct hx_digest *entry;

	if (table->count >= table->capacity / 5 * 4 && !grow(table))
		return NULL;
	entry = find(table, digest);
	*ret_is_new = !is_equal(entry, digest);
	if (*ret_is_new) {
		*entry = *digest;
		table->count++;
	}
	return entry;
}
