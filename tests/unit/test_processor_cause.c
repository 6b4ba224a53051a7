/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_processor_cause.c - the event of a request: in its record, and in the answers to duplicates.
 * Requirements: A10, E12.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/processor_case.h"
#include "support/shell_case.h"

enum { TIME_MS = 1700000000 };

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

/* An event with that id, packed until the next call. */
static struct hapax_bytes packed(const char *id)
{
	static unsigned char space[HAPAX_CAUSE_SIZE_MAX];
	const struct hapax_cause cause = {
		.id = hapax_bytes_from_text(id),
		.type = hapax_bytes_from_text("order.paid"),
		.source = hapax_bytes_from_text("/shop"),
		.time_ms = TIME_MS,
	};

	return hapax_cause_write(&cause, space);
}

static void assert_cause(struct hapax_bytes cause, const char *id)
{
	struct hapax_cause parts;

	assert_int_equal(hapax_cause_read(cause, &parts), id != NULL);
	if (id == NULL)
		return;
	assert_int_equal(parts.id.size, strlen(id));
	assert_memory_equal(parts.id.data, id, strlen(id));
	assert_int_equal(parts.time_ms, TIME_MS);
}

static void assert_kept(const char *key, const char *id)
{
	struct hapax_op op = case_op(&c.store, HAPAX_OP_LOOKUP, key);

	assert_int_equal(case_run(&c.store, &op), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_FOUND);
	assert_cause(op.record->cause, id);
}

static void begin_with(
	struct call *call, const char *id, char letter, const struct hapax_run_options *options)
{
	struct hapax_request request = call_request(call, "k");

	memset(call, 0, sizeof(*call));
	request.fingerprint = case_fingerprint(letter);
	request.options = options;
	request.cause = packed(id);
	assert_int_equal(hapax_processor_begin(c.processor, &request, 1, NULL), HAPAX_OK);
}

static void begin_event(struct call *call, const char *id, int64_t wait_ms)
{
	struct hapax_run_options options = c.options.run;

	options.wait_ms = wait_ms;
	begin_with(call, id, 'A', &options);
}

static void a_duplicate_learns_of_the_first_event(void **state)
{
	struct call first, second;

	(void)state;
	begin_event(&first, "first", 0);
	assert_kept("k", "first");
	call_finish_ok(&first, "receipt");
	assert_int_equal(first.answer.original_cause.size, 0);
	begin_event(&second, "second", 0);
	assert_int_equal(second.answer.outcome, HAPAX_OUTCOME_REPLAY);
	assert_string_equal(second.cause_id, "first");
	assert_kept("k", "first");
}

static void a_duplicate_in_progress_learns_it_too(void **state)
{
	struct call first, asks, waits;

	(void)state;
	begin_event(&first, "first", 0);
	begin_event(&asks, "second", 0);
	assert_int_equal(asks.answer.outcome, HAPAX_OUTCOME_IN_PROGRESS);
	assert_string_equal(asks.cause_id, "first");
	/* Attached to the run of this process: the store is not asked. */
	begin_event(&waits, "third", 500);
	assert_int_equal(waits.steps[0], HAPAX_STEP_WAIT);
	processor_case_pass(&c, 500);
	assert_true(waits.has_ended);
	assert_int_equal(waits.answer.outcome, HAPAX_OUTCOME_IN_PROGRESS);
	assert_string_equal(waits.cause_id, "first");
	call_finish_ok(&first, "");
}

static void a_waiter_that_runs_has_its_own_event(void **state)
{
	struct call first, waits;

	(void)state;
	begin_event(&first, "first", 0);
	begin_event(&waits, "second", 5000);
	call_finish_failed(&first, HAPAX_RUN_TRANSIENT, "failed");
	/* The waiter runs now, with its own event. */
	assert_true(call_was_told(&waits, HAPAX_STEP_RUN));
	assert_int_equal(waits.answer.original_cause.size, 0);
	assert_kept("k", "second");
	call_finish_ok(&waits, "");
}

static void an_event_that_must_not_be_kept_is_not(void **state)
{
	struct hapax_run_options options = c.options.run;
	struct call first, second;

	(void)state;
	options.omits_cause = 1;
	begin_with(&first, "first", 'A', &options);
	assert_kept("k", NULL);
	call_finish_ok(&first, "");
	begin_event(&second, "second", 0);
	assert_int_equal(second.answer.outcome, HAPAX_OUTCOME_REPLAY);
	assert_string_equal(second.cause_id, "");
}

static void a_mismatch_does_not_reveal_the_event(void **state)
{
	struct call first, second;

	(void)state;
	begin_event(&first, "first", 0);
	call_finish_ok(&first, "");
	begin_with(&second, "second", 'B', &c.options.run);
	assert_int_equal(second.answer.outcome, HAPAX_OUTCOME_MISMATCH);
	assert_int_equal(second.answer.original_cause.size, 0);
}

static void bytes_that_are_no_cause_are_refused(void **state)
{
	struct call call = {0};
	struct hapax_request request = call_request(&call, "k");
	struct hapax_error err;

	(void)state;
	request.cause = hapax_bytes_from_text("order-17");
	assert_int_equal(hapax_processor_begin(c.processor, &request, 1, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "hapax_cause_write"));
	assert_int_equal(call.step_count, 0);
}

static enum hapax_run_outcome handle(struct hapax_work *work, void *context)
{
	(void)context;
	(void)hapax_work_write(work, "ok", 2);
	return HAPAX_RUN_OK;
}

static void hapax_process_answers_with_it(void **state)
{
	struct hapax_request request = shell_case_request("k");
	struct hapax_answer answer = HAPAX_ANSWER_INIT;

	(void)state;
	request.cause = packed("first");
	assert_int_equal(
		hapax_process(shell.processor, &request, handle, NULL, &answer, shell.buf, NULL),
		HAPAX_OK);
	assert_int_equal(answer.original_cause.size, 0);
	request.cause = packed("second");
	assert_int_equal(
		hapax_process(shell.processor, &request, handle, NULL, &answer, shell.buf, NULL),
		HAPAX_OK);
	assert_int_equal(answer.outcome, HAPAX_OUTCOME_REPLAY);
	assert_cause(answer.original_cause, "first");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_duplicate_learns_of_the_first_event),
		CASE(a_duplicate_in_progress_learns_it_too),
		CASE(a_waiter_that_runs_has_its_own_event),
		CASE(an_event_that_must_not_be_kept_is_not),
		CASE(a_mismatch_does_not_reveal_the_event),
		CASE(bytes_that_are_no_cause_are_refused),
		SHELL_CASE(hapax_process_answers_with_it),
		SHELL_CASE_FILE(hapax_process_answers_with_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
