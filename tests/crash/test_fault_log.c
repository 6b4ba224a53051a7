/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fault_log.c - the n-th call of the disk, and the n-th allocation, fails, once or
 * permanently, for every n of a run that goes through everything a store does.
 *
 *  I2   what was answered OK is there after a reopen and after a power cut
 *  I13  what was answered with a definite error has left nothing
 *  I11  after an UNCERTAIN answer nothing is answered OK on that handle
 *
 * and nothing leaks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/alloc.h"
#include "crash/image.h"
#include "crash/log_subject.h"
#include "support/scale.h"
#include "support/store_case.h"
#include "support/virtual_clock.h"

enum { KEYS = 5, BODY_SIZE = 6000 };

static const char *const key_names[KEYS] = {"a", "b", "c", "d", "e"};
static unsigned char body[BODY_SIZE];

/* In which states each key may be, a bit for each. */
struct oracle {
	unsigned allowed[KEYS];
	uint64_t tokens[KEYS]; /* 0: not known */
	bool is_latched;       /* UNCERTAIN or FAILED was answered */
	bool broke_latch;
	bool broke_result; /* another one, or none, was handed out */
};

struct trial {
	struct sim_disk *disk;
	struct hx_virtual_clock clock;
	struct hapax_store_options options;
	struct hapax_store *store;
	struct oracle oracle;
	uint64_t attempts;
};

static void judge(struct trial *trial, int key, const struct hapax_op *op, enum hapax_state next)
{
	struct oracle *oracle = &trial->oracle;
	bool changes =
		op->outcome == HAPAX_OUTCOME_ACQUIRED || op->outcome == HAPAX_OUTCOME_APPLIED;

	if (op->status == HAPAX_OK) {
		oracle->broke_latch |= oracle->is_latched && changes;
		if (changes)
			oracle->allowed[key] = 1u << next;
	} else if (op->status == HAPAX_ERR_UNCERTAIN) {
		oracle->allowed[key] |= 1u << next;
	}
	oracle->is_latched |= op->status == HAPAX_ERR_UNCERTAIN || op->status == HAPAX_ERR_FAILED;
}

static void step(struct trial *trial, int key, enum hapax_op_type type, enum hapax_state next)
{
	struct hapax_result result = {.kind = HAPAX_RESULT_BYTES, .body = {body, BODY_SIZE}};
	bool needs_token = type >= HAPAX_OP_RENEW && type <= HAPAX_OP_PARK;
	struct hapax_op op = {
		.type = type,
		.key = hapax_bytes_from_text(key_names[key]),
		.attempt_id = case_attempt_id(++trial->attempts),
		.ttl_ms = 60000,
		.lease_ms = 1000,
		.result = &result,
	};

	if (needs_token && trial->oracle.tokens[key] == 0)
		return;
	if (needs_token)
		op.token = trial->oracle.tokens[key];
	(void)hapax_store_run(trial->store, &op, 1, NULL);
	judge(trial, key, &op, next);
	if (type == HAPAX_OP_CLAIM)
		trial->oracle.tokens[key] = op.status == HAPAX_OK ? op.token : 0;
}

/* Two claims in one step. */
static void step_group(struct trial *trial)
{
	struct hapax_op ops[2];

	for (int i = 0; i < 2; i++)
		ops[i] = (struct hapax_op){
			.type = HAPAX_OP_CLAIM,
			.key = hapax_bytes_from_text(key_names[2 + i]),
			.attempt_id = case_attempt_id(1000),
			.ttl_ms = 60000,
			.lease_ms = 1000};
	ops[0].flags = HAPAX_OP_LINKED | HAPAX_OP_ALL_OR_NOTHING;
	(void)hapax_store_run(trial->store, ops, 2, NULL);
	for (int i = 0; i < 2; i++) {
		judge(trial, 2 + i, &ops[i], HAPAX_STATE_CLAIMED);
		trial->oracle.tokens[2 + i] =
			ops[i].status == HAPAX_OK && ops[i].outcome == HAPAX_OUTCOME_ACQUIRED
			? ops[i].token
			: 0;
	}
}

