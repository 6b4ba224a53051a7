/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_processor_stress.c - real threads, real time, short leases: what the simulation
 * cannot see. Run under ThreadSanitizer by `make tsan`.
 *
 * Whatever lapses and is taken over: each key has one success (I1), and everybody who
 * gets a result gets that one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <hapax/hapax.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/thread.h"
#include "support/crowd.h"
#include "support/scale.h"
#include "support/temp_dir.h"

enum { THREADS = 8, KEYS = 64 };

struct stress {
	struct hapax_store *store;
	struct hapax_processor *processors[2]; /* as two processes would have */
	uint64_t round;
	int64_t lease_ms;
	_Atomic unsigned successes[KEYS];
	_Atomic uint64_t token[KEYS]; /* of the success */
	_Atomic unsigned wrong;
	_Atomic unsigned runs;
	_Atomic unsigned replays;
};

struct job {
	struct stress *stress;
	struct hx_prng *prng;
};

static enum hapax_run_outcome handle(struct hapax_work *work, void *context)
{
	struct job *job = context;
	uint64_t yields = hx_prng_below(job->prng, 200);
	char text[32];
	int size;

	atomic_fetch_add(&job->stress->runs, 1);
	for (; yields > 0 && !hapax_work_is_fenced(work); yields--)
		hx_thread_yield();
	if (hx_prng_below(job->prng, 10) < 4)
		return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, "try again");
	size = snprintf(text, sizeof(text), "%llu", (unsigned long long)work->token);
	if (hapax_work_write(work, text, (size_t)size) != HAPAX_OK)
		abort();
	return HAPAX_RUN_OK;
}

static void judge(
	struct stress *stress, size_t key, enum hapax_status status,
	const struct hapax_answer *answer)
{
	uint64_t seen = 0;
	char text[32];

	snprintf(
		text, sizeof(text), "%.*s", (int)answer->result.body.size,
		(const char *)answer->result.body.data);
	seen = strtoull(text, NULL, 10);
	if (status == HAPAX_OK && answer->outcome == HAPAX_OUTCOME_ACQUIRED) {
		if (atomic_fetch_add(&stress->successes[key], 1) != 0 || seen != answer->token)
			atomic_fetch_add(&stress->wrong, 1);
		atomic_store(&stress->token[key], answer->token);
	} else if (status == HAPAX_OK && answer->outcome == HAPAX_OUTCOME_REPLAY) {
		atomic_fetch_add(&stress->replays, 1);
		if (seen == 0 || seen != answer->original_token || answer->token != 0)
			atomic_fetch_add(&stress->wrong, 1);
	} else if (
		status != HAPAX_ERR_HANDLER && status != HAPAX_ERR_FENCED &&
		answer->outcome != HAPAX_OUTCOME_IN_PROGRESS) {
		atomic_fetch_add(&stress->wrong, 1);
	}
}

static void call_all_keys(size_t index, void *context)
{
	struct hapax_run_options options = HAPAX_RUN_OPTIONS_INIT;
	struct hapax_buf *buf = hapax_buf_new(1024);
	struct stress *stress = context;
	struct hx_prng prng;
	struct job job = {stress, &prng};

	hx_prng_seed(&prng, stress->round * THREADS + index);
	options.lease_ms = stress->lease_ms;
	options.ttl_ms = HAPAX_TTL_FOREVER;
	for (size_t i = 0; i < (size_t)4 * KEYS; i++) {
		struct hapax_request request = HAPAX_REQUEST_INIT;
		struct hapax_answer answer = HAPAX_ANSWER_INIT;
		/* All threads near the same key, so that they meet. */
		size_t key = (i / 4 + hx_prng_below(&prng, 2)) % KEYS;
		enum hapax_status status;
		char name[32];

		snprintf(name, sizeof(name), "%llu-%zu", (unsigned long long)stress->round, key);
		options.wait_ms = hx_prng_below(&prng, 3) == 0 ? 0 : 600000;
		request.key = hapax_bytes_from_text(name);
		request.options = &options;
		status = hapax_process(
			stress->processors[index % 2], &request, handle, &job, &answer, buf, NULL);
		judge(stress, key, status, &answer);
	}
	hapax_buf_free(buf);
}

