/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_log_results.c - large results of file: leave memory for a class segment, and come
 * back from there: whatever happens to the segment meanwhile, for every caller, and never
 * another one, nor half of one. With threads: test_log_bustle.c.
 */
#include <errno.h>
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

#include "base/alloc.h"
#include "base/thread.h"
#include "store/index/elsewhere.h"
#include "store/log/format/format.h"
#include "store/log/log_store.h"
#include "support/scale.h"
#include "support/sim_disk.h"
#include "support/sim_fates.h"
#include "support/store_case.h"
#include "support/temp_dir.h"
#include "support/virtual_clock.h"

enum { SEGMENT = 64 * 1024, BYTES_MAX = 1 << 20, TTL_MS = 60000 };

/* A store on a disk in memory, without threads of its own. */
struct scene {
	struct sim_disk *disk;
	const struct hx_io *io;
	char path[300];
	struct hx_virtual_clock clock;
	struct hapax_store_options options;
	struct hapax_store *store;
	struct hapax_record record;
	struct hapax_buf *buf;
	unsigned fillers;
	uint64_t attempts;
};

static void scene_open(struct scene *scene)
{
	struct hapax_error err = {0};

	if (hx_log_open_on(
		    scene->io, "file:/store", scene->path, &scene->options, &scene->store, &err) !=
	    HAPAX_OK)
		fail_msg("%s", err.message);
}

static void scene_reopen(struct scene *scene)
{
	hapax_store_close(scene->store);
	scene_open(scene);
}

static void scene_init(struct scene *scene)
{
	memset(scene, 0, sizeof(*scene));
	hx_random_seed_for_tests(5);
	scene->disk = sim_disk_new(5);
	scene->io = sim_disk_io(scene->disk);
	snprintf(scene->path, sizeof(scene->path), "/store");
	hx_virtual_clock_init(&scene->clock, CASE_EPOCH_MS);
	scene->options = (struct hapax_store_options)HAPAX_STORE_OPTIONS_INIT;
	scene->options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	scene->options.segment_bytes = SEGMENT;
	scene->options.clock = hx_virtual_clock_clock(&scene->clock);
	scene->buf = hapax_buf_new(BYTES_MAX);
	assert_non_null(scene->buf);
	scene_open(scene);
}

static void scene_done(struct scene *scene)
{
	hapax_store_close(scene->store);
	hapax_buf_free(scene->buf);
	sim_disk_free(scene->disk);
	hx_random_seed_for_tests(0);
}

/* A result that tells which one it is, wherever one looks. */
static struct hapax_result result_of(
	unsigned char *bytes, unsigned seed, size_t headers_size, size_t body_size)
{
	for (size_t i = 0; i < headers_size + body_size; i++)
		bytes[i] = (unsigned char)((i * 31 + seed * 7 + i / 251) & 0xff);
	return (struct hapax_result){
		.kind = HAPAX_RESULT_HTTP,
		.status = (int32_t)(200 + seed % 100),
		.headers = {bytes, headers_size},
		.body = {bytes + headers_size, body_size},
	};
}

static struct hapax_op op_of(struct scene *scene, enum hapax_op_type type, const char *key)
{
	return (struct hapax_op){
		.type = type,
		.key = hapax_bytes_from_text(key),
		.attempt_id = case_attempt_id(++scene->attempts % 60000 + 1),
		.lease_ms = 1000,
		.ttl_ms = TTL_MS,
		.record = &scene->record,
		.buf = scene->buf,
	};
}

static void complete(struct scene *scene, const char *key, const struct hapax_result *result)
{
	struct hapax_op claim = op_of(scene, HAPAX_OP_CLAIM, key);
	struct hapax_op done = op_of(scene, HAPAX_OP_COMPLETE, key);

	assert_int_equal(hapax_store_run(scene->store, &claim, 1, NULL), HAPAX_OK);
	assert_int_equal(claim.outcome, HAPAX_OUTCOME_ACQUIRED);
	done.token = claim.token;
	done.result = result;
	assert_int_equal(hapax_store_run(scene->store, &done, 1, NULL), HAPAX_OK);
}

static enum hapax_status sweep(struct scene *scene, struct hapax_error *err)
{
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;
	enum hapax_status status = HAPAX_OK;

