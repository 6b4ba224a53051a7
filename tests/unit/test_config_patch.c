/* SPDX-License-Identifier: Apache-2.0 */
/* Which settings a change at run time may have, and what is shown of it. */
#include "config/patch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "config/schema/schema.h"
#include "support/config_case.h"
#include "wire/json/json_object.h"

enum { SCRATCH_SIZE = 64 * 1024 };

/*
 * Every text that PATCH may change. A setting that names a host, a file or a command is flagged
 * HX_SETTING_FILE_ONLY, and not added here.
 */
static const char *const harmless[] = {
	"defaults.types[].type", "scopes[].scope", "scopes[].types[].type",
	"gateway.routes[].key",  "traces.sample",
};

static bool is_harmless(const char *path)
{
	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
		if (strcmp(path, harmless[i]) == 0)
			return true;
	return false;
}

static void check_texts(
	const struct hx_section *section, const char *prefix, bool is_fixed, size_t *texts)
{
	const struct hx_setting *setting;

	for (size_t i = 0; (setting = hx_section_setting(section, i)) != NULL; i++) {
		bool fixed = !(setting->flags & HX_SETTING_RUNTIME) &&
			(is_fixed || (setting->flags & HX_SETTING_FILE_ONLY));
		char path[256];

		(void)snprintf(
			path, sizeof(path), "%s%s%s", prefix, setting->name,
			setting->type == HX_SETTING_LIST              ? "[]."
				: setting->type == HX_SETTING_SECTION ? "."
								      : "");
		if (setting->section != NULL) {
			check_texts(setting->section, path, fixed, texts);
		} else if (
			setting->type == HX_SETTING_TEXT || setting->type == HX_SETTING_TEXTS ||
			setting->type == HX_SETTING_ADDRESS) {
			(*texts)++;
			if (fixed == is_harmless(path))
				fail_msg("%s: does it name a host, a file or a command?", path);
		}
	}
}

static void a_text_that_can_change_is_harmless(void **state)
{
	size_t texts = 0;

	(void)state;
	check_texts(&hx_config_schema, "", false, &texts);
	assert_true(texts > 40);
}

/* ------------------------------------------------------------------ what comes out */

#define ROUTE "gateway: {routes: [{path: /a, upstream: 'http://a'}, {path: /b, upstream: 'http://b'"

#define OFF      "listen: {gateway: 'off'}\n"
#define CONSUMER "consumers: [{name: a, from: 'redis://h/s', "

