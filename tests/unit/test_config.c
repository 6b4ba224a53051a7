/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations: where settings come from, what is refused and how it is said, routes,
 * scopes, and the one that is in force.
 */
#include "config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/io.h"
#include "base/thread.h"
#include "config/dump.h"
#include "config/schema/schema.h"
#include "support/scale.h"
#include "support/temp_dir.h"
#include "unit/config_faults.h"

enum { TEXT_MAX = 1024 * 1024 };

static struct hapax_error err;

/* The environment of a test: pairs of names and values. */
static const char *const *variables;

static const char *variable(const char *name)
{
	for (size_t i = 0; variables != NULL && variables[i] != NULL; i += 2) {
		if (strcmp(variables[i], name) == 0)
			return variables[i + 1];
	}
	return NULL;
}

static struct hx_config *try_load(const char *text, struct hapax_buf *faults)
{
	struct hapax_bytes bytes = hapax_bytes_from_text(text);
	struct hx_config_source source = {.path = "h.yaml", .text = &bytes, .variable = variable};
	struct hx_config *config = NULL;

	err.message[0] = '\0';
	if (hx_config_load(&source, &config, faults, &err) != HAPAX_OK)
		assert_null(config);
	return config;
}

static struct hx_config *load(const char *text)
{
	struct hx_config *config = try_load(text, NULL);

	if (config == NULL)
		fail_msg("%s: %s", text, err.message);
	return config;
}

static int no_environment(void **state)
{
	(void)state;
	variables = NULL;
	return 0;
}

static void defaults_are_those_of_the_design(void **state)
{
	struct hx_config_source source = {.path = NULL};
	struct hx_config *config;

	(void)state;
	assert_int_equal(hx_config_load(&source, &config, NULL, &err), HAPAX_OK);
	assert_true(config->enabled);
	assert_string_equal(config->listen.gateway.text, "127.0.0.1:8080");
	assert_int_equal(config->listen.gateway.endpoint.port, 8080);
	assert_int_equal(config->listen.admin.endpoint.port, 8099);
	assert_false(config->listen.admin.is_off);
	assert_int_equal(config->defaults.ttl_ms, 24 * 3600 * 1000);
	assert_int_equal(config->defaults.lease_ms, 30000);
	assert_int_equal(config->defaults.max_run_ms, 60000);
	assert_int_equal(config->defaults.wait_ms, 0);
	assert_int_equal(config->defaults.on_lapse, HAPAX_ON_LAPSE_RETRY);
	assert_int_equal(config->defaults.on_mismatch, HAPAX_ON_MISMATCH_REJECT);
	assert_int_equal(config->defaults.on_missing, HAPAX_ON_MISSING_REJECT);
	assert_int_equal(config->store.cleanup_interval_ms, 5 * 60 * 1000);
	assert_int_equal(config->store.max_result, 256 * 1024);
	assert_int_equal(config->store.parked_max, 10000);
	assert_string_equal(config->store.url, "file:/var/lib/hapax/store");
	assert_true(config->store.is_default);
	assert_int_equal(config->http.max_body, 16 * 1024 * 1024);
	assert_int_equal(config->gateway.route_count, 0);
	hx_config_release(config);
}

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

		variables = cases[i].variables;
		config = load("");
		assert_string_equal(config->store.url, cases[i].url);
		assert_true(config->store.is_default);
		hx_config_release(config);
		config = load("store: {url: 'memory:'}");
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
	struct hx_config_source source = {.text = &text, .variable = variable};
	struct hx_config *config;

	(void)state;
	config = load("defaults: {ttl: 5h}");
	assert_int_equal(config->defaults.ttl_ms, 5 * 3600000);
	hx_config_release(config);
	variables = environment;
	config = load("defaults: {ttl: 5h}");
	assert_int_equal(config->defaults.ttl_ms, 2 * 3600000);
	hx_config_release(config);
	variables = all;
	config = load("defaults: {ttl: 5h, lease: 9s}");
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
	assert_int_equal(hx_config_load(&source, &config, NULL, &err), HAPAX_OK);
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
	variables = environment;
	config = load("defaults: {ttl: 1s}\nstore: {cleanup_interval: 1s}\n");
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

