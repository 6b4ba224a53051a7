/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h - a store as the journal of another one's outage.
 *
 * Tokens tell whose claim it was: those that the journal gives out lie above
 * HX_JOURNAL_TOKEN, which no other store reaches before the year 2112. A record in the
 * journal whose token lies below is a run whose claim is in the store.
 */
#ifndef HX_STORE_OUTAGE_JOURNAL_H
#define HX_STORE_OUTAGE_JOURNAL_H

#include <stdbool.h>

#include <hapax/store.h>

#define HX_JOURNAL_TOKEN (UINT64_C(1) << 52)

static inline bool hx_journal_gave(uint64_t token)
{
	return token > HX_JOURNAL_TOKEN;
}

/* Make store a journal, if it is not yet. INVALID: it holds somebody's records. Blocks. */
enum hapax_status hx_journal_prepare(struct hapax_store *store, struct hapax_error *err);

/* How many records it holds. Blocks. */
enum hapax_status hx_journal_count(
	struct hapax_store *journal, uint64_t *ret_count, struct hapax_error *err);

#endif
