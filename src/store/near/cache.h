/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.h - a short-lived cache of records: a table in which each key has two places.
 *
 * A new record takes the older of its two places. Nothing is swept: a record that is too old is
 * not found, and is overwritten. A reader never waits. A writer locks the pair of places, and
 * skips the write if a reader is in the place.
 *
 * Threads: any.
 */
#ifndef HX_STORE_NEAR_CACHE_H
#define HX_STORE_NEAR_CACHE_H

#include <stdbool.h>

#include <hapax/store.h>

struct hx_near_cache;

/* NULL: no memory. pairs is a power of two. */
struct hx_near_cache *hx_near_cache_new(uint64_t pairs);
void hx_near_cache_free(struct hx_near_cache *cache);

/*
 * Answer a claim or a check from a record that was true at from_ms or later. False: no such
 * record, or no memory to copy it.
 */
bool hx_near_cache_answer(struct hx_near_cache *cache, struct hapax_op *op, int64_t from_ms);

/* A number that rises with every drop. Read it before asking the store; pass it to put. */
uint64_t hx_near_cache_drops(const struct hx_near_cache *cache);

/*
 * Keep a DONE record that was true at some time after asked_ms, when drops was read. Skipped if
 * the key was dropped since, the record is too large, or memory is short.
 */
void hx_near_cache_put(
	struct hx_near_cache *cache, const struct hapax_record *record, int64_t asked_ms,
	uint64_t drops);

void hx_near_cache_drop(struct hx_near_cache *cache, const struct hapax_op *op);

#endif
