/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many processes, one file: made by all at once, fought over, killed.
 *
 * Children are forked while this process has no store and no thread, and end with
 * _exit(): their status is the answer. What they must do at the same moment they do
 * when a pipe that they all read is closed.
 */
#include "store/sqlite/sqlite_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/random.h"
#include "support/scale.h"
#include "support/store_case.h"

enum { PROCESSES = 50 };

/* What a child returns. */
enum { CHILD_FIRST = 10, CHILD_DUPLICATE = 11, CHILD_ERROR = 12, CHILD_OPEN_FAILED = 13 };

static int set_up(void **state)
{
	struct store_case *c = calloc(1, sizeof(*c));

	if (!c)
		return -1;
	store_case_init(c, "sqlite:");
	*state = c;
	return 0;
}

static int tear_down(void **state)
{
	store_case_done(*state);
	free(*state);
	return 0;
}

struct start {
	int pipe[2];
};

static void start_init(struct start *start)
{
	assert_int_equal(pipe(start->pipe), 0);
}

/* In a child: until the parent lets all go. */
static void start_wait(struct start *start)
{
	char byte;

	close(start->pipe[1]);
	while (read(start->pipe[0], &byte, 1) > 0)
		continue;
	close(start->pipe[0]);
}

static void start_go(struct start *start)
{
	close(start->pipe[0]);
	close(start->pipe[1]);
}

static struct hapax_store *open_in_child(const char *url)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_store *store = NULL;
	struct hapax_error err;

	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	options.timeout_ms = 60000;
	if (hapax_store_open(url, &options, &store, &err) != HAPAX_OK) {
		fprintf(stderr, "# open: %s\n", err.message);
		_exit(CHILD_OPEN_FAILED);
	}
	return store;
}

static int check_in_child(const char *url, const char *key)
{
	struct hapax_store *store = open_in_child(url);
	enum hapax_outcome outcome = HAPAX_OUTCOME_NONE;
	struct hapax_error err;

	if (hapax_store_check(store, hapax_bytes_from_text(key), 0, &outcome, &err) != HAPAX_OK) {
		fprintf(stderr, "# check: %s\n", err.message);
		return CHILD_ERROR;
	}
	hapax_store_close(store);
	return outcome == HAPAX_OUTCOME_ACQUIRED ? CHILD_FIRST : CHILD_DUPLICATE;
}

static int exit_code_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A2: fifty processes make the file, ask for one key, and close it again: one is first. */
static void fifty_processes_make_one_file(void **state)
{
	struct store_case *c = *state;
	uint64_t rounds = scale_count(50, 6);
	double begin = scale_seconds();

	for (uint64_t round = 0; round < rounds; round++) {
		struct start start;
		pid_t pids[PROCESSES];
		int firsts = 0, duplicates = 0;

		/* A new file every second round; otherwise the one of the round before. */
		if (round % 2 == 0)
			snprintf(
				c->url, sizeof(c->url), "sqlite:%.200s/%llu.db", c->dir.path,
				(unsigned long long)round);
		start_init(&start);
		for (int i = 0; i < PROCESSES; i++) {
			pids[i] = fork();
			assert_true(pids[i] >= 0);
			if (pids[i] == 0) {
				char key[32];

				start_wait(&start);
				snprintf(key, sizeof(key), "round %llu", (unsigned long long)round);
				_exit(check_in_child(c->url, key));
			}
		}
		start_go(&start);
		for (int i = 0; i < PROCESSES; i++) {
			int code = exit_code_of(pids[i]);

			firsts += code == CHILD_FIRST;
			duplicates += code == CHILD_DUPLICATE;
		}
		assert_int_equal(firsts, 1);
		assert_int_equal(duplicates, PROCESSES - 1);
	}
	scale_report("A2: 50 processes make one file", rounds, scale_seconds() - begin, true);
}

/* What a worker writes for each claim that it was given. */
struct given {
	int key;
	uint64_t token;
};

static void worker(const char *url, int fd, int keys)
{
	struct hapax_store *store = open_in_child(url);
	struct hx_prng prng;

	hx_prng_seed(&prng, (uint64_t)getpid());
	for (int left = keys * 3; left > 0; left--) {
		unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
		struct hapax_op op = {.type = HAPAX_OP_CLAIM, .attempt_id = attempt_id};
		struct given given = {.key = (int)hx_prng_below(&prng, (uint64_t)keys)};
		char key[32];

		snprintf(key, sizeof(key), "%d", given.key);
		op.key = hapax_bytes_from_text(key);
		hx_random_bytes(attempt_id, sizeof(attempt_id));
		if (hapax_store_run(store, &op, 1, NULL) != HAPAX_OK)
			_exit(CHILD_ERROR);
		if (op.outcome != HAPAX_OUTCOME_ACQUIRED)
			continue;
		given.token = op.token;
		if (write(fd, &given, sizeof(given)) != sizeof(given))
			_exit(CHILD_ERROR);
		struct hapax_op complete = {
			.type = HAPAX_OP_COMPLETE, .key = op.key, .token = op.token};
		if (hapax_store_run(store, &complete, 1, NULL) != HAPAX_OK)
			_exit(CHILD_ERROR);
	}
	hapax_store_close(store);
	_exit(0);
}

