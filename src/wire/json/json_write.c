/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_write.c - the writer of JSON, a member at a time.
 */
#include "wire/json/json_write.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/utf8.h"
#include "wire/base64.h"

static void put(struct hx_json_write *json, const void *data, size_t size)
{
	if (json->sink != NULL)
		json->sink(json->context, data, size);
	else if (json->status == HAPAX_OK)
		json->status = hx_buf_append(json->out, data, size);
}

static void put_text(struct hx_json_write *json, const char *text)
{
	put(json, text, strlen(text));
}

void hx_json_write_init(struct hx_json_write *json, struct hapax_buf *out)
{
	*json = (struct hx_json_write){.out = out, .status = HAPAX_OK};
}

void hx_json_write_init_sink(struct hx_json_write *json, hx_json_write_sink_fn *sink, void *context)
{
	*json = (struct hx_json_write){.sink = sink, .context = context, .status = HAPAX_OK};
}

/* The comma and the name before a value; suffix is added to the name. */
static void put_name(struct hx_json_write *json, const char *name, const char *suffix)
{
	uint64_t bit = UINT64_C(1) << json->depth;

	if (json->depth > 0) {
		if (json->has_members & bit)
			put_text(json, ",");
		json->has_members |= bit;
	}
	if (name != NULL) {
		put_text(json, "\"");
		put_text(json, name);
		put_text(json, suffix);
		put_text(json, "\":");
	}
}

void hx_json_write_name(struct hx_json_write *json, const char *name)
{
	put_name(json, name, "");
}

void hx_json_write_begin(struct hx_json_write *json, const char *name, char bracket)
{
	assert(bracket == '{' || bracket == '[');
	assert(json->depth < HX_JSON_WRITE_DEPTH_MAX);
	hx_json_write_name(json, name);
	put(json, &bracket, 1);
	json->depth++;
	json->has_members &= ~(UINT64_C(1) << json->depth);
}

void hx_json_write_end(struct hx_json_write *json, char bracket)
{
	assert(bracket == '}' || bracket == ']');
	assert(json->depth > 0);
	json->depth--;
	put(json, &bracket, 1);
	if (json->depth == 0 && json->sink != NULL)
		put_text(json, "\n");
}

/* Hidden characters do not reach a terminal: one key would look like another. */
static bool is_plain(const struct hx_json_write *json, uint32_t code)
{
	return code != '"' && code != '\\' && !hx_utf8_is_control(code) &&
		!(json->sink != NULL && hx_utf8_is_hidden(code));
}

/* A character that must be escaped. */
static void put_escaped(struct hx_json_write *json, uint32_t code)
{
	/* Pairs; the last three are for programs. */
	static const char pairs[] = "\"\"\\\\\nn\tt\bb\ff\rr";
	size_t count = json->sink != NULL ? 8 : sizeof(pairs) - 1;
	char text[16];

	for (size_t i = 0; i < count; i += 2) {
		if (code == (unsigned char)pairs[i]) {
			put_text(json, "\\");
			put(json, &pairs[i + 1], 1);
			return;
		}
	}
	/* JSON allows DEL and C1 as they are, but logs are read on terminals. */
	if (code > 0xffff)
		(void)snprintf(
			text, sizeof(text), "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (code >> 10)),
			(unsigned)(0xdc00 + (code & 0x3ff)));
	else
		(void)snprintf(text, sizeof(text), "\\u%04x", (unsigned)code);
	put_text(json, text);
}

/* Plain characters are written unchanged, as many as possible at once. */
static void put_string(struct hx_json_write *json, struct hapax_bytes value)
{
	const unsigned char *data = value.data;
	size_t begin = 0, at = 0;

	put_text(json, "\"");
	while (at < value.size) {
		uint32_t code = 0;
		size_t size = hx_utf8_size(hx_bytes(data + at, value.size - at), &code);

		if (size > 0 && is_plain(json, code)) {
			at += size;
			continue;
		}
		put(json, data + begin, at - begin);
		if (size == 0)
			put_text(json, "\xef\xbf\xbd");
		else
			put_escaped(json, code);
		at += size == 0 ? 1 : size;
		begin = at;
	}
	if (at > begin)
		put(json, data + begin, at - begin);
	put_text(json, "\"");
}

enum hapax_status hx_json_write_string(struct hapax_buf *out, struct hapax_bytes value)
{
	struct hx_json_write json;
	size_t begin = out->size;

