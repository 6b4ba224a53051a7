/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_case.h - an index on its own, and records to put into it.
 *
 * Threads: one at a time.
 */
#ifndef TEST_SUPPORT_INDEX_CASE_H
#define TEST_SUPPORT_INDEX_CASE_H

#include "store/index/index.h"
#include "support/store_case.h"

struct index_case {
	struct hx_scope_table scopes;
	struct hx_index *index;
};

/* With one shard: limits so small that there is only one. */
void index_case_begin(struct index_case *c, uint64_t keys_max, uint64_t bytes_max);
void index_case_end(struct index_case *c);

/* A key of default/default; text must outlive it. */
struct hx_index_key index_case_key(struct index_case *c, const char *text);

/*
 * Put a DONE record, or one in another state, with a value of size bytes, whatever
 * the limits say, but counted in. Returns its place.
 */
uint32_t index_case_put(
	struct index_case *c, const char *text, enum hapax_state state, size_t size);

/* It must be there; it stays counted in. */
void index_case_remove(struct index_case *c, const char *text);

/* Its place, or 0. */
uint32_t index_case_find(struct index_case *c, const char *text);

#endif