static void run_rounds(const char *url, int64_t lease_ms, uint64_t rounds)
{
	struct stress stress = {.lease_ms = lease_ms};
	struct hapax_processor_options options = HAPAX_PROCESSOR_OPTIONS_INIT;
	double begun = scale_seconds();
	struct crowd crowd;
	char what[80];

	options.poll_ms = 2;
	assert_int_equal(hapax_store_open(url, NULL, &stress.store, NULL), HAPAX_OK);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(
			hapax_processor_new(stress.store, &options, &stress.processors[i], NULL),
			HAPAX_OK);
	crowd_init(&crowd, THREADS);
	for (stress.round = 1; stress.round <= rounds; stress.round++) {
		for (size_t i = 0; i < KEYS; i++)
			atomic_store(&stress.successes[i], 0);
		crowd_run(&crowd, call_all_keys, &stress);
	}
	crowd_done(&crowd);
	for (size_t i = 0; i < 2; i++) {
		struct hapax_processor_stats stats = HAPAX_PROCESSOR_STATS_INIT;

		hapax_processor_stats(stress.processors[i], &stats);
		printf("# attached %llu woken %llu polled %llu renewed %llu lapsed %llu fenced %llu\n",
		       (unsigned long long)stats.attached, (unsigned long long)stats.woken,
		       (unsigned long long)stats.polled, (unsigned long long)stats.renewed,
		       (unsigned long long)stats.lapsed, (unsigned long long)stats.fenced);
		hapax_processor_free(stress.processors[i]);
	}
	hapax_store_close(stress.store);
	snprintf(
		what, sizeof(what), "requests of 8 threads, lease %lld ms, %.8s",
		(long long)lease_ms, url);
	scale_report(what, rounds * THREADS * 4 * KEYS, scale_seconds() - begun, stress.wrong == 0);
	assert_int_equal(stress.wrong, 0);
	assert_true(stress.runs > 0 && stress.replays > 0);
}

/*
 * A loop as a server has it: steps are told by the thread that ticks, requests come
 * from others, and the work is done by others.
 */
struct loop_call {
	struct loop *loop;
	struct hapax_run *run;
	unsigned runs;
	unsigned ends;
	enum hapax_outcome outcome;
	struct loop_call *next;
};

struct loop {
	struct hx_mutex mutex;
	struct hx_cond changed;
	struct hapax_processor *processor;
	bool is_due;
	struct loop_call *work; /* told to run */
	size_t open;
};

enum { LOOP_CALLS = 400, LOOP_KEYS = 40 };

static void wake_loop(void *context)
{
	struct loop *loop = context;

	hx_mutex_lock(&loop->mutex);
	loop->is_due = true;
	hx_cond_broadcast(&loop->changed);
	hx_mutex_unlock(&loop->mutex);
}

static void told(
	struct hapax_run *run, enum hapax_step step, const struct hapax_answer *answer,
	void *context)
{
	struct loop_call *call = context;
	struct loop *loop = call->loop;

	hx_mutex_lock(&loop->mutex);
	if (step == HAPAX_STEP_RUN) {
		call->run = run;
		call->runs++;
		call->next = loop->work;
		loop->work = call;
	} else if (step == HAPAX_STEP_END) {
		call->ends++;
		call->outcome = answer->outcome;
		loop->open--;
	}
	hx_cond_broadcast(&loop->changed);
	hx_mutex_unlock(&loop->mutex);
}

static void tick_loop(struct loop *loop)
{
	hx_mutex_lock(&loop->mutex);
	while (loop->open > 0) {
		int64_t now_ms = hapax_clock_system()->boot_ms(hapax_clock_system()->context);
		int64_t next_ms;

		loop->is_due = false;
		hx_mutex_unlock(&loop->mutex);
		next_ms = hapax_processor_tick(loop->processor);
		hx_mutex_lock(&loop->mutex);
		if (next_ms > now_ms && !loop->is_due && loop->open > 0)
			(void)hx_cond_wait_until_ns(
				&loop->changed, &loop->mutex, hx_clock_mono_ns() + 1000000);
	}
	hx_mutex_unlock(&loop->mutex);
}

/* Do what is told to run until all have ended. Every third fails. */
static void work_loop(struct loop *loop)
{
	unsigned count = 0;

	hx_mutex_lock(&loop->mutex);
	while (loop->open > 0) {
		struct loop_call *call = loop->work;

		if (call == NULL) {
			hx_cond_wait(&loop->changed, &loop->mutex);
			continue;
		}
		loop->work = call->next;
		hx_mutex_unlock(&loop->mutex);
		if (hapax_run_finish(
			    call->run, ++count % 3 == 0 ? HAPAX_RUN_TRANSIENT : HAPAX_RUN_OK, NULL,
			    (struct hapax_bytes){NULL, 0}, NULL) != HAPAX_OK)
			abort();
		hx_mutex_lock(&loop->mutex);
	}
	hx_mutex_unlock(&loop->mutex);
}