static void what_comes_out_is_judged(void **state)
{
	static const struct {
		const char *before, *after;
		const char *setting; /* NULL: it may change */
	} cases[] = {
		{"", "log: {level: debug}\ndefaults: {ttl: 2h}\nscopes: [{scope: a/b}]\n", NULL},
		{"", "traces: {sample: 0.5}\nstore: {max_clock_skew: 9s}\n", NULL},
		{"", "outbox: {batch: 7}\nupstream: {max_idle: 0}\n", NULL},
		{"", "upstream: {url: 'http://x'}\n", "upstream.url"},
		{"upstream: {url: 'http://x'}\n", "", "upstream.url"},
		{"", "store: {url: 'memory:'}\n", "store.url"},
		{"", "store: {journal: 'sqlite:/x'}\n", "store.journal"},
		{"", "log: {audit: /x}\n", "log.audit"},
		{"", "traces: {endpoint: 'http://x'}\n", "traces.endpoint"},
		{"", "traces: {headers_file: /etc/shadow}\n", "traces.headers_file"},
		{"", "auth: {open_metrics: true}\n", "auth.open_metrics"},
		{"", "auth: {certificates: [{name: a, subject: CN=a, role: admin}]}\n",
		 "auth.certificates"},
		{"", "listen: {admin: 'unix:/x'}\n", "listen.admin"},
		{"", "tls: {gateway: {client_ca: /x}}\n", "tls.gateway.client_ca"},
		{"", "gateway: {webhook: {allowed_origins: ['*']}}\n",
		 "gateway.webhook.allowed_origins"},
		{OFF, OFF CONSUMER "exec: id}]\n", "consumers"},
		{OFF CONSUMER "exec: id}]\n", OFF, "consumers"},
		{CONSUMER "exec: id}]\n", CONSUMER "exec: date}]\n", "consumers[0].exec"},
		{ROUTE "}]}\n", ROUTE ", key: content}]}\n", NULL},
		{ROUTE "}]}\n", ROUTE ", tenant: x}]}\n", "gateway.routes[1].tenant"},
		{ROUTE "}]}\n", ROUTE "}, {path: /c, upstream: 'http://c'}]}\n", "gateway.routes"},
		{ROUTE "}]}\n", "gateway: {routes: [{path: /a, upstream: 'http://a'}]}\n",
		 "gateway.routes"},
		{"proxy: {routes: [{path: /a, upstream: 'http://a'}]}\n",
		 "proxy: {routes: [{path: /a, upstream: 'http://b'}]}\n",
		 "proxy.routes[0].upstream"},
		{"proxy: {routes: [{path: /a, upstream: 'http://a'}]}\n",
		 "proxy: {routes: [{path: /a, upstream: 'http://a', credential: none}]}\n",
		 "proxy.routes[0].credential"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hx_config *before = config_case_load(cases[i].before),
				 *after = config_case_load(cases[i].after);
		char setting[HX_CONFIG_SETTING_SIZE] = "";
		bool needs = hx_config_needs_file(before, after, setting);

		if (needs != (cases[i].setting != NULL))
			fail_msg("%s -> %s: %d", cases[i].before, cases[i].after, (int)needs);
		if (needs)
			assert_string_equal(setting, cases[i].setting);
		hx_config_release(before);
		hx_config_release(after);
	}
}

/* ------------------------------------------------------------------ the patch itself */

static void what_is_asked_for_is_judged_and_shown(void **state)
{
	static const struct {
		const char *patch;
		const char *setting; /* that it must not name; NULL: none */
		const char *shown;
	} cases[] = {
		{"{}", NULL, "{}"},
		{"{\"log\":{\"level\":\"debug\",\"rate\":7},\"defaults\":{\"ttl\":null}}", NULL,
		 "{\"defaults\":{\"ttl\":null},\"log\":{\"level\":\"debug\",\"rate\":7}}"},
		{"{\"outbox\":{\"batch\":7,\"sink\":\"kafka://h?sasl.password=hush\"}}",
		 "outbox.sink", "{\"outbox\":{\"batch\":7,\"sink\":\"***\"}}"},
		{"{\"outbox\":\"hush\"}", "outbox", "{\"outbox\":\"***\"}"},
		{"{\"outbox\":{}}", NULL, "{\"outbox\":{}}"},
		{"{\"outbox\":null}", NULL, "{\"outbox\":null}"},
		{"{\"consumers\":[{\"name\":\"a\",\"exec\":\"hush\"}]}", "consumers",
		 "{\"consumers\":[{\"exec\":\"***\",\"name\":\"***\"}]}"},
		{"{\"consumers\":[]}", "consumers", "{\"consumers\":[]}"},
		{"{\"auth\":{\"tokens\":[{\"hash\":\"hush\"}]}}", "auth.tokens",
		 "{\"auth\":{\"tokens\":[{\"hash\":\"***\"}]}}"},
		{"{\"gateway\":{\"routes\":[{\"key\":\"content\",\"upstream\":\"http://u:hush@h\"}]}}",
		 NULL, "{\"gateway\":{\"routes\":[{\"key\":\"content\",\"upstream\":\"***\"}]}}"},
		/* A value in the wrong place may be any text. */
		{"{\"log\":{\"level\":\"redis://:hush@h\",\"rate\":{\"a\":\"hush\"}}}", NULL,
		 "{\"log\":{\"level\":\"***\",\"rate\":\"***\"}}"},
		{"{\"hush\":1,\"log\":{\"hush\":1,\"keys\":\"\\u0068ash\"}}", NULL,
		 "{\"log\":{\"keys\":\"***\"}}"},
		{"{\"scopes\":[{\"scope\":\"a/b\",\"ttl\":\"2h\"},\"hush\"]}", NULL,
		 "{\"scopes\":[{\"scope\":\"a/b\",\"ttl\":\"2h\"},\"***\"]}"},
		{"{\"scopes\":[{\"scope\":\"hush\"}]}", NULL, "{\"scopes\":[{\"scope\":\"***\"}]}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hx_json_reader reader;
		struct hx_json_write json;
		struct hapax_buf out;
		char setting[HX_CONFIG_SETTING_SIZE] = "";
		bool needs;

		hx_json_reader_init(&reader, SCRATCH_SIZE, NULL);
		assert_int_equal(
			hx_json_reader_read(&reader, hapax_bytes_from_text(cases[i].patch), NULL),
			HAPAX_OK);
		needs = hx_config_patch_needs_file(&reader.tree, setting);
		if (needs != (cases[i].setting != NULL))
			fail_msg("%s: %d", cases[i].patch, (int)needs);
		if (needs)
			assert_string_equal(setting, cases[i].setting);
		hx_buf_init(&out, SCRATCH_SIZE);
		hx_json_write_init(&json, &out);
		hx_config_patch_write(&reader.tree, &json);
		assert_int_equal(json.status, HAPAX_OK);
		assert_int_equal(hx_buf_append_byte(&out, '\0'), HAPAX_OK);
		assert_string_equal((const char *)out.data, cases[i].shown);
		hx_buf_done(&out);
		hx_json_reader_done(&reader);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_that_can_change_is_harmless),
		cmocka_unit_test(what_comes_out_is_judged),
		cmocka_unit_test(what_is_asked_for_is_judged_and_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