	while (status == HAPAX_OK && !sweep.done)
		status = hapax_store_sweep(scene->store, &sweep, err);
	return status;
}

/* Until the segment that is written now is an old one. */
static void fill_log(struct scene *scene)
{
	for (unsigned i = 0; i < 2 * SEGMENT / HX_LOG_BLOCK_SIZE; i++) {
		struct hapax_op op;
		char key[32];

		snprintf(key, sizeof(key), "filler %u", scene->fillers++);
		op = op_of(scene, HAPAX_OP_CHECK, key);
		assert_int_equal(hapax_store_run(scene->store, &op, 1, NULL), HAPAX_OK);
	}
}

/* And a pass copies it. */
static void push_out(struct scene *scene)
{
	struct hapax_error err = {0};

	fill_log(scene);
	if (sweep(scene, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
}

static uint64_t reads(const struct scene *scene)
{
	return sim_disk_calls(scene->disk, SIM_PREAD);
}

static void must_be(const struct hapax_record *record, const struct hapax_result *expected)
{
	const struct hapax_result *result = &record->result;

	assert_int_equal(record->state, HAPAX_STATE_DONE);
	assert_int_equal(result->kind, expected->kind);
	assert_int_equal(result->status, expected->status);
	assert_int_equal(result->omitted_bytes, expected->omitted_bytes);
	assert_true(
		case_bytes_are(result->headers, expected->headers.data, expected->headers.size));
	assert_true(case_bytes_are(result->body, expected->body.data, expected->body.size));
}

static const struct {
	size_t headers;
	size_t body;
} sizes[] = {
	{0, 0},   {0, 1},   {0, 127},   {0, 128},  {0, 129},   {128, 0},      {129, 0},
	{64, 64}, {64, 65}, {60, 4096}, {0, 4096}, {0, 70000}, {300, 200000}, {0, 256 * 1024},
};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static unsigned char expected_bytes[SIZES][256 * 1024 + 512];

static struct hapax_result expected_of(unsigned i)
{
	return result_of(expected_bytes[i], i, sizes[i].headers, sizes[i].body);
}

static void key_of(char key[32], unsigned i)
{
	snprintf(key, 32, "key %u", i);
}

static bool is_large(unsigned i)
{
	return sizes[i].headers + sizes[i].body > HX_RESULT_IN_MEMORY_MAX;
}

/* Every way to get a record. is_out: large ones are read, in one piece, and no others. */
static void must_answer_all(struct scene *scene, bool is_out)
{
	static const enum hapax_op_type types[] = {HAPAX_OP_LOOKUP, HAPAX_OP_CLAIM, HAPAX_OP_CHECK};

	for (unsigned i = 0; i < SIZES; i++) {
		struct hapax_result expected = expected_of(i);
		char key[32];

		key_of(key, i);
		for (size_t type = 0; type < sizeof(types) / sizeof(types[0]); type++) {
			struct hapax_op op = op_of(scene, types[type], key);
			uint64_t before = reads(scene);

			memset(&scene->record, 0, sizeof(scene->record));
			assert_int_equal(hapax_store_run(scene->store, &op, 1, NULL), HAPAX_OK);
			assert_int_equal(
				op.outcome,
				types[type] == HAPAX_OP_LOOKUP ? HAPAX_OUTCOME_FOUND
							       : HAPAX_OUTCOME_REPLAY);
			must_be(&scene->record, &expected);
			assert_int_equal(reads(scene) - before, is_out && is_large(i));
			/* Who does not want it does not pay for it. */
			op.record = NULL;
			before = reads(scene);
			assert_int_equal(hapax_store_run(scene->store, &op, 1, NULL), HAPAX_OK);
			assert_int_equal(reads(scene), before);
		}
	}
}

struct seen {
	unsigned count;
};

static int check_scanned(const struct hapax_record *record, void *context)
{
	struct seen *seen = context;
	struct hapax_result expected;
	char text[32] = {0};

	memcpy(text, record->key.data, record->key.size < 31 ? record->key.size : 31);
	if (strncmp(text, "key ", 4) != 0)
		return 0;
	expected = expected_of((unsigned)strtoul(text + 4, NULL, 10));
	must_be(record, &expected);
	seen->count++;
	return 0;
}

static void must_scan_all(struct scene *scene)
{
	struct hapax_cursor cursor = {0};
	struct seen seen = {0};

	while (!cursor.done)
		assert_int_equal(
			hapax_store_scan(scene->store, NULL, &cursor, check_scanned, &seen, NULL),
			HAPAX_OK);
	assert_int_equal(seen.count, SIZES);
}

static uint64_t bytes_in_memory(struct scene *scene)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;

	assert_int_equal(hapax_store_stats(scene->store, &stats, NULL, NULL, NULL), HAPAX_OK);
	return stats.bytes;
}

static void complete_all(struct scene *scene)
{
	for (unsigned i = 0; i < SIZES; i++) {
		struct hapax_result result = expected_of(i);
		char key[32];

		key_of(key, i);
		complete(scene, key, &result);
	}
}

/* Some of them again: their old versions are in class segments, the new ones in the log. */
static void complete_some_again(struct scene *scene)
{
	for (unsigned i = 0; i < SIZES; i += 2) {
		struct hapax_result result = expected_of(i);
		struct hapax_op op;
		char key[32];

		key_of(key, i);
		op = op_of(scene, HAPAX_OP_FORGET, key);
		op.record = NULL;
		assert_int_equal(hapax_store_run(scene->store, &op, 1, NULL), HAPAX_OK);
		complete(scene, key, &result);
	}
	fill_log(scene);
}

static void results_of_every_size_come_back(void **state)
{
	struct scene scene;
	struct sim_fates fates;
	struct hx_prng prng;

	(void)state;
	scene_init(&scene);
	complete_all(&scene);
	must_answer_all(&scene, false);
	push_out(&scene);
	must_answer_all(&scene, true);
	must_scan_all(&scene);
	scene_reopen(&scene);
	must_answer_all(&scene, true);
	must_scan_all(&scene);
	/* Passes that merge what earlier ones have made. */
	for (unsigned i = 0; i < 20; i++)
		push_out(&scene);
	must_answer_all(&scene, true);
	must_scan_all(&scene);
	/* The power goes. */
	hapax_store_close(scene.store);
	sim_fates_lose_all(&fates);
	hx_prng_seed(&prng, 6);
	sim_disk_crash(scene.disk, &fates, &prng);
	scene_open(&scene);
	must_answer_all(&scene, true);
	scene_done(&scene);
}

/* What memory gets back is what the results took. */
static void memory_is_given_back(void **state)
{
	enum { RESULTS = 64, BYTES = 20000 };
	static unsigned char bytes[BYTES];
	struct scene scene;
	uint64_t before;

	(void)state;
	scene_init(&scene);
	before = bytes_in_memory(&scene);
	for (unsigned i = 0; i < RESULTS; i++) {
		struct hapax_result result = result_of(bytes, i, 0, BYTES);
		char key[32];

		key_of(key, i);
		complete(&scene, key, &result);
	}
	assert_true(bytes_in_memory(&scene) - before > RESULTS * BYTES);
	push_out(&scene);
	/* Gaps are given back as chunks: the last ones may stay. */
	assert_true(bytes_in_memory(&scene) - before < RESULTS * BYTES / 2 + (4 << 18));
	scene_reopen(&scene);
	assert_true(bytes_in_memory(&scene) - before < RESULTS * 1024);
	scene_done(&scene);
}

/* Records that SET has made are compared when a decision is made: they stay. */
static void values_of_set_stay_in_memory(void **state)
{
	static unsigned char bytes[4096];
	struct hapax_result result = result_of(bytes, 1, 0, sizeof(bytes));
	struct scene scene;
	struct hapax_op op;
	uint64_t before;

	(void)state;
	result.kind = HAPAX_RESULT_BYTES;
	scene_init(&scene);
	op = op_of(&scene, HAPAX_OP_SET, "set");
	op.result = &result;
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	push_out(&scene);
	scene_reopen(&scene);
	before = reads(&scene);
	op = op_of(&scene, HAPAX_OP_LOOKUP, "set");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	must_be(&scene.record, &result);
	op = op_of(&scene, HAPAX_OP_FORGET, "set");
	op.flags = HAPAX_OP_SET_ONLY;
	op.set_if = HAPAX_SET_IF_EQUAL;
	op.expected = result.body;
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_APPLIED);
	assert_int_equal(reads(&scene), before);
	scene_done(&scene);
}

