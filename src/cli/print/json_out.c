/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_out.c - write JSON, a member at a time.
 */
#include "cli/print/json_out.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include <hapax/record.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "wire/base64.h"

void hx_json_out_init(struct hx_json_out *json, struct hx_out *out)
{
	*json = (struct hx_json_out){.out = out};
}

/* As UTF-16 has it: two of them above U+FFFF. */
static void write_escape(struct hx_out *out, uint32_t code)
{
	if (code > 0xffff) {
		hx_out_printf(out, "\\u%04x", (unsigned)(0xd7c0 + (code >> 10)));
		code = 0xdc00 + (code & 0x3ff);
	}
	hx_out_printf(out, "\\u%04x", (unsigned)code);
}

/* One character of a string; at the front of text, which is UTF-8. Returns its bytes. */
static size_t write_character(struct hx_out *out, struct hapax_bytes text)
{
	uint32_t code = 0;
	size_t size = hx_utf8_size(text, &code);

	assert(size > 0);
	if (code == '"' || code == '\\')
		hx_out_printf(out, "\\%c", (char)code);
	else if (code == '\n')
		hx_out_text(out, "\\n");
	else if (code == '\t')
		hx_out_text(out, "\\t");
	else if (hx_utf8_is_control(code) || hx_utf8_is_hidden(code))
		/* JSON allows all but C0 as they are, but output may land on a terminal. */
		write_escape(out, code);
	else
		hx_out_write(out, text.data, size);
	return size;
}

static void write_string(struct hx_out *out, struct hapax_bytes text)
{
	const unsigned char *data = text.data;

	hx_out_text(out, "\"");
	for (size_t at = 0; at < text.size;)
		at += write_character(out, hx_bytes(data + at, text.size - at));
	hx_out_text(out, "\"");
}

static void write_base64(struct hx_out *out, struct hapax_bytes bytes)
{
	const unsigned char *data = bytes.data;
	char text[1024];
	size_t step = sizeof(text) / 4 * 3;

	hx_out_text(out, "\"");
	for (size_t at = 0; at < bytes.size; at += step) {
		size_t size = bytes.size - at < step ? bytes.size - at : step;

		hx_base64_encode(hx_bytes(data + at, size), text);
		hx_out_write(out, text, hx_base64_size(size));
	}
	hx_out_text(out, "\"");
}

/* The comma and the name before a value; suffix is added to the name. */
static void begin_value(struct hx_json_out *json, const char *name, const char *suffix)
{
	uint64_t bit = UINT64_C(1) << json->depth;

	if (json->depth > 0) {
		if (json->has_members & bit)
			hx_out_text(json->out, ",");
		json->has_members |= bit;
	}
	if (name != NULL)
		hx_out_printf(json->out, "\"%s%s\":", name, suffix);
}

static void open_value(struct hx_json_out *json, const char *name, const char *bracket)
{
	begin_value(json, name, "");
	hx_out_text(json->out, bracket);
	json->depth++;
	assert(json->depth < HX_JSON_OUT_DEPTH_MAX);
	json->has_members &= ~(UINT64_C(1) << json->depth);
}

static void close_value(struct hx_json_out *json, const char *bracket)
{
	assert(json->depth > 0);
	json->depth--;
	hx_out_text(json->out, bracket);
	if (json->depth == 0)
		hx_out_text(json->out, "\n");
}

void hx_json_out_object_begin(struct hx_json_out *json, const char *name)
{
	open_value(json, name, "{");
}

void hx_json_out_object_end(struct hx_json_out *json)
{
	close_value(json, "}");
}

void hx_json_out_array_begin(struct hx_json_out *json, const char *name)
{
	open_value(json, name, "[");
}

void hx_json_out_array_end(struct hx_json_out *json)
{
	close_value(json, "]");
}

void hx_json_out_text(struct hx_json_out *json, const char *name, const char *value)
{
	begin_value(json, name, "");
	write_string(json->out, hapax_bytes_from_text(value));
}

void hx_json_out_bytes(struct hx_json_out *json, const char *name, struct hapax_bytes value)
{
	if (hx_utf8_is_valid(value)) {
		begin_value(json, name, "");
		write_string(json->out, value);
	} else {
		begin_value(json, name, "_base64");
		write_base64(json->out, value);
	}
}

void hx_json_out_unsigned(struct hx_json_out *json, const char *name, uint64_t value)
{
	begin_value(json, name, "");
	hx_out_printf(json->out, "%" PRIu64, value);
}

void hx_json_out_signed(struct hx_json_out *json, const char *name, int64_t value)
{
	begin_value(json, name, "");
	hx_out_printf(json->out, "%" PRId64, value);
}

void hx_json_out_share(struct hx_json_out *json, const char *name, uint64_t part, uint64_t rest)
{
	double whole = (double)part + (double)rest;

	if (whole == 0) {
		hx_json_out_null(json, name);
		return;
	}
	begin_value(json, name, "");
	hx_out_printf(json->out, "%.4f", (double)part / whole);
}

void hx_json_out_time(struct hx_json_out *json, const char *name, int64_t ms)
{
	char text[32];

	if (ms == HAPAX_TIME_NEVER) {
		hx_json_out_null(json, name);
		return;
	}
	hx_clock_format_utc(ms, text);
	hx_json_out_text(json, name, text);
}

void hx_json_out_boolean(struct hx_json_out *json, const char *name, bool value)
{
	begin_value(json, name, "");
	hx_out_text(json->out, value ? "true" : "false");
}

void hx_json_out_null(struct hx_json_out *json, const char *name)
{
	begin_value(json, name, "");
	hx_out_text(json->out, "null");
}
