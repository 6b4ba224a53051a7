/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ordering_queue.c - queues of messages, by hash.
 */
#include "source/consume/ordering_queue.h"

#include <assert.h>

#include "base/alloc.h"
#include "source/consume/in_flight.h"

enum hapax_status hx_ordering_queues_init(
	struct hx_ordering_queues *ordering_queues, size_t count, const uint64_t secret[2])
{
	size_t size = 16;

	while (size < count * 2)
		size *= 2;
	ordering_queues->buckets = hx_alloc_zero(size, sizeof(struct hx_in_flight *));
	ordering_queues->mask = size - 1;
	ordering_queues->secret[0] = secret[0];
	ordering_queues->secret[1] = secret[1];
	return ordering_queues->buckets == NULL ? HAPAX_ERR_NO_MEMORY : HAPAX_OK;
}

void hx_ordering_queues_done(struct hx_ordering_queues *ordering_queues)
{
	hx_free(ordering_queues->buckets);
	ordering_queues->buckets = NULL;
}

/* The pointer to the first message of an ordering queue, or the place for it. */
static struct hx_in_flight **place_of(
	struct hx_ordering_queues *ordering_queues, uint64_t ordering_queue)
{
	struct hx_in_flight **at =
		&ordering_queues->buckets[ordering_queue & ordering_queues->mask];

	while (*at != NULL && (*at)->ordering_queue != ordering_queue)
		at = &(*at)->ordering_next;
	return at;
}

bool hx_ordering_queues_join(
	struct hx_ordering_queues *ordering_queues, struct hx_in_flight *in_flight)
{
	struct hx_in_flight **at;

	in_flight->behind = NULL;
	in_flight->ordering_next = NULL;
	if (!in_flight->has_ordering_queue)
		return true;
	at = place_of(ordering_queues, in_flight->ordering_queue);
	if (*at == NULL) {
		*at = in_flight;
		in_flight->last = in_flight;
		return true;
	}
	(*at)->last->behind = in_flight;
	(*at)->last = in_flight;
	return false;
}

struct hx_in_flight *hx_ordering_queues_leave(
	struct hx_ordering_queues *ordering_queues, struct hx_in_flight *in_flight)
{
	struct hx_in_flight **at;
	struct hx_in_flight *first;

	if (!in_flight->has_ordering_queue)
		return NULL;
	at = place_of(ordering_queues, in_flight->ordering_queue);
	first = *at;
	assert(first != NULL);
	if (first != in_flight) {
		struct hx_in_flight *before = first;

		while (before->behind != in_flight)
			before = before->behind;
		before->behind = in_flight->behind;
		if (first->last == in_flight)
			first->last = before;
		return NULL;
	}
	if (in_flight->behind == NULL) {
		*at = in_flight->ordering_next;
		return NULL;
	}
	first = in_flight->behind;
	first->ordering_next = in_flight->ordering_next;
	first->last = in_flight->last;
	*at = first;
	return first;
}
