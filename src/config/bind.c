/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind.c - fill the structs from trees, variables and options, by the schema.
 *
 * Every source of a value is read, the weakest first. An overruled value must be valid, too, or its
 * fault would show only when the stronger one is removed. Settings are bound in the order of the
 * table, not of the files, so that `defaults` are known before the first scope.
 */
#include "config/bind.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/suggest.h"
#include "config/value.h"

/* A section that is being bound. */
struct frame {
	const struct hx_bind *bind;
	const struct hx_section *section;
	void *object;
	const char *path;                       /* "listen."; "" at the top */
	const struct hx_yaml_node *const *maps; /* its maps in the files */
	size_t map_count;
	const void *defaults; /* for lists that inherit */
	bool is_item;         /* of a list: no variable or option applies */
	bool is_filled;       /* values not given stay unchanged */
};

static void bind_section(const struct frame *frame);

/* ------------------------------------------------------------------ names */

static void refuse_name(const struct frame *frame, const struct hx_yaml_node *key)
{
	const struct hx_setting *setting;
	struct hx_suggest suggest;

	hx_suggest_init(&suggest, key->text.data);
	for (size_t i = 0; (setting = hx_section_setting(frame->section, i)) != NULL; i++)
		hx_suggest_consider(&suggest, setting->name);
	if (suggest.best != NULL)
		hx_fault(
			frame->bind->faults, HAPAX_ERR_INVALID, &key->place,
			"unknown key '%.64s' (did you mean '%s'?)", (const char *)key->text.data,
			suggest.best);
	else
		hx_fault(
			frame->bind->faults, HAPAX_ERR_INVALID, &key->place,
			"unknown key '%.64s' in %s", (const char *)key->text.data,
			frame->section->name);
}

static void check_names(const struct frame *frame, const struct hx_yaml_node *map)
{
	for (const struct hx_yaml_entry *entry = map->first; entry != NULL; entry = entry->next) {
		if (hx_section_find(frame->section, entry->key->text) == NULL)
			refuse_name(frame, entry->key);
	}
}

/* Is node of the kind that the setting takes? False after reporting a fault. */
static bool check_kind(
	const struct frame *frame, const struct hx_setting *setting,
	const struct hx_yaml_node *node, enum hx_yaml_kind kind)
{
	char expected[HX_SETTING_WHY_SIZE];

	if (node->kind == kind && !(kind == HX_YAML_SCALAR && hx_yaml_is_null(node)))
		return true;
	/* All lines of a map or list may be comments. */
	if (kind != HX_YAML_SCALAR && hx_yaml_is_null(node))
		return false;
	hx_value_describe(setting, expected);
	hx_fault(
		frame->bind->faults, HAPAX_ERR_INVALID, &node->place, "'%s' needs %s",
		setting->name, expected);
	return false;
}

/* Like check_kind(), but an empty item is a fault: an extra dash or a forgotten map. */
static bool check_item(
	const struct frame *frame, const struct hx_setting *setting,
	const struct hx_yaml_node *node)
{
	if (!hx_yaml_is_null(node))
		return check_kind(frame, setting, node, HX_YAML_MAP);
	hx_fault(
		frame->bind->faults, HAPAX_ERR_INVALID, &node->place,
		"'%s' has an empty item (null); it must be a map of settings", setting->name);
	return false;
}

/* ------------------------------------------------------------------ weight */

/* Does the file in question give a setting, and which source overrules it? */
struct weight {
	bool is_said;
	char by[256]; /* "": none */
};

/* Note a source that gives the setting, the weakest first. */
static void weigh(const struct frame *frame, const char *by, struct weight *weight)
{
	if (by == frame->bind->asked)
		weight->is_said = true;
	else if (weight->is_said)
		(void)snprintf(weight->by, sizeof(weight->by), "%s", by);
}

static void tell_overruled(
	const struct frame *frame, const struct hx_setting *setting, const struct weight *weight)
{
	char path[HX_SETTING_PATH_SIZE];

	if (weight->by[0] == '\0' || frame->bind->overruled == NULL)
		return;
	(void)snprintf(path, sizeof(path), "%s%s", frame->path, setting->name);
	frame->bind->overruled(path, weight->by, frame->bind->context);
}