/* The result, or its size: on a full disk an end is kept without what does not fit. */
static bool has_result(const struct hapax_record *record)
{
	return case_bytes_are(record->result.body, body, BODY_SIZE) ||
		(record->result.body.size == 0 && record->result.omitted_bytes == BODY_SIZE);
}

/* Whatever else fails, what is handed out as a result is one. */
static int check_record(const struct hapax_record *record, void *context)
{
	struct trial *trial = context;

	if (record->state == HAPAX_STATE_DONE && record->origin == HAPAX_ORIGIN_CLAIM)
		trial->oracle.broke_result |= !has_result(record);
	return 0;
}

static void scan(struct trial *trial)
{
	struct hapax_cursor cursor = {0};

	(void)hapax_store_scan(trial->store, NULL, &cursor, check_record, trial, NULL);
}

/* A claim of what is done, with its result. */
static void replay(struct trial *trial, int key)
{
	struct hapax_buf *buf = hapax_buf_new(1 << 20);
	struct hapax_record record;
	struct hapax_op op = {
		.type = HAPAX_OP_LOOKUP,
		.key = hapax_bytes_from_text(key_names[key]),
		.record = &record,
		.buf = buf};

	if (buf == NULL)
		return;
	if (hapax_store_run(trial->store, &op, 1, NULL) == HAPAX_OK &&
	    op.outcome == HAPAX_OUTCOME_FOUND)
		(void)check_record(&record, trial);
	/* The store knows that it is done: no caller may act as if it was unavailable. */
	trial->oracle.broke_result |= op.status == HAPAX_ERR_UNAVAILABLE;
	hapax_buf_free(buf);
}

static void sweep(struct trial *trial)
{
	for (int i = 0; i < 4; i++) {
		struct hapax_sweep piece = HAPAX_SWEEP_INIT;

		if (hapax_store_sweep(trial->store, &piece, NULL) != HAPAX_OK || piece.done)
			break;
	}
}

/* Large results, so that segments fill up and passes have something to do. */
static void run_steps(struct trial *trial)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;
	enum hapax_outcome outcome;

	step(trial, 0, HAPAX_OP_CLAIM, HAPAX_STATE_CLAIMED);
	step(trial, 0, HAPAX_OP_COMPLETE, HAPAX_STATE_DONE);
	step(trial, 0, HAPAX_OP_LOOKUP, HAPAX_STATE_DONE);
	step(trial, 1, HAPAX_OP_SET, HAPAX_STATE_DONE);
	step_group(trial);
	step(trial, 2, HAPAX_OP_PARK, HAPAX_STATE_PARKED);
	step(trial, 3, HAPAX_OP_RELEASE, HAPAX_STATE_FAILED);
	(void)hapax_store_check(
		trial->store, hapax_bytes_from_text("soon gone"), 1, &outcome, NULL);
	hx_virtual_clock_advance(&trial->clock, 1);
	scan(trial);
	sweep(trial);
	replay(trial, 0);
	(void)hapax_store_stats(trial->store, &stats, NULL, NULL, NULL);
	step(trial, 4, HAPAX_OP_SET, HAPAX_STATE_DONE);
	step(trial, 1, HAPAX_OP_FORGET, HAPAX_STATE_ABSENT);
	step(trial, 2, HAPAX_OP_COMPLETE, HAPAX_STATE_DONE);
	step(trial, 3, HAPAX_OP_CLAIM, HAPAX_STATE_CLAIMED);
	sweep(trial);
	step(trial, 4, HAPAX_OP_SET, HAPAX_STATE_DONE);
	sweep(trial);
	replay(trial, 0);
	replay(trial, 2);
	scan(trial);
}

static void trial_begin(struct trial *trial)
{
	*trial = (struct trial){.oracle = {.allowed = {1, 1, 1, 1, 1}}};
	hx_random_seed_for_tests(11);
	trial->disk = sim_disk_new(12);
	hx_virtual_clock_init(&trial->clock, CASE_EPOCH_MS);
	trial->options = (struct hapax_store_options)HAPAX_STORE_OPTIONS_INIT;
	trial->options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	trial->options.keys_max = IMAGE_KEYS_MAX;
	trial->options.clock = hx_virtual_clock_clock(&trial->clock);
}

