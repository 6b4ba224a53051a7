/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"

/* The host's allocator: counts, then does as the system's. */
static _Atomic int host_mallocs, host_reallocs, host_frees;

static void *host_malloc(size_t size)
{
	host_mallocs++;
	return malloc(size);
}

static void *host_realloc(void *ptr, size_t size)
{
	host_reallocs++;
	return realloc(ptr, size);
}

static void host_free(void *ptr)
{
	host_frees++;
	free(ptr);
}

static const struct hx_allocator host = {host_malloc, host_realloc, host_free};

/* Runs first: the hook works only before the first allocation. */
static void hook_works_once(void **state)
{
	void *ptr;

	(void)state;
	assert_true(hx_alloc_hook(&host));
	assert_false(hx_alloc_hook(&host));
	ptr = hx_alloc(10);
	assert_non_null(ptr);
	ptr = hx_realloc(ptr, 20);
	assert_non_null(ptr);
	hx_free(ptr);
	hx_free(NULL);
	assert_int_equal(host_mallocs, 1);
	assert_int_equal(host_reallocs, 1);
	assert_int_equal(host_frees, 1);
	assert_false(hx_alloc_hook(&host));
}

static void zeroed(void **state)
{
	unsigned char *ptr = hx_alloc_zero(100, 7);

	(void)state;
	assert_non_null(ptr);
	for (int i = 0; i < 700; i++)
		assert_int_equal(ptr[i], 0);
	hx_free(ptr);
}

static void overflow_is_no_memory(void **state)
{
	uint64_t live = (uint64_t)hx_alloc_live();

	(void)state;
	assert_null(hx_alloc_zero(SIZE_MAX / 2, 3));
	assert_null(hx_alloc_zero(SIZE_MAX, SIZE_MAX));
	assert_int_equal(hx_alloc_live(), live);
}

static void nothing_is_something(void **state)
{
	void *ptr = hx_alloc(0);

	(void)state;
	assert_non_null(ptr);
	ptr = hx_realloc(ptr, 0);
	assert_non_null(ptr);
	hx_free(ptr);
	ptr = hx_alloc_zero(0, 8);
	assert_non_null(ptr);
	hx_free(ptr);
	ptr = hx_realloc(NULL, 0);
	assert_non_null(ptr);
	hx_free(ptr);
}

static void realloc_keeps_the_bytes(void **state)
{
	char *ptr = hx_realloc(NULL, 4);

	(void)state;
	assert_non_null(ptr);
	memcpy(ptr, "abcd", 4);
	ptr = hx_realloc(ptr, 100000);
	assert_non_null(ptr);
	assert_memory_equal(ptr, "abcd", 4);
	hx_free(ptr);
}

static void counts(void **state)
{
	uint64_t count = hx_alloc_count();
	int64_t live = hx_alloc_live();
	void *a = hx_alloc(1), *b = hx_alloc_zero(1, 1);

	(void)state;
	assert_int_equal(hx_alloc_live(), live + 2);
	assert_int_equal(hx_alloc_count(), count + 2);
	b = hx_realloc(b, 50);
	assert_int_equal(hx_alloc_live(), live + 2);
	assert_int_equal(hx_alloc_count(), count + 3);
	hx_free(a);
	hx_free(b);
	assert_int_equal(hx_alloc_live(), live);
}

static void the_nth_fails_once(void **state)
{
	void *ptrs[5];
	uint64_t count = hx_alloc_count();

	(void)state;
	hx_alloc_fail_at(3, 0);
	for (int i = 0; i < 5; i++) {
		ptrs[i] = hx_alloc(8);
		assert_int_equal(ptrs[i] == NULL, i == 2);
	}
	assert_int_equal(hx_alloc_count(), count + 5);
	hx_alloc_fail_at(0, 0);
	for (int i = 0; i < 5; i++)
		hx_free(ptrs[i]);
}

