/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strategy_header.c - header: one header, unchanged.
 */
#include <string.h>

#include "base/error.h"
#include "key/part.h"

/* The path is header.NAME, even if paths are relative to the data. */
static enum hapax_status parse(
	struct hapax_key_strategy *strategy, struct hapax_bytes argument, struct hapax_error *err)
{
	static const char prefix[] = "header.";
	char text[HX_JSON_PATH_SIZE_MAX + 1];
	const char *texts[] = {text};
	size_t prefix_size = sizeof(prefix) - 1;

	if (argument.size == 0)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "header needs a name, as in header:X-Id");
	if (argument.size > sizeof(text) - sizeof(prefix))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the name of the header is too long");
	memcpy(text, prefix, prefix_size);
	memcpy(text + prefix_size, argument.data, argument.size);
	text[prefix_size + argument.size] = '\0';
	strategy->path_count = 1;
	return hx_key_new_paths(texts, 1, 0, &strategy->paths, err);
}

const struct hx_key_type hx_key_header = {
	.name = "header",
	.syntax = "header:NAME",
	.summary = "one header",
	.parse = parse,
	.make = hx_part_single,
};
