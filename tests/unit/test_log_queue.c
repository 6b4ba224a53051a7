/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_log_queue.c - who leads: every request ends once, and completions run on the queue's
 * own thread, never on that of a caller who waits for something else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/thread.h"
#include "store/log/write/queue.h"
#include "support/scale.h"

enum { WAITERS = 3, SUBMITTERS = 2, WINDOW = 8 };

struct scene {
	struct hx_log_queue queue;
	_Atomic uint64_t lists;
	_Atomic uint64_t grown;          /* requests that came while one was worked off */
	_Atomic uint64_t led_by_waiters; /* lists without a completion */
	_Atomic uint64_t tasks;
	_Atomic uint64_t completed;
	_Atomic uint64_t on_wrong_thread;
	_Atomic uint64_t submitting; /* threads that still submit */
	uint64_t count;              /* of each submitter */
};

static _Thread_local bool is_waiter;

/* A completion of a submit; context counts what is in the air. */
static void complete(struct hapax_op *ops, size_t count, void *context)
{
	_Atomic uint64_t *in_the_air = context;

	(void)ops;
	(void)count;
	atomic_fetch_sub(in_the_air, 1);
}

static void lead(void *context, struct hx_log_request *requests, size_t count)
{
	struct scene *scene = context;
	size_t first = count;

	scene->lists++;
	scene->led_by_waiters += is_waiter;
	while (hx_log_queue_grow(&scene->queue, &requests, &count))
		scene->grown += count - first;
	for (size_t i = 0; i < count; i++) {
		if (requests[i].completion.fn == NULL) {
			scene->tasks++;
			continue;
		}
		scene->completed++;
		scene->on_wrong_thread += is_waiter;
		requests[i].completion.fn(NULL, 0, requests[i].completion.context);
	}
}

static void run_waiter(void *arg)
{
	struct scene *scene = arg;

	is_waiter = true;
	while (scene->submitting != 0) {
		struct hx_log_request request = {.count = 0};

		assert_true(hx_log_queue_run(&scene->queue, &request));
	}
}

static void run_submitter(void *arg)
{
	struct scene *scene = arg;
	_Atomic uint64_t in_the_air = 0;

	for (uint64_t i = 0; i < scene->count; i++) {
		struct hx_log_request request = {
			.completion = {complete, &in_the_air},
		};

		while (in_the_air >= WINDOW)
			hx_thread_yield();
		in_the_air++;
		assert_true(hx_log_queue_submit(&scene->queue, &request));
		/* Let those who wait find the queue empty now and then. */
		if (i % 5 == 0)
			while (in_the_air != 0)
				hx_thread_yield();
	}
	while (in_the_air != 0)
		hx_thread_yield();
	scene->submitting--;
}

static void completions_run_on_the_thread(void **state)
{
	struct hx_thread threads[WAITERS + SUBMITTERS];
	struct scene scene = {.submitting = SUBMITTERS, .count = scale_count(1000000, 40000)};

	(void)state;
	hx_log_queue_init(&scene.queue, lead, &scene);
	assert_int_equal(hx_log_queue_start(&scene.queue, NULL), HAPAX_OK);
	for (unsigned i = 0; i < WAITERS + SUBMITTERS; i++)
		assert_int_equal(
			hx_thread_start(
				&threads[i], i < WAITERS ? run_waiter : run_submitter, &scene,
				"crowd", NULL),
			HAPAX_OK);
	for (unsigned i = 0; i < WAITERS + SUBMITTERS; i++)
		hx_thread_join(&threads[i]);
	hx_log_queue_stop(&scene.queue);
	hx_log_queue_done(&scene.queue);
	assert_int_equal(scene.completed, SUBMITTERS * scene.count);
	assert_int_equal(scene.on_wrong_thread, 0);
	/* It was put to the test: those who wait have led, too. */
	assert_true(scene.tasks > 0);
	assert_true(scene.led_by_waiters > 0);
	assert_true(scene.grown > 0);
}

/* A single caller needs no other thread: it leads each list itself. */
static void a_lone_caller_leads(void **state)
{
	struct scene scene = {.count = 100};

	(void)state;
	is_waiter = true;
	hx_log_queue_init(&scene.queue, lead, &scene);
	assert_int_equal(hx_log_queue_start(&scene.queue, NULL), HAPAX_OK);
	for (uint64_t i = 0; i < scene.count; i++) {
		struct hx_log_request request = {.count = 0};

		assert_true(hx_log_queue_run(&scene.queue, &request));
	}
	hx_log_queue_stop(&scene.queue);
	hx_log_queue_done(&scene.queue);
	assert_int_equal(scene.lists, scene.count);
	assert_int_equal(scene.led_by_waiters, scene.count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(completions_run_on_the_thread),
		cmocka_unit_test(a_lone_caller_leads),
	};

	return cmocka_run_group_tests_name("log_queue", tests, NULL, NULL);
}
