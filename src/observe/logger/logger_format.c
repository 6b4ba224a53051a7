/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logger_format.c - one line of a log as text, in memory of a fixed size.
 */
#include "observe/logger/logger_format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/hex.h"
#include "base/hmac.h"
#include "base/utf8.h"
#include "observe/trace.h"
#include "wire/json/json_write.h"

const char *const hx_logger_level_names[] = {"debug", "info", "warn", "error", NULL};
const char *const hx_logger_keys_names[] = {"full", "hash", "none", NULL};

/* Room for the end of a line: ,"cut":true,"suppressed":18446744073709551615} and LF. */
enum { TAIL_SIZE = 64, NUMBER_SIZE = 40 };

struct text {
	struct hapax_buf buf; /* in the caller's memory; never grows */
	enum hx_logger_format format;
	bool has_fields;
	bool is_cut;
};

/* syslog(3): 7 debug, 6 info, 4 warning, 3 error. */
static char priority(enum hx_logger_level level)
{
	static const char priorities[] = {'7', '6', '4', '3'};

	return priorities[level];
}

/* Bare words need no quotes in logfmt. */
static bool is_bare(struct hapax_bytes value)
{
	const unsigned char *at = value.data;

	for (size_t i = 0; i < value.size; i++) {
		if (at[i] <= ' ' || at[i] >= 0x7f || at[i] == '"' || at[i] == '=' || at[i] == '\\')
			return false;
	}
	return value.size > 0;
}

static enum hapax_status put_name(struct text *text, const char *name)
{
	if (text->format == HX_LOGGER_JSON)
		return hx_buf_printf(&text->buf, "%s\"%s\":", text->has_fields ? "," : "{", name);
	return hx_buf_printf(&text->buf, "%s%s=", text->has_fields ? " " : "", name);
}

static enum hapax_status put_value(struct text *text, struct hapax_bytes value, bool is_string)
{
	if (!is_string || (text->format == HX_LOGGER_LOGFMT && is_bare(value)))
		return hx_buf_append(&text->buf, value.data, value.size);
	return hx_json_write_string(&text->buf, value);
}

/* A field is written completely or not at all. */
static void put_field(struct text *text, const char *name, struct hapax_bytes value, bool is_string)
{
	size_t begin = text->buf.size;

	if (put_name(text, name) == HAPAX_OK && put_value(text, value, is_string) == HAPAX_OK) {
		text->has_fields = true;
		return;
	}
	text->buf.size = begin;
	text->is_cut = true;
}

static void put_text(struct text *text, const char *name, const char *value)
{
	put_field(text, name, hapax_bytes_from_text(value), true);
}

static void put_unsigned(struct text *text, const char *name, uint64_t value)
{
	char number[NUMBER_SIZE];

	(void)snprintf(number, sizeof(number), "%" PRIu64, value);
	put_field(text, name, hapax_bytes_from_text(number), false);
}

/* At most HX_LOGGER_VALUE_MAX bytes, cut between two characters. */
static void put_bytes(struct text *text, const char *name, struct hapax_bytes value)
{
	static const char mark[] = "\xe2\x80\xa6";
	char cut[HX_LOGGER_VALUE_MAX + sizeof(mark)];
	const unsigned char *data = value.data;
	size_t size = HX_LOGGER_VALUE_MAX;

	if (value.size <= HX_LOGGER_VALUE_MAX) {
		put_field(text, name, value, true);
		return;
	}
	while (size > HX_LOGGER_VALUE_MAX - 4 && (data[size] & 0xc0) == 0x80)
		size--;
	memcpy(cut, data, size);
	memcpy(cut + size, mark, strlen(mark));
	put_field(text, name, hx_bytes(cut, size + strlen(mark)), true);
}

static void put_hmac(
	struct text *text, const char *name, struct hapax_bytes key, const unsigned char *hmac_key)
{
	enum { DIGITS = 32 };
	static const char prefix[] = "hmac:";
	unsigned char digest[HX_SHA256_SIZE];
	char value[sizeof(prefix) + DIGITS];

