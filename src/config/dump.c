/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump.c - write a config as text, by the schema.
 */
#include "config/dump.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "broker/kafka_property.h"
#include "config/config_check.h"
#include "config/schema/schema.h"
#include "config/value.h"
#include "wire/json/json_write.h"
#include "wire/public_url.h"

enum { VALUE_SIZE_MAX = 8192 };

/* The text of a value. */
static enum hapax_status text_of(
	const struct hx_setting *setting, const void *object, struct hapax_buf *out)
{
	enum hapax_status status;

	hx_buf_clear(out);
	status = hx_value_write(setting, object, out);
	/* A called service's URL has neither user nor options; its path may contain an @. */
	if (status == HAPAX_OK && (setting->flags & HX_SETTING_SECRET) &&
	    setting->check != hx_config_check_url)
		status = hx_public_url(out, hx_kafka_property_view);
	return status;
}

/* A holder of password or token hashes can try guesses against them. */
static bool is_hash(const struct hx_setting *setting)
{
	return strcmp(setting->name, "password_sha256") == 0 || strcmp(setting->name, "hash") == 0;
}

enum hapax_status hx_config_value_write(
	const struct hx_setting *setting, const void *object, struct hapax_buf *out)
{
	struct hx_value_list list;
	const char *const *texts;
	enum hapax_status status = HAPAX_OK;

	if (setting->type != HX_SETTING_TEXTS)
		return hx_value_write(setting, object, out);
	list = hx_value_list(setting, object);
	texts = list.items;
	for (size_t i = 0; i < list.count && status == HAPAX_OK; i++)
		status = hx_buf_printf(out, "%s%s", i > 0 ? ", " : "", texts[i]);
	return status;
}

enum hapax_status hx_config_value_public(
	const struct hx_setting *setting, const void *object, struct hapax_buf *out)
{
	if (is_hash(setting))
		return hx_buf_printf(out, "***");
	if (setting->type == HX_SETTING_TEXTS)
		return hx_config_value_write(setting, object, out);
	return text_of(setting, object, out);
}

/* ------------------------------------------------------------------ YAML */

struct yaml {
	struct hapax_buf *out;
	struct hapax_buf text; /* of one value */
	enum hapax_status status;
};

static void put(struct yaml *yaml, const void *data, size_t size)
{
	if (yaml->status == HAPAX_OK)
		yaml->status = hx_buf_append(yaml->out, data, size);
}

static void put_text(struct yaml *yaml, const char *text)
{
	put(yaml, text, strlen(text));
}

static void put_indent(struct yaml *yaml, unsigned depth)
{
	for (unsigned i = 0; i < depth; i++)
		put(yaml, "  ", 2);
}

