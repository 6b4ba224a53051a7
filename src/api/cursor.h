/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cursor.h - where a listing stands, as text that callers hand back and nobody else makes.
 *
 * A store believes its cursors, so one that was made up, changed, or comes from another
 * process or another question is refused: a keyed hash of it and of the question is part
 * of the text.
 *
 * Threads: any.
 */
#ifndef HX_API_CURSOR_H
#define HX_API_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/store.h>

struct hapax_buf;

/* Append the text of a cursor. question: a hash of what was asked for. */
enum hapax_status hx_api_cursor_write(
	const uint64_t key[2], uint64_t question, const struct hapax_cursor *cursor,
	struct hapax_buf *out);

/* False: it is not one of ours, or not of this question. */
bool hx_api_cursor_read(
	const uint64_t key[2], uint64_t question, struct hapax_bytes text,
	struct hapax_cursor *ret_cursor);

#endif
