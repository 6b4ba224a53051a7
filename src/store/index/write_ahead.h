/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_ahead.h - the hook that sees every change before it is made: a store with files.
 *
 * A change is written in two steps, like everything in the index: reserve does what can fail,
 * write cannot fail. Nothing between them can fail either.
 *
 * Threads: one at a time. Only the owner of a journal changes records, except for expiry, which
 * needs no journal.
 */
#ifndef HX_STORE_INDEX_WRITE_AHEAD_H
#define HX_STORE_INDEX_WRITE_AHEAD_H

#include "store/index/index.h"

struct hx_write_ahead_change {
	const struct hx_index_key *key;
	const struct hapax_record *next;     /* the new record, or NULL */
	const struct hx_packed_mark *mark;   /* the same as a mark, or NULL; both NULL: removed */
	const struct hapax_record *replaced; /* the previous one, unless expired; or NULL */
	int64_t now_ms;
	bool ends_claim; /* may take from the reserve */
};

struct hx_write_ahead {
	/*
	 * Make room for a change, in addition to existing reservations. A status other than OK
	 * refuses the operation. With is_full set, LIMIT means: not in this frame, try the same
	 * again in the next one.
	 */
	enum hapax_status (*reserve)(
		struct hx_write_ahead *write_ahead, const struct hx_write_ahead_change *change);
	/* Give up all unused reservations. */
	void (*cancel)(struct hx_write_ahead *write_ahead);
	void (*write)(
		struct hx_write_ahead *write_ahead, const struct hx_write_ahead_change *change);
	bool is_full; /* no further operation is begun */
};

#endif
