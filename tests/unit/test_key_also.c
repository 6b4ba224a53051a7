/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two keys for an event while its strategy changes. E20, E22d.
 */
#include "support/key_case.h"
#include "support/virtual_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include <hapax/hapax.h>

enum { UNTIL_MS = 5000 };

static struct hx_virtual_clock the_clock;

static struct hapax_key_options with(const char *also)
{
	struct hapax_key_options options = key_case_relative();

	hx_virtual_clock_init(&the_clock, 1000);
	options.clock = hx_virtual_clock_clock(&the_clock);
	options.also = also;
	options.also_until_ms = UNTIL_MS;
	return options;
}

static struct hapax_key key_of(
	const char *text, const struct hapax_key_options *options, const char *json,
	enum hapax_status expected)
{
	struct hapax_key_strategy *strategy = key_case_strategy(text, options);
	struct hapax_event event = key_case_event(json);
	struct hapax_key key = HAPAX_KEY_INIT;
	struct hapax_error err;

	assert_int_equal(key_case_make(strategy, &event, &key, &err), expected);
	hapax_key_strategy_free(strategy);
	return key;
}

static void both_keys_are_made_until_the_end(void **state)
{
	static const char json[] = "{\"id\":1,\"order\":\"a\"}";
	struct hapax_key_options options = with("field:id");
	struct hapax_key_options plain = key_case_relative();
	struct hapax_key key = key_of("field:order", &options, json, HAPAX_OK);
	struct hapax_key old = key_of("field:id", &plain, json, HAPAX_OK);

	(void)state;
	assert_string_equal(key.key, "a");
	assert_string_equal(key.also, "1");
	assert_int_equal(key.also_size, 1);
	/* As the old strategy by itself has made it. */
	assert_true(key.has_also_fingerprint);
	assert_memory_equal(key.also_fingerprint, old.fingerprint, HAPAX_FINGERPRINT_SIZE);
	hx_virtual_clock_advance(&the_clock, UNTIL_MS - 1000 - 1);
	assert_int_equal(key_of("field:order", &options, json, HAPAX_OK).also_size, 1);
	hx_virtual_clock_advance(&the_clock, 1);
	key = key_of("field:order", &options, json, HAPAX_OK);
	assert_int_equal(key.also_size, 0);
	assert_string_equal(key.key, "a");
}

static void an_event_may_lack_one_of_them(void **state)
{
	struct hapax_key_options options = with("field:id");
	struct hapax_key key = key_of("field:order", &options, "{\"order\":\"a\"}", HAPAX_OK);

	(void)state;
	assert_string_equal(key.key, "a");
	assert_int_equal(key.also_size, 0);
	for (int on_missing = HAPAX_ON_MISSING_REJECT; on_missing <= HAPAX_ON_MISSING_PASS;
	     on_missing++) {
		options.on_missing = (enum hapax_on_missing)on_missing;
		key = key_of("field:order", &options, "{\"id\":1}", HAPAX_OK);
		/* It had a key, and keeps its protection. */
		assert_int_equal(key.kind, HAPAX_KEY_MADE);
		assert_string_equal(key.key, "1");
		assert_string_equal(key.missing, "");
		assert_true(key.has_fingerprint);
		assert_int_equal(key.also_size, 0);
	}
	key = key_of("field:order", &options, "{\"x\":1}", HAPAX_OK);
	assert_int_equal(key.kind, HAPAX_KEY_NONE);
	options.on_missing = HAPAX_ON_MISSING_REJECT;
	(void)key_of("field:order", &options, "{\"x\":1}", HAPAX_ERR_INVALID);
	/* Only an event without the new key; a bad one stays bad. */
	(void)key_of("field:order", &options, "{\"id\":1", HAPAX_ERR_INVALID);
	hx_virtual_clock_advance(&the_clock, UNTIL_MS);
	(void)key_of("field:order", &options, "{\"id\":1}", HAPAX_ERR_INVALID);
}

static void equal_keys_are_one(void **state)
{
	struct hapax_key_options options = with("field:id");

	(void)state;
	assert_int_equal(
		key_of("field:order", &options, "{\"id\":1,\"order\":\"1\"}", HAPAX_OK).also_size,
		0);
}

static void include_is_for_those_that_take_it(void **state)
{
	static const char *const include[] = {"id"};
	struct hapax_key_options options = with("content");
	struct hapax_key key;

	(void)state;
	options.include = include;
	options.include_count = 1;
	key = key_of("field:order", &options, "{\"id\":1,\"order\":\"a\",\"n\":1}", HAPAX_OK);
	assert_string_equal(
		key.also,
		key_of("field:order", &options, "{\"id\":1,\"order\":\"a\",\"n\":2}", HAPAX_OK)
			.also);
	options.also = "field:id";
	assert_non_null(strstr(key_case_refusal("field:order", &options), "include has no effect"));
	assert_int_equal(
		key_of("content", &options, "{\"id\":1,\"order\":\"a\"}", HAPAX_OK).also_size, 1);
}

static void a_wrong_one_is_named(void **state)
{
	struct hapax_key_options options = with("nonsense");

	(void)state;
	assert_non_null(
		strstr(key_case_refusal("field:order", &options),
		       "key_also: unknown key strategy 'nonsense'"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_keys_are_made_until_the_end),
		cmocka_unit_test(an_event_may_lack_one_of_them),
		cmocka_unit_test(equal_keys_are_one),
		cmocka_unit_test(include_is_for_those_that_take_it),
		cmocka_unit_test(a_wrong_one_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
