/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the tables of settings: what a compiler cannot see of them. */
#include "config/schema/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "config/config.h"
#include "config/value.h"

static bool is_list(const struct hx_setting *setting)
{
	return setting->type == HX_SETTING_LIST || setting->type == HX_SETTING_TEXTS;
}

/* The default is a value that the setting can have, and is written as it stands in the table. */
static void check_default(const struct hx_section *section, const struct hx_setting *setting)
{
	struct hx_config_arena arena = {0};
	void *object = hx_config_arena_alloc(&arena, 1, section->size);
	char why[HX_SETTING_WHY_SIZE] = "";
	struct hapax_buf text;

	assert_non_null(object);
	hx_buf_init(&text, 1024);
	if (hx_value_read(setting, hapax_bytes_from_text(setting->fallback), object, &arena, why) !=
	    HAPAX_OK)
		fail_msg("%s: %s: %s", section->name, setting->name, why);
	assert_int_equal(hx_value_write(setting, object, &text), HAPAX_OK);
	/* 0s is written 0ms, and 60s 1m. */
	if (setting->type != HX_SETTING_DURATION)
		assert_true(hx_bytes_equal(
			hx_bytes(text.data, text.size), hapax_bytes_from_text(setting->fallback)));
	hx_buf_done(&text);
	hx_config_arena_done(&arena);
}

static void check_section(const struct hx_section *section, unsigned depth, size_t *count)
{
	const struct hx_setting *setting;

	assert_true(depth < 6);
	for (size_t i = 0; (setting = hx_section_setting(section, i)) != NULL; i++) {
		bool has_section =
			setting->type == HX_SETTING_SECTION || setting->type == HX_SETTING_LIST;
		bool is_required = setting->flags & HX_SETTING_REQUIRED;

		(*count)++;
		/* By its name it is found, and no other one. */
		assert_ptr_equal(
			hx_section_find(section, hapax_bytes_from_text(setting->name)), setting);
		assert_true(setting->doc != NULL && strlen(setting->doc) > 5);
		assert_true(setting->offset < section->size);
		assert_true(setting->min <= setting->max);
		assert_int_equal(setting->section != NULL, has_section);
		assert_int_equal(setting->choices != NULL, setting->type == HX_SETTING_CHOICE);
		assert_int_equal(setting->count_offset != 0, is_list(setting));
		if (has_section || is_list(setting))
			assert_null(setting->fallback);
		else if (setting->fallback == NULL)
			assert_true(is_required);
		else
			check_default(section, setting);
		assert_false(is_required && setting->fallback != NULL);
		if (setting->section != NULL)
			check_section(setting->section, depth + 1, count);
	}
}

static void every_row_is_whole(void **state)
{
	size_t count = 0;

	(void)state;
	check_section(&hx_config_schema, 0, &count);
	assert_true(count > 200);
}

static void a_name_is_found_as_a_whole(void **state)
{
	static const char *const wrong[] = {"", "liste", "listen.", "LISTEN", "url"};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_null(hx_section_find(&hx_config_schema, hapax_bytes_from_text(wrong[i])));
	/* And in what a section has from another one. */
	{
		const struct hx_setting *scopes =
			hx_section_find(&hx_config_schema, HX_BYTES_LIT("scopes"));
		const struct hx_setting *ttl =
			hx_section_find(scopes->section, HX_BYTES_LIT("ttl"));

		assert_string_equal(ttl->fallback, "24h");
		assert_non_null(hx_section_find(scopes->section, HX_BYTES_LIT("scope")));
	}
}

static void a_list_is_what_the_config_has(void **state)
{
	struct hapax_bytes text = HX_BYTES_LIT("http: {trusted_proxies: [10.0.0.0/8, '::1']}\n"
					       "scopes: [{scope: a/b}]\n");
	struct hx_config_source source = {.path = "h.yaml", .text = &text};
	const struct hx_setting *proxies =
		hx_section_find(&hx_config_http_section, HX_BYTES_LIT("trusted_proxies"));
	const struct hx_setting *scopes =
		hx_section_find(&hx_config_schema, HX_BYTES_LIT("scopes"));
	struct hx_config *config = NULL;
	struct hx_value_list list;
	const char *const *texts;

	(void)state;
	assert_int_equal(hx_config_load(&source, &config, NULL, NULL), HAPAX_OK);
	list = hx_value_list(proxies, &config->http);
	texts = list.items;
	assert_int_equal(list.count, 2);
	assert_string_equal(texts[1], "::1");
	list = hx_value_list(scopes, config);
	assert_int_equal(list.count, 1);
	assert_string_equal(((const struct hx_config_scope *)list.items)->scope, "a/b");
	hx_config_release(config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_is_whole),
		cmocka_unit_test(a_name_is_found_as_a_whole),
		cmocka_unit_test(a_list_is_what_the_config_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
