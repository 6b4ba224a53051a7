/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.c - bytes, times and sizes in readable form.
 */
#include "cli/print/text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <hapax/record.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/utf8.h"

static struct hapax_bytes skip(struct hapax_bytes text, size_t size)
{
	assert(size <= text.size);
	return hx_bytes((const unsigned char *)text.data + size, text.size - size);
}

size_t hx_text_unit(struct hapax_bytes text, char out[HX_TEXT_UNIT_SIZE])
{
	const unsigned char *data = text.data;
	uint32_t code = 0;
	size_t size = hx_utf8_size(text, &code);

	assert(text.size > 0);
	if (size > 0 && !hx_utf8_is_control(code) && !hx_utf8_is_hidden(code)) {
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

	/* Count every byte except the continuations of a character. */
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
	/* Milliseconds are for programs. */
	memcpy(out + strlen("2026-11-15T20:22:15"), "Z", 2);
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

const char *hx_text_plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}
