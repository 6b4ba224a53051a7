/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value.c - read and write one value of a config.
 */
#include "config/value.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <hapax/store.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/duration.h"
#include "base/size.h"
#include "base/suggest.h"
#include "broker/kafka_property.h"
#include "config/config.h"
#include "wire/public_url.h"

_Static_assert(sizeof(enum hapax_on_lapse) == sizeof(int), "a CHOICE is stored as int");

__attribute__((format(printf, 2, 3))) static enum hapax_status fail(
	char why[HX_SETTING_WHY_SIZE], const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(why, HX_SETTING_WHY_SIZE, format, arguments);
	va_end(arguments);
	return HAPAX_ERR_INVALID;
}

static void *member(const struct hx_setting *setting, void *object)
{
	return (unsigned char *)object + setting->offset;
}

static const void *const_member(const struct hx_setting *setting, const void *object)
{
	return (const unsigned char *)object + setting->offset;
}

static bool is_word(struct hapax_bytes text, const char *word)
{
	return hx_bytes_equal(text, hapax_bytes_from_text(word));
}

/* Report a text that does not fit the type, shortened, and what would fit. */
static enum hapax_status wrong(
	const struct hx_setting *setting, struct hapax_bytes text, char why[HX_SETTING_WHY_SIZE])
{
	char expected[HX_SETTING_WHY_SIZE];

	hx_value_describe(setting, expected);
	return fail(
		why, "'%.*s' is not %.160s", (int)(text.size > 64 ? 64 : text.size),
		text.size == 0 ? "" : (const char *)text.data, expected);
}

/* A number as text, in the unit of its type. */
static void format_number(const struct hx_setting *setting, int64_t value, char out[64])
{
	if (setting->type == HX_SETTING_SIZE)
		hx_size_format((uint64_t)value, out);
	else if (setting->type == HX_SETTING_DURATION)
		hx_duration_format(value, out);
	else
		(void)snprintf(out, 64, "%" PRId64, value);
}

static enum hapax_status check_range(
	const struct hx_setting *setting, struct hapax_bytes text, int64_t value,
	char why[HX_SETTING_WHY_SIZE])
{
	char min[64], max[64];

	if (value >= setting->min && value <= setting->max)
		return HAPAX_OK;
	format_number(setting, setting->min, min);
	format_number(setting, setting->max, max);
	return fail(
		why, "'%.*s' is not between %s and %s", (int)(text.size > 64 ? 64 : text.size),
		(const char *)text.data, min, max);
}

static enum hapax_status parse_count(
	const struct hx_setting *setting, struct hapax_bytes text, int64_t *ret,
	char why[HX_SETTING_WHY_SIZE])
{
	const unsigned char *at = text.data;
	int64_t value = 0;

	if (text.size == 0)
		return wrong(setting, text, why);
	for (size_t i = 0; i < text.size; i++) {
		if (at[i] < '0' || at[i] > '9')
			return wrong(setting, text, why);
		if (hx_mul_i64(value, 10, &value) || hx_add_i64(value, at[i] - '0', &value))
			return check_range(setting, text, INT64_MAX, why);
	}
	*ret = value;
	return HAPAX_OK;
}

static enum hapax_status parse_size(
	const struct hx_setting *setting, struct hapax_bytes text, int64_t *ret,
	char why[HX_SETTING_WHY_SIZE])
{
	uint64_t bytes;

	if (hx_size_parse(text, &bytes, NULL) != HAPAX_OK)
		return wrong(setting, text, why);
	*ret = bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
	return HAPAX_OK;
}

static enum hapax_status read_number(
	const struct hx_setting *setting, struct hapax_bytes text, void *object,
	char why[HX_SETTING_WHY_SIZE])
{
	enum hapax_status status = HAPAX_OK;
	int64_t value = 0;

	if ((setting->flags & HX_SETTING_NONE_IS_0) && is_word(text, "none")) {
		*(uint64_t *)member(setting, object) = 0;
		return HAPAX_OK;
	}
	if ((setting->flags & HX_SETTING_AUTO) && is_word(text, "auto")) {
		*(uint64_t *)member(setting, object) = HX_CONFIG_AUTO;
		return HAPAX_OK;
	}
	if ((setting->flags & HX_SETTING_FOREVER) && is_word(text, "forever")) {
		*(int64_t *)member(setting, object) = HAPAX_TTL_FOREVER;
		return HAPAX_OK;
	}
	if (setting->type == HX_SETTING_COUNT)
		status = parse_count(setting, text, &value, why);
	else if (setting->type == HX_SETTING_SIZE)
		status = parse_size(setting, text, &value, why);
	/* A duration is never negative, and 0 needs no unit. */
	else if (!is_word(text, "0") && hx_duration_parse(text, &value, NULL) != HAPAX_OK)
		status = wrong(setting, text, why);
	if (status == HAPAX_OK)
		status = check_range(setting, text, value, why);
	if (status != HAPAX_OK)
		return status;
	if (setting->type == HX_SETTING_DURATION)
		*(int64_t *)member(setting, object) = value;
	else
		*(uint64_t *)member(setting, object) = (uint64_t)value;
	return HAPAX_OK;
}

