/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.c - threads, and the sleeping halves of lock and event.
 *
 * hx_lock: in state CONTENDED a thread may sleep, so the holder must wake one. A thread that has
 * slept takes the lock as CONTENDED, because it cannot know whether other threads sleep. The cost
 * is one needless wake at the end of a queue.
 */
#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/time.h"

/* Some microseconds: longer than a critical section, shorter than a sleep. */
enum { SPINS_MAX = 100 };

#if defined(__x86_64__) || defined(__i386__)
static void spin_pause(void)
{
	__builtin_ia32_pause();
}
#elif defined(__aarch64__)
static void spin_pause(void)
{
	__asm__ volatile("yield");
}
#else
static void spin_pause(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}
#endif

static struct timespec timespec_from_ns(int64_t ns)
{
	if (ns < 0)
		ns = 0;
	return (struct timespec){.tv_sec = ns / HX_NS_PER_S, .tv_nsec = ns % HX_NS_PER_S};
}

/* Sleep while *word is expected. May return spuriously. False: the deadline passed. */
static bool futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns)
{
	struct timespec deadline = timespec_from_ns(deadline_ns);
	const struct timespec *until = deadline_ns == INT64_MAX ? NULL : &deadline;
	int wait = FUTEX_WAIT_BITSET_PRIVATE; /* unlike plain WAIT, takes an absolute time */
	long failed;

	failed = syscall(SYS_futex, word, wait, expected, until, NULL, FUTEX_BITSET_MATCH_ANY);
	assert(!failed || errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT);
	return !failed || errno != ETIMEDOUT;
}

/* The word may be gone by now, so a failure means nothing. */
static void futex_wake(_Atomic uint32_t *word, int count)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count);
}

void hx_mutex_init(struct hx_mutex *mutex)
{
	int failed = pthread_mutex_init(&mutex->pthread, NULL);

	assert(!failed);
}

void hx_mutex_done(struct hx_mutex *mutex)
{
	int failed = pthread_mutex_destroy(&mutex->pthread);

	assert(!failed);
}

void hx_mutex_lock(struct hx_mutex *mutex)
{
	int failed = pthread_mutex_lock(&mutex->pthread);

	assert(!failed);
}

void hx_mutex_unlock(struct hx_mutex *mutex)
{
	int failed = pthread_mutex_unlock(&mutex->pthread);

	assert(!failed);
}

void hx_cond_init(struct hx_cond *cond)
{
	pthread_condattr_t attributes;
	int failed;

	failed = pthread_condattr_init(&attributes);
	assert(!failed);
	/* The default, the wall clock, would turn a clock step into a wait of hours. */
	failed = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	assert(!failed);
	failed = pthread_cond_init(&cond->pthread, &attributes);
	assert(!failed);
	(void)pthread_condattr_destroy(&attributes);
}

void hx_cond_done(struct hx_cond *cond)
{
	int failed = pthread_cond_destroy(&cond->pthread);

	assert(!failed);
}

void hx_cond_wait(struct hx_cond *cond, struct hx_mutex *mutex)
{
	int failed = pthread_cond_wait(&cond->pthread, &mutex->pthread);

	assert(!failed);
}

bool hx_cond_wait_until_ns(struct hx_cond *cond, struct hx_mutex *mutex, int64_t deadline_ns)
{
	struct timespec deadline = timespec_from_ns(deadline_ns);
	int failed = pthread_cond_timedwait(&cond->pthread, &mutex->pthread, &deadline);

	assert(!failed || failed == ETIMEDOUT);
	return !failed;
}

void hx_cond_signal(struct hx_cond *cond)
{
	int failed = pthread_cond_signal(&cond->pthread);

	assert(!failed);
}

void hx_cond_broadcast(struct hx_cond *cond)
{
	int failed = pthread_cond_broadcast(&cond->pthread);

	assert(!failed);
}

void hx_once_run(struct hx_once *once, void (*fn)(void))
{
	int failed = pthread_once(&once->pthread, fn);

	assert(!failed);
}

static void *thread_main(void *context)
{
	struct hx_thread *thread = context;

	(void)pthread_setname_np(pthread_self(), thread->name);
	thread->fn(thread->arg);
	return NULL;
}

