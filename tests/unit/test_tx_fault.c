/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tx_fault.c - hapax_tx_process() while the ground gives way: the n-th call to the
 * system or allocation fails, once or forever, for all n. Whatever happens, the change
 * and the completion are there together or not at all, what was told is true (I13), and
 * the next delivery makes it one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "support/bank.h"
#include "support/scale.h"
#include "support/temp_dir.h"

/* A lock that cannot be had for an error looks like one that is held: soon given up. */
enum { LOCK_TIMEOUT_MS = 5 };

static struct temp_dir dir;
static char path[256];

/* Which step fails, and how. */
static struct {
	long left;
	int error;
	bool is_for_ever;
	bool has_fired;
} injection;

static int begin(void **state)
{
	(void)state;
	temp_dir_init(&dir);
	snprintf(path, sizeof(path), "%s/bank.db", dir.path);
	return 0;
}

static int end(void **state)
{
	(void)state;
	temp_dir_done(&dir);
	return 0;
}

static int fail_in_time(void)
{
	if (injection.left > 0 && --injection.left > 0)
		return 0;
	if (injection.has_fired && !injection.is_for_ever)
		return 0;
	injection.has_fired = true;
	return injection.error;
}

/* How a payment ended, as it was told. */
struct told {
	enum hapax_outcome outcome;
	enum hapax_status status;
	char message[HAPAX_ERROR_MESSAGE_SIZE];
};

/* How often each was told, to see that the trials reach what they are for. */
static struct {
	unsigned paid, undone, uncertain;
} counts;

static struct told tell(const struct bank *bank, enum hapax_outcome outcome)
{
	struct told told = {outcome, bank->err.status, ""};

	counts.paid += outcome == HAPAX_OUTCOME_ACQUIRED;
	counts.uncertain += outcome == HAPAX_OUTCOME_NONE && told.status == HAPAX_ERR_UNCERTAIN;
	counts.undone += outcome == HAPAX_OUTCOME_NONE && told.status != HAPAX_ERR_UNCERTAIN;

	snprintf(told.message, sizeof(told.message), "%s", bank->err.message);
	return told;
}

/* Is what was told true, and does the next delivery make it one? NULL, or what is wrong. */
static const char *judge(
	struct bank *bank, const char *key, const struct told *told, int64_t balance)
{
	int64_t rows = bank_payments(bank, key);
	enum hapax_state state = bank_state(bank, key);

	if (rows != 0 && rows != 1)
		return "paid twice";
	if ((rows == 1) != (state == HAPAX_STATE_DONE))
		return "the payment and its record are apart";
	if (bank_balance(bank) != balance - 10 * rows)
		return "half a payment";
	if (told->outcome == HAPAX_OUTCOME_ACQUIRED && rows != 1)
		return "told that it is paid, and it is not";
	if (told->outcome != HAPAX_OUTCOME_ACQUIRED && told->status != HAPAX_ERR_UNCERTAIN &&
	    rows != 0)
		return "told that it is not paid, and it is";
	if (state == HAPAX_STATE_CLAIMED)
		return "a claim was left behind";
	if (bank_pay(bank, key, false) !=
	    (rows == 1 ? HAPAX_OUTCOME_REPLAY : HAPAX_OUTCOME_ACQUIRED))
		return "the next delivery did not find out";
	if (bank_payments(bank, key) != 1 || bank_balance(bank) != balance - 10)
		return "the next delivery did not make it one";
	return NULL;
}

struct trial {
	const char *journal;
	bool is_in_ours;
	int error; /* 0: memory that runs out */
	bool is_for_ever;
};

static bool survive(const struct trial *trial, long nth)
{
	struct bank bank;
	struct told told;
	const char *wrong;
	int64_t balance;
	char key[32];

	snprintf(key, sizeof(key), "order-%ld", nth);
	bank_open(&bank, path, trial->journal, LOCK_TIMEOUT_MS);
	(void)bank_execute(&bank, "PRAGMA synchronous = FULL");
	balance = bank_balance(&bank);
	injection.left = nth;
	injection.error = trial->error;
	injection.is_for_ever = trial->is_for_ever;
	injection.has_fired = false;
	if (trial->error != 0)
		bank_step_by(&bank, fail_in_time);
	else
		hx_alloc_fail_at((uint64_t)nth, trial->is_for_ever);
	told = tell(&bank, bank_pay(&bank, key, trial->is_in_ours));
	hx_alloc_fail_at(0, 0);
	if (trial->error != 0)
		bank_step_freely(&bank);
	/* It must be over: nothing of it waits for what comes next on this connection. */
	if (sqlite3_get_autocommit(bank.db) == 0)
		fail_msg("step %ld: a transaction was left open", nth);
	bank_close(&bank);

	bank_open(&bank, path, trial->journal, LOCK_TIMEOUT_MS);
	wrong = judge(&bank, key, &told, balance);
	bank_close(&bank);
	if (wrong != NULL)
		fail_msg(
			"%s, %s transaction, %s %s, step %ld: %s (told: %s, %s: %s)",
			trial->journal, trial->is_in_ours ? "our" : "its own",
			trial->error == 0             ? "no memory"
				: trial->error == EIO ? "EIO"
						      : "ENOSPC",
			trial->is_for_ever ? "forever" : "once", nth, wrong,
			hapax_outcome_name(told.outcome), hapax_status_name(told.status),
			told.message);
	/* Whether memory was used up is unknown: as many as a payment ever takes. */
	return trial->error != 0 ? injection.has_fired : nth < 40;
}

static long try_all(const struct trial *trial)
{
	long nth = 1;

	while (survive(trial, nth))
		nth++;
	return nth - 1;
}

static void every_call_to_the_system_may_fail(void **state)
{
	static const char *const journals[] = {"WAL", "DELETE"};
	static const int errors[] = {EIO, ENOSPC};
	double begun = scale_seconds();
	long trials = 0;

	for (unsigned i = 0; i < 16; i++) {
		struct trial trial = {
			journals[i & 1], (i & 2) != 0, errors[(i >> 2) & 1], (i & 8) != 0};
		long count = try_all(&trial);

		assert_true(count > 30);
		trials += count;
		(void)end(state);
		(void)begin(state);
	}
	printf("# told: %u paid, %u undone, %u uncertain\n", counts.paid, counts.undone,
	       counts.uncertain);
	assert_true(counts.paid > 0);
	assert_true(counts.undone > 0);
	assert_true(counts.uncertain > 0);
	scale_report(
		"I13: a call fails in a transaction", (uint64_t)trials, scale_seconds() - begun,
		true);
}

static void every_allocation_may_fail(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct trial trial = {"WAL", (i & 1) != 0, 0, (i & 2) != 0};

		(void)try_all(&trial);
		(void)end(state);
		(void)begin(state);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_call_to_the_system_may_fail, begin, end),
		cmocka_unit_test_setup_teardown(every_allocation_may_fail, begin, end),
	};

	/* No machine crashes here, so nothing has to wait for a disk. */
	if (access("/dev/shm", W_OK) == 0)
		(void)setenv("TMPDIR", "/dev/shm", 0);
	return cmocka_run_group_tests_name("tx_fault", tests, NULL, NULL);
}
