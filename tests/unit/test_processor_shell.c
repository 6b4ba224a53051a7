/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_processor_shell.c - hapax_process(): any function, wrapped, with real threads.
 * Requirements: C2, C3, C4, C5, B5, B6.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "processor/processor.h"
#include "support/held_store.h"
#include "support/shell_case.h"
#include "support/store_case.h"
#include "support/virtual_clock.h"

static enum hapax_run_outcome write_receipt(struct hapax_work *work, void *context)
{
	int *runs = context;

	++*runs;
	assert_true(work->token > 0);
	assert_true(case_bytes_are(work->key, "k", 1));
	assert_true(case_bytes_are(work->tenant, "default", 7));
	assert_null(work->event);
	assert_false(hapax_work_is_fenced(work));
	assert_int_equal(hapax_work_write(work, "rec", 3), HAPAX_OK);
	assert_int_equal(hapax_work_write(work, "eipt", 4), HAPAX_OK);
	return HAPAX_RUN_OK;
}

/* A clock that stands, and jumps past the lease when a claim has been decided. */
struct jump {
	struct hx_virtual_clock clock;
	int64_t jump_ms;
	unsigned decided;
};

static void jump(const struct hapax_decided *decided, void *context)
{
	struct jump *jump = context;

	(void)decided;
	if (jump->decided++ == 0)
		hx_virtual_clock_advance(&jump->clock, jump->jump_ms);
}

/*
 * The thread that is told to run comes to it when the lease is over: another may run by
 * then. It gives the claim back, and claims again.
 */
static void a_thread_that_comes_too_late_asks_again(void **state)
{
	struct hapax_processor_options options = HAPAX_PROCESSOR_OPTIONS_INIT;
	struct hapax_request request = shell_case_request("k");
	struct hapax_answer answer = HAPAX_ANSWER_INIT;
	struct jump context = {.jump_ms = 1000};
	struct hapax_processor *own = NULL;
	int runs = 0;

	(void)state;
	hx_virtual_clock_init(&context.clock, CASE_EPOCH_MS);
	options.clock = hx_virtual_clock_clock(&context.clock);
	options.run.lease_ms = 1000;
	/* The ticker's thread must not renew the lease between the jump and the handler. */
	options.run.max_run_ms = 1000;
	options.decided = jump;
	options.decided_context = &context;
	assert_int_equal(hapax_processor_new(shell.store, &options, &own, NULL), HAPAX_OK);
	assert_int_equal(
		hapax_process(own, &request, write_receipt, &runs, &answer, shell.buf, NULL),
		HAPAX_OK);
	assert_int_equal(runs, 1);
	assert_int_equal(context.decided, 2);
	assert_int_equal(answer.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(answer.attempt, 2);
	hapax_processor_free(own);
}

static void any_function_can_be_wrapped(void **state)
{
	struct hapax_request request = shell_case_request("k");
	struct hapax_answer answer = HAPAX_ANSWER_INIT;
	int runs = 0;

	(void)state;
	assert_int_equal(
		hapax_process(
			shell.processor, &request, write_receipt, &runs, &answer, shell.buf, NULL),
		HAPAX_OK);
	assert_int_equal(answer.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(answer.result.kind, HAPAX_RESULT_BYTES);
	assert_true(case_bytes_are(answer.result.body, "receipt", 7));
	assert_int_equal(
		hapax_process(
			shell.processor, &request, write_receipt, &runs, &answer, shell.buf, NULL),
		HAPAX_OK);
	assert_true(hapax_answer_was_replay(&answer));
	assert_true(case_bytes_are(answer.result.body, "receipt", 7));
	assert_int_equal(runs, 1);
	/* Without a buffer the bytes are left out, and it says how many. */
	assert_int_equal(
		hapax_process(shell.processor, &request, write_receipt, &runs, &answer, NULL, NULL),
		HAPAX_OK);
	assert_int_equal(answer.result.omitted_bytes, 7);
	assert_int_equal(
		hapax_process(shell.processor, &request, write_receipt, &runs, NULL, NULL, NULL),
		HAPAX_OK);
	assert_int_equal(runs, 1);
}

static enum hapax_run_outcome fail_twice(struct hapax_work *work, void *context)
{
	int *runs = context;

	++*runs;
	assert_int_equal(work->attempt, *runs);
	if (*runs == 1)
		return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, "the bank is closed");
	if (*runs == 2)
		return HAPAX_RUN_AMBIGUOUS;
	return HAPAX_RUN_OK;
}

/* C5: nothing is kept, and the error reaches the caller. */
static void a_failure_reaches_its_caller(void **state)
{
	struct hapax_request request = shell_case_request("k");
	struct hapax_answer answer = HAPAX_ANSWER_INIT;
	struct hapax_error err = {0};
	int runs = 0;

	(void)state;
	assert_int_equal(
		hapax_process(
			shell.processor, &request, fail_twice, &runs, &answer, shell.buf, &err),
		HAPAX_ERR_HANDLER);
	assert_string_equal(err.message, "the bank is closed");
	assert_int_equal(answer.run_outcome, HAPAX_RUN_TRANSIENT);
	assert_int_equal(answer.status, HAPAX_OK);
	assert_int_equal(
		hapax_process(
			shell.processor, &request, fail_twice, &runs, &answer, shell.buf, &err),
		HAPAX_ERR_HANDLER);
	assert_string_equal(err.message, "the handler failed");
	assert_int_equal(
		hapax_process(
			shell.processor, &request, fail_twice, &runs, &answer, shell.buf, &err),
		HAPAX_OK);
	assert_int_equal(answer.attempt, 3);
	assert_int_equal(runs, 3);
}

static enum hapax_run_outcome refuse_card(struct hapax_work *work, void *context)
{
	static const char headers[] = "Reason: card";

	(void)context;
	work->result.kind = HAPAX_RESULT_HTTP;
	work->result.status = 402;
	work->result.headers = hapax_bytes_from_text(headers);
	work->result.body = hapax_bytes_from_text("no");
	return HAPAX_RUN_DEFINITIVE;
}

static void a_definitive_failure_is_replayed(void **state)
{
	struct hapax_request request = shell_case_request("k");
	struct hapax_answer answer = HAPAX_ANSWER_INIT;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			hapax_process(
				shell.processor, &request, refuse_card, NULL, &answer, shell.buf,
				NULL),
			HAPAX_OK);
		assert_int_equal(hapax_answer_was_replay(&answer), i);
		assert_int_equal(answer.result.result_class, HAPAX_RESULT_DEFINITIVE);
		assert_int_equal(answer.result.status, 402);
		assert_true(case_bytes_are(answer.result.headers, "Reason: card", 12));
		assert_true(case_bytes_are(answer.result.body, "no", 2));
	}
}

