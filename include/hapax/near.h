/* SPDX-License-Identifier: Apache-2.0 */
/*
 * near.h - a cache of recent answers of a shared store.
 *
 * A second duplicate within a short time needs no round trip to the server, since a DONE key stays
 * done. A store with a near cache answers claims and checks from memory if the key was DONE at most
 * a second ago. The answer has the stored result, and fingerprints are compared as in the store.
 * Everything else goes to the store.
 *
 * Caveats
 * - A forgotten or expired key may be answered as done while its entry lives: at most a second,
 *   counted from before the store was asked. A forget through this store removes the entry at once;
 *   other processes keep theirs.
 * - Results above 16 KiB are not cached.
 */
#ifndef HAPAX_NEAR_H
#define HAPAX_NEAR_H

#include <stddef.h>
#include <stdint.h>

#include <hapax/error.h>
#include <hapax/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means the default. */
struct hapax_near_options {
	size_t size;                     /* set by HAPAX_NEAR_OPTIONS_INIT */
	const struct hapax_clock *clock; /* NULL: the system clock */
	int64_t age_ms_max;              /* 0: 1 s, which is also the maximum */
	uint64_t keys_max;               /* 0: 16,384; rounded up to a power of two */
};

#define HAPAX_NEAR_OPTIONS_INIT                               \
	{                                                     \
		sizeof(struct hapax_near_options), NULL, 0, 0 \
	}

/*
 * Put a near cache before store, which must outlive the new store. UNSUPPORTED: store keeps its
 * counters in this process, so a cache gains nothing. Owned: *ret_store, by the caller; see
 * hapax_store_close().
 */
HAPAX_API enum hapax_status hapax_near_open(
	struct hapax_store *store, const struct hapax_near_options *options,
	struct hapax_store **ret_store, struct hapax_error *err);

struct hapax_near_stats {
	size_t size; /* set by HAPAX_NEAR_STATS_INIT */
	uint64_t hits;
	uint64_t misses; /* claims and checks that went to the store */
};

#define HAPAX_NEAR_STATS_INIT                         \
	{                                             \
		sizeof(struct hapax_near_stats), 0, 0 \
	}

/* INVALID: store has no near cache. Threads: any. */
HAPAX_API enum hapax_status hapax_near_tell(
	struct hapax_store *store, struct hapax_near_stats *ret_stats, struct hapax_error *err);

#ifdef __cplusplus
}
#endif

#endif
