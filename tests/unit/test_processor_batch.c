/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_processor_batch.c - requests that come together, and requests with several keys.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "support/processor_case.h"

static struct processor_case c;

static int begin(void **state)
{
	(void)state;
	processor_case_begin(&c);
	return 0;
}

static int end(void **state)
{
	(void)state;
	processor_case_done(&c);
	return 0;
}

static void a_batch_is_one_submit(void **state)
{
	enum { COUNT = 300 };
	static struct call calls[COUNT];
	static struct hapax_request requests[COUNT];
	static struct hapax_finish finishes[COUNT];
	static char keys[COUNT][8];

	(void)state;
	memset(calls, 0, sizeof(calls));
	for (size_t i = 0; i < COUNT; i++) {
		snprintf(keys[i], sizeof(keys[i]), "k%zu", i);
		requests[i] = call_request(&calls[i], keys[i]);
	}
	assert_int_equal(hapax_processor_begin(c.processor, requests, COUNT, NULL), HAPAX_OK);
	assert_int_equal(c.held.total, 1);
	for (size_t i = 0; i < COUNT; i++) {
		assert_true(call_was_told(&calls[i], HAPAX_STEP_RUN));
		finishes[i] = (struct hapax_finish){calls[i].run, HAPAX_RUN_OK, NULL, {NULL, 0}};
	}
	assert_int_equal(hapax_run_finish_all(c.processor, finishes, COUNT, NULL), HAPAX_OK);
	assert_int_equal(c.held.total, 2);
	for (size_t i = 0; i < COUNT; i++)
		assert_true(calls[i].has_ended && calls[i].answer.status == HAPAX_OK);
}

static void one_batch_may_name_a_key_twice(void **state)
{
	struct call calls[2] = {{0}};
	struct hapax_run_options options = c.options.run;
	struct hapax_request requests[2];

	(void)state;
	options.wait_ms = 1000;
	for (size_t i = 0; i < 2; i++) {
		requests[i] = call_request(&calls[i], "k");
		requests[i].options = &options;
	}
	assert_int_equal(hapax_processor_begin(c.processor, requests, 2, NULL), HAPAX_OK);
	assert_true(call_was_told(&calls[0], HAPAX_STEP_RUN));
	assert_true(call_was_told(&calls[1], HAPAX_STEP_WAIT));
	call_finish_ok(&calls[0], "x");
	assert_string_equal(calls[1].body, "x");
}

static void begin_two(
	struct call *call, const char *first, const char *second, int64_t wait_ms,
	enum hapax_status expected)
{
	struct hapax_request_key keys[2] = {
		{.key = hapax_bytes_from_text(first)}, {.key = hapax_bytes_from_text(second)}};
	struct hapax_run_options options = c.options.run;
	struct hapax_request request = call_request(call, "");

	memset(call, 0, sizeof(*call));
	options.wait_ms = wait_ms;
	request.keys = keys;
	request.key_count = 2;
	request.options = &options;
	assert_int_equal(hapax_processor_begin(c.processor, &request, 1, NULL), expected);
}

