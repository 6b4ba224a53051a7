/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest_table.h - which keys were seen, by their digests, and on which line first.
 *
 * 128 bits of SHA-256 stand for a key: two of a million million keys agree by chance
 * with a probability of 10^-15.
 */
#ifndef HX_CLI_DIGEST_TABLE_H
#define HX_CLI_DIGEST_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct hx_digest {
	uint64_t words[2];
};

struct hx_digest_entry {
	struct hx_digest digest;
	struct hx_digest payload; /* of the first one */
	uint64_t line;            /* of the first one; 0: the entry is free */
};

struct hx_digest_table {
	struct hx_digest_entry *entries;
	size_t capacity; /* a power of two, or 0 */
	size_t count;
};

/* A struct of zeros is an empty table. */
void hx_digest_table_done(struct hx_digest_table *table);

/* The first 128 bits of a digest. */
struct hx_digest hx_digest_of(const unsigned char *sha256);

/*
 * The entry of a digest; a new one has line 0, which the caller must set at once.
 * NULL: no memory. Valid until the next call.
 */
struct hx_digest_entry *hx_digest_table_at(
	struct hx_digest_table *table, const struct hx_digest *digest);

#endif
