/* SPDX-License-Identifier: Apache-2.0 */
#include "base/worker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"

enum { JOBS = 1000, POSTERS = 4 };

struct counted {
	struct hx_job job;
	struct hx_worker *worker;
	int number;
	int runs_left;         /* posts itself again */
	int *sum;              /* not atomic: the jobs of one worker never run together */
	int *last;             /* the number of the job before */
	struct hx_event *seen; /* set when it has run for the last time */
};

static void count(struct hx_job *job)
{
	struct counted *counted = (struct counted *)(void *)job;

	(*counted->sum)++;
	if (counted->last != NULL)
		*counted->last = counted->number == *counted->last + 1 ? counted->number : -JOBS;
	if (--counted->runs_left > 0)
		assert_int_equal(hx_worker_post(counted->worker, job, NULL), HAPAX_OK);
	else if (counted->seen != NULL)
		hx_event_set(counted->seen);
}

static void jobs_run_in_order(void **state)
{
	static struct counted jobs[JOBS];
	struct hx_worker worker;
	struct hx_event seen;
	int sum = 0, last = -1;

	(void)state;
	hx_event_init(&seen);
	hx_worker_init(&worker, "test");
	for (int i = 0; i < JOBS; i++) {
		jobs[i] = (struct counted){.job.run = count, .number = i, .sum = &sum};
		jobs[i].last = &last;
		jobs[i].seen = i == JOBS - 1 ? &seen : NULL;
		assert_int_equal(hx_worker_post(&worker, &jobs[i].job, NULL), HAPAX_OK);
	}
	hx_event_wait(&seen);
	assert_int_equal(last, JOBS - 1);
	assert_int_equal(hx_worker_queued(&worker), 0);
	assert_null(hx_worker_stop(&worker));
	assert_true(hx_worker_join(&worker, INT64_MAX));
	assert_int_equal(sum, JOBS);
}

/* Two that post themselves take turns; neither waits for the end of the other. */
static void a_job_may_post_itself(void **state)
{
	struct hx_worker worker;
	struct hx_event seen[2];
	int sum = 0;
	struct counted jobs[2];

	(void)state;
	hx_worker_init(&worker, "test");
	assert_int_equal(hx_worker_start(&worker, NULL), HAPAX_OK);
	assert_int_equal(hx_worker_start(&worker, NULL), HAPAX_OK);
	for (int i = 0; i < 2; i++) {
		hx_event_init(&seen[i]);
		jobs[i] = (struct counted){
			.job.run = count,
			.worker = &worker,
			.runs_left = 100,
			.sum = &sum,
			.seen = &seen[i]};
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(hx_worker_post(&worker, &jobs[i].job, NULL), HAPAX_OK);
	for (int i = 0; i < 2; i++)
		hx_event_wait(&seen[i]);
	assert_null(hx_worker_stop(&worker));
	assert_true(hx_worker_join(&worker, INT64_MAX));
	assert_int_equal(sum, 200);
}

struct gate {
	struct hx_job job;
	struct hx_event entered;
	struct hx_event opened;
};

static void pass_gate(struct hx_job *job)
{
	struct gate *gate = (struct gate *)(void *)job;

	hx_event_set(&gate->entered);
	hx_event_wait(&gate->opened);
}

static void stop_gives_back_what_waits(void **state)
{
	struct hx_worker worker;
	struct gate gate = {.job.run = pass_gate};
	struct counted jobs[2];
	struct hapax_error err;
	int sum = 0;

	(void)state;
	hx_event_init(&gate.entered);
	hx_event_init(&gate.opened);
	hx_worker_init(&worker, "test");
	assert_int_equal(hx_worker_post(&worker, &gate.job, NULL), HAPAX_OK);
	hx_event_wait(&gate.entered);
	for (int i = 0; i < 2; i++) {
		jobs[i] = (struct counted){.job.run = count, .sum = &sum};
		assert_int_equal(hx_worker_post(&worker, &jobs[i].job, NULL), HAPAX_OK);
	}
	assert_int_equal(hx_worker_queued(&worker), 2);
	assert_false(hx_worker_is_stopped(&worker));
	assert_ptr_equal(hx_worker_stop(&worker), &jobs[0].job);
	assert_true(hx_worker_is_stopped(&worker));
	assert_ptr_equal(jobs[0].job.next, &jobs[1].job);
	assert_null(jobs[1].job.next);
	assert_int_equal(hx_worker_queued(&worker), 0);
	assert_null(hx_worker_stop(&worker));
	assert_int_equal(hx_worker_post(&worker, &jobs[0].job, &err), HAPAX_ERR_LIMIT);
	assert_string_equal(err.message, "test has stopped");
	/* One that runs is waited for, up to a deadline. */
	assert_false(hx_worker_join(&worker, hx_clock_mono_ns()));
	hx_event_set(&gate.opened);
	assert_true(hx_worker_join(&worker, INT64_MAX));
	assert_int_equal(sum, 0);
}

static void one_without_a_job_has_no_thread(void **state)
{
	struct hx_worker worker;
	struct hx_worker zeros = {0};

	(void)state;
	hx_worker_init(&worker, "test");
	assert_false(worker.has_thread);
	assert_null(hx_worker_stop(&worker));
	assert_true(hx_worker_join(&worker, 0));
	assert_null(hx_worker_stop(&zeros));
	assert_true(hx_worker_join(&zeros, 0));
}

struct poster {
	struct hx_thread thread;
	struct counted *jobs;
};

static void post_all(void *arg)
{
	struct poster *poster = arg;

	for (int i = 0; i < JOBS; i++)
		assert_int_equal(
			hx_worker_post(poster->jobs[i].worker, &poster->jobs[i].job, NULL),
			HAPAX_OK);
}

static void many_threads_may_post(void **state)
{
	static struct counted jobs[POSTERS][JOBS];
	struct poster posters[POSTERS];
	struct hx_worker worker;
	struct hx_event seen[POSTERS];
	int sum = 0;

	(void)state;
	hx_worker_init(&worker, "test");
	for (int p = 0; p < POSTERS; p++) {
		hx_event_init(&seen[p]);
		for (int i = 0; i < JOBS; i++)
			jobs[p][i] = (struct counted){
				.job.run = count,
				.worker = &worker,
				.sum = &sum,
				.seen = i == JOBS - 1 ? &seen[p] : NULL};
		posters[p].jobs = jobs[p];
		assert_int_equal(
			hx_thread_start(&posters[p].thread, post_all, &posters[p], "test", NULL),
			HAPAX_OK);
	}
	for (int p = 0; p < POSTERS; p++) {
		hx_thread_join(&posters[p].thread);
		hx_event_wait(&seen[p]);
	}
	assert_null(hx_worker_stop(&worker));
	assert_true(hx_worker_join(&worker, INT64_MAX));
	assert_int_equal(sum, POSTERS * JOBS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_run_in_order),
		cmocka_unit_test(a_job_may_post_itself),
		cmocka_unit_test(stop_gives_back_what_waits),
		cmocka_unit_test(one_without_a_job_has_no_thread),
		cmocka_unit_test(many_threads_may_post),
	};

	return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