static enum hapax_status trial_open(struct trial *trial, struct hapax_error *err)
{
	return log_subject.open(
		sim_disk_io(trial->disk), IMAGE_PATH, &trial->options, &trial->store, err);
}

/* The whole life of a store, twice, with an open in between. */
static void trial_run(struct trial *trial)
{
	for (int life = 0; life < 2; life++) {
		struct hapax_error err = {0};

		if (trial_open(trial, &err) != HAPAX_OK) {
			trial->store = NULL;
			continue;
		}
		trial->oracle.is_latched = false;
		if (life == 0)
			run_steps(trial);
		else
			step(trial, 4, HAPAX_OP_FORGET, HAPAX_STATE_ABSENT);
		replay(trial, 0);
		hapax_store_close(trial->store);
		trial->store = NULL;
	}
}

static void must_agree(struct trial *trial, struct sim_disk *disk, const char *when)
{
	struct hx_virtual_clock later;
	struct hapax_error err = {0};
	struct hapax_store *store = NULL;
	struct hapax_buf *buf = hapax_buf_new(1 << 20);

	clock_after_reboot(&later, &trial->clock, 0);
	trial->options.clock = &later.clock;
	if (log_subject.open(sim_disk_io(disk), IMAGE_PATH, &trial->options, &store, &err) !=
	    HAPAX_OK)
		fail_msg("%s: %s", when, err.message);
	for (int key = 0; key < KEYS; key++) {
		struct hapax_record record = {.state = HAPAX_STATE_ABSENT};
		struct hapax_op op = {
			.type = HAPAX_OP_LOOKUP,
			.key = hapax_bytes_from_text(key_names[key]),
			.record = &record,
			.buf = buf};

		assert_int_equal(hapax_store_run(store, &op, 1, NULL), HAPAX_OK);
		if (!(trial->oracle.allowed[key] & 1u << record.state))
			fail_msg(
				"%s: key %s is %s, allowed were %#x", when, key_names[key],
				hapax_state_name(record.state), trial->oracle.allowed[key]);
		if (record.state == HAPAX_STATE_DONE)
			assert_true(has_result(&record));
	}
	hapax_store_close(store);
	hapax_buf_free(buf);
	trial->options.clock = hx_virtual_clock_clock(&trial->clock);
}

/* What the files hold now, for one who starts again, and after a power cut. */
static void trial_judge(struct trial *trial, const char *what, uint64_t nth)
{
	struct sim_disk *image = sim_disk_clone(trial->disk);
	struct sim_fates fates;
	struct hx_prng prng;
	char when[96];

	if (trial->oracle.broke_latch)
		fail_msg("I11: %s, n %llu: OK after a failure", what, (unsigned long long)nth);
	if (trial->oracle.broke_result)
		fail_msg("%s, n %llu: a wrong result", what, (unsigned long long)nth);
	snprintf(when, sizeof(when), "%s, n %llu, power cut", what, (unsigned long long)nth);
	sim_fates_lose_all(&fates);
	hx_prng_seed(&prng, nth);
	sim_disk_crash(image, &fates, &prng);
	must_agree(trial, image, when);
	sim_disk_free(image);
	snprintf(when, sizeof(when), "%s, n %llu, reopened", what, (unsigned long long)nth);
	sim_disk_kill(trial->disk);
	must_agree(trial, trial->disk, when);
}

static void trial_end(struct trial *trial)
{
	sim_disk_free(trial->disk);
	hx_random_seed_for_tests(0);
}

/* How many of those calls the run makes when nothing fails. */
static uint64_t count_calls(unsigned calls)
{
	struct trial trial;
	uint64_t count;

	trial_begin(&trial);
	trial_run(&trial);
	count = calls ? sim_disk_calls(trial.disk, calls) : 0;
	trial_judge(&trial, "without a failure", 0);
	trial_end(&trial);
	return count;
}

