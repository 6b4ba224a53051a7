/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/mark.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "support/index_case.h"

enum { DAY_MS = 24 * 3600 * 1000 };

static struct hx_work_context context_of(struct index_case *c)
{
	return (struct hx_work_context){
		.index = c->index, .rules = {.now_ms = CASE_EPOCH_MS}, .parked_max = 1};
}

static struct hapax_op check_of(const char *key, int64_t ttl_ms)
{
	return (struct hapax_op){
		.type = HAPAX_OP_CHECK,
		.key = hapax_bytes_from_text(key),
		.ttl_ms = ttl_ms,
		.expires_ms = HAPAX_TIME_NEVER};
}

static unsigned run_all(struct index_case *c, struct hapax_op *ops, unsigned count)
{
	const struct hx_work_context context = context_of(c);
	struct hx_index_key keys[8];
	unsigned seat = hx_epoch_enter(&c->index->epoch);

	for (unsigned i = 0; i < count; i++)
		hx_index_key_init(c->index, &keys[i], HX_SCOPE_DEFAULT, ops[i].key);
	unsigned left = hx_mark_run_all(&context, keys, ops, count);
	hx_epoch_leave(&c->index->epoch, seat);
	return left;
}

static void new_keys_are_marked_and_met_again(void **state)
{
	struct hapax_op ops[] = {
		check_of("a", DAY_MS), check_of("b", DAY_MS), check_of("a", 2 * DAY_MS)};
	struct index_case c;

	(void)state;
	index_case_begin(&c, 100, 0);
	assert_int_equal(run_all(&c, ops, 3), 0);
	assert_int_equal(ops[0].outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(ops[1].outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(ops[2].outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(ops[2].token, 0);
	assert_int_equal(ops[2].first_seen_ms, ops[0].first_seen_ms);
	assert_int_equal(ops[2].expires_ms, CASE_EPOCH_MS + DAY_MS);
	index_case_end(&c);
}

/* One that must go the long way takes with it all that follow on its key, and no other. */
static void followers_stay_behind(void **state)
{
	struct hapax_op ops[] = {check_of("a", DAY_MS), check_of("b", INT64_C(60) * DAY_MS),
				 check_of("c", DAY_MS), check_of("b", DAY_MS),
				 check_of("c", DAY_MS), check_of("b", DAY_MS)};
	struct index_case c;

	(void)state;
	index_case_begin(&c, 100, 0);
	assert_int_equal(run_all(&c, ops, 6), 1u << 1 | 1u << 3 | 1u << 5);
	assert_int_equal(index_case_find(&c, "b"), 0);
	assert_int_equal(ops[4].outcome, HAPAX_OUTCOME_REPLAY);
	index_case_end(&c);
}

/* The same when it is a limit that stands in the way. */
static void a_limit_is_left_to_the_long_way(void **state)
{
	struct hapax_op ops[] = {
		check_of("b", DAY_MS), check_of("b", DAY_MS), check_of("a", DAY_MS)};
	struct index_case c;

	(void)state;
	index_case_begin(&c, 1, 0);
	index_case_put(&c, "claimed", HAPAX_STATE_CLAIMED, 0);
	assert_int_equal(run_all(&c, ops, 3), 7);
	assert_int_equal(atomic_load(&c.index->keys), 1);
	index_case_end(&c);
}

static void only_plain_checks_fit(void **state)
{
	struct hapax_op op = check_of("a", DAY_MS);
	struct hapax_record record;

	(void)state;
	assert_true(hx_mark_fits(&op));
	op.ttl_ms = HAPAX_TTL_FOREVER;
	assert_false(hx_mark_fits(&op));
	op = check_of("a", DAY_MS);
	op.record = &record;
	assert_false(hx_mark_fits(&op));
	op = check_of("a", DAY_MS);
	op.type = HAPAX_OP_LOOKUP;
	assert_false(hx_mark_fits(&op));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_keys_are_marked_and_met_again),
		cmocka_unit_test(followers_stay_behind),
		cmocka_unit_test(a_limit_is_left_to_the_long_way),
		cmocka_unit_test(only_plain_checks_fit),
	};

	return cmocka_run_group_tests_name("index_mark", tests, NULL, NULL);
}