	hx_json_write_init(&json, out);
	put_string(&json, value);
	if (json.status != HAPAX_OK)
		out->size = begin;
	return json.status;
}

void hx_json_write_bytes(struct hx_json_write *json, const char *name, struct hapax_bytes value)
{
	put_name(json, name, "");
	put_string(json, value);
}

void hx_json_write_text(struct hx_json_write *json, const char *name, const char *value)
{
	hx_json_write_bytes(json, name, hapax_bytes_from_text(value));
}

void hx_json_write_unsigned(struct hx_json_write *json, const char *name, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	hx_json_write_name(json, name);
	put_text(json, text);
}

void hx_json_write_signed(struct hx_json_write *json, const char *name, int64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRId64, value);
	hx_json_write_name(json, name);
	put_text(json, text);
}

void hx_json_write_boolean(struct hx_json_write *json, const char *name, bool value)
{
	hx_json_write_name(json, name);
	put_text(json, value ? "true" : "false");
}

void hx_json_write_raw(struct hx_json_write *json, const char *name, struct hapax_bytes value)
{
	hx_json_write_name(json, name);
	put(json, value.data, value.size);
}

void hx_json_write_number(
	struct hx_json_write *json, const char *name, double value, unsigned digits)
{
	char text[352];
	size_t size;

	assert(isfinite(value) && digits <= 17);
	size = (size_t)snprintf(text, sizeof(text), "%.*f", (int)digits, value);
	/* The point is the locale's, whose byte may be any; there is one if digits are. */
	if (digits > 0) {
		text[size - digits - 1] = '.';
		while (text[size - 1] == '0')
			size--;
		if (text[size - 1] == '.')
			size--;
	}
	hx_json_write_name(json, name);
	/* A value rounded to zero has no sign. */
	if (size == 2 && text[0] == '-' && text[1] == '0')
		put_text(json, "0");
	else
		put(json, text, size);
}

void hx_json_write_null(struct hx_json_write *json, const char *name)
{
	put_name(json, name, "");
	put_text(json, "null");
}

void hx_json_write_time(struct hx_json_write *json, const char *name, int64_t ms)
{
	char text[32];

	if (ms == INT64_MAX) {
		hx_json_write_null(json, name);
		return;
	}
	hx_clock_format_utc(ms, text);
	hx_json_write_text(json, name, text);
}

void hx_json_write_hex(struct hx_json_write *json, const char *name, const void *data, size_t size)
{
	char text[2 * HX_JSON_WRITE_HEX_MAX];

	assert(size <= HX_JSON_WRITE_HEX_MAX);
	hx_hex_encode(data, size, text);
	hx_json_write_bytes(json, name, hx_bytes(text, 2 * size));
}

/* Is it readable as text? Other controls would take six characters each. */
static bool is_text(struct hapax_bytes value, bool has_lines)
{
	while (value.size > 0) {
		uint32_t code = 0;
		size_t size = hx_utf8_size(value, &code);

		if (size == 0 ||
		    (hx_utf8_is_control(code) &&
		     !(has_lines && (code == '\t' || code == '\n' || code == '\r'))))
			return false;
		value = hx_bytes((const unsigned char *)value.data + size, value.size - size);
	}
	return true;
}

static void write_base64(struct hx_json_write *json, const char *name, struct hapax_bytes value)
{
	const unsigned char *data = value.data;
	char text[4096];
	size_t step = sizeof(text) / 4 * 3;

	put_name(json, name, "_base64");
	put_text(json, "\"");
	for (size_t at = 0; at < value.size; at += step) {
		size_t size = value.size - at < step ? value.size - at : step;

		hx_base64_encode(hx_bytes(data + at, size), text);
		put(json, text, hx_base64_size(size));
	}
	put_text(json, "\"");
}

static void write_bytes(
	struct hx_json_write *json, const char *name, struct hapax_bytes value, bool has_lines)
{
	if (json->sink != NULL ? hx_utf8_is_valid(value) : is_text(value, has_lines))
		hx_json_write_bytes(json, name, value);
	else
		write_base64(json, name, value);
}

void hx_json_write_any(struct hx_json_write *json, const char *name, struct hapax_bytes value)
{
	write_bytes(json, name, value, false);
}

void hx_json_write_body(struct hx_json_write *json, const char *name, struct hapax_bytes value)
{
	write_bytes(json, name, value, true);
}
