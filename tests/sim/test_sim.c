/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sim.c - many seeds of the simulation, on the store of argv[1].
 *
 * Issue 4 asks for 1,000 seeds here and 100,000 with HAPAX_PROOF=1; on stores with
 * files it is 200 and 1,000. A seed that fails is printed; HAPAX_TEST_SEED=<seed> runs
 * it alone. Seeds that ever failed stand in tests/sim/seeds (argv[2]) and always run.
 * Every tenth runs twice: the same seed must leave the same trace (I15). Requirements: C3, C5, C6, D4, E1, E5, E15.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "sim/sim.h"
#include "support/scale.h"

static const char *kind = "memory:";
static const char *seeds_path;

static struct sim_world world;
static uint64_t counts[SIM_COUNTS];

static bool run_seed(uint64_t seed)
{
	bool ok = sim_run(&world, seed, kind);

	for (size_t i = 0; i < SIM_COUNTS; i++)
		counts[i] += world.counts[i];
	if (!ok)
		printf("# seed %llu failed: %s\n"
		       "# repeat it with HAPAX_TEST_SEED=%llu; keep it in tests/sim/seeds\n",
		       (unsigned long long)seed, world.why, (unsigned long long)seed);
	return ok;
}

static uint64_t seed_count(void)
{
	/* There is more to do for each operation there, and other tests do it. */
	return strcmp(kind, "memory:") == 0 ? scale_count(100000, 1000) : scale_count(1000, 200);
}

static void invariants_hold_for_many_seeds(void **state)
{
	uint64_t first = 1;
	uint64_t count = seed_count();
	double begun = scale_seconds();
	uint64_t failed = 0;
	char what[80];

	(void)state;
	if (scale_seed(&first))
		count = 1;
	for (uint64_t i = 0; i < count && failed < 3; i++)
		failed += !run_seed(first + i);
	snprintf(what, sizeof(what), "simulated seeds of the processor, %s", kind);
	scale_report(what, count, scale_seconds() - begun, failed == 0);
	assert_int_equal(failed, 0);
}

/* A simulation that never loses a claim proves nothing about losing one. */
static void seeds_reach_what_they_are_for(void **state)
{
	static const char *const names[SIM_COUNTS] = {
		"runs",
		"replays",
		"waits",
		"fenced",
		"uncertain",
		"crashes",
		"lapsed",
		"parked",
		"late groups",
		"refused as failed",
		"given up by a sweep",
		"completed after that",
		"forgotten",
		"forgotten by force",
		"claims that were over when the answer came",
		"runs that came too late to begin",
	};
	uint64_t seed;

	(void)state;
	for (size_t i = 0; i < SIM_COUNTS; i++)
		printf("# %s: %llu\n", names[i], (unsigned long long)counts[i]);
	/* Of the rarest there is one in some hundred seeds. */
	if (scale_seed(&seed) || seed_count() < 1000)
		return;
	for (size_t i = 0; i < SIM_COUNTS; i++)
		assert_true(counts[i] > 0);
}

static void seeds_that_ever_failed_pass(void **state)
{
	FILE *file = seeds_path ? fopen(seeds_path, "r") : NULL;
	uint64_t failed = 0;
	uint64_t count = 0;
	char line[256];

	(void)state;
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (line[0] < '0' || line[0] > '9')
			continue;
		failed += !run_seed(strtoull(line, NULL, 10));
		count++;
	}
	fclose(file);
	printf("# %llu seeds from the file\n", (unsigned long long)count);
	assert_true(count > 0);
	assert_int_equal(failed, 0);
}

static void same_seed_gives_same_trace(void **state)
{
	uint64_t count = (seed_count() + 9) / 10;

	(void)state;
	for (uint64_t seed = 1; seed <= count; seed++) {
		uint64_t trace;

		assert_true(run_seed(seed));
		trace = world.trace;
		assert_true(run_seed(seed));
		if (trace != world.trace)
			printf("# seed %llu left two traces\n", (unsigned long long)seed);
		assert_true(trace == world.trace);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(invariants_hold_for_many_seeds),
		cmocka_unit_test(seeds_reach_what_they_are_for),
		cmocka_unit_test(seeds_that_ever_failed_pass),
		cmocka_unit_test(same_seed_gives_same_trace),
	};

	/* What survives a crash of the machine is for other tests: here no disk is waited for. */
	if (access("/dev/shm", W_OK) == 0)
		(void)setenv("TMPDIR", "/dev/shm", 0);
	if (argc > 1)
		kind = argv[1];
	if (argc > 2)
		seeds_path = argv[2];
	return cmocka_run_group_tests_name("sim", tests, NULL, NULL);
}
