/* SPDX-License-Identifier: Apache-2.0 */
/*
 * variable.c - the names of settings in the environment.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "config/config.h"
#include "config/schema/schema.h"

static const char prefix[] = "HAPAX_";

void hx_variable_of_setting(const char *path, char name[HX_SETTING_PATH_SIZE])
{
	size_t used = strlen(prefix);

	memcpy(name, prefix, used);
	for (; *path != '\0' && used < HX_SETTING_PATH_SIZE - 1; path++) {
		if (*path == '.')
			name[used++] = '_';
		else
			name[used++] = (char)toupper((unsigned char)*path);
	}
	name[used] = '\0';
}

struct search {
	const char *name;
	struct hx_suggest suggest; /* for the part after the common prefix */
	char *near;
	bool is_found;
};

static void consider(struct search *search, const char *candidate)
{
	if (candidate == NULL)
		return;
	search->is_found = search->is_found || strcmp(candidate, search->name) == 0;
	if (strncmp(candidate, prefix, strlen(prefix)) != 0)
		return;
	candidate += strlen(prefix);
	hx_suggest_consider(&search->suggest, candidate);
	/* The candidate is invalid after this returns. */
	if (search->suggest.best == candidate) {
		(void)snprintf(search->near, HX_CONFIG_SETTING_SIZE, "%s%s", prefix, candidate);
		search->suggest.best = search->near;
	}
}

static void walk(struct search *search, const struct hx_section *section, const char *path)
{
	const struct hx_setting *setting;

	for (size_t i = 0; (setting = hx_section_setting(section, i)) != NULL; i++) {
		char inner[HX_SETTING_PATH_SIZE], name[HX_SETTING_PATH_SIZE];
		bool is_section = setting->type == HX_SETTING_SECTION;

		(void)snprintf(
			inner, sizeof(inner), "%s%s%s", path, setting->name, is_section ? "." : "");
		if (is_section) {
			walk(search, setting->section, inner);
		} else if (setting->type != HX_SETTING_LIST) {
			hx_variable_of_setting(inner, name);
			consider(search, name);
			consider(search, setting->variable);
			consider(search, setting->document_variable);
		}
	}
}

bool hx_config_knows_variable(const char *name, char near[HX_CONFIG_SETTING_SIZE])
{
	struct search search = {.name = name, .near = near};

	near[0] = '\0';
	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return false;
	hx_suggest_init(&search.suggest, name + strlen(prefix));
	walk(&search, &hx_config_schema, "");
	return search.is_found;
}