static void faults_have_their_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(config_faults) / sizeof(config_faults[0]); i++) {
		struct hx_config *config = try_load(config_faults[i].text, NULL);

		if (config != NULL)
			fail_msg("taken: %s", config_faults[i].text);
		if (strncmp(err.message, config_faults[i].message,
			    strlen(config_faults[i].message)) != 0)
			fail_msg(
				"%s: got \"%s\", not \"%s\"", config_faults[i].text, err.message,
				config_faults[i].message);
	}
}

static void all_faults_are_told(void **state)
{
	static const char text[] = "defaults:\n"
				   "  tll: 1s\n"
				   "  lease: x\n"
				   "listen:\n"
				   "  admin: y\n";
	static const char *const environment[] = {"HAPAX_LOG_LEVEL", "loud", NULL};
	struct hapax_buf faults;

	(void)state;
	variables = environment;
	hx_buf_init(&faults, TEXT_MAX);
	assert_null(try_load(text, &faults));
	assert_int_equal(hx_buf_append(&faults, "", 1), HAPAX_OK);
	assert_non_null(strstr((char *)faults.data, "h.yaml:5:10: admin: invalid address 'y'"));
	assert_non_null(strstr((char *)faults.data, "h.yaml:2:3: unknown key 'tll'"));
	assert_non_null(strstr((char *)faults.data, "h.yaml:3:10: lease: 'x' is not a duration"));
	assert_non_null(strstr((char *)faults.data, "HAPAX_LOG_LEVEL: level: 'loud' is not debug"));
	hx_buf_done(&faults);
	/* The value that an option overrules must be right, too. */
	hx_buf_init(&faults, 64);
	assert_null(try_load(text, &faults));
	assert_true(faults.size <= 64);
	hx_buf_done(&faults);
}

static const char routes[] =
	"upstream: {url: 'http://127.0.0.1:9000'}\n"
	"gateway:\n"
	"  routes:\n"
	"    - {name: exact, path: /orders/, types: [a.b], upstream: 'http://[::1]:81/v1//'}\n"
	"    - {name: prefix, path: /orders, types: [x, 'a.*'], sources: ['/shop*']}\n"
	"    - {name: rest, tenant: acme, key: 'header:X-Id', fingerprint: none}\n";

static const char *route_of(
	const struct hx_config *config, const char *path, const char *type, const char *source)
{
	const struct hx_config_route *route = hx_config_route_find(
		config, hapax_bytes_from_text(path), hapax_bytes_from_text(type),
		hapax_bytes_from_text(source));

	return route == NULL ? "none" : route->name;
}

static void the_first_route_that_matches_counts(void **state)
{
	struct hx_config *config = load(routes);
	const struct hx_config_route *exact = &config->gateway.routes[0];

	(void)state;
	assert_string_equal(route_of(config, "/orders", "a.b", ""), "exact");
	assert_string_equal(route_of(config, "/orders/17", "a.b", ""), "exact");
	assert_string_equal(route_of(config, "/orders2", "a.b", "/shop"), "rest");
	assert_string_equal(route_of(config, "/orders", "a.c", "/shop/1"), "prefix");
	assert_string_equal(route_of(config, "/orders", "x", "/shop"), "prefix");
	assert_string_equal(route_of(config, "/orders", "xy", "/shop"), "rest");
	assert_string_equal(route_of(config, "/orders", "a.c", "/sho"), "rest");
	assert_string_equal(route_of(config, "/", "", ""), "rest");
	assert_int_equal(exact->target.endpoint.port, 81);
	assert_string_equal(exact->target.endpoint.host, "::1");
	assert_string_equal(exact->target.authority, "[::1]:81");
	assert_string_equal(exact->target.path, "/v1");
	assert_string_equal(config->gateway.routes[2].upstream, "http://127.0.0.1:9000");
	assert_string_equal(config->gateway.routes[2].target.path, "");
	assert_int_equal(config->gateway.routes[2].target.endpoint.port, 9000);
	assert_int_equal(config->gateway.routes[1].place.line, 5);
	assert_ptr_equal(config->gateway.routes[2].scope, &config->defaults);
	hx_config_release(config);

	config = load("upstream: {url: 'http://h'}");
	assert_string_equal(route_of(config, "/anything", "t", "s"), "default");
	assert_int_equal(config->gateway.routes[0].target.endpoint.port, 80);
	hx_config_release(config);
	config = load("upstream: {url: 'http://h'}\ngateway: {routes: [{path: /a, name: a}]}");
	assert_string_equal(route_of(config, "/b", "t", "s"), "none");
	hx_config_release(config);
}

