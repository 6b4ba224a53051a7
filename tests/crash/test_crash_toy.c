/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_crash_toy.c - the crash runs, on a store that is right and on stores that are
 * wrong in one way each. A run that does not catch a wrong store proves nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "crash/run.h"
#include "crash/toy_log.h"
#include "support/scale.h"

static unsigned bugs;

static enum hapax_status open_toy(
	const struct hx_io *io, const char *path, const struct hapax_store_options *options,
	struct hapax_store **ret_store, struct hapax_error *err)
{
	return toy_log_open(io, path, bugs, options, ret_store, err);
}

static const struct crash_subject subject = {
	.name = "toy",
	.keeps_pages_apart = true,
	.commits_whole = true,
	.open = open_toy,
};

static void a_right_store_passes(void **state)
{
	uint64_t seeds = scale_count(2000, 10);
	double begin = scale_seconds();
	uint64_t images = 0;

	(void)state;
	bugs = 0;
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct run_plan plan = {
			.seed = seed, .submits = 60, .images = 3, .with_faults = seed % 2};
		struct run_report report;

		if (!crash_run(&subject, &plan, &report))
			fail_msg("seed %llu: %s", (unsigned long long)seed, report.why);
		images += report.images;
	}
	scale_report("crash images of a toy store", images, scale_seconds() - begin, true);
	assert_true(images > seeds * 100);
}

static const struct {
	enum toy_bug bug;
	const char *name;
} planted[] = {
	{TOY_ACK_BEFORE_SYNC, "no sync before the answer"},
	{TOY_NO_DIR_SYNC, "no sync of the directory"},
	{TOY_NO_CRC, "no CRC"},
	{TOY_UNPADDED, "frames share pages"},
	{TOY_RETRY_SYNC, "a failed sync is repeated"},
	{TOY_ACK_ON_ERROR, "OK after a failed sync"},
	{TOY_NO_LATCH, "no latch"},
	{TOY_CACHED_RECOVERY, "recovery believes the cache"},
	{TOY_TOKEN_FROM_RECORDS, "tokens from records"},
	{TOY_SPLIT_SUBMIT, "a group in several frames"},
	{TOY_SHORT_WRITE, "short writes ignored"},
	{TOY_HALF_RECOVERY, "recovery removes first"},
	{TOY_NO_SYNC_AT_OPEN, "recovery does not sync"},
	{TOY_KEEP_FENCED, "FENCED out of a failed frame"},
};
_Static_assert(sizeof(planted) / sizeof(planted[0]) == TOY_BUG_COUNT, "every bug is planted");

/* Each must be caught within so many seeds. */
enum { SEEDS_MAX = 1500 };

static void every_wrong_store_is_caught(void **state)
{
	double begin = scale_seconds();
	uint64_t missed = 0;

	(void)state;
	for (size_t i = 0; i < TOY_BUG_COUNT; i++) {
		struct run_report report = {.ok = true};
		uint64_t seed = 0;

		bugs = planted[i].bug;
		while (report.ok && seed < SEEDS_MAX) {
			struct run_plan plan = {.submits = 40, .images = 2};

			plan.seed = ++seed;
			plan.with_faults = seed % 2;
			(void)crash_run(&subject, &plan, &report);
		}
		printf("# %-28s %s, seed %llu: %.120s\n", planted[i].name,
		       report.ok ? "MISSED" : "caught", (unsigned long long)seed, report.why);
		missed += report.ok;
	}
	bugs = 0;
	scale_report(
		"wrong toy stores caught", TOY_BUG_COUNT - missed, scale_seconds() - begin,
		missed == 0);
	assert_int_equal(missed, 0);
}

/* I15: the same seed twice leaves the same trace and makes the same images. */
static void equal_seeds_give_equal_runs(void **state)
{
	(void)state;
	bugs = 0;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct run_plan plan = {
			.seed = seed, .submits = 30, .images = 2, .with_faults = seed % 2};
		struct run_report first, second;

		assert_true(crash_run(&subject, &plan, &first));
		assert_true(crash_run(&subject, &plan, &second));
		assert_true(first.trace == second.trace);
		assert_int_equal(first.images, second.images);
		assert_int_equal(first.faults, second.faults);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_right_store_passes),
		cmocka_unit_test(every_wrong_store_is_caught),
		cmocka_unit_test(equal_seeds_give_equal_runs),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests_name("crash_toy", tests, NULL, NULL);
}
