/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_log_result_pass.c - passes over class segments with large results of file:. A pass loses no
 * result that lives or is being read, whatever fails, and takes the file of those that are gone.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "store/log/format/format.h"
#include "support/result_case.h"
#include "support/scale.h"
#include "support/sim_disk.h"
#include "support/store_case.h"
#include "support/temp_dir.h"
#include "support/virtual_clock.h"

/* Some of them again: their old versions are in class segments, the new ones in the log. */
static void complete_some_again(struct result_case *scene)
{
	for (unsigned i = 0; i < RESULT_CASE_SIZES; i += 2) {
		struct hapax_result result = result_case_expected(i);
		struct hapax_op op;
		char key[32];

		result_case_key(key, i);
		op = result_case_op(scene, HAPAX_OP_FORGET, key);
		op.record = NULL;
		assert_int_equal(hapax_store_run(scene->store, &op, 1, NULL), HAPAX_OK);
		result_case_complete(scene, key, &result);
	}
	result_case_fill_log(scene);
}

/* A sweep in which something fails, once: whatever came of it, every result is there. */
static void must_survive_a_sweep(unsigned calls, int error, uint64_t nth)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct result_case scene;

	result_case_init(&scene);
	result_case_complete_all(&scene);
	for (unsigned i = 0; i < 6; i++)
		result_case_push_out(&scene);
	complete_some_again(&scene);
	if (calls != 0)
		sim_disk_fail_at(scene.disk, calls, nth, false, error);
	else
		hx_alloc_fail_at(nth, 0);
	(void)result_case_sweep(&scene, NULL);
	sim_disk_fail_at(scene.disk, SIM_ANY, 0, false, 0);
	hx_alloc_fail_at(0, 0);
	/* Latched by a write that failed: then the next process finds them. */
	if (hapax_store_stats(scene.store, &stats, NULL, NULL, NULL) != HAPAX_OK)
		result_case_reopen(&scene);
	result_case_must_scan_all(&scene);
	for (unsigned i = 0; i < 10; i++)
		result_case_push_out(&scene);
	result_case_must_scan_all(&scene);
	result_case_reopen(&scene);
	result_case_must_scan_all(&scene);
	result_case_done(&scene);
}

static void a_pass_that_fails_loses_nothing(void **state)
{
	static const int errors[] = {ENOSPC, EIO};
	uint64_t stride = scale_is_proof() ? 1 : 9;

	(void)state;
	for (uint64_t nth = 1; nth < 80; nth += stride)
		for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
			must_survive_a_sweep(SIM_ANY, errors[i], nth);
	for (uint64_t nth = 1; nth < 40; nth += stride)
		must_survive_a_sweep(0, 0, nth);
}

static uint64_t bytes_on_disk(struct result_case *scene)
{
	uint64_t size, sum = 0;

	for (size_t i = 0; sim_disk_path(scene->disk, i, &size); i++)
		sum += (size + HX_LOG_BLOCK_SIZE - 1) / HX_LOG_BLOCK_SIZE * HX_LOG_BLOCK_SIZE;
	return sum;
}

/* Room for the copy, and none for the manifest, which would need a new segment of the log. */
static void a_pass_without_a_manifest_changes_nothing(void **state)
{
	static unsigned char bytes[3000];
	struct hapax_result result = result_case_result(bytes, 1, 0, sizeof(bytes));
	struct result_case scene;
	struct hapax_op op;

	(void)state;
	result_case_init(&scene);
	result_case_complete(&scene, "key", &result);
	result_case_fill_log(&scene);
	op = result_case_op(&scene, HAPAX_OP_CLAIM, "held");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	/* What has a claim may take the last block of the segment. */
	sim_disk_set_room(scene.disk, bytes_on_disk(&scene));
	op.type = HAPAX_OP_RENEW;
	while (hapax_store_run(scene.store, &op, 1, NULL) == HAPAX_OK)
		continue;
	assert_int_equal(op.status, HAPAX_ERR_LIMIT);
	sim_disk_set_room(scene.disk, bytes_on_disk(&scene) + 8 * (uint64_t)HX_LOG_BLOCK_SIZE);
	assert_int_equal(result_case_sweep(&scene, NULL), HAPAX_ERR_LIMIT);
	assert_int_equal(result_case_count_classes(&scene), 0);
	sim_disk_set_room(scene.disk, UINT64_MAX);
	for (unsigned i = 0; i < 2; i++) {
		op = result_case_op(&scene, HAPAX_OP_LOOKUP, "key");
		assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
		result_case_must_be(&scene.record, &result);
		result_case_push_out(&scene);
	}
	result_case_done(&scene);
}

