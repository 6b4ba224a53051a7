/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_request_queue.c - requests come out in the order in which they went in, and from a pool.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "store/request_queue.h"
#include "support/scale.h"

/* Of an odd size: the next one must lie where it may. */
struct request {
	uint64_t number;
	unsigned char tail[5];
};

static struct request make(uint64_t number)
{
	struct request request = {.number = number};

	memset(request.tail, (int)(number & 0xff), sizeof(request.tail));
	return request;
}

static void push(struct hx_request_queue *queue, uint64_t number)
{
	struct request request = make(number);

	assert_int_equal(hx_request_queue_push(queue, &request), HAPAX_OK);
}

static void expect(const struct request *request, uint64_t number)
{
	struct request expected = make(number);

	assert_non_null(request);
	assert_int_equal((uintptr_t)request % _Alignof(max_align_t), 0);
	assert_int_equal(request->number, number);
	assert_memory_equal(request->tail, expected.tail, sizeof(expected.tail));
}

static void requests_keep_their_order(void **state)
{
	struct hx_request_queue queue;
	uint64_t pushed = 0, taken = 0;

	(void)state;
	assert_int_equal(hx_request_queue_init(&queue, sizeof(struct request)), HAPAX_OK);
	assert_null(hx_request_queue_take(&queue));
	for (unsigned round = 0; round < 200; round++) {
		struct request *next;

		for (unsigned i = 0; i < round; i++)
			push(&queue, pushed++);
		for (struct request *request = hx_request_queue_take(&queue); request != NULL;
		     request = next) {
			expect(request, taken++);
			next = hx_request_queue_next(request);
			hx_request_queue_give_back(&queue, request);
		}
		assert_int_equal(taken, pushed);
	}
	hx_request_queue_done(&queue);
}

/* Once there are enough of them, nothing more is allocated. */
static void pool_is_kept(void **state)
{
	struct hx_request_queue queue;
	void *held[1000];
	uint64_t allocations = 0;

	(void)state;
	assert_int_equal(hx_request_queue_init(&queue, sizeof(struct request)), HAPAX_OK);
	for (unsigned round = 0; round < 10; round++) {
		for (size_t i = 0; i < 1000; i++) {
			static const struct request zeros;

			held[i] = hx_request_queue_borrow(&queue);
			assert_non_null(held[i]);
			assert_memory_equal(held[i], &zeros, sizeof(zeros));
			memset(held[i], 0xff, sizeof(struct request));
		}
		for (size_t i = 0; i < 1000; i++)
			hx_request_queue_give_back(&queue, held[i]);
		if (round == 0)
			allocations = hx_alloc_count();
	}
	assert_int_equal(hx_alloc_count(), allocations);
	hx_request_queue_done(&queue);
}

static void short_memory_is_told(void **state)
{
	struct hx_request_queue queue;
	struct request request = make(1);
	enum hapax_status status = HAPAX_OK;
	uint64_t pushed = 0, taken = 0;

	(void)state;
	hx_alloc_fail_at(1, 0);
	assert_int_equal(
		hx_request_queue_init(&queue, sizeof(struct request)), HAPAX_ERR_NO_MEMORY);
	hx_alloc_fail_at(0, 0);
	assert_int_equal(hx_request_queue_init(&queue, sizeof(struct request)), HAPAX_OK);
	hx_alloc_fail_at(1, 1);
	for (; status == HAPAX_OK; pushed += status == HAPAX_OK) {
		request = make(pushed);
		status = hx_request_queue_push(&queue, &request);
	}
	assert_int_equal(status, HAPAX_ERR_NO_MEMORY);
	assert_null(hx_request_queue_borrow(&queue));
	hx_alloc_fail_at(0, 0);
	/* What was in it stays, and the next one goes behind it. */
	push(&queue, pushed++);
	for (struct request *item = hx_request_queue_take(&queue), *next; item != NULL;
	     item = next) {
		expect(item, taken++);
		next = hx_request_queue_next(item);
		hx_request_queue_give_back(&queue, item);
	}
	assert_int_equal(taken, pushed);
	hx_request_queue_done(&queue);
}

static void a_million_is_the_limit(void **state)
{
	enum { LIMIT = 1 << 20 };
	struct hx_request_queue queue;
	struct request request = make(1);

	(void)state;
	assert_int_equal(hx_request_queue_init(&queue, sizeof(request)), HAPAX_OK);
	for (size_t i = 0; i < LIMIT; i++)
		assert_int_equal(hx_request_queue_push(&queue, &request), HAPAX_OK);
	assert_int_equal(hx_request_queue_push(&queue, &request), HAPAX_ERR_LIMIT);
	assert_null(hx_request_queue_borrow(&queue));
	assert_non_null(hx_request_queue_take(&queue));
	hx_request_queue_done(&queue);
}

enum { PUSHERS = 4 };

struct crowd {
	struct hx_request_queue queue;
	uint64_t count; /* of each */
	_Atomic uint64_t started;
};

static void push_many(void *arg)
{
	struct crowd *crowd = arg;
	uint64_t who = crowd->started++;

	for (uint64_t i = 0; i < crowd->count; i++)
		push(&crowd->queue, who << 32 | i);
}

/* Who waits is woken, gets all, those of one pusher in order, and nothing more after the stop. */
static void waiter_is_woken(void **state)
{
	struct crowd crowd = {.count = scale_count(200000, 20000)};
	struct hx_thread threads[PUSHERS];
	uint64_t next_of[PUSHERS] = {0};
	uint64_t taken = 0;
	struct request *request;

	(void)state;
	assert_int_equal(hx_request_queue_init(&crowd.queue, sizeof(struct request)), HAPAX_OK);
	for (size_t i = 0; i < PUSHERS; i++)
		assert_int_equal(
			hx_thread_start(&threads[i], push_many, &crowd, "pusher", NULL), HAPAX_OK);
	while (taken < PUSHERS * crowd.count) {
		request = hx_request_queue_wait(&crowd.queue);
		assert_non_null(request);
		for (struct request *next; request != NULL; request = next, taken++) {
			uint64_t who = request->number >> 32;

			assert_true(who < PUSHERS);
			expect(request, who << 32 | next_of[who]++);
			next = hx_request_queue_next(request);
			hx_request_queue_give_back(&crowd.queue, request);
		}
	}
	for (size_t i = 0; i < PUSHERS; i++)
		hx_thread_join(&threads[i]);
	push(&crowd.queue, 7);
	hx_request_queue_stop(&crowd.queue);
	request = hx_request_queue_wait(&crowd.queue);
	expect(request, 7);
	assert_null(hx_request_queue_wait(&crowd.queue));
	hx_request_queue_give_back(&crowd.queue, request);
	hx_request_queue_done(&crowd.queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_keep_their_order),
		cmocka_unit_test(pool_is_kept),
		cmocka_unit_test(short_memory_is_told),
		cmocka_unit_test(a_million_is_the_limit),
		cmocka_unit_test(waiter_is_woken),
	};

	return cmocka_run_group_tests_name("request_queue", tests, NULL, NULL);
}