/* All except those that a fault raises on the thread itself: a crash handler must see them. */
static void block_signals(sigset_t *before)
{
	static const int faults[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
	sigset_t blocked;
	int failed;

	(void)sigfillset(&blocked);
	for (size_t i = 0; i < HX_COUNT(faults); i++)
		(void)sigdelset(&blocked, faults[i]);
	failed = pthread_sigmask(SIG_SETMASK, &blocked, before);
	assert(!failed);
}

enum hapax_status hx_thread_start(
	struct hx_thread *thread, hx_thread_fn *fn, void *arg, const char *name,
	struct hapax_error *err)
{
	sigset_t before;
	int failed;

	*thread = (struct hx_thread){.fn = fn, .arg = arg};
	(void)snprintf(thread->name, sizeof(thread->name), "%s", name);

	/* A thread inherits the mask; set later, a signal could come in between. */
	block_signals(&before);
	failed = pthread_create(&thread->pthread, NULL, thread_main, thread);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed)
		return hx_error_set(
			err, hx_error_status_of(failed), failed, "could not start thread '%s'",
			name);
	return HAPAX_OK;
}

void hx_thread_join(struct hx_thread *thread)
{
	int failed = pthread_join(thread->pthread, NULL);

	assert(!failed);
}

uint32_t hx_thread_id(void)
{
	static _Atomic uint32_t id_last;
	static _Thread_local uint32_t id;

	if (id == 0)
		id = atomic_fetch_add_explicit(&id_last, 1, memory_order_relaxed) + 1;
	return id;
}

void hx_thread_yield(void)
{
	(void)sched_yield();
}

unsigned hx_thread_cpu_count(void)
{
	cpu_set_t allowed;

	/* More processors than the set has room for: use the number of all processors instead. */
	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
		long online = sysconf(_SC_NPROCESSORS_ONLN);

		return online > 0 ? (unsigned)online : 1;
	}
	return (unsigned)CPU_COUNT(&allowed);
}

void hx_lock_acquire_slow(struct hx_lock *lock)
{
	for (int i = 0; i < SPINS_MAX; i++) {
		/* Look before trying: a failed exchange still takes the line from the holder. */
		if (atomic_load_explicit(&lock->state, memory_order_relaxed) == HX_LOCK_FREE &&
		    hx_lock_try(lock))
			return;
		spin_pause();
	}
	while (atomic_exchange_explicit(&lock->state, HX_LOCK_CONTENDED, memory_order_acquire) !=
	       HX_LOCK_FREE)
		(void)futex_wait(&lock->state, HX_LOCK_CONTENDED, INT64_MAX);
}

void hx_lock_wake(struct hx_lock *lock)
{
	futex_wake(&lock->state, 1);
}

void hx_event_wake(struct hx_event *event)
{
	futex_wake(&event->state, INT_MAX);
}

bool hx_event_wait_slow(struct hx_event *event, int64_t deadline_ns)
{
	for (;;) {
		uint32_t state = HX_EVENT_UNSET;

		(void)atomic_compare_exchange_strong_explicit(
			&event->state, &state, HX_EVENT_AWAITED, memory_order_acquire,
			memory_order_acquire);
		if (state == HX_EVENT_SET)
			return true;
		if (!futex_wait(&event->state, HX_EVENT_AWAITED, deadline_ns))
			return hx_event_is_set(event);
	}
}

void hx_ratchet_wake(struct hx_ratchet *ratchet)
{
	futex_wake(&ratchet->value, INT_MAX);
}

void hx_ratchet_wait_slow(struct hx_ratchet *ratchet, uint32_t value)
{
	/* Before the value is read: a thread that raises it after that sees a sleeper. */
	atomic_fetch_add_explicit(&ratchet->sleepers, 1, memory_order_seq_cst);
	for (;;) {
		uint32_t seen = atomic_load_explicit(&ratchet->value, memory_order_seq_cst);

		if ((int32_t)(seen - value) >= 0)
			break;
		(void)futex_wait(&ratchet->value, seen, INT64_MAX);
	}
	atomic_fetch_sub_explicit(&ratchet->sleepers, 1, memory_order_relaxed);
}
