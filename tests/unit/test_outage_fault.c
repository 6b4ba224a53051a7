/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_outage_fault.c - an outage during which an allocation, or a call of the journal's
 * files, fails: for every n the n-th. No crash, no leak, and no untrue answer:
 *
 *  - what was answered as done is in the store in the end, with its result;
 *  - nothing is reported as run twice: nothing did.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <hapax/outage.h>

#include "base/alloc.h"
#include "store/log/log_store.h"
#include "support/fault_io.h"
#include "support/held_store.h"
#include "support/scale.h"
#include "support/store_case.h"

enum { RUNS = 6, MARKS = 3, KEYS = 1 + RUNS + MARKS };

struct trial {
	struct store_case shared;  /* what is away for a while */
	struct store_case journal; /* its folder and options */
	struct held_store held;
	struct fault_io fault;
	char path[300];
	struct hapax_store *journal_store;
	struct hapax_store *store; /* the guarded one, or NULL */
	bool is_done[KEYS];        /* that is what the caller was told */
	uint64_t twice;
	const char *why;
};

static void key_text(unsigned number, char text[16])
{
	(void)snprintf(text, 16, "key %u", number);
}

static enum hapax_status open_guard(struct trial *trial, const struct hx_io *io)
{
	struct hapax_outage_options options = HAPAX_OUTAGE_OPTIONS_INIT;
	enum hapax_status status = hx_log_open_on(
		io, "file:journal", trial->path, &trial->journal.options, &trial->journal_store,
		NULL);

	if (status != HAPAX_OK)
		return status;
	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	options.clock = &trial->shared.clock.clock;
	options.journal = trial->journal_store;
	return hapax_outage_guard(&trial->held.base, &options, &trial->store, NULL);
}

static void close_guard(struct trial *trial)
{
	struct hapax_outage outage = HAPAX_OUTAGE_INIT;

	if (trial->store != NULL && hapax_outage_tell(trial->store, &outage, NULL) == HAPAX_OK)
		trial->twice += outage.reconciled[HAPAX_RECONCILED_TWICE];
	hapax_store_close(trial->store);
	hapax_store_close(trial->journal_store);
	trial->store = trial->journal_store = NULL;
}

static struct hapax_op ask(
	struct trial *trial, enum hapax_op_type type, unsigned number, uint64_t token)
{
	static const struct hapax_result result = {.kind = HAPAX_RESULT_BYTES, .body = {"paid", 4}};
	char key[16];
	struct hapax_op op;

	key_text(number, key);
	op = case_op_token(&trial->shared, type, key, token);
	op.result = type == HAPAX_OP_COMPLETE ? &result : NULL;
	op.ttl_ms = HAPAX_TTL_FOREVER;
	(void)hapax_store_run(trial->store, &op, 1, NULL);
	if (op.status == HAPAX_ERR_CORRUPT || op.status == HAPAX_ERR_INVALID ||
	    (op.status == HAPAX_OK && op.outcome == HAPAX_OUTCOME_NONE))
		trial->why = "an unexpected answer";
	op.key = hapax_bytes_from_text("");
	return op;
}

/* Work under a claim; a sender that is refused asks again, and so does a completion. */
static uint64_t begin_work(struct trial *trial, unsigned number)
{
	for (int i = 0; i < 3; i++) {
		struct hapax_op op = ask(trial, HAPAX_OP_CLAIM, number, 0);

		if (op.outcome == HAPAX_OUTCOME_ACQUIRED)
			return op.token;
	}
	return 0;
}

static void end_work(struct trial *trial, unsigned number, uint64_t token)
{
	for (int i = 0; i < 3 && token != 0 && !trial->is_done[number]; i++)
		trial->is_done[number] =
			ask(trial, HAPAX_OP_COMPLETE, number, token).status == HAPAX_OK;
}

static void live(struct trial *trial)
{
	uint64_t early = begin_work(trial, 0);

	trial->held.away = HAPAX_ERR_UNAVAILABLE;
	for (unsigned i = 1; i <= RUNS; i++)
		end_work(trial, i, begin_work(trial, i));
	for (unsigned i = RUNS + 1; i < KEYS; i++)
		trial->is_done[i] = ask(trial, HAPAX_OP_CHECK, i, 0).status == HAPAX_OK;
	end_work(trial, 0, early);
	trial->held.away = HAPAX_OK;
	for (int i = 0; i < 2; i++) {
		store_case_advance(&trial->shared, 20000);
		(void)hapax_outage_tick(trial->store);
	}
}

static bool uses_journal(struct trial *trial)
{
	struct hapax_outage outage = HAPAX_OUTAGE_INIT;

	return hapax_outage_tell(trial->store, &outage, NULL) != HAPAX_OK || outage.uses_journal;
}