	hx_hmac_sha256(hx_bytes(hmac_key, HX_HMAC_KEY_SIZE), &key, 1, digest);
	memcpy(value, prefix, sizeof(prefix));
	hx_hex_encode(digest, DIGITS / 2, value + strlen(prefix));
	put_field(text, name, hx_bytes(value, strlen(prefix) + DIGITS), true);
}

static void put_key(
	struct text *text, const char *name, struct hapax_bytes key,
	const struct hx_logger_line *line)
{
	char hash[HX_TRACE_KEY_HASH_SIZE];

	switch (line->keys) {
	case HX_LOGGER_KEYS_FULL: put_bytes(text, name, key); break;
	case HX_LOGGER_KEYS_NONE: break;
	case HX_LOGGER_KEYS_HASH:
		hx_trace_hash_key(key, hash);
		put_text(text, name, hash);
		break;
	case HX_LOGGER_KEYS_HMAC: put_hmac(text, name, key, line->hmac_key); break;
	}
}

/* JSON has no infinity; digits avoid the decimal point of a locale. */
static void put_share(struct text *text, const char *name, double value)
{
	struct hx_json_write json;
	unsigned char memory[512];
	struct hapax_buf number = {
		.data = memory, .capacity = sizeof(memory), .size_max = sizeof(memory)};

	if (!isfinite(value))
		value = 0;
	hx_json_write_init(&json, &number);
	hx_json_write_number(&json, NULL, value, 4);
	put_field(text, name, hx_bytes(number.data, number.size), false);
}

static void put(
	struct text *text, const struct hx_logger_field *field, const struct hx_logger_line *line)
{
	char value[HX_DURATION_TEXT_SIZE];

	switch (field->kind) {
	case HX_LOGGER_FIELD_BYTES: put_bytes(text, field->name, field->bytes); break;
	case HX_LOGGER_FIELD_KEY: put_key(text, field->name, field->bytes, line); break;
	case HX_LOGGER_FIELD_UNSIGNED:
		put_unsigned(text, field->name, (uint64_t)field->number);
		break;
	case HX_LOGGER_FIELD_SIGNED:
		(void)snprintf(value, sizeof(value), "%" PRId64, field->number);
		put_field(text, field->name, hapax_bytes_from_text(value), false);
		break;
	case HX_LOGGER_FIELD_DURATION:
		hx_duration_two_units(field->number, value);
		put_text(text, field->name, field->number == INT64_MAX ? "forever" : value);
		break;
	case HX_LOGGER_FIELD_TIME:
		hx_clock_format_utc(field->number, value);
		put_text(text, field->name, value);
		break;
	case HX_LOGGER_FIELD_SHARE: put_share(text, field->name, field->share); break;
	case HX_LOGGER_FIELD_BOOLEAN:
		put_field(
			text, field->name, hapax_bytes_from_text(field->number ? "true" : "false"),
			false);
		break;
	}
}

size_t hx_logger_line_format(const struct hx_logger_line *line, char out[HX_LOGGER_LINE_MAX])
{
	struct text text = {.format = line->format};
	char time[32];

	/* The caller's memory, which never grows: there is no room beyond capacity. */
	text.buf.data = (unsigned char *)out;
	text.buf.capacity = text.buf.size_max = HX_LOGGER_LINE_MAX - TAIL_SIZE;
	if (line->has_priority)
		(void)hx_buf_printf(&text.buf, "<%c>", priority(line->level));
	hx_clock_format_utc(line->wall_ms, time);
	put_text(&text, "level", hx_logger_level_names[line->level]);
	put_text(&text, "ts", time);
	put_text(&text, "msg", line->msg);
	for (size_t i = 0; i < line->field_count; i++) {
		if (line->fields[i].name != NULL)
			put(&text, &line->fields[i], line);
	}
	text.buf.capacity = text.buf.size_max = HX_LOGGER_LINE_MAX;
	if (text.is_cut)
		put_field(&text, "cut", HX_BYTES_LIT("true"), false);
	if (line->suppressed > 0)
		put_unsigned(&text, "suppressed", line->suppressed);
	(void)hx_buf_append(&text.buf, "}\n", line->format == HX_LOGGER_JSON ? 2 : 0);
	if (line->format == HX_LOGGER_LOGFMT)
		(void)hx_buf_append(&text.buf, "\n", 1);
	return text.buf.size;
}