static void run_all(const char *what, unsigned calls, int error)
{
	uint64_t total = count_calls(calls);
	uint64_t runs = scale_count(total, 200);
	uint64_t stride = total > runs ? total / runs : 1;
	double begin = scale_seconds();
	uint64_t done = 0, struck = 0;

	assert_true(total > 0);
	for (uint64_t nth = 1; nth <= total; nth += stride)
		for (int forever = 0; forever < 2; forever++) {
			struct trial trial;
			int64_t live = hx_alloc_live();

			trial_begin(&trial);
			sim_disk_fail_at(trial.disk, calls, nth, forever, error);
			trial_run(&trial);
			struck += sim_disk_failures(trial.disk) > 0;
			sim_disk_fail_at(trial.disk, SIM_ANY, 0, false, 0);
			trial_judge(&trial, what, nth);
			trial_end(&trial);
			assert_int_equal(hx_alloc_live(), live);
			done++;
		}
	assert_int_equal(struck, done);
	scale_report(what, done, scale_seconds() - begin, true);
}

static void the_nth_call_fails(void **state)
{
	(void)state;
	run_all("I11 I13: every call of the disk, EIO", SIM_ANY, EIO);
}

static void the_disk_is_full_at_the_nth_call(void **state)
{
	(void)state;
	run_all("I12 I13: every change of the disk, ENOSPC", SIM_CHANGING, ENOSPC);
}

static void the_disk_is_read_only_at_the_nth_call(void **state)
{
	(void)state;
	run_all("I11 I13: every change of the disk, EROFS", SIM_CHANGING, EROFS);
}

static void the_nth_sync_fails(void **state)
{
	(void)state;
	run_all("I11: every sync", SIM_FDATASYNC | SIM_FSYNC_DIR | SIM_PWRITE, EIO);
}

/* Nothing fails, but each call moves less than it was asked to. */
static void reads_and_writes_are_short(void **state)
{
	uint64_t total = count_calls(SIM_PREAD | SIM_PWRITE);
	double begin = scale_seconds();

	(void)state;
	for (uint64_t nth = 1; nth <= total; nth += total / 50 + 1) {
		struct trial trial;

		trial_begin(&trial);
		sim_disk_fail_at(trial.disk, SIM_PREAD | SIM_PWRITE, nth, true, SIM_SHORT);
		trial_run(&trial);
		sim_disk_fail_at(trial.disk, SIM_ANY, 0, false, 0);
		assert_false(trial.oracle.is_latched);
		trial_judge(&trial, "short", nth);
		trial_end(&trial);
	}
	scale_report("short reads and writes", total, scale_seconds() - begin, true);
}

static void the_nth_allocation_fails(void **state)
{
	double begin = scale_seconds();
	uint64_t total, runs, stride, done = 0;
	struct trial trial;

	(void)state;
	trial_begin(&trial);
	total = hx_alloc_count();
	trial_run(&trial);
	total = hx_alloc_count() - total;
	trial_end(&trial);
	runs = scale_count(total, 200);
	stride = total > runs ? total / runs : 1;
	for (uint64_t nth = 1; nth <= total; nth += stride)
		for (int forever = 0; forever < 2; forever++) {
			int64_t live = hx_alloc_live();

			trial_begin(&trial);
			hx_alloc_fail_at(nth, forever);
			trial_run(&trial);
			hx_alloc_fail_at(0, 0);
			trial_judge(&trial, "no memory", nth);
			trial_end(&trial);
			assert_int_equal(hx_alloc_live(), live);
			done++;
		}
	scale_report("I13: every allocation", done, scale_seconds() - begin, true);
}

/* I12: a disk that fills up says LIMIT, loses nothing, and works again when there is room. */
static void a_full_disk_recovers(void **state)
{
	double begin = scale_seconds();
	uint64_t done = 0;

	(void)state;
	for (uint64_t room = 4; room <= 40; room++) {
		struct trial trial;

		trial_begin(&trial);
		sim_disk_set_room(trial.disk, room * 4096);
		trial_run(&trial);
		sim_disk_set_room(trial.disk, UINT64_MAX);
		trial_judge(&trial, "full disk", room);
		trial_end(&trial);
		done++;
	}
	scale_report("I12: disks of 16 to 160 KiB fill up", done, scale_seconds() - begin, true);
}