static void several_keys_are_all_or_nothing(void **state)
{
	struct call single;
	struct call both;

	(void)state;
	call_begin(&c, &single, "b", 0);
	begin_two(&both, "c", "b", 0, HAPAX_OK);
	assert_int_equal(both.answer.outcome, HAPAX_OUTCOME_IN_PROGRESS);
	/* Which of them, in the order of the request. */
	assert_int_equal(both.answer.key_index, 1);
	assert_int_equal(case_state(&c.store, "c"), HAPAX_STATE_ABSENT);
	call_finish_failed(&single, HAPAX_RUN_TRANSIENT, "");
	begin_two(&both, "c", "b", 0, HAPAX_OK);
	assert_true(call_was_told(&both, HAPAX_STEP_RUN));
	processor_case_pass(&c, 2000);
	assert_false(call_was_told(&both, HAPAX_STEP_LAPSED));
	call_finish_ok(&both, "two");
	assert_int_equal(both.answer.status, HAPAX_OK);
	assert_int_equal(case_state(&c.store, "b"), HAPAX_STATE_DONE);
	assert_int_equal(case_state(&c.store, "c"), HAPAX_STATE_DONE);
	call_begin(&c, &single, "c", 0);
	assert_string_equal(single.body, "two");
	begin_two(&both, "a", "c", 0, HAPAX_OK);
	assert_int_equal(both.answer.outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(both.answer.key_index, 1);
	assert_string_equal(both.body, "two");
}

static unsigned difference(const struct call *call)
{
	return call->answer.flags & (HAPAX_ANSWER_PARTLY | HAPAX_ANSWER_SPLIT);
}

/* E20: two keys of one event, by the old and by the new strategy. */
static void work_that_is_done_decides(void **state)
{
	struct call first;
	struct call second;
	struct call both;
	struct call mixed;

	(void)state;
	call_begin(&c, &first, "done", 0);
	call_finish_ok(&first, "one");
	begin_two(&both, "new", "done", 0, HAPAX_OK);
	assert_int_equal(both.answer.outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(difference(&both), HAPAX_ANSWER_PARTLY);
	assert_int_equal(case_state(&c.store, "new"), HAPAX_STATE_ABSENT);
	/* It does not wait for the other one, which runs, whichever comes first. */
	call_begin(&c, &second, "busy", 0);
	begin_two(&both, "busy", "done", 1000, HAPAX_OK);
	assert_string_equal(both.body, "one");
	assert_int_equal(both.answer.key_index, 1);
	assert_int_equal(difference(&both), HAPAX_ANSWER_SPLIT);
	assert_false(both.answer.flags & HAPAX_ANSWER_WAITED);
	begin_two(&both, "done", "busy", 1000, HAPAX_OK);
	assert_string_equal(both.body, "one");
	assert_int_equal(both.answer.key_index, 0);
	call_finish_ok(&second, "two");
	/* Both are done: the first in the request answers, not the first in order. */
	begin_two(&both, "done", "busy", 0, HAPAX_OK);
	assert_string_equal(both.body, "one");
	assert_int_equal(difference(&both), HAPAX_ANSWER_SPLIT);
	begin_two(&both, "busy", "done", 0, HAPAX_OK);
	assert_string_equal(both.body, "two");
	/* A record that the store does not return tells of no other run. */
	c.held.holds = true;
	begin_two(&both, "done", "busy", 0, HAPAX_OK);
	held_store_do(&c.held);
	c.held.submits[0].ops[1].record->token = 0;
	held_store_pass(&c.held);
	c.held.holds = false;
	assert_int_equal(both.answer.outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(difference(&both), 0);
	/* Keys of one run belong together, and the run has the name of the first. */
	begin_two(&mixed, "z", "a", 0, HAPAX_OK);
	assert_true(case_bytes_are(hapax_run_key(mixed.run), "z", 1));
	call_finish_ok(&mixed, "three");
	begin_two(&both, "a", "z", 0, HAPAX_OK);
	assert_string_equal(both.body, "three");
	assert_int_equal(difference(&both), 0);
}

static void several_keys_wait_where_they_are_held_up(void **state)
{
	struct call a;
	struct call b;
	struct call both;
	struct call behind;

	(void)state;
	call_begin(&c, &a, "a", 0);
	call_begin(&c, &b, "b", 0);
	begin_two(&both, "a", "b", 9000, HAPAX_OK);
	call_begin(&c, &behind, "a", 9000);
	assert_true(call_was_told(&both, HAPAX_STEP_WAIT));
	/* a is free, b is not: the one behind must not wait for b. */
	call_finish_failed(&a, HAPAX_RUN_TRANSIENT, "");
	assert_false(call_was_told(&both, HAPAX_STEP_RUN));
	assert_true(call_was_told(&behind, HAPAX_STEP_RUN));
	call_finish_failed(&b, HAPAX_RUN_TRANSIENT, "");
	assert_false(call_was_told(&both, HAPAX_STEP_RUN));
	call_finish_failed(&behind, HAPAX_RUN_TRANSIENT, "");
	assert_true(call_was_told(&both, HAPAX_STEP_RUN));
	call_finish_ok(&both, "");
	assert_int_equal(processor_case_stats(&c).polled, 0);
}

static void a_request_names_no_key_twice(void **state)
{
	struct call both;

	(void)state;
	begin_two(&both, "a", "a", 0, HAPAX_ERR_INVALID);
	assert_int_equal(both.step_count, 0);
	assert_int_equal(processor_case_stats(&c).open, 0);
}

static void several_keys_need_a_store_that_can(void **state)
{
	struct call both;

	(void)state;
	c.held.ops.capabilities &= ~(unsigned)HAPAX_STORE_MULTI_KEY;
	begin_two(&both, "a", "b", 0, HAPAX_ERR_UNSUPPORTED);
	assert_int_equal(both.step_count, 0);
}

static void keys_have_a_limit(void **state)
{
	static struct hapax_request_key keys[1025];
	static char names[1025][8];
	struct call call = {0};
	struct hapax_request request = call_request(&call, "");

	(void)state;
	/* In no order: they are sorted on the way. */
	for (size_t i = 0; i < 1025; i++) {
		snprintf(names[i], sizeof(names[i]), "%zu", i * 7919 % 1025);
		keys[i] = (struct hapax_request_key){.key = hapax_bytes_from_text(names[i])};
	}
	request.keys = keys;
	request.key_count = 1025;
	assert_int_equal(hapax_processor_begin(c.processor, &request, 1, NULL), HAPAX_ERR_INVALID);
	request.key_count = 1024;
	assert_int_equal(hapax_processor_begin(c.processor, &request, 1, NULL), HAPAX_OK);
	assert_true(call_was_told(&call, HAPAX_STEP_RUN));
	call_finish_ok(&call, "all");
	assert_int_equal(call.answer.status, HAPAX_OK);
	for (size_t i = 0; i < 1024; i += 100)
		assert_int_equal(case_state(&c.store, names[i]), HAPAX_STATE_DONE);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_batch_is_one_submit),
		CASE(one_batch_may_name_a_key_twice),
		CASE(several_keys_are_all_or_nothing),
		CASE(work_that_is_done_decides),
		CASE(several_keys_wait_where_they_are_held_up),
		CASE(a_request_names_no_key_twice),
		CASE(several_keys_need_a_store_that_can),
		CASE(keys_have_a_limit),
	};

	return cmocka_run_group_tests_name("processor_batch", tests, NULL, NULL);
}
