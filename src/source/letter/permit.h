/* SPDX-License-Identifier: Apache-2.0 */
/*
 * permit.h - lets the keys of a dead letter run again.
 *
 *	PARKED                    released, as `hapax resolve --retry` does
 *	DONE, permanent failure   forgotten
 *	all others                unchanged: they run, or are done
 *
 * A failed key keeps its attempts: if the message fails again, it is a dead letter again.
 */
#ifndef HX_SOURCE_LETTER_PERMIT_H
#define HX_SOURCE_LETTER_PERMIT_H

#include "base/buf.h"
#include "source/consume/envelope.h"
#include "source/consume/identity.h"
#include "source/letter/letters.h"

struct hx_permit {
	struct hapax_store *store;
	struct hx_identity identity;
	struct hx_envelope *envelope;
	struct hapax_buf scratch;
	struct hapax_buf buf; /* of a record */
};

enum hapax_status hx_permit_init(
	struct hx_permit *permit, const struct hx_letters *letters, struct hapax_error *err);

/* Zero is allowed. */
void hx_permit_done(struct hx_permit *permit);

/*
 * The key of the message, the one by the old strategy (key_also) if there is one, and dead_key, which
 * its letter names: a key made of meta.topic is not that of the letter's own topic. Blocks. A message
 * without a key needs no permit.
 */
enum hapax_status hx_permit_run(
	struct hx_permit *permit, const struct hapax_message *message, struct hapax_bytes dead_key,
	struct hapax_error *err);

#endif
