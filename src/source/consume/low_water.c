/* SPDX-License-Identifier: Apache-2.0 */
/*
 * low_water.c - the low-water mark of a partition.
 */
#include "source/consume/low_water.h"

#include "base/list.h"

void hx_low_water_init(struct hx_low_water *water)
{
	*water = (struct hx_low_water){.next = -1};
}

void hx_low_water_add(struct hx_low_water *water, struct hx_mark *mark, int64_t offset)
{
	*mark = (struct hx_mark){.offset = offset};
	HX_LIST_ADD(water, mark, next);
	/* Offsets may have gaps, from compaction and transactions. */
	if (water->count == 0)
		water->next = offset;
	water->count++;
}

struct hx_mark *hx_low_water_take(struct hx_low_water *water)
{
	struct hx_mark *mark;

	HX_LIST_TAKE(water, mark, next);
	if (mark == NULL)
		return NULL;
	water->count--;
	mark->next = NULL;
	return mark;
}

struct hx_mark *hx_low_water_done(struct hx_low_water *water, struct hx_mark *mark)
{
	struct hx_mark *over = NULL;
	struct hx_mark **end = &over;

	mark->is_done = true;
	while (water->first != NULL && water->first->is_done) {
		*end = hx_low_water_take(water);
		water->next = (*end)->offset + 1;
		end = &(*end)->next;
	}
	return over;
}

int64_t hx_low_water_with(const struct hx_low_water *water, const struct hx_mark *mark)
{
	int64_t next = mark->offset + 1;

	if (water->first != mark)
		return water->first->offset;
	while (mark->next != NULL && mark->next->is_done) {
		mark = mark->next;
		next = mark->offset + 1;
	}
	return next;
}
