/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_log_store.c - what is special about file: threads, the disk that a store takes,
 * memory and time of an open. Its directory: test_log_directory.c; crashes and damage:
 * tests/crash.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread.h"
#include "support/crowd.h"
#include "support/log_case.h"
#include "support/scale.h"

#define HOUR_MS INT64_C(3600000)

/* A torn frame at the end, which was never acknowledged, is cut, and kept for people. */
static void torn_tail_is_cut(void **state)
{
	struct store_case *c = *state;
	char path[512], copy[200], command[1200];
	unsigned char byte;
	unsigned count;

	assert_int_equal(log_case_check(c, "first"), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(log_case_check(c, "second"), HAPAX_OUTCOME_ACQUIRED);
	/* As a power cut would leave it: nothing of the end is written. */
	snprintf(copy, sizeof(copy), "%.150s/copy", c->dir.path);
	snprintf(command, sizeof(command), "cp -r '%s' '%s'", log_case_directory(c), copy);
	assert_int_equal(system(command), 0);
	snprintf(path, sizeof(path), "%s/log-0000000000000001.seg", copy);
	int file = open(path, O_RDWR);
	assert_true(file >= 0);
	/* The second frame begins in the third block; its first entry lies 128 bytes behind. */
	assert_int_equal(pread(file, &byte, 1, 2 * 4096 + 130), 1);
	byte ^= 0x40;
	assert_int_equal(pwrite(file, &byte, 1, 2 * 4096 + 130), 1);
	assert_int_equal(close(file), 0);

	log_case_close(c);
	snprintf(c->url, sizeof(c->url), "file:%s", copy);
	store_case_open(c);
	log_case_measure(copy, "log-0000000000000001.seg.cut-", &count);
	assert_int_equal(count, 1);
	assert_int_equal(case_state(c, "first"), HAPAX_STATE_DONE);
	assert_int_equal(case_state(c, "second"), HAPAX_STATE_ABSENT);
	assert_int_equal(log_case_check(c, "third"), HAPAX_OUTCOME_ACQUIRED);
	log_case_measure(copy, "log-", &count);
	assert_int_equal(count, 3); /* the old one, what was cut, the new one */
	store_case_reopen(c);
	assert_int_equal(case_state(c, "first"), HAPAX_STATE_DONE);
	assert_int_equal(case_state(c, "third"), HAPAX_STATE_DONE);
}

/* The same damage with something behind it is damage, and says where. */
static void damage_before_the_end_is_refused(void **state)
{
	struct store_case *c = *state;
	char path[512];
	unsigned char byte;

	assert_int_equal(log_case_check(c, "first"), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(log_case_check(c, "second"), HAPAX_OUTCOME_ACQUIRED);
	log_case_close(c);
	snprintf(path, sizeof(path), "%s/log-0000000000000001.seg", log_case_directory(c));
	int file = open(path, O_RDWR);
	assert_true(file >= 0);
	assert_int_equal(pread(file, &byte, 1, 2 * 4096 + 130), 1);
	byte ^= 0x40;
	assert_int_equal(pwrite(file, &byte, 1, 2 * 4096 + 130), 1);
	log_case_refuses(c, c->url, HAPAX_ERR_CORRUPT, "log-0000000000000001.seg at offset 8192");
	log_case_refuses(c, c->url, HAPAX_ERR_CORRUPT, "LSN");
	log_case_refuses(c, c->url, HAPAX_ERR_CORRUPT, "at risk");
	byte ^= 0x40;
	assert_int_equal(pwrite(file, &byte, 1, 2 * 4096 + 130), 1);
	assert_int_equal(close(file), 0);
	store_case_open(c);
	assert_int_equal(log_case_check(c, "second"), HAPAX_OUTCOME_REPLAY);
}

static void fill(struct store_case *c, const char *prefix, unsigned count, int64_t ttl_ms)
{
	struct hapax_op ops[64];
	char keys[64][40];

	for (unsigned done = 0; done < count; done += 64) {
		for (unsigned i = 0; i < 64; i++) {
			snprintf(keys[i], sizeof(keys[i]), "%s %u", prefix, done + i);
			ops[i] = case_op(c, HAPAX_OP_CHECK, keys[i]);
			ops[i].ttl_ms = ttl_ms;
		}
		assert_int_equal(hapax_store_run(c->store, ops, 64, NULL), HAPAX_OK);
	}
}

/* Disk: at most twice what lives, four segments and the reserve, a segment, after a pass. A8: expiry gives it back. */
static void disk_is_bounded_and_given_back(void **state)
{
	struct store_case *c = *state;
	enum { ENTRY = 80 };
	/* Hundreds of class segments, not thousands: every pass writes a manifest of them. */
	const uint64_t segment = scale_is_proof() ? 262144 : 65536;
	unsigned count = (unsigned)scale_count(200000, 20000) / 64 * 64;
	unsigned classes, logs;
	uint64_t bytes;

	/* In a new place: the first segment of the other one has the default size. */
	log_case_close(c);
	snprintf(c->url, sizeof(c->url), "file:%.150s/small", c->dir.path);
	c->options.segment_bytes = segment;
	store_case_open(c);
	/* One at a time is the worst: a block for each key. */
	for (unsigned i = 0; i < 500; i++) {
		char key[32];

		snprintf(key, sizeof(key), "lone %u", i);
		assert_int_equal(log_case_check(c, key), HAPAX_OUTCOME_ACQUIRED);
	}
	fill(c, "day", count, 20 * HOUR_MS);
	fill(c, "week", count, 6 * 24 * HOUR_MS);
	case_sweep(c);
	case_sweep(c);
	bytes = log_case_measure(log_case_directory(c), "day-", &classes);
	assert_true(bytes <= 2 * (uint64_t)(2 * count + 500) * ENTRY + 5 * segment + 3 * 4096);
	assert_true(classes >= 1);
	log_case_measure(log_case_directory(c), "log-", &logs);
	assert_true(logs <= 3);

	/* They leave as whole segments; the others stay. */
	store_case_advance(c, 21 * HOUR_MS);
	case_sweep(c);
	case_sweep(c);
	bytes = log_case_measure(log_case_directory(c), "day-", &classes);
	assert_int_equal(classes, 0);
	assert_true(bytes <= 2 * (uint64_t)count * ENTRY + 5 * segment + 3 * 4096);
	store_case_reopen(c);
	assert_int_equal(case_stats(c).keys, count);
	assert_int_equal(case_state(c, "week 7"), HAPAX_STATE_DONE);
	assert_int_equal(case_state(c, "day 7"), HAPAX_STATE_ABSENT);
	store_case_advance(c, 6 * 24 * HOUR_MS);
	case_sweep(c);
	case_sweep(c);
	bytes = log_case_measure(log_case_directory(c), "week-", &classes);
	assert_int_equal(classes, 0);
	assert_true(bytes <= 6 * segment);
}

/* Each key of a row is set, or forgotten, forever and alone: a frame of its own. */
static void churn(struct store_case *c, enum hapax_op_type type, unsigned first, unsigned count)
{
	struct hapax_result result = {
		.kind = HAPAX_RESULT_BYTES, .body = hapax_bytes_from_text("value")};

	for (unsigned i = first; i < first + count; i++) {
		struct hapax_op op;
		char key[32];

		snprintf(key, sizeof(key), "churn %u", i);
		op = case_op(c, type, key);
		op.ttl_ms = HAPAX_TTL_FOREVER;
		op.result = type == HAPAX_OP_SET ? &result : NULL;
		assert_int_equal(case_run(c, &op), HAPAX_OK);
		assert_int_equal(op.outcome, HAPAX_OUTCOME_APPLIED);
	}
}

/*
 * The same bound where nothing ever expires: what was forgotten or replaced leaves a REMOVE,
 * and that goes when there is nothing left that it could hold back. The old keys that live, in
 * the oldest class segments, must not keep them all.
 */
static void disk_is_bounded_when_nothing_expires(void **state)
{
	struct store_case *c = *state;
	enum { SEGMENT = 65536, ENTRY = 88, OLD = 320, EACH = 40, OVER = 20 };
	unsigned rounds = (unsigned)scale_count(400, 40);
	uint64_t allowed = 2 * (uint64_t)(OLD + OVER) * ENTRY + 5 * SEGMENT + 3 * 4096;
	unsigned classes;

	log_case_close(c);
	snprintf(c->url, sizeof(c->url), "file:%.150s/small", c->dir.path);
	c->options.segment_bytes = SEGMENT;
	store_case_open(c);
	fill(c, "old", OLD, HAPAX_TTL_FOREVER);
	for (unsigned round = 0; round < rounds; round++) {
		unsigned first = OVER + round * EACH;

		/* Copied, then removed: the sweep between them sees a full segment. */
		churn(c, HAPAX_OP_SET, first, EACH);
		churn(c, HAPAX_OP_SET, 0, OVER);
		case_sweep(c);
		churn(c, HAPAX_OP_FORGET, first, EACH);
		case_sweep(c);
		if (round % 8 == 7)
			store_case_reopen(c);
		if (log_case_measure(log_case_directory(c), "ever-", &classes) > allowed)
			fail_msg(
				"round %u: %llu bytes, allowed %llu", round,
				(unsigned long long)log_case_measure(
					log_case_directory(c), "ever-", &classes),
				(unsigned long long)allowed);
	}
	/* It was put to the test: records were copied, and what was forgotten stays so. */
	assert_true(classes >= 1);
	store_case_reopen(c);
	assert_int_equal(case_stats(c).keys, OLD + OVER);
	assert_int_equal(case_state(c, "old 7"), HAPAX_STATE_DONE);
	assert_int_equal(case_state(c, "churn 7"), HAPAX_STATE_DONE);
	assert_int_equal(case_state(c, "churn 27"), HAPAX_STATE_ABSENT);
}

/* A version that is gone does not come back when its successor has expired: passes, classes, reopening. */
static void old_versions_stay_dead(void **state)
{
	struct store_case *c = *state;
	struct hapax_result result = {
		.kind = HAPAX_RESULT_BYTES, .body = hapax_bytes_from_text("old")};
	struct hapax_op op;

	c->options.segment_bytes = 16384;
	store_case_reopen(c);
	for (int i = 0; i < 3; i++) {
		char key[16];

		snprintf(key, sizeof(key), "k%d", i);
		op = case_op(c, HAPAX_OP_SET, key);
		op.ttl_ms = 30 * 24 * HOUR_MS;
		op.result = &result;
		assert_int_equal(case_run(c, &op), HAPAX_OK);
	}
	fill(c, "so that the segment fills", 640, HOUR_MS);
	case_sweep(c);
	/* Now they are in a class segment: one is forgotten, one expires early, one is replaced. */
	op = case_op(c, HAPAX_OP_FORGET, "k0");
	assert_int_equal(case_run(c, &op), HAPAX_OK);
	op = case_op(c, HAPAX_OP_EXPIRE, "k1");
	op.ttl_ms = 2 * HOUR_MS;
	assert_int_equal(case_run(c, &op), HAPAX_OK);
	op = case_op(c, HAPAX_OP_SET, "k2");
	op.ttl_ms = 2 * HOUR_MS;
	result.body = hapax_bytes_from_text("new");
	op.result = &result;
	assert_int_equal(case_run(c, &op), HAPAX_OK);
	fill(c, "and fills again", 640, HOUR_MS);
	case_sweep(c);
	store_case_reopen(c);
	assert_int_equal(case_state(c, "k0"), HAPAX_STATE_ABSENT);
	assert_int_equal(case_state(c, "k1"), HAPAX_STATE_DONE);
	assert_int_equal(case_state(c, "k2"), HAPAX_STATE_DONE);
	assert_true(case_bytes_are(c->record.result.body, "new", 3));
	store_case_advance(c, 3 * HOUR_MS);
	case_sweep(c);
	fill(c, "a third time", 640, HOUR_MS);
	case_sweep(c);
	for (int i = 0; i < 2; i++) {
		store_case_reopen(c);
		assert_int_equal(case_state(c, "k0"), HAPAX_STATE_ABSENT);
		assert_int_equal(case_state(c, "k1"), HAPAX_STATE_ABSENT);
		assert_int_equal(case_state(c, "k2"), HAPAX_STATE_ABSENT);
		store_case_advance(c, 2 * HOUR_MS);
		case_sweep(c);
	}
}

/* A claim outlives the segment that it was written to. */
static void claims_move_with_the_log(void **state)
{
	struct store_case *c = *state;
	uint64_t claimed, parked;

	c->options.segment_bytes = 16384;
	store_case_reopen(c);
	assert_int_equal(case_claim(c, "claimed", &claimed), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(case_claim(c, "parked", &parked), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(case_park(c, "parked", parked), HAPAX_OK);
	for (int i = 0; i < 5; i++) {
		fill(c, "others", 640, 1000 * (i + 1));
		case_sweep(c);
		store_case_advance(c, 2000);
		case_sweep(c);
	}
	store_case_reopen(c);
	assert_int_equal(case_state(c, "claimed"), HAPAX_STATE_CLAIMED);
	assert_int_equal(c->record.token, claimed);
	assert_int_equal(case_state(c, "parked"), HAPAX_STATE_PARKED);
	assert_int_equal(case_complete(c, "claimed", claimed), HAPAX_OK);
	assert_int_equal(case_complete(c, "parked", parked), HAPAX_OK);
}

/* A store takes any valid record from another one: a mark may have a result of no kind. */
static void loaded_mark_keeps_its_result(void **state)
{
	struct store_case *c = *state;
	int64_t now_ms = store_case_now(c);
	struct hapax_record record = {
		.state = HAPAX_STATE_DONE,
		.origin = HAPAX_ORIGIN_CHECK,
		.attempt = 1,
		.token = 7,
		.first_seen_ms = now_ms,
		.changed_ms = now_ms,
		.expires_ms = now_ms + HOUR_MS,
		.ttl_ms = HOUR_MS,
		.result = {.status = 3, .body = {"body", 4}},
	};
	struct hapax_op op = case_op(c, HAPAX_OP_LOAD, "mark");

	op.load = &record;
	assert_int_equal(case_run(c, &op), HAPAX_OK);
	store_case_reopen(c);
	assert_int_equal(case_state(c, "mark"), HAPAX_STATE_DONE);
	assert_int_equal(c->record.result.status, 3);
	assert_int_equal(c->record.result.body.size, 4);
	assert_memory_equal(c->record.result.body.data, "body", 4);
}

struct progress {
	uint64_t calls;
	uint64_t done;
	uint64_t total;
};

static void note_progress(uint64_t done, uint64_t total, void *context)
{
	struct progress *progress = context;

	assert_true(done <= total && done >= progress->done);
	*progress = (struct progress){progress->calls + 1, done, total};
}

static void open_tells_how_far_it_is(void **state)
{
	struct store_case *c = *state;
	struct progress progress = {0};

	fill(c, "key", 6400, HOUR_MS);
	c->options.progress = note_progress;
	c->options.progress_context = &progress;
	store_case_reopen(c);
	assert_true(progress.calls > 0);
	assert_true(progress.total > 0 && progress.done == progress.total);
}

/* In unsafe mode frames are lost in any order: a later one proves nothing, and the log ends before it. */
static void unsafe_log_ends_where_a_frame_is_missing(void **state)
{
	struct store_case *c = *state;
	char path[512], copy[200], command[1200];
	unsigned char byte;

	log_case_close(c);
	snprintf(c->url, sizeof(c->url), "file:%.150s/unsafe", c->dir.path);
	c->options.unsafe_interval_ms = 1000;
	store_case_open(c);
	assert_int_equal(log_case_check(c, "first"), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(log_case_check(c, "second"), HAPAX_OUTCOME_ACQUIRED);
	uint64_t token = 0;
	assert_int_equal(case_claim(c, "third", &token), HAPAX_OUTCOME_ACQUIRED);
	snprintf(copy, sizeof(copy), "%.150s/copy", c->dir.path);
	snprintf(command, sizeof(command), "cp -r '%s' '%s'", log_case_directory(c), copy);
	assert_int_equal(system(command), 0);
	snprintf(path, sizeof(path), "%s/log-0000000000000001.seg", copy);
	int file = open(path, O_RDWR);
	assert_true(file >= 0);
	assert_int_equal(pread(file, &byte, 1, 2 * 4096 + 130), 1);
	byte ^= 0x40;
	assert_int_equal(pwrite(file, &byte, 1, 2 * 4096 + 130), 1);
	assert_int_equal(close(file), 0);
	log_case_close(c);
	snprintf(c->url, sizeof(c->url), "file:%s", copy);
	store_case_open(c);
	assert_int_equal(case_state(c, "first"), HAPAX_STATE_DONE);
	assert_int_equal(case_state(c, "second"), HAPAX_STATE_ABSENT);
	assert_int_equal(case_state(c, "third"), HAPAX_STATE_ABSENT);
	/* I5: the token that was given out for it is not given out again. */
	uint64_t next = 0;
	assert_int_equal(case_claim(c, "third", &next), HAPAX_OUTCOME_ACQUIRED);
	assert_true(next > token);
}

/* The mode says of itself that it keeps no promise. */
static void unsafe_mode_is_not_durable(void **state)
{
	struct store_case *c = *state;

	assert_true(store_case_is_durable(c));
	c->options.unsafe_interval_ms = 1000;
	store_case_reopen(c);
	assert_false(store_case_is_durable(c));
	assert_int_equal(log_case_check(c, "k"), HAPAX_OUTCOME_ACQUIRED);
	store_case_reopen(c);
	assert_int_equal(log_case_check(c, "k"), HAPAX_OUTCOME_REPLAY);
	c->options.unsafe_interval_ms = 0;
	store_case_reopen(c);
	assert_int_equal(log_case_check(c, "k"), HAPAX_OUTCOME_REPLAY);
}

/* Threads: waiting callers, completions, passes and spares beside each other. */

enum { THREADS = 6, OUTSTANDING = 8 };

struct busy {
	struct store_case *c;
	uint64_t steps;
	_Atomic uint64_t acquired;
	_Atomic uint64_t failed;
};

struct flight {
	struct busy *busy;
	struct hapax_op op;
	char key[40];
	size_t index;
	uint64_t step;
	_Atomic uint32_t *left;
	struct hx_event *done;
};

static void take_off(struct flight *flight);

static void land(struct hapax_op *ops, size_t count, void *context)
{
	struct flight *flight = context;

	(void)count;
	if (ops->status != HAPAX_OK)
		atomic_fetch_add(&flight->busy->failed, 1);
	else if (ops->outcome == HAPAX_OUTCOME_ACQUIRED)
		atomic_fetch_add(&flight->busy->acquired, 1);
	flight->step += OUTSTANDING;
	if (flight->step < flight->busy->steps)
		take_off(flight);
	else if (atomic_fetch_sub(flight->left, 1) == 1)
		hx_event_set(flight->done);
}

static void take_off(struct flight *flight)
{
	/* Every key is asked for twice, by neighbors. */
	int size = snprintf(
		flight->key, sizeof(flight->key), "%zu/%llu", flight->index / 2,
		(unsigned long long)flight->step);

	flight->op = (struct hapax_op){
		.type = HAPAX_OP_CHECK, .key = {flight->key, (size_t)size}, .ttl_ms = HOUR_MS};
	hapax_store_submit(
		flight->busy->c->store, &flight->op, 1, (struct hapax_completion){land, flight});
}

static void fly(struct busy *busy, size_t index)
{
	struct flight flights[OUTSTANDING];
	_Atomic uint32_t left = OUTSTANDING;
	struct hx_event done;

	hx_event_init(&done);
	for (size_t i = 0; i < OUTSTANDING; i++) {
		flights[i] = (struct flight){
			.busy = busy, .index = index, .step = i, .left = &left, .done = &done};
		take_off(&flights[i]);
	}
	hx_event_wait(&done);
}

static void be_busy(size_t index, void *context)
{
	struct busy *busy = context;

	if (index < 2) {
		fly(busy, index);
		return;
	}
	for (uint64_t step = 0; step < busy->steps; step++) {
		char key[40];
		int size =
			snprintf(key, sizeof(key), "%zu/%llu", index / 2, (unsigned long long)step);
		struct hapax_op op = {
			.type = HAPAX_OP_CHECK, .key = {key, (size_t)size}, .ttl_ms = HOUR_MS};

		if (hapax_store_run(busy->c->store, &op, 1, NULL) != HAPAX_OK)
			atomic_fetch_add(&busy->failed, 1);
		else if (op.outcome == HAPAX_OUTCOME_ACQUIRED)
			atomic_fetch_add(&busy->acquired, 1);
	}
}

static void threads_get_along(void **state)
{
	struct store_case *c = *state;
	struct busy busy = {.c = c, .steps = scale_count(20000, 800) / OUTSTANDING * OUTSTANDING};
	struct crowd crowd;

	c->options.flags = 0;
	c->options.segment_bytes = 65536;
	c->options.sweep_interval_ms = 1;
	store_case_reopen(c);
	crowd_init(&crowd, THREADS);
	crowd_run(&crowd, be_busy, &busy);
	crowd_done(&crowd);
	assert_int_equal(busy.failed, 0);
	assert_int_equal(busy.acquired, busy.steps * THREADS / 2);
	store_case_reopen(c);
	assert_int_equal(case_stats(c).keys, busy.steps * THREADS / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			torn_tail_is_cut, log_case_set_up, log_case_tear_down),
		cmocka_unit_test_setup_teardown(
			damage_before_the_end_is_refused, log_case_set_up, log_case_tear_down),
		cmocka_unit_test_setup_teardown(
			disk_is_bounded_and_given_back, log_case_set_up, log_case_tear_down),
		cmocka_unit_test_setup_teardown(
			disk_is_bounded_when_nothing_expires, log_case_set_up, log_case_tear_down),
		cmocka_unit_test_setup_teardown(
			old_versions_stay_dead, log_case_set_up, log_case_tear_down),
		cmocka_unit_test_setup_teardown(
			claims_move_with_the_log, log_case_set_up, log_case_tear_down),
		cmocka_unit_test_setup_teardown(
			loaded_mark_keeps_its_result, log_case_set_up, log_case_tear_down),
		cmocka_unit_test_setup_teardown(
			open_tells_how_far_it_is, log_case_set_up, log_case_tear_down),
		cmocka_unit_test_setup_teardown(
			unsafe_log_ends_where_a_frame_is_missing, log_case_set_up,
			log_case_tear_down),
		cmocka_unit_test_setup_teardown(
			unsafe_mode_is_not_durable, log_case_set_up, log_case_tear_down),
		cmocka_unit_test_setup_teardown(
			threads_get_along, log_case_set_up, log_case_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