/* Take all space that is left for new records. */
static void check_until_full(struct trial *trial)
{
	enum hapax_status status = HAPAX_OK;

	for (int i = 0; status == HAPAX_OK; i++) {
		enum hapax_outcome outcome;
		char key[24];

		assert_true(i < 1000);
		snprintf(key, sizeof(key), "fills %d", i);
		status = hapax_store_check(
			trial->store, hapax_bytes_from_text(key), 60000, &outcome, NULL);
	}
	assert_string_equal(hapax_status_name(status), "limit");
}

static void must_step(struct trial *trial, int key, enum hapax_op_type type, enum hapax_state next)
{
	trial->oracle.allowed[key] = 0;
	step(trial, key, type, next);
	if (trial->oracle.tokens[key] != 0)
		assert_int_equal(trial->oracle.allowed[key], 1u << next);
	else
		trial->oracle.allowed[key] = 1u << HAPAX_STATE_ABSENT;
}

/* The disk as a killed process leaves it. */
static void kill_and_open(struct trial *trial, uint64_t room_bytes)
{
	struct sim_disk *image = sim_disk_clone(trial->disk);
	struct hapax_error err = {0};

	hapax_store_close(trial->store);
	sim_disk_free(trial->disk);
	trial->disk = image;
	sim_disk_kill(image);
	sim_disk_set_room(image, room_bytes);
	assert_int_equal(trial_open(trial, &err), HAPAX_OK);
}

/* I12: the holder of a claim can end it, whatever the disk has left, also after a power cut. */
static void live_claims_end_on_a_full_disk(void **state)
{
	double begin = scale_seconds();
	uint64_t done = 0, held = 0;

	(void)state;
	for (uint64_t room = 16; room <= 80; room++) {
		struct hapax_error err = {0};
		struct trial trial;

		trial_begin(&trial);
		trial.options.keys_max = 0;
		sim_disk_set_room(trial.disk, room * 4096);
		if (trial_open(&trial, &err) == HAPAX_OK) {
			for (int key = 0; key < KEYS; key++) {
				step(&trial, key, HAPAX_OP_CLAIM, HAPAX_STATE_CLAIMED);
				held += trial.oracle.tokens[key] != 0;
			}
			check_until_full(&trial);
			must_step(&trial, 0, HAPAX_OP_RENEW, HAPAX_STATE_CLAIMED);
			must_step(&trial, 0, HAPAX_OP_COMPLETE, HAPAX_STATE_DONE);
			must_step(&trial, 1, HAPAX_OP_RELEASE, HAPAX_STATE_FAILED);
			must_step(&trial, 2, HAPAX_OP_PARK, HAPAX_STATE_PARKED);
			kill_and_open(&trial, room * 4096);
			must_step(&trial, 3, HAPAX_OP_COMPLETE, HAPAX_STATE_DONE);
			check_until_full(&trial);
			must_step(&trial, 4, HAPAX_OP_COMPLETE, HAPAX_STATE_DONE);
			hapax_store_close(trial.store);
		}
		sim_disk_set_room(trial.disk, UINT64_MAX);
		trial_judge(&trial, "live claims on a full disk", room);
		trial_end(&trial);
		done++;
	}
	/* It was put to the test. */
	assert_true(held > done);
	scale_report("I12: live claims end on full disks", done, scale_seconds() - begin, true);
}

static void claim_and_lapse(struct trial *trial)
{
	struct hapax_error err = {0};

	assert_int_equal(trial_open(trial, &err), HAPAX_OK);
	step(trial, 0, HAPAX_OP_CLAIM, HAPAX_STATE_CLAIMED);
	assert_true(trial->oracle.tokens[0] != 0);
	hx_virtual_clock_advance(&trial->clock, 2000);
}

