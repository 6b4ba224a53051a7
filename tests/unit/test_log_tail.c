/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_log_tail.c - where a log ends, and what becomes of what lies behind it: frames of
 * unsafe mode behind one that is lost, tails without a header, files that were used before.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/log/format/format.h"
#include "store/log/log_store.h"
#include "support/sim_disk.h"
#include "support/store_case.h"

enum { BLOCK = 4096, SEGMENT = 64 * 1024 };

struct tail_case {
	struct store_case c; /* for its clock, options and ways to ask */
	struct sim_disk *disk;
};

static void open_it(struct tail_case *t, int64_t unsafe_interval_ms)
{
	struct hapax_error err = {0};

	t->c.options.unsafe_interval_ms = unsafe_interval_ms;
	if (hx_log_open_on(
		    sim_disk_io(t->disk), "file:/store", "/store", &t->c.options, &t->c.store,
		    &err) != HAPAX_OK)
		fail_msg("does not open: %s", err.message);
}

static void open_safe(struct tail_case *t)
{
	open_it(t, 0);
}

static void open_unsafe(struct tail_case *t)
{
	open_it(t, 1000);
}

static void close_it(struct tail_case *t)
{
	hapax_store_close(t->c.store);
	t->c.store = NULL;
}

/* kill -9: what closing would write is not seen. */
static void kill_it(struct tail_case *t)
{
	struct sim_disk *left = sim_disk_clone(t->disk);

	close_it(t);
	sim_disk_free(t->disk);
	t->disk = left;
}

static int set_up(void **state)
{
	struct tail_case *t = calloc(1, sizeof(*t));

	if (!t)
		return -1;
	store_case_init(&t->c, "file:");
	t->c.options.segment_bytes = SEGMENT;
	t->disk = sim_disk_new(5);
	*state = t;
	return 0;
}

static int tear_down(void **state)
{
	struct tail_case *t = *state;

	if (t->c.store)
		close_it(t);
	store_case_done(&t->c);
	sim_disk_free(t->disk);
	free(t);
	return 0;
}

