/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h - a store used as the journal of another store's outage.
 *
 * Tokens tell which store granted a claim. Journal tokens are above HX_JOURNAL_TOKEN, which no
 * other store reaches before the year 2112. A journal record with a lower token is a run whose
 * claim is in the store.
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

/* Make store a journal, unless it is one. INVALID: it holds records of another use. Blocks. */
enum hapax_status hx_journal_prepare(struct hapax_store *store, struct hapax_error *err);

/* Blocks. */
enum hapax_status hx_journal_count(
	struct hapax_store *journal, uint64_t *ret_count, struct hapax_error *err);

#endif
