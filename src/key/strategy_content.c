/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strategy_content.c - content: SHA-256 of the canonical data.
 */
#include "key/content.h"
#include "key/key.h"

/* No prefix: 64 digits, as in document C. */
static enum hx_key_made make(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view, struct hapax_key *ret,
	struct hapax_error *err)
{
	return hx_content_make(strategy, view, "", ret, err);
}

const struct hx_key_type hx_key_content = {
	.name = "content",
	.syntax = "content",
	.summary = "SHA-256 of the canonical data, or of the included fields",
	.flags = HX_KEY_TYPE_CONTENT,
	.parse = hx_key_refuse_argument,
	.make = make,
};
