/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path.c - paths into an event.
 */
#include "key/path.h"

#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/utf8.h"

static const struct {
	const char *prefix;
	enum hx_key_source source;
} sources[] = {
	{"data", HX_KEY_DATA},
	{"attr", HX_KEY_ATTRIBUTE},
	{"header", HX_KEY_HEADER},
	{"meta", HX_KEY_META},
};

enum { SOURCE_COUNT = HX_COUNT(sources) };

/* "data" ends at the end, a dot, a slash, a bracket or a bar; the others end at a dot. */
static size_t prefix_of(const char *text, enum hx_key_source *ret_source)
{
	for (size_t i = 0; i < SOURCE_COUNT; i++) {
		size_t size = strlen(sources[i].prefix);
		char next;

		if (strncmp(text, sources[i].prefix, size) != 0)
			continue;
		next = text[size];
		*ret_source = sources[i].source;
		if (next == '.')
			return size + 1;
		if (sources[i].source == HX_KEY_DATA &&
		    (next == '\0' || next == '/' || next == '[' || next == '|'))
			return size;
	}
	return 0;
}

static enum hapax_status parse_name(
	struct hx_key_path *path, const char *name, struct hapax_error *err)
{
	static const char *const known[] = {
		"topic", "partition", "offset", "key", "origin", "time"};

	path->name = name;
	if (*name == '\0')
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"invalid path '%s': a name must follow at the end", path->text);
	if (path->source != HX_KEY_META)
		return HAPAX_OK;
	for (size_t i = 0; i < HX_COUNT(known); i++) {
		if (strcmp(name, known[i]) == 0)
			return HAPAX_OK;
	}
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"invalid path '%s': use meta.topic, meta.partition, meta.offset, meta.key, "
		"meta.origin or meta.time",
		path->text);
}

static enum hapax_status parse_data(
	struct hx_key_path *path, struct hapax_bytes rest, bool wildcards, struct hapax_error *err)
{
	enum hapax_status status = hx_json_path_parse(&path->json, rest, err);

	if (status == HAPAX_OK && !wildcards && !path->json.is_single) {
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"invalid path '%s': a part of a key must be one value, without wildcards",
			path->text);
	}
	return status;
}

enum hapax_status hx_key_path_parse(
	struct hx_key_path *path, struct hapax_bytes text, bool relative, bool wildcards,
	struct hapax_error *err)
{
	size_t prefix;

	if (text.size == 0)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "invalid path '': it is empty");
	if (text.size > HX_JSON_PATH_SIZE_MAX || memchr(text.data, '\0', text.size) != NULL) {
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"invalid path of %zu bytes: the limit is %d, and a NUL is not allowed",
			text.size, HX_JSON_PATH_SIZE_MAX);
	}
	if (!hx_utf8_is_valid(text))
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "invalid key path: it is not UTF-8");
	memcpy(path->text, text.data, text.size);
	path->text[text.size] = '\0';
	path->name = NULL;
	path->source = HX_KEY_DATA;
	if (relative)
		return parse_data(path, text, wildcards, err);
	prefix = prefix_of(path->text, &path->source);
	if (prefix == 0) {
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"invalid path '%s': it must begin with data., attr., header. or meta.",
			path->text);
	}
	if (path->source != HX_KEY_DATA)
		return parse_name(path, path->text + prefix, err);
	if (path->text[prefix - 1] == '.' &&
	    (path->text[prefix] == '\0' || path->text[prefix] == '|')) {
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "invalid path '%s': a name must follow %s",
			path->text, path->text[prefix] == '\0' ? "at the end" : "data.");
	}
	return parse_data(path, hx_bytes(path->text + prefix, text.size - prefix), wildcards, err);
}
