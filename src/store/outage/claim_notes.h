/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim_notes.h - the options of recent claims, by token.
 *
 * A completion carries a token and a result. The TTL and the fingerprint are stored with the
 * claim, in a store that may be unavailable. The guard therefore notes them when a claim is
 * acquired. A new note replaces the older of two, so a note may be lost after 16,384 later
 * claims. The event of a claim is not noted, because it may take 776 bytes: a result whose claim the
 * store has lost has no event.
 *
 * Threads: any.
 */
#ifndef HX_STORE_OUTAGE_CLAIM_NOTES_H
#define HX_STORE_OUTAGE_CLAIM_NOTES_H

#include <stdbool.h>

#include <hapax/store.h>

struct hx_claim_notes;

/* NULL: no memory. */
struct hx_claim_notes *hx_claim_notes_new(void);
void hx_claim_notes_free(struct hx_claim_notes *notes);

/* Note an acquired claim. Allocates nothing. */
void hx_claim_notes_put(struct hx_claim_notes *notes, const struct hapax_op *op);

/* Find the note by op's key and token; fills ttl and fingerprint of *ret_record. False: none. */
bool hx_claim_notes_find(
	struct hx_claim_notes *notes, const struct hapax_op *op, struct hapax_record *ret_record);

#endif
