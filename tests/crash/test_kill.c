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
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "crash/victim.h"
#include "support/scale.h"
#include "support/temp_dir.h"

/* So many lives of one store; how many keys were acknowledged. */
static uint64_t kill_often(struct hx_prng *prng, int lives)
{
	struct victim_journal *journal = calloc(1, sizeof(*journal));
	uint64_t keys = 0, all = 0;
	struct temp_dir dir;
	char url[256];

	assert_non_null(journal);
	temp_dir_init(&dir);
	snprintf(url, sizeof(url), "file:%s/store", dir.path);
	for (int life = 0; life < lives; life++) {
		struct victim victim = {
			.url = url,
			.life = life,
			.batch =
				hx_prng_below(prng, 3) ? 1 : 1 + (uint32_t)hx_prng_below(prng, 32)};

		victim_start(&victim);
		assert_true(victim_wait(&victim, (uint32_t)hx_prng_below(prng, 24), journal));
		assert_int_equal(kill(victim.pid, SIGKILL), 0);
		assert_int_equal(victim_end(&victim, journal), -1);
		if (victim_verify(url, journal, life > 3 ? life - 3 : 0, life, &keys) != 0)
			fail_msg("life %d", life);
		all += journal->counts[life];
	}
	assert_int_equal(victim_verify(url, journal, 0, lives - 1, &keys), 0);
	assert_int_equal(keys, all);
	temp_dir_done(&dir);
	free(journal);
	return all;
}

static void a_killed_process_keeps_its_word(void **state)
{
	enum { LIVES_OF_A_STORE = 25 };
	int lives = (int)scale_count(2000, 50);
	double begin = scale_seconds();
	struct hx_prng prng;
	uint64_t all = 0;

	(void)state;
	hx_prng_seed(&prng, 4711);
	for (int life = 0; life < lives; life += LIVES_OF_A_STORE)
		all += kill_often(
			&prng, lives - life < LIVES_OF_A_STORE ? lives - life : LIVES_OF_A_STORE);
	assert_true(all > (uint64_t)lives);
	printf("# %llu keys acknowledged\n", (unsigned long long)all);
	scale_report(
		"I2: kill -9 of a process that writes file:", (uint64_t)lives,
		scale_seconds() - begin, true);
}

/* Where the program lies, that is in the build's folder, and so on a real disk. */
static void choose_disk(const char *program)
{
	static char folder[512];
	const char *slash = strrchr(program, '/');
	int size = slash ? (int)(slash - program) : 1;

	snprintf(folder, sizeof(folder), "%.*s", size, slash ? program : ".");
	(void)setenv("HAPAX_TEST_DIR", folder, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_killed_process_keeps_its_word),
	};

	choose_disk(argc > 0 ? argv[0] : "");
	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests_name("kill", tests, NULL, NULL);
}
