/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_option.c - options of a source's URL.
 */
#include "source/source_option.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/percent.h"
#include "wire/resp/resp.h"

static void leave(char *rest, size_t rest_size, char joint, const struct hx_option *option)
{
	size_t used = strlen(rest);

	/* A name without a value is an error of whoever reads the rest; it is shown as it came. */
	(void)snprintf(
		rest + used, rest_size - used, "%c%.*s%s%.*s", joint, (int)option->name.size,
		(const char *)option->name.data, option->value.data == NULL ? "" : "=",
		(int)option->value.size,
		option->value.data == NULL ? "" : (const char *)option->value.data);
}

enum hapax_status hx_options_take(
	const char *query, hx_option_take_fn *take, void *place, char *rest, size_t rest_size,
	struct hapax_error *err)
{
	struct hapax_bytes left = hapax_bytes_from_text(query);
	struct hx_option option;
	char joint = '?';

	while (hx_query_next(&left, &option.name, &option.value)) {
		bool is_ours = true;
		enum hapax_status status = take(place, &option, &is_ours, err);

		if (status != HAPAX_OK)
			return status;
		if (is_ours)
			continue;
		leave(rest, rest_size, joint, &option);
		joint = '&';
	}
	return HAPAX_OK;
}

bool hx_option_is(const struct hx_option *option, const char *name)
{
	return hx_bytes_equal(option->name, hapax_bytes_from_text(name));
}

bool hx_option_says(const struct hx_option *option, const char *value)
{
	return hx_bytes_equal(option->value, hapax_bytes_from_text(value));
}

bool hx_option_text(const struct hx_option *option, char *out, size_t out_size)
{
	return option->value.size > 0 &&
		hx_percent_decode_text(option->value.data, option->value.size, out, out_size);
}

bool hx_option_number(const struct hx_option *option, int64_t max, int64_t *ret_number)
{
	return hx_resp_parse_integer(option->value, ret_number) && *ret_number >= 1 &&
		*ret_number <= max;
}
