/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strategy_composite.c - composite: several values, joined without ambiguity.
 */
#include "key/key.h"
#include "key/part.h"

static enum hapax_status parse(
	struct hapax_key_strategy *strategy, struct hapax_bytes argument, struct hapax_error *err)
{
	return hx_key_read_paths(strategy, argument, err);
}

static enum hx_key_made make(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view, struct hapax_key *ret,
	struct hapax_error *err)
{
	return hx_part_join(
		view, strategy->paths, strategy->path_count, HX_PART_EMPTY_ALLOWED, ret, err);
}

const struct hx_key_type hx_key_composite = {
	.name = "composite",
	.syntax = "composite:PATH,PATH...",
	.summary = "several values, joined without ambiguity",
	.parse = parse,
	.make = make,
};
