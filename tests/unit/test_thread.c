/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define MS_NS INT64_C(1000000)

enum { THREADS = 4, ROUNDS = 50000 };

static void start_all(struct hx_thread threads[THREADS], hx_thread_fn *fn, void *arg)
{
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(hx_thread_start(&threads[i], fn, arg, "test", NULL), HAPAX_OK);
}

static void join_all(struct hx_thread threads[THREADS])
{
	for (int i = 0; i < THREADS; i++)
		hx_thread_join(&threads[i]);
}

struct shared {
	struct hx_lock lock;
	struct hx_mutex mutex;
	struct hx_cond cond;
	struct hx_event event;
	struct hx_once once;
	uint64_t count; /* not atomic: TSan tells when the lock does not hold */
	int payload;
	_Atomic int seen;
};

static void count_under_lock(void *arg)
{
	struct shared *shared = arg;

	for (int i = 0; i < ROUNDS; i++) {
		hx_lock_acquire(&shared->lock);
		shared->count++;
		hx_lock_release(&shared->lock);
	}
}

static void lock_excludes(void **state)
{
	struct hx_thread threads[THREADS];
	struct shared shared = {.count = 0};

	(void)state;
	start_all(threads, count_under_lock, &shared);
	join_all(threads);
	assert_int_equal(shared.count, (uint64_t)THREADS * ROUNDS);
	assert_int_equal(atomic_load(&shared.lock.state), HX_LOCK_FREE);
}

/* Holders give the processor away inside, so that the others run out of spins and sleep. */
static void count_slowly_under_lock(void *arg)
{
	struct shared *shared = arg;

	for (int i = 0; i < 2000; i++) {
		hx_lock_acquire(&shared->lock);
		shared->count++;
		for (int j = 0; j < 5; j++)
			hx_thread_yield();
		hx_lock_release(&shared->lock);
	}
}

static void lock_sleeps_and_wakes(void **state)
{
	struct hx_thread threads[THREADS];
	struct shared shared = {.count = 0};

	(void)state;
	start_all(threads, count_slowly_under_lock, &shared);
	join_all(threads);
	assert_int_equal(shared.count, (uint64_t)THREADS * 2000);
	assert_int_equal(atomic_load(&shared.lock.state), HX_LOCK_FREE);
}

static void take_lock_and_tell(void *arg)
{
	struct shared *shared = arg;

	hx_lock_acquire(&shared->lock);
	atomic_store(&shared->seen, 1);
	hx_lock_release(&shared->lock);
}

static void a_held_lock_lets_nobody_in(void **state)
{
	struct shared shared = {.count = 0};
	struct hx_thread thread;

	(void)state;
	hx_lock_init(&shared.lock);
	assert_true(hx_lock_try(&shared.lock));
	assert_false(hx_lock_try(&shared.lock));
	assert_int_equal(
		hx_thread_start(&thread, take_lock_and_tell, &shared, "waiter", NULL), HAPAX_OK);
	/* Until it sleeps, which is the state that the release must notice. */
	while (atomic_load(&shared.lock.state) != HX_LOCK_CONTENDED)
		hx_thread_yield();
	assert_int_equal(atomic_load(&shared.seen), 0);
	hx_lock_release(&shared.lock);
	hx_thread_join(&thread);
	assert_int_equal(atomic_load(&shared.seen), 1);
	assert_true(hx_lock_try(&shared.lock));
	hx_lock_release(&shared.lock);
}

static void count_under_mutex(void *arg)
{
	struct shared *shared = arg;

	for (int i = 0; i < ROUNDS; i++) {
		hx_mutex_lock(&shared->mutex);
		shared->count++;
		hx_mutex_unlock(&shared->mutex);
	}
}

static void mutex_excludes(void **state)
{
	static struct hx_mutex at_start = HX_MUTEX_INIT;
	struct hx_thread threads[THREADS];
	struct shared shared = {.count = 0};

	(void)state;
	hx_mutex_lock(&at_start);
	hx_mutex_unlock(&at_start);
	hx_mutex_init(&shared.mutex);
	start_all(threads, count_under_mutex, &shared);
	join_all(threads);
	assert_int_equal(shared.count, (uint64_t)THREADS * ROUNDS);
	hx_mutex_done(&shared.mutex);
}

static void wait_for_count(void *arg)
{
	struct shared *shared = arg;

	hx_mutex_lock(&shared->mutex);
	while (shared->count == 0)
		hx_cond_wait(&shared->cond, &shared->mutex);
	atomic_fetch_add(&shared->seen, 1);
	hx_mutex_unlock(&shared->mutex);
}

static void cond_broadcast_wakes_all(void **state)
{
	struct hx_thread threads[THREADS];
	struct shared shared = {.count = 0};

	(void)state;
	hx_mutex_init(&shared.mutex);
	hx_cond_init(&shared.cond);
	start_all(threads, wait_for_count, &shared);
	hx_mutex_lock(&shared.mutex);
	shared.count = 1;
	hx_cond_broadcast(&shared.cond);
	hx_mutex_unlock(&shared.mutex);
	join_all(threads);
	assert_int_equal(atomic_load(&shared.seen), THREADS);
	hx_cond_done(&shared.cond);
	hx_mutex_done(&shared.mutex);
}

