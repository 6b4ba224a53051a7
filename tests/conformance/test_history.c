/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_history.c - random histories against the model, on the store of argv[1].
 *
 * Issue 2 asks for 10,000,000 operations over 1,000 seeds on memory; HAPAX_PROOF=1
 * does that. A seed that fails is printed; HAPAX_TEST_SEED=<seed> runs it alone.
 * Some seeds run twice: the same seed must leave the same trace (I15).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "conformance/history.h"
#include "support/scale.h"

static const char *kind = "memory:";

static bool run_seed(uint64_t seed, uint64_t operations, struct history_report *report)
{
	struct choices choices;

	choices_from_seed(&choices, seed);
	if (history_run(kind, &choices, operations, report))
		return true;
	printf("# seed %llu failed: %s\n# repeat it with HAPAX_TEST_SEED=%llu\n",
	       (unsigned long long)seed, report->why, (unsigned long long)seed);
	return false;
}

struct plan {
	uint64_t seed_first;
	uint64_t seed_count;
	uint64_t operations; /* per seed */
};

static struct plan make_plan(void)
{
	bool memory = strcmp(kind, "memory:") == 0;
	struct plan plan = {.seed_first = 1};

	plan.operations = 10000;
	plan.seed_count = memory ? scale_count(1000, 250) : scale_count(100, 8);
	/* Every submit waits for the disk there. */
	if (!memory)
		plan.operations = 2500;
	if (scale_seed(&plan.seed_first))
		plan.seed_count = 1;
	printf("# seeds %llu to %llu on %s\n", (unsigned long long)plan.seed_first,
	       (unsigned long long)(plan.seed_first + plan.seed_count - 1), kind);
	return plan;
}

static void every_answer_is_the_models(void **state)
{
	struct plan plan = make_plan();
	double begun = scale_seconds();
	uint64_t operations = 0;
	uint64_t fenced = 0;
	uint64_t failed = 0;

	(void)state;
	for (uint64_t i = 0; i < plan.seed_count && failed < 3; i++) {
		struct history_report report;

		failed += !run_seed(plan.seed_first + i, plan.operations, &report);
		operations += report.operations;
		fenced += report.fenced;
	}
	char what[64];
	snprintf(what, sizeof(what), "random operations against the model, %s", kind);
	scale_report(what, operations, scale_seconds() - begun, failed == 0);
	assert_int_equal(failed, 0);
	if (plan.seed_count > 10)
		assert_true(fenced > 0);
}

static void same_seed_gives_same_trace(void **state)
{
	struct plan plan = make_plan();
	bool all = scale_is_proof() && strcmp(kind, "memory:") == 0;
	uint64_t count = all ? plan.seed_count : (plan.seed_count + 9) / 10;
	double begun = scale_seconds();

	(void)state;
	for (uint64_t i = 0; i < count; i++) {
		struct history_report first;
		struct history_report second;

		assert_true(run_seed(plan.seed_first + i, plan.operations, &first));
		assert_true(run_seed(plan.seed_first + i, plan.operations, &second));
		if (first.trace != second.trace)
			printf("# seed %llu left two traces\n",
			       (unsigned long long)(plan.seed_first + i));
		assert_true(first.trace == second.trace);
	}
	char what[64];
	snprintf(what, sizeof(what), "seeds run twice with the same trace, %s", kind);
	scale_report(what, count, scale_seconds() - begun, true);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_answer_is_the_models),
		cmocka_unit_test(same_seed_gives_same_trace),
	};

	if (argc > 1)
		kind = argv[1];
	return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
