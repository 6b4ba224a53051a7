/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.c - bytes, times and sizes in the form in which people read them.
 */
#include "cli/text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <hapax/record.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/clock.h"

/*
 * By the first byte: how long the character is, and the smallest code that needs
 * that length; a longer form of a smaller code is not UTF-8 (RFC 3629).
 */
static size_t utf8_length(unsigned char first, uint32_t *ret_bits, uint32_t *ret_least)
{
	if (first < 0x80) {
		*ret_bits = first;
		*ret_least = 0;
		return 1;
	}
	if ((first & 0xe0) == 0xc0) {
		*ret_bits = first & 0x1f;
		*ret_least = 0x80;
		return 2;
	}
	if ((first & 0xf0) == 0xe0) {
		*ret_bits = first & 0x0f;
		*ret_least = 0x800;
		return 3;
	}
	if ((first & 0xf8) == 0xf0) {
		*ret_bits = first & 0x07;
		*ret_least = 0x10000;
		return 4;
	}
	return 0;
}

size_t hx_utf8_size(struct hapax_bytes text, uint32_t *ret_code)
{
	const unsigned char *data = text.data;
	uint32_t code, least;
	size_t length;

	if (text.size == 0)
		return 0;
	length = utf8_length(data[0], &code, &least);
	if (length == 0 || length > text.size)
		return 0;
	for (size_t i = 1; i < length; i++) {
		if ((data[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (data[i] & 0x3f);
	}
	if (code < least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	*ret_code = code;
	return length;
}

bool hx_utf8_is_control(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

static struct hapax_bytes skip(struct hapax_bytes text, size_t size)
{
	assert(size <= text.size);
	return hx_bytes((const unsigned char *)text.data + size, text.size - size);
}

bool hx_utf8_is_valid(struct hapax_bytes text)
{
	uint32_t code;

	while (text.size > 0) {
		size_t size = hx_utf8_size(text, &code);

		if (size == 0)
			return false;
		text = skip(text, size);
	}
	return true;
}

size_t hx_text_unit(struct hapax_bytes text, char out[HX_TEXT_UNIT_SIZE])
{
	const unsigned char *data = text.data;
	uint32_t code = 0;
	size_t size = hx_utf8_size(text, &code);

	assert(text.size > 0);
	if (size > 0 && !hx_utf8_is_control(code)) {
		memcpy(out, data, size);
		out[size] = '\0';
		return size;
	}
	switch (data[0]) {
	case '\n': memcpy(out, "\\n", 3); break;
	case '\r': memcpy(out, "\\r", 3); break;
	case '\t': memcpy(out, "\\t", 3); break;
	default: (void)snprintf(out, HX_TEXT_UNIT_SIZE, "\\x%02x", data[0]); break;
	}
	return 1;
}

size_t hx_text_unit_exact(struct hapax_bytes text, char out[HX_TEXT_UNIT_SIZE])
{
	if (*(const unsigned char *)text.data == '\\') {
		memcpy(out, "\\\\", 3);
		return 1;
	}
	return hx_text_unit(text, out);
}

enum hapax_status hx_text_escape(struct hapax_buf *buf, struct hapax_bytes text)
{
	enum hapax_status status = HAPAX_OK;

	while (text.size > 0 && status == HAPAX_OK) {
		char unit[HX_TEXT_UNIT_SIZE];

		text = skip(text, hx_text_unit_exact(text, unit));
		status = hx_buf_append(buf, unit, strlen(unit));
	}
	return status;
}

size_t hx_text_columns(const char *text)
{
	size_t columns = 0;

	/* Every byte but the continuations of a character. */
	for (; *text != '\0'; text++)
		columns += ((unsigned char)*text & 0xc0) != 0x80;
	return columns;
}

void hx_text_time(int64_t ms, char out[HX_TEXT_SIZE])
{
	if (ms == HAPAX_TIME_NEVER) {
		memcpy(out, "never", 6);
		return;
	}
	hx_clock_format_utc(ms, out);
	/* The milliseconds are for programs. */
	memcpy(out + strlen("2026-11-15T20:22:15"), "Z", 2);
}

void hx_text_span(int64_t ms, char out[HX_TEXT_SIZE])
{
	static const struct {
		int64_t seconds;
		char letter;
	} units[] = {{INT64_C(24) * 3600, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
	int64_t seconds = ms / 1000;
	size_t i = 0;
	int64_t large, small;

	if (seconds <= 0) {
		memcpy(out, "<1s", 4);
		return;
	}
	while (seconds < units[i].seconds)
		i++;
	large = seconds / units[i].seconds;
	small = units[i].letter == 's' ? 0 : seconds % units[i].seconds / units[i + 1].seconds;
	if (small == 0)
		(void)snprintf(out, HX_TEXT_SIZE, "%" PRId64 "%c", large, units[i].letter);
	else
		(void)snprintf(
			out, HX_TEXT_SIZE, "%" PRId64 "%c%" PRId64 "%c", large, units[i].letter,
			small, units[i + 1].letter);
}

void hx_text_bytes(uint64_t bytes, char out[HX_TEXT_SIZE])
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes / 1024;
	size_t i = 0;

	if (bytes < 1024) {
		(void)snprintf(out, HX_TEXT_SIZE, "%" PRIu64 " B", bytes);
		return;
	}
	for (; value >= 1024; i++)
		value /= 1024;
	(void)snprintf(out, HX_TEXT_SIZE, "%.1f %s", value, units[i]);
}
