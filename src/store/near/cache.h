/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.h - records for a short time: a table in which each key has two places.
 *
 * A new record takes the older of its two places. There is nothing to sweep: what is too
 * old is not found, and is written over. Whoever reads waits for nobody; who writes takes the
 * lock of the pair of places and does without if somebody is reading there.
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
 * Answer a claim or a check from a record that was true at from_ms or later. False: it has
 * none, or no memory to copy it.
 */
bool hx_near_cache_answer(struct hx_near_cache *cache, struct hapax_op *op, int64_t from_ms);

/* A number that rises with every drop: for put, read before the store is asked. */
uint64_t hx_near_cache_drops(const struct hx_near_cache *cache);

/*
 * Keep a DONE record that was true at some time after asked_ms, when drops was read. Not
 * kept: one that was dropped since, is too large, or for which memory is short.
 */
void hx_near_cache_put(
	struct hx_near_cache *cache, const struct hapax_record *record, int64_t asked_ms,
	uint64_t drops);

/* Forget the key that op is about. */
void hx_near_cache_drop(struct hx_near_cache *cache, const struct hapax_op *op);

#endif
