/* SPDX-License-Identifier: Apache-2.0 */
#include "support/result_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "store/index/elsewhere.h"
#include "store/log/format/format.h"
#include "store/log/log_store.h"
#include "support/sim_disk.h"
#include "support/store_case.h"
#include "support/virtual_clock.h"

void result_case_open(struct result_case *scene)
{
	struct hapax_error err = {0};

	if (hx_log_open_on(
		    scene->io, "file:/store", scene->path, &scene->options, &scene->store, &err) !=
	    HAPAX_OK)
		fail_msg("%s", err.message);
}

void result_case_reopen(struct result_case *scene)
{
	hapax_store_close(scene->store);
	result_case_open(scene);
}

void result_case_init(struct result_case *scene)
{
	memset(scene, 0, sizeof(*scene));
	hx_random_seed_for_tests(5);
	scene->disk = sim_disk_new(5);
	scene->io = sim_disk_io(scene->disk);
	snprintf(scene->path, sizeof(scene->path), "/store");
	hx_virtual_clock_init(&scene->clock, CASE_EPOCH_MS);
	scene->options = (struct hapax_store_options)HAPAX_STORE_OPTIONS_INIT;
	scene->options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	scene->options.segment_bytes = RESULT_CASE_SEGMENT;
	scene->options.clock = hx_virtual_clock_clock(&scene->clock);
	scene->buf = hapax_buf_new(RESULT_CASE_BYTES_MAX);
	assert_non_null(scene->buf);
	result_case_open(scene);
}

void result_case_done(struct result_case *scene)
{
	hapax_store_close(scene->store);
	hapax_buf_free(scene->buf);
	sim_disk_free(scene->disk);
	hx_random_seed_for_tests(0);
}

struct hapax_result result_case_result(
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

struct hapax_op result_case_op(struct result_case *scene, enum hapax_op_type type, const char *key)
{
	return (struct hapax_op){
		.type = type,
		.key = hapax_bytes_from_text(key),
		.attempt_id = case_attempt_id(++scene->attempts % 60000 + 1),
		.lease_ms = 1000,
		.ttl_ms = RESULT_CASE_TTL_MS,
		.record = &scene->record,
		.buf = scene->buf,
	};
}

void result_case_complete(
	struct result_case *scene, const char *key, const struct hapax_result *result)
{
	struct hapax_op claim = result_case_op(scene, HAPAX_OP_CLAIM, key);
	struct hapax_op done = result_case_op(scene, HAPAX_OP_COMPLETE, key);

	assert_int_equal(hapax_store_run(scene->store, &claim, 1, NULL), HAPAX_OK);
	assert_int_equal(claim.outcome, HAPAX_OUTCOME_ACQUIRED);
	done.token = claim.token;
	done.result = result;
	assert_int_equal(hapax_store_run(scene->store, &done, 1, NULL), HAPAX_OK);
}

enum hapax_status result_case_sweep(struct result_case *scene, struct hapax_error *err)
{
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;
	enum hapax_status status = HAPAX_OK;

	while (status == HAPAX_OK && !sweep.done)
		status = hapax_store_sweep(scene->store, &sweep, err);
	return status;
}

void result_case_fill_log(struct result_case *scene)
{
	for (unsigned i = 0; i < 2 * RESULT_CASE_SEGMENT / HX_LOG_BLOCK_SIZE; i++) {
		struct hapax_op op;
		char key[32];

		snprintf(key, sizeof(key), "filler %u", scene->fillers++);
		op = result_case_op(scene, HAPAX_OP_CHECK, key);
		assert_int_equal(hapax_store_run(scene->store, &op, 1, NULL), HAPAX_OK);
	}
}

void result_case_push_out(struct result_case *scene)
{
	struct hapax_error err = {0};

	result_case_fill_log(scene);
	if (result_case_sweep(scene, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
}

void result_case_must_be(const struct hapax_record *record, const struct hapax_result *expected)
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
_Static_assert(sizeof(sizes) / sizeof(sizes[0]) == RESULT_CASE_SIZES, "one size for each key");

static unsigned char expected_bytes[RESULT_CASE_SIZES][256 * 1024 + 512];

struct hapax_result result_case_expected(unsigned i)
{
	return result_case_result(expected_bytes[i], i, sizes[i].headers, sizes[i].body);
}

void result_case_key(char key[32], unsigned i)
{
	snprintf(key, 32, "key %u", i);
}

bool result_case_is_large(unsigned i)
{
	return sizes[i].headers + sizes[i].body > HX_RESULT_IN_MEMORY_MAX;
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
	expected = result_case_expected((unsigned)strtoul(text + 4, NULL, 10));
	result_case_must_be(record, &expected);
	seen->count++;
	return 0;
}

void result_case_must_scan_all(struct result_case *scene)
{
	struct hapax_cursor cursor = {0};
	struct seen seen = {0};

	while (!cursor.done)
		assert_int_equal(
			hapax_store_scan(scene->store, NULL, &cursor, check_scanned, &seen, NULL),
			HAPAX_OK);
	assert_int_equal(seen.count, RESULT_CASE_SIZES);
}

void result_case_complete_all(struct result_case *scene)
{
	for (unsigned i = 0; i < RESULT_CASE_SIZES; i++) {
		struct hapax_result result = result_case_expected(i);
		char key[32];

		result_case_key(key, i);
		result_case_complete(scene, key, &result);
	}
}

unsigned result_case_count_classes(struct result_case *scene)
{
	unsigned count = 0;
	const char *path;
	uint64_t size;

	for (size_t i = 0; (path = sim_disk_path(scene->disk, i, &size)); i++)
		count += strstr(path, "/hour-") != NULL;
	return count;
}
