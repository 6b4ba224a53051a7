/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_name.c - sort the names of an object.
 *
 * Objects are small as a rule: insertion sort. Large ones are parted around a middle name,
 * which reads memory in order; where that goes wrong too often, as an attack could make it,
 * the rest is sorted by heap. Both in place and without recursion.
 */
#include "wire/json/json_name.h"

#include <assert.h>
#include <stdbool.h>

/* Below this insertion is faster, measured with names of eight bytes and more. */
enum { INSERTION_COUNT_MAX = 24, PARTS_MAX = 32 };

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

static void swap(struct hx_json_name *a, struct hx_json_name *b)
{
	struct hx_json_name kept = *a;

	*a = *b;
	*b = kept;
}

/* The middle of three names goes to the front; there are three. */
static void move_middle(const unsigned char *data, struct hx_json_name *names, size_t count)
{
	struct hx_json_name *low = &names[1];
	struct hx_json_name *middle = &names[count / 2];
	struct hx_json_name *high = &names[count - 1];

	if (comes_before(data, middle, low))
		swap(middle, low);
	if (comes_before(data, high, middle))
		swap(high, middle);
	if (comes_before(data, middle, low))
		swap(middle, low);
	swap(&names[0], middle);
}

/* Part names around the first of them; returns its new place. No two are equal: places differ. */
static size_t part(const unsigned char *data, struct hx_json_name *names, size_t count)
{
	size_t low = 1;
	size_t high = count - 1;

	for (;;) {
		while (low <= high && comes_before(data, &names[low], &names[0]))
			low++;
		while (low <= high && comes_before(data, &names[0], &names[high]))
			high--;
		if (low > high)
			break;
		swap(&names[low++], &names[high--]);
	}
	swap(&names[0], &names[high]);
	return high;
}

/* The larger part is put aside, so that no more than log n are at a time. */
static void sort_by_parts(const unsigned char *data, struct hx_json_name *names, size_t count)
{
	struct {
		struct hx_json_name *names;
		size_t count;
		unsigned tries;
	} parts[PARTS_MAX] = {{names, count, 2 * PARTS_MAX}};
	size_t part_count = 1;

	while (part_count > 0) {
		struct hx_json_name *at = parts[--part_count].names;
		size_t left = parts[part_count].count;
		unsigned tries = parts[part_count].tries;

		while (left > INSERTION_COUNT_MAX && tries > 0) {
			size_t middle, rest;

			move_middle(data, at, left);
			middle = part(data, at, left);
			rest = left - middle - 1;
			tries--;
			assert(part_count < PARTS_MAX);
			if (middle > rest) {
				parts[part_count].names = at;
				parts[part_count].count = middle;
				parts[part_count++].tries = tries;
				at += middle + 1;
				left = rest;
			} else {
				parts[part_count].names = at + middle + 1;
				parts[part_count].count = rest;
				parts[part_count++].tries = tries;
				left = middle;
			}
		}
		if (left <= INSERTION_COUNT_MAX)
			sort_by_insertion(data, at, left);
		else
			sort_by_heap(data, at, left);
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
		sort_by_parts(data, names, count);
	names[count - 1].ordered = false;
	for (size_t i = 1; i < count; i++) {
		int order = hx_json_name_compare(data, &names[i - 1], &names[i]);

		assert(order <= 0);
		if (order == 0)
			return &names[i];
	}
	return NULL;
}
