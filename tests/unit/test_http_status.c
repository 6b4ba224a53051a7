/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/http_status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

/* Every status: of an event only 2xx is final, of a message also most 4xx. */
static void outcomes_of_events_and_messages(void **state)
{
	(void)state;
	for (unsigned status = 200; status < 600; status++) {
		enum hapax_run_outcome expected = HAPAX_RUN_TRANSIENT;

		if (status < 300)
			expected = HAPAX_RUN_OK;
		assert_int_equal(
			hx_http_status_outcome(HX_HTTP_STATUS_OF_EVENT, NULL, status), expected);
		if (status >= 400 && status < 500 && status != 401 && status != 403 &&
		    status != 404 && status != 408 && status != 409 && status != 421 &&
		    status != 425 && status != 429)
			expected = HAPAX_RUN_DEFINITIVE;
		assert_int_equal(
			hx_http_status_outcome(HX_HTTP_STATUS_OF_MESSAGE, NULL, status), expected);
	}
}

/* The same for the proxy, and what a route says instead. */
static void outcomes_of_requests(void **state)
{
	signed char table[HX_HTTP_STATUS_MAX - HX_HTTP_STATUS_MIN + 1];

	(void)state;
	memset(table, -1, sizeof(table));
	for (unsigned status = 200; status < 600; status++) {
		enum hapax_run_outcome expected =
			hx_http_status_outcome(HX_HTTP_STATUS_OF_MESSAGE, NULL, status);

		if (status >= 300 && status < 400)
			expected = HAPAX_RUN_OK;
		if (status == 404)
			expected = HAPAX_RUN_DEFINITIVE;
		assert_int_equal(
			hx_http_status_outcome(HX_HTTP_STATUS_OF_REQUEST, table, status), expected);
		table[status - HX_HTTP_STATUS_MIN] = HAPAX_RUN_AMBIGUOUS;
		assert_int_equal(
			hx_http_status_outcome(HX_HTTP_STATUS_OF_REQUEST, table, status),
			HAPAX_RUN_AMBIGUOUS);
	}
	assert_int_equal(
		hx_http_status_outcome(HX_HTTP_STATUS_OF_REQUEST, table, 999), HAPAX_RUN_TRANSIENT);
}

static void what_is_no_status_is_transient(void **state)
{
	static const unsigned none[] = {0, 100, 199, 600, 999, UINT32_MAX};
	signed char table[HX_HTTP_STATUS_MAX - HX_HTTP_STATUS_MIN + 1];

	(void)state;
	memset(table, HAPAX_RUN_OK, sizeof(table));
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_int_equal(
			hx_http_status_outcome(HX_HTTP_STATUS_OF_EVENT, NULL, none[i]),
			HAPAX_RUN_TRANSIENT);
		assert_int_equal(
			hx_http_status_outcome(HX_HTTP_STATUS_OF_REQUEST, table, none[i]),
			HAPAX_RUN_TRANSIENT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outcomes_of_events_and_messages),
		cmocka_unit_test(outcomes_of_requests),
		cmocka_unit_test(what_is_no_status_is_transient),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
