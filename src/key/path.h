/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path.h - a place in an event: data.order.id, attr.type, header.X-Id, meta.topic.
 *
 * Threads: any; a path is immutable after parsing.
 */
#ifndef HX_KEY_PATH_H
#define HX_KEY_PATH_H

#include <stdbool.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

#include "wire/json/json_path.h"

/* Parts of a key, or paths to include or exclude: more is a mistake. */
enum { HX_KEY_PATHS_MAX = 64 };

enum hx_key_source {
	HX_KEY_DATA,
	HX_KEY_ATTRIBUTE,
	HX_KEY_HEADER,
	HX_KEY_META,
};

struct hx_key_path {
	enum hx_key_source source;
	struct hx_json_path json; /* source DATA */
	const char *name;         /* other sources: points into text */
	char text[HX_JSON_PATH_SIZE_MAX + 1];
};

/*
 * relative: the text is a path into the data, whatever its prefix. wildcards: it may match several
 * places. INVALID: the message names the path. path must not move.
 */
enum hapax_status hx_key_path_parse(
	struct hx_key_path *path, struct hapax_bytes text, bool relative, bool wildcards,
	struct hapax_error *err);

#endif
