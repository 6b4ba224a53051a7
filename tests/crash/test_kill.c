/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_kill.c - kill -9 in the middle of commits, on the real disk, with a journal
 * outside (victim.h): 0 keys lost, 0 run again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <signal.h>

#include "base/random.h"
#include "crash/victim.h"
#include "support/scale.h"
#include "support/temp_dir.h"

static void a_killed_process_keeps_its_word(void **state)
{
	struct victim_journal *journal = calloc(1, sizeof(*journal));
	int lives = (int)scale_count(2000, 40);
	double begin = scale_seconds();
	uint64_t keys = 0, all = 0;
	struct temp_dir dir;
	struct hx_prng prng;
	char url[256];

	(void)state;
	assert_non_null(journal);
	assert_true(lives <= VICTIM_LIVES_MAX);
	temp_dir_init(&dir);
	snprintf(url, sizeof(url), "file:%s/store", dir.path);
	hx_prng_seed(&prng, 4711);
	for (int life = 0; life < lives; life++) {
		struct victim victim = {
			.url = url,
			.life = life,
			.batch = hx_prng_below(&prng, 3) ? 1
							 : 1 + (uint32_t)hx_prng_below(&prng, 32)};
		uint32_t after = (uint32_t)hx_prng_below(&prng, 24);
		/* Now and then every life so far is looked at, else the last few. */
		int first = life % 50 == 49 ? 0 : life > 3 ? life - 3 : 0;

		victim_start(&victim);
		assert_true(victim_wait(&victim, after, journal));
		assert_int_equal(kill(victim.pid, SIGKILL), 0);
		assert_int_equal(victim_end(&victim, journal), -1);
		if (victim_verify(url, journal, first, life, &keys) != 0)
			fail_msg("life %d", life);
		all += journal->counts[life];
	}
	assert_int_equal(victim_verify(url, journal, 0, lives - 1, &keys), 0);
	assert_int_equal(keys, all);
	assert_true(all > (uint64_t)lives);
	printf("# %llu keys acknowledged\n", (unsigned long long)all);
	scale_report(
		"I2: kill -9 of a process that writes file:", (uint64_t)lives,
		scale_seconds() - begin, true);
	temp_dir_done(&dir);
	free(journal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_killed_process_keeps_its_word),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests_name("kill", tests, NULL, NULL);
}
