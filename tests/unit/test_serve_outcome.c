/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "config/config.h"
#include "serve/http/outcome.h"
#include "serve/daemon/quota.h"
#include "source/handler/http_handler.h"

/* DESIGN 3, every status. */
static void outcomes_of_statuses(void **state)
{
	(void)state;
	for (unsigned status = 200; status < 600; status++) {
		enum hapax_run_outcome expected = HAPAX_RUN_TRANSIENT;

		if (status < 300)
			expected = HAPAX_RUN_OK;
		else if (
			status >= 400 && status < 500 && status != 401 && status != 403 &&
			status != 404 && status != 408 && status != 409 && status != 421 &&
			status != 425 && status != 429)
			expected = HAPAX_RUN_DEFINITIVE;
		assert_int_equal(hx_http_handler_outcome(status), expected);
	}
}

/* The same for the proxy, and what a route says instead. */
static void outcomes_of_the_proxy(void **state)
{
	signed char table[HX_CONFIG_STATUS_MAX - HX_CONFIG_STATUS_MIN + 1];

	(void)state;
	memset(table, -1, sizeof(table));
	for (unsigned status = 200; status < 600; status++) {
		enum hapax_run_outcome expected = hx_http_handler_outcome(status);

		if (status >= 300 && status < 400)
			expected = HAPAX_RUN_OK;
		if (status == 404)
			expected = HAPAX_RUN_DEFINITIVE;
		assert_int_equal(hx_outcome_of_proxied(table, status), expected);
		table[status - HX_CONFIG_STATUS_MIN] = HAPAX_RUN_AMBIGUOUS;
		assert_int_equal(hx_outcome_of_proxied(table, status), HAPAX_RUN_AMBIGUOUS);
	}
	assert_int_equal(hx_outcome_of_proxied(table, 999), HAPAX_RUN_TRANSIENT);
}

static void who_wants_json(void **state)
{
	static const struct {
		const char *accept;
		bool names_json;
	} table[] = {
		{"", false},
		{"*/*", false},
		{"application/*", false},
		{"application/json", true},
		{"APPLICATION/JSON", true},
		{"text/json", true},
		{"text/html, application/json", true},
		{"application/json;q=0.1", true},
		{"application/json; q=0.001", true},
		{"application/json;q=0", false},
		{"application/json; Q=0.000", false},
		{"application/json;q=0, text/json", true},
		{"application/json;charset=utf-8", true},
		{"application/json;charset=utf-8;q=0", false},
		{"application/cloudevents+json", false},
		{"application/jsonx", false},
		{",,;", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(
			hx_accept_names_json(hapax_bytes_from_text(table[i].accept)),
			table[i].names_json);
}

static void a_quota_is_counted_by_name(void **state)
{
	struct hx_quota *quota = hx_alloc(sizeof(*quota));
	const struct hapax_bytes a = HX_BYTES_LIT("a");
	const struct hapax_bytes none = {NULL, 0};

	(void)state;
	hx_quota_init(quota);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(hx_quota_take(quota, a, 2), HAPAX_OK);
		assert_int_equal(hx_quota_take(quota, a, 2), HAPAX_OK);
		assert_int_equal(hx_quota_take(quota, a, 2), HAPAX_ERR_LIMIT);
		assert_int_equal(hx_quota_take(quota, none, 1), HAPAX_OK);
		assert_int_equal(hx_quota_take(quota, none, 1), HAPAX_ERR_LIMIT);
		hx_quota_give(quota, a);
		assert_int_equal(hx_quota_take(quota, a, 2), HAPAX_OK);
		hx_quota_give(quota, none);
		hx_quota_give(quota, a);
		hx_quota_give(quota, a);
	}
	assert_int_equal(hx_alloc_live(), 1);
	hx_alloc_fail_at(1, 0);
	assert_int_equal(hx_quota_take(quota, a, 2), HAPAX_ERR_NO_MEMORY);
	assert_int_equal(hx_quota_take(quota, a, 2), HAPAX_OK);
	hx_quota_done(quota);
	hx_free(quota);
	assert_int_equal(hx_alloc_live(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outcomes_of_statuses),
		cmocka_unit_test(outcomes_of_the_proxy),
		cmocka_unit_test(who_wants_json),
		cmocka_unit_test(a_quota_is_counted_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
