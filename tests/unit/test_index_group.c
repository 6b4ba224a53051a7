/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/index_group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "support/index_case.h"

static const unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE] = {1};

static void run(struct index_case *c, struct hapax_op *ops, size_t count, bool all_or_nothing)
{
	const struct hx_work_context context = {
		.index = c->index,
		.rules =
			{.now_ms = CASE_EPOCH_MS,
			 .fresh_token = HX_TOKEN_MAX,
			 .result_size_max = HX_RESULT_SIZE_DEFAULT},
		.parked_max = 1};

	if (all_or_nothing)
		ops[0].flags |= HAPAX_OP_ALL_OR_NOTHING;
	assert_true(hx_index_group(&context, ops, count));
}

static struct hapax_op claim_of(const char *key)
{
	return (struct hapax_op){
		.type = HAPAX_OP_CLAIM,
		.tenant = HX_BYTES_LIT("default"),
		.group = HX_BYTES_LIT("default"),
		.key = hapax_bytes_from_text(key),
		.attempt_id = attempt_id,
		.lease_ms = 1000,
		.ttl_ms = 60000};
}

/* More than fit on the stack, as well. */
static void claims_share_one_token(void **state)
{
	enum { COUNT = 9 };
	struct hapax_op ops[COUNT];
	char keys[COUNT][8];
	struct index_case c;

	(void)state;
	index_case_begin(&c, 100, 0);
	for (int i = 0; i < COUNT; i++) {
		snprintf(keys[i], sizeof(keys[i]), "key %d", i);
		ops[i] = claim_of(keys[i]);
	}
	run(&c, ops, COUNT, true);
	for (int i = 0; i < COUNT; i++) {
		assert_int_equal(ops[i].outcome, HAPAX_OUTCOME_ACQUIRED);
		assert_int_equal(ops[i].token, 101);
	}
	assert_int_equal(c.index->shards[0].by_state[HAPAX_STATE_CLAIMED], COUNT);
	index_case_end(&c);
}

/* Nothing is left of a group that does not go: no record, no token, no count. */
static void what_does_not_go_leaves_nothing(void **state)
{
	struct hapax_op ops[] = {claim_of("a"), claim_of("b done"), claim_of("c")};
	struct hapax_record record = {.state = HAPAX_STATE_ABSENT};
	struct hapax_buf *buf = hapax_buf_new(4096);
	struct index_case c;

	(void)state;
	assert_non_null(buf);
	index_case_begin(&c, 100, 0);
	index_case_put(&c, "b done", HAPAX_STATE_DONE, 33);
	uint64_t live = c.index->shards[0].arena.live_bytes;
	ops[1].record = &record;
	ops[1].buf = buf;
	run(&c, ops, 3, true);
	assert_int_equal(ops[1].outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(record.result.body.size, 33);
	for (int i = 0; i < 3; i += 2) {
		assert_int_equal(ops[i].status, HAPAX_OK);
		assert_int_equal(ops[i].outcome, HAPAX_OUTCOME_SKIPPED);
		assert_int_equal(ops[i].token, 0);
	}
	assert_int_equal(c.index->shards[0].arena.live_bytes, live);
	assert_int_equal(atomic_load(&c.index->keys), 1);
	hapax_buf_free(buf);
	index_case_end(&c);
}

/* Who met the limit says so, and only it. */
static void limit_is_told_by_one(void **state)
{
	struct hapax_op ops[] = {claim_of("a"), claim_of("b"), claim_of("c")};
	struct index_case c;

	(void)state;
	index_case_begin(&c, 2, 0);
	index_case_put(&c, "held", HAPAX_STATE_CLAIMED, 0);
	run(&c, ops, 3, true);
	assert_int_equal(ops[0].outcome, HAPAX_OUTCOME_SKIPPED);
	assert_int_equal(ops[1].status, HAPAX_ERR_LIMIT);
	assert_int_equal(ops[2].outcome, HAPAX_OUTCOME_SKIPPED);
	assert_int_equal(atomic_load(&c.index->keys), 1);
	/* Linked only: those that fit go. */
	ops[0] = claim_of("a");
	ops[1] = claim_of("b");
	run(&c, ops, 2, false);
	assert_int_equal(ops[0].outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(ops[1].status, HAPAX_ERR_LIMIT);
	index_case_end(&c);
}

/* The second of a group knows what the first will take. */
static void group_does_not_pass_bytes_max(void **state)
{
	enum { BODY = 200000, COUNT = 40 };
	static char body[BODY];
	const struct hapax_result result = {
		.kind = HAPAX_RESULT_BYTES, .body = {body, sizeof(body)}};
	struct hapax_op ops[COUNT];
	char keys[COUNT][8];
	struct index_case c;
	int refused = 0;

	(void)state;
	index_case_begin(&c, 0, 4 << 20);
	for (int i = 0; i < COUNT; i++) {
		snprintf(keys[i], sizeof(keys[i]), "key %d", i);
		ops[i] = claim_of(keys[i]);
		ops[i].type = HAPAX_OP_SET;
		ops[i].result = &result;
	}
	run(&c, ops, COUNT, false);
	for (int i = 0; i < COUNT; i++)
		refused += ops[i].status == HAPAX_ERR_LIMIT;
	assert_in_range(refused, COUNT / 2, COUNT - 5);
	assert_true(atomic_load(&c.index->shards[0].charged_bytes) <= (4 << 20) / 4 * 3);
	index_case_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(claims_share_one_token),
		cmocka_unit_test(what_does_not_go_leaves_nothing),
		cmocka_unit_test(limit_is_told_by_one),
		cmocka_unit_test(group_does_not_pass_bytes_max),
	};

	return cmocka_run_group_tests_name("index_group", tests, NULL, NULL);
}
