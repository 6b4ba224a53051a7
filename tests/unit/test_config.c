/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations: what is refused and how it is said, routes, scopes, and the one that is in force.
 * Where settings come from: test_config_origin.c.
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

#include "base/alloc.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/io.h"
#include "base/thread.h"
#include "config/dump.h"
#include "support/config_case.h"
#include "support/scale.h"
#include "unit/config_faults.h"

enum { TEXT_MAX = 1024 * 1024 };

static void defaults_are_those_of_the_design(void **state)
{
	struct hx_config_source source = {.path = NULL};
	struct hx_config *config;

	(void)state;
	assert_int_equal(hx_config_load(&source, &config, NULL, &config_case_err), HAPAX_OK);
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
	assert_int_equal(config->defaults.remember, HX_CONFIG_REMEMBER_ON);
	assert_int_equal(config->store.cleanup_interval_ms, 5 * 60 * 1000);
	assert_int_equal(config->store.max_result, 256 * 1024);
	assert_int_equal(config->store.parked_max, 10000);
	assert_string_equal(config->store.url, "file:/var/lib/hapax/store");
	assert_true(config->store.is_default);
	assert_int_equal(config->http.max_body, 16 * 1024 * 1024);
	assert_int_equal(config->gateway.route_count, 0);
	hx_config_release(config);
}

static void faults_have_their_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(config_faults) / sizeof(config_faults[0]); i++) {
		struct hx_config *config = config_case_try(config_faults[i].text, NULL);

		if (config != NULL)
			fail_msg("taken: %s", config_faults[i].text);
		if (strncmp(config_case_err.message, config_faults[i].message,
			    strlen(config_faults[i].message)) != 0)
			fail_msg(
				"%s: got \"%s\", not \"%s\"", config_faults[i].text,
				config_case_err.message, config_faults[i].message);
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
	config_case_variables = environment;
	hx_buf_init(&faults, TEXT_MAX);
	assert_null(config_case_try(text, &faults));
	assert_int_equal(hx_buf_append(&faults, "", 1), HAPAX_OK);
	assert_non_null(strstr((char *)faults.data, "h.yaml:5:10: admin: invalid address 'y'"));
	assert_non_null(strstr((char *)faults.data, "h.yaml:2:3: unknown key 'tll'"));
	assert_non_null(strstr((char *)faults.data, "h.yaml:3:10: lease: 'x' is not a duration"));
	assert_non_null(strstr((char *)faults.data, "HAPAX_LOG_LEVEL: level: 'loud' is not debug"));
	hx_buf_done(&faults);
	/* The value that an option overrules must be right, too. */
	hx_buf_init(&faults, 64);
	assert_null(config_case_try(text, &faults));
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
	struct hx_config *config = config_case_load(routes);
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

	config = config_case_load("upstream: {url: 'http://h'}");
	assert_string_equal(route_of(config, "/anything", "t", "s"), "default");
	assert_int_equal(config->gateway.routes[0].target.endpoint.port, 80);
	hx_config_release(config);
	config = config_case_load(
		"upstream: {url: 'http://h'}\ngateway: {routes: [{path: /a, name: a}]}");
	assert_string_equal(route_of(config, "/b", "t", "s"), "none");
	hx_config_release(config);
}

/* The strategy of a route is made, with the scope's policy for what is missing. */
static void a_route_has_its_strategy(void **state)
{
	struct hx_config *config = config_case_load(
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
			hapax_key_make(route->strategy, &event, &scratch, &key, &config_case_err);

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
				config->gateway.routes[1].strategy, &event, &scratch, &key,
				&config_case_err),
			HAPAX_OK);
		assert_string_equal(key.tenant, "umbrella");
		assert_string_equal(key.group, "eu");
		assert_true(key.has_fingerprint);
		assert_int_equal(
			hapax_key_make(
				config->gateway.routes[2].strategy, &event, &scratch, &key,
				&config_case_err),
			HAPAX_OK);
		assert_false(key.has_fingerprint);
	}
	hx_buf_done(&scratch);
	hx_config_release(config);
}