/* The strategy of a route is made, with the scope's policy for what is missing. */
static void a_route_has_its_strategy(void **state)
{
	struct hx_config *config = load(
		"upstream: {url: 'http://h'}\n"
		"scopes: [{scope: acme/default, on_missing: content}, {scope: '*/eu', on_missing: pass}]\n"
		"gateway: {routes: [\n"
		"  {name: fixed, path: /a, key: 'field:data.id', tenant: acme},\n"
		"  {name: open, path: /b, key: 'field:data.id', tenant_from: header.T, group: eu},\n"
		"  {name: other, path: /c, key: 'field:data.id', fingerprint: none}]}\n");
	struct hapax_field header = {HX_BYTES_LIT("t"), HX_BYTES_LIT("umbrella")};
	struct hapax_event event = HAPAX_EVENT_INIT;
	struct hapax_buf scratch;

	(void)state;
	hx_buf_init(&scratch, TEXT_MAX);
	event.data = HX_BYTES_LIT("{\"no\":1}");
	event.headers = &header;
	event.header_count = 1;
	for (size_t i = 0; i < 3; i++) {
		static const int kinds[] = {HAPAX_KEY_CONTENT, HAPAX_KEY_NONE, -1};
		const struct hx_config_route *route = &config->gateway.routes[i];
		struct hapax_key key = HAPAX_KEY_INIT;
		enum hapax_status status =
			hapax_key_make(route->strategy, &event, &scratch, &key, &err);

		assert_int_equal(status, kinds[i] < 0 ? HAPAX_ERR_INVALID : HAPAX_OK);
		if (kinds[i] >= 0)
			assert_int_equal((int)key.kind, kinds[i]);
	}
	assert_ptr_equal(config->gateway.routes[0].scope, &config->scopes[0]);
	assert_null(config->gateway.routes[1].scope);
	{
		struct hapax_key key = HAPAX_KEY_INIT;

		event.data = HX_BYTES_LIT("{\"id\":1}");
		assert_int_equal(
			hapax_key_make(
				config->gateway.routes[1].strategy, &event, &scratch, &key, &err),
			HAPAX_OK);
		assert_string_equal(key.tenant, "umbrella");
		assert_string_equal(key.group, "eu");
		assert_true(key.has_fingerprint);
		assert_int_equal(
			hapax_key_make(
				config->gateway.routes[2].strategy, &event, &scratch, &key, &err),
			HAPAX_OK);
		assert_false(key.has_fingerprint);
	}
	hx_buf_done(&scratch);
	hx_config_release(config);
}

static void scopes_inherit_and_types_have_their_ttl(void **state)
{
	struct hx_config *config = load(
		"scopes:\n"
		"  - {scope: acme/payments, ttl: 30d, types: [{type: refund, ttl: forever}]}\n"
		"  - {scope: acme/*, lease: 1m}\n"
		"  - {scope: '*/audit', enabled: false, on_lapse: park}\n"
		"defaults: {ttl: 2h, wait: 3s, types: [{type: 'ping*', ttl: 5m}, {type: '*', ttl: 1h}]}\n"
		"store: {max_result: 1KiB}\n");
	const struct hx_config_scope *payments =
		hx_config_scope_find(config, HX_BYTES_LIT("acme"), HX_BYTES_LIT("payments"));
	const struct hx_config_scope *acme =
		hx_config_scope_find(config, HX_BYTES_LIT("acme"), HX_BYTES_LIT("audit"));
	const struct hx_config_scope *audit =
		hx_config_scope_find(config, HX_BYTES_LIT("x"), HX_BYTES_LIT("audit"));
	struct hapax_run_options options;

	(void)state;
	assert_string_equal(payments->tenant, "acme");
	assert_string_equal(payments->group, "payments");
	assert_int_equal(payments->wait_ms, 3000);
	assert_int_equal(hx_config_ttl_ms(payments, HX_BYTES_LIT("other")), 30LL * 86400000);
	assert_true(hx_config_ttl_ms(payments, HX_BYTES_LIT("refund")) == HAPAX_TTL_FOREVER);
	assert_int_equal(acme->lease_ms, 60000);
	assert_int_equal(acme->ttl_ms, 2 * 3600000);
	assert_int_equal(hx_config_ttl_ms(acme, HX_BYTES_LIT("ping.x")), 300000);
	assert_int_equal(hx_config_ttl_ms(acme, HX_BYTES_LIT("pin")), 3600000);
	assert_false(audit->enabled);
	hx_config_run_options(config, audit, HX_BYTES_LIT("ping"), &options);
	assert_true(options.is_disabled);
	assert_int_equal(options.ttl_ms, 300000);
	assert_int_equal(options.wait_ms, 3000);
	assert_int_equal(options.max_run_ms, 60000);
	assert_int_equal(options.on_lapse, HAPAX_ON_LAPSE_PARK);
	assert_int_equal(options.result_size_max, 1024);
	hx_config_run_options(config, payments, HX_BYTES_LIT("ping"), &options);
	assert_false(options.is_disabled);
	assert_ptr_equal(
		hx_config_scope_find(config, HX_BYTES_LIT("x"), HX_BYTES_LIT("y")),
		&config->defaults);
	hx_config_release(config);

	/* D7: off for all. */
	config = load("enabled: false");
	hx_config_run_options(config, &config->defaults, HX_BYTES_LIT(""), &options);
	assert_true(options.is_disabled);
	hx_config_release(config);
}

