/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_log_fault.c - every I/O call of a log store fails, once and permanently, in each
 * of three ways: no crash, no leak, no false OK (I11, I13), and what was answered OK
 * is there when the store is opened again (I2).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "store/log/log_store.h"
#include "support/fault_io.h"
#include "support/scale.h"
#include "support/store_case.h"

enum { KEYS = 40, ROUNDS = 3 };

/* What a key was last told. */
enum fate {
	FATE_NONE, /* nothing, or a definite no */
	FATE_UNKNOWN,
	FATE_MARKED,
};

struct trial {
	struct store_case c;
	struct fault_io fault;
	char path[300];
	struct hapax_store *store;
	enum fate fates[KEYS * ROUNDS];
	bool has_latched;
	const char *why;
};

static void key_text(unsigned number, char text[32])
{
	snprintf(text, 32, "key %u with some text", number);
}

static void judge(struct trial *trial, unsigned number, const struct hapax_op *op)
{
	switch (op->status) {
	case HAPAX_OK:
		if (trial->has_latched)
			trial->why = "I11: OK after the store had failed";
		if (op->outcome == HAPAX_OUTCOME_ACQUIRED && trial->fates[number] == FATE_MARKED)
			trial->why = "I2: a key was forgotten";
		trial->fates[number] = FATE_MARKED;
		break;
	case HAPAX_ERR_UNCERTAIN:
		trial->has_latched = true;
		if (trial->fates[number] == FATE_NONE)
			trial->fates[number] = FATE_UNKNOWN;
		break;
	case HAPAX_ERR_FAILED: trial->has_latched = true; break;
	case HAPAX_ERR_LIMIT:
	case HAPAX_ERR_NO_MEMORY: break;
	default: trial->why = "an unexpected status";
	}
}

static void mark_keys(struct trial *trial, unsigned round)
{
	struct hapax_op ops[8];
	char keys[8][32];

	for (unsigned i = 0; i < KEYS; i += 8) {
		unsigned first = round * KEYS + i;

		for (unsigned k = 0; k < 8; k++) {
			key_text(first + k, keys[k]);
			ops[k] = case_op(&trial->c, HAPAX_OP_CHECK, keys[k]);
			ops[k].ttl_ms = round == 0 ? 60000 : 24 * 3600000;
		}
		hapax_store_run(trial->store, ops, 8, NULL);
		for (unsigned k = 0; k < 8; k++)
			judge(trial, first + k, &ops[k]);
	}
}

static enum hapax_status open_store(struct trial *trial, const struct hx_io *io)
{
	struct hapax_error err = {0};
	enum hapax_status status = hx_log_open_on(
		io, trial->c.url, trial->path, &trial->c.options, &trial->store, &err);

	if (status != HAPAX_OK && err.message[0] == '\0')
		trial->why = "open failed without a message";
	return status;
}

/* A store's life, with passes over old segments, while a call fails. */
static void live(struct trial *trial)
{
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;

	trial->store = NULL;
	if (open_store(trial, &trial->fault.io) != HAPAX_OK)
		return;
	for (unsigned round = 0; round < ROUNDS && !trial->why; round++) {
		struct hapax_error err = {0};
		enum hapax_status status;

		mark_keys(trial, round);
		/* A pass writes to the log too. */
		status = hapax_store_sweep(trial->store, &sweep, &err);
		if (status != HAPAX_OK && err.message[0] == '\0')
			trial->why = "sweep failed without a message";
		if (status == HAPAX_ERR_FAILED)
			trial->has_latched = true;
		sweep.done = 0;
	}
	hapax_store_close(trial->store);
}

/* With files that work: is everything there that was promised? */
static void check_all(struct trial *trial)
{
	trial->has_latched = false;
	if (open_store(trial, hx_io_system()) != HAPAX_OK) {
		trial->why = "the store does not open any more";
		return;
	}
	for (unsigned number = 0; number < KEYS * ROUNDS && !trial->why; number++) {
		char key[32];

		key_text(number, key);
		struct hapax_op op = case_op(&trial->c, HAPAX_OP_LOOKUP, key);
		if (hapax_store_run(trial->store, &op, 1, NULL) != HAPAX_OK)
			trial->why = "a lookup failed";
		else if (op.outcome == HAPAX_OUTCOME_ABSENT && trial->fates[number] == FATE_MARKED)
			trial->why = "I2: an acknowledged key is lost";
		else if (op.outcome == HAPAX_OUTCOME_FOUND && trial->fates[number] == FATE_NONE)
			trial->why = "I13: a definite no was a yes";
	}
	hapax_store_close(trial->store);
}

/* False: call nth was never made. */
static bool run_trial(uint64_t nth, bool is_forever, enum fault_io_effect effect, int error)
{
	struct trial trial = {.has_latched = false};
	int64_t live_before = hx_alloc_live();

	store_case_init(&trial.c, "file:");
	snprintf(trial.path, sizeof(trial.path), "%s/store", trial.c.dir.path);
	trial.c.options.segment_bytes = 16384;
	fault_io_init(&trial.fault);
	trial.fault.fail_at = nth;
	trial.fault.is_forever = is_forever;
	trial.fault.effect = effect;
	trial.fault.error = error;
	live(&trial);
	if (!trial.why)
		check_all(&trial);
	bool has_failed = trial.fault.has_failed;
	store_case_done(&trial.c);
	if (!trial.why && hx_alloc_live() != live_before)
		trial.why = "memory was lost";
	if (trial.why)
		printf("# call %llu failing %s, effect %d, errno %d: %s\n", (unsigned long long)nth,
		       is_forever ? "forever" : "once", effect, error, trial.why);
	assert_null(trial.why);
	return has_failed;
}

static void run_all(bool is_forever, enum fault_io_effect effect, int error, const char *what)
{
	uint64_t step = scale_is_proof() ? 1 : 9;
	uint64_t trials = 0;
	double begun = scale_seconds();

	for (uint64_t nth = 1; run_trial(nth, is_forever, effect, error);
	     nth += nth < 30 ? 1 : step)
		trials++;
	scale_report(what, trials, scale_seconds() - begun, true);
	assert_true(trials > 50);
}

static void call_fails_once(void **state)
{
	(void)state;
	run_all(false, FAULT_IO_NOTHING, EIO, "log store, an I/O call fails once");
}

static void call_fails_for_ever(void **state)
{
	(void)state;
	run_all(true, FAULT_IO_NOTHING, EIO, "log store, I/O calls fail forever");
}

static void call_fails_with_half_its_effect(void **state)
{
	(void)state;
	run_all(false, FAULT_IO_HALF, EIO, "log store, writes fail half done");
}

static void call_fails_with_all_its_effect(void **state)
{
	(void)state;
	run_all(false, FAULT_IO_ALL, EIO, "log store, calls fail and were done");
}

static void disk_is_full(void **state)
{
	(void)state;
	run_all(true, FAULT_IO_NOTHING, ENOSPC, "log store, no space from a call on");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(call_fails_once),
		cmocka_unit_test(call_fails_for_ever),
		cmocka_unit_test(call_fails_with_half_its_effect),
		cmocka_unit_test(call_fails_with_all_its_effect),
		cmocka_unit_test(disk_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
