/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load_batch.h - records on their way into a store, many in one submit, and so in one sync.
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

/* About: of keys and results. */
size_t hx_load_batch_bytes(const struct hx_load_batch *batch);

/* It has to be run before more is added. */
bool hx_load_batch_is_full(const struct hx_load_batch *batch);

/* Copy a record into it; expiry and lease move by shift_ms. NO_MEMORY: nothing was added. */
enum hapax_status hx_load_batch_add(
	struct hx_load_batch *batch, const struct hapax_record *record, int64_t shift_ms);

/*
 * Load what it holds into target; it is empty afterwards. *ret_invalid: so many were refused
 * as no record that a store would write; NULL: that is an error like others.
 */
enum hapax_status hx_load_batch_run(
	struct hx_load_batch *batch, struct hapax_store *target, uint64_t *ret_invalid,
	struct hapax_error *err);

#endif