/* Twice what lives, results included, is not too much: nothing is rewritten without need. */
static void what_lives_is_left_alone(void **state)
{
	enum { RESULTS = 64, BYTES = 20000 };
	static unsigned char bytes[BYTES];
	struct result_case scene;
	uint64_t before;

	(void)state;
	result_case_init(&scene);
	for (unsigned i = 0; i < RESULTS; i++) {
		struct hapax_result result = result_case_result(bytes, i, 0, BYTES);
		char key[32];

		result_case_key(key, i);
		result_case_complete(&scene, key, &result);
	}
	result_case_push_out(&scene);
	/* Small segments are merged, and the log is left behind. */
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(result_case_sweep(&scene, NULL), HAPAX_OK);
	before = sim_disk_calls(scene.disk, SIM_PWRITE);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(result_case_sweep(&scene, NULL), HAPAX_OK);
	assert_int_equal(sim_disk_calls(scene.disk, SIM_PWRITE), before);
	result_case_done(&scene);
}

/* Two versions that differ in their results alone: the later one counts, wherever both are. */
static void versions_are_told_apart_by_their_results(void **state)
{
	static unsigned char bytes[3000], other[3000];
	struct hapax_result result = result_case_result(bytes, 3, 0, sizeof(bytes));
	struct hapax_result second = result_case_result(other, 103, 0, sizeof(other));
	struct hapax_record record;
	struct result_case scene;
	struct hapax_op op;

	(void)state;
	result_case_init(&scene);
	result_case_complete(&scene, "key", &result);
	result_case_push_out(&scene);
	op = result_case_op(&scene, HAPAX_OP_LOOKUP, "key");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	result_case_must_be(&scene.record, &result);
	record = scene.record;
	record.result = second;
	op = (struct hapax_op){.type = HAPAX_OP_LOAD, .key = op.key, .load = &record};
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	for (unsigned i = 0; i < 12; i++) {
		result_case_push_out(&scene);
		op = result_case_op(&scene, HAPAX_OP_LOOKUP, "key");
		assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
		result_case_must_be(&scene.record, &second);
	}
	result_case_reopen(&scene);
	op = result_case_op(&scene, HAPAX_OP_LOOKUP, "key");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	result_case_must_be(&scene.record, &second);
	result_case_done(&scene);
}

static void say(
	struct result_case *scene, enum hapax_op_type type, const char *key, uint64_t token,
	const char *error)
{
	struct hapax_op op = result_case_op(scene, type, key);

	op.token = token;
	op.error = hapax_bytes_from_text(error);
	assert_int_equal(hapax_store_run(scene->store, &op, 1, NULL), HAPAX_OK);
}

/* Parked, taken up and parked again within a millisecond: the older version is not the one that lives. */
static void the_last_word_on_a_parked_key_stays(void **state)
{
	struct hapax_op op;
	struct result_case scene;

	(void)state;
	result_case_init(&scene);
	op = result_case_op(&scene, HAPAX_OP_CLAIM, "key");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	say(&scene, HAPAX_OP_PARK, "key", op.token, "first");
	result_case_fill_log(&scene);
	say(&scene, HAPAX_OP_RENEW, "key", op.token, "");
	say(&scene, HAPAX_OP_PARK, "key", op.token, "second");
	/* The segment of the first one goes; the second one is in the one that is written. */
	assert_int_equal(result_case_sweep(&scene, NULL), HAPAX_OK);
	hapax_store_close(scene.store);
	result_case_open(&scene);
	op = result_case_op(&scene, HAPAX_OP_LOOKUP, "key");
	op.record = &scene.record;
	op.buf = scene.buf;
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(scene.record.state, HAPAX_STATE_PARKED);
	assert_int_equal(scene.record.error.size, strlen("second"));
	assert_memory_equal(scene.record.error.data, "second", strlen("second"));
	result_case_done(&scene);
}

/* The system's files, with a read that is under way while a pass gives its segment up. */
struct slow {
	struct hx_io_ops ops;
	struct hx_io io;
	_Atomic int is_armed;
	char path[300];        /* of the file that the reader is about to open */
	struct hx_event begun; /* it is */
	struct hx_event go;
};

static int slow_open(void *context, const char *path, unsigned flags, mode_t mode)
{
	struct slow *slow = context;

	if (strstr(path, "/hour-") != NULL && flags == HX_IO_READ &&
	    atomic_exchange(&slow->is_armed, 0) != 0) {
		snprintf(slow->path, sizeof(slow->path), "%s", path);
		hx_event_set(&slow->begun);
		hx_event_wait(&slow->go);
	}
	return hx_io_system()->ops->open(NULL, path, flags, mode);
}

struct reader {
	struct hapax_store *store;
	struct hapax_op op;
	struct hapax_record record;
	struct hapax_buf *buf;
	enum hapax_status status;
};

static void read_slowly(void *arg)
{
	struct reader *reader = arg;

	reader->op = (struct hapax_op){
		.type = HAPAX_OP_LOOKUP,
		.key = hapax_bytes_from_text("key"),
		.record = &reader->record,
		.buf = reader->buf,
	};
	reader->status = hapax_store_run(reader->store, &reader->op, 1, NULL);
}

