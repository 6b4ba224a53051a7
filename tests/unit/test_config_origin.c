/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_config_origin.c - where settings come from: options, variables, the file, conf.d.
 */
#include "config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/io.h"
#include "base/thread.h"
#include "config/schema/schema.h"
#include "support/config_case.h"
#include "support/temp_dir.h"
#include "unit/config_faults.h"

static void the_default_store_is_in_the_state_directory(void **state)
{
	static const char *const systemd[] = {
		"STATE_DIRECTORY", "/var/lib/a:/var/lib/b", "XDG_STATE_HOME", "/x", NULL};
	static const char *const xdg[] = {"XDG_STATE_HOME", "/x", "HOME", "/h", NULL};
	static const char *const home[] = {"XDG_STATE_HOME", "relative", "HOME", "/h", NULL};
	static const struct {
		const char *const *variables;
		const char *url;
	} cases[] = {
		{systemd, "file:/var/lib/a/store"},
		{xdg, "file:/x/hapax/store"},
		{home, "file:/h/.local/state/hapax/store"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hx_config *config;

		config_case_variables = cases[i].variables;
		config = config_case_load("");
		assert_string_equal(config->store.url, cases[i].url);
		assert_true(config->store.is_default);
		hx_config_release(config);
		config = config_case_load("store: {url: 'memory:'}");
		assert_string_equal(config->store.url, "memory:");
		assert_false(config->store.is_default);
		hx_config_release(config);
	}
}

static void options_come_before_the_environment_before_the_file(void **state)
{
	static const char *const environment[] = {
		"IDEMPOTENCY_TTL", "1h", "HAPAX_TTL", "2h", NULL, NULL};
	static const char *const all[] = {
		"IDEMPOTENCY_TTL",
		"1h",
		"HAPAX_TTL",
		"2h",
		"HAPAX_DEFAULTS_TTL",
		"3h",
		"HAPAX_GATEWAY_WEBHOOK_ALLOWED_ORIGINS",
		"a.example,b.example",
		"IDEMPOTENCY_CLEANUP_INTERVAL",
		"10m",
		"HAPAX_LISTEN_ADMIN",
		"",
		NULL,
		NULL};
	static const struct hx_config_option options[] = {
		{"defaults.ttl", "4h", "--ttl"}, {"listen.gateway", "off", "--gateway"}};
	struct hapax_bytes text = HX_BYTES_LIT("defaults: {ttl: 5h, lease: 9s}");
	struct hx_config_source source = {.text = &text, .variable = config_case_variable};
	struct hx_config *config;

	(void)state;
	config = config_case_load("defaults: {ttl: 5h}");
	assert_int_equal(config->defaults.ttl_ms, 5 * 3600000);
	hx_config_release(config);
	config_case_variables = environment;
	config = config_case_load("defaults: {ttl: 5h}");
	assert_int_equal(config->defaults.ttl_ms, 2 * 3600000);
	hx_config_release(config);
	config_case_variables = all;
	config = config_case_load("defaults: {ttl: 5h, lease: 9s}");
	assert_int_equal(config->defaults.ttl_ms, 3 * 3600000);
	assert_int_equal(config->defaults.lease_ms, 9000);
	assert_int_equal(config->store.cleanup_interval_ms, 600000);
	assert_int_equal(config->gateway.webhook.allowed_origin_count, 2);
	assert_string_equal(config->gateway.webhook.allowed_origins[1], "b.example");
	/* An empty one is absent. */
	assert_int_equal(config->listen.admin.endpoint.port, 8099);
	hx_config_release(config);
	source.options = options;
	source.option_count = 2;
	assert_int_equal(hx_config_load(&source, &config, NULL, &config_case_err), HAPAX_OK);
	assert_int_equal(config->defaults.ttl_ms, 4 * 3600000);
	assert_true(config->listen.gateway.is_off);
	hx_config_release(config);
}

/* Every setting has a variable; the two of document A work as written there (A4). */
static void the_variables_of_the_documents_work(void **state)
{
	static const char *const environment[] = {
		"IDEMPOTENCY_TTL", "24h", "IDEMPOTENCY_CLEANUP_INTERVAL", "5m", NULL};
	struct hx_config *config;
	char name[HX_SETTING_PATH_SIZE];

	(void)state;
	config_case_variables = environment;
	config = config_case_load("defaults: {ttl: 1s}\nstore: {cleanup_interval: 1s}\n");
	assert_int_equal(config->defaults.ttl_ms, 86400000);
	assert_int_equal(config->store.cleanup_interval_ms, 300000);
	hx_config_release(config);
	hx_variable_of_setting("http.max_connections_per_address", name);
	assert_string_equal(name, "HAPAX_HTTP_MAX_CONNECTIONS_PER_ADDRESS");
}

static void slips_in_variables_are_noticed(void **state)
{
	static const struct {
		const char *name;
		bool is_known;
		const char *near;
	} cases[] = {
		{"HAPAX_LISTEN_GATWAY", false, "HAPAX_LISTEN_GATEWAY"},
		{"HAPAX_HTTP_MAX_CONECTIONS_PER_ADDRESS", false,
		 "HAPAX_HTTP_MAX_CONNECTIONS_PER_ADDRESS"},
		{"HAPAX_TLL", false, "HAPAX_TTL"},
		{"HAPAX_TOKEN", false, ""},
		{"HAPAX_KEY", false, ""},
		{"HAPAX_ATTEMPT", false, ""},
		{"HAPAX_CONFIG", false, ""},
		{"HAPAX_SERVER", false, ""},
		{"PATH", false, ""},
	};
	static const char *const known[] = {
		"HAPAX_TTL",       "HAPAX_STORE",
		"HAPAX_UPSTREAM",  "HAPAX_CLEANUP_INTERVAL",
		"HAPAX_LOG_LEVEL", "HAPAX_GATEWAY_WEBHOOK_ALLOWED_ORIGINS"};
	char near[HX_CONFIG_SETTING_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(hx_config_knows_variable(cases[i].name, near), cases[i].is_known);
		assert_string_equal(near, cases[i].near);
	}
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		assert_true(hx_config_knows_variable(known[i], near));
}

/* ------------------------------------------------------------------ files */

static void write_file(const struct temp_dir *dir, const char *name, const char *text)
{
	char path[512];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", dir->path, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void files_of_conf_d_add_up(void **state)
{
	struct hx_config_source source = {.path = NULL};
	struct hx_config *config;
	struct temp_dir dir;
	char path[512];

	(void)state;
	temp_dir_init(&dir);
	(void)snprintf(path, sizeof(path), "%s/conf.d", dir.path);
	assert_int_equal(mkdir(path, 0700), 0);
	write_file(
		&dir, "hapax.yaml",
		"defaults: {ttl: 1h, lease: 1s}\nscopes: [{scope: a/a}]\nlog: {level: warn}\n");
	write_file(&dir, "conf.d/20-b.yaml", "defaults: {ttl: 3h}\nscopes: [{scope: c/c}]\n");
	write_file(&dir, "conf.d/10-a.yaml", "defaults: {ttl: 2h}\nscopes: [{scope: b/b}]\n");
	write_file(&dir, "conf.d/.30-c.yaml", "nonsense\n");
	write_file(&dir, "conf.d/40.yaml.bak", "nonsense\n");
	write_file(&dir, "conf.d/50-empty.yaml", "# nothing\n");
	(void)snprintf(path, sizeof(path), "%s/hapax.yaml", dir.path);
	source.path = path;
	assert_int_equal(hx_config_load(&source, &config, NULL, &config_case_err), HAPAX_OK);
	assert_int_equal(config->defaults.ttl_ms, 3 * 3600000);
	assert_int_equal(config->defaults.lease_ms, 1000);
	assert_int_equal(config->log.level, 2);
	assert_int_equal(config->scope_count, 3);
	assert_string_equal(config->scopes[1].scope, "b/b");
	assert_string_equal(config->scopes[2].scope, "c/c");
	assert_int_equal(config->scopes[1].ttl_ms, 3 * 3600000);
	assert_non_null(strstr(config->scopes[1].place.name, "conf.d/10-a.yaml"));
	hx_config_release(config);
	/* What a running daemon was told is the whole list; what it stands for is checked still. */
	write_file(
		&dir, "conf.d/" HX_CONFIG_RUNTIME_NAME, "{\"scopes\": [{\"scope\": \"d/d\"}]}\n");
	assert_int_equal(hx_config_load(&source, &config, NULL, &config_case_err), HAPAX_OK);
	assert_int_equal(config->scope_count, 1);
	assert_string_equal(config->scopes[0].scope, "d/d");
	hx_config_release(config);
	write_file(&dir, "conf.d/99-z.yaml", "scopes: [{scope: e/e}]\n");
	assert_int_equal(hx_config_load(&source, &config, NULL, &config_case_err), HAPAX_OK);
	assert_int_equal(config->scope_count, 2);
	assert_string_equal(config->scopes[1].scope, "e/e");
	hx_config_release(config);
	write_file(&dir, "conf.d/" HX_CONFIG_RUNTIME_NAME, "{\"scopes\": []}\n");
	write_file(&dir, "conf.d/99-z.yaml", "\n");
	assert_int_equal(hx_config_load(&source, &config, NULL, &config_case_err), HAPAX_OK);
	assert_int_equal(config->scope_count, 0);
	hx_config_release(config);
	write_file(&dir, "conf.d/20-b.yaml", "scopes: [{scope: c/c, tll: 1h}]\n");
	assert_int_equal(
		hx_config_load(&source, &config, NULL, &config_case_err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(config_case_err.message, "20-b.yaml:1:23: unknown key 'tll'"));
	write_file(&dir, "conf.d/20-b.yaml", "\n");
	write_file(&dir, "conf.d/60-bad.yaml", "a: [\n");
	assert_int_equal(
		hx_config_load(&source, &config, NULL, &config_case_err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(config_case_err.message, "60-bad.yaml:2:1: "));
	temp_dir_done(&dir);
	assert_int_equal(
		hx_config_load(&source, &config, NULL, &config_case_err), HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(
		config_case_err.message, "hapax.yaml: could not open the file: No such file"));
}

static void the_file_is_found(void **state)
{
	struct temp_dir dir;
	char path[HX_CONFIG_PATH_SIZE], folder[512];
	const char *environment[] = {"HOME", dir.path, NULL};

	(void)state;
	temp_dir_init(&dir);
	config_case_variables = environment;
	assert_false(hx_config_find(hx_io_system(), config_case_variable, path));
	(void)snprintf(folder, sizeof(folder), "%s/.config", dir.path);
	assert_int_equal(mkdir(folder, 0700), 0);
	(void)snprintf(folder, sizeof(folder), "%s/.config/hapax", dir.path);
	assert_int_equal(mkdir(folder, 0700), 0);
	write_file(&dir, ".config/hapax/hapax.yaml", "");
	assert_true(hx_config_find(hx_io_system(), config_case_variable, path));
	assert_non_null(strstr(path, "/.config/hapax/hapax.yaml"));
	environment[0] = "CONFIGURATION_DIRECTORY";
	assert_false(hx_config_find(hx_io_system(), config_case_variable, path));
	write_file(&dir, "hapax.yaml", "");
	assert_true(hx_config_find(hx_io_system(), config_case_variable, path));
	temp_dir_done(&dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			the_default_store_is_in_the_state_directory, config_case_set_up),
		cmocka_unit_test_setup(
			options_come_before_the_environment_before_the_file, config_case_set_up),
		cmocka_unit_test_setup(the_variables_of_the_documents_work, config_case_set_up),
		cmocka_unit_test_setup(slips_in_variables_are_noticed, config_case_set_up),
		cmocka_unit_test_setup(files_of_conf_d_add_up, config_case_set_up),
		cmocka_unit_test_setup(the_file_is_found, config_case_set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
