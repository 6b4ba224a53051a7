/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_out.h - write JSON, a member at a time, straight to the output.
 *
 * name is the member's name within an object and NULL within an array or at the
 * top. What is written is always well-formed UTF-8: control characters are escaped,
 * and bytes that are not UTF-8 go out as base64 under a name that says so.
 */
#ifndef HX_CLI_PRINT_JSON_OUT_H
#define HX_CLI_PRINT_JSON_OUT_H

#include <stdint.h>

#include <hapax/bytes.h>

#include "cli/print/out.h"

enum { HX_JSON_OUT_DEPTH_MAX = 32 };

struct hx_json_out {
	struct hx_out *out;
	unsigned depth;
	uint64_t has_members; /* bit n: at depth n a comma is due */
};

void hx_json_out_init(struct hx_json_out *json, struct hx_out *out);

/* One document per line: ends the line when the outermost value is closed. */
void hx_json_out_object_begin(struct hx_json_out *json, const char *name);
void hx_json_out_object_end(struct hx_json_out *json);
void hx_json_out_array_begin(struct hx_json_out *json, const char *name);
void hx_json_out_array_end(struct hx_json_out *json);

/* value must be UTF-8. */
void hx_json_out_text(struct hx_json_out *json, const char *name, const char *value);

/* As a string under name if it is UTF-8, else as base64 under <name>_base64. */
void hx_json_out_bytes(struct hx_json_out *json, const char *name, struct hapax_bytes value);

void hx_json_out_unsigned(struct hx_json_out *json, const char *name, uint64_t value);
void hx_json_out_signed(struct hx_json_out *json, const char *name, int64_t value);

/* part / (part + rest) to four digits; null when both are 0. */
void hx_json_out_share(struct hx_json_out *json, const char *name, uint64_t part, uint64_t rest);

/* A time as RFC 3339 in UTC; null when it never comes. */
void hx_json_out_time(struct hx_json_out *json, const char *name, int64_t ms);

void hx_json_out_boolean(struct hx_json_out *json, const char *name, bool value);
void hx_json_out_null(struct hx_json_out *json, const char *name);

#endif