static void mark(struct tail_case *t, const char *key)
{
	struct hapax_op op = case_op(&t->c, HAPAX_OP_CHECK, key);

	assert_int_equal(case_run(&t->c, &op), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
}

/* Further frames, more than are written after the crash. */
static void mark_more(struct tail_case *t)
{
	for (unsigned i = 0; i < 5; i++) {
		char key[16];

		snprintf(key, sizeof(key), "more %u", i);
		mark(t, key);
	}
}

/* A frame that gives out no token: in unsafe mode nothing syncs it. */
static void forget(struct tail_case *t, const char *key)
{
	struct hapax_op op = case_op(&t->c, HAPAX_OP_FORGET, key);

	assert_int_equal(case_run(&t->c, &op), HAPAX_OK);
}

static void is_there(struct tail_case *t, const char *key)
{
	assert_int_equal(case_state(&t->c, key), HAPAX_STATE_DONE);
}

static void is_gone(struct tail_case *t, const char *key)
{
	assert_int_equal(case_state(&t->c, key), HAPAX_STATE_ABSENT);
}

static const char *log_path(unsigned id)
{
	static char path[64];

	snprintf(path, sizeof(path), "/store/log-%016x.seg", id);
	return path;
}

/* Read or write a block, on the medium. */
static void block_io(
	struct tail_case *t, unsigned id, uint64_t index, unsigned char block[BLOCK], bool writes)
{
	const struct hx_io *io = sim_disk_io(t->disk);
	int file = io->ops->open(
		io->context, log_path(id), HX_IO_READ | (writes ? HX_IO_WRITE : 0), 0600);

	assert_true(file >= 0);
	if (writes) {
		assert_int_equal(hx_io_write_full(io, file, block, BLOCK, index * BLOCK), 0);
		assert_int_equal(io->ops->fdatasync(io->context, file), 0);
	} else {
		assert_int_equal(hx_io_read_full(io, file, block, BLOCK, index * BLOCK), BLOCK);
	}
	assert_int_equal(io->ops->close(io->context, file), 0);
}

/* The block did not arrive: what it held before was zeros. */
static void lose_block(struct tail_case *t, unsigned id, uint64_t index)
{
	unsigned char zeros[BLOCK] = {0};

	block_io(t, id, index, zeros, true);
}

static bool block_holds(struct tail_case *t, unsigned id, uint64_t index, const char *text)
{
	unsigned char block[BLOCK];

	block_io(t, id, index, block, false);
	return memmem(block, BLOCK, text, strlen(text)) != NULL;
}

/* The first block of the segment that holds text, or 0. */
static uint64_t find_block(struct tail_case *t, unsigned id, const char *text)
{
	for (uint64_t index = 1; index < SEGMENT / BLOCK; index++)
		if (block_holds(t, id, index, text))
			return index;
	return 0;
}

/* The last one, or 0. */
static uint64_t find_last_block(struct tail_case *t, unsigned id, const char *text)
{
	for (uint64_t index = SEGMENT / BLOCK - 1; index > 0; index--)
		if (block_holds(t, id, index, text))
			return index;
	return 0;
}

static unsigned count_names(struct tail_case *t, const char *text)
{
	const char *path;
	unsigned count = 0;
	uint64_t size;

	for (size_t i = 0; (path = sim_disk_path(t->disk, i, &size)); i++)
		count += strstr(path, text) != NULL;
	return count;
}

/* What was acknowledged after the crash survives the next one, and the one after. */
static void goes_on(struct tail_case *t)
{
	open_safe(t);
	mark(t, "after 1");
	mark(t, "after 2");
	kill_it(t);
	open_safe(t);
	is_there(t, "after 1");
	is_there(t, "after 2");
	mark(t, "after 3");
	close_it(t);
	open_safe(t);
	mark(t, "after 4");
	kill_it(t);
	open_safe(t);
	for (int i = 1; i <= 4; i++) {
		char key[16];

		snprintf(key, sizeof(key), "after %d", i);
		is_there(t, key);
	}
}

/* The store does not open, for this reason, at that block of its first segment. */
static void is_refused(struct tail_case *t, uint64_t index, const char *reason)
{
	struct hapax_error err = {0};
	char place[64];

	assert_int_equal(
		hx_log_open_on(
			sim_disk_io(t->disk), "file:/store", "/store", &t->c.options, &t->c.store,
			&err),
		HAPAX_ERR_CORRUPT);
	t->c.store = NULL;
	(void)snprintf(
		place, sizeof(place), "log-0000000000000001.seg at offset %llu ",
		(unsigned long long)(index * BLOCK));
	assert_non_null(strstr(err.message, place));
	assert_non_null(strstr(err.message, reason));
}

/* A frame in the middle of the last segment: those behind it were written when it was durable. */
static void a_frame_in_the_middle_is_missed(void **state)
{
	struct tail_case *t = *state;
	uint64_t index;

	open_safe(t);
	mark(t, "one");
	mark(t, "two");
	mark(t, "three");
	kill_it(t);
	index = find_block(t, 1, "two");
	lose_block(t, 1, index);
	is_refused(t, index, "a later frame proves that it was durable");
}

/* A clean close was an end only until the store was opened again. */
static void a_frame_behind_a_close_is_missed(void **state)
{
	struct tail_case *t = *state;
	unsigned char close_frame[BLOCK];
	uint64_t index;

	open_safe(t);
	mark(t, "before");
	close_it(t);
	open_safe(t);
	mark(t, "first");
	mark(t, "second");
	kill_it(t);
	index = find_block(t, 1, "first");
	block_io(t, 1, index - 1, close_frame, false);
	assert_true(close_frame[HX_LOG_FRAME_FLAGS] & HX_LOG_FRAME_CLOSE);
	lose_block(t, 1, index);
	is_refused(t, index, "a later frame proves that it was durable");
}

/* A frame that gives out tokens beyond the mark on the disk is synced, in unsafe mode too (I5). */
static void very_first_frame_is_synced_in_any_mode(void **state)
{
	struct tail_case *t = *state;
	struct hapax_error err = {0};

	open_unsafe(t);
	mark(t, "first");
	mark(t, "second");
	mark_more(t);
	kill_it(t);
	lose_block(t, 1, 1);
	assert_int_equal(
		hx_log_open_on(
			sim_disk_io(t->disk), "file:/store", "/store", &t->c.options, &t->c.store,
			&err),
		HAPAX_ERR_CORRUPT);
	t->c.store = NULL;
}

/* Marks until the log is in that segment, and two frames into it; the last two keys. */
static void roll_to(struct tail_case *t, unsigned id, char keys[2][32])
{
	unsigned number = 0;

	while (count_names(t, log_path(id) + strlen("/store/")) == 0 ||
	       find_block(t, id, "HXFR") == 0) {
		snprintf(keys[0], 32, "key number %u", number++);
		mark(t, keys[0]);
		assert_true(number < 100);
	}
	snprintf(keys[1], 32, "key number %u", number++);
	mark(t, keys[1]);
}

static void unsafe_log_may_lose_the_first_frame_of_a_segment(void **state)
{
	struct tail_case *t = *state;
	char keys[2][32];

	open_unsafe(t);
	roll_to(t, 2, keys);
	mark_more(t);
	kill_it(t);
	assert_int_equal(find_block(t, 2, keys[0]), 1);
	assert_int_equal(find_block(t, 2, keys[1]), 2);
	lose_block(t, 2, 1);
	open_safe(t);
	is_there(t, "key number 0");
	is_gone(t, keys[0]);
	is_gone(t, keys[1]);
	/* Frames that were answered and do not count are kept for people. */
	assert_int_equal(count_names(t, "log-0000000000000002.seg.cut-"), 1);
	kill_it(t);
	goes_on(t);
	is_there(t, "key number 0");
}

/* In the default mode the same is damage: nothing is written before what precedes it is durable. */
static void first_frame_of_a_segment_is_missed(void **state)
{
	struct tail_case *t = *state;
	struct hapax_error err = {0};
	char keys[2][32];

	open_safe(t);
	roll_to(t, 2, keys);
	kill_it(t);
	lose_block(t, 2, 1);
	assert_int_equal(
		hx_log_open_on(
			sim_disk_io(t->disk), "file:/store", "/store", &t->c.options, &t->c.store,
			&err),
		HAPAX_ERR_CORRUPT);
	assert_non_null(strstr(err.message, "log-0000000000000002.seg at offset 4096 (LSN"));
	/* BEGIN, MANIFEST, SCOPE and one key. */
	assert_non_null(strstr(err.message, "up to 4 keys are at risk"));
}

/* STORE names the first segment of a life: the others are named by the seal of the one before. */
static void last_segment_is_missed(void **state)
{
	struct tail_case *t = *state;
	const struct hx_io *io;
	struct hapax_error err = {0};
	char keys[2][32];

	open_safe(t);
	roll_to(t, 2, keys);
	kill_it(t);
	io = sim_disk_io(t->disk);
	for (unsigned id = 2; id < 5; id++)
		(void)io->ops->unlink(io->context, log_path(id));
	assert_int_equal(
		hx_log_open_on(io, "file:/store", "/store", &t->c.options, &t->c.store, &err),
		HAPAX_ERR_CORRUPT);
	assert_non_null(strstr(err.message, "log-0000000000000002.seg"));
	assert_non_null(strstr(err.message, "the last segment of the log is missing"));
}

/*
 * Behind a clean close a frame is lost, and not those after it. None of them has given out a
 * token, so that none was synced. There are more of them than goes_on() writes before it
 * looks: a log that went on in their place would be read into what is left of them.
 */
static void unsafe_log_may_lose_a_frame_behind_a_close(void **state)
{
	static const char *const shed[] = {"shed 0", "shed 1", "shed 2", "shed 3", "shed 4"};
	enum { SHED = sizeof(shed) / sizeof(shed[0]) };
	struct tail_case *t = *state;

	open_unsafe(t);
	mark(t, "kept");
	for (size_t i = 0; i < SHED; i++)
		mark(t, shed[i]);
	close_it(t);
	open_unsafe(t);
	for (size_t i = 0; i < SHED; i++)
		forget(t, shed[i]);
	kill_it(t);
	assert_int_equal(find_last_block(t, 1, "HXFR"), find_last_block(t, 1, shed[0]) + SHED - 1);
	lose_block(t, 1, find_last_block(t, 1, shed[0]));
	open_safe(t);
	is_there(t, "kept");
	for (size_t i = 0; i < SHED; i++)
		is_there(t, shed[i]);
	kill_it(t);
	goes_on(t);
	is_there(t, "kept");
	is_there(t, shed[SHED - 1]);
}

/*
 * I5: tokens of frames that do not count were given out. A power cut cannot do this: the frame
 * with the token was synced, and what lies before it with it. A block that rots can, and no
 * later frame says that there was a sync.
 */
static void tokens_of_lost_frames_do_not_come_back(void **state)
{
	static const char *const keys[] = {"a", "b", "c", "d"};
	struct tail_case *t = *state;
	struct hapax_op lost[4];
	uint64_t next = 0;

	open_unsafe(t);
	mark(t, "kept");
	close_it(t);
	open_unsafe(t);
	forget(t, "kept");
	/* Several, in one frame: the first operation in a segment takes a token in vain. */
	for (size_t i = 0; i < 4; i++)
		lost[i] = case_op(&t->c, HAPAX_OP_CLAIM, keys[i]);
	assert_int_equal(hapax_store_run(t->c.store, lost, 4, NULL), HAPAX_OK);
	kill_it(t);
	lose_block(t, 1, find_last_block(t, 1, "kept"));
	open_safe(t);
	is_there(t, "kept");
	is_gone(t, "a");
	assert_int_equal(case_claim(&t->c, "a", &next), HAPAX_OUTCOME_ACQUIRED);
	assert_true(next > lost[3].token && lost[3].token > lost[0].token);
}

/* A frame of several blocks of which the first did not arrive was not acknowledged; it is kept. */
static void tail_without_its_header_is_kept(void **state)
{
	struct tail_case *t = *state;
	struct hapax_result result = {.kind = HAPAX_RESULT_BYTES};
	static char body[3 * BLOCK];
	unsigned char block[BLOCK];
	struct hapax_op op;
	uint64_t begin;
	uint64_t size = 0;
	const char *path;

	open_safe(t);
	mark(t, "kept");
	memset(body, 'x', sizeof(body));
	result.body = (struct hapax_bytes){body, sizeof(body)};
	op = case_op(&t->c, HAPAX_OP_SET, "torn");
	op.result = &result;
	assert_int_equal(case_run(&t->c, &op), HAPAX_OK);
	kill_it(t);
	begin = find_block(t, 1, "torn");
	block_io(t, 1, begin + 1, block, false);
	assert_int_equal(block[0], 'x');
	lose_block(t, 1, begin);
	open_safe(t);
	is_there(t, "kept");
	is_gone(t, "torn");
	assert_int_equal(count_names(t, ".cut-"), 1);
	for (size_t i = 0; (path = sim_disk_path(t->disk, i, &size)); i++)
		if (strstr(path, ".cut-"))
			assert_int_equal(size, 4 * BLOCK);
	kill_it(t);
	goes_on(t);
	is_there(t, "kept");
}

/* A segment that was used before holds old frames: that is nothing to keep, nor an end of the file. */
static void used_segments_are_continued(void **state)
{
	struct tail_case *t = *state;
	unsigned logs;

	open_safe(t);
	for (unsigned i = 0; i < 60; i++) {
		char key[32];

		snprintf(key, sizeof(key), "key %u", i);
		mark(t, key);
		if (i % 8 == 0)
			case_sweep(&t->c);
	}
	close_it(t);
	logs = count_names(t, "/log-");
	for (unsigned i = 0; i < 5; i++) {
		open_safe(t);
		is_there(t, "key 1");
		close_it(t);
	}
	assert_int_equal(count_names(t, ".cut-"), 0);
	assert_in_range(count_names(t, "/log-"), 1, logs);
}

#define TAIL_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TAIL_TEST(a_frame_in_the_middle_is_missed),
		TAIL_TEST(a_frame_behind_a_close_is_missed),
		TAIL_TEST(very_first_frame_is_synced_in_any_mode),
		TAIL_TEST(unsafe_log_may_lose_the_first_frame_of_a_segment),
		TAIL_TEST(first_frame_of_a_segment_is_missed),
		TAIL_TEST(last_segment_is_missed),
		TAIL_TEST(unsafe_log_may_lose_a_frame_behind_a_close),
		TAIL_TEST(tokens_of_lost_frames_do_not_come_back),
		TAIL_TEST(tail_without_its_header_is_kept),
		TAIL_TEST(used_segments_are_continued),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