static enum hapax_status read_choice(
	const struct hx_setting *setting, struct hapax_bytes text, void *object,
	char why[HX_SETTING_WHY_SIZE])
{
	struct hx_suggest suggest;
	char word[64];

	for (int i = 0; setting->choices[i] != NULL; i++) {
		if (is_word(text, setting->choices[i])) {
			*(int *)member(setting, object) = i;
			return HAPAX_OK;
		}
	}
	(void)snprintf(
		word, sizeof(word), "%.*s", (int)(text.size > 63 ? 63 : text.size),
		(const char *)text.data);
	hx_suggest_init(&suggest, word);
	for (size_t i = 0; setting->choices[i] != NULL; i++)
		hx_suggest_consider(&suggest, setting->choices[i]);
	if (suggest.best != NULL)
		return fail(why, "'%s' is unknown (did you mean '%s'?)", word, suggest.best);
	return wrong(setting, text, why);
}

static enum hapax_status read_address(
	const struct hx_setting *setting, struct hapax_bytes text, void *object,
	struct hx_config_arena *arena, char why[HX_SETTING_WHY_SIZE])
{
	struct hx_config_door *door = member(setting, object);
	struct hx_config_door read = {.is_off = is_word(text, "off")};
	struct hapax_error err;

	if (!read.is_off && hx_endpoint_parse(text, -1, &read.endpoint, &err) != HAPAX_OK)
		return fail(why, "%s", err.message);
	read.text = hx_config_arena_text(arena, text);
	if (read.text == NULL)
		return HAPAX_ERR_NO_MEMORY;
	*door = read;
	return HAPAX_OK;
}

/* Report only what may be shown: an invalid URL may be a password and its host. */
static enum hapax_status wrong_text(
	const struct hx_setting *setting, struct hapax_bytes text, const char *reason,
	char why[HX_SETTING_WHY_SIZE])
{
	enum hapax_status status;
	struct hapax_buf shown;

	hx_buf_init(&shown, SIZE_MAX);
	status = hx_buf_append(&shown, text.data, text.size);
	if (status == HAPAX_OK && (setting->flags & HX_SETTING_SECRET))
		status = memmem(text.data, text.size, "://", 3) == NULL
			? HAPAX_ERR_INVALID
			: hx_public_url(&shown, hx_kafka_property_view);
	if (status == HAPAX_OK)
		(void)fail(
			why, "'%.*s' %.180s", (int)(shown.size > 64 ? 64 : shown.size),
			(const char *)shown.data, reason);
	else
		(void)fail(why, "it %.180s", reason);
	hx_buf_done(&shown);
	return HAPAX_ERR_INVALID;
}

static enum hapax_status read_text(
	const struct hx_setting *setting, struct hapax_bytes text, struct hx_config_arena *arena,
	const char **ret, char why[HX_SETTING_WHY_SIZE])
{
	char reason[HX_SETTING_WHY_SIZE];
	const char *copy;

	if (setting->type == HX_SETTING_TEXT) {
		if (text.size < (size_t)setting->min)
			return fail(why, "it must not be empty");
		if (text.size > (size_t)setting->max)
			return fail(why, "it is too long: limit %" PRId64 " bytes", setting->max);
	}
	copy = hx_config_arena_text(arena, text);
	if (copy == NULL)
		return HAPAX_ERR_NO_MEMORY;
	if (setting->check != NULL && !setting->check(copy, reason))
		return wrong_text(setting, text, reason, why);
	*ret = copy;
	return HAPAX_OK;
}

enum hapax_status hx_value_read(
	const struct hx_setting *setting, struct hapax_bytes text, void *object,
	struct hx_config_arena *arena, char why[HX_SETTING_WHY_SIZE])
{
	assert(setting->type != HX_SETTING_SECTION && setting->type != HX_SETTING_LIST);
	switch (setting->type) {
	/* One of TEXTS; object is where it goes. */
	case HX_SETTING_TEXTS: return read_text(setting, text, arena, object, why);
	case HX_SETTING_TEXT: return read_text(setting, text, arena, member(setting, object), why);
	case HX_SETTING_COUNT:
	case HX_SETTING_SIZE:
	case HX_SETTING_DURATION: return read_number(setting, text, object, why);
	case HX_SETTING_CHOICE: return read_choice(setting, text, object, why);
	case HX_SETTING_ADDRESS: return read_address(setting, text, object, arena, why);
	case HX_SETTING_BOOLEAN:
		if (!is_word(text, "true") && !is_word(text, "false"))
			return wrong(setting, text, why);
		*(bool *)member(setting, object) = is_word(text, "true");
		return HAPAX_OK;
	case HX_SETTING_SECTION:
	case HX_SETTING_LIST: break;
	}
	return HAPAX_ERR_INVALID;
}