static void the_nth_and_all_after_it_fail(void **state)
{
	void *ptr;
	int64_t live = hx_alloc_live();

	(void)state;
	hx_alloc_fail_at(2, 1);
	ptr = hx_alloc(8);
	assert_non_null(ptr);
	for (int i = 0; i < 5; i++) {
		assert_null(hx_alloc(8));
		assert_null(hx_alloc_zero(1, 8));
		assert_null(hx_realloc(NULL, 8));
		assert_null(hx_realloc(ptr, 16));
	}
	assert_int_equal(hx_alloc_live(), live + 1);
	hx_alloc_fail_at(0, 0);
	ptr = hx_realloc(ptr, 16);
	assert_non_null(ptr);
	hx_free(ptr);
	assert_int_equal(hx_alloc_live(), live);
}

static void pages_come_and_go(void **state)
{
	size_t bytes = 3 * (size_t)HX_PAGES_STEP;
	unsigned char *at = hx_alloc_pages_reserve(bytes);

	(void)state;
	assert_non_null(at);
	assert_int_equal(hx_alloc_pages_commit(at + HX_PAGES_STEP, HX_PAGES_STEP, 0), 0);
	for (size_t i = 0; i < HX_PAGES_STEP; i++)
		assert_int_equal(at[HX_PAGES_STEP + i], 0);
	memset(at + HX_PAGES_STEP, 0xaa, HX_PAGES_STEP);
	hx_alloc_pages_decommit(at + HX_PAGES_STEP, HX_PAGES_STEP);
	/* What comes back is zero again. */
	assert_int_equal(hx_alloc_pages_commit(at + HX_PAGES_STEP, HX_PAGES_STEP, 0), 0);
	assert_int_equal(at[HX_PAGES_STEP], 0);
	assert_int_equal(at[2 * HX_PAGES_STEP - 1], 0);
	hx_alloc_pages_release(at, bytes);
	hx_alloc_pages_release(NULL, bytes);
}

static void pages_grow_from_the_front(void **state)
{
	size_t bytes = 4 * (size_t)HX_PAGES_STEP;
	unsigned char *at = hx_alloc_pages_reserve(bytes);
	size_t committed = 0;

	(void)state;
	assert_non_null(at);
	assert_int_equal(hx_alloc_pages_grow(at, &committed, 1), 0);
	assert_int_equal(committed, HX_PAGES_STEP);
	at[HX_PAGES_STEP - 1] = 1;
	assert_int_equal(hx_alloc_pages_grow(at, &committed, HX_PAGES_STEP), 0);
	assert_int_equal(committed, HX_PAGES_STEP);
	hx_alloc_fail_at(1, 0);
	assert_int_equal(hx_alloc_pages_grow(at, &committed, bytes), -1);
	assert_int_equal(committed, HX_PAGES_STEP);
	assert_int_equal(hx_alloc_pages_grow(at, &committed, bytes), 0);
	assert_int_equal(committed, bytes);
	at[bytes - 1] = 1;
	assert_int_equal(at[HX_PAGES_STEP - 1], 1);
	hx_alloc_pages_release(at, bytes);
}

static void large_reservations_fit_huge_pages(void **state)
{
	size_t bytes = (size_t)64 << 30;
	unsigned char *at = hx_alloc_pages_reserve(bytes);

	(void)state;
	assert_non_null(at);
	assert_int_equal((uintptr_t)at % HX_PAGES_HUGE_SIZE, 0);
	assert_int_equal(hx_alloc_pages_commit(at, HX_PAGES_HUGE_SIZE, HX_PAGES_HUGE), 0);
	at[0] = at[HX_PAGES_HUGE_SIZE - 1] = 1;
	hx_alloc_pages_release(at, bytes);
}

static void too_large_a_reservation_fails(void **state)
{
	(void)state;
	assert_null(hx_alloc_pages_reserve(SIZE_MAX - HX_PAGES_STEP + 1));
	assert_null(hx_alloc_pages_reserve((size_t)1 << 62));
}