static enum hapax_run_outcome nonsense(struct hapax_work *work, void *context)
{
	(void)work, (void)context;
	return (enum hapax_run_outcome)77;
}

static enum hapax_run_outcome too_many_headers(struct hapax_work *work, void *context)
{
	static char headers[65 * 1024];

	(void)context;
	work->result.headers = (struct hapax_bytes){headers, sizeof(headers)};
	return HAPAX_RUN_OK;
}

/* What a handler returns is input like any other. */
static void what_a_handler_returns_is_checked(void **state)
{
	struct hapax_answer answer = HAPAX_ANSWER_INIT;
	struct hapax_request request = shell_case_request("k");
	struct hapax_error err = {0};

	(void)state;
	assert_int_equal(
		hapax_process(shell.processor, &request, nonsense, NULL, &answer, shell.buf, &err),
		HAPAX_ERR_HANDLER);
	assert_int_equal(answer.run_outcome, HAPAX_RUN_AMBIGUOUS);
	assert_non_null(strstr(err.message, "unknown outcome"));
	/* The work was done; that its headers cannot be kept does not undo it. */
	assert_int_equal(
		hapax_process(
			shell.processor, &request, too_many_headers, NULL, &answer, shell.buf,
			&err),
		HAPAX_OK);
	assert_int_equal(
		hapax_process(
			shell.processor, &request, too_many_headers, NULL, &answer, shell.buf,
			&err),
		HAPAX_OK);
	assert_true(hapax_answer_was_replay(&answer));
}

static void bad_calls_are_refused(void **state)
{
	struct hapax_run_options options = HAPAX_RUN_OPTIONS_INIT;
	struct hapax_request request = shell_case_request("");
	struct hapax_answer answer = HAPAX_ANSWER_INIT;
	struct hapax_error err;

	(void)state;
	assert_int_equal(
		hapax_process(NULL, &request, nonsense, NULL, &answer, shell.buf, &err),
		HAPAX_ERR_INVALID);
	assert_int_equal(
		hapax_process(shell.processor, &request, nonsense, NULL, &answer, shell.buf, &err),
		HAPAX_ERR_INVALID);
	request = shell_case_request("k");
	assert_int_equal(
		hapax_process(shell.processor, &request, NULL, NULL, &answer, shell.buf, &err),
		HAPAX_ERR_INVALID);
	options.lease_ms = -1;
	request.options = &options;
	assert_int_equal(
		hapax_process(shell.processor, &request, nonsense, NULL, &answer, shell.buf, &err),
		HAPAX_ERR_INVALID);
	answer.size = 3;
	assert_int_equal(
		hapax_process(shell.processor, &request, nonsense, NULL, &answer, shell.buf, &err),
		HAPAX_ERR_INVALID);
}

