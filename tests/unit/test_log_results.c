/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_log_results.c - large results of file: leave memory for a class segment, and come
 * back from there: whatever happens to the segment meanwhile, for every caller, and never
 * another one, nor half of one. Passes over it: test_log_result_pass.c. With threads: test_log_bustle.c.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "support/result_case.h"
#include "support/sim_disk.h"
#include "support/sim_fates.h"
#include "support/store_case.h"

static uint64_t reads(const struct result_case *scene)
{
	return sim_disk_calls(scene->disk, SIM_PREAD);
}

/* Every way to get a record. is_out: large ones are read, in one piece, and no others. */
static void must_answer_all(struct result_case *scene, bool is_out)
{
	static const enum hapax_op_type types[] = {HAPAX_OP_LOOKUP, HAPAX_OP_CLAIM, HAPAX_OP_CHECK};

	for (unsigned i = 0; i < RESULT_CASE_SIZES; i++) {
		struct hapax_result expected = result_case_expected(i);
		char key[32];

		result_case_key(key, i);
		for (size_t type = 0; type < sizeof(types) / sizeof(types[0]); type++) {
			struct hapax_op op = result_case_op(scene, types[type], key);
			uint64_t before = reads(scene);

			memset(&scene->record, 0, sizeof(scene->record));
			assert_int_equal(hapax_store_run(scene->store, &op, 1, NULL), HAPAX_OK);
			assert_int_equal(
				op.outcome,
				types[type] == HAPAX_OP_LOOKUP ? HAPAX_OUTCOME_FOUND
							       : HAPAX_OUTCOME_REPLAY);
			result_case_must_be(&scene->record, &expected);
			assert_int_equal(reads(scene) - before, is_out && result_case_is_large(i));
			/* Who does not want it does not pay for it. */
			op.record = NULL;
			before = reads(scene);
			assert_int_equal(hapax_store_run(scene->store, &op, 1, NULL), HAPAX_OK);
			assert_int_equal(reads(scene), before);
		}
	}
}

static uint64_t bytes_in_memory(struct result_case *scene)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;

	assert_int_equal(hapax_store_stats(scene->store, &stats, NULL, NULL, NULL), HAPAX_OK);
	return stats.bytes;
}

static void results_of_every_size_come_back(void **state)
{
	struct result_case scene;
	struct sim_fates fates;
	struct hx_prng prng;

	(void)state;
	result_case_init(&scene);
	result_case_complete_all(&scene);
	must_answer_all(&scene, false);
	result_case_push_out(&scene);
	must_answer_all(&scene, true);
	result_case_must_scan_all(&scene);
	result_case_reopen(&scene);
	must_answer_all(&scene, true);
	result_case_must_scan_all(&scene);
	/* Passes that merge what earlier ones have made. */
	for (unsigned i = 0; i < 20; i++)
		result_case_push_out(&scene);
	must_answer_all(&scene, true);
	result_case_must_scan_all(&scene);
	/* The power goes. */
	hapax_store_close(scene.store);
	sim_fates_lose_all(&fates);
	hx_prng_seed(&prng, 6);
	sim_disk_crash(scene.disk, &fates, &prng);
	result_case_open(&scene);
	must_answer_all(&scene, true);
	result_case_done(&scene);
}

/* What memory gets back is what the results took. */
static void memory_is_given_back(void **state)
{
	enum { RESULTS = 64, BYTES = 20000 };
	static unsigned char bytes[BYTES];
	struct result_case scene;
	uint64_t before;

	(void)state;
	result_case_init(&scene);
	before = bytes_in_memory(&scene);
	for (unsigned i = 0; i < RESULTS; i++) {
		struct hapax_result result = result_case_result(bytes, i, 0, BYTES);
		char key[32];

		result_case_key(key, i);
		result_case_complete(&scene, key, &result);
	}
	assert_true(bytes_in_memory(&scene) - before > RESULTS * BYTES);
	result_case_push_out(&scene);
	/* Gaps are given back as chunks: the last ones may stay. */
	assert_true(bytes_in_memory(&scene) - before < RESULTS * BYTES / 2 + (4 << 18));
	result_case_reopen(&scene);
	assert_true(bytes_in_memory(&scene) - before < RESULTS * 1024);
	result_case_done(&scene);
}

