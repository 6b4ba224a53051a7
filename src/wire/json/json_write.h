/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_write.h - the writer of JSON: a member at a time, into a buffer or to the standard output.
 *
 *	hx_json_write_init(&json, out);
 *	hx_json_write_begin(&json, NULL, '{');
 *	hx_json_write_text(&json, "title", "Duplicate event");
 *	hx_json_write_end(&json, '}');
 *	status = json.status;
 *
 * name is the member's name within an object, which is written as it is, and NULL within an array
 * or at the top. The first failure is remembered, so that callers check only the end. The output is
 * always well-formed: controls are escaped, and invalid UTF-8 becomes U+FFFD.
 *
 * A document goes to a buffer, for programs, or through a sink, for people and their terminals:
 *
 *	                           buffer                       sink
 *	characters that hide       as they are                  escaped (hx_utf8_is_hidden())
 *	short escapes              \b \f \n \r \t               \n \t
 *	hx_json_write_any, _body   base64 also for controls     base64 only for what is not UTF-8
 *	the end of a document      nothing                      a newline
 *
 * Threads: one at a time.
 */
#ifndef HX_JSON_WRITE_H
#define HX_JSON_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

enum { HX_JSON_WRITE_DEPTH_MAX = 63, HX_JSON_WRITE_HEX_MAX = 32 };

/* Takes the next bytes of a document, and remembers a failure by itself. */
typedef void hx_json_write_sink_fn(void *context, const void *data, size_t size);

struct hx_json_write {
	struct hapax_buf *out;       /* NULL: there is a sink */
	hx_json_write_sink_fn *sink; /* NULL: there is a buffer */
	void *context;               /* of the sink */
	enum hapax_status status;    /* OK, or the first failure of out */
	unsigned depth;
	uint64_t has_members; /* bit n: at depth n a comma is due */
};

void hx_json_write_init(struct hx_json_write *json, struct hapax_buf *out);
void hx_json_write_init_sink(
	struct hx_json_write *json, hx_json_write_sink_fn *sink, void *context);

/* bracket: '{' or '['; and its pair. */
void hx_json_write_begin(struct hx_json_write *json, const char *name, char bracket);
void hx_json_write_end(struct hx_json_write *json, char bracket);

void hx_json_write_text(struct hx_json_write *json, const char *name, const char *value);
void hx_json_write_bytes(struct hx_json_write *json, const char *name, struct hapax_bytes value);
void hx_json_write_unsigned(struct hx_json_write *json, const char *name, uint64_t value);
void hx_json_write_signed(struct hx_json_write *json, const char *name, int64_t value);
void hx_json_write_boolean(struct hx_json_write *json, const char *name, bool value);
void hx_json_write_null(struct hx_json_write *json, const char *name);

/* A time as RFC 3339 in UTC; INT64_MAX, which never comes: null. */
void hx_json_write_time(struct hx_json_write *json, const char *name, int64_t ms);

/* Bytes, at most HX_JSON_WRITE_HEX_MAX, in lower-case digits. */
void hx_json_write_hex(struct hx_json_write *json, const char *name, const void *data, size_t size);

/*
 * Bytes as a member NAME, or NAME_base64 if they are not UTF-8 or contain controls (in a body,
 * controls other than line ends).
 */
void hx_json_write_any(struct hx_json_write *json, const char *name, struct hapax_bytes value);
void hx_json_write_body(struct hx_json_write *json, const char *name, struct hapax_bytes value);

/* value is finite; with at most that many digits after the point, and none that are not needed. */
void hx_json_write_number(
	struct hx_json_write *json, const char *name, double value, unsigned digits);

/* A value that is JSON already. */
void hx_json_write_raw(struct hx_json_write *json, const char *name, struct hapax_bytes value);

/* The name of a member whose value is appended to out, or given to the sink, by other means. */
void hx_json_write_name(struct hx_json_write *json, const char *name);

/* Append a string with its quotes, to any text. If there is no room, out is unchanged. */
enum hapax_status hx_json_write_string(struct hapax_buf *out, struct hapax_bytes value);

#endif