/* ------------------------------------------------------------------ single values */

static void read_value(
	const struct frame *frame, const struct hx_setting *setting, struct hapax_bytes text,
	const struct hx_place *place, void *object)
{
	char why[HX_SETTING_WHY_SIZE] = "";
	enum hapax_status status = hx_value_read(setting, text, object, frame->bind->arena, why);

	if (status == HAPAX_ERR_NO_MEMORY)
		hx_fault_no_memory(frame->bind->faults, place);
	else if (status != HAPAX_OK)
		hx_fault(frame->bind->faults, status, place, "%s: %s", setting->name, why);
}

/* Memory for a list of count items. NULL after reporting a fault. */
static void *new_list(
	const struct frame *frame, const struct hx_setting *setting, const struct hx_place *place,
	size_t count, size_t size)
{
	void *items = NULL;

	if (count > (size_t)setting->max) {
		hx_fault(frame->bind->faults, HAPAX_ERR_LIMIT, place, "too many entries");
		return NULL;
	}
	items = hx_config_arena_alloc(frame->bind->arena, count + 1, size);
	if (items == NULL)
		hx_fault_no_memory(frame->bind->faults, place);
	return items;
}

static void set_list(
	const struct frame *frame, const struct hx_setting *setting, const void *items,
	size_t count)
{
	unsigned char *object = frame->object;

	memcpy(object + setting->offset, &items, sizeof(items));
	memcpy(object + setting->count_offset, &count, sizeof(count));
}

/* Read a,b,c: the form of a list in a variable. */
static void read_texts(
	const struct frame *frame, const struct hx_setting *setting, const char *value,
	const struct hx_place *place)
{
	const char **texts;
	size_t count = value[0] == '\0' ? 0 : 1;

	for (const char *at = value; *at != '\0'; at++)
		count += *at == ',';
	texts = new_list(frame, setting, place, count, sizeof(*texts));
	for (size_t i = 0; texts != NULL && i < count; i++) {
		size_t size = strcspn(value, ",");

		read_value(frame, setting, hx_bytes(value, size), place, &texts[i]);
		value += size + 1;
	}
	if (texts != NULL)
		set_list(frame, setting, texts, count);
}

static void read_given(
	const struct frame *frame, const struct hx_setting *setting, const char *value,
	const char *name)
{
	struct hx_place place = {.name = name};

	if (setting->type == HX_SETTING_TEXTS)
		read_texts(frame, setting, value, &place);
	else
		read_value(frame, setting, hapax_bytes_from_text(value), &place, frame->object);
}

/* The documents' own name is the weakest; the name with section and key is the strongest. */
static void read_variables(
	const struct frame *frame, const struct hx_setting *setting, struct weight *weight)
{
	char path[HX_SETTING_PATH_SIZE];
	char full[HX_SETTING_PATH_SIZE];
	const char *names[3] = {setting->document_variable, setting->variable, full};

	if (frame->bind->variable == NULL)
		return;
	(void)snprintf(path, sizeof(path), "%s%s", frame->path, setting->name);
	hx_variable_of_setting(path, full);
	for (size_t i = 0; i < HX_COUNT(names); i++) {
		const char *value = names[i] == NULL ? NULL : frame->bind->variable(names[i]);

		if (value == NULL || value[0] == '\0')
			continue;
		read_given(frame, setting, value, names[i]);
		weigh(frame, names[i], weight);
	}
}

static void read_options(
	const struct frame *frame, const struct hx_setting *setting, struct weight *weight)
{
	size_t prefix = strlen(frame->path);

	for (size_t i = 0; i < frame->bind->option_count; i++) {
		const struct hx_config_option *option = &frame->bind->options[i];

		if (strncmp(option->setting, frame->path, prefix) != 0 ||
		    strcmp(option->setting + prefix, setting->name) != 0)
			continue;
		read_given(frame, setting, option->value, option->name);
		weigh(frame, option->name, weight);
	}
}

/* Read the sources that overrule files, and note the strongest. */
static void read_stronger(
	const struct frame *frame, const struct hx_setting *setting, struct weight *weight)
{
	if (frame->is_item)
		return;
	read_variables(frame, setting, weight);
	read_options(frame, setting, weight);
	tell_overruled(frame, setting, weight);
}