/* Records that SET has made are compared when a decision is made: they stay. */
static void values_of_set_stay_in_memory(void **state)
{
	static unsigned char bytes[4096];
	struct hapax_result result = result_case_result(bytes, 1, 0, sizeof(bytes));
	struct result_case scene;
	struct hapax_op op;
	uint64_t before;

	(void)state;
	result.kind = HAPAX_RESULT_BYTES;
	result_case_init(&scene);
	op = result_case_op(&scene, HAPAX_OP_SET, "set");
	op.result = &result;
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	result_case_push_out(&scene);
	result_case_reopen(&scene);
	before = reads(&scene);
	op = result_case_op(&scene, HAPAX_OP_LOOKUP, "set");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	result_case_must_be(&scene.record, &result);
	op = result_case_op(&scene, HAPAX_OP_FORGET, "set");
	op.flags = HAPAX_OP_SET_ONLY;
	op.set_if = HAPAX_SET_IF_EQUAL;
	op.expected = result.body;
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_APPLIED);
	assert_int_equal(reads(&scene), before);
	result_case_done(&scene);
}

/* Operations that meet such a record, and what they hand out. */
static void everybody_is_answered_as_before(void **state)
{
	static unsigned char bytes[5000], other[5000];
	struct hapax_result result = result_case_result(bytes, 3, 100, 4900);
	struct hapax_result second = result_case_result(other, 4, 100, 4900);
	unsigned char print[HAPAX_FINGERPRINT_SIZE] = {1};
	struct result_case scene;
	struct hapax_op op;
	uint64_t token;

	(void)state;
	result_case_init(&scene);
	op = result_case_op(&scene, HAPAX_OP_CLAIM, "key");
	op.fingerprint = print;
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	token = op.token;
	op = result_case_op(&scene, HAPAX_OP_COMPLETE, "key");
	op.token = token;
	op.result = &result;
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	result_case_push_out(&scene);
	/* I7: another payload gets no result, and none is read. */
	print[0] = 2;
	op = result_case_op(&scene, HAPAX_OP_CLAIM, "key");
	op.fingerprint = print;
	uint64_t before = reads(&scene);
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_MISMATCH);
	assert_int_equal(scene.record.result.body.size, 0);
	assert_int_equal(scene.record.result.headers.size, 0);
	assert_int_equal(reads(&scene), before);
	/* A repeated complete: the stored result stays. */
	op = result_case_op(&scene, HAPAX_OP_COMPLETE, "key");
	op.token = token;
	op.result = &second;
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	result_case_must_be(&scene.record, &result);
	/* SET and its kind leave it alone, and NX shows it. */
	op = result_case_op(&scene, HAPAX_OP_SET, "key");
	op.set_if = HAPAX_SET_IF_ABSENT;
	op.result = &second;
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_NOT_MET);
	result_case_must_be(&scene.record, &result);
	op = result_case_op(&scene, HAPAX_OP_EXPIRE, "key");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_BUSY);
	result_case_must_be(&scene.record, &result);
	/* A buffer that is too small for it. */
	struct hapax_buf *small = hapax_buf_new(1000);
	op = result_case_op(&scene, HAPAX_OP_LOOKUP, "key");
	op.buf = small;
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_ERR_LIMIT);
	hapax_buf_free(small);
	/* forget hands out what it removes. */
	op = result_case_op(&scene, HAPAX_OP_FORGET, "key");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_APPLIED);
	result_case_must_be(&scene.record, &result);
	result_case_complete(&scene, "key", &second);
	op = result_case_op(&scene, HAPAX_OP_LOOKUP, "key");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	result_case_must_be(&scene.record, &second);
	result_case_push_out(&scene);
	op = result_case_op(&scene, HAPAX_OP_LOOKUP, "key");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	result_case_must_be(&scene.record, &second);
	result_case_done(&scene);
}

