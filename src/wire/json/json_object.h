/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_object.h - a JSON object into a struct, by a table of its members.
 *
 * The table is data: requests are read by it, and their description is generated from it. Members
 * that are not in it are refused, with a suggestion; so are values of a wrong type or out of range.
 * Messages begin with "line L, column C: ".
 *
 * Bytes that need not be text have two members, of which one may be given: NAME is text,
 * NAME_base64 any bytes.
 *
 * Threads: one at a time.
 */
#ifndef HX_JSON_OBJECT_H
#define HX_JSON_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

#include "wire/json/json_tree.h"
#include "wire/json/json_write.h"

enum hx_json_kind {
	/* What is stored at offset. */
	HX_JSON_FIELD_TEXT,    /* struct hapax_bytes of min to max bytes */
	HX_JSON_FIELD_BYTES,   /* the same; there is NAME_base64, too */
	HX_JSON_FIELD_HEX,     /* unsigned char[max]: min to max bytes in lower-case digits */
	HX_JSON_FIELD_INTEGER, /* int64_t */
	HX_JSON_FIELD_BOOLEAN, /* bool */
	HX_JSON_FIELD_CHOICE,  /* int: min + its index in choices */
	HX_JSON_FIELD_TIME,    /* int64_t: milliseconds of an RFC 3339 text; null: INT64_MAX */
	HX_JSON_FIELD_OBJECT,  /* a struct, by section */
};

enum hx_json_field_flag {
	HX_JSON_FIELD_NULLABLE = 1 << 0, /* null: as if absent; of an INTEGER INT64_MAX */
	HX_JSON_FIELD_CONTROLS = 1 << 1, /* TEXT, BYTES: controls may stand in the text */
	HX_JSON_FIELD_UTF8 = 1 << 2,     /* BYTES: UTF-8 without NUL, also in NAME_base64 */
};

/* In uses and required: in every use. */
#define HX_JSON_FIELD_ALWAYS UINT32_MAX

struct hx_json_section;

struct hx_json_field {
	const char *name; /* NULL ends a table */
	enum hx_json_kind kind;
	unsigned flags;    /* enum hx_json_field_flag */
	unsigned uses;     /* bits of the caller's: in which uses of the section it may stand */
	unsigned required; /* and in which of them it must */
	size_t offset;
	size_t size_offset; /* HEX: uint32_t, the number of bytes; 0: not stored */
	int64_t min;
	int64_t max;
	const char *const *choices; /* ends with NULL */
	const struct hx_json_section *section;
	const char *doc; /* a sentence: no capital, no full stop */
};

struct hx_json_section {
	const char *name; /* for messages: "a result" */
	const struct hx_json_field *fields;
	size_t given_offset; /* uint64_t: bit n is set when row n was given */
};

/* Where a text is read from, and where strings with escapes are decoded to. */
struct hx_json_reader {
	struct hx_json_tree tree;
	struct hapax_buf scratch; /* of the tree */
	struct hapax_buf strings; /* as large as the text, so that nothing in it moves */
};

/*
 * scratch_max: of the tree, see hx_json_tree_scratch_usual(). Its memory is taken from budget;
 * NULL: from none. Allocates nothing.
 */
void hx_json_reader_init(
	struct hx_json_reader *reader, size_t scratch_max, struct hx_budget *budget);
void hx_json_reader_done(struct hx_json_reader *reader);

/*
 * Read a text, which stays where it is. INVALID: it is not JSON, and the message has the
 * place. LIMIT, NO_MEMORY: too large or too deep.
 */
enum hapax_status hx_json_reader_read(
	struct hx_json_reader *reader, struct hapax_bytes text, struct hapax_error *err);

/*
 * Read the object at node into out; missing members stay unchanged. use: one bit; rows without it
 * do not count. INVALID: it is not such an object.
 */
enum hapax_status hx_json_object_read(
	struct hx_json_reader *reader, const struct hx_json_node *node,
	const struct hx_json_section *section, unsigned use, void *out, struct hapax_error *err);

/* Was the row of that name given? */
bool hx_json_object_has(const struct hx_json_section *section, const void *out, const char *name);

#endif
