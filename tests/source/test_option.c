/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of a source's URL: its own are taken, the others left as they were.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/error.h"
#include "source/source_option.h"

struct place {
	char name[8];
	int64_t number;
	bool is_early;
};

static enum hapax_status take(
	void *context, const struct hx_option *option, bool *ret_is_ours, struct hapax_error *err)
{
	struct place *place = context;
	bool is_good = true;

	if (hx_option_is(option, "name"))
		is_good = hx_option_text(option, place->name, sizeof(place->name));
	else if (hx_option_is(option, "number"))
		is_good = hx_option_number(option, 100, &place->number);
	else if (hx_option_is(option, "start"))
		place->is_early = hx_option_says(option, "early");
	else
		*ret_is_ours = false;
	return is_good ? HAPAX_OK : hx_error_set(err, HAPAX_ERR_INVALID, 0, "it was wrong");
}

static void ours_are_taken_and_the_others_left(void **state)
{
	char rest[64] = "redis://h";
	struct place place = {.number = 0};

	(void)state;
	assert_int_equal(
		hx_options_take(
			"ca=%2Fc&name=a%20b&db=3&&number=100&start=early&bare&x=", take, &place,
			rest, sizeof(rest), NULL),
		HAPAX_OK);
	assert_string_equal(place.name, "a b");
	assert_int_equal(place.number, 100);
	assert_true(place.is_early);
	assert_string_equal(rest, "redis://h?ca=%2Fc&db=3&bare&x=");
}

static void what_is_wrong_is_refused(void **state)
{
	static const char *const bad[] = {
		"name=",
		"name",
		"name=%zz",
		"name=toolonganame",
		"number=0",
		"number=101",
		"number=-1",
		"number=1x",
		"number=",
		"number",
		"number=99999999999999999999",
		"a=1&name=%00",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char rest[64] = "";
		struct place place = {.number = 0};
		struct hapax_error err = {0};

		assert_int_equal(
			hx_options_take(bad[i], take, &place, rest, sizeof(rest), &err),
			HAPAX_ERR_INVALID);
		assert_string_equal(err.message, "it was wrong");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ours_are_taken_and_the_others_left),
		cmocka_unit_test(what_is_wrong_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
