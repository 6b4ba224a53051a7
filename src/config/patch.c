/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patch.c - check and show a JSON change of settings, by the schema.
 */
#include "config/patch.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "config/config_arena.h"
#include "config/schema/schema.h"
#include "config/value.h"

static const char hidden[] = "***";

/* The setting that a member names, or NULL. */
static const struct hx_setting *setting_of(
	const struct hx_json_tree *tree, const struct hx_json_node *node,
	const struct hx_section *section)
{
	struct hx_json_string name = hx_json_node_name(tree, node);

	return name.escaped ? NULL : hx_section_find(section, hx_bytes(name.data, name.size));
}

/* Do items have a setting that may be changed? */
static bool has_runtime(const struct hx_setting *list)
{
	const struct hx_setting *setting;

	for (size_t i = 0; (setting = hx_section_setting(list->section, i)) != NULL; i++) {
		if (setting->flags & HX_SETTING_RUNTIME)
			return true;
	}
	return false;
}

static bool is_fixed(const struct hx_setting *setting, bool is_inside)
{
	return !(setting->flags & HX_SETTING_RUNTIME) &&
		(is_inside || (setting->flags & HX_SETTING_FILE_ONLY));
}

/* ------------------------------------------------------------------ what is fixed */

static bool needs_file(
	const struct hx_json_tree *tree, const struct hx_json_node *object,
	const struct hx_section *section, bool is_inside, const char *prefix,
	char path[HX_CONFIG_SETTING_SIZE])
{
	for (uint32_t at = object->child; at != 0; at = tree->nodes[at].next) {
		const struct hx_json_node *node = &tree->nodes[at];
		const struct hx_setting *setting = setting_of(tree, node, section);
		char inner[HX_SETTING_PATH_SIZE];

		/* The reader refuses an unknown name; null withdraws an earlier runtime value. */
		if (setting == NULL || node->token.type == HX_JSON_NULL)
			continue;
		if (setting->type == HX_SETTING_SECTION && node->token.type == HX_JSON_OBJECT) {
			(void)snprintf(inner, sizeof(inner), "%s%s.", prefix, setting->name);
			if (needs_file(
				    tree, node, setting->section, is_fixed(setting, is_inside),
				    inner, path))
				return true;
		} else if (
			is_fixed(setting, is_inside) &&
			!(setting->type == HX_SETTING_LIST && has_runtime(setting))) {
			(void)snprintf(path, HX_CONFIG_SETTING_SIZE, "%s%s", prefix, setting->name);
			return true;
		}
	}
	return false;
}

bool hx_config_patch_needs_file(
	const struct hx_json_tree *patch, char setting[HX_CONFIG_SETTING_SIZE])
{
	return needs_file(patch, &patch->nodes[0], &hx_config_schema, false, "", setting);
}

/* ------------------------------------------------------------------ what is shown */

struct show {
	const struct hx_json_tree *tree;
	struct hx_json_write *json;
	struct hx_config_arena arena;
};

/* Is it a valid value of the setting? Then it cannot be some other text. */
static bool is_good(
	struct show *show, const struct hx_section *section, const struct hx_setting *setting,
	const struct hx_json_node *node)
{
	struct hapax_bytes text = hx_json_node_text(show->tree, node);
	char why[HX_SETTING_WHY_SIZE];
	void *object = hx_config_arena_alloc(&show->arena, 1, section->size);

	if (object == NULL || node->token.type == HX_JSON_OBJECT ||
	    node->token.type == HX_JSON_ARRAY || (setting->flags & HX_SETTING_SECRET))
		return false;
	if (node->token.type == HX_JSON_STRING) {
		struct hx_json_string string = hx_json_node_string(show->tree, node);

		if (string.escaped)
			return false;
		text = hx_bytes(string.data, string.size);
	}
	return hx_value_read(setting, text, object, &show->arena, why) == HAPAX_OK;
}

static void show_object(
	struct show *show, const char *name, const struct hx_json_node *object,
	const struct hx_section *section, bool is_inside);

static void show_value(
	struct show *show, const char *name, const struct hx_json_node *node,
	const struct hx_section *section, const struct hx_setting *setting, bool is_hidden)
{
	if (!is_hidden && is_good(show, section, setting, node))
		hx_json_write_raw(show->json, name, hx_json_node_text(show->tree, node));
	else
		hx_json_write_text(show->json, name, hidden);
}

static void show_list(
	struct show *show, const struct hx_json_node *list, const struct hx_section *section,
	const struct hx_setting *setting, bool is_hidden)
{
	hx_json_write_begin(show->json, setting->name, '[');
	for (uint32_t at = list->child; at != 0; at = show->tree->nodes[at].next) {
		const struct hx_json_node *item = &show->tree->nodes[at];

		if (setting->type == HX_SETTING_TEXTS)
			/* For TEXTS, object is where one text goes: it has room for a pointer. */
			show_value(show, NULL, item, section, setting, is_hidden);
		else if (item->token.type == HX_JSON_OBJECT)
			show_object(show, NULL, item, setting->section, is_hidden);
		else
			hx_json_write_text(show->json, NULL, hidden);
	}
	hx_json_write_end(show->json, ']');
}

static void show_object(
	struct show *show, const char *name, const struct hx_json_node *object,
	const struct hx_section *section, bool is_inside)
{
	hx_json_write_begin(show->json, name, '{');
	for (uint32_t at = object->child; at != 0; at = show->tree->nodes[at].next) {
		const struct hx_json_node *node = &show->tree->nodes[at];
		const struct hx_setting *setting = setting_of(show->tree, node, section);
		bool is_hidden = setting != NULL && is_fixed(setting, is_inside);
		bool is_list = setting != NULL &&
			(setting->type == HX_SETTING_LIST || setting->type == HX_SETTING_TEXTS);

		if (setting == NULL)
			continue;
		if (node->token.type == HX_JSON_NULL)
			hx_json_write_raw(
				show->json, setting->name, hx_json_node_text(show->tree, node));
		else if (setting->type == HX_SETTING_SECTION && node->token.type == HX_JSON_OBJECT)
			show_object(show, setting->name, node, setting->section, is_hidden);
		else if (is_list && node->token.type == HX_JSON_ARRAY)
			show_list(show, node, section, setting, is_hidden);
		else if (is_list || setting->type == HX_SETTING_SECTION)
			hx_json_write_text(show->json, setting->name, hidden);
		else
			show_value(show, setting->name, node, section, setting, is_hidden);
	}
	hx_json_write_end(show->json, '}');
}

void hx_config_patch_write(const struct hx_json_tree *patch, struct hx_json_write *json)
{
	struct show show = {.tree = patch, .json = json};

	show_object(&show, NULL, &patch->nodes[0], &hx_config_schema, false);
	hx_config_arena_done(&show.arena);
}
