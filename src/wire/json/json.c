/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - the pull tokenizer: grammar, nesting, places in the text.
 *
 * The state is the open containers, one bit for each level, and whether anything was read in the
 * innermost. Names are checked when their object ends: they are then sorted, so that duplicates are
 * adjacent and callers get the members in order.
 *
 * json_next.h has the code that runs for every token; this file has the rest.
 */
#include "wire/json/json.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "wire/json/json_name.h"
#include "wire/json/json_next.h"
#include "wire/json/json_string.h"

_Static_assert(HX_JSON_SIZE_MAX <= UINT32_MAX, "offsets have 32 bits");
_Static_assert(HX_JSON_DEPTH_MAX % 64 == 0, "a bit for each level");

#define COLD __attribute__((cold, noinline))

void hx_json_place(struct hapax_bytes text, size_t offset, size_t *ret_line, size_t *ret_column)
{
	const unsigned char *data = text.data;
	size_t line = 1;
	size_t column = 1;

	assert(offset <= text.size);
	for (size_t i = 0; i < offset; i++) {
		if (data[i] == '\n') {
			line++;
			column = 1;
		} else if ((data[i] & 0xc0) != 0x80) {
			column++;
		}
	}
	*ret_line = line;
	*ret_column = column;
}

COLD enum hapax_status hx_json_error(
	struct hapax_error *err, enum hapax_status status, struct hapax_bytes text, size_t offset,
	const char *format, ...)
{
	char message[HAPAX_ERROR_MESSAGE_SIZE];
	size_t line;
	size_t column;
	va_list args;

	if (err == NULL)
		return status;
	va_start(args, format);
	(void)vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	hx_json_place(text, offset, &line, &column);
	return hx_error_set(err, status, 0, "line %zu, column %zu: %s", line, column, message);
}

static struct hapax_bytes whole_text(const struct hx_json *json)
{
	return (struct hapax_bytes){json->data, (size_t)(json->end - json->data)};
}

COLD const unsigned char *hx_json_refuse(
	const struct hx_json *json, const unsigned char *at, const char *reason,
	struct hapax_error *err)
{
	(void)hx_json_error(
		err, HAPAX_ERR_INVALID, whole_text(json), hx_json_offset(json, at), "%s", reason);
	return NULL;
}

/* Names what was found instead: the end, a printable character, or a byte. */
COLD const unsigned char *hx_json_refuse_here(
	const struct hx_json *json, const unsigned char *at, const char *wanted,
	struct hapax_error *err)
{
	char reason[96];

	if (at == json->end)
		(void)snprintf(
			reason, sizeof(reason), "the text ended where %s was expected", wanted);
	else if (*at > 0x20 && *at < 0x7f)
		(void)snprintf(
			reason, sizeof(reason), "'%c' found where %s was expected", *at, wanted);
	else
		(void)snprintf(
			reason, sizeof(reason), "byte 0x%02x found where %s was expected", *at,
			wanted);
	return hx_json_refuse(json, at, reason, err);
}

COLD static const unsigned char *refuse_twice(
	const struct hx_json *json, const struct hx_json_name *name, struct hapax_error *err)
{
	const unsigned char *text = json->data + name->text;
	uint32_t shown = name->size > 64 ? 64 : name->size;

	/* Not cut within a character: the message stays UTF-8. */
	while (shown > 0 && shown < name->size && (text[shown] & 0xc0) == 0x80)
		shown--;
	(void)hx_json_error(
		err, HAPAX_ERR_INVALID, whole_text(json), name->text - 1,
		"member \"%.*s\" occurs twice", (int)shown, (const char *)text);
	return NULL;
}

COLD const unsigned char *hx_json_refuse_depth(
	struct hx_json *json, const unsigned char *at, struct hapax_error *err)
{
	json->refusal = hx_json_error(
		err, HAPAX_ERR_LIMIT, whole_text(json), hx_json_offset(json, at),
		"nested deeper than %d levels", HX_JSON_DEPTH_MAX);
	return NULL;
}

COLD const unsigned char *hx_json_refuse_names(
	struct hx_json *json, const unsigned char *at, struct hapax_error *err)
{
	if (json->twice != NULL)
		return refuse_twice(json, json->twice, err);
	json->refusal = hx_json_error(
		err, HAPAX_ERR_LIMIT, whole_text(json), hx_json_offset(json, at),
		"too many member names: limit %zu", json->name_max);
	return NULL;
}