/* Groups and batches: each operation gets its own. */
static void batches_get_theirs(void **state)
{
	enum { OPS = 2 * RESULT_CASE_SIZES };
	struct hapax_record records[OPS];
	struct hapax_buf *bufs[OPS];
	struct hapax_op ops[OPS];
	char keys[RESULT_CASE_SIZES][32];
	struct result_case scene;

	(void)state;
	result_case_init(&scene);
	result_case_complete_all(&scene);
	result_case_push_out(&scene);
	for (unsigned linked = 0; linked < 2; linked++) {
		for (unsigned i = 0; i < OPS; i++) {
			result_case_key(keys[i % RESULT_CASE_SIZES], i % RESULT_CASE_SIZES);
			bufs[i] = hapax_buf_new(RESULT_CASE_BYTES_MAX);
			ops[i] = result_case_op(
				&scene, HAPAX_OP_LOOKUP, keys[i % RESULT_CASE_SIZES]);
			ops[i].record = &records[i];
			ops[i].buf = bufs[i];
			if (linked != 0 && i + 1 < RESULT_CASE_SIZES)
				ops[i].flags = HAPAX_OP_LINKED;
		}
		assert_int_equal(
			hapax_store_run(
				scene.store, ops, linked != 0 ? RESULT_CASE_SIZES : OPS, NULL),
			HAPAX_OK);
		for (unsigned i = 0; i < OPS; i++) {
			struct hapax_result expected = result_case_expected(i % RESULT_CASE_SIZES);

			if (linked == 0 || i < RESULT_CASE_SIZES)
				result_case_must_be(&records[i], &expected);
			hapax_buf_free(bufs[i]);
		}
	}
	result_case_done(&scene);
}

/* In which class segment bytes are, and where there. */
static uint64_t find_bytes(
	struct result_case *scene, const unsigned char *bytes, size_t size,
	char path[SIM_PATH_SIZE])
{
	static unsigned char file_bytes[4 << 20];
	const char *each;
	uint64_t file_size;

	for (size_t i = 0; (each = sim_disk_path(scene->disk, i, &file_size)); i++) {
		unsigned char *at;
		int file;

		if (strstr(each, "/hour-") == NULL)
			continue;
		snprintf(path, SIM_PATH_SIZE, "%s", each);
		file = scene->io->ops->open(scene->io->context, path, HX_IO_READ, 0);
		assert_true(file >= 0 && file_size <= sizeof(file_bytes));
		assert_int_equal(
			hx_io_read_full(scene->io, file, file_bytes, file_size, 0), file_size);
		scene->io->ops->close(scene->io->context, file);
		at = memmem(file_bytes, file_size, bytes, size);
		if (at != NULL)
			return (uint64_t)(at - file_bytes);
	}
	fail_msg("the result is in no class segment");
	return 0;
}

/* Flip a bit in the middle of them. */
static void damage(struct result_case *scene, const unsigned char *bytes, size_t size)
{
	char path[SIM_PATH_SIZE];
	uint64_t at = find_bytes(scene, bytes, size, path);

	sim_disk_flip(scene->disk, path, (at + size / 2) * 8);
}

static int ignore(const struct hapax_record *record, void *context)
{
	(void)record;
	(void)context;
	return 0;
}

static void answered(struct hapax_op *ops, size_t count, void *context)
{
	(void)ops;
	*(size_t *)context += count;
}

