/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_crash_log.c - file: crashed at every change of its disk (run.h). Issue 5 asks
 * for 10,000,000 images without a violation of I2, I2b, I9 and I11.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "crash/log_subject.h"
#include "crash/run.h"
#include "support/scale.h"

/* Few images, as under a sanitizer, may come from histories without a latch: then some more. */
enum { HISTORIES_WITH_LATCH = 40 };

enum mode { DEFAULT, WITH_FAULTS, UNSAFE };

/* Histories until there are so many images; HAPAX_TEST_SEED runs one alone. */
static void run_until(const char *what, uint64_t images_wanted, enum mode mode)
{
	double begin = scale_seconds();
	uint64_t images = 0, cut = 0, faults = 0, latched = 0, restarts = 0;
	uint64_t seed = 1;
	bool is_alone = scale_seed(&seed);
	uint64_t first = seed;
	bool with_faults = mode == WITH_FAULTS;

	do {
		struct run_plan plan = {
			.seed = seed,
			.submits = 60,
			.images = 2,
			.with_faults = with_faults,
			.is_unsafe = mode == UNSAFE};
		struct run_report report;

		if (!crash_run(&log_subject, &plan, &report)) {
			scale_report(what, images, scale_seconds() - begin, false);
			fail_msg(
				"seed %llu: %s; repeat it with HAPAX_TEST_SEED=%llu",
				(unsigned long long)seed, report.why, (unsigned long long)seed);
		}
		images += report.images;
		cut += report.recoveries_cut;
		faults += report.faults;
		latched += report.latched;
		restarts += report.restarts;
		seed++;
	} while (!is_alone &&
		 (images < images_wanted ||
		  (with_faults && latched == 0 && seed - first < HISTORIES_WITH_LATCH)));
	printf("# %llu histories, %llu restarts, %llu recoveries cut short, %llu faults, "
	       "%llu latched\n",
	       (unsigned long long)(seed - first), (unsigned long long)restarts,
	       (unsigned long long)cut, (unsigned long long)faults, (unsigned long long)latched);
	scale_report(what, images, scale_seconds() - begin, true);
	/* A run in which nothing went wrong proves nothing. */
	assert_true(cut > 0);
	if (with_faults && !is_alone)
		assert_true(faults > 0 && latched > 0);
}

static void no_crash_breaks_a_promise(void **state)
{
	(void)state;
	run_until("I2 I2b I9: crash images of file:", scale_count(8000000, 8000), DEFAULT);
}

static void no_failing_call_breaks_a_promise(void **state)
{
	(void)state;
	run_until(
		"I2b I11: crash images of file: with faults", scale_count(1000000, 4000),
		WITH_FAULTS);
}

/*
 * Several operations on one key in a frame, and the frame fails: what the later ones were told
 * must not rest upon the earlier ones, which may not have happened.
 */
static void no_answer_rests_upon_a_frame_that_failed(void **state)
{
	uint64_t histories = scale_count(20000, 40);
	double begin = scale_seconds();
	uint64_t latched = 0, faults = 0;
	uint64_t seed = 1;
	bool is_alone = scale_seed(&seed);
	uint64_t first = seed;

	(void)state;
	do {
		struct run_plan plan = {.seed = seed, .submits = 100, .with_faults = true};
		struct run_report report;

		if (!crash_run(&log_subject, &plan, &report))
			fail_msg(
				"seed %llu: %s; repeat it with HAPAX_TEST_SEED=%llu",
				(unsigned long long)seed, report.why, (unsigned long long)seed);
		latched += report.latched;
		faults += report.faults;
		seed++;
	} while (!is_alone && seed - first < histories);
	printf("# %llu faults, %llu latched\n", (unsigned long long)faults,
	       (unsigned long long)latched);
	scale_report(
		"I2b I13: histories of file: with many faults", seed - first,
		scale_seconds() - begin, true);
	assert_true(is_alone || latched > histories);
}

/* What is lost is lost from the end, and the store opens, whatever mode it was or is in. */
static void unsafe_mode_loses_only_the_end(void **state)
{
	(void)state;
	run_until("I9: crash images of file: in unsafe mode", scale_count(1000000, 3000), UNSAFE);
}

/* I15 */
static void equal_seeds_give_equal_runs(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct run_plan plan = {
			.seed = seed, .submits = 30, .images = 1, .with_faults = seed % 2};
		struct run_report first, second;

		assert_true(crash_run(&log_subject, &plan, &first));
		assert_true(crash_run(&log_subject, &plan, &second));
		assert_true(first.trace == second.trace);
		assert_int_equal(first.images, second.images);
		assert_int_equal(first.faults, second.faults);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_crash_breaks_a_promise),
		cmocka_unit_test(no_failing_call_breaks_a_promise),
		cmocka_unit_test(no_answer_rests_upon_a_frame_that_failed),
		cmocka_unit_test(unsafe_mode_loses_only_the_end),
		cmocka_unit_test(equal_seeds_give_equal_runs),
	};

	/* A pattern: only tests of that name. */
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests_name("crash_log", tests, NULL, NULL);
}