static void scopes_inherit_and_types_have_their_ttl(void **state)
{
	struct hx_config *config = config_case_load(
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
	config = config_case_load("enabled: false");
	hx_config_run_options(config, &config->defaults, HX_BYTES_LIT(""), &options);
	assert_true(options.is_disabled);
	hx_config_release(config);
}

static void the_store_gets_what_was_set(void **state)
{
	struct hx_config *config = config_case_load(
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
	config = config_case_load("store: {sync: unsafe-interval, unsafe_interval: 2s}");
	hx_config_store_options(config, config->store.max_bytes, &options);
	assert_int_equal(options.unsafe_interval_ms, 2000);
	hx_config_release(config);
}

/* The memory of the machine or of the file: an eighth for listeners, half for a store in this process. */
static void memory_is_divided(void **state)
{
	enum { MIB = 1024 * 1024 };
	struct hx_config *config = config_case_load("store: {url: 'memory:'}");
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

	config = config_case_load("store: {url: 'redis://h'}\nmemory: {limit: 64MiB}");
	hx_config_memory_plan(config, (uint64_t)128 * MIB, &plan);
	assert_int_equal(plan.limit, 64 * MIB);
	assert_int_equal(plan.listeners, 8 * MIB);
	assert_int_equal(plan.store, 0);
	hx_config_release(config);

	config = config_case_load(
		"store: {url: 'file:/x', max_bytes: none}\nmemory: {listeners: none}");
	hx_config_memory_plan(config, (uint64_t)128 * MIB, &plan);
	assert_int_equal(plan.listeners, 0);
	assert_int_equal(plan.store, 0);
	hx_config_release(config);

	config = config_case_load(
		"store: {url: 'file:/x', max_bytes: 3MiB}\nmemory: {listeners: 2MiB}");
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
	again = config_case_load((const char *)text.data);
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
		struct hx_config *config = config_case_load(texts[i]);
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

		assert_int_equal(
			hx_config_load(&source, &config, NULL, &config_case_err), HAPAX_OK);
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
	struct hx_config *old = config_case_load("");
	struct hx_config *same = config_case_load("defaults: {ttl: 1h}\nlog: {level: debug}");
	struct hx_config *door = config_case_load("listen: {admin: off}\nstore: {timeout: 1s}");
	struct hx_config *store = config_case_load("store: {timeout: 1s}");
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
	struct hx_config *old = config_case_load(
		"outbox: {url: 'sqlite:a', sink: 'http://h/a'}\nlog: {level: debug}\n"
		"scopes: [{scope: 'a/b', ttl: 60m}]");

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hx_config *config = config_case_load(cases[i].text);

		assert_int_equal(hx_config_is_same(old, config, "outbox"), cases[i].outbox);
		assert_int_equal(hx_config_is_same(old, config, "scopes"), cases[i].routes);
		hx_config_release(config);
	}
	hx_config_release(old);
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
		config = config_case_try(routes, NULL);
		hx_alloc_fail_at(0, 0);
		is_done = config != NULL;
		if (!is_done)
			assert_true(config_case_err.message[0] != '\0');
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
		&crowd.current,
		config_case_load("defaults: {ttl: 1s, lease: 1s}\nscopes: [{scope: a/a}]"));
	for (size_t i = 0; i < READERS; i++)
		assert_int_equal(
			hx_thread_start(&threads[i], reader_run, &crowd, "reader", NULL), HAPAX_OK);
	for (uint64_t i = 1; i <= count || crowd.reads < count; i++) {
		char text[128];

		(void)snprintf(
			text, sizeof(text),
			"defaults: {ttl: %us, lease: %us}\nscopes: [{scope: a/a}]",
			(unsigned)(i % 100 + 1), (unsigned)(i % 100 + 1));
		hx_config_current_swap(&crowd.current, config_case_load(text));
		/* One that is refused changes nothing. */
		assert_null(config_case_try("defaults: {ttl: -1}", NULL));
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
		cmocka_unit_test_setup(defaults_are_those_of_the_design, config_case_set_up),
		cmocka_unit_test_setup(faults_have_their_place, config_case_set_up),
		cmocka_unit_test_setup(all_faults_are_told, config_case_set_up),
		cmocka_unit_test_setup(the_first_route_that_matches_counts, config_case_set_up),
		cmocka_unit_test_setup(a_route_has_its_strategy, config_case_set_up),
		cmocka_unit_test_setup(scopes_inherit_and_types_have_their_ttl, config_case_set_up),
		cmocka_unit_test_setup(the_store_gets_what_was_set, config_case_set_up),
		cmocka_unit_test_setup(memory_is_divided, config_case_set_up),
		cmocka_unit_test_setup(a_dump_reads_back, config_case_set_up),
		cmocka_unit_test_setup(passwords_are_not_dumped, config_case_set_up),
		cmocka_unit_test_setup(what_needs_a_restart_is_named, config_case_set_up),
		cmocka_unit_test_setup(a_section_is_the_same_or_not, config_case_set_up),
		cmocka_unit_test_setup(no_memory_is_told, config_case_set_up),
		cmocka_unit_test_setup(reloads_while_others_read, config_case_set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
