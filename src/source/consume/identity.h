/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity.h - finds the key of a message: messages with the same key are duplicates.
 *
 * The key comes from the configured strategy or from the first of these defaults that applies:
 * source and id of a CloudEvent, which give the same key as at the gateway; a header made for this
 * purpose; the message's place at the broker. The place detects a redelivery, but not a message
 * that the producer sent twice. It includes the servers' names and the message's time. A topic of
 * the same name elsewhere, or one that was deleted and created again, is therefore another place.
 *
 * Threads: one at a time.
 */
#ifndef HX_SOURCE_CONSUME_IDENTITY_H
#define HX_SOURCE_CONSUME_IDENTITY_H

#include <stdbool.h>

#include <hapax/key.h>

#include "source/consume/envelope.h"

enum { HX_IDENTITY_DEFAULTS = 9 };

struct hx_identity {
	struct hapax_key_strategy *asked; /* the configured one; NULL: the defaults */
	enum hapax_on_missing on_missing;
	struct hapax_key_strategy *usual[HX_IDENTITY_DEFAULTS];
};

/* strategy and options may be NULL. INVALID: as hapax_key_strategy_new(). */
enum hapax_status hx_identity_init(
	struct hx_identity *identity, const char *strategy, const struct hapax_key_options *options,
	struct hapax_error *err);

/* Zero is allowed. */
void hx_identity_done(struct hx_identity *identity);

/*
 * Like hapax_key_make(). ret_lacks_id: no strategy is configured and the message has no ID, so its
 * key is its place. A message of RabbitMQ has none: its key is missing.
 */
enum hapax_status hx_identity_make(
	const struct hx_identity *identity, const struct hx_envelope *envelope,
	struct hapax_buf *scratch, struct hapax_key *ret_key, bool *ret_lacks_id,
	struct hapax_error *err);

#endif