/* C3: a duplicate of what is done takes no lock and no run. */
static void duplicates_take_the_fast_path(void **state)
{
	struct hapax_request request = shell_case_request("k");
	struct hapax_answer answer = HAPAX_ANSWER_INIT;
	unsigned char other[HAPAX_FINGERPRINT_SIZE] = {1};
	unsigned char mine[HAPAX_FINGERPRINT_SIZE] = {2};
	uint64_t before;
	int runs = 0;

	(void)state;
	request.fingerprint = mine;
	assert_int_equal(
		hapax_process(
			shell.processor, &request, write_receipt, &runs, &answer, shell.buf, NULL),
		HAPAX_OK);
	before = shell.processor->sequence;
	assert_int_equal(
		hapax_process(
			shell.processor, &request, write_receipt, &runs, &answer, shell.buf, NULL),
		HAPAX_OK);
	assert_true(hapax_answer_was_replay(&answer));
	assert_true(case_bytes_are(answer.result.body, "receipt", 7));
	assert_int_equal(
		hapax_process(shell.processor, &request, write_receipt, &runs, NULL, NULL, NULL),
		HAPAX_OK);
	request.fingerprint = other;
	assert_int_equal(
		hapax_process(
			shell.processor, &request, write_receipt, &runs, &answer, shell.buf, NULL),
		HAPAX_OK);
	assert_int_equal(answer.outcome, HAPAX_OUTCOME_MISMATCH);
	assert_int_equal(answer.result.body.size, 0);
	assert_int_equal(answer.owner.size, 0);
	assert_int_equal(shell.processor->sequence, before);
	assert_int_equal(runs, 1);
}

static enum hapax_run_outcome do_nothing(struct hapax_work *work, void *context)
{
	(void)work, (void)context;
	return HAPAX_RUN_OK;
}

/* A claim that no run can be begun with is given back, not left to lapse. */
static void without_memory_no_claim_is_left_behind(void **state)
{
	struct hapax_answer answer = HAPAX_ANSWER_INIT;
	unsigned refused = 0;

	(void)state;
	for (uint64_t nth = 1; nth < 20; nth++) {
		struct hapax_op lookup = {.type = HAPAX_OP_LOOKUP};
		struct hapax_record record = {0};
		struct hapax_request request;
		enum hapax_status status;
		char key[16];

		/* A new one has no runs to spare. */
		hapax_processor_free(shell.processor);
		assert_int_equal(
			hapax_processor_new(shell.store, NULL, &shell.processor, NULL), HAPAX_OK);
		snprintf(key, sizeof(key), "k%llu", (unsigned long long)nth);
		request = shell_case_request(key);
		hx_alloc_fail_at(nth, 0);
		status = hapax_process(
			shell.processor, &request, do_nothing, NULL, &answer, shell.buf, NULL);
		hx_alloc_fail_at(0, 0);
		refused += status == HAPAX_ERR_NO_MEMORY;
		lookup.key = request.key;
		lookup.record = &record;
		lookup.buf = shell.buf;
		assert_int_equal(hapax_store_run(shell.store, &lookup, 1, NULL), HAPAX_OK);
		if (status == HAPAX_OK)
			assert_int_equal(record.state, HAPAX_STATE_DONE);
		else
			assert_true(record.state != HAPAX_STATE_CLAIMED);
	}
	assert_true(refused > 0);
}

/* The store goes away while the handler runs. */
struct outage {
	struct held_store *held;
	enum hapax_status status;
};

static enum hapax_run_outcome lose_store(struct hapax_work *work, void *context)
{
	const struct outage *outage = context;

	(void)hapax_work_write(work, "receipt", 7);
	outage->held->away = outage->status;
	return HAPAX_RUN_OK;
}

static enum hapax_run_outcome lose_key(struct hapax_work *work, void *context)
{
	const struct outage *outage = context;
	struct hapax_op forget = {.type = HAPAX_OP_FORGET, .flags = HAPAX_OP_FORCE};

	forget.key = work->key;
	(void)hapax_store_run(outage->held->inner, &forget, 1, NULL);
	return HAPAX_RUN_OK;
}

