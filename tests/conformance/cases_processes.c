/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cases_processes.c - a store that several processes have open: each key runs once, and a process that is killed
 * keeps nothing but its lease.
 *
 * Children are forked while no store is open, use the store's own clock, and end with _exit().
 */
#include "conformance/cases.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/scale.h"

enum { WORKERS = 4, KEYS_MAX = 5000, CHILD_GOOD = 0, CHILD_BAD = 1 };

/* What a worker writes for each claim that it was given. */
struct given {
	uint64_t key;
	uint64_t token;
};

static struct hapax_store *open_plainly(const char *url)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_store *store = NULL;
	struct hapax_error err;

	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	options.timeout_ms = 60000;
	if (hapax_store_open(url, &options, &store, &err) != HAPAX_OK) {
		fprintf(stderr, "# open: %s\n", err.message);
		abort();
	}
	return store;
}

static struct hapax_op make_claim(
	const char *key, unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE], int64_t lease_ms)
{
	hapax_attempt_id(attempt_id);
	return (struct hapax_op){
		.type = HAPAX_OP_CLAIM,
		.key = hapax_bytes_from_text(key),
		.attempt_id = attempt_id,
		.lease_ms = lease_ms,
	};
}

static enum hapax_status complete(
	struct hapax_store *store, const char *key, uint64_t token, struct hapax_bytes body)
{
	struct hapax_result result = {.kind = HAPAX_RESULT_BYTES, .body = body};
	struct hapax_op op = {
		.type = HAPAX_OP_COMPLETE,
		.key = hapax_bytes_from_text(key),
		.token = token,
		.result = &result,
	};

	return hapax_store_run(store, &op, 1, NULL);
}

/* Run the key, or see that another has: its result is its key. False: something else happened. */
static bool work_on(struct hapax_store *store, struct hapax_buf *buf, uint64_t number, int gifts)
{
	struct hapax_record record;
	struct hapax_op op;
	char key[32];

	snprintf(key, sizeof(key), "order %llu", (unsigned long long)number);
	do {
		unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];

		op = make_claim(key, attempt_id, INT64_C(3600) * 1000);
		op.record = &record;
		op.buf = buf;
		if (hapax_store_run(store, &op, 1, NULL) != HAPAX_OK)
			return false;
		if (op.outcome == HAPAX_OUTCOME_IN_PROGRESS)
			sched_yield();
	} while (op.outcome == HAPAX_OUTCOME_IN_PROGRESS);
	if (op.outcome == HAPAX_OUTCOME_ACQUIRED) {
		struct given given = {number, op.token};

		return write(gifts, &given, sizeof(given)) == sizeof(given) &&
			complete(store, key, op.token, op.key) == HAPAX_OK;
	}
	return op.outcome == HAPAX_OUTCOME_REPLAY && record.state == HAPAX_STATE_DONE &&
		case_bytes_are(record.result.body, key, strlen(key));
}

static void work(const char *url, int worker, uint64_t keys, int gifts)
{
	struct hapax_store *store = open_plainly(url);
	struct hapax_buf *buf = hapax_buf_new(65536);
	bool is_good = true;

	/* Each from another place on, and twice: the second time all of them are done. */
	for (uint64_t i = 0; i < 2 * keys && is_good; i++)
		is_good = work_on(store, buf, (i + (uint64_t)worker * 3) % keys, gifts);
	hapax_buf_free(buf);
	hapax_store_close(store);
	_exit(is_good ? CHILD_GOOD : CHILD_BAD);
}

static void must_be_good(pid_t child)
{
	int status = -1;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == CHILD_GOOD);
}

static void close_case(struct store_case *c)
{
	hapax_store_close(c->store);
	c->store = NULL;
	fflush(stdout);
}

/* I1, I5: processes run the same keys at the same time; each is given once, no token twice. */
static void processes_run_each_key_once(void **state)
{
	static uint64_t tokens[KEYS_MAX];
	struct store_case *c = *state;
	uint64_t keys = scale_count(KEYS_MAX, 100);
	bool is_whole = store_case_is_whole(c);
	double begun = scale_seconds();
	uint64_t runs = 0, last = 0;
	struct given given;
	pid_t children[WORKERS];
	int gifts[2];
	char what[80];

	memset(tokens, 0, sizeof(tokens));
	close_case(c);
	assert_int_equal(pipe(gifts), 0);
	for (int i = 0; i < WORKERS; i++) {
		children[i] = fork();
		assert_true(children[i] >= 0);
		if (children[i] == 0) {
			close(gifts[0]);
			work(c->url, i, keys, gifts[1]);
		}
	}
	close(gifts[1]);
	while (read(gifts[0], &given, sizeof(given)) == sizeof(given)) {
		assert_true(given.key < keys);
		assert_int_equal(tokens[given.key], 0);
		assert_true(given.token > 0);
		tokens[given.key] = given.token;
		last = given.token > last ? given.token : last;
		runs++;
	}
	close(gifts[0]);
	for (int i = 0; i < WORKERS; i++)
		must_be_good(children[i]);
	assert_int_equal(runs, keys);
	c->store = open_plainly(c->url);
	assert_int_equal(case_stats(c).done, keys);
	if (is_whole)
		assert_true(case_stats(c).token >= last);
	snprintf(what, sizeof(what), "keys that %d processes run once, %s", WORKERS, c->kind);
	scale_report(what, keys, scale_seconds() - begun, true);
}

static void claim_and_die(const char *url, int out)
{
	struct hapax_store *store = open_plainly(url);
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	struct hapax_op op = make_claim("held", attempt_id, 300);

	if (hapax_store_run(store, &op, 1, NULL) != HAPAX_OK ||
	    op.outcome != HAPAX_OUTCOME_ACQUIRED ||
	    write(out, &op.token, sizeof(op.token)) != sizeof(op.token))
		_exit(CHILD_BAD);
	(void)raise(SIGKILL);
	_exit(CHILD_BAD);
}

/* I3, I5: its lease lapses, the next one runs by a larger token, and its own is of no use any more. */
static void a_killed_process_is_taken_over(void **state)
{
	struct store_case *c = *state;
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	struct hapax_op op;
	uint64_t token = 0;
	int status = 0;
	int out[2];
	pid_t child;

	close_case(c);
	assert_int_equal(pipe(out), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		claim_and_die(c->url, out[1]);
	close(out[1]);
	assert_int_equal(read(out[0], &token, sizeof(token)), sizeof(token));
	close(out[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	c->store = open_plainly(c->url);
	do {
		op = make_claim("held", attempt_id, INT64_C(3600) * 1000);
		assert_int_equal(hapax_store_run(c->store, &op, 1, NULL), HAPAX_OK);
	} while (op.outcome == HAPAX_OUTCOME_IN_PROGRESS);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(op.attempt, 2);
	assert_true(op.token > token);
	assert_int_equal(complete(c->store, "held", token, op.key), HAPAX_ERR_FENCED);
	assert_int_equal(complete(c->store, "held", op.token, op.key), HAPAX_OK);
}

const struct conformance_case process_cases[] = {
	{"I1: processes run each key once", processes_run_each_key_once, NEEDS_SHARING},
	{"I3: a killed process is taken over", a_killed_process_is_taken_over, NEEDS_SHARING},
	{NULL, NULL, NEEDS_NOTHING},
};
