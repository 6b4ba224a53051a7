/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load_batch.h - batches of records to load into a store: one submit, and so one sync, for many.
 *
 * Threads: one at a time.
 */
#ifndef HX_STORE_LOAD_BATCH_H
#define HX_STORE_LOAD_BATCH_H

#include <stdbool.h>

#include <hapax/store.h>

struct hx_load_batch;

/* NULL: no memory. Owned: hx_load_batch_free(), which takes NULL. */
struct hx_load_batch *hx_load_batch_new(void);
void hx_load_batch_free(struct hx_load_batch *batch);

size_t hx_load_batch_count(const struct hx_load_batch *batch);

/* The approximate bytes of keys and results. */
size_t hx_load_batch_bytes(const struct hx_load_batch *batch);

/* Must the batch be run before more is added? */
bool hx_load_batch_is_full(const struct hx_load_batch *batch);

/* Copy a record into the batch; expiry and lease move by shift_ms. NO_MEMORY: nothing was added. */
enum hapax_status hx_load_batch_add(
	struct hx_load_batch *batch, const struct hapax_record *record, int64_t shift_ms);

/*
 * Load the batch into target and empty it. *ret_invalid counts the records that were refused as
 * invalid. NULL: an invalid record is an error like others.
 */
enum hapax_status hx_load_batch_run(
	struct hx_load_batch *batch, struct hapax_store *target, uint64_t *ret_invalid,
	struct hapax_error *err);

#endif