/* Never a wrong byte, never an empty result: an error that says what is so, and no more than that. */
static void damage_is_an_error_and_nothing_else(void **state)
{
	static unsigned char good_bytes[3000], bad_bytes[3000];
	struct hapax_result good = result_case_result(good_bytes, 1, 0, sizeof(good_bytes));
	struct hapax_result bad = result_case_result(bad_bytes, 2, 10, sizeof(bad_bytes) - 10);
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct hapax_cursor cursor = {0};
	struct hapax_error err = {0};
	struct result_case scene;
	struct hapax_op op;
	size_t count = 0;

	(void)state;
	result_case_init(&scene);
	result_case_complete(&scene, "good", &good);
	result_case_complete(&scene, "bad", &bad);
	result_case_push_out(&scene);
	damage(&scene, bad_bytes, sizeof(bad_bytes));
	op = result_case_op(&scene, HAPAX_OP_CLAIM, "bad");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, &err), HAPAX_ERR_CORRUPT);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_NONE);
	assert_int_equal(scene.record.result.body.size, 0);
	/* By submit, too. */
	op = result_case_op(&scene, HAPAX_OP_LOOKUP, "bad");
	hapax_store_submit(scene.store, &op, 1, (struct hapax_completion){answered, &count});
	assert_int_equal(count, 1);
	assert_int_equal(op.status, HAPAX_ERR_CORRUPT);
	/* A caller that asks for the decision alone gets it. */
	op = result_case_op(&scene, HAPAX_OP_CLAIM, "bad");
	op.record = NULL;
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_REPLAY);
	/* Nothing is latched, and others are not concerned. */
	op = result_case_op(&scene, HAPAX_OP_LOOKUP, "good");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	result_case_must_be(&scene.record, &good);
	result_case_complete(&scene, "new", &good);
	/* It is told, with its place. */
	assert_int_equal(hapax_store_stats(scene.store, &stats, NULL, NULL, NULL), HAPAX_OK);
	assert_int_equal(stats.tidy_failures, 2);
	assert_int_equal(result_case_sweep(&scene, &err), HAPAX_ERR_CORRUPT);
	assert_non_null(strstr(err.message, "hour-"));
	assert_non_null(strstr(err.message, "offset"));
	err.message[0] = '\0';
	assert_int_equal(
		hapax_store_scan(scene.store, NULL, &cursor, ignore, NULL, &err),
		HAPAX_ERR_CORRUPT);
	assert_non_null(strstr(err.message, "offset"));
	/* What can be done without it is done. */
	op = result_case_op(&scene, HAPAX_OP_FORGET, "bad");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_APPLIED);
	assert_int_equal(scene.record.result.body.size, 0);
	assert_int_equal(scene.record.result.headers.size, 0);
	assert_int_equal(scene.record.result.omitted_bytes, bad.body.size);
	op = result_case_op(&scene, HAPAX_OP_LOOKUP, "bad");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_ABSENT);
	result_case_done(&scene);
}

/* A disk that does not answer, once: the next one who asks is answered. */
static void a_failing_read_is_an_error_of_its_own(void **state)
{
	static const struct {
		unsigned call;
		int error;
		enum hapax_status status;
	} faults[] = {
		/* Never UNAVAILABLE: a caller that continues without a store would run it again. */
		{SIM_PREAD, EIO, HAPAX_ERR_CORRUPT},   {SIM_OPEN, EMFILE, HAPAX_ERR_LIMIT},
		{SIM_OPEN, EACCES, HAPAX_ERR_CORRUPT}, {SIM_OPEN, ENOENT, HAPAX_ERR_CORRUPT},
		{SIM_PREAD, SIM_SHORT, HAPAX_OK},
	};
	static unsigned char bytes[3000];
	struct hapax_result result = result_case_result(bytes, 1, 0, sizeof(bytes));
	struct result_case scene;

	(void)state;
	result_case_init(&scene);
	result_case_complete(&scene, "key", &result);
	result_case_push_out(&scene);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct hapax_op op = result_case_op(&scene, HAPAX_OP_CLAIM, "key");

		sim_disk_fail_at(scene.disk, faults[i].call, 1, false, faults[i].error);
		assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), faults[i].status);
		op = result_case_op(&scene, HAPAX_OP_CLAIM, "key");
		assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
		assert_int_equal(op.outcome, HAPAX_OUTCOME_REPLAY);
		result_case_must_be(&scene.record, &result);
	}
	result_case_complete(&scene, "other", &result);
	result_case_done(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_of_every_size_come_back),
		cmocka_unit_test(memory_is_given_back),
		cmocka_unit_test(values_of_set_stay_in_memory),
		cmocka_unit_test(everybody_is_answered_as_before),
		cmocka_unit_test(batches_get_theirs),
		cmocka_unit_test(damage_is_an_error_and_nothing_else),
		cmocka_unit_test(a_failing_read_is_an_error_of_its_own),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests_name("log_results", tests, NULL, NULL);
}
