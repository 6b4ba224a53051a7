/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strategy_aggregate_version.c - aggregate-version: type, id and version.
 *
 * A missing version is an error. If it counted as 0, all events of an aggregate would share a key,
 * and all but the first would be lost. The same holds for an empty type or id.
 */
#include "base/error.h"
#include "key/part.h"

enum { PART_COUNT = 3, VERSION = 2 };

static enum hapax_status parse(
	struct hapax_key_strategy *strategy, struct hapax_bytes argument, struct hapax_error *err)
{
	static const char *const of_event[] = {
		"data.aggregateType", "data.aggregateId", "data.version"};
	static const char *const of_document[] = {"aggregateType", "aggregateId", "version"};
	bool relative = (strategy->flags & HAPAX_KEY_RELATIVE) != 0;
	enum hapax_status status;

	if (argument.data == NULL) {
		strategy->path_count = PART_COUNT;
		return hx_key_new_paths(
			relative ? of_document : of_event, PART_COUNT, hx_key_paths_flags(strategy),
			&strategy->paths, err);
	}
	status = hx_key_read_paths(strategy, argument, err);
	if (status == HAPAX_OK && strategy->path_count != PART_COUNT) {
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"aggregate-version needs 3 paths, for type, id and version, not %zu",
			strategy->path_count);
	}
	return status;
}

static bool is_whole_number(struct hapax_bytes text)
{
	const char *data = text.data;

	if (text.size == 0 || (text.size > 1 && data[0] == '0'))
		return false;
	for (size_t i = 0; i < text.size; i++) {
		if (data[i] < '0' || data[i] > '9')
			return false;
	}
	return true;
}

static enum hx_key_made check_version(
	struct hx_key_view *view, const struct hx_key_path *path, struct hapax_error *err)
{
	struct hapax_bytes text = {NULL, 0};
	enum hx_key_made made = hx_part_text(view, path, &text, err);

	if (made != HX_KEY_MADE || is_whole_number(text))
		return made;
	(void)hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"cannot use '%s' as a version: it must be a whole number", path->text);
	return HX_KEY_MISSING;
}

static enum hx_key_made make(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view, struct hapax_key *ret,
	struct hapax_error *err)
{
	enum hx_key_made made = hx_part_join(strategy, view, ret, err);

	return made == HX_KEY_MADE ? check_version(view, &strategy->paths[VERSION], err) : made;
}

const struct hx_key_type hx_key_aggregate_version = {
	.name = "aggregate-version",
	.syntax = "aggregate-version[:TYPE,ID,VERSION]",
	.summary = "aggregateType, aggregateId and version, or the given paths",
	.parse = parse,
	.make = make,
};