static struct loop_call loop_calls[LOOP_CALLS];

static void begin_some(struct loop *loop, size_t first)
{
	struct hapax_run_options options = HAPAX_RUN_OPTIONS_INIT;

	options.wait_ms = 600000;
	for (size_t i = first; i < LOOP_CALLS; i += 2) {
		struct hapax_request request = HAPAX_REQUEST_INIT;
		char key[16];

		snprintf(key, sizeof(key), "%zu", i % LOOP_KEYS);
		request.key = hapax_bytes_from_text(key);
		request.options = &options;
		request.step = told;
		request.context = &loop_calls[i];
		if (hapax_processor_begin(loop->processor, &request, 1, NULL) != HAPAX_OK)
			abort();
	}
}

static void play_part(size_t index, void *context)
{
	struct loop *loop = context;

	if (index == 0) {
		tick_loop(loop);
		return;
	}
	if (index <= 2)
		begin_some(loop, index - 1);
	work_loop(loop);
}

static void a_loop_and_threads_around_it(void **state)
{
	struct hapax_processor_options options = HAPAX_PROCESSOR_OPTIONS_INIT;
	uint64_t rounds = scale_count(500, 10);
	struct crowd crowd;

	(void)state;
	crowd_init(&crowd, 4);
	for (uint64_t round = 0; round < rounds; round++) {
		struct hapax_store *store = NULL;
		struct loop loop = {.open = LOOP_CALLS};
		unsigned successes[LOOP_KEYS] = {0};

		hx_mutex_init(&loop.mutex);
		hx_cond_init(&loop.changed);
		memset(loop_calls, 0, sizeof(loop_calls));
		for (size_t i = 0; i < LOOP_CALLS; i++)
			loop_calls[i].loop = &loop;
		options.flags = HAPAX_PROCESSOR_STEPS_IN_TICK;
		options.wake = wake_loop;
		options.wake_context = &loop;
		assert_int_equal(hapax_store_open("memory:", NULL, &store, NULL), HAPAX_OK);
		assert_int_equal(
			hapax_processor_new(store, &options, &loop.processor, NULL), HAPAX_OK);
		crowd_run(&crowd, play_part, &loop);
		for (size_t i = 0; i < LOOP_CALLS; i++) {
			assert_int_equal(loop_calls[i].ends, 1);
			assert_true(loop_calls[i].runs <= 1);
			/* A caller that does not run gets the result, for one succeeds. */
			if (loop_calls[i].runs == 0)
				assert_int_equal(loop_calls[i].outcome, HAPAX_OUTCOME_REPLAY);
			successes[i % LOOP_KEYS] += loop_calls[i].outcome == HAPAX_OUTCOME_REPLAY;
		}
		for (size_t i = 0; i < LOOP_KEYS; i++)
			assert_true(successes[i] < LOOP_CALLS / LOOP_KEYS);
		hapax_processor_free(loop.processor);
		hapax_store_close(store);
		hx_cond_done(&loop.changed);
		hx_mutex_done(&loop.mutex);
	}
	crowd_done(&crowd);
}

static void long_leases_in_memory(void **state)
{
	(void)state;
	run_rounds("memory:", 600000, scale_count(200, 4));
}

static void leases_that_lapse_in_memory(void **state)
{
	(void)state;
	run_rounds("memory:", 1, scale_count(200, 4));
}

static void run_in(const char *scheme, uint64_t rounds)
{
	struct temp_dir dir;
	char url[256];

	temp_dir_init(&dir);
	snprintf(url, sizeof(url), "%s%s/store", scheme, dir.path);
	run_rounds(url, 5, rounds);
	temp_dir_done(&dir);
}

static void leases_that_lapse_on_a_log(void **state)
{
	(void)state;
	run_in("file:", scale_count(10, 1));
}

/* The function is there without the store, too. */
__attribute__((unused)) static void leases_that_lapse_in_a_database(void **state)
{
	(void)state;
	run_in("sqlite:", scale_count(10, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_loop_and_threads_around_it),
		cmocka_unit_test(long_leases_in_memory),
		cmocka_unit_test(leases_that_lapse_in_memory),
		cmocka_unit_test(leases_that_lapse_on_a_log),
#if HX_HAVE_SQLITE
		cmocka_unit_test(leases_that_lapse_in_a_database),
#endif
	};

	return cmocka_run_group_tests_name("processor_stress", tests, NULL, NULL);
}
