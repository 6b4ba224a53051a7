/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_redis_waiters.c - who waits for a run of another process on Redis is woken by its end,
 * not by asking now and then.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hapax/hapax.h>

#include "base/thread.h"

/* Longer than the test may take: a waiter that is not woken hangs. */
enum { LONG_MS = 3600 * 1000 };

static const unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE] = {7};

static char url[300];

static struct hapax_store *open_store(void)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};

	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	if (hapax_store_open(url, &options, &store, &err) != HAPAX_OK) {
		printf("# %s\n", err.message);
		abort();
	}
	return store;
}

/* The other process: claims, says so, and ends the claim as it is told. */
static void hold(int from, int to)
{
	struct hapax_result result = {
		.kind = HAPAX_RESULT_BYTES, .body = hapax_bytes_from_text("theirs")};
	struct hapax_store *store = open_store();
	struct hapax_op op = {
		.type = HAPAX_OP_CLAIM,
		.key = hapax_bytes_from_text("k"),
		.attempt_id = attempt_id,
		.lease_ms = LONG_MS};
	char command = 0;

	if (hapax_store_run(store, &op, 1, NULL) != HAPAX_OK || write(to, "c", 1) != 1 ||
	    read(from, &command, 1) != 1)
		_exit(1);
	op.type = command == 'd' ? HAPAX_OP_COMPLETE : HAPAX_OP_RELEASE;
	op.result = command == 'd' ? &result : NULL;
	if (hapax_store_run(store, &op, 1, NULL) != HAPAX_OK)
		_exit(1);
	hapax_store_close(store);
	_exit(0);
}

struct waiter {
	struct hapax_processor *processor;
	struct hapax_answer answer;
	struct hapax_buf *buf;
	enum hapax_status status;
	unsigned runs;
};

static enum hapax_run_outcome run_it(struct hapax_work *work, void *context)
{
	struct waiter *waiter = context;

	waiter->runs++;
	(void)hapax_work_write(work, "ours", 4);
	return HAPAX_RUN_OK;
}

static void wait_for_it(void *arg)
{
	struct waiter *waiter = arg;
	struct hapax_request request = HAPAX_REQUEST_INIT;
	struct hapax_run_options options = HAPAX_RUN_OPTIONS_INIT;

	options.wait_ms = LONG_MS;
	request.options = &options;
	request.key = hapax_bytes_from_text("k");
	waiter->status = hapax_process(
		waiter->processor, &request, run_it, waiter, &waiter->answer, waiter->buf, NULL);
}

/* Until so many listen to the ledger's channel. */
static void wait_for_listeners(const char *prefix)
{
	for (;;) {
		const struct timespec pause = {.tv_nsec = 10000000};
		char line[300], out[200] = "";
		FILE *pipe;

		snprintf(
			line, sizeof(line), "redis-cli -s %s pubsub numsub %s:events",
			getenv("HAPAX_TEST_REDIS"), prefix);
		pipe = popen(line, "r");
		assert_non_null(pipe);
		out[fread(out, 1, sizeof(out) - 1, pipe)] = '\0';
		(void)pclose(pipe);
		if (strstr(out, "\n1"))
			return;
		nanosleep(&pause, NULL);
	}
}

/* A duplicate here waits for a claim that another process holds, which then ends by command. */
static void wait_while(char command, struct waiter *waiter)
{
	struct hapax_processor_options options = HAPAX_PROCESSOR_OPTIONS_INIT;
	struct hapax_processor_stats stats = HAPAX_PROCESSOR_STATS_INIT;
	static unsigned rounds;
	struct hx_thread thread;
	struct hapax_store *store;
	int to_child[2], to_parent[2];
	char prefix[32], said = 0;
	int status = 0;
	pid_t child;

	snprintf(prefix, sizeof(prefix), "waiters-%u", rounds++);
	snprintf(url, sizeof(url), "redis+unix:%s?prefix=%s", getenv("HAPAX_TEST_REDIS"), prefix);
	assert_int_equal(pipe(to_child), 0);
	assert_int_equal(pipe(to_parent), 0);
	fflush(stdout);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		hold(to_child[0], to_parent[1]);
	assert_int_equal(read(to_parent[0], &said, 1), 1);
	store = open_store();
	options.poll_ms = LONG_MS;
	*waiter = (struct waiter){.answer = HAPAX_ANSWER_INIT, .buf = hapax_buf_new(65536)};
	assert_int_equal(hapax_processor_new(store, &options, &waiter->processor, NULL), HAPAX_OK);
	wait_for_listeners(prefix);
	assert_int_equal(hx_thread_start(&thread, wait_for_it, waiter, "waiter", NULL), HAPAX_OK);
	while (stats.waiting == 0)
		hapax_processor_stats(waiter->processor, &stats);
	assert_int_equal(write(to_child[1], &command, 1), 1);
	hx_thread_join(&thread);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	hapax_processor_free(waiter->processor);
	hapax_store_close(store);
	for (int i = 0; i < 2; i++) {
		close(to_child[i]);
		close(to_parent[i]);
	}
}

static void done_elsewhere_is_replayed(void **state)
{
	struct waiter waiter;

	(void)state;
	wait_while('d', &waiter);
	assert_int_equal(waiter.status, HAPAX_OK);
	assert_int_equal(waiter.answer.outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(waiter.runs, 0);
	assert_int_equal(waiter.answer.result.body.size, 6);
	assert_memory_equal(waiter.answer.result.body.data, "theirs", 6);
	hapax_buf_free(waiter.buf);
}

static void failed_elsewhere_runs_here(void **state)
{
	struct waiter waiter;

	(void)state;
	wait_while('r', &waiter);
	assert_int_equal(waiter.status, HAPAX_OK);
	assert_int_equal(waiter.answer.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(waiter.runs, 1);
	hapax_buf_free(waiter.buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(done_elsewhere_is_replayed),
		cmocka_unit_test(failed_elsewhere_runs_here),
	};

	return cmocka_run_group_tests_name("redis_waiters", tests, NULL, NULL);
}