/*
 * I13: its lease is over, and another takes the key and it completes in one frame, which is
 * never written. FENCED would be the end of its result, though, as far as is known, it
 * holds the key. What was refused before it came to the frame is refused.
 */
static void no_refusal_rests_upon_what_was_not_written(void **state)
{
	struct trial trial;
	struct hapax_result result = {.kind = HAPAX_RESULT_BYTES, .body = {body, BODY_SIZE}};
	struct hapax_op ops[] = {
		{.type = HAPAX_OP_CLAIM, .attempt_id = case_attempt_id(77)},
		{.type = HAPAX_OP_COMPLETE, .result = &result},
		{.type = HAPAX_OP_RENEW},
		{.type = HAPAX_OP_FORGET},
		{.type = HAPAX_OP_LOOKUP},
		{.type = HAPAX_OP_COMPLETE}, /* without a token */
	};
	enum { OPS = sizeof(ops) / sizeof(ops[0]), REFUSED = OPS - 1 };
	struct sim_fates fates;
	struct hx_prng prng;

	(void)state;
	sim_fates_lose_all(&fates);
	hx_prng_seed(&prng, 1);
	trial_begin(&trial);
	claim_and_lapse(&trial);
	for (int i = 0; i < OPS; i++)
		ops[i].key = hapax_bytes_from_text(key_names[0]);
	ops[1].token = ops[2].token = trial.oracle.tokens[0];
	sim_disk_fail_at(trial.disk, SIM_PWRITE | SIM_FDATASYNC, 1, true, EIO);
	(void)hapax_store_run(trial.store, ops, OPS, NULL);
	sim_disk_fail_at(trial.disk, SIM_ANY, 0, false, 0);
	for (int i = 0; i < REFUSED; i++) {
		assert_int_equal(ops[i].status, HAPAX_ERR_UNCERTAIN);
		assert_int_equal(ops[i].outcome, HAPAX_OUTCOME_NONE);
	}
	assert_int_equal(ops[REFUSED].status, HAPAX_ERR_INVALID);
	hapax_store_close(trial.store);
	sim_disk_crash(trial.disk, &fates, &prng);
	assert_int_equal(trial_open(&trial, NULL), HAPAX_OK);
	assert_int_equal(hapax_store_run(trial.store, &ops[1], 1, NULL), HAPAX_OK);
	assert_int_equal(ops[1].outcome, HAPAX_OUTCOME_APPLIED);
	hapax_store_close(trial.store);
	trial_end(&trial);
}

/* I14: a second opener is told who holds it, and changes nothing. */
static void a_second_opener_is_refused(void **state)
{
	struct hapax_error err = {0};
	struct hapax_store *second = NULL;
	struct trial trial;

	(void)state;
	trial_begin(&trial);
	assert_int_equal(trial_open(&trial, &err), HAPAX_OK);
	assert_int_equal(
		log_subject.open(
			sim_disk_io(trial.disk), IMAGE_PATH, &trial.options, &second, &err),
		HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "in use by process"));
	run_steps(&trial);
	hapax_store_close(trial.store);
	assert_int_equal(
		log_subject.open(
			sim_disk_io(trial.disk), IMAGE_PATH, &trial.options, &second, &err),
		HAPAX_OK);
	hapax_store_close(second);
	trial_end(&trial);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_nth_call_fails),
		cmocka_unit_test(the_disk_is_full_at_the_nth_call),
		cmocka_unit_test(the_disk_is_read_only_at_the_nth_call),
		cmocka_unit_test(the_nth_sync_fails),
		cmocka_unit_test(reads_and_writes_are_short),
		cmocka_unit_test(the_nth_allocation_fails),
		cmocka_unit_test(a_full_disk_recovers),
		cmocka_unit_test(live_claims_end_on_a_full_disk),
		cmocka_unit_test(no_refusal_rests_upon_what_was_not_written),
		cmocka_unit_test(a_second_opener_is_refused),
	};

	memset(body, 'r', sizeof(body));
	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests_name("fault_log", tests, NULL, NULL);
}
