/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strategy_field.c - field: one value, unchanged.
 */
#include "base/error.h"
#include "key/part.h"

static enum hapax_status parse(
	struct hapax_key_strategy *strategy, struct hapax_bytes argument, struct hapax_error *err)
{
	enum hapax_status status = hx_key_read_paths(strategy, argument, err);

	if (status == HAPAX_OK && strategy->path_count != 1) {
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"field takes one path; use composite for several");
	}
	return status;
}

const struct hx_key_type hx_key_field = {
	.name = "field",
	.syntax = "field:PATH",
	.summary = "one value",
	.parse = parse,
	.make = hx_part_single,
};