static void the_store_gets_what_was_set(void **state)
{
	struct hx_config *config = load(
		"store: {url: 'memory:', max_bytes: 1MiB, max_keys: 100000, evict: lru, parked_max: 7,\n"
		"  max_clock_step: 1h, timeout: 2s, segment_bytes: 1MiB, cleanup_interval: 1m}");
	struct hapax_store_options options;

	(void)state;
	hx_config_store_options(config, config->store.max_bytes, &options);
	assert_int_equal(options.bytes_max, 1024 * 1024);
	assert_int_equal(options.keys_max, 100000);
	assert_int_equal(options.evict, HAPAX_EVICT_LRU);
	assert_int_equal(options.parked_max, 7);
	assert_int_equal(options.clock_step_ms_max, 3600000);
	assert_int_equal(options.timeout_ms, 2000);
	assert_int_equal(options.sweep_interval_ms, 60000);
	assert_int_equal(options.unsafe_interval_ms, 0);
	hx_config_release(config);
	config = load("store: {sync: unsafe-interval, unsafe_interval: 2s}");
	hx_config_store_options(config, config->store.max_bytes, &options);
	assert_int_equal(options.unsafe_interval_ms, 2000);
	hx_config_release(config);
}

/* The memory of the machine or of the file: an eighth for listeners, half for a store in this process. */
static void memory_is_divided(void **state)
{
	enum { MIB = 1024 * 1024 };
	struct hx_config *config = load("store: {url: 'memory:'}");
	struct hx_config_memory_plan plan;

	(void)state;
	hx_config_memory_plan(config, (uint64_t)128 * MIB, &plan);
	assert_int_equal(plan.limit, 128 * MIB);
	assert_int_equal(plan.listeners, 16 * MIB);
	assert_int_equal(plan.store, 64 * MIB);
	hx_config_memory_plan(config, 0, &plan);
	assert_int_equal(plan.listeners, 0);
	assert_int_equal(plan.store, 0);
	hx_config_release(config);

	config = load("store: {url: 'redis://h'}\nmemory: {limit: 64MiB}");
	hx_config_memory_plan(config, (uint64_t)128 * MIB, &plan);
	assert_int_equal(plan.limit, 64 * MIB);
	assert_int_equal(plan.listeners, 8 * MIB);
	assert_int_equal(plan.store, 0);
	hx_config_release(config);

	config = load("store: {url: 'file:/x', max_bytes: none}\nmemory: {listeners: none}");
	hx_config_memory_plan(config, (uint64_t)128 * MIB, &plan);
	assert_int_equal(plan.listeners, 0);
	assert_int_equal(plan.store, 0);
	hx_config_release(config);

	config = load("store: {url: 'file:/x', max_bytes: 3MiB}\nmemory: {listeners: 2MiB}");
	hx_config_memory_plan(config, (uint64_t)128 * MIB, &plan);
	assert_int_equal(plan.listeners, 2 * MIB);
	assert_int_equal(plan.store, 3 * MIB);
	hx_config_release(config);
}

