/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_workers.c - a message that waited for a worker past its lease does not begin.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "source/consume/consumer.h"
#include "source/consume/in_flight.h"
#include "source/handler/workers.h"
#include "support/processor_case.h"

static struct processor_case c;
static struct hx_workers workers;
static struct hx_in_flight *in_flight_list[2];
static struct hx_event began; /* the first function has the only worker */
static struct hx_event go_on;
static _Atomic unsigned calls;

static void wake(void *context)
{
	(void)context;
}

/* The first call waits; all others return at once. */
static enum hapax_run_outcome handle(struct hapax_work *work, void *context)
{
	(void)work;
	(void)context;
	if (atomic_fetch_add(&calls, 1) == 0) {
		hx_event_set(&began);
		hx_event_wait(&go_on);
	}
	return HAPAX_RUN_OK;
}

static const struct hx_route route = {.fn = handle};

static int set_up(void **state)
{
	(void)state;
	processor_case_begin(&c);
	hx_event_init(&began);
	hx_event_init(&go_on);
	atomic_store(&calls, 0);
	for (size_t i = 0; i < 2; i++) {
		in_flight_list[i] = calloc(1, sizeof(*in_flight_list[i]));
		if (in_flight_list[i] == NULL)
			return -1;
		in_flight_list[i]->route = &route;
	}
	return hx_workers_init(&workers, 1, wake, NULL, NULL) == HAPAX_OK ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		hx_buf_done(&in_flight_list[i]->call.body);
		free(in_flight_list[i]);
	}
	processor_case_done(&c);
	return 0;
}

/* Two messages for one worker; ms pass while the second waits for it. */
static void let_the_second_wait(struct call call[2], int64_t ms)
{
	static const char *const keys[] = {"first", "second"};

	for (size_t i = 0; i < 2; i++) {
		call_begin(&c, &call[i], keys[i], 0);
		assert_true(call_was_told(&call[i], HAPAX_STEP_RUN));
		in_flight_list[i]->run = call[i].run;
		workers.base.ops->start(&workers.base, in_flight_list[i]);
	}
	hx_event_wait(&began);
	store_case_advance(&c.store, ms);
	hx_event_set(&go_on);
	hx_workers_done(&workers); /* when all are through */
	assert_int_equal(in_flight_list[0]->outcome, HAPAX_RUN_OK);
	for (size_t i = 0; i < 2; i++)
		call_finish_failed(&call[i], in_flight_list[i]->outcome, "over");
}

static void a_message_that_waited_within_its_lease_runs(void **state)
{
	struct call call[2];

	(void)state;
	let_the_second_wait(call, 899);
	assert_int_equal(in_flight_list[1]->outcome, HAPAX_RUN_OK);
	assert_int_equal(atomic_load(&calls), 2);
}

/* I1: another node may have taken over, and run it. */
static void a_message_that_waited_past_its_lease_does_not_begin(void **state)
{
	struct call call[2];

	(void)state;
	let_the_second_wait(call, 900);
	assert_int_equal(in_flight_list[1]->outcome, HAPAX_RUN_TRANSIENT);
	assert_int_equal(atomic_load(&calls), 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_message_that_waited_within_its_lease_runs),
		CASE(a_message_that_waited_past_its_lease_does_not_begin),
	};

	return cmocka_run_group_tests_name("workers", tests, NULL, NULL);
}
