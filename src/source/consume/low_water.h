/* SPDX-License-Identifier: Apache-2.0 */
/*
 * low_water.h - the low-water mark: the offset below which all of a partition is done.
 *
 * Messages arrive in order and are done in any order. Only the low-water mark may be committed to
 * the broker. A mark stays in the list until all before it are done, and then belongs to its owner
 * again.
 *
 * Threads: one at a time.
 */
#ifndef HX_SOURCE_CONSUME_LOW_WATER_H
#define HX_SOURCE_CONSUME_LOW_WATER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hx_mark {
	int64_t offset;
	bool is_done;
	struct hx_mark *next;
};

struct hx_low_water {
	struct hx_mark *first; /* not done, unless the list is empty */
	struct hx_mark *last;
	size_t count;
	int64_t next; /* every offset below is done; -1: none seen yet */
};

void hx_low_water_init(struct hx_low_water *water);

/* Add the next message; its offset is larger than all before. */
void hx_low_water_add(struct hx_low_water *water, struct hx_mark *mark, int64_t offset);

/* mark is done. Returns the marks that are no longer needed, linked by next; or NULL. */
struct hx_mark *hx_low_water_done(struct hx_low_water *water, struct hx_mark *mark);

/* The value of next if mark, which is not done, were done. */
int64_t hx_low_water_with(const struct hx_low_water *water, const struct hx_mark *mark);

/* Remove the first mark, done or not, to give up all of them. NULL: none. */
struct hx_mark *hx_low_water_take(struct hx_low_water *water);

#endif
