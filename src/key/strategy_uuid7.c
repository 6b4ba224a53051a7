/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strategy_uuid7.c - uuid7: a new key each time.
 *
 * For producers, which make a key once and send it with every delivery. A receiver would never find
 * a duplicate with it, so receivers refuse it.
 */
#include "key/part.h"

#include "base/bytes.h"

static enum hx_key_made make(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view, struct hapax_key *ret,
	struct hapax_error *err)
{
	char text[HX_UUID_TEXT_SIZE + 1];

	(void)view;
	(void)err;
	hx_key_next_run_id(strategy, ret);
	hx_uuid7_format(ret->run_id, text);
	hx_key_set_text(ret, hx_bytes(text, HX_UUID_TEXT_SIZE));
	return HX_KEY_MADE;
}

const struct hx_key_type hx_key_uuid7 = {
	.name = "uuid7",
	.syntax = "uuid7",
	.summary = "a new key each time; for producers only",
	.flags = HX_KEY_TYPE_PRODUCER,
	.parse = hx_key_read_uuids,
	.make = make,
};