/* A reader that knows where a result is, and has not got there yet, while its file is given up. */
struct late {
	unsigned char bytes[3000];
	struct hapax_result result;
	struct reader reader;
	struct slow slow;
	struct hx_thread thread;
	struct temp_dir dir;
	struct result_case scene;
};

static void late_begin(struct late *late)
{
	struct result_case *scene = &late->scene;

	memset(late, 0, sizeof(*late));
	late->result = result_case_result(late->bytes, 1, 0, sizeof(late->bytes));
	late->reader.buf = hapax_buf_new(RESULT_CASE_BYTES_MAX);
	late->slow.ops = *hx_io_system()->ops;
	late->slow.ops.open = slow_open;
	late->slow.io = (struct hx_io){&late->slow.ops, &late->slow};
	result_case_init(scene);
	hapax_store_close(scene->store);
	temp_dir_init(&late->dir);
	scene->io = &late->slow.io;
	snprintf(scene->path, sizeof(scene->path), "%s/store", late->dir.path);
	result_case_open(scene);
	result_case_complete(scene, "key", &late->result);
	result_case_push_out(scene);
	late->reader.store = scene->store;
	late->slow.is_armed = 1;
	assert_int_equal(
		hx_thread_start(&late->thread, read_slowly, &late->reader, "reader", NULL),
		HAPAX_OK);
	hx_event_wait(&late->slow.begun);
	/* Merged, with seven others. */
	for (unsigned i = 0; i < 12; i++)
		result_case_push_out(scene);
	assert_int_equal(access(late->slow.path, F_OK), 0);
}

static void late_go_on(struct late *late)
{
	hx_event_set(&late->slow.go);
	hx_thread_join(&late->thread);
}

static void late_done(struct late *late)
{
	hapax_buf_free(late->reader.buf);
	temp_dir_done(&late->dir);
}

static void who_reads_keeps_the_file(void **state)
{
	static struct late late;

	(void)state;
	late_begin(&late);
	late_go_on(&late);
	assert_int_equal(late.reader.status, HAPAX_OK);
	result_case_must_be(&late.reader.record, &late.result);
	assert_int_equal(result_case_sweep(&late.scene, NULL), HAPAX_OK);
	assert_int_not_equal(access(late.slow.path, F_OK), 0);
	result_case_done(&late.scene);
	late_done(&late);
}

/* Where another directory has come to have the name of ours, its files are not removed as ours. */
static void a_directory_of_others_is_left_alone(void **state)
{
	static struct late late;
	char aside[300];
	FILE *theirs;

	(void)state;
	late_begin(&late);
	snprintf(aside, sizeof(aside), "%s/aside", late.dir.path);
	assert_int_equal(rename(late.scene.path, aside), 0);
	assert_int_equal(mkdir(late.scene.path, 0700), 0);
	theirs = fopen(late.slow.path, "w");
	assert_non_null(theirs);
	assert_int_equal(fclose(theirs), 0);
	late_go_on(&late);
	/* It was there, and is not available any more; unless the store has noticed before. */
	assert_int_not_equal(late.reader.status, HAPAX_OK);
	result_case_done(&late.scene);
	assert_int_equal(access(late.slow.path, F_OK), 0);
	late_done(&late);
}

/* Expired records that were not swept yet keep their file, too: a scan may ask for them. */
static int count_bodies(const struct hapax_record *record, void *context)
{
	*(size_t *)context += record->result.body.size;
	return 0;
}

static void expiry_takes_the_file(void **state)
{
	static unsigned char bytes[3000];
	struct hapax_result result = result_case_result(bytes, 1, 0, sizeof(bytes));
	struct hapax_scan scan = HAPAX_SCAN_INIT;
	struct hapax_cursor cursor = {0};
	struct result_case scene;
	size_t size = 0;

	(void)state;
	result_case_init(&scene);
	result_case_complete(&scene, "key", &result);
	result_case_push_out(&scene);
	assert_true(result_case_count_classes(&scene) > 0);
	hx_virtual_clock_advance(&scene.clock, 2 * RESULT_CASE_TTL_MS);
	scan.flags = HAPAX_SCAN_EXPIRED;
	while (!cursor.done)
		assert_int_equal(
			hapax_store_scan(scene.store, &scan, &cursor, count_bodies, &size, NULL),
			HAPAX_OK);
	assert_int_equal(size, sizeof(bytes));
	assert_int_equal(result_case_sweep(&scene, NULL), HAPAX_OK);
	assert_int_equal(result_case_count_classes(&scene), 0);
	result_case_done(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pass_that_fails_loses_nothing),
		cmocka_unit_test(a_pass_without_a_manifest_changes_nothing),
		cmocka_unit_test(what_lives_is_left_alone),
		cmocka_unit_test(versions_are_told_apart_by_their_results),
		cmocka_unit_test(the_last_word_on_a_parked_key_stays),
		cmocka_unit_test(who_reads_keeps_the_file),
		cmocka_unit_test(a_directory_of_others_is_left_alone),
		cmocka_unit_test(expiry_takes_the_file),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests_name("log_result_pass", tests, NULL, NULL);
}
