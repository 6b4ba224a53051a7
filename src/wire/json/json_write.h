/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_write.h - write JSON into a buffer, a member at a time.
 *
 *	hx_json_write_init(&json, out);
 *	hx_json_write_begin(&json, NULL, '{');
 *	hx_json_write_text(&json, "title", "Duplicate event");
 *	hx_json_write_end(&json, '}');
 *	status = json.status;
 *
 * name is the member's name within an object, which is written as it is, and NULL within
 * an array or at the top. The first thing that does not fit is remembered, so that only
 * the end has to be asked. What is written is always well-formed: controls are escaped,
 * and what is not UTF-8 becomes U+FFFD.
 *
 * Threads: one at a time.
 */
#ifndef HX_JSON_WRITE_H
#define HX_JSON_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

enum { HX_JSON_WRITE_DEPTH_MAX = 63 };

struct hx_json_write {
	struct hapax_buf *out;
	enum hapax_status status; /* OK, or what out said first */
	unsigned depth;
	uint64_t has_members; /* bit n: at depth n a comma is due */
};

void hx_json_write_init(struct hx_json_write *json, struct hapax_buf *out);

/* bracket: '{' or '['; and its pair. */
void hx_json_write_begin(struct hx_json_write *json, const char *name, char bracket);
void hx_json_write_end(struct hx_json_write *json, char bracket);

void hx_json_write_text(struct hx_json_write *json, const char *name, const char *value);
void hx_json_write_bytes(struct hx_json_write *json, const char *name, struct hapax_bytes value);
void hx_json_write_unsigned(struct hx_json_write *json, const char *name, uint64_t value);
void hx_json_write_signed(struct hx_json_write *json, const char *name, int64_t value);
void hx_json_write_boolean(struct hx_json_write *json, const char *name, bool value);

/* value is finite; with at most that many digits after the point, and none that are not needed. */
void hx_json_write_number(
	struct hx_json_write *json, const char *name, double value, unsigned digits);

/* The name of a member whose value is appended to out by other means. */
void hx_json_write_name(struct hx_json_write *json, const char *name);

/* Append a string with its quotes, in whatever text. */
enum hapax_status hx_json_write_string(struct hapax_buf *out, struct hapax_bytes value);

#endif
