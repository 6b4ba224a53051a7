/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tx_processes.c - hapax_tx_process() by several processes on one SQLite file, and
 * by one that is killed at every step: never two effects, never one that is lost.
 *
 * Issue 6: two processes, one key, exactly one business row, 10,000 rounds in proof;
 * kill -9 at every step (bank.h says what a step is). Children are forked while this process has no connection.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/bank.h"
#include "support/scale.h"
#include "support/temp_dir.h"

enum { CHILD_OK = 0, CHILD_ERROR = 12 };

static struct temp_dir dir;
static char path[256];

static int begin(void **state)
{
	(void)state;
	temp_dir_init(&dir);
	snprintf(path, sizeof(path), "%s/bank.db", dir.path);
	return 0;
}

static int end(void **state)
{
	(void)state;
	temp_dir_done(&dir);
	return 0;
}

/* Two processes that do each round at the same moment. */
struct race {
	pthread_barrier_t barrier;
	_Atomic uint64_t acquired;
	_Atomic uint64_t replayed;
	_Atomic uint64_t wrong;
};

static struct race *race_new(void)
{
	struct race *race = mmap(
		NULL, sizeof(*race), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_barrierattr_t shared;

	assert_true(race != MAP_FAILED);
	assert_int_equal(pthread_barrierattr_init(&shared), 0);
	assert_int_equal(pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED), 0);
	assert_int_equal(pthread_barrier_init(&race->barrier, &shared, 2), 0);
	pthread_barrierattr_destroy(&shared);
	return race;
}

static void run_race(struct race *race, uint64_t rounds)
{
	struct bank bank;

	bank_open(&bank, path, "WAL", 60000);
	for (uint64_t round = 0; round < rounds; round++) {
		enum hapax_outcome outcome;
		char key[32];

		snprintf(key, sizeof(key), "order-%llu", (unsigned long long)round);
		pthread_barrier_wait(&race->barrier);
		outcome = bank_pay(&bank, key, round % 4 == 3);
		if (outcome == HAPAX_OUTCOME_ACQUIRED)
			atomic_fetch_add(&race->acquired, 1);
		else if (outcome == HAPAX_OUTCOME_REPLAY)
			atomic_fetch_add(&race->replayed, 1);
		else
			atomic_fetch_add(&race->wrong, 1);
	}
	bank_close(&bank);
}

static int status_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* B6: exactly one row for each key, in any order; the other waits, then replays. */
static void two_processes_one_row(void **state)
{
	uint64_t rounds = scale_count(10000, 1000);
	double begun = scale_seconds();
	struct race *race = race_new();
	struct bank bank;
	pid_t pids[2];

	(void)state;
	bank_open(&bank, path, "WAL", 60000);
	bank_close(&bank);
	for (int i = 0; i < 2; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			run_race(race, rounds);
			_exit(CHILD_OK);
		}
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(status_of(pids[i]), 0);
	assert_int_equal(race->wrong, 0);
	assert_int_equal(race->acquired, rounds);
	assert_int_equal(race->replayed, rounds);
	bank_open(&bank, path, "WAL", 60000);
	assert_int_equal(bank_number(&bank, "SELECT count(*) FROM payment"), rounds);
	assert_int_equal(bank_number(&bank, "SELECT count(DISTINCT key) FROM payment"), rounds);
	assert_int_equal(bank_balance(&bank), -10 * (int64_t)rounds);
	/* Both have run: else it was not a race. */
	assert_int_equal(bank_number(&bank, "SELECT count(DISTINCT payer) FROM payment"), 2);
	bank_close(&bank);
	munmap(race, sizeof(*race));
	scale_report(
		"two processes, one key, one transaction: rounds", rounds, scale_seconds() - begun,
		true);
}

/* The death of a process, so many steps from now. */
static long steps_left;

static int die_in_time(void)
{
	if (steps_left > 0 && --steps_left == 0)
		kill(getpid(), SIGKILL);
	return 0;
}

static void victim(const char *journal, const char *key, bool is_in_ours, long steps, int said)
{
	struct bank bank;

	bank_open(&bank, path, journal, 60000);
	steps_left = steps;
	bank_step_by(&bank, die_in_time);
	if (bank_pay(&bank, key, is_in_ours) == HAPAX_OUTCOME_NONE)
		_exit(CHILD_ERROR);
	/* Acknowledged from here on. */
	if (write(said, "!", 1) != 1)
		_exit(CHILD_ERROR);
	_exit(CHILD_OK);
}

/* What a death left behind, and what the next delivery makes of it. */
static void expect_all_or_nothing(
	const char *journal, const char *key, bool was_acknowledged, int64_t *balance)
{
	struct bank bank;
	int64_t rows;

	bank_open(&bank, path, journal, 60000);
	rows = bank_payments(&bank, key);
	assert_in_range(rows, was_acknowledged ? 1 : 0, 1);
	/* No process sees half a run. */
	assert_int_equal(bank_state(&bank, key), rows == 1 ? HAPAX_STATE_DONE : HAPAX_STATE_ABSENT);
	assert_int_equal(bank_balance(&bank), *balance - 10 * rows);
	assert_int_equal(
		bank_pay(&bank, key, false),
		rows == 1 ? HAPAX_OUTCOME_REPLAY : HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(bank_payments(&bank, key), 1);
	*balance -= 10;
	assert_int_equal(bank_balance(&bank), *balance);
	bank_close(&bank);
}

/* Dies at each step in turn. Returns how many there were. */
static long kill_at_every_step(const char *journal, bool is_in_ours)
{
	int64_t balance = 0;
	long deaths = 0;
	int status;

	do {
		char key[32];
		int said[2];
		char byte;
		pid_t pid;

		snprintf(key, sizeof(key), "order-%ld", deaths);
		assert_int_equal(pipe(said), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			victim(journal, key, is_in_ours, deaths + 1, said[1]);
		close(said[1]);
		status = status_of(pid);
		assert_true(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
		expect_all_or_nothing(journal, key, read(said[0], &byte, 1) == 1, &balance);
		close(said[0]);
		deaths++;
	} while (status != 0);
	return deaths - 1;
}

static void a_killed_process_leaves_all_or_nothing(void **state)
{
	static const char *const journals[] = {"WAL", "DELETE"};
	double begun = scale_seconds();
	long deaths = 0;

	for (size_t i = 0; i < 2; i++) {
		for (int is_in_ours = 0; is_in_ours < 2; is_in_ours++) {
			long steps = kill_at_every_step(journals[i], is_in_ours);

			printf("# %s, %s transaction: %ld steps\n", journals[i],
			       is_in_ours ? "the caller's" : "its own", steps);
			/* Begin, claim, two changes, complete, commit: there must be many. */
			assert_true(steps > 30);
			deaths += steps;
			(void)end(state);
			(void)begin(state);
		}
	}
	scale_report(
		"kill -9 at every step of a transaction", (uint64_t)deaths, scale_seconds() - begun,
		true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(two_processes_one_row, begin, end),
		cmocka_unit_test_setup_teardown(a_killed_process_leaves_all_or_nothing, begin, end),
	};

	/* Nor need it wait for one. */
	if (access("/dev/shm", W_OK) == 0)
		(void)setenv("TMPDIR", "/dev/shm", 0);
	return cmocka_run_group_tests_name("tx_processes", tests, NULL, NULL);
}
