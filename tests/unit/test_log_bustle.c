/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_log_bustle.c - large results of file: are read, by run and by submit, while others
 * replace them and passes move them from file to file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "support/crowd.h"
#include "support/scale.h"
#include "support/store_case.h"

enum { READERS = 3, KEYS = 24, BODY = 700, BYTES_MAX = 1 << 16, TTL_MS = 60000 };

static void key_of(char key[32], unsigned i)
{
	snprintf(key, 32, "key %u", i);
}

struct bustle {
	struct store_case c;
	_Atomic int stops;
	_Atomic uint64_t replays;
	_Atomic uint64_t wrong;
	struct hapax_buf *bufs[READERS];
};

/* The body says which attempt of which key it is. */
static void fill_body(unsigned char body[BODY], unsigned key, uint64_t token)
{
	for (size_t i = 0; i < BODY; i++)
		body[i] = (unsigned char)((key * 13 + token * 7 + i) & 0xff);
}

struct waiting {
	struct hx_event done;
};

static void wake(struct hapax_op *ops, size_t count, void *context)
{
	struct waiting *waiting = context;

	(void)ops;
	(void)count;
	hx_event_set(&waiting->done);
}

static void read_one(struct bustle *bustle, size_t index, unsigned key, bool by_submit)
{
	unsigned char body[BODY];
	struct hapax_record record = {.state = HAPAX_STATE_ABSENT};
	struct waiting waiting;
	char name[32];
	struct hapax_op op = {
		.type = HAPAX_OP_LOOKUP, .record = &record, .buf = bustle->bufs[index]};

	key_of(name, key);
	op.key = hapax_bytes_from_text(name);
	if (by_submit) {
		hx_event_init(&waiting.done);
		hapax_store_submit(
			bustle->c.store, &op, 1, (struct hapax_completion){wake, &waiting});
		hx_event_wait(&waiting.done);
	} else {
		(void)hapax_store_run(bustle->c.store, &op, 1, NULL);
	}
	if (op.status != HAPAX_OK) {
		bustle->wrong++;
		return;
	}
	if (op.outcome != HAPAX_OUTCOME_FOUND || record.state != HAPAX_STATE_DONE)
		return;
	fill_body(body, key, record.token);
	bustle->replays++;
	bustle->wrong += !case_bytes_are(record.result.body, body, BODY);
}

static void write_one(struct bustle *bustle, unsigned key, uint64_t attempt)
{
	unsigned char body[BODY];
	unsigned char id[HAPAX_ATTEMPT_ID_SIZE] = {7};
	struct hapax_result result = {.kind = HAPAX_RESULT_BYTES, .body = {body, BODY}};
	char name[32];
	struct hapax_op op;

	key_of(name, key);
	memcpy(id + 1, &attempt, sizeof(attempt));
	op = (struct hapax_op){.type = HAPAX_OP_FORGET, .key = hapax_bytes_from_text(name)};
	bustle->wrong += hapax_store_run(bustle->c.store, &op, 1, NULL) != HAPAX_OK;
	op = (struct hapax_op){
		.type = HAPAX_OP_CLAIM,
		.key = hapax_bytes_from_text(name),
		.attempt_id = id,
		.ttl_ms = TTL_MS,
		.lease_ms = 1000};
	bustle->wrong += hapax_store_run(bustle->c.store, &op, 1, NULL) != HAPAX_OK;
	fill_body(body, key, op.token);
	op.type = HAPAX_OP_COMPLETE;
	op.result = &result;
	bustle->wrong += hapax_store_run(bustle->c.store, &op, 1, NULL) != HAPAX_OK;
}

static void bustle_about(size_t index, void *context)
{
	struct bustle *bustle = context;
	uint64_t rounds = scale_count(4000, 150);

	if (index < READERS) {
		for (unsigned i = 0; bustle->stops == 0; i++)
			read_one(bustle, index, (unsigned)(i * 5 + index) % KEYS, i % 2 != 0);
		return;
	}
	for (uint64_t i = 0; i < rounds; i++)
		write_one(bustle, (unsigned)(i * i + i / 7) % KEYS, i + 1);
	bustle->stops = 1;
}

static void passes_run_under_readers(void **state)
{
	struct bustle *bustle = calloc(1, sizeof(*bustle));
	double begin = scale_seconds();
	struct crowd crowd;

	(void)state;
	assert_non_null(bustle);
	store_case_init(&bustle->c, "file:");
	bustle->c.options.flags = 0;
	bustle->c.options.segment_bytes = 16384;
	store_case_open(&bustle->c);
	for (size_t i = 0; i < READERS; i++)
		bustle->bufs[i] = hapax_buf_new(BYTES_MAX);
	crowd_init(&crowd, READERS + 1);
	crowd_run(&crowd, bustle_about, bustle);
	crowd_done(&crowd);
	assert_int_equal(bustle->wrong, 0);
	assert_true(bustle->replays > 0);
	assert_int_equal(case_stats(&bustle->c).tidy_failures, 0);
	scale_report(
		"I2b: results read while passes move them", bustle->replays,
		scale_seconds() - begin, true);
	for (size_t i = 0; i < READERS; i++)
		hapax_buf_free(bustle->bufs[i]);
	store_case_done(&bustle->c);
	free(bustle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passes_run_under_readers),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests_name("log_bustle", tests, NULL, NULL);
}
