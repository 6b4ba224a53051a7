/* SPDX-License-Identifier: Apache-2.0 */
/*
 * restart.c - compare two configs: what a reload cannot change, what PATCH must not change, and
 * which consumers stay as they are.
 *
 * The schema flags the settings. They are compared by their written form.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "config/config.h"
#include "config/schema/schema.h"
#include "config/value.h"

enum { VALUE_SIZE_MAX = 8192 };

struct comparison {
	struct hapax_buf texts[2];
	unsigned except; /* settings with this flag may differ */
	char *path;      /* HX_SETTING_PATH_SIZE bytes */
};

static bool is_same(
	struct comparison *comparison, const struct hx_setting *setting, const void *a,
	const void *b)
{
	const void *objects[2] = {a, b};

	for (size_t i = 0; i < 2; i++) {
		hx_buf_clear(&comparison->texts[i]);
		/* Without memory it counts as changed, which is only reported and does no harm. */
		if (hx_value_write(setting, objects[i], &comparison->texts[i]) != HAPAX_OK)
			return false;
	}
	return hx_bytes_equal(
		hx_bytes(comparison->texts[0].data, comparison->texts[0].size),
		hx_bytes(comparison->texts[1].data, comparison->texts[1].size));
}

/* Text by text. */
static bool texts_are_same(const struct hx_setting *setting, const void *a, const void *b)
{
	struct hx_value_list list_a = hx_value_list(setting, a), list_b = hx_value_list(setting, b);
	const char *const *texts_a = list_a.items, *const *texts_b = list_b.items;

	if (list_a.count != list_b.count)
		return false;
	for (size_t i = 0; i < list_a.count; i++) {
		if (strcmp(texts_a[i], texts_b[i]) != 0)
			return false;
	}
	return true;
}

static bool compare(
	struct comparison *comparison, const struct hx_section *section, const void *a,
	const void *b, const char *prefix, unsigned flag);

/* Compare item by item; everything in an item counts, whatever its flags. */
static bool list_is_same(
	struct comparison *comparison, const struct hx_setting *setting, const void *a,
	const void *b, const char *prefix)
{
	struct hx_value_list list_a = hx_value_list(setting, a), list_b = hx_value_list(setting, b);
	const unsigned char *item_a = list_a.items, *item_b = list_b.items;

	(void)snprintf(comparison->path, HX_SETTING_PATH_SIZE, "%s%s", prefix, setting->name);
	if (list_a.count != list_b.count)
		return false;
	for (size_t i = 0; i < list_a.count; i++) {
		char path[HX_SETTING_PATH_SIZE];

		(void)snprintf(path, sizeof(path), "%s%s[%zu].", prefix, setting->name, i);
		if (!compare(comparison, setting->section, item_a, item_b, path, 0))
			return false;
		item_a += setting->section->size;
		item_b += setting->section->size;
	}
	return true;
}

static bool value_is_same(
	struct comparison *comparison, const struct hx_setting *setting, const void *a,
	const void *b, const char *prefix)
{
	if (setting->type == HX_SETTING_LIST)
		return list_is_same(comparison, setting, a, b, prefix);
	(void)snprintf(comparison->path, HX_SETTING_PATH_SIZE, "%s%s", prefix, setting->name);
	if (setting->type == HX_SETTING_TEXTS)
		return texts_are_same(setting, a, b);
	return is_same(comparison, setting, a, b);
}

/*
 * Do all settings agree that have flag, themselves or through a parent? flag 0: all settings.
 * Otherwise path is that of the first difference.
 */
static bool compare(
	struct comparison *comparison, const struct hx_section *section, const void *a,
	const void *b, const char *prefix, unsigned flag)
{
	const struct hx_setting *setting;

	for (size_t i = 0; (setting = hx_section_setting(section, i)) != NULL; i++) {
		char path[HX_SETTING_PATH_SIZE];
		const unsigned char *inner_a = a, *inner_b = b;
		bool has_flag = (setting->flags & flag) == flag;

		if (setting->flags & comparison->except)
			continue;
		if (setting->type == HX_SETTING_SECTION) {
			(void)snprintf(path, sizeof(path), "%s%s.", prefix, setting->name);
			if (!compare(
				    comparison, setting->section, inner_a + setting->offset,
				    inner_b + setting->offset, path, has_flag ? 0 : flag))
				return false;
		} else if (has_flag && !value_is_same(comparison, setting, a, b, prefix)) {
			return false;
		}
	}
	return true;
}

static bool compare_all(
	const struct hx_section *section, const void *a, const void *b, unsigned flag,
	unsigned except, char path[HX_SETTING_PATH_SIZE])
{
	struct comparison comparison = {.path = path, .except = except};
	bool is_equal;

	for (size_t i = 0; i < 2; i++)
		hx_buf_init(&comparison.texts[i], VALUE_SIZE_MAX);
	is_equal = compare(&comparison, section, a, b, "", flag);
	for (size_t i = 0; i < 2; i++)
		hx_buf_done(&comparison.texts[i]);
	return is_equal;
}

bool hx_config_needs_restart(
	const struct hx_config *a, const struct hx_config *b, char path[HX_CONFIG_SETTING_SIZE])
{
	_Static_assert(
		(int)HX_CONFIG_SETTING_SIZE == (int)HX_SETTING_PATH_SIZE, "room for any path");
	return !compare_all(&hx_config_schema, a, b, HX_SETTING_RESTART, 0, path);
}

bool hx_config_needs_file(
	const struct hx_config *a, const struct hx_config *b, char path[HX_CONFIG_SETTING_SIZE])
{
	return !compare_all(
		&hx_config_schema, a, b, HX_SETTING_FILE_ONLY, HX_SETTING_RUNTIME, path);
}

bool hx_config_is_same(const struct hx_config *a, const struct hx_config *b, const char *name)
{
	const struct hx_setting *setting =
		hx_section_find(&hx_config_schema, hapax_bytes_from_text(name));
	struct hx_setting alone[2] = {{.name = NULL}};
	char path[HX_SETTING_PATH_SIZE];

	assert(setting != NULL);
	/* Compare this one as if there were no others. */
	alone[0] = *setting;
	return compare_all(&(struct hx_section){.name = name, .settings = alone}, a, b, 0, 0, path);
}

static bool run_is_same(const struct hapax_run_options *a, const struct hapax_run_options *b)
{
	return a->lease_ms == b->lease_ms && a->ttl_ms == b->ttl_ms &&
		a->max_run_ms == b->max_run_ms && a->result_size_max == b->result_size_max &&
		a->on_lapse == b->on_lapse && a->on_mismatch == b->on_mismatch &&
		a->is_disabled == b->is_disabled && a->omits_cause == b->omits_cause;
}

bool hx_config_consumer_is_same(
	const struct hx_config_consumer *a, const struct hx_config_consumer *b)
{
	char path[HX_SETTING_PATH_SIZE];

	return run_is_same(&a->run, &b->run) &&
		a->key_options.on_missing == b->key_options.on_missing &&
		compare_all(&hx_config_consumer_section, a, b, 0, 0, path);
}