/* Operations that meet such a record, and what they hand out. */
static void everybody_is_answered_as_before(void **state)
{
	static unsigned char bytes[5000], other[5000];
	struct hapax_result result = result_of(bytes, 3, 100, 4900);
	struct hapax_result second = result_of(other, 4, 100, 4900);
	unsigned char print[HAPAX_FINGERPRINT_SIZE] = {1};
	struct scene scene;
	struct hapax_op op;
	uint64_t token;

	(void)state;
	scene_init(&scene);
	op = op_of(&scene, HAPAX_OP_CLAIM, "key");
	op.fingerprint = print;
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	token = op.token;
	op = op_of(&scene, HAPAX_OP_COMPLETE, "key");
	op.token = token;
	op.result = &result;
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	push_out(&scene);
	/* I7: another payload gets no result, and none is read. */
	print[0] = 2;
	op = op_of(&scene, HAPAX_OP_CLAIM, "key");
	op.fingerprint = print;
	uint64_t before = reads(&scene);
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_MISMATCH);
	assert_int_equal(scene.record.result.body.size, 0);
	assert_int_equal(scene.record.result.headers.size, 0);
	assert_int_equal(reads(&scene), before);
	/* A repeated complete: the stored result stays. */
	op = op_of(&scene, HAPAX_OP_COMPLETE, "key");
	op.token = token;
	op.result = &second;
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	must_be(&scene.record, &result);
	/* SET and its kind leave it alone, and NX shows it. */
	op = op_of(&scene, HAPAX_OP_SET, "key");
	op.set_if = HAPAX_SET_IF_ABSENT;
	op.result = &second;
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_NOT_MET);
	must_be(&scene.record, &result);
	op = op_of(&scene, HAPAX_OP_EXPIRE, "key");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_BUSY);
	must_be(&scene.record, &result);
	/* A buffer that is too small for it. */
	struct hapax_buf *small = hapax_buf_new(1000);
	op = op_of(&scene, HAPAX_OP_LOOKUP, "key");
	op.buf = small;
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_ERR_LIMIT);
	hapax_buf_free(small);
	/* forget hands out what it removes. */
	op = op_of(&scene, HAPAX_OP_FORGET, "key");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_APPLIED);
	must_be(&scene.record, &result);
	complete(&scene, "key", &second);
	op = op_of(&scene, HAPAX_OP_LOOKUP, "key");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	must_be(&scene.record, &second);
	push_out(&scene);
	op = op_of(&scene, HAPAX_OP_LOOKUP, "key");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	must_be(&scene.record, &second);
	scene_done(&scene);
}