static enum hapax_status write_number(
	const struct hx_setting *setting, int64_t value, struct hapax_buf *out)
{
	char text[64];

	if ((setting->flags & HX_SETTING_NONE_IS_0) && value == 0)
		return hx_buf_append(out, "none", 4);
	if ((setting->flags & HX_SETTING_AUTO) && (uint64_t)value == HX_CONFIG_AUTO)
		return hx_buf_append(out, "auto", 4);
	if ((setting->flags & HX_SETTING_FOREVER) && value == HAPAX_TTL_FOREVER)
		return hx_buf_append(out, "forever", 7);
	format_number(setting, value, text);
	return hx_buf_append(out, text, strlen(text));
}

enum hapax_status hx_value_write(
	const struct hx_setting *setting, const void *object, struct hapax_buf *out)
{
	const void *at = const_member(setting, object);
	const char *text = "";

	/* Lists and sections have no single text. */
	assert(setting->type < HX_SETTING_TEXTS);
	switch (setting->type) {
	case HX_SETTING_COUNT:
	case HX_SETTING_SIZE: return write_number(setting, (int64_t) * (const uint64_t *)at, out);
	case HX_SETTING_DURATION: return write_number(setting, *(const int64_t *)at, out);
	case HX_SETTING_TEXT: text = *(const char *const *)at; break;
	case HX_SETTING_BOOLEAN: text = *(const bool *)at ? "true" : "false"; break;
	case HX_SETTING_CHOICE: text = setting->choices[*(const int *)at]; break;
	case HX_SETTING_ADDRESS: text = ((const struct hx_config_door *)at)->text; break;
	case HX_SETTING_TEXTS:
	case HX_SETTING_SECTION:
	case HX_SETTING_LIST: break;
	}
	return hx_buf_append(out, text, strlen(text));
}

struct hx_value_list hx_value_list(const struct hx_setting *setting, const void *object)
{
	const unsigned char *count = (const unsigned char *)object + setting->count_offset;
	struct hx_value_list list;

	assert(setting->type == HX_SETTING_TEXTS || setting->type == HX_SETTING_LIST);
	memcpy(&list.items, const_member(setting, object), sizeof(list.items));
	memcpy(&list.count, count, sizeof(list.count));
	return list;
}

bool hx_value_is_bare(const struct hx_setting *setting, const void *object)
{
	const void *at = const_member(setting, object);

	if (setting->type == HX_SETTING_COUNT)
		return !(setting->flags & HX_SETTING_NONE_IS_0) || *(const uint64_t *)at != 0;
	return setting->type == HX_SETTING_BOOLEAN;
}

static void list_choices(const struct hx_setting *setting, char text[HX_SETTING_WHY_SIZE])
{
	size_t used = 0;

	for (size_t i = 0; setting->choices[i] != NULL && used < HX_SETTING_WHY_SIZE; i++) {
		const char *join = i == 0 ? "" : setting->choices[i + 1] == NULL ? " or " : ", ";

		used += (size_t)snprintf(
			text + used, HX_SETTING_WHY_SIZE - used, "%s%s", join, setting->choices[i]);
	}
}

void hx_value_describe(const struct hx_setting *setting, char text[HX_SETTING_WHY_SIZE])
{
	bool has_none = setting->flags & HX_SETTING_NONE_IS_0;
	bool has_auto = setting->flags & HX_SETTING_AUTO;
	bool has_forever = setting->flags & HX_SETTING_FOREVER;
	const char *what = "";

	switch (setting->type) {
	case HX_SETTING_CHOICE: list_choices(setting, text); return;
	case HX_SETTING_COUNT:
		what = has_none ? "a whole number, or none" : "a whole number";
		break;
	case HX_SETTING_SIZE:
		what = has_auto && has_none ? "a size such as 64KiB or 10MB, or auto, or none"
			: has_auto          ? "a size such as 64KiB or 10MB, or auto"
			: has_none          ? "a size such as 64KiB or 10MB, or none"
					    : "a size such as 64KiB or 10MB";
		break;
	case HX_SETTING_DURATION:
		what = has_forever ? "a duration such as 30s, 5m, 24h or 7d, or forever"
				   : "a duration such as 100ms, 30s, 5m or 24h";
		break;
	case HX_SETTING_BOOLEAN: what = "true or false"; break;
	case HX_SETTING_ADDRESS: what = "HOST:PORT, unix:PATH or off"; break;
	case HX_SETTING_TEXT: what = "a string"; break;
	case HX_SETTING_TEXTS: what = "a list of strings"; break;
	case HX_SETTING_SECTION: what = "a map of settings"; break;
	case HX_SETTING_LIST: what = "a list of maps"; break;
	}
	(void)snprintf(text, HX_SETTING_WHY_SIZE, "%s", what);
}
