/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8.c - strict UTF-8.
 */
#include "base/utf8.h"

#include <stdio.h>

#include "base/macros.h"

static bool is_continuation(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

/* The second byte of a character of three or four bytes decides the rest of its range. */
static bool is_second(unsigned char lead, unsigned char byte)
{
	switch (lead) {
	case 0xe0: return byte >= 0xa0 && byte <= 0xbf; /* else two bytes would do */
	case 0xed: return byte >= 0x80 && byte <= 0x9f; /* else a surrogate */
	case 0xf0: return byte >= 0x90 && byte <= 0xbf; /* else three bytes would do */
	case 0xf4: return byte >= 0x80 && byte <= 0x8f; /* else above U+10FFFF */
	default: return is_continuation(byte);
	}
}

size_t hx_utf8_size(struct hapax_bytes text, uint32_t *ret_code)
{
	const unsigned char *at = text.data;
	uint32_t lead;

	if (text.size == 0)
		return 0;
	lead = at[0];
	if (lead < 0x80) {
		*ret_code = lead;
		return 1;
	}
	if (lead < 0xc2 || lead > 0xf4 || text.size < 2)
		return 0;
	if (lead < 0xe0) {
		*ret_code = (lead & 0x1f) << 6 | (at[1] & 0x3fU);
		return is_continuation(at[1]) ? 2 : 0;
	}
	if (text.size < 3 || !is_second(at[0], at[1]) || !is_continuation(at[2]))
		return 0;
	if (lead < 0xf0) {
		*ret_code = (lead & 0x0f) << 12 | (at[1] & 0x3fU) << 6 | (at[2] & 0x3fU);
		return 3;
	}
	if (text.size < 4 || !is_continuation(at[3]))
		return 0;
	*ret_code = (lead & 0x07) << 18 | (at[1] & 0x3fU) << 12 | (at[2] & 0x3fU) << 6 |
		(at[3] & 0x3fU);
	return 4;
}

bool hx_utf8_is_control(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

bool hx_utf8_is_hidden(uint32_t code)
{
	static const struct {
		uint32_t first;
		uint32_t last;
	} ranges[] = {
		{0xad, 0xad},       {0x34f, 0x34f},   {0x61c, 0x61c},     {0x115f, 0x1160},
		{0x17b4, 0x17b5},   {0x180b, 0x180f}, {0x200b, 0x200f},   {0x2028, 0x202e},
		{0x2060, 0x206f},   {0x3164, 0x3164}, {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
		{0xffa0, 0xffa0},   {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
		{0xe0000, 0xe0fff},
	};

	for (size_t i = 0; i < HX_COUNT(ranges) && code >= ranges[i].first; i++) {
		if (code <= ranges[i].last)
			return true;
	}
	return false;
}

bool hx_utf8_is_valid(struct hapax_bytes text)
{
	uint32_t code;

	while (text.size > 0) {
		/* Most texts are plain: eight bytes at a time. */
		size_t size = text.size >= 8 && hx_ascii_is_printable8(text.data)
			? 8
			: hx_utf8_size(text, &code);

		if (size == 0)
			return false;
		text.data = (const unsigned char *)text.data + size;
		text.size -= size;
	}
	return true;
}

struct hapax_bytes hx_utf8_cut(struct hapax_bytes text, size_t size_max)
{
	const unsigned char *at = text.data;
	size_t size = size_max;

	if (text.size <= size_max)
		return text;
	while (size > 0 && is_continuation(at[size]))
		size--;
	return (struct hapax_bytes){text.data, size};
}

bool hx_utf8_fault(struct hapax_bytes text, size_t size_max, char why[HX_UTF8_FAULT_SIZE])
{
	const unsigned char *data = text.data;

	if (text.size == 0) {
		(void)snprintf(why, HX_UTF8_FAULT_SIZE, "is empty");
		return true;
	}
	if (text.size > size_max) {
		(void)snprintf(
			why, HX_UTF8_FAULT_SIZE, "is too long: %zu bytes, limit %zu", text.size,
			size_max);
		return true;
	}
	for (size_t at = 0; at < text.size;) {
		struct hapax_bytes rest = {data + at, text.size - at};
		uint32_t code = 0;
		size_t size = hx_utf8_size(rest, &code);

		if (size == 0) {
			(void)snprintf(
				why, HX_UTF8_FAULT_SIZE, "is not UTF-8 at offset %zu (byte 0x%02x)",
				at, data[at]);
			return true;
		}
		if (hx_utf8_is_control(code)) {
			(void)snprintf(
				why, HX_UTF8_FAULT_SIZE,
				"has a control character at offset %zu (U+%04X)", at,
				(unsigned)code);
			return true;
		}
		at += size;
	}
	return false;
}
