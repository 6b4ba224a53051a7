/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.h - copy all records of one store into another, of any kind.
 *
 * Records keep their tokens, so a current holder can complete in the target. New tokens of the
 * target begin 2^40 above the last one of the source. Tokens that the source issues in the meantime
 * stay below them.
 *
 * Caveats
 * - Stop all users of the source first: a record that changes during the copy may arrive in its old
 *   or its new state. Do not use the target before the copy is complete.
 * - Decision counters are not copied.
 * - If the target's clock is ahead of the source's, expiries and leases move by the difference:
 *   late, never early.
 */
#ifndef HAPAX_COPY_H
#define HAPAX_COPY_H

#include <stddef.h>
#include <stdint.h>

#include <hapax/error.h>
#include <hapax/store.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hapax_copy;

/* Reports progress. A nonzero return stops the copy. Must not use the stores. */
typedef int hapax_copy_fn(const struct hapax_copy *copy, void *context);

struct hapax_copy {
	size_t size;             /* set by HAPAX_COPY_INIT */
	hapax_copy_fn *progress; /* in: called from time to time; may be NULL */
	void *context;           /* in: for progress */
	uint64_t total;          /* out: records in the source at the start */
	uint64_t records;        /* out: records copied */
	uint64_t bytes;          /* out: bytes of their keys and results */
	uint64_t token;          /* out: the target's tokens begin above this */
};

#define HAPAX_COPY_INIT                                           \
	{                                                         \
		sizeof(struct hapax_copy), NULL, NULL, 0, 0, 0, 0 \
	}

/*
 * Copy all records that have not expired. INVALID: the target is not empty. LIMIT: it is full, or
 * tokens would exceed 2^53. HANDLER: progress stopped the copy. After a failure the target holds a
 * part, and a record that says so: hapax_store_open() refuses it with INVALID. Remove it and start
 * again. Blocks.
 */
HAPAX_API enum hapax_status hapax_store_copy(
	struct hapax_store *source, struct hapax_store *target, struct hapax_copy *copy,
	struct hapax_error *err);

/*
 * Make the store's tokens continue 2^40 above the last one. Call it after restoring a backup, which
 * does not know the tokens issued since. *ret_token is the new last token; ret_token may be NULL.
 * LIMIT: tokens would exceed 2^53. Blocks.
 */
HAPAX_API enum hapax_status hapax_store_restored(
	struct hapax_store *store, uint64_t *ret_token, struct hapax_error *err);

#ifdef __cplusplus
}
#endif

#endif
