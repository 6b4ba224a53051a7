/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.h - the thread seam: threads, and five ways to wait for one.
 *
 * struct hx_mutex and struct hx_cond are for state that is held during slow operations. struct
 * hx_lock is four bytes for critical sections of a few dozen instructions: spinning pays there, and
 * a sleep is the exception. struct hx_event happens once; waiting for a past event costs no system
 * call. struct hx_ratchet is a number that rises; one call wakes all its waiters.
 *
 * A struct of zeros is an unlocked hx_lock and an unset hx_event. None of these is
 * recursive. Deadlines are hx_clock_mono_ns() values.
 *
 * Fork: a child must not use an object that another thread held.
 */
#ifndef HX_THREAD_H
#define HX_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hapax/error.h>

struct hx_mutex {
	pthread_mutex_t pthread;
};

#define HX_MUTEX_INIT                     \
	{                                 \
		PTHREAD_MUTEX_INITIALIZER \
	}

void hx_mutex_init(struct hx_mutex *mutex);
void hx_mutex_done(struct hx_mutex *mutex);
void hx_mutex_lock(struct hx_mutex *mutex);
void hx_mutex_unlock(struct hx_mutex *mutex);

struct hx_cond {
	pthread_cond_t pthread;
};

void hx_cond_init(struct hx_cond *cond);
void hx_cond_done(struct hx_cond *cond);

/* Locks: mutex held. May return spuriously: check your condition in a loop. */
void hx_cond_wait(struct hx_cond *cond, struct hx_mutex *mutex);

/* As above; false when deadline_ns passed. */
bool hx_cond_wait_until_ns(struct hx_cond *cond, struct hx_mutex *mutex, int64_t deadline_ns);

void hx_cond_signal(struct hx_cond *cond);
void hx_cond_broadcast(struct hx_cond *cond);

struct hx_once {
	pthread_once_t pthread;
};

#define HX_ONCE_INIT              \
	{                         \
		PTHREAD_ONCE_INIT \
	}

/* Runs fn if no thread has yet; returns when it has run. */
void hx_once_run(struct hx_once *once, void (*fn)(void));

typedef void hx_thread_fn(void *arg);

struct hx_thread {
	pthread_t pthread;
	hx_thread_fn *fn;
	void *arg;
	char name[16];
};

/*
 * Run fn(arg) on a new thread, with every signal blocked so that the host's
 * handlers run on the host's threads. name is cut to 15 bytes. thread must stay
 * where it is until joined. LIMIT or NO_MEMORY: nothing was started.
 */
enum hapax_status hx_thread_start(
	struct hx_thread *thread, hx_thread_fn *fn, void *arg, const char *name,
	struct hapax_error *err);

/* Wait for it to return. Once per started thread. */
void hx_thread_join(struct hx_thread *thread);

/* 1, 2, 3 ... in the order in which threads first ask. Never reused. */
uint32_t hx_thread_id(void);

/* Let another thread run. */
void hx_thread_yield(void);

/* How many processors this process may use; at least 1. */
unsigned hx_thread_cpu_count(void);

enum hx_lock_state {
	HX_LOCK_FREE = 0,
	HX_LOCK_HELD = 1,
	HX_LOCK_CONTENDED = 2, /* held, and a thread may sleep */
};

struct hx_lock {
	_Atomic uint32_t state;
};

/* The slow halves of acquire and release; not for callers. */
void hx_lock_acquire_slow(struct hx_lock *lock);
void hx_lock_wake(struct hx_lock *lock);

static inline void hx_lock_init(struct hx_lock *lock)
{
	atomic_init(&lock->state, HX_LOCK_FREE);
}

/* Take it if it is free now. */
__attribute__((warn_unused_result)) static inline bool hx_lock_try(struct hx_lock *lock)
{
	uint32_t expected = HX_LOCK_FREE;

	return atomic_compare_exchange_strong_explicit(
		&lock->state, &expected, HX_LOCK_HELD, memory_order_acquire, memory_order_relaxed);
}

