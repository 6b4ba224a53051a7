/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_name.c - sort the names of an object.
 *
 * Names are sorted by their first piece (json_string.h), those that are equal in it by their
 * next one, and so on: only numbers are compared, and each piece is unescaped once, however many
 * names begin alike.
 *
 * Objects are small as a rule: insertion sort. Large ones are parted around a middle name,
 * which reads memory in order; where that goes wrong too often, as an attack could make it,
 * the rest is sorted by heap. All in place and without recursion.
 */
#include "wire/json/json_name.h"

#include <assert.h>
#include <stdbool.h>

/* Below this insertion is faster, measured with names of eight bytes and more. */
enum { INSERTION_COUNT_MAX = 24, PARTS_MAX = 32 };

/* As many bits as struct hx_json_name has for it. */
enum { PLACE_MAX = (1 << 29) - 1 };

_Static_assert(4 * HX_JSON_SIZE_MAX <= PLACE_MAX, "a place is never cut off");

/* By piece, and of equal ones by place in the text. */
static inline bool comes_before(const struct hx_json_name *a, const struct hx_json_name *b)
{
	return a->prefix != b->prefix ? a->prefix < b->prefix : a->text < b->text;
}

static void sort_by_insertion(struct hx_json_name *names, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct hx_json_name *hole = &names[i];
		struct hx_json_name moving;

		if (!comes_before(hole, hole - 1))
			continue;
		moving = *hole;
		do {
			hole[0] = hole[-1];
			hole--;
		} while (hole > names && comes_before(&moving, hole - 1));
		*hole = moving;
	}
}

/* Let names[root] sink to its place in the heap of count names. */
static void sink(struct hx_json_name *names, size_t root, size_t count)
{
	struct hx_json_name moving = names[root];

	for (;;) {
		size_t child = 2 * root + 1;

		if (child >= count)
			break;
		if (child + 1 < count && comes_before(&names[child], &names[child + 1]))
			child++;
		if (!comes_before(&moving, &names[child]))
			break;
		names[root] = names[child];
		root = child;
	}
	names[root] = moving;
}

static void sort_by_heap(struct hx_json_name *names, size_t count)
{
	for (size_t root = count / 2; root > 0; root--)
		sink(names, root - 1, count);
	for (size_t last = count - 1; last > 0; last--) {
		struct hx_json_name largest = names[0];

		names[0] = names[last];
		names[last] = largest;
		sink(names, 0, last);
	}
}

static void swap(struct hx_json_name *a, struct hx_json_name *b)
{
	struct hx_json_name kept = *a;

	*a = *b;
	*b = kept;
}

/* The middle of three names goes to the front; there are three. */
static void move_middle(struct hx_json_name *names, size_t count)
{
	struct hx_json_name *low = &names[1];
	struct hx_json_name *middle = &names[count / 2];
	struct hx_json_name *high = &names[count - 1];

	if (comes_before(middle, low))
		swap(middle, low);
	if (comes_before(high, middle))
		swap(high, middle);
	if (comes_before(middle, low))
		swap(middle, low);
	swap(&names[0], middle);
}

/* Part names around the first of them; returns its new place. No two are equal: places differ. */
static size_t part(struct hx_json_name *names, size_t count)
{
	size_t low = 1;
	size_t high = count - 1;

	for (;;) {
		while (low <= high && comes_before(&names[low], &names[0]))
			low++;
		while (low <= high && comes_before(&names[0], &names[high]))
			high--;
		if (low > high)
			break;
		swap(&names[low++], &names[high--]);
	}
	swap(&names[0], &names[high]);
	return high;
}

/* The larger part is put aside, so that no more than log n are at a time. */
static void sort_by_parts(struct hx_json_name *names, size_t count)
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

			move_middle(at, left);
			middle = part(at, left);
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
			sort_by_insertion(at, left);
		else
			sort_by_heap(at, left);
	}
}

/* All are equal but for this piece. */
static void sort_piece(struct hx_json_name *names, size_t count)
{
	size_t in_order = 1;

	if (count <= INSERTION_COUNT_MAX) {
		sort_by_insertion(names, count);
		return;
	}
	while (in_order < count && comes_before(&names[in_order - 1], &names[in_order]))
		in_order++;
	if (in_order < count)
		sort_by_parts(names, count);
}

static bool has_equal(const struct hx_json_name *names, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		if (names[i - 1].prefix == names[i].prefix)
			return true;
	}
	return false;
}

/* Reset after an earlier sort: begin with the first piece again. */
static void begin_again(const unsigned char *data, struct hx_json_name *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		names[i].is_first = false;
		if (names[i].place == 0)
			continue;
		names[i].place = 0;
		names[i].prefix = hx_json_string_prefix_slow(hx_json_name_string(data, &names[i]));
	}
}

static void go_on(const unsigned char *data, struct hx_json_name *name)
{
	struct hx_json_string string = hx_json_name_string(data, name);
	uint32_t place = name->place;

	if (place == 0)
		(void)hx_json_string_piece(string, &place);
	name->prefix = hx_json_string_piece(string, &place);
	name->place = place & PLACE_MAX;
}

/*
 * Those whose pieces, which are in order, differ are parted; equal ones go on with their next
 * piece. Returns the first that ends as the one before it, or NULL.
 */
static const struct hx_json_name *split(
	const unsigned char *data, struct hx_json_name *names, size_t count)
{
	for (size_t begin = 0, end; begin < count; begin = end) {
		uint64_t piece = names[begin].prefix;

		for (end = begin + 1; end < count && names[end].prefix == piece;)
			end++;
		names[begin].is_first = true;
		if (end - begin == 1)
			continue;
		if (!hx_json_piece_is_full(piece))
			return &names[begin + 1];
		for (size_t i = begin; i < end; i++)
			go_on(data, &names[i]);
	}
	return NULL;
}

/* How many from at on are equal as far as was looked. */
static size_t count_same(const struct hx_json_name *at, const struct hx_json_name *end)
{
	size_t count = 1;

	while (at + count < end && !at[count].is_first)
		count++;
	return count;
}

const struct hx_json_name *hx_json_names_sort(
	const unsigned char *data, struct hx_json_name *names, size_t count)
{
	const struct hx_json_name *twice = NULL;
	const struct hx_json_name *end = names + count;
	struct hx_json_name *at = names;
	size_t same = count;

	if (count < 2 || names[count - 1].ordered)
		return NULL;
	if (names[0].is_first)
		begin_again(data, names, count);
	while (at < end) {
		const struct hx_json_name *found = NULL;

		at->is_first = false;
		sort_piece(at, same);
		if (has_equal(at, same))
			found = split(data, at, same);
		else
			at += same;
		/* The first duplicate counts; later ones do not. */
		if (found != NULL)
			end = twice = found;
		same = count_same(at, end);
	}
	names[0].is_first = true;
	names[count - 1].ordered = false;
	return twice;
}
