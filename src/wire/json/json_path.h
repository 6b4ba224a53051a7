/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_path.h - where in a JSON value: a JSON Pointer, or names with dots.
 *
 * A path that begins with / is a JSON Pointer (RFC 6901): /customer/id. Any other
 * is written with dots: customer.id, items.0.sku, items[0].sku. A digit step is an
 * index in an array and a name in an object. Two steps stand for more than one
 * place: * for every item of an array and every member of an object, and ** for the
 * place itself and everything below it, at most once in a path.
 *
 * The step |json goes from a string to the JSON text in it: body|json.id, /body|json/id. The part
 * after it is a path of either form.
 *
 * A name that holds a dot, a bracket, a star, a bar or a backslash is written with a backslash
 * before it; in a pointer ~0 is ~, ~1 is / and, our additions, ~2 is a star and ~3 a bar. A star or
 * a bar that is neither escaped nor a whole step is refused.
 *
 * Threads: any; a path does not change after it was parsed.
 */
#ifndef HX_JSON_PATH_H
#define HX_JSON_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

#include "wire/json/json_tree.h"

enum {
	/* Deeper than what people name in a setting. */
	HX_JSON_PATH_STEPS_MAX = 32,
	/* A line of a configuration file. */
	HX_JSON_PATH_SIZE_MAX = 255,
	/* Strings in strings: a queue that carries a topic that carries an event. */
	HX_JSON_PATH_NESTED_MAX = 4,
};

enum hx_json_step_kind {
	HX_JSON_STEP_NAME,  /* or index, if it is_index and there is an array */
	HX_JSON_STEP_EACH,  /* * */
	HX_JSON_STEP_BELOW, /* ** */
	HX_JSON_STEP_JSON,  /* |json */
};

struct hx_json_step {
	uint8_t kind; /* enum hx_json_step_kind */
	bool is_index;
	uint16_t name; /* offset into names */
	uint16_t name_size;
	uint32_t index; /* JSON: bytes of text from its bar to the end */
};

struct hx_json_path {
	size_t step_count; /* 0: the whole value */
	bool is_single;    /* neither * nor ** */
	uint8_t nested;    /* |json steps */
	struct hx_json_step steps[HX_JSON_PATH_STEPS_MAX];
	char names[HX_JSON_PATH_SIZE_MAX];
};

/* Empty text is the whole value. INVALID: the message says why and at which byte. */
enum hapax_status hx_json_path_parse(
	struct hx_json_path *path, struct hapax_bytes text, struct hapax_error *err);

/* The value at a path that is_single, or NULL. A step |json needs a string with a child. */
const struct hx_json_node *hx_json_path_find(
	const struct hx_json_path *path, const struct hx_json_tree *tree);

/*
 * Mark the values at the path as KEPT, and those that lead there as PART. False: a value on the way
 * was missing, even if only in one of many items; ** must match once. An empty array lacks nothing.
 */
bool hx_json_path_keep(const struct hx_json_path *path, struct hx_json_tree *tree);

/* Mark the values at the path as DROPPED. They need not exist. */
void hx_json_path_drop(const struct hx_json_path *path, struct hx_json_tree *tree);

/* Mark the values at the path as CHOSEN. False as hx_json_path_keep(). */
bool hx_json_path_choose(const struct hx_json_path *path, struct hx_json_tree *tree);

#endif
