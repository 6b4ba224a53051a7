/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest_table.c - open addressing, linear probing, at most three quarters full.
 *
 * Digests are as good as random, so that their own bits say where they go.
 */
#include "cli/digest_table.h"

#include <string.h>

#include "base/alloc.h"

enum { CAPACITY_MIN = 1024 };

void hx_digest_table_done(struct hx_digest_table *table)
{
	hx_free(table->entries);
	*table = (struct hx_digest_table){NULL, 0, 0};
}

struct hx_digest hx_digest_of(const unsigned char *sha256)
{
	struct hx_digest digest;

	memcpy(digest.words, sha256, sizeof(digest.words));
	return digest;
}

static int is_equal(const struct hx_digest *a, const struct hx_digest *b)
{
	return a->words[0] == b->words[0] && a->words[1] == b->words[1];
}

/* Where the digest is, or where it would be. */
static struct hx_digest_entry *find(
	struct hx_digest_entry *entries, size_t capacity, const struct hx_digest *digest)
{
	size_t at = (size_t)digest->words[0] & (capacity - 1);

	while (entries[at].line != 0 && !is_equal(&entries[at].digest, digest))
		at = (at + 1) & (capacity - 1);
	return &entries[at];
}

static int grow(struct hx_digest_table *table)
{
	size_t capacity = table->capacity == 0 ? (size_t)CAPACITY_MIN : table->capacity * 2;
	struct hx_digest_entry *entries = hx_alloc_zero(capacity, sizeof(*entries));

	if (entries == NULL)
		return 0;
	for (size_t i = 0; i < table->capacity; i++) {
		if (table->entries[i].line != 0)
			*find(entries, capacity, &table->entries[i].digest) = table->entries[i];
	}
	hx_free(table->entries);
	table->entries = entries;
	table->capacity = capacity;
	return 1;
}

struct hx_digest_entry *hx_digest_table_at(
	struct hx_digest_table *table, const struct hx_digest *digest)
{
	struct hx_digest_entry *entry;

	if (table->count >= table->capacity / 4 * 3 && !grow(table))
		return NULL;
	entry = find(table->entries, table->capacity, digest);
	if (entry->line == 0) {
		entry->digest = *digest;
		table->count++;
	}
	return entry;
}