/* With everything in order again: the journal empties, and what was promised is there. */
static void judge(struct trial *trial)
{
	for (int i = 0; i < 10 && (i == 0 || uses_journal(trial)); i++) {
		store_case_advance(&trial->shared, 40000); /* claims that were left lapse */
		store_case_advance(&trial->journal, 40000);
		(void)hapax_outage_tick(trial->store);
	}
	if (uses_journal(trial))
		trial->why = "the journal does not become empty";
	for (unsigned i = 0; i < KEYS && trial->why == NULL; i++) {
		char key[16];

		key_text(i, key);
		if (!trial->is_done[i])
			continue;
		if (case_state(&trial->shared, key) != HAPAX_STATE_DONE)
			trial->why = "what was answered as done is not";
		else if (i <= RUNS && !case_bytes_are(trial->shared.record.result.body, "paid", 4))
			trial->why = "a result is lost";
	}
}

static void init(struct trial *trial)
{
	memset(trial, 0, sizeof(*trial));
	store_case_begin(&trial->shared, "memory:");
	store_case_init(&trial->journal, "file:");
	trial->journal.options.segment_bytes = 16384;
	(void)snprintf(trial->path, sizeof(trial->path), "%s/journal", trial->journal.dir.path);
	held_store_init(&trial->held, trial->shared.store, &trial->shared.clock.clock);
	fault_io_init(&trial->fault);
}

static void done(struct trial *trial, int64_t live_before, const char *what, uint64_t nth)
{
	close_guard(trial);
	if (trial->why == NULL && trial->twice != 0)
		trial->why = "something is said to have run twice";
	held_store_done(&trial->held);
	store_case_done(&trial->journal);
	store_case_done(&trial->shared);
	if (trial->why == NULL && hx_alloc_live() != live_before)
		trial->why = "memory was lost";
	if (trial->why != NULL)
		printf("# %s %llu: %s\n", what, (unsigned long long)nth, trial->why);
	assert_null(trial->why);
}

/* Open again with files that work, and see. */
static void reopen_and_judge(struct trial *trial)
{
	close_guard(trial);
	trial->held.away = HAPAX_OK;
	if (open_guard(trial, hx_io_system()) != HAPAX_OK)
		trial->why = "the journal does not open any more";
	else
		judge(trial);
}

/* False: call nth was never made. */
static bool fail_call(uint64_t nth, bool is_forever, enum fault_io_effect effect)
{
	int64_t live_before = hx_alloc_live();
	struct trial trial;
	bool has_failed;

	init(&trial);
	trial.fault.fail_at = nth;
	trial.fault.is_forever = is_forever;
	trial.fault.effect = effect;
	trial.fault.error = EIO;
	if (open_guard(&trial, &trial.fault.io) == HAPAX_OK)
		live(&trial);
	has_failed = trial.fault.has_failed;
	reopen_and_judge(&trial);
	done(&trial, live_before, "call", nth);
	return has_failed;
}

static void every_call_of_the_journal_fails(void **state)
{
	double begun = scale_seconds();
	uint64_t step = scale_is_proof() ? 1 : 29; /* each trial syncs a journal dozens of times */
	uint64_t trials = 0;

	(void)state;
	for (int way = 0; way < 6; way++) {
		uint64_t nth = scale_is_proof() ? 1 : 1 + 5 * (uint64_t)way;

		for (; fail_call(nth, way % 2 != 0, (enum fault_io_effect)(way / 2)); nth += step)
			trials++;
		assert_true(nth > 20);
	}
	scale_report(
		"outage: every call of the journal fails", trials, scale_seconds() - begun, true);
}

/* False: there was no such allocation. */
static bool fail_allocation(uint64_t nth, bool is_forever)
{
	int64_t live_before = hx_alloc_live();
	uint64_t before;
	bool has_failed;
	struct trial trial;

	init(&trial);
	before = hx_alloc_count();
	hx_alloc_fail_at(nth, is_forever);
	if (open_guard(&trial, hx_io_system()) == HAPAX_OK)
		live(&trial);
	hx_alloc_fail_at(0, 0);
	has_failed = hx_alloc_count() - before >= nth;
	reopen_and_judge(&trial);
	done(&trial, live_before, is_forever ? "allocations from" : "allocation", nth);
	return has_failed;
}

static void every_allocation_fails(void **state)
{
	double begun = scale_seconds();
	uint64_t step = scale_is_proof() ? 1 : 7;
	uint64_t trials = 0;

	(void)state;
	for (int is_forever = 0; is_forever < 2; is_forever++) {
		uint64_t nth = 1;

		for (; fail_allocation(nth, is_forever != 0); nth += step)
			trials++;
		assert_true(nth > 20);
	}
	scale_report("outage: every allocation fails", trials, scale_seconds() - begun, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_of_the_journal_fails),
		cmocka_unit_test(every_allocation_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