/* Groups and batches: each operation gets its own. */
static void batches_get_theirs(void **state)
{
	enum { OPS = 2 * SIZES };
	struct hapax_record records[OPS];
	struct hapax_buf *bufs[OPS];
	struct hapax_op ops[OPS];
	char keys[SIZES][32];
	struct scene scene;

	(void)state;
	scene_init(&scene);
	complete_all(&scene);
	push_out(&scene);
	for (unsigned linked = 0; linked < 2; linked++) {
		for (unsigned i = 0; i < OPS; i++) {
			key_of(keys[i % SIZES], i % SIZES);
			bufs[i] = hapax_buf_new(BYTES_MAX);
			ops[i] = op_of(&scene, HAPAX_OP_LOOKUP, keys[i % SIZES]);
			ops[i].record = &records[i];
			ops[i].buf = bufs[i];
			if (linked != 0 && i + 1 < SIZES)
				ops[i].flags = HAPAX_OP_LINKED;
		}
		assert_int_equal(
			hapax_store_run(scene.store, ops, linked != 0 ? SIZES : OPS, NULL),
			HAPAX_OK);
		for (unsigned i = 0; i < OPS; i++) {
			struct hapax_result expected = expected_of(i % SIZES);

			if (linked == 0 || i < SIZES)
				must_be(&records[i], &expected);
			hapax_buf_free(bufs[i]);
		}
	}
	scene_done(&scene);
}

