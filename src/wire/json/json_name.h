/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_name.h - the member names of an object: in order, and none twice.
 *
 * Threads: any; the array belongs to the caller.
 */
#ifndef HX_JSON_NAME_H
#define HX_JSON_NAME_H

#include <stddef.h>

#include "wire/json/json.h"
#include "wire/json/json_string.h"

static inline struct hx_json_string hx_json_name_string(
	const unsigned char *data, const struct hx_json_name *name)
{
	return (struct hx_json_string){data + name->text, name->size, name->escaped != 0};
}

/* Below, equal or above zero, by code point of the values. Not for names that were sorted. */
static inline int hx_json_name_compare(
	const unsigned char *data, const struct hx_json_name *a, const struct hx_json_name *b)
{
	if (a->prefix != b->prefix)
		return a->prefix < b->prefix ? -1 : 1;
	if (!hx_json_piece_is_full(a->prefix))
		return 0;
	return hx_json_string_compare(hx_json_name_string(data, a), hx_json_name_string(data, b));
}

/*
 * Sort count names of one object by code point; of two equal ones the first in the text comes
 * first. Returns NULL, or a name that stands later in the text than an equal one; then the rest
 * need not be in order. Never slower than n log n, whatever the names, and no part of a name is
 * unescaped more than a few times. Afterwards, ordered of the last one says whether they were in
 * order from the beginning.
 */
const struct hx_json_name *hx_json_names_sort(
	const unsigned char *data, struct hx_json_name *names, size_t count);

#endif
