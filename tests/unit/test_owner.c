/* SPDX-License-Identifier: Apache-2.0 */
#include "base/owner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void the_text_names_host_and_process(void **state)
{
	char text[HX_OWNER_SIZE_MAX + 1], host[65] = "", expected[HX_OWNER_SIZE_MAX + 1];

	(void)state;
	memset(text, 'x', sizeof(text));
	hx_owner_text(text);
	assert_int_equal(gethostname(host, sizeof(host) - 1), 0);
	(void)snprintf(expected, sizeof(expected), "%s pid %d", host, (int)getpid());
	assert_string_equal(text, expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_text_names_host_and_process),
	};

	return cmocka_run_group_tests_name("owner", tests, NULL, NULL);
}
