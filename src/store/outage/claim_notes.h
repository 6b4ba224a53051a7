/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim_notes.h - what the latest claims asked for, by their tokens.
 *
 * A completion brings a token and a result; for how long the result is kept, and of which
 * payload it is, stands with the claim, in a store that may be away. So the guard notes it
 * when a claim is acquired. A new note takes the place of the older of two: after 16,384
 * later claims one may be gone, and then nobody knows.
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

/* Of a claim that was acquired. Allocates nothing. */
void hx_claim_notes_put(struct hx_claim_notes *notes, const struct hapax_op *op);

/* By op's key and token, into ttl and fingerprint of *ret_record. False: there is none. */
bool hx_claim_notes_find(
	struct hx_claim_notes *notes, const struct hapax_op *op, struct hapax_record *ret_record);

#endif
