/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nested.h - JSON texts in strings of the data, as in data.body|json.id.
 *
 * The first use copies the data to view->text, and appends the value of each string that is read;
 * the nodes of its JSON follow those of the data. A string is read once. A level of strings is never
 * longer than the level around it, so view->text is reserved once and does not move.
 *
 * Threads: one at a time for a view.
 */
#ifndef HX_KEY_NESTED_H
#define HX_KEY_NESTED_H

#include <hapax/error.h>

#include "key/path.h"
#include "key/view.h"

/*
 * Read the strings on the way of a single path: each gets its JSON as child, and stays a string.
 * The data was read. ABSENT: a string is missing or null. MISSING: it is not a string or not JSON;
 * the message names the path up to it.
 */
enum hx_key_made hx_nested_open(
	struct hx_key_view *view, const struct hx_key_path *path, struct hapax_error *err);

/*
 * Replace the strings on the way of a path, which may have wildcards, by the JSON in them, all that
 * are JSON. A path without |json changes nothing. MISSING: one was not a string with JSON, or is
 * nested too deep. Call it after the parts of a key were found.
 */
enum hx_key_made hx_nested_unfold(
	struct hx_key_view *view, const struct hx_key_path *path, struct hapax_error *err);

#endif