static unsigned count_classes(struct scene *scene)
{
	unsigned count = 0;
	const char *path;
	uint64_t size;

	for (size_t i = 0; (path = sim_disk_path(scene->disk, i, &size)); i++)
		count += strstr(path, "/hour-") != NULL;
	return count;
}

/* In which class segment bytes are, and where there. */
static uint64_t find_bytes(
	struct scene *scene, const unsigned char *bytes, size_t size, char path[SIM_PATH_SIZE])
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
static void damage(struct scene *scene, const unsigned char *bytes, size_t size)
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
	struct hapax_result good = result_of(good_bytes, 1, 0, sizeof(good_bytes));
	struct hapax_result bad = result_of(bad_bytes, 2, 10, sizeof(bad_bytes) - 10);
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct hapax_cursor cursor = {0};
	struct hapax_error err = {0};
	struct scene scene;
	struct hapax_op op;
	size_t count = 0;

	(void)state;
	scene_init(&scene);
	complete(&scene, "good", &good);
	complete(&scene, "bad", &bad);
	push_out(&scene);
	damage(&scene, bad_bytes, sizeof(bad_bytes));
	op = op_of(&scene, HAPAX_OP_CLAIM, "bad");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, &err), HAPAX_ERR_CORRUPT);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_NONE);
	assert_int_equal(scene.record.result.body.size, 0);
	/* By submit, too. */
	op = op_of(&scene, HAPAX_OP_LOOKUP, "bad");
	hapax_store_submit(scene.store, &op, 1, (struct hapax_completion){answered, &count});
	assert_int_equal(count, 1);
	assert_int_equal(op.status, HAPAX_ERR_CORRUPT);
	/* A caller that asks for the decision alone gets it. */
	op = op_of(&scene, HAPAX_OP_CLAIM, "bad");
	op.record = NULL;
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_REPLAY);
	/* Nothing is latched, and others are not concerned. */
	op = op_of(&scene, HAPAX_OP_LOOKUP, "good");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	must_be(&scene.record, &good);
	complete(&scene, "new", &good);
	/* It is told, with its place. */
	assert_int_equal(hapax_store_stats(scene.store, &stats, NULL, NULL, NULL), HAPAX_OK);
	assert_int_equal(stats.tidy_failures, 2);
	assert_int_equal(sweep(&scene, &err), HAPAX_ERR_CORRUPT);
	assert_non_null(strstr(err.message, "hour-"));
	assert_non_null(strstr(err.message, "offset"));
	err.message[0] = '\0';
	assert_int_equal(
		hapax_store_scan(scene.store, NULL, &cursor, ignore, NULL, &err),
		HAPAX_ERR_CORRUPT);
	assert_non_null(strstr(err.message, "offset"));
	/* What can be done without it is done. */
	op = op_of(&scene, HAPAX_OP_FORGET, "bad");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_APPLIED);
	assert_int_equal(scene.record.result.body.size, 0);
	assert_int_equal(scene.record.result.headers.size, 0);
	assert_int_equal(scene.record.result.omitted_bytes, bad.body.size);
	op = op_of(&scene, HAPAX_OP_LOOKUP, "bad");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_ABSENT);
	scene_done(&scene);
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
	struct hapax_result result = result_of(bytes, 1, 0, sizeof(bytes));
	struct scene scene;

	(void)state;
	scene_init(&scene);
	complete(&scene, "key", &result);
	push_out(&scene);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct hapax_op op = op_of(&scene, HAPAX_OP_CLAIM, "key");

		sim_disk_fail_at(scene.disk, faults[i].call, 1, false, faults[i].error);
		assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), faults[i].status);
		op = op_of(&scene, HAPAX_OP_CLAIM, "key");
		assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
		assert_int_equal(op.outcome, HAPAX_OUTCOME_REPLAY);
		must_be(&scene.record, &result);
	}
	complete(&scene, "other", &result);
	scene_done(&scene);
}

