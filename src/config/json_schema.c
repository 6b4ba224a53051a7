/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_schema.c - the schema as JSON Schema, for editors and other tools.
 *
 * It describes what hapax accepts, as far as JSON Schema can. Only `hapax config check` checks
 * ranges of durations and sizes, and whether settings fit together.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "config/dump.h"
#include "config/schema/schema.h"
#include "wire/json/json_write.h"

#define DURATION "([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?"
#define SIZE     "[0-9]+(B|[KMGTP]i?B|kB)?"

static void write_section(struct hx_json_write *json, const struct hx_section *section);

/* "^(?:...|none)$" */
static void write_pattern(struct hx_json_write *json, const char *body, const char *word)
{
	char text[256];

	(void)snprintf(text, sizeof(text), "^(?:%s%s%s)$", body, word[0] == '\0' ? "" : "|", word);
	hx_json_write_text(json, "pattern", text);
}

/* Write the types that the value may have in YAML: 24 is a number, none is a text. */
static void write_types(struct hx_json_write *json, const char *first, const char *second)
{
	hx_json_write_begin(json, "type", '[');
	hx_json_write_text(json, NULL, first);
	hx_json_write_text(json, NULL, second);
	hx_json_write_end(json, ']');
}

/* The words that stand for a number; "": none. */
static const char *words_of(const struct hx_setting *setting)
{
	bool has_none = setting->flags & HX_SETTING_NONE_IS_0;

	if (setting->flags & HX_SETTING_AUTO)
		return has_none ? "auto|none" : "auto";
	return has_none ? "none" : "";
}

static void write_number(struct hx_json_write *json, const struct hx_setting *setting)
{
	const char *words = words_of(setting);

	if (setting->type == HX_SETTING_DURATION) {
		hx_json_write_text(json, "type", "string");
		write_pattern(json, DURATION, setting->flags & HX_SETTING_FOREVER ? "forever" : "");
		return;
	}
	if (setting->type == HX_SETTING_SIZE || words[0] != '\0') {
		write_types(json, "integer", "string");
		write_pattern(json, setting->type == HX_SETTING_SIZE ? SIZE : "[0-9]+", words);
	} else {
		hx_json_write_text(json, "type", "integer");
	}
	hx_json_write_signed(json, "minimum", setting->min);
	if (setting->max != INT64_MAX)
		hx_json_write_signed(json, "maximum", setting->max);
}

static void write_choices(struct hx_json_write *json, const struct hx_setting *setting)
{
	hx_json_write_begin(json, "enum", '[');
	for (size_t i = 0; setting->choices[i] != NULL; i++)
		hx_json_write_text(json, NULL, setting->choices[i]);
	hx_json_write_end(json, ']');
}

static void write_list(struct hx_json_write *json, const struct hx_setting *setting)
{
	write_types(json, "array", "null");
	hx_json_write_signed(json, "maxItems", setting->max);
	hx_json_write_begin(json, "items", '{');
	if (setting->type == HX_SETTING_TEXTS) {
		hx_json_write_text(json, "type", "string");
	} else {
		hx_json_write_text(json, "type", "object");
		write_section(json, setting->section);
	}
	hx_json_write_end(json, '}');
}

static void write_default(struct hx_json_write *json, const struct hx_setting *setting)
{
	bool is_number = setting->type == HX_SETTING_COUNT && setting->fallback[0] >= '0' &&
		setting->fallback[0] <= '9';

	if (is_number || setting->type == HX_SETTING_BOOLEAN)
		hx_json_write_raw(json, "default", hapax_bytes_from_text(setting->fallback));
	else
		hx_json_write_text(json, "default", setting->fallback);
}

static void write_setting(struct hx_json_write *json, const struct hx_setting *setting)
{
	hx_json_write_begin(json, setting->name, '{');
	hx_json_write_text(json, "description", setting->doc);
	switch (setting->type) {
	case HX_SETTING_SECTION:
		write_types(json, "object", "null");
		write_section(json, setting->section);
		break;
	case HX_SETTING_LIST:
	case HX_SETTING_TEXTS: write_list(json, setting); break;
	case HX_SETTING_BOOLEAN: hx_json_write_text(json, "type", "boolean"); break;
	case HX_SETTING_CHOICE: write_choices(json, setting); break;
	case HX_SETTING_COUNT:
	case HX_SETTING_SIZE:
	case HX_SETTING_DURATION: write_number(json, setting); break;
	case HX_SETTING_ADDRESS: hx_json_write_text(json, "type", "string"); break;
	case HX_SETTING_TEXT:
		hx_json_write_text(json, "type", "string");
		hx_json_write_signed(json, "minLength", setting->min);
		hx_json_write_signed(json, "maxLength", setting->max);
		break;
	}
	if (setting->fallback != NULL)
		write_default(json, setting);
	hx_json_write_end(json, '}');
}

/* Write the members of an open object. */
static void write_section(struct hx_json_write *json, const struct hx_section *section)
{
	const struct hx_setting *setting;
	bool has_required = false;

	hx_json_write_boolean(json, "additionalProperties", false);
	hx_json_write_begin(json, "properties", '{');
	for (size_t i = 0; (setting = hx_section_setting(section, i)) != NULL; i++) {
		write_setting(json, setting);
		has_required = has_required || (setting->flags & HX_SETTING_REQUIRED);
	}
	hx_json_write_end(json, '}');
	if (!has_required)
		return;
	hx_json_write_begin(json, "required", '[');
	for (size_t i = 0; (setting = hx_section_setting(section, i)) != NULL; i++) {
		if (setting->flags & HX_SETTING_REQUIRED)
			hx_json_write_text(json, NULL, setting->name);
	}
	hx_json_write_end(json, ']');
}

enum hapax_status hx_config_json_schema(struct hapax_buf *out)
{
	struct hx_json_write json;
	size_t begin = out->size;

	hx_json_write_init(&json, out);
	hx_json_write_begin(&json, NULL, '{');
	hx_json_write_text(&json, "$schema", "https://json-schema.org/draft/2020-12/schema");
	hx_json_write_text(&json, "title", "hapax.yaml");
	write_types(&json, "object", "null");
	write_section(&json, &hx_config_schema);
	hx_json_write_end(&json, '}');
	if (json.status == HAPAX_OK)
		json.status = hx_buf_append_byte(out, '\n');
	if (json.status != HAPAX_OK)
		out->size = begin;
	return json.status;
}