enum hapax_status hx_json_init(
	struct hx_json *json, struct hapax_bytes text, struct hx_json_name *names, size_t name_max,
	struct hapax_error *err)
{
	if (text.size > HX_JSON_SIZE_MAX) {
		return hx_error_set(
			err, HAPAX_ERR_LIMIT, 0, "the JSON text is too long: %zu bytes, limit %d",
			text.size, HX_JSON_SIZE_MAX);
	}
	json->data = text.size == 0 ? (const unsigned char *)"" : text.data;
	json->end = json->data + text.size;
	json->at = json->data;
	json->refusal = HAPAX_ERR_INVALID;
	json->is_first = true;
	json->in_object = false;
	json->depth = 0;
	json->names = names;
	json->name_count = 0;
	json->twice = NULL;
	json->name_max = names == NULL ? 0 : name_max;
	json->closed_count = 0;
	json->name_base[0] = 0;
	memset(json->is_object, 0, sizeof(json->is_object));
	if (text.size >= 3 && memcmp(json->data, "\xef\xbb\xbf", 3) == 0) {
		(void)hx_json_refuse(json, json->at, "a byte order mark is not JSON", err);
		return HAPAX_ERR_INVALID;
	}
	return HAPAX_OK;
}

bool hx_json_names_are_single(struct hx_json *json, size_t count)
{
	json->twice = hx_json_names_sort(json->data, json->names + json->name_count - count, count);
	return json->twice == NULL;
}

const unsigned char *hx_json_close(
	struct hx_json *json, const unsigned char *at, struct hx_json_token *ret,
	struct hapax_error *err)
{
	uint32_t level = json->depth - 1;

	ret->type = json->in_object ? HX_JSON_OBJECT_END : HX_JSON_ARRAY_END;
	ret->text = hx_json_offset(json, at);
	ret->size = 1;
	if (json->in_object) {
		uint32_t base = json->name_base[level + 1];
		size_t count = json->name_count - base;
		const struct hx_json_name *twice = NULL;

		if (count > 1)
			twice = hx_json_names_sort(json->data, json->names + base, count);
		if (twice != NULL)
			return refuse_twice(json, twice, err);
		json->closed_count = count;
		json->name_count = base;
	}
	json->in_object = (json->is_object[level / 64] >> (level % 64) & 1) != 0;
	json->depth = level;
	return at + 1;
}

/* What is not plain ASCII: escapes, UTF-8, and everything that is wrong. */
const unsigned char *hx_json_find_quote(
	const struct hx_json *json, const unsigned char *at, bool *ret_escaped,
	struct hapax_error *err)
{
	const unsigned char *bad;
	const char *reason;
	const unsigned char *quote = hx_json_string_scan(at, json->end, ret_escaped, &bad, &reason);

	return quote == NULL ? hx_json_refuse(json, bad, reason, err) : quote;
}

const unsigned char *hx_json_read_word(
	struct hx_json *json, const unsigned char *at, struct hx_json_token *ret,
	struct hapax_error *err)
{
	size_t left = (size_t)(json->end - at);
	uint32_t size = 4;

	if (left >= 4 && memcmp(at, "true", 4) == 0)
		ret->type = HX_JSON_TRUE;
	else if (left >= 4 && memcmp(at, "null", 4) == 0)
		ret->type = HX_JSON_NULL;
	else if (left >= 5 && memcmp(at, "false", 5) == 0) {
		ret->type = HX_JSON_FALSE;
		size = 5;
	} else if (left >= 3 && memcmp(at, "NaN", 3) == 0)
		return hx_json_refuse(json, at, "NaN is not JSON", err);
	else if (left >= 8 && memcmp(at, "Infinity", 8) == 0)
		return hx_json_refuse(json, at, "Infinity is not JSON", err);
	else
		return hx_json_refuse_here(json, at, "a value", err);
	ret->text = hx_json_offset(json, at);
	ret->size = size;
	return at + size;
}

enum hapax_status hx_json_next(
	struct hx_json *json, struct hx_json_token *ret, struct hapax_error *err)
{
	return hx_json_next_inline(json, ret, err);
}
