/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Templates: dates, values, and no two keys that are one by accident. B2, E18.
 */
#include "support/key_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/random.h"
#include "support/scale.h"

static const char *at_time(const char *text, int64_t time_ms)
{
	static char out[HAPAX_ERROR_MESSAGE_SIZE];
	struct hapax_key_strategy *strategy = key_case_strategy(text, NULL);
	struct hapax_event event = key_case_event("{\"region\":\"eu\"}");
	struct hapax_error err = {HAPAX_OK, 0, ""};
	struct hapax_key key;

	event.time_ms = time_ms;
	if (key_case_make(strategy, &event, &key, &err) == HAPAX_OK)
		(void)snprintf(out, sizeof(out), "%s", key.key);
	else
		(void)snprintf(out, sizeof(out), "!%.200s", err.message);
	hapax_key_strategy_free(strategy);
	return out;
}

/* E18: a job once a day, whenever it is delivered. */
static void dates_come_from_the_event(void **state)
{
	(void)state;
	assert_string_equal(
		at_time("template:report-{date:%Y-%m-%d}", 1794774135123), "report-2026-11-15");
	assert_string_equal(
		at_time("template:report-{date:%Y-%m-%d}", 1794787199999), "report-2026-11-15");
	assert_string_equal(
		at_time("template:report-{date:%Y-%m-%d}", 1794787200000), "report-2026-11-16");
	assert_string_equal(
		at_time("template:{date:%G-W%V}/{data.region}", 1794774135123), "2026-W46/eu");
	assert_string_equal(
		at_time("template:report-{date:%F}", HAPAX_TIME_UNKNOWN),
		"!cannot use {date:...}: the event has no time");
	assert_string_equal(
		at_time("template:report-{date:%F}", INT64_MAX),
		"!cannot use {date:...}: the time of the event is out of range");
}

static void documents_have_a_time_of_their_own(void **state)
{
	(void)state;
	assert_string_equal(
		key_case_of("template:r-{date:%F}", "{\"time\":\"2026-11-15T23:30:00-01:00\"}"),
		"r-2026-11-16");
	assert_string_equal(
		key_case_of("template:r-{date:%F}", "{\"time\":\"soon\"}"),
		"!cannot use {date:...}: 'time' is not in RFC 3339 format");
	assert_string_equal(key_case_of("template:r-{date:%F}", "{}"), "!'time' is missing");
}

static void values_and_braces(void **state)
{
	(void)state;
	assert_string_equal(key_case_of("template:{a}", "{\"a\":1}"), "1");
	assert_string_equal(key_case_of("template:{{{a}}}", "{\"a\":1}"), "{1}");
	assert_string_equal(key_case_of("template:a{{b}}c-{a}", "{\"a\":1}"), "a{b}c-1");
	assert_string_equal(
		key_case_of("template:{a.b}/{c}", "{\"a\":{\"b\":true},\"c\":\"x\"}"), "true/x");
	assert_string_equal(
		key_case_of("template:x-{a}", "{\"a\":\"\"}"),
		"!cannot use 'a' in a key: it is empty");
	assert_string_equal(key_case_of("template:x-{a}", "{\"b\":1}"), "!'a' is missing");
	assert_string_equal(key_case_of("template:x-{a}", "{\"a\":null}"), "!'a' is null");
}

/* A value is escaped where it could pass for the text behind it. */
static void values_do_not_run_into_each_other(void **state)
{
	(void)state;
	assert_string_equal(
		key_case_of("template:{a}-{b}", "{\"a\":\"x-y\",\"b\":\"z\"}"), "x%2Dy-z");
	assert_string_equal(
		key_case_of("template:{a}-{b}", "{\"a\":\"x\",\"b\":\"y-z\"}"), "x-y-z");
	assert_string_equal(
		key_case_of("template:{a}2{b}", "{\"a\":\"12\",\"b\":\"2\"}"), "1%3222");
	assert_string_equal(
		key_case_of("template:{a}-{b}", "{\"a\":\"%\",\"b\":\"%2D\"}"), "%25-%252D");
}

/* Lists of values that differ give keys that differ, whatever stands between. */
static void no_two_lists_share_a_key(void **state)
{
	static const char *const templates[] = {
		"template:{a}-{b}-{c}", "template:{a}ab{b}2{c}", "template:<{a}>{b}<{c}>",
		"template:{a}\xc3\xa9{b}x{c}"};
	static const char *const atoms[] = {
		"-", "a", "b", "ab", "2", "<", ">", "%", "%2D", "\xc3\xa9", "x", "\xc3\xaa"};
	enum { ATOMS = sizeof(atoms) / sizeof(atoms[0]), SEEN = 400 };
	uint64_t count = scale_count(20000, 400);
	uint64_t seed = 4;
	struct hx_prng prng;

	(void)state;
	(void)scale_seed(&seed);
	hx_prng_seed(&prng, seed);
	for (size_t t = 0; t < sizeof(templates) / sizeof(templates[0]); t++) {
		static char keys[SEEN][HAPAX_KEY_SIZE_MAX + 1];
		static char lists[SEEN][128];
		size_t seen = 0;

		for (uint64_t i = 0; i < count; i++) {
			char values[3][32] = {"", "", ""};
			char json[256];
			char list[128];

			for (size_t v = 0; v < 3; v++) {
				size_t used = 0;

				for (uint64_t n = hx_prng_below(&prng, 3); n + 1 > 0; n--)
					used += (size_t)snprintf(
						values[v] + used, sizeof(values[v]) - used, "%s",
						atoms[hx_prng_below(&prng, ATOMS)]);
			}
			(void)snprintf(
				json, sizeof(json), "{\"a\":\"%s\",\"b\":\"%s\",\"c\":\"%s\"}",
				values[0], values[1], values[2]);
			(void)snprintf(
				list, sizeof(list), "%s\n%s\n%s", values[0], values[1], values[2]);
			(void)snprintf(
				keys[seen % SEEN], sizeof(keys[0]), "%.255s",
				key_case_of(templates[t], json));
			memcpy(lists[seen % SEEN], list, sizeof(list));
			for (size_t j = 0; j < SEEN && j < seen; j++) {
				if (j != seen % SEEN &&
				    (strcmp(keys[j], keys[seen % SEEN]) == 0) !=
					    (strcmp(lists[j], list) == 0))
					fail_msg(
						"seed %llu: %s", (unsigned long long)seed, keys[j]);
			}
			seen++;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dates_come_from_the_event),
		cmocka_unit_test(documents_have_a_time_of_their_own),
		cmocka_unit_test(values_and_braces),
		cmocka_unit_test(values_do_not_run_into_each_other),
		cmocka_unit_test(no_two_lists_share_a_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