static void bind_value(const struct frame *frame, const struct hx_setting *setting)
{
	static const struct hx_place table = {.name = "default"};
	struct weight weight = {.is_said = false};
	bool is_given = false;

	if (!frame->is_filled && setting->fallback != NULL)
		read_value(
			frame, setting, hapax_bytes_from_text(setting->fallback), &table,
			frame->object);
	for (size_t i = 0; i < frame->map_count; i++) {
		const struct hx_yaml_node *node = hx_yaml_member(frame->maps[i], setting->name);

		if (node == NULL)
			continue;
		is_given = true;
		weigh(frame, node->place.name, &weight);
		if (check_kind(frame, setting, node, HX_YAML_SCALAR))
			read_value(frame, setting, node->text, &node->place, frame->object);
	}
	/* Only items have such settings, and an item is a map. */
	if ((setting->flags & HX_SETTING_REQUIRED) && !is_given && frame->map_count > 0)
		hx_fault(
			frame->bind->faults, HAPAX_ERR_INVALID, &frame->maps[0]->place,
			"%s needs '%s'", frame->section->name, setting->name);
	read_stronger(frame, setting, &weight);
}

/* ------------------------------------------------------------------ lists */

/* Bind a list of texts: the last file that has it counts. */
static void bind_texts(const struct frame *frame, const struct hx_setting *setting)
{
	const struct hx_yaml_node *list = NULL;
	struct weight weight = {.is_said = false};
	const char **texts;
	size_t count = 0;

	for (size_t i = 0; i < frame->map_count; i++) {
		const struct hx_yaml_node *node = hx_yaml_member(frame->maps[i], setting->name);

		if (node == NULL || !check_kind(frame, setting, node, HX_YAML_LIST))
			continue;
		list = node;
		weigh(frame, node->place.name, &weight);
	}
	if (list != NULL) {
		texts = new_list(frame, setting, &list->place, list->count, sizeof(*texts));
		if (texts == NULL)
			return;
		for (const struct hx_yaml_entry *at = list->first; at != NULL; at = at->next) {
			if (check_kind(frame, setting, at->value, HX_YAML_SCALAR))
				read_value(
					frame, setting, at->value->text, &at->value->place,
					&texts[count++]);
		}
		set_list(frame, setting, texts, count);
	}
	read_stronger(frame, setting, &weight);
}

/* The settings that the item's preset stands for, or NULL. An unknown one is refused later. */
static const struct hx_yaml_node *preset_of(
	const struct frame *frame, const struct hx_section *section,
	const struct hx_yaml_node *node)
{
	const struct hx_yaml_node *name =
		section->preset == NULL ? NULL : hx_yaml_member(node, "preset");
	const char *text = name == NULL || name->kind != HX_YAML_SCALAR
		? NULL
		: section->preset(name->text.data);

	if (text == NULL)
		return NULL;
	return hx_yaml_read(
		hapax_bytes_from_text(text), "preset", frame->bind->arena, frame->bind->faults);
}

static void bind_item(
	const struct frame *frame, const struct hx_setting *setting,
	const struct hx_yaml_node *node, unsigned char *item)
{
	const struct hx_yaml_node *preset = preset_of(frame, setting->section, node);
	const struct hx_yaml_node *const maps[] = {preset != NULL ? preset : node, node};
	struct frame inner = {
		.bind = frame->bind,
		.section = setting->section,
		.object = item,
		.path = "",
		.maps = maps,
		.map_count = preset != NULL ? 2 : 1,
		.is_item = true,
		.is_filled = setting->flags & HX_SETTING_INHERITS};

	if (inner.is_filled)
		memcpy(item, frame->defaults, setting->section->size);
	bind_section(&inner);
	if (setting->section->place_offset > 0)
		memcpy(item + setting->section->place_offset, &node->place, sizeof(node->place));
}

/* Is it the file that a running daemon writes? */
static bool is_runtime(const char *name)
{
	const char *slash = strrchr(name, '/');

	return strcmp(slash == NULL ? name : slash + 1, HX_CONFIG_RUNTIME_NAME) == 0;
}

