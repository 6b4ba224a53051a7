/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_canonical.h - one text for each JSON value, to be hashed.
 *
 * Two texts that differ in white space, order of members, escapes or the way a number is written
 * have the same canonical text; two that differ in anything else never have. The text is JSON
 * itself and its own canonical form, except for Infinity.
 *
 * lossless: members in order of code points, no blanks, numbers as json_number.h
 * writes them, strings as UTF-8 with only ", \ and controls escaped.
 *
 * python: what json.dumps(json.loads(text), sort_keys=True) gives in Python 3.11,
 * for keys that were made by it. It is not lossless: Python reads 0.1 and
 * 0.1000000000000000055 as one number, 1 and 1.0 as two, and 1e400 as Infinity, which
 * is what it prints although that is not JSON. Integers that it refuses to read are
 * INVALID.
 *
 * Unicode is not normalized: e with an accent in one character and in two are different strings, as
 * they are for every program that reads the data.
 *
 * Threads: any; tree and out belong to the caller.
 */
#ifndef HX_JSON_CANONICAL_H
#define HX_JSON_CANONICAL_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

#include "wire/json/json_tree.h"

enum hx_json_dialect {
	HX_JSON_LOSSLESS = 0,
	HX_JSON_PYTHON = 1,
};

enum hx_json_select {
	HX_JSON_ALL = 0,    /* ignore marks */
	HX_JSON_MARKED = 1, /* what is KEPT, and not what is DROPPED */
	HX_JSON_REST = 2,   /* all except DROPPED */
};

/* Memory of the caller's that text is written to; it never grows. */
struct hx_json_target {
	unsigned char *data;
	size_t size;
	size_t capacity;
	bool is_short; /* something did not fit; what is there must not be used */
};

/* How much room a canonical text of this many bytes takes as a rule. */
size_t hx_json_canonical_usual(size_t text_size, enum hx_json_dialect dialect);

/*
 * Append the canonical text of node. LIMIT: it did not fit (out->is_short), or an exponent was too
 * large. INVALID: an integer that Python does not read. Messages name line and column.
 */
enum hapax_status hx_json_canonical_write(
	const struct hx_json_tree *tree, const struct hx_json_node *node,
	enum hx_json_dialect dialect, enum hx_json_select select, struct hx_json_target *out,
	struct hapax_error *err);

/* Would that text contain a scalar, and not only names and brackets? */
bool hx_json_canonical_has_value(const struct hx_json_tree *tree, enum hx_json_select select);

/*
 * The two ways to write a scalar, into memory that is large enough: for a string
 * HX_JSON_PYTHON_EXPANSION times its raw size and two quotes (lossless: once), for
 * a number its size and HX_JSON_NUMBER_TEXT_EXTRA. Return where the text ends; for
 * a number that has no text in this dialect NULL, and why.
 */
enum { HX_JSON_PYTHON_EXPANSION = 6 };

unsigned char *hx_json_python_string(struct hx_json_string string, unsigned char *to);
unsigned char *hx_json_lossless_number(
	struct hapax_bytes text, unsigned char *to, const char **ret_reason);
unsigned char *hx_json_python_integer(
	struct hapax_bytes text, unsigned char *to, const char **ret_reason);
unsigned char *hx_json_python_float(struct hapax_bytes text, unsigned char *to);

#endif
