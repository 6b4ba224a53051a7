/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - a strict pull tokenizer for JSON (RFC 8259).
 *
 * The caller asks for one token after the other; tokens point into the text, and nothing is
 * allocated or copied. Ambiguous text, which two readers could read differently, is refused: bytes
 * that are not UTF-8, unpaired surrogates, a byte order mark, and, when the caller lends memory for
 * the names, members that occur twice. Messages begin with "line L, column C: "; both count from 1,
 * and columns count characters.
 *
 * Only HX_JSON_END proves that the text is valid JSON: do not act on it before.
 *
 * Threads: one at a time.
 */
#ifndef HX_JSON_H
#define HX_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

enum {
	/* Far above what people nest; bounds every stack that a reader needs. */
	HX_JSON_DEPTH_MAX = 128,

	/* Four times the largest body that a door takes; offsets fit in 32 bits. */
	HX_JSON_SIZE_MAX = 64 * 1024 * 1024,
};

enum hx_json_type {
	HX_JSON_END, /* of the whole text */
	HX_JSON_OBJECT,
	HX_JSON_OBJECT_END,
	HX_JSON_ARRAY,
	HX_JSON_ARRAY_END,
	HX_JSON_STRING,
	HX_JSON_NUMBER,
	HX_JSON_TRUE,
	HX_JSON_FALSE,
	HX_JSON_NULL,
};

/* Parts of a number besides sign and digits, ORed; 0: it is an integer. */
enum hx_json_number_form {
	HX_JSON_FRACTION = 1 << 0,
	HX_JSON_EXPONENT = 1 << 1,
};

/* A value, with its name if it is a member; or the end of a container or the text. */
struct hx_json_token {
	uint32_t name; /* offset of its first byte, after the quote; 0: not a member */
	uint32_t name_size;
	uint32_t text;     /* offset of its first byte; of a string, after the quote */
	uint32_t size;     /* in bytes, of a string without quotes; of a container 1 */
	uint8_t type;      /* enum hx_json_type */
	bool name_escaped; /* has a backslash; see json_string.h */
	uint8_t escaped;   /* a string has a backslash; a number: enum hx_json_number_form */
	uint8_t marks;     /* 0; for json_tree.h */
};

/* One member name of an object that is still open, or was just closed. */
struct hx_json_name {
	uint64_t prefix; /* hx_json_string_prefix(); after sorting, a later piece */
	uint32_t text;
	uint32_t size;
	uint32_t tag; /* the caller's own: the index of this member */
	uint32_t escaped  : 1;
	uint32_t ordered  : 1;  /* every name up to here was larger than the one before */
	uint32_t is_first : 1;  /* json_name.c: among those that are equal so far */
	uint32_t place    : 29; /* json_name.c: where the next piece begins; 0: unknown */
};

struct hx_json {
	const unsigned char *data;
	const unsigned char *end;
	const unsigned char *at;
	enum hapax_status refusal; /* the status of a failure: INVALID until a limit is met */
	bool is_first;             /* nothing was read yet on this level */
	bool in_object;            /* the innermost open container is an object */
	uint32_t depth;
	struct hx_json_name *names;
	size_t name_count;
	size_t name_max;
	const struct hx_json_name *twice;           /* a name that was there before; NULL: none */
	size_t closed_count;                        /* names of the object that just ended */
	uint32_t name_base[HX_JSON_DEPTH_MAX + 1];  /* where the names of each level begin */
	uint64_t is_object[HX_JSON_DEPTH_MAX / 64]; /* a bit for each level but the innermost */
};

/*
 * Begin to read text, which stays valid as long as json is used. names is memory for the member
 * names of all objects that are open at one time, each its own entry; with NULL, duplicate members
 * are not detected. LIMIT above HX_JSON_SIZE_MAX.
 */
enum hapax_status hx_json_init(
	struct hx_json *json, struct hapax_bytes text, struct hx_json_name *names, size_t name_max,
	struct hapax_error *err);

/*
 * The next token. INVALID when the text is not JSON, LIMIT when it is nested too
 * deep or the names do not fit. After an error json must not be used again.
 *
 * After HX_JSON_OBJECT_END the names of that object, if they are kept, stand in
 * order of their code points in hx_json_closed_names() until the next call.
 */
enum hapax_status hx_json_next(
	struct hx_json *json, struct hx_json_token *ret, struct hapax_error *err);

static inline struct hx_json_name *hx_json_closed_names(struct hx_json *json, size_t *ret_count)
{
	*ret_count = json->closed_count;
	return json->names == NULL ? NULL : json->names + json->name_count;
}

/* Give the name of the member that was just returned a tag, to find it again. */
static inline void hx_json_tag_name(struct hx_json *json, uint32_t tag)
{
	if (json->name_count > 0)
		json->names[json->name_count - 1].tag = tag;
}

/* The line and column of a byte of text, from 1. Walks the text: for errors only. */
void hx_json_place(struct hapax_bytes text, size_t offset, size_t *ret_line, size_t *ret_column);

/* Set err to "line L, column C: " and what format says. Returns status. */
__attribute__((format(printf, 5, 6))) enum hapax_status hx_json_error(
	struct hapax_error *err, enum hapax_status status, struct hapax_bytes text, size_t offset,
	const char *format, ...);

#endif
