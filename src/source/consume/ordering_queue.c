/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ordering_queue.c - lines of messages, by hash.
 */
#include "source/consume/ordering_queue.h"

#include <assert.h>

#include "base/alloc.h"
#include "source/consume/in_flight.h"

enum hapax_status hx_lanes_init(struct hx_lanes *lanes, size_t count, const uint64_t secret[2])
{
	size_t size = 16;

	while (size < count * 2)
		size *= 2;
	lanes->buckets = hx_alloc_zero(size, sizeof(struct hx_intake *));
	lanes->mask = size - 1;
	lanes->secret[0] = secret[0];
	lanes->secret[1] = secret[1];
	return lanes->buckets == NULL ? HAPAX_ERR_NO_MEMORY : HAPAX_OK;
}

void hx_lanes_done(struct hx_lanes *lanes)
{
	hx_free(lanes->buckets);
	lanes->buckets = NULL;
}

/* Where the pointer to the first of a lane stands, or to where it would stand. */
static struct hx_intake **place_of(struct hx_lanes *lanes, uint64_t lane)
{
	struct hx_intake **at = &lanes->buckets[lane & lanes->mask];

	while (*at != NULL && (*at)->lane != lane)
		at = &(*at)->lane_next;
	return at;
}

bool hx_lanes_join(struct hx_lanes *lanes, struct hx_intake *intake)
{
	struct hx_intake **at;

	intake->behind = NULL;
	intake->lane_next = NULL;
	if (!intake->has_lane)
		return true;
	at = place_of(lanes, intake->lane);
	if (*at == NULL) {
		*at = intake;
		intake->last = intake;
		return true;
	}
	(*at)->last->behind = intake;
	(*at)->last = intake;
	return false;
}

struct hx_intake *hx_lanes_leave(struct hx_lanes *lanes, struct hx_intake *intake)
{
	struct hx_intake **at;
	struct hx_intake *first;

	if (!intake->has_lane)
		return NULL;
	at = place_of(lanes, intake->lane);
	first = *at;
	assert(first != NULL);
	if (first != intake) {
		struct hx_intake *before = first;

		while (before->behind != intake)
			before = before->behind;
		before->behind = intake->behind;
		if (first->last == intake)
			first->last = before;
		return NULL;
	}
	if (intake->behind == NULL) {
		*at = intake->lane_next;
		return NULL;
	}
	first = intake->behind;
	first->lane_next = intake->lane_next;
	first->last = intake->last;
	*at = first;
	return first;
}
