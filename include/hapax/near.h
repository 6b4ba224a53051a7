/* SPDX-License-Identifier: Apache-2.0 */
/*
 * near.h - a memory of what a shared store has just answered.
 *
 * A duplicate that comes soon after another one need not ask a server again: what is
 * done is done. A store with a near cache answers claims and checks of keys that were
 * DONE at most a second ago from memory, with the stored result, and compares
 * fingerprints as the store does. Everything else goes to the store.
 *
 * Caveats
 * - A key that somebody forgot, or that expired, may be answered as done for as long as
 *   an entry lives: at most a second from before the store was asked. What is forgotten
 *   through this store is forgotten here at once; other processes keep their entries.
 * - Results above 16 KiB are not kept.
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
	const struct hapax_clock *clock; /* NULL: the system's */
	int64_t age_ms_max;              /* 0: 1 s, which is also the most */
	uint64_t keys_max;               /* 0: 16,384; rounded up to a power of two */
};

#define HAPAX_NEAR_OPTIONS_INIT                               \
	{                                                     \
		sizeof(struct hapax_near_options), NULL, 0, 0 \
	}

/*
 * Stand before store, which must outlive the new one. UNSUPPORTED: store keeps its
 * counters in this process, so it is as near as can be. Owned: *ret_store, by the
 * caller; see hapax_store_close().
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

/* INVALID when store has no near cache. Threads: any. */
HAPAX_API enum hapax_status hapax_near_tell(
	struct hapax_store *store, struct hapax_near_stats *ret_stats, struct hapax_error *err);

#ifdef __cplusplus
}
#endif

#endif
