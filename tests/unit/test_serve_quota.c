/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/daemon/quota.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/bytes.h"

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
		cmocka_unit_test(a_quota_is_counted_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
