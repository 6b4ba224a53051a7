/* SPDX-License-Identifier: Apache-2.0 */
/*
 * change.c - compare two configs setting by setting, by the schema.
 *
 * Values are compared as they are and shown as hx_config_dump_public() would.
 */
#include "config/change.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "config/dump.h"
#include "config/schema/schema.h"
#include "config/value.h"

enum { VALUE_SIZE_MAX = 8192 };

struct changes {
	hx_config_change_fn *fn;
	void *context;
	size_t count;
	struct hapax_buf texts[2];
};

static void report(struct changes *changes, const char *path, bool needs_restart)
{
	const struct hx_config_change change = {
		.setting = path,
		.before = hapax_buf_bytes(&changes->texts[0]),
		.after = hapax_buf_bytes(&changes->texts[1]),
		.needs_restart = needs_restart,
	};

	changes->count++;
	changes->fn(changes->context, &change);
}

/* Without memory values count as changed and are not shown. */
static bool is_same(
	struct changes *changes, const struct hx_setting *setting, const void *const objects[2],
	hx_config_value_fn *write)
{
	for (size_t i = 0; i < 2; i++) {
		hx_buf_clear(&changes->texts[i]);
		if (write(setting, objects[i], &changes->texts[i]) != HAPAX_OK)
			return false;
	}
	return hx_bytes_equal(
		hapax_buf_bytes(&changes->texts[0]), hapax_buf_bytes(&changes->texts[1]));
}

static void compare_section(
	struct changes *changes, const struct hx_section *section, const void *const objects[2],
	const char *prefix, bool needs_restart);

static void compare_list(
	struct changes *changes, const struct hx_setting *setting, const void *const objects[2],
	const char *prefix, bool needs_restart)
{
	struct hx_value_list lists[2] = {
		hx_value_list(setting, objects[0]), hx_value_list(setting, objects[1])};
	char path[HX_SETTING_PATH_SIZE];

	for (size_t i = 0; i < lists[0].count && lists[0].count == lists[1].count; i++) {
		size_t offset = i * setting->section->size;
		const void *const items[2] = {
			(const unsigned char *)lists[0].items + offset,
			(const unsigned char *)lists[1].items + offset};

		(void)snprintf(path, sizeof(path), "%s%s[%zu].", prefix, setting->name, i);
		compare_section(changes, setting->section, items, path, needs_restart);
	}
	if (lists[0].count == lists[1].count)
		return;
	for (size_t i = 0; i < 2; i++) {
		hx_buf_clear(&changes->texts[i]);
		(void)hx_buf_printf(
			&changes->texts[i], "%zu item%s", lists[i].count,
			lists[i].count == 1 ? "" : "s");
	}
	(void)snprintf(path, sizeof(path), "%s%s", prefix, setting->name);
	report(changes, path, needs_restart);
}

static void compare_section(
	struct changes *changes, const struct hx_section *section, const void *const objects[2],
	const char *prefix, bool needs_restart)
{
	const struct hx_setting *setting;

	for (size_t i = 0; (setting = hx_section_setting(section, i)) != NULL; i++) {
		bool is_fixed = needs_restart || (setting->flags & HX_SETTING_RESTART);
		char path[HX_SETTING_PATH_SIZE];

		(void)snprintf(path, sizeof(path), "%s%s", prefix, setting->name);
		if (setting->type == HX_SETTING_SECTION) {
			const void *const inner[2] = {
				(const unsigned char *)objects[0] + setting->offset,
				(const unsigned char *)objects[1] + setting->offset};

			(void)snprintf(path, sizeof(path), "%s%s.", prefix, setting->name);
			compare_section(changes, setting->section, inner, path, is_fixed);
		} else if (setting->type == HX_SETTING_LIST) {
			compare_list(changes, setting, objects, prefix, is_fixed);
		} else if (!is_same(changes, setting, objects, hx_config_value_write)) {
			(void)is_same(changes, setting, objects, hx_config_value_public);
			report(changes, path, is_fixed);
		}
	}
}

size_t hx_config_changes(
	const struct hx_config *before, const struct hx_config *after, hx_config_change_fn *fn,
	void *context)
{
	struct changes changes = {.fn = fn, .context = context};
	const void *const objects[2] = {before, after};

	for (size_t i = 0; i < 2; i++)
		hx_buf_init(&changes.texts[i], VALUE_SIZE_MAX);
	compare_section(&changes, &hx_config_schema, objects, "", false);
	for (size_t i = 0; i < 2; i++)
		hx_buf_done(&changes.texts[i]);
	return changes.count;
}