/* A sweep in which something fails, once: whatever came of it, every result is there. */
static void must_survive_a_sweep(unsigned calls, int error, uint64_t nth)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct scene scene;

	scene_init(&scene);
	complete_all(&scene);
	for (unsigned i = 0; i < 6; i++)
		push_out(&scene);
	complete_some_again(&scene);
	if (calls != 0)
		sim_disk_fail_at(scene.disk, calls, nth, false, error);
	else
		hx_alloc_fail_at(nth, 0);
	(void)sweep(&scene, NULL);
	sim_disk_fail_at(scene.disk, SIM_ANY, 0, false, 0);
	hx_alloc_fail_at(0, 0);
	/* Latched by a write that failed: then the next process finds them. */
	if (hapax_store_stats(scene.store, &stats, NULL, NULL, NULL) != HAPAX_OK)
		scene_reopen(&scene);
	must_scan_all(&scene);
	for (unsigned i = 0; i < 10; i++)
		push_out(&scene);
	must_scan_all(&scene);
	scene_reopen(&scene);
	must_scan_all(&scene);
	scene_done(&scene);
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

static uint64_t bytes_on_disk(struct scene *scene)
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
	struct hapax_result result = result_of(bytes, 1, 0, sizeof(bytes));
	struct scene scene;
	struct hapax_op op;

	(void)state;
	scene_init(&scene);
	complete(&scene, "key", &result);
	fill_log(&scene);
	op = op_of(&scene, HAPAX_OP_CLAIM, "held");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	/* What has a claim may take the last block of the segment. */
	sim_disk_set_room(scene.disk, bytes_on_disk(&scene));
	op.type = HAPAX_OP_RENEW;
	while (hapax_store_run(scene.store, &op, 1, NULL) == HAPAX_OK)
		continue;
	assert_int_equal(op.status, HAPAX_ERR_LIMIT);
	sim_disk_set_room(scene.disk, bytes_on_disk(&scene) + 8 * (uint64_t)HX_LOG_BLOCK_SIZE);
	assert_int_equal(sweep(&scene, NULL), HAPAX_ERR_LIMIT);
	assert_int_equal(count_classes(&scene), 0);
	sim_disk_set_room(scene.disk, UINT64_MAX);
	for (unsigned i = 0; i < 2; i++) {
		op = op_of(&scene, HAPAX_OP_LOOKUP, "key");
		assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
		must_be(&scene.record, &result);
		push_out(&scene);
	}
	scene_done(&scene);
}

/* Twice what lives, results included, is not too much: nothing is rewritten without need. */
static void what_lives_is_left_alone(void **state)
{
	enum { RESULTS = 64, BYTES = 20000 };
	static unsigned char bytes[BYTES];
	struct scene scene;
	uint64_t before;

	(void)state;
	scene_init(&scene);
	for (unsigned i = 0; i < RESULTS; i++) {
		struct hapax_result result = result_of(bytes, i, 0, BYTES);
		char key[32];

		key_of(key, i);
		complete(&scene, key, &result);
	}
	push_out(&scene);
	/* Small segments are merged, and the log is left behind. */
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(sweep(&scene, NULL), HAPAX_OK);
	before = sim_disk_calls(scene.disk, SIM_PWRITE);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(sweep(&scene, NULL), HAPAX_OK);
	assert_int_equal(sim_disk_calls(scene.disk, SIM_PWRITE), before);
	scene_done(&scene);
}

/* Two versions that differ in their results alone: the later one counts, wherever both are. */
static void versions_are_told_apart_by_their_results(void **state)
{
	static unsigned char bytes[3000], other[3000];
	struct hapax_result result = result_of(bytes, 3, 0, sizeof(bytes));
	struct hapax_result second = result_of(other, 103, 0, sizeof(other));
	struct hapax_record record;
	struct scene scene;
	struct hapax_op op;

	(void)state;
	scene_init(&scene);
	complete(&scene, "key", &result);
	push_out(&scene);
	op = op_of(&scene, HAPAX_OP_LOOKUP, "key");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	must_be(&scene.record, &result);
	record = scene.record;
	record.result = second;
	op = (struct hapax_op){.type = HAPAX_OP_LOAD, .key = op.key, .load = &record};
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	for (unsigned i = 0; i < 12; i++) {
		push_out(&scene);
		op = op_of(&scene, HAPAX_OP_LOOKUP, "key");
		assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
		must_be(&scene.record, &second);
	}
	scene_reopen(&scene);
	op = op_of(&scene, HAPAX_OP_LOOKUP, "key");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	must_be(&scene.record, &second);
	scene_done(&scene);
}