/*
 * Bind a list of maps: the items of all files, in order. The runtime file instead replaces the
 * whole list; otherwise nothing could be removed from it. An item that inherits has its own list or
 * none.
 */
static void bind_list(const struct frame *frame, const struct hx_setting *setting)
{
	const struct hx_yaml_node *lists[HX_BIND_TREES_MAX];
	size_t list_count = 0, item_count = 0, overruled = 0, index = 0, first = 0;
	struct weight weight = {.is_said = false};
	unsigned char *items;

	for (size_t i = 0; i < frame->map_count; i++) {
		const struct hx_yaml_node *node = hx_yaml_member(frame->maps[i], setting->name);

		if (node == NULL || !check_kind(frame, setting, node, HX_YAML_LIST))
			continue;
		weigh(frame, node->place.name, &weight);
		if (is_runtime(node->place.name))
			overruled = item_count;
		lists[list_count++] = node;
		item_count += node->count;
		if (item_count - overruled > (size_t)setting->max) {
			hx_fault(
				frame->bind->faults, HAPAX_ERR_LIMIT, &node->place,
				"too many entries");
			return;
		}
	}
	tell_overruled(frame, setting, &weight);
	if (list_count == 0)
		return;
	items = hx_config_arena_alloc(frame->bind->arena, item_count + 1, setting->section->size);
	if (items == NULL) {
		hx_fault_no_memory(frame->bind->faults, &lists[0]->place);
		return;
	}
	for (size_t i = 0; i < list_count; i++) {
		if (is_runtime(lists[i]->place.name))
			first = index;
		for (const struct hx_yaml_entry *at = lists[i]->first; at != NULL; at = at->next) {
			if (check_item(frame, setting, at->value))
				bind_item(
					frame, setting, at->value,
					items + setting->section->size * index++);
		}
	}
	set_list(frame, setting, items + setting->section->size * first, index - first);
}

/* ------------------------------------------------------------------ sections */

static void bind_inner(const struct frame *frame, const struct hx_setting *setting)
{
	const struct hx_yaml_node *maps[HX_BIND_TREES_MAX];
	char path[HX_SETTING_PATH_SIZE];
	struct frame inner = *frame;

	inner.section = setting->section;
	inner.object = (unsigned char *)frame->object + setting->offset;
	inner.maps = maps;
	inner.map_count = 0;
	inner.path = path;
	(void)snprintf(path, sizeof(path), "%s%s.", frame->path, setting->name);
	for (size_t i = 0; i < frame->map_count; i++) {
		const struct hx_yaml_node *node = hx_yaml_member(frame->maps[i], setting->name);

		if (node != NULL && check_kind(frame, setting, node, HX_YAML_MAP))
			maps[inner.map_count++] = node;
	}
	bind_section(&inner);
}

static void bind_section(const struct frame *frame)
{
	const struct hx_setting *setting;

	assert(frame->map_count <= HX_BIND_TREES_MAX);
	for (size_t i = 0; i < frame->map_count; i++)
		check_names(frame, frame->maps[i]);
	for (size_t i = 0; (setting = hx_section_setting(frame->section, i)) != NULL; i++) {
		if (setting->type == HX_SETTING_SECTION)
			bind_inner(frame, setting);
		else if (setting->type == HX_SETTING_LIST)
			bind_list(frame, setting);
		else if (setting->type == HX_SETTING_TEXTS)
			bind_texts(frame, setting);
		else
			bind_value(frame, setting);
	}
}

void hx_bind_run(const struct hx_bind *bind, struct hx_config *config)
{
	const struct hx_yaml_node *maps[HX_BIND_TREES_MAX];
	struct frame frame = {
		.bind = bind,
		.section = &hx_config_schema,
		.object = config,
		.path = "",
		.maps = maps,
		.defaults = &config->defaults};

	for (size_t i = 0; i < bind->tree_count; i++) {
		const struct hx_yaml_node *tree = bind->trees[i];

		if (tree->kind == HX_YAML_MAP)
			maps[frame.map_count++] = tree;
		else if (!hx_yaml_is_null(tree))
			hx_fault(
				bind->faults, HAPAX_ERR_INVALID, &tree->place,
				"a configuration must be a map of settings");
	}
	bind_section(&frame);
}
