/* SPDX-License-Identifier: Apache-2.0 */
#include "base/banned.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* What the compiler would see of a call, as text. */
#define TEXT_OF(...)  #__VA_ARGS__
#define EXPANDED(...) TEXT_OF(__VA_ARGS__)

static void calls_become_names_that_do_not_exist(void **state)
{
	static const struct {
		const char *expanded;
		const char *expected;
	} calls[] = {
		{EXPANDED(strcpy(a, b)), "hx_banned_function_strcpy"},
		{EXPANDED(strcat(a, b)), "hx_banned_function_strcat"},
		{EXPANDED(strncpy(a, b, 1)), "hx_banned_function_strncpy"},
		{EXPANDED(strncat(a, b, 1)), "hx_banned_function_strncat"},
		{EXPANDED(sprintf(a, "%d", 1)), "hx_banned_function_sprintf"},
		{EXPANDED(vsprintf(a, b, c)), "hx_banned_function_vsprintf"},
		{EXPANDED(gets(a)), "hx_banned_function_gets"},
		{EXPANDED(strtok(a, b)), "hx_banned_function_strtok"},
		{EXPANDED(strerror(1)), "hx_banned_function_strerror"},
		{EXPANDED(gmtime(a)), "hx_banned_function_gmtime"},
		{EXPANDED(localtime(a)), "hx_banned_function_localtime"},
		{EXPANDED(ctime(a)), "hx_banned_function_ctime"},
		{EXPANDED(asctime(a)), "hx_banned_function_asctime"},
		{EXPANDED(time(NULL)), "hx_banned_function_time"},
		{EXPANDED(rand()), "hx_banned_function_rand"},
		{EXPANDED(srand(1)), "hx_banned_function_srand"},
		{EXPANDED(atoi("1")), "hx_banned_function_atoi"},
		{EXPANDED(atol("1")), "hx_banned_function_atol"},
		{EXPANDED(atof("1")), "hx_banned_function_atof"},
		{EXPANDED(tmpnam(a)), "hx_banned_function_tmpnam"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		assert_string_equal(calls[i].expanded, calls[i].expected);
}

static void what_stands_in_for_them_is_left_alone(void **state)
{
	(void)state;
	assert_string_equal(EXPANDED(gmtime_r(a, b)), "gmtime_r(a, b)");
	assert_string_equal(EXPANDED(strtol(a, b, 10)), "strtol(a, b, 10)");
	/* Only calls: a member or variable may bear the name. */
	assert_string_equal(EXPANDED(event.time), "event.time");
	assert_string_equal(EXPANDED(random[0]), "random[0]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_become_names_that_do_not_exist),
		cmocka_unit_test(what_stands_in_for_them_is_left_alone),
	};

	return cmocka_run_group_tests_name("banned", tests, NULL, NULL);
}