/* Omit quotes if no reader can need them. */
static bool is_plain(struct hapax_bytes text)
{
	static const char inside[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:-";
	const char *at = text.data;

	if (text.size == 0 || memchr("_.:-", at[0], 4) != NULL || at[text.size - 1] == ':' ||
	    (text.size == 4 && strncasecmp(at, "null", 4) == 0))
		return false;
	for (size_t i = 0; i < text.size; i++) {
		if (memchr(inside, at[i], strlen(inside)) == NULL)
			return false;
	}
	return true;
}

static void put_scalar(struct yaml *yaml, struct hapax_bytes text)
{
	if (is_plain(text))
		put(yaml, text.data, text.size);
	else if (yaml->status == HAPAX_OK)
		yaml->status = hx_json_write_string(yaml->out, text);
}

static void put_value(struct yaml *yaml, const struct hx_setting *setting, const void *object)
{
	enum hapax_status status = text_of(setting, object, &yaml->text);

	if (yaml->status == HAPAX_OK)
		yaml->status = status;
	put_scalar(yaml, hx_bytes(yaml->text.data, yaml->text.size));
}

static void put_section(
	struct yaml *yaml, const struct hx_section *section, const void *object, unsigned depth,
	bool is_item);

static void put_texts(struct yaml *yaml, const struct hx_setting *setting, const void *object)
{
	struct hx_value_list list = hx_value_list(setting, object);
	const char *const *texts = list.items;

	put_text(yaml, " [");
	for (size_t i = 0; i < list.count; i++) {
		if (i > 0)
			put_text(yaml, ", ");
		put_scalar(yaml, hapax_bytes_from_text(texts[i]));
	}
	put_text(yaml, "]\n");
}

static void put_list(
	struct yaml *yaml, const struct hx_setting *setting, const void *object, unsigned depth)
{
	struct hx_value_list list = hx_value_list(setting, object);
	const unsigned char *item = list.items;

	put_text(yaml, list.count == 0 ? " []\n" : "\n");
	for (size_t i = 0; i < list.count; i++, item += setting->section->size)
		put_section(yaml, setting->section, item, depth + 1, true);
}

static void put_section(
	struct yaml *yaml, const struct hx_section *section, const void *object, unsigned depth,
	bool is_item)
{
	const struct hx_setting *setting;
	unsigned inner = depth + (is_item ? 1 : 0);

	for (size_t i = 0; (setting = hx_section_setting(section, i)) != NULL; i++) {
		put_indent(yaml, depth);
		if (is_item)
			put_text(yaml, i == 0 ? "- " : "  ");
		put_text(yaml, setting->name);
		put_text(yaml, ":");
		if (setting->type == HX_SETTING_SECTION) {
			put_text(yaml, "\n");
			put_section(
				yaml, setting->section,
				(const unsigned char *)object + setting->offset, inner + 1, false);
		} else if (setting->type == HX_SETTING_LIST) {
			put_list(yaml, setting, object, inner);
		} else if (setting->type == HX_SETTING_TEXTS) {
			put_texts(yaml, setting, object);
		} else {
			put_text(yaml, " ");
			put_value(yaml, setting, object);
			put_text(yaml, "\n");
		}
	}
}

enum hapax_status hx_config_dump(const struct hx_config *config, struct hapax_buf *out)
{
	struct yaml yaml = {.out = out, .status = HAPAX_OK};
	size_t begin = out->size;

	hx_buf_init(&yaml.text, VALUE_SIZE_MAX);
	put_section(&yaml, &hx_config_schema, config, 0, false);
	hx_buf_done(&yaml.text);
	if (yaml.status != HAPAX_OK)
		out->size = begin;
	return yaml.status;
}

/* ------------------------------------------------------------------ JSON */

struct json_dump {
	struct hapax_buf text; /* of a value */
	bool is_public;
};

static void write_section(
	struct hx_json_write *json, const char *name, const struct hx_section *section,
	const void *object, struct json_dump *dump);

static void write_value(
	struct hx_json_write *json, const struct hx_setting *setting, const void *object,
	struct json_dump *dump)
{
	struct hapax_buf *text = &dump->text;
	enum hapax_status status = text_of(setting, object, text);

	if (status != HAPAX_OK && json->status == HAPAX_OK)
		json->status = status;
	if (json->status != HAPAX_OK)
		return;
	if (dump->is_public && is_hash(setting) && text->size > 0) {
		hx_json_write_text(json, setting->name, "***");
	} else if (hx_value_is_bare(setting, object)) {
		hx_json_write_raw(json, setting->name, hapax_buf_bytes(text));
	} else {
		hx_json_write_bytes(json, setting->name, hx_bytes(text->data, text->size));
	}
}

static void write_list(
	struct hx_json_write *json, const struct hx_setting *setting, const void *object,
	struct json_dump *dump)
{
	struct hx_value_list list = hx_value_list(setting, object);
	const char *const *texts = list.items;
	const unsigned char *items = list.items;

	hx_json_write_begin(json, setting->name, '[');
	for (size_t i = 0; i < list.count; i++) {
		if (setting->type == HX_SETTING_TEXTS)
			hx_json_write_text(json, NULL, texts[i]);
		else
			write_section(
				json, NULL, setting->section, items + i * setting->section->size,
				dump);
	}
	hx_json_write_end(json, ']');
}

static void write_section(
	struct hx_json_write *json, const char *name, const struct hx_section *section,
	const void *object, struct json_dump *dump)
{
	const struct hx_setting *setting;

	hx_json_write_begin(json, name, '{');
	for (size_t i = 0; (setting = hx_section_setting(section, i)) != NULL; i++) {
		if (setting->type == HX_SETTING_SECTION)
			write_section(
				json, setting->name, setting->section,
				(const unsigned char *)object + setting->offset, dump);
		else if (setting->type == HX_SETTING_LIST || setting->type == HX_SETTING_TEXTS)
			write_list(json, setting, object, dump);
		else
			write_value(json, setting, object, dump);
	}
	hx_json_write_end(json, '}');
}

static enum hapax_status dump_json(
	const struct hx_config *config, bool is_public, struct hapax_buf *out)
{
	struct json_dump dump = {.is_public = is_public};
	struct hx_json_write json;
	size_t begin = out->size;

	hx_buf_init(&dump.text, VALUE_SIZE_MAX);
	hx_json_write_init(&json, out);
	write_section(&json, NULL, &hx_config_schema, config, &dump);
	if (json.status == HAPAX_OK)
		json.status = hx_buf_append_byte(out, '\n');
	hx_buf_done(&dump.text);
	if (json.status != HAPAX_OK)
		out->size = begin;
	return json.status;
}

enum hapax_status hx_config_dump_json(const struct hx_config *config, struct hapax_buf *out)
{
	return dump_json(config, false, out);
}

enum hapax_status hx_config_dump_public(const struct hx_config *config, struct hapax_buf *out)
{
	return dump_json(config, true, out);
}
