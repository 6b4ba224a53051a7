/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strategy_composite.c - composite: several values, joined without ambiguity.
 */
#include "key/part.h"

const struct hx_key_type hx_key_composite = {
	.name = "composite",
	.syntax = "composite:PATH,PATH...",
	.summary = "several values, joined without ambiguity",
	.flags = HX_KEY_TYPE_EMPTY,
	.parse = hx_key_read_paths,
	.make = hx_part_join,
};
