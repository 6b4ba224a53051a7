/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity.h - what makes two messages the same.
 *
 * A strategy that was asked for, or the usual places in order: source and id of a
 * CloudEvent, which give the key that the gateway makes, too; a header that says that it
 * is for this; where the message stands at the broker. The last one knows a redelivery, and
 * nothing of what the producer sent twice. The servers' names and the time of the message
 * are a part of it, so that a topic of the same name elsewhere, or one that was deleted and
 * made anew, is another place.
 *
 * Threads: one at a time.
 */
#ifndef HX_SOURCE_CONSUME_IDENTITY_H
#define HX_SOURCE_CONSUME_IDENTITY_H

#include <stdbool.h>

#include <hapax/key.h>

#include "source/consume/envelope.h"

enum { HX_IDENTITY_HEADERS = 6 };

struct hx_identity {
	struct hapax_key_strategy *asked; /* NULL: the usual places */
	struct hapax_key_strategy *event_id;
	struct hapax_key_strategy *headers[HX_IDENTITY_HEADERS];
	struct hapax_key_strategy *place;
	struct hapax_key_strategy *place_whole; /* without partitions */
};

/* strategy and options may be NULL. INVALID: as hapax_key_strategy_new(). */
enum hapax_status hx_identity_init(
	struct hx_identity *identity, const char *strategy, const struct hapax_key_options *options,
	struct hapax_error *err);

/* Zeros are allowed. */
void hx_identity_done(struct hx_identity *identity);

/* As hapax_key_make(). */
enum hapax_status hx_identity_make(
	const struct hx_identity *identity, const struct hx_envelope *envelope,
	struct hapax_buf *scratch, struct hapax_key *ret_key, struct hapax_error *err);

#endif
