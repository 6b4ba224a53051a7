/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strategy_event_id.c - event-id: source and id of a CloudEvent.
 *
 * An id is unique only within its source, so the key contains both. They are joined like the parts
 * of a composite: slashes and colons in a source cannot be mistaken for the separator.
 */
#include "key/part.h"

static enum hapax_status parse(
	struct hapax_key_strategy *strategy, struct hapax_bytes argument, struct hapax_error *err)
{
	static const char *const of_event[] = {"attr.source", "attr.id"};
	static const char *const of_document[] = {"source", "id"};
	bool relative = (strategy->flags & HAPAX_KEY_RELATIVE) != 0;
	enum hapax_status status = hx_key_refuse_argument(strategy, argument, err);

	if (status != HAPAX_OK)
		return status;
	strategy->path_count = 2;
	return hx_key_new_paths(
		relative ? of_document : of_event, 2, hx_key_paths_flags(strategy),
		&strategy->paths, err);
}

/* Both must have at least one character (CloudEvents 1.0.2, 3.1.1). */
const struct hx_key_type hx_key_event_id = {
	.name = "event-id",
	.syntax = "event-id",
	.summary = "source and id of a CloudEvent",
	.parse = parse,
	.make = hx_part_join,
};
