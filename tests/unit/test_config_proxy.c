/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routes of the proxy: what they are by default, and what follows from what is written.
 */
#include "config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "support/config_case.h"

static void routes_of_the_proxy(void **state)
{
	static const char text[] =
		"upstream: {url: 'http://h'}\n"
		"scopes: [{scope: acme/pay, ttl: 1h, wait: 1s, lease: 7s}]\n"
		"proxy:\n"
		"  routes:\n"
		"  - {path: /v1, tenant: acme, group: pay, outcomes: {ok: [409], transient: [2xx], ambiguous: [5xx]}}\n"
		"  - {path: /v2/, methods: [PUT], ttl: forever, wait: 0s, on_lapse: retry, upstream: 'http://i:1/x/', fingerprint_headers: [X-Shop]}\n";
	struct hx_config *config = config_case_load(text);
	const struct hx_config_proxy_route *found = config->proxy.routes;
	struct hapax_run_options options;

	(void)state;
	assert_int_equal(config->proxy.route_count, 2);
	assert_ptr_equal(hx_config_proxy_route_find(config, HX_BYTES_LIT("/v1/x")), &found[0]);
	assert_ptr_equal(hx_config_proxy_route_find(config, HX_BYTES_LIT("/v2")), &found[1]);
	assert_null(hx_config_proxy_route_find(config, HX_BYTES_LIT("/v10")));
	assert_string_equal(found[0].name, "proxy-1");
	assert_string_equal(found[0].target.authority, "h");
	assert_int_equal(found[0].method_count, 2);
	assert_string_equal(found[0].methods[0], "POST");
	assert_string_equal(found[0].methods[1], "PATCH");
	assert_string_equal(found[0].header, "Idempotency-Key");
	assert_false(found[0].required);
	assert_string_equal(found[0].replay_headers[0], "Content-Type");
	assert_string_equal(found[0].fingerprint_headers[0], "Stripe-Account");
	assert_int_equal(found[1].fingerprint_header_count, 1);
	assert_string_equal(found[1].fingerprint_headers[0], "X-Shop");
	for (unsigned status = HX_CONFIG_STATUS_MIN; status <= HX_CONFIG_STATUS_MAX; status++) {
		int expected = status == 409 ? HAPAX_RUN_OK
			: status < 300       ? HAPAX_RUN_TRANSIENT
			: status >= 500      ? HAPAX_RUN_AMBIGUOUS
					     : -1;

		assert_int_equal(found[0].outcomes.table[status - HX_CONFIG_STATUS_MIN], expected);
		assert_int_equal(found[1].outcomes.table[status - HX_CONFIG_STATUS_MIN], -1);
	}
	hx_config_proxy_run_options(config, &found[0], &options);
	assert_int_equal(options.ttl_ms, 3600 * 1000);
	assert_int_equal(options.lease_ms, 7000);
	assert_int_equal(options.wait_ms, 10000);
	assert_int_equal(options.on_lapse, HAPAX_ON_LAPSE_PARK);
	assert_string_equal(found[1].target.path, "/x");
	hx_config_proxy_run_options(config, &found[1], &options);
	assert_true(options.ttl_ms == HAPAX_TTL_FOREVER);
	assert_int_equal(options.wait_ms, 0);
	assert_int_equal(options.on_lapse, HAPAX_ON_LAPSE_RETRY);
	hx_config_release(config);
}

/* With an upstream and the door open there is one for everything; else none. */
static void the_proxy_without_routes(void **state)
{
	struct hx_config *config = config_case_load("upstream: {url: 'http://h'}\n");

	(void)state;
	assert_true(config->listen.proxy.is_off);
	assert_int_equal(config->proxy.route_count, 0);
	hx_config_release(config);
	config = config_case_load(
		"upstream: {url: 'http://h'}\nlisten: {proxy: '127.0.0.1:8081'}\n");
	assert_int_equal(config->proxy.route_count, 1);
	assert_string_equal(config->proxy.routes[0].name, "proxy");
	assert_int_equal(config->proxy.routes[0].wait_ms, 10000);
	assert_int_equal(config->proxy.routes[0].on_lapse, HAPAX_ON_LAPSE_PARK);
	assert_int_equal(config->proxy.routes[0].method_count, 2);
	hx_config_release(config);
	config = config_case_load("listen: {proxy: '127.0.0.1:8081'}\n");
	assert_int_equal(config->proxy.route_count, 0);
	hx_config_release(config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(routes_of_the_proxy),
		cmocka_unit_test(the_proxy_without_routes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
