/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cursor.h - the position of a listing, as text that only this process can create.
 *
 * A store trusts its cursors. A forged or changed cursor, or one from another process or another
 * query, is refused: the text contains a keyed hash of cursor and query.
 *
 * Threads: any.
 */
#ifndef HX_API_CURSOR_H
#define HX_API_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/store.h>

struct hapax_buf;

/* Append the text of a cursor. question: a hash of the query. */
enum hapax_status hx_api_cursor_write(
	const uint64_t key[2], uint64_t question, const struct hapax_cursor *cursor,
	struct hapax_buf *out);

/* False: not from this process, or not for this query. */
bool hx_api_cursor_read(
	const uint64_t key[2], uint64_t question, struct hapax_bytes text,
	struct hapax_cursor *ret_cursor);

#endif