static void cond_signal_wakes_one(void **state)
{
	struct hx_thread thread;
	struct shared shared = {.count = 0};

	(void)state;
	hx_mutex_init(&shared.mutex);
	hx_cond_init(&shared.cond);
	assert_int_equal(hx_thread_start(&thread, wait_for_count, &shared, "one", NULL), HAPAX_OK);
	hx_mutex_lock(&shared.mutex);
	shared.count = 1;
	hx_cond_signal(&shared.cond);
	hx_mutex_unlock(&shared.mutex);
	hx_thread_join(&thread);
	assert_int_equal(atomic_load(&shared.seen), 1);
	hx_cond_done(&shared.cond);
	hx_mutex_done(&shared.mutex);
}

static void cond_wait_ends_at_the_deadline(void **state)
{
	struct hx_mutex mutex;
	struct hx_cond cond;
	int64_t deadline_ns = hx_clock_mono_ns() + 20 * MS_NS;

	(void)state;
	hx_mutex_init(&mutex);
	hx_cond_init(&cond);
	hx_mutex_lock(&mutex);
	while (hx_cond_wait_until_ns(&cond, &mutex, deadline_ns))
		continue;
	assert_true(hx_clock_mono_ns() >= deadline_ns);
	/* Deadlines of the past, and before all time, are over at once. */
	assert_false(hx_cond_wait_until_ns(&cond, &mutex, 0));
	assert_false(hx_cond_wait_until_ns(&cond, &mutex, INT64_MIN));
	hx_mutex_unlock(&mutex);
	hx_cond_done(&cond);
	hx_mutex_done(&mutex);
}

static void wait_for_event(void *arg)
{
	struct shared *shared = arg;

	hx_event_wait(&shared->event);
	if (shared->payload == 42)
		atomic_fetch_add(&shared->seen, 1);
}

static void event_wakes_all_and_publishes(void **state)
{
	(void)state;
	for (int round = 0; round < 200; round++) {
		struct hx_thread threads[THREADS];
		struct shared shared = {.payload = 0};

		hx_event_init(&shared.event);
		assert_false(hx_event_is_set(&shared.event));
		start_all(threads, wait_for_event, &shared);
		/* In half of the rounds wait until a thread sleeps. */
		while (round % 2 == 0 && atomic_load(&shared.event.state) != HX_EVENT_AWAITED)
			hx_thread_yield();
		shared.payload = 42;
		hx_event_set(&shared.event);
		join_all(threads);
		assert_int_equal(atomic_load(&shared.seen), THREADS);
		assert_true(hx_event_is_set(&shared.event));
	}
}

static void event_set_before_wait(void **state)
{
	struct hx_event event;

	(void)state;
	hx_event_init(&event);
	hx_event_set(&event);
	hx_event_set(&event);
	hx_event_wait(&event);
	assert_true(hx_event_wait_until_ns(&event, INT64_MIN));
	hx_event_init(&event);
	assert_false(hx_event_is_set(&event));
}

static void event_wait_ends_at_the_deadline(void **state)
{
	struct hx_event event;
	int64_t deadline_ns = hx_clock_mono_ns() + 20 * MS_NS;

	(void)state;
	hx_event_init(&event);
	assert_false(hx_event_wait_until_ns(&event, deadline_ns));
	assert_true(hx_clock_mono_ns() >= deadline_ns);
	assert_false(hx_event_wait_until_ns(&event, 0));
	assert_false(hx_event_wait_until_ns(&event, -1));
	/* A wait that gave up leaves the event usable. */
	hx_event_set(&event);
	assert_true(hx_event_wait_until_ns(&event, hx_clock_mono_ns() + 1000 * MS_NS));
}

static void set_event(void *arg)
{
	hx_event_set(arg);
}

static void the_waiter_may_free_the_event(void **state)
{
	(void)state;
	for (int round = 0; round < 500; round++) {
		struct hx_event *event = malloc(sizeof(*event));
		struct hx_thread thread;

		assert_non_null(event);
		hx_event_init(event);
		assert_int_equal(hx_thread_start(&thread, set_event, event, "set", NULL), HAPAX_OK);
		hx_event_wait(event);
		free(event);
		hx_thread_join(&thread);
	}
}

static void look_at_thread(void *arg)
{
	char *name = arg;
	sigset_t mask;

	(void)pthread_getname_np(pthread_self(), name, 16);
	(void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
	if (!sigismember(&mask, SIGTERM) || !sigismember(&mask, SIGUSR1))
		name[0] = '!';
	if (sigismember(&mask, SIGSEGV))
		name[0] = '?';
}

static void threads_have_names_and_block_signals(void **state)
{
	struct hx_thread thread;
	char name[16];
	sigset_t before, after;

	(void)state;
	(void)pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(
		hx_thread_start(&thread, look_at_thread, name, "hapax-commit", NULL), HAPAX_OK);
	hx_thread_join(&thread);
	assert_string_equal(name, "hapax-commit");
	assert_int_equal(
		hx_thread_start(&thread, look_at_thread, name, "a name that is too long", NULL),
		HAPAX_OK);
	hx_thread_join(&thread);
	assert_string_equal(name, "a name that is ");
	/* The caller's own mask is as it was. */
	(void)pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int signal = 1; signal < 32; signal++)
		assert_int_equal(sigismember(&before, signal), sigismember(&after, signal));
}