static void pages_fail_on_demand(void **state)
{
	unsigned char *at;
	uint64_t count = hx_alloc_count();

	(void)state;
	hx_alloc_fail_at(1, 0);
	errno = 0;
	assert_null(hx_alloc_pages_reserve(HX_PAGES_STEP));
	assert_int_equal(errno, ENOMEM);
	hx_alloc_fail_at(2, 0);
	at = hx_alloc_pages_reserve(HX_PAGES_STEP);
	assert_non_null(at);
	errno = 0;
	assert_int_equal(hx_alloc_pages_commit(at, HX_PAGES_STEP, 0), -1);
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(hx_alloc_pages_commit(at, HX_PAGES_STEP, 0), 0);
	assert_int_equal(hx_alloc_count(), count + 4);
	hx_alloc_fail_at(0, 0);
	hx_alloc_pages_release(at, HX_PAGES_STEP);
}

/* How a child that writes to this byte ends: the signal, or 0. */
static int signal_on_write(volatile unsigned char *byte)
{
	int wait_status;
	pid_t pid = fork();

	if (pid == 0) {
		(void)signal(SIGSEGV, SIG_DFL);
		*byte = 1;
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &wait_status, 0), pid);
	return WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
}

static void uncommitted_pages_fault(void **state)
{
	unsigned char *at = hx_alloc_pages_reserve(2 * (size_t)HX_PAGES_STEP);

	(void)state;
	assert_non_null(at);
	assert_int_equal(signal_on_write(at), SIGSEGV);
	assert_int_equal(hx_alloc_pages_commit(at, HX_PAGES_STEP, 0), 0);
	assert_int_equal(signal_on_write(at), 0);
	assert_int_equal(signal_on_write(at + HX_PAGES_STEP), SIGSEGV);
	hx_alloc_pages_decommit(at, HX_PAGES_STEP);
	assert_int_equal(signal_on_write(at), SIGSEGV);
	hx_alloc_pages_release(at, 2 * (size_t)HX_PAGES_STEP);
}

enum { THREADS = 4, ROUNDS = 20000 };

static _Atomic int failures;

static void allocate_and_free(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		void *ptr = hx_alloc(16);

		if (ptr == NULL)
			failures++;
		hx_free(ptr);
	}
}

static void run_threads(void)
{
	struct hx_thread threads[THREADS];

	failures = 0;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(
			hx_thread_start(&threads[i], allocate_and_free, NULL, "alloc", NULL),
			HAPAX_OK);
	for (int i = 0; i < THREADS; i++)
		hx_thread_join(&threads[i]);
}

static void threads_lose_no_count(void **state)
{
	uint64_t count = hx_alloc_count();
	int64_t live = hx_alloc_live();

	(void)state;
	run_threads();
	assert_int_equal(failures, 0);
	assert_int_equal(hx_alloc_count(), count + (uint64_t)THREADS * ROUNDS);
	assert_int_equal(hx_alloc_live(), live);
}

static void one_of_many_threads_fails(void **state)
{
	(void)state;
	hx_alloc_fail_at(ROUNDS, 0);
	run_threads();
	assert_int_equal(failures, 1);
	hx_alloc_fail_at(ROUNDS + 1, 1);
	run_threads();
	assert_int_equal(failures, THREADS * ROUNDS - ROUNDS);
	hx_alloc_fail_at(0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hook_works_once),
		cmocka_unit_test(zeroed),
		cmocka_unit_test(overflow_is_no_memory),
		cmocka_unit_test(nothing_is_something),
		cmocka_unit_test(realloc_keeps_the_bytes),
		cmocka_unit_test(counts),
		cmocka_unit_test(the_nth_fails_once),
		cmocka_unit_test(the_nth_and_all_after_it_fail),
		cmocka_unit_test(pages_come_and_go),
		cmocka_unit_test(pages_grow_from_the_front),
		cmocka_unit_test(large_reservations_fit_huge_pages),
		cmocka_unit_test(too_large_a_reservation_fails),
		cmocka_unit_test(pages_fail_on_demand),
		cmocka_unit_test(uncommitted_pages_fault),
		cmocka_unit_test(threads_lose_no_count),
		cmocka_unit_test(one_of_many_threads_fails),
	};

	return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}