static inline void hx_lock_acquire(struct hx_lock *lock)
{
	if (__builtin_expect(!hx_lock_try(lock), 0))
		hx_lock_acquire_slow(lock);
}

static inline void hx_lock_release(struct hx_lock *lock)
{
	uint32_t before =
		atomic_exchange_explicit(&lock->state, HX_LOCK_FREE, memory_order_release);

	if (__builtin_expect(before == HX_LOCK_CONTENDED, 0))
		hx_lock_wake(lock);
}

enum hx_event_state {
	HX_EVENT_UNSET = 0,
	HX_EVENT_AWAITED = 1, /* unset, and a thread may sleep */
	HX_EVENT_SET = 2,
};

struct hx_event {
	_Atomic uint32_t state;
};

/* The slow halves of set and wait; not for callers. */
void hx_event_wake(struct hx_event *event);
bool hx_event_wait_slow(struct hx_event *event, int64_t deadline_ns);

/* Also resets a used event, if no thread waits for it or will set it. */
static inline void hx_event_init(struct hx_event *event)
{
	atomic_init(&event->state, HX_EVENT_UNSET);
}

/* Writes before set are visible after wait and after a true is_set. */
static inline bool hx_event_is_set(const struct hx_event *event)
{
	return atomic_load_explicit(&event->state, memory_order_acquire) == HX_EVENT_SET;
}

/*
 * Idempotent. The waiter may free the event as soon as it sees it set: the wake
 * passes its address to the kernel and does not read it.
 */
static inline void hx_event_set(struct hx_event *event)
{
	uint32_t before =
		atomic_exchange_explicit(&event->state, HX_EVENT_SET, memory_order_acq_rel);

	if (before == HX_EVENT_AWAITED)
		hx_event_wake(event);
}

static inline void hx_event_wait(struct hx_event *event)
{
	if (!hx_event_is_set(event))
		(void)hx_event_wait_slow(event, INT64_MAX);
}

/* False when deadline_ns passed and it is still not set. */
static inline bool hx_event_wait_until_ns(struct hx_event *event, int64_t deadline_ns)
{
	return hx_event_is_set(event) || hx_event_wait_slow(event, deadline_ns);
}

struct hx_ratchet {
	_Atomic uint32_t value;
	_Atomic uint32_t sleepers;
};

/* The slow half of wait; not for callers. */
void hx_ratchet_wait_slow(struct hx_ratchet *ratchet, uint32_t value);
void hx_ratchet_wake(struct hx_ratchet *ratchet);

static inline void hx_ratchet_init(struct hx_ratchet *ratchet, uint32_t value)
{
	atomic_init(&ratchet->value, value);
	atomic_init(&ratchet->sleepers, 0);
}

/* Numbers wrap around; two that are compared are less than 2^31 apart. */
static inline bool hx_ratchet_has(const struct hx_ratchet *ratchet, uint32_t value)
{
	return (int32_t)(atomic_load_explicit(&ratchet->value, memory_order_acquire) - value) >= 0;
}

static inline uint32_t hx_ratchet_value(const struct hx_ratchet *ratchet)
{
	return atomic_load_explicit(&ratchet->value, memory_order_relaxed);
}

/* Wait until it reaches value. Writes before raise are visible after wait. */
static inline void hx_ratchet_wait(struct hx_ratchet *ratchet, uint32_t value)
{
	if (!hx_ratchet_has(ratchet, value))
		hx_ratchet_wait_slow(ratchet, value);
}

/* Any thread; never goes back: does nothing if it is already at value or above. */
static inline void hx_ratchet_raise(struct hx_ratchet *ratchet, uint32_t value)
{
	uint32_t before = atomic_load_explicit(&ratchet->value, memory_order_relaxed);

	do {
		if ((int32_t)(before - value) >= 0)
			return;
	} while (!atomic_compare_exchange_weak_explicit(
		&ratchet->value, &before, value, memory_order_seq_cst, memory_order_relaxed));
	if (atomic_load_explicit(&ratchet->sleepers, memory_order_seq_cst) != 0)
		hx_ratchet_wake(ratchet);
}

#endif