static void store_thread_id(void *arg)
{
	uint32_t *id = arg;

	*id = hx_thread_id();
	if (hx_thread_id() != *id)
		*id = 0;
}

static void thread_ids_are_small_and_distinct(void **state)
{
	struct hx_thread thread;
	uint32_t mine = hx_thread_id(), last = mine;

	(void)state;
	assert_true(mine > 0);
	for (int i = 0; i < 10; i++) {
		uint32_t id = 0;

		assert_int_equal(
			hx_thread_start(&thread, store_thread_id, &id, "id", NULL), HAPAX_OK);
		hx_thread_join(&thread);
		assert_int_equal(id, last + 1);
		last = id;
	}
	assert_int_equal(hx_thread_id(), mine);
}

static struct shared once_shared;

static void count_once(void)
{
	once_shared.count++;
}

static void run_once(void *arg)
{
	struct shared *shared = arg;

	hx_once_run(&shared->once, count_once);
	if (once_shared.count == 1)
		atomic_fetch_add(&shared->seen, 1);
}

static void once_is_once(void **state)
{
	struct hx_thread threads[THREADS];
	struct shared shared = {.once = HX_ONCE_INIT};

	(void)state;
	start_all(threads, run_once, &shared);
	join_all(threads);
	assert_int_equal(once_shared.count, 1);
	assert_int_equal(atomic_load(&shared.seen), THREADS);
}

enum { RATCHET_STEPS = 2000 };

struct climb {
	struct hx_ratchet ratchet;
	uint32_t published[RATCHET_STEPS + 1]; /* written before the number is raised */
	_Atomic uint32_t wrong;
};

static void climb(void *arg)
{
	struct climb *shared = arg;

	for (uint32_t step = 1; step <= RATCHET_STEPS; step++) {
		hx_ratchet_wait(&shared->ratchet, UINT32_MAX - 1000 + step);
		if (shared->published[step] != step)
			atomic_fetch_add(&shared->wrong, 1);
	}
}

/* Over the end of 32 bits, too. */
static void ratchet_wakes_all_and_publishes(void **state)
{
	static struct climb shared;
	struct hx_thread threads[THREADS];

	(void)state;
	hx_ratchet_init(&shared.ratchet, UINT32_MAX - 1000);
	assert_true(hx_ratchet_has(&shared.ratchet, UINT32_MAX - 1000));
	assert_true(hx_ratchet_has(&shared.ratchet, UINT32_MAX - 1001));
	assert_false(hx_ratchet_has(&shared.ratchet, UINT32_MAX - 999));
	start_all(threads, climb, &shared);
	for (uint32_t step = 1; step <= RATCHET_STEPS; step++) {
		shared.published[step] = step;
		hx_ratchet_raise(&shared.ratchet, UINT32_MAX - 1000 + step);
		if (step % 16 == 0)
			hx_thread_yield();
	}
	join_all(threads);
	assert_int_equal(atomic_load(&shared.wrong), 0);
	assert_int_equal(atomic_load(&shared.ratchet.sleepers), 0);
	/* Who comes too late does not turn it back. */
	hx_ratchet_raise(&shared.ratchet, UINT32_MAX - 1000 + RATCHET_STEPS / 2);
	assert_int_equal(hx_ratchet_value(&shared.ratchet), UINT32_MAX - 1000 + RATCHET_STEPS);
}

static void cpus_are_those_we_may_use(void **state)
{
	cpu_set_t before, one;
	int cpu = sched_getcpu();

	(void)state;
	assert_true(hx_thread_cpu_count() >= 1);
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(hx_thread_cpu_count(), CPU_COUNT(&before));
	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(hx_thread_cpu_count(), 1);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lock_excludes),
		cmocka_unit_test(lock_sleeps_and_wakes),
		cmocka_unit_test(a_held_lock_lets_nobody_in),
		cmocka_unit_test(mutex_excludes),
		cmocka_unit_test(cond_broadcast_wakes_all),
		cmocka_unit_test(cond_signal_wakes_one),
		cmocka_unit_test(cond_wait_ends_at_the_deadline),
		cmocka_unit_test(event_wakes_all_and_publishes),
		cmocka_unit_test(event_set_before_wait),
		cmocka_unit_test(event_wait_ends_at_the_deadline),
		cmocka_unit_test(the_waiter_may_free_the_event),
		cmocka_unit_test(threads_have_names_and_block_signals),
		cmocka_unit_test(thread_ids_are_small_and_distinct),
		cmocka_unit_test(once_is_once),
		cmocka_unit_test(ratchet_wakes_all_and_publishes),
		cmocka_unit_test(cpus_are_those_we_may_use),
	};

	return cmocka_run_group_tests_name("thread", tests, NULL, NULL);
}