static struct hx_config *load_again(const struct hx_config *config)
{
	struct hx_config *again;
	struct hapax_buf text;

	hx_buf_init(&text, TEXT_MAX);
	assert_int_equal(hx_config_dump(config, &text), HAPAX_OK);
	assert_int_equal(hx_buf_append(&text, "", 1), HAPAX_OK);
	again = load((const char *)text.data);
	hx_buf_done(&text);
	return again;
}

/* A dump says it all: what is read of it dumps as the same. */
static void a_dump_reads_back(void **state)
{
	static const char *const texts[] = {
		"",
		routes,
		"scopes: [{scope: 'a b/ü', ttl: forever, types: [{type: \"x \\\" y: #*\", ttl: 1ms}]}]",
		"listen: {gateway: off, admin: 'unix:/run/x y.sock'}\nlog: {rate: none, keys: hash}",
		"gateway: {webhook: {allowed_origins: ['*', 'null', '~', 'a: b', '- x', '']}}",
		"enabled: false\nstore: {url: 'memory:', max_bytes: 3GiB, evict: lru}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct hx_config *config = load(texts[i]);
		struct hx_config *again = load_again(config);
		struct hapax_buf dumps[2];

		for (size_t k = 0; k < 2; k++) {
			hx_buf_init(&dumps[k], TEXT_MAX);
			assert_int_equal(
				hx_config_dump_json(k == 0 ? config : again, &dumps[k]), HAPAX_OK);
		}
		assert_int_equal(dumps[0].size, dumps[1].size);
		assert_memory_equal(dumps[0].data, dumps[1].data, dumps[0].size);
		for (size_t k = 0; k < 2; k++)
			hx_buf_done(&dumps[k]);
		hx_config_release(config);
		hx_config_release(again);
	}
}