static void expect_unstored(
	hapax_handler_fn *handler, enum hapax_status status, enum hapax_status expected,
	const char *text)
{
	struct hapax_processor_options options = HAPAX_PROCESSOR_OPTIONS_INIT;
	struct hapax_processor *on_held = NULL;
	struct hapax_answer answer = HAPAX_ANSWER_INIT;
	struct hapax_request request = shell_case_request("k");
	struct hapax_error err = {0};
	struct held_store held;
	struct outage outage = {&held, status};

	held_store_init(&held, shell.store, NULL);
	options.run.lease_ms = 20;
	options.timeout_ms = 20;
	assert_int_equal(hapax_processor_new(&held.base, &options, &on_held, NULL), HAPAX_OK);
	if (handler == NULL)
		held.away = status;
	assert_int_equal(
		hapax_process(
			on_held, &request, handler == NULL ? nonsense : handler, &outage, &answer,
			shell.buf, &err),
		expected);
	assert_int_equal(answer.status, expected);
	assert_non_null(strstr(err.message, text));
	if (handler == lose_store) {
		/* C6: it ran, the caller has its result, and knows that it is not kept. */
		assert_int_equal(answer.outcome, HAPAX_OUTCOME_ACQUIRED);
		assert_true(case_bytes_are(answer.result.body, "receipt", 7));
	}
	hapax_processor_free(on_held);
	held_store_done(&held);
}

static void what_is_not_stored_is_reported(void **state)
{
	(void)state;
	expect_unstored(
		lose_store, HAPAX_ERR_LIMIT, HAPAX_ERR_LIMIT, "its result could not be stored");
	expect_unstored(NULL, HAPAX_ERR_UNAVAILABLE, HAPAX_ERR_UNAVAILABLE, "nothing ran");
	expect_unstored(NULL, HAPAX_ERR_UNCERTAIN, HAPAX_ERR_UNCERTAIN, "may be claimed");
	expect_unstored(lose_key, HAPAX_OK, HAPAX_ERR_FENCED, "its claim was lost");
	expect_unstored(
		lose_store, HAPAX_ERR_UNCERTAIN, HAPAX_ERR_UNCERTAIN, "it is unknown whether");
}

static enum hapax_run_outcome write_much(struct hapax_work *work, void *context)
{
	static char much[32 * 1024];

	(void)context;
	return hapax_work_write(work, much, sizeof(much)) == HAPAX_OK ? HAPAX_RUN_OK
								      : HAPAX_RUN_AMBIGUOUS;
}

static void a_buffer_that_is_too_small_leaves_the_body_out(void **state)
{
	struct hapax_request request = shell_case_request("k");
	struct hapax_answer answer = HAPAX_ANSWER_INIT;
	struct hapax_buf *small = hapax_buf_new(64);

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(
			hapax_process(
				shell.processor, &request, write_much, NULL, &answer, small, NULL),
			HAPAX_OK);
		assert_int_equal(hapax_answer_was_replay(&answer), i > 0);
		assert_int_equal(answer.result.body.size, 0);
		assert_int_equal(answer.result.omitted_bytes, 32 * 1024);
	}
	hapax_buf_free(small);
}

static enum hapax_run_outcome outlive_lease(struct hapax_work *work, void *context)
{
	struct hapax_processor_stats stats = HAPAX_PROCESSOR_STATS_INIT;

	(void)work, (void)context;
	/* However long that takes: the thread for timers renews. */
	do {
		hx_thread_yield();
		hapax_processor_stats(shell.processor, &stats);
	} while (stats.renewed < 3);
	return HAPAX_RUN_OK;
}

static void the_lease_is_renewed_while_a_handler_runs(void **state)
{
	struct hapax_run_options options = HAPAX_RUN_OPTIONS_INIT;
	struct hapax_answer answer = HAPAX_ANSWER_INIT;
	struct hapax_request request = shell_case_request("k");

	(void)state;
	options.lease_ms = 300;
	request.options = &options;
	assert_int_equal(
		hapax_process(
			shell.processor, &request, outlive_lease, NULL, &answer, shell.buf, NULL),
		HAPAX_OK);
	assert_int_equal(answer.outcome, HAPAX_OUTCOME_ACQUIRED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SHELL_CASE(a_thread_that_comes_too_late_asks_again),
		SHELL_CASE(any_function_can_be_wrapped),
		SHELL_CASE(a_failure_reaches_its_caller),
		SHELL_CASE(a_definitive_failure_is_replayed),
		SHELL_CASE(what_a_handler_returns_is_checked),
		SHELL_CASE(bad_calls_are_refused),
		SHELL_CASE(duplicates_take_the_fast_path),
		SHELL_CASE(without_memory_no_claim_is_left_behind),
		SHELL_CASE(what_is_not_stored_is_reported),
		SHELL_CASE(a_buffer_that_is_too_small_leaves_the_body_out),
		SHELL_CASE(the_lease_is_renewed_while_a_handler_runs),
		SHELL_CASE_FILE(any_function_can_be_wrapped),
#if HX_HAVE_SQLITE
		SHELL_CASE_SQLITE(any_function_can_be_wrapped),
#endif
	};

	return cmocka_run_group_tests_name("processor_shell", tests, NULL, NULL);
}
