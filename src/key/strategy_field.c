/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strategy_field.c - field: one value, as it is.
 */
#include "base/error.h"
#include "key/key.h"
#include "key/part.h"

static enum hapax_status parse(
	struct hapax_key_strategy *strategy, struct hapax_bytes argument, struct hapax_error *err)
{
	enum hapax_status status = hx_key_read_paths(strategy, argument, err);

	if (status == HAPAX_OK && strategy->path_count != 1) {
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "field took one path; composite takes several");
	}
	return status;
}

static enum hx_key_made make(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view, struct hapax_key *ret,
	struct hapax_error *err)
{
	const struct hx_key_path *path = &strategy->paths[0];
	struct hapax_bytes text = {NULL, 0};
	struct hx_key_part part;
	enum hx_key_made made = hx_view_part(view, path, &part, err);

	if (made == HX_KEY_MADE)
		made = hx_part_text(view, path, &part, &text, err);
	if (made != HX_KEY_MADE)
		return made;
	if (text.size == 0) {
		(void)hx_error_set(err, HAPAX_ERR_INVALID, 0, "'%s' was empty", path->text);
		return HX_KEY_MISSING;
	}
	hx_key_set_text(ret, text);
	return HX_KEY_MADE;
}

const struct hx_key_type hx_key_field = {
	.name = "field",
	.syntax = "field:PATH",
	.summary = "one value",
	.parse = parse,
	.make = make,
};

/* A header is a field that has its own word: X-Id, not header.X-Id. */
static enum hapax_status parse_header(
	struct hapax_key_strategy *strategy, struct hapax_bytes argument, struct hapax_error *err)
{
	char text[HX_JSON_PATH_SIZE_MAX + 1];
	const char *texts[] = {text};
	int size = snprintf(
		text, sizeof(text), "header.%.*s", (int)(argument.size < sizeof(text) ? argument.size : 0),
		argument.data == NULL ? "" : (const char *)argument.data);

	if (argument.size == 0)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "header needs a name, as in header:X-Id");
	if (argument.size >= sizeof(text) || size >= (int)sizeof(text))
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "the name of the header was too long");
	strategy->path_count = 1;
	return hx_key_new_header(strategy, texts[0], err);
}

const struct hx_key_type hx_key_header = {
	.name = "header",
	.syntax = "header:NAME",
	.summary = "one header",
	.parse = parse_header,
	.make = make,
};
