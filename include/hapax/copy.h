/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_copy.h - all records of one store into another, of any kind.
 *
 * Records keep their tokens, so a holder that runs now can complete in the target.
 * New tokens of the target begin 2^40 above the last one of the source: whatever was
 * given out by the source in the meantime stays below them.
 *
 * Caveats
 * - Stop the users of the source first: what changes there during the copy may
 *   arrive as it was before or after. Nobody may use the target before it is done.
 * - Decision counters are not copied.
 * - Where the target's clock is ahead of the source's, expiries and leases are moved
 *   by the difference: late, never early.
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

/* How far it has come. A return other than 0 ends the copy. Must not use the stores. */
typedef int hapax_copy_fn(const struct hapax_copy *copy, void *context);

struct hapax_copy {
	size_t size;             /* set by HAPAX_COPY_INIT */
	hapax_copy_fn *progress; /* in: called now and then; may be NULL */
	void *context;           /* in: for progress */
	uint64_t total;          /* out: records that the source held when it began */
	uint64_t records;        /* out: records copied */
	uint64_t bytes;          /* out: bytes of their keys and results */
	uint64_t token;          /* out: the target's tokens begin above this */
};

#define HAPAX_COPY_INIT                                           \
	{                                                         \
		sizeof(struct hapax_copy), NULL, NULL, 0, 0, 0, 0 \
	}

/*
 * Copy what has not expired. The target must be empty: INVALID otherwise. LIMIT: it
 * is full, or tokens would pass 2^53. HANDLER: progress ended it. After a failure the
 * target holds a part, and a record that says so: hapax_store_open() refuses it with
 * INVALID. Remove it and begin anew. Blocks.
 */
HAPAX_API enum hapax_status hapax_store_copy(
	struct hapax_store *source, struct hapax_store *target, struct hapax_copy *copy,
	struct hapax_error *err);

/*
 * Let the store's tokens go on 2^40 above the last one: after a backup was restored,
 * which has forgotten the tokens that were given out since. *ret_token, which may be
 * NULL, is the new last one. LIMIT: tokens would pass 2^53. Blocks.
 */
HAPAX_API enum hapax_status hapax_store_restored(
	struct hapax_store *store, uint64_t *ret_token, struct hapax_error *err);

#ifdef __cplusplus
}
#endif

#endif
