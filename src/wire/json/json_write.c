/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_write.c - write JSON into a buffer, a member at a time.
 */
#include "wire/json/json_write.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/utf8.h"

static void note(struct hx_json_write *json, enum hapax_status status)
{
	if (json->status == HAPAX_OK)
		json->status = status;
}

static void put(struct hx_json_write *json, const void *data, size_t size)
{
	if (json->status == HAPAX_OK)
		note(json, hx_buf_append(json->out, data, size));
}

static void put_text(struct hx_json_write *json, const char *text)
{
	put(json, text, strlen(text));
}

void hx_json_write_init(struct hx_json_write *json, struct hapax_buf *out)
{
	*json = (struct hx_json_write){.out = out, .status = HAPAX_OK};
}

void hx_json_write_name(struct hx_json_write *json, const char *name)
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
		put_text(json, "\":");
	}
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
}

/* A character that does not stand for itself. */
static enum hapax_status append_escaped(struct hapax_buf *out, uint32_t code)
{
	static const char controls[] = {'\b', 'b', '\f', 'f', '\n', 'n', '\r', 'r', '\t', 't'};

	if (code == '"' || code == '\\')
		return hx_buf_printf(out, "\\%c", (char)code);
	for (size_t i = 0; i < sizeof(controls); i += 2) {
		if (code == (unsigned char)controls[i])
			return hx_buf_printf(out, "\\%c", controls[i + 1]);
	}
	/* JSON allows DEL and C1 as they are, but logs are read on terminals. */
	return hx_buf_printf(out, "\\u%04x", (unsigned)code);
}

enum hapax_status hx_json_write_string(struct hapax_buf *out, struct hapax_bytes value)
{
	const unsigned char *at = value.data;
	const unsigned char *end = value.size == 0 ? at : at + value.size;
	size_t begin = out->size;
	enum hapax_status status = hx_buf_append_byte(out, '"');

	while (status == HAPAX_OK && at < end) {
		uint32_t code = 0;
		size_t size = hx_utf8_size(hx_bytes(at, (size_t)(end - at)), &code);

		if (size == 0)
			status = hx_buf_append(out, "\xef\xbf\xbd", 3);
		else if (code == '"' || code == '\\' || hx_utf8_is_control(code))
			status = append_escaped(out, code);
		else
			status = hx_buf_append(out, at, size);
		at += size == 0 ? 1 : size;
	}
	if (status == HAPAX_OK)
		status = hx_buf_append_byte(out, '"');
	if (status != HAPAX_OK)
		out->size = begin;
	return status;
}

void hx_json_write_bytes(struct hx_json_write *json, const char *name, struct hapax_bytes value)
{
	hx_json_write_name(json, name);
	if (json->status == HAPAX_OK)
		note(json, hx_json_write_string(json->out, value));
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
	/* Rounded to nothing it has no sign. */
	if (size == 2 && text[0] == '-' && text[1] == '0')
		put_text(json, "0");
	else
		put(json, text, size);
}