static void say(
	struct scene *scene, enum hapax_op_type type, const char *key, uint64_t token,
	const char *error)
{
	struct hapax_op op = op_of(scene, type, key);

	op.token = token;
	op.error = hapax_bytes_from_text(error);
	assert_int_equal(hapax_store_run(scene->store, &op, 1, NULL), HAPAX_OK);
}

/* Parked, taken up and parked again within a millisecond: the older version is not the one that lives. */
static void the_last_word_on_a_parked_key_stays(void **state)
{
	struct hapax_op op;
	struct scene scene;

	(void)state;
	scene_init(&scene);
	op = op_of(&scene, HAPAX_OP_CLAIM, "key");
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	say(&scene, HAPAX_OP_PARK, "key", op.token, "first");
	fill_log(&scene);
	say(&scene, HAPAX_OP_RENEW, "key", op.token, "");
	say(&scene, HAPAX_OP_PARK, "key", op.token, "second");
	/* The segment of the first one goes; the second one is in the one that is written. */
	assert_int_equal(sweep(&scene, NULL), HAPAX_OK);
	hapax_store_close(scene.store);
	scene_open(&scene);
	op = op_of(&scene, HAPAX_OP_LOOKUP, "key");
	op.record = &scene.record;
	op.buf = scene.buf;
	assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(scene.record.state, HAPAX_STATE_PARKED);
	assert_int_equal(scene.record.error.size, strlen("second"));
	assert_memory_equal(scene.record.error.data, "second", strlen("second"));
	scene_done(&scene);
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
	struct scene scene;
};

static void late_begin(struct late *late)
{
	struct scene *scene = &late->scene;

	memset(late, 0, sizeof(*late));
	late->result = result_of(late->bytes, 1, 0, sizeof(late->bytes));
	late->reader.buf = hapax_buf_new(BYTES_MAX);
	late->slow.ops = *hx_io_system()->ops;
	late->slow.ops.open = slow_open;
	late->slow.io = (struct hx_io){&late->slow.ops, &late->slow};
	scene_init(scene);
	hapax_store_close(scene->store);
	temp_dir_init(&late->dir);
	scene->io = &late->slow.io;
	snprintf(scene->path, sizeof(scene->path), "%s/store", late->dir.path);
	scene_open(scene);
	complete(scene, "key", &late->result);
	push_out(scene);
	late->reader.store = scene->store;
	late->slow.is_armed = 1;
	assert_int_equal(
		hx_thread_start(&late->thread, read_slowly, &late->reader, "reader", NULL),
		HAPAX_OK);
	hx_event_wait(&late->slow.begun);
	/* Merged, with seven others. */
	for (unsigned i = 0; i < 12; i++)
		push_out(scene);
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
	must_be(&late.reader.record, &late.result);
	assert_int_equal(sweep(&late.scene, NULL), HAPAX_OK);
	assert_int_not_equal(access(late.slow.path, F_OK), 0);
	scene_done(&late.scene);
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
	scene_done(&late.scene);
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
	struct hapax_result result = result_of(bytes, 1, 0, sizeof(bytes));
	struct hapax_scan scan = HAPAX_SCAN_INIT;
	struct hapax_cursor cursor = {0};
	struct scene scene;
	size_t size = 0;

	(void)state;
	scene_init(&scene);
	complete(&scene, "key", &result);
	push_out(&scene);
	assert_true(count_classes(&scene) > 0);
	hx_virtual_clock_advance(&scene.clock, 2 * TTL_MS);
	scan.flags = HAPAX_SCAN_EXPIRED;
	while (!cursor.done)
		assert_int_equal(
			hapax_store_scan(scene.store, &scan, &cursor, count_bodies, &size, NULL),
			HAPAX_OK);
	assert_int_equal(size, sizeof(bytes));
	assert_int_equal(sweep(&scene, NULL), HAPAX_OK);
	assert_int_equal(count_classes(&scene), 0);
	scene_done(&scene);
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
	return cmocka_run_group_tests_name("log_results", tests, NULL, NULL);
}