/* E1, I5: processes claim and complete the same keys; each is given once, tokens rise. */
static void processes_contend_for_keys(void **state)
{
	struct store_case *c = *state;
	enum { WORKERS = 8, KEYS = 200 };
	struct start start;
	pid_t pids[WORKERS];
	struct given given;
	int gifts[2];
	bool ran[KEYS] = {false};
	uint64_t runs = 0, last = 0;

	assert_int_equal(pipe(gifts), 0);
	start_init(&start);
	for (int i = 0; i < WORKERS; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			close(gifts[0]);
			start_wait(&start);
			worker(c->url, gifts[1], KEYS);
		}
	}
	close(gifts[1]);
	start_go(&start);
	while (read(gifts[0], &given, sizeof(given)) == sizeof(given)) {
		assert_in_range(given.key, 0, KEYS - 1);
		assert_false(ran[given.key]);
		ran[given.key] = true;
		runs++;
		last = given.token > last ? given.token : last;
	}
	close(gifts[0]);
	for (int i = 0; i < WORKERS; i++)
		assert_int_equal(exit_code_of(pids[i]), 0);
	store_case_open(c);
	assert_int_equal(case_stats(c).done, runs);
	assert_int_equal(case_stats(c).token, last);
	assert_int_equal(last, runs);
	assert_int_equal(case_stats(c).counts[HAPAX_DECISION_COMPLETED], runs);
}

/* Says each completion after it was acknowledged, until it is killed. */
static void victim(const char *url, int fd, int life)
{
	struct hapax_store *store = open_in_child(url);

	for (uint32_t i = 0;; i++) {
		unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
		struct hapax_op op = {.type = HAPAX_OP_CLAIM, .attempt_id = attempt_id};
		struct hapax_result result = {.kind = HAPAX_RESULT_BYTES};
		char key[32];

		snprintf(key, sizeof(key), "%d/%u", life, i);
		op.key = hapax_bytes_from_text(key);
		hx_random_bytes(attempt_id, sizeof(attempt_id));
		if (hapax_store_run(store, &op, 1, NULL) != HAPAX_OK)
			_exit(CHILD_ERROR);
		result.body = op.key;
		struct hapax_op complete = {
			.type = HAPAX_OP_COMPLETE,
			.key = op.key,
			.token = op.token,
			.result = &result};
		if (hapax_store_run(store, &complete, 1, NULL) != HAPAX_OK)
			_exit(CHILD_ERROR);
		if (write(fd, &i, sizeof(i)) != sizeof(i))
			_exit(0);
	}
}

/* I2, B5: kill -9 at any moment, in the middle of a commit too; what was said to be done stays. */
static void a_killed_process_keeps_its_word(void **state)
{
	struct store_case *c = *state;
	uint64_t lives = scale_count(500, 25);
	double begin = scale_seconds();
	struct hx_prng prng;

	hx_prng_seed(&prng, 4711);
	for (int life = 0; life < (int)lives; life++) {
		int said[2];
		uint32_t number, count = 0;
		uint32_t kill_after = (uint32_t)hx_prng_below(&prng, 12);
		pid_t pid;

		assert_int_equal(pipe(said), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			close(said[0]);
			victim(c->url, said[1], life);
		}
		close(said[1]);
		while (count < kill_after &&
		       read(said[0], &number, sizeof(number)) == sizeof(number))
			count++;
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(exit_code_of(pid), -1);
		/* It may have said more before it died. */
		while (read(said[0], &number, sizeof(number)) == sizeof(number))
			count++;
		close(said[0]);

		/* On the real clock, as the victims were. */
		c->options.clock = NULL;
		store_case_open(c);
		for (uint32_t i = 0; i < count; i++) {
			char key[32];

			snprintf(key, sizeof(key), "%d/%u", life, i);
			assert_int_equal(case_claim(c, key, NULL), HAPAX_OUTCOME_REPLAY);
			assert_true(case_bytes_are(c->record.result.body, key, strlen(key)));
		}
		hapax_store_close(c->store);
		c->store = NULL;
	}
	scale_report("I2: kill -9 of a writing process", lives, scale_seconds() - begin, true);
}

/* A process that dies with the write lock does not keep it. */
static void a_dead_process_holds_no_lock(void **state)
{
	struct store_case *c = *state;
	int ready[2];
	char byte = 0;
	pid_t pid;

	store_case_open(c);
	hapax_store_close(c->store);
	c->store = NULL;
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		sqlite3 *db;

		if (sqlite3_open(c->url + 7, &db) != SQLITE_OK ||
		    sqlite3_exec(
			    db, "BEGIN IMMEDIATE; DELETE FROM hapax_record", NULL, NULL, NULL) !=
			    SQLITE_OK)
			_exit(CHILD_ERROR);
		if (write(ready[1], &byte, 1) != 1)
			_exit(CHILD_ERROR);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(exit_code_of(pid), -1);
	close(ready[0]);
	close(ready[1]);
	store_case_open(c);
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_ACQUIRED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(fifty_processes_make_one_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(processes_contend_for_keys, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_killed_process_keeps_its_word, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_dead_process_holds_no_lock, set_up, tear_down),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests_name("sqlite_processes", tests, NULL, NULL);
}
