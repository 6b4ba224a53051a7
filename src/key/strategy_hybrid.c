/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strategy_hybrid.c - hybrid: the content is the identity, a UUIDv7 names the run.
 *
 * The UUID is not part of the key, or no duplicate would ever be found. The fingerprint covers the
 * whole data, so two events that agree only in the included fields are a mismatch.
 */
#include "key/content.h"
#include "key/key.h"

static enum hx_key_made make(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view, struct hapax_key *ret,
	struct hapax_error *err)
{
	enum hx_key_made made = hx_content_make(strategy, view, "", ret, err);

	if (made == HX_KEY_MADE)
		hx_key_next_run_id(strategy, ret);
	return made;
}

const struct hx_key_type hx_key_hybrid = {
	.name = "hybrid",
	.syntax = "hybrid",
	.summary = "like content, and a UUIDv7 that names the run",
	.flags = HX_KEY_TYPE_CONTENT,
	.parse = hx_key_read_uuids,
	.make = make,
};
