/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_name.c - sort the names of an object.
 *
 * Objects are small as a rule: insertion sort. A large one may be an attack, so it
 * is sorted by heap, in place and without recursion.
 */
#include "wire/json_name.h"

#include <assert.h>
#include <stdbool.h>

/* Below this insertion is faster, measured with names of eight bytes and more. */
enum { INSERTION_COUNT_MAX = 24 };

static __attribute__((noinline)) bool comes_before_slow(
	const unsigned char *data, const struct hx_json_name *a, const struct hx_json_name *b)
{
	int order = hx_json_name_compare(data, a, b);

	return order != 0 ? order < 0 : a->text < b->text;
}

/* By name, and of equal names by place in the text. */
static inline bool comes_before(
	const unsigned char *data, const struct hx_json_name *a, const struct hx_json_name *b)
{
	if (a->prefix != b->prefix)
		return a->prefix < b->prefix;
	return comes_before_slow(data, a, b);
}

static void sort_by_insertion(const unsigned char *data, struct hx_json_name *names, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct hx_json_name *hole = &names[i];
		struct hx_json_name moving;

		if (hole[-1].prefix < hole->prefix || !comes_before(data, hole, hole - 1))
			continue;
		moving = *hole;
		do {
			hole[0] = hole[-1];
			hole--;
		} while (hole > names && comes_before(data, &moving, hole - 1));
		*hole = moving;
	}
}

/* Let names[root] sink to its place in the heap of count names. */
static void sink(const unsigned char *data, struct hx_json_name *names, size_t root, size_t count)
{
	struct hx_json_name moving = names[root];

	for (;;) {
		size_t child = 2 * root + 1;

		if (child >= count)
			break;
		if (child + 1 < count && comes_before(data, &names[child], &names[child + 1]))
			child++;
		if (!comes_before(data, &moving, &names[child]))
			break;
		names[root] = names[child];
		root = child;
	}
	names[root] = moving;
}

static void sort_by_heap(const unsigned char *data, struct hx_json_name *names, size_t count)
{
	for (size_t root = count / 2; root > 0; root--)
		sink(data, names, root - 1, count);
	for (size_t last = count - 1; last > 0; last--) {
		struct hx_json_name largest = names[0];

		names[0] = names[last];
		names[last] = largest;
		sink(data, names, 0, last);
	}
}

const struct hx_json_name *hx_json_names_sort(
	const unsigned char *data, struct hx_json_name *names, size_t count)
{
	if (count < 2 || names[count - 1].ordered)
		return NULL;
	if (count <= INSERTION_COUNT_MAX)
		sort_by_insertion(data, names, count);
	else
		sort_by_heap(data, names, count);
	names[count - 1].ordered = false;
	for (size_t i = 1; i < count; i++) {
		int order = hx_json_name_compare(data, &names[i - 1], &names[i]);

		assert(order <= 0);
		if (order == 0)
			return &names[i];
	}
	return NULL;
}