static void passwords_are_not_dumped(void **state)
{
	static const struct {
		const char *url;
		const char *shown;
	} cases[] = {
		{"redis://u:s3cret@h:1/0", "redis://u:***@h:1/0"},
		{"redis://:s@h", "redis://:***@h"},
		{"redis://:s3c/r@et@h", "redis://:***@h"},
		{"postgres://h/db?password=s3cret&pool=1", "postgres://h/db?password=***&pool=1"},
		{"postgres://u:s3cret@h/db?x=s3cret&password=s3cret",
		 "postgres://u:***@h/db?***&password=***"},
		{"redis://h:1/0", "redis://h:1/0"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hx_config_option option = {"store.url", cases[i].url, "--store"};
		struct hx_config_source source = {.options = &option, .option_count = 1};
		struct hx_config *config;
		struct hapax_buf text;

		assert_int_equal(hx_config_load(&source, &config, NULL, &err), HAPAX_OK);
		assert_string_equal(config->store.url, cases[i].url);
		hx_buf_init(&text, TEXT_MAX);
		assert_int_equal(hx_config_dump(config, &text), HAPAX_OK);
		assert_int_equal(hx_config_dump_json(config, &text), HAPAX_OK);
		assert_null(memmem(text.data, text.size, "s3c", 3));
		assert_non_null(
			memmem(text.data, text.size, cases[i].shown, strlen(cases[i].shown)));
		hx_buf_done(&text);
		hx_config_release(config);
	}
}

static void what_needs_a_restart_is_named(void **state)
{
	struct hx_config *old = load("");
	struct hx_config *same = load("defaults: {ttl: 1h}\nlog: {level: debug}");
	struct hx_config *door = load("listen: {admin: off}\nstore: {timeout: 1s}");
	struct hx_config *store = load("store: {timeout: 1s}");
	char setting[HX_CONFIG_SETTING_SIZE] = "";

	(void)state;
	assert_false(hx_config_needs_restart(old, same, setting));
	assert_true(hx_config_needs_restart(old, door, setting));
	assert_string_equal(setting, "listen.admin");
	assert_true(hx_config_needs_restart(old, store, setting));
	assert_string_equal(setting, "store.timeout");
	assert_false(hx_config_needs_restart(door, door, setting));
	hx_config_release(old);
	hx_config_release(same);
	hx_config_release(door);
	hx_config_release(store);
}

static void a_section_is_the_same_or_not(void **state)
{
	static const struct {
		const char *text;
		bool outbox, routes;
	} cases[] = {
		{"", false, false},
		{"outbox: {url: 'sqlite:a', sink: 'http://h/a'}", true, false},
		{"outbox: {url: 'sqlite:a', sink: 'http://h/b'}", false, false},
		{"outbox: {url: 'sqlite:a', sink: 'http://h/a', batch: 1000}", true, false},
		{"outbox: {url: 'sqlite:a', sink: 'http://h/a', batch: 999}\n"
		 "scopes: [{scope: 'a/b', ttl: 1h}]",
		 false, true},
	};
	struct hx_config *old =
		load("outbox: {url: 'sqlite:a', sink: 'http://h/a'}\nlog: {level: debug}\n"
		     "scopes: [{scope: 'a/b', ttl: 60m}]");

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hx_config *config = load(cases[i].text);

		assert_int_equal(hx_config_is_same(old, config, "outbox"), cases[i].outbox);
		assert_int_equal(hx_config_is_same(old, config, "scopes"), cases[i].routes);
		hx_config_release(config);
	}
	hx_config_release(old);
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
	assert_int_equal(hx_config_load(&source, &config, NULL, &err), HAPAX_OK);
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
	assert_int_equal(hx_config_load(&source, &config, NULL, &err), HAPAX_OK);
	assert_int_equal(config->scope_count, 1);
	assert_string_equal(config->scopes[0].scope, "d/d");
	hx_config_release(config);
	write_file(&dir, "conf.d/99-z.yaml", "scopes: [{scope: e/e}]\n");
	assert_int_equal(hx_config_load(&source, &config, NULL, &err), HAPAX_OK);
	assert_int_equal(config->scope_count, 2);
	assert_string_equal(config->scopes[1].scope, "e/e");
	hx_config_release(config);
	write_file(&dir, "conf.d/" HX_CONFIG_RUNTIME_NAME, "{\"scopes\": []}\n");
	write_file(&dir, "conf.d/99-z.yaml", "\n");
	assert_int_equal(hx_config_load(&source, &config, NULL, &err), HAPAX_OK);
	assert_int_equal(config->scope_count, 0);
	hx_config_release(config);
	write_file(&dir, "conf.d/20-b.yaml", "scopes: [{scope: c/c, tll: 1h}]\n");
	assert_int_equal(hx_config_load(&source, &config, NULL, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "20-b.yaml:1:23: unknown key 'tll'"));
	write_file(&dir, "conf.d/20-b.yaml", "\n");
	write_file(&dir, "conf.d/60-bad.yaml", "a: [\n");
	assert_int_equal(hx_config_load(&source, &config, NULL, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "60-bad.yaml:2:1: "));
	temp_dir_done(&dir);
	assert_int_equal(hx_config_load(&source, &config, NULL, &err), HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "hapax.yaml: could not open the file: No such file"));
}

static void the_file_is_found(void **state)
{
	struct temp_dir dir;
	char path[HX_CONFIG_PATH_SIZE], folder[512];
	const char *environment[] = {"HOME", dir.path, NULL};

	(void)state;
	temp_dir_init(&dir);
	variables = environment;
	assert_false(hx_config_find(hx_io_system(), variable, path));
	(void)snprintf(folder, sizeof(folder), "%s/.config", dir.path);
	assert_int_equal(mkdir(folder, 0700), 0);
	(void)snprintf(folder, sizeof(folder), "%s/.config/hapax", dir.path);
	assert_int_equal(mkdir(folder, 0700), 0);
	write_file(&dir, ".config/hapax/hapax.yaml", "");
	assert_true(hx_config_find(hx_io_system(), variable, path));
	assert_non_null(strstr(path, "/.config/hapax/hapax.yaml"));
	environment[0] = "CONFIGURATION_DIRECTORY";
	assert_false(hx_config_find(hx_io_system(), variable, path));
	write_file(&dir, "hapax.yaml", "");
	assert_true(hx_config_find(hx_io_system(), variable, path));
	temp_dir_done(&dir);
}

/* ------------------------------------------------------------------ memory, threads */

