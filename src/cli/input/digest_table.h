/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest_table.h - a set of seen values, by digest, in bounded memory.
 *
 * 128 bits of SHA-256 represent the hashed value: two of a million million agree by chance with a
 * probability of 10^-15.
 */
#ifndef HX_CLI_INPUT_DIGEST_TABLE_H
#define HX_CLI_INPUT_DIGEST_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hx_digest {
	uint64_t words[2]; /* both 0: none */
};

/* All entries have the size of a struct whose first member is the digest. */
struct hx_digest_table {
	unsigned char *entries;
	size_t entry_size;
	size_t bytes_max; /* for all entries, also while the table grows */
	size_t capacity;
	size_t count;
};

void hx_digest_table_init(struct hx_digest_table *table, size_t entry_size, size_t bytes_max);

/* Also works on a struct of zeros. */
void hx_digest_table_done(struct hx_digest_table *table);

/* The first 128 bits of a digest. */
struct hx_digest hx_digest_of(const unsigned char *sha256);

/*
 * The entry of a digest; a new one is zero after the digest. NULL: out of memory, or the limit is
 * reached. Valid until the next call.
 */
void *hx_digest_table_at(
	struct hx_digest_table *table, const struct hx_digest *digest, bool *ret_is_new);

#endif
