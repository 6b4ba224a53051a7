/* SPDX-License-Identifier: Apache-2.0 */
/*
 * low_water.h - up to where everything of a partition is done.
 *
 * Messages come in order and are done in any order. What may be told to the broker is the
 * end of the part without gaps: below it, all is done. A mark stays until all before it are
 * done, and then belongs to its owner again.
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
	int64_t next; /* every offset below is done; -1: nothing was seen yet */
};

void hx_low_water_init(struct hx_low_water *water);

/* The next message, with a larger offset than those before. */
void hx_low_water_add(struct hx_low_water *water, struct hx_mark *mark, int64_t offset);

/* mark is done. Returns the marks that are not needed any more, linked by next; or NULL. */
struct hx_mark *hx_low_water_done(struct hx_low_water *water, struct hx_mark *mark);

/* What next would be if mark, which is not done, were. */
int64_t hx_low_water_with(const struct hx_low_water *water, const struct hx_mark *mark);

/* Take the first mark out, done or not: all of it is given up. NULL: there is none. */
struct hx_mark *hx_low_water_take(struct hx_low_water *water);

#endif