/* Whichever allocation fails: it is said, and nothing is left behind. */
static void no_memory_is_told(void **state)
{
	int64_t live = hx_alloc_live();
	bool is_done = false;

	(void)state;
	for (uint64_t nth = 1; !is_done; nth++) {
		struct hx_config *config;

		hx_alloc_fail_at(nth, 0);
		config = try_load(routes, NULL);
		hx_alloc_fail_at(0, 0);
		is_done = config != NULL;
		if (!is_done)
			assert_true(err.message[0] != '\0');
		hx_config_release(config);
		assert_int_equal(hx_alloc_live(), live);
		assert_true(nth < 1000);
	}
}

enum { READERS = 3 };

struct crowd {
	struct hx_config_current current;
	_Atomic bool is_over;
	_Atomic uint64_t reads;
};

/* Keeps, looks, releases; what it sees is one config or another, never a mixture. */
static void reader_run(void *arg)
{
	struct crowd *crowd = arg;
	struct hx_config *mine = hx_config_current_keep(&crowd->current);

	while (!crowd->is_over) {
		if (!hx_config_current_is(&crowd->current, mine)) {
			hx_config_release(mine);
			mine = hx_config_current_keep(&crowd->current);
		}
		if (mine->defaults.ttl_ms != mine->defaults.lease_ms ||
		    mine->defaults.ttl_ms != mine->scopes[0].ttl_ms)
			abort();
		crowd->reads++;
	}
	hx_config_release(mine);
}

static void reloads_while_others_read(void **state)
{
	uint64_t count = scale_count(20000, 300);
	double begin = scale_seconds();
	struct hx_thread threads[READERS];
	int64_t live = hx_alloc_live();
	struct crowd crowd = {.is_over = false};

	(void)state;
	hx_config_current_init(
		&crowd.current, load("defaults: {ttl: 1s, lease: 1s}\nscopes: [{scope: a/a}]"));
	for (size_t i = 0; i < READERS; i++)
		assert_int_equal(
			hx_thread_start(&threads[i], reader_run, &crowd, "reader", NULL), HAPAX_OK);
	for (uint64_t i = 1; i <= count || crowd.reads < count; i++) {
		char text[128];

		(void)snprintf(
			text, sizeof(text),
			"defaults: {ttl: %us, lease: %us}\nscopes: [{scope: a/a}]",
			(unsigned)(i % 100 + 1), (unsigned)(i % 100 + 1));
		hx_config_current_swap(&crowd.current, load(text));
		/* One that is refused changes nothing. */
		assert_null(try_load("defaults: {ttl: -1}", NULL));
	}
	crowd.is_over = true;
	for (size_t i = 0; i < READERS; i++)
		hx_thread_join(&threads[i]);
	hx_config_current_done(&crowd.current);
	assert_int_equal(hx_alloc_live(), live);
	scale_report("config: reloads while others read", count, scale_seconds() - begin, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(defaults_are_those_of_the_design, no_environment),
		cmocka_unit_test_setup(the_default_store_is_in_the_state_directory, no_environment),
		cmocka_unit_test_setup(
			options_come_before_the_environment_before_the_file, no_environment),
		cmocka_unit_test_setup(the_variables_of_the_documents_work, no_environment),
		cmocka_unit_test_setup(slips_in_variables_are_noticed, no_environment),
		cmocka_unit_test_setup(faults_have_their_place, no_environment),
		cmocka_unit_test_setup(all_faults_are_told, no_environment),
		cmocka_unit_test_setup(the_first_route_that_matches_counts, no_environment),
		cmocka_unit_test_setup(a_route_has_its_strategy, no_environment),
		cmocka_unit_test_setup(scopes_inherit_and_types_have_their_ttl, no_environment),
		cmocka_unit_test_setup(the_store_gets_what_was_set, no_environment),
		cmocka_unit_test_setup(memory_is_divided, no_environment),
		cmocka_unit_test_setup(a_dump_reads_back, no_environment),
		cmocka_unit_test_setup(passwords_are_not_dumped, no_environment),
		cmocka_unit_test_setup(what_needs_a_restart_is_named, no_environment),
		cmocka_unit_test_setup(a_section_is_the_same_or_not, no_environment),
		cmocka_unit_test_setup(files_of_conf_d_add_up, no_environment),
		cmocka_unit_test_setup(the_file_is_found, no_environment),
		cmocka_unit_test_setup(no_memory_is_told, no_environment),
		cmocka_unit_test_setup(reloads_while_others_read, no_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
