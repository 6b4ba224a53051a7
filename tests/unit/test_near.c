/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <hapax/near.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/thread.h"
#include "support/held_store.h"
#include "support/scale.h"
#include "support/store_case.h"

/* A store that several could use, and the near one before it. */
struct near_case {
	struct store_case far;
	struct hapax_store *store;
	struct hapax_near_options options;
};

static void begin(struct near_case *c)
{
	memset(c, 0, sizeof(*c));
	store_case_begin(&c->far, "file:");
	c->options = (struct hapax_near_options)HAPAX_NEAR_OPTIONS_INIT;
	c->options.clock = &c->far.clock.clock;
	assert_int_equal(hapax_near_open(c->far.store, &c->options, &c->store, NULL), HAPAX_OK);
}

static void end(struct near_case *c)
{
	hapax_store_close(c->store);
	store_case_done(&c->far);
}

static void assert_told(struct near_case *c, uint64_t hits, uint64_t misses)
{
	struct hapax_near_stats stats = HAPAX_NEAR_STATS_INIT;

	assert_int_equal(hapax_near_tell(c->store, &stats, NULL), HAPAX_OK);
	assert_int_equal(stats.hits, hits);
	assert_int_equal(stats.misses, misses);
}

/* A claim through the near store, with the record. */
static struct hapax_op claim(struct near_case *c, const char *key, char fingerprint)
{
	struct hapax_op op = case_op(&c->far, HAPAX_OP_CLAIM, key);

	op.fingerprint = case_fingerprint(fingerprint);
	op.record = &c->far.record;
	op.buf = c->far.buf;
	assert_int_equal(hapax_store_run(c->store, &op, 1, NULL), HAPAX_OK);
	return op;
}

static void make_done(struct near_case *c, const char *key, char fingerprint, size_t size)
{
	static char body[65536];
	struct hapax_result result = {.kind = HAPAX_RESULT_BYTES, .body = {body, size}};
	struct hapax_op op = claim(c, key, fingerprint);

	memset(body, 'b', sizeof(body));
	assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
	op = case_op_token(&c->far, HAPAX_OP_COMPLETE, key, op.token);
	op.result = &result;
	assert_int_equal(hapax_store_run(c->store, &op, 1, NULL), HAPAX_OK);
}

static void second_duplicate_is_near(void **state)
{
	struct near_case c;
	struct hapax_op first;
	struct hapax_op second;

	(void)state;
	begin(&c);
	make_done(&c, "a", 'X', 5);
	first = claim(&c, "a", 'X');
	assert_int_equal(first.outcome, HAPAX_OUTCOME_REPLAY);
	assert_told(&c, 0, 2);
	second = claim(&c, "a", 'X');
	assert_told(&c, 1, 2);
	assert_int_equal(second.outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(second.token, 0);
	assert_int_equal(second.attempt, first.attempt);
	assert_int_equal(second.first_seen_ms, first.first_seen_ms);
	assert_int_equal(second.expires_ms, first.expires_ms);
	assert_int_equal(second.unverified, 0);
	assert_true(case_bytes_are(second.record->result.body, "bbbbb", 5));
	end(&c);
}

/* I7: who comes with another payload gets no result, from here neither. */
static void fingerprints_are_compared(void **state)
{
	struct near_case c;
	struct hapax_op op;

	(void)state;
	begin(&c);
	make_done(&c, "a", 'X', 5);
	(void)claim(&c, "a", 'X');
	op = claim(&c, "a", 'Y');
	assert_told(&c, 1, 2);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_MISMATCH);
	assert_int_equal(op.record->result.body.size, 0);
	op = claim(&c, "a", 0);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(op.unverified, 1);
	end(&c);
}

static void entries_do_not_grow_old(void **state)
{
	struct near_case c;

	(void)state;
	begin(&c);
	make_done(&c, "a", 'X', 5);
	(void)claim(&c, "a", 'X');
	store_case_advance(&c.far, 999);
	(void)claim(&c, "a", 'X');
	assert_told(&c, 1, 2);
	store_case_advance(&c.far, 1);
	(void)claim(&c, "a", 'X');
	assert_told(&c, 1, 3);
	end(&c);
}

/* Forgotten through this store: at once. By another: when the entry has grown old. */
static void what_is_forgotten_here_is_forgotten(void **state)
{
	struct near_case c;
	struct hapax_op op;

	(void)state;
	begin(&c);
	make_done(&c, "a", 'X', 5);
	(void)claim(&c, "a", 'X');
	op = case_op(&c.far, HAPAX_OP_FORGET, "a");
	assert_int_equal(hapax_store_run(c.store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(claim(&c, "a", 'X').outcome, HAPAX_OUTCOME_ACQUIRED);
	make_done(&c, "b", 'X', 5);
	(void)claim(&c, "b", 'X');
	op = case_op(&c.far, HAPAX_OP_FORGET, "b");
	assert_int_equal(case_run(&c.far, &op), HAPAX_OK);
	assert_int_equal(claim(&c, "b", 'X').outcome, HAPAX_OUTCOME_REPLAY);
	store_case_advance(&c.far, 1000);
	assert_int_equal(claim(&c, "b", 'X').outcome, HAPAX_OUTCOME_ACQUIRED);
	end(&c);
}

static enum hapax_status count_nothing(
	struct hapax_store *store, const struct hapax_counters *rows, size_t count,
	struct hapax_error *err)
{
	(void)store, (void)rows, (void)count, (void)err;
	return HAPAX_OK;
}

static void ignore(struct hapax_op *ops, size_t count, void *context)
{
	(void)ops, (void)count, (void)context;
}

/* The way to the store can be held up. */
struct slow_case {
	struct near_case near;
	struct held_store held;
	struct hapax_op question; /* whose answer is on its way */
};

static void begin_slow(struct slow_case *c)
{
	begin(&c->near);
	make_done(&c->near, "a", 'X', 5);
	hapax_store_close(c->near.store);
	held_store_init(&c->held, c->near.far.store, &c->near.far.clock.clock);
	c->held.ops.count = count_nothing;
	assert_int_equal(
		hapax_near_open(&c->held.base, &c->near.options, &c->near.store, NULL), HAPAX_OK);
	c->question = case_op(&c->near.far, HAPAX_OP_CLAIM, "a");
	c->question.record = &c->near.far.record;
	c->question.buf = c->near.far.buf;
	c->held.holds = true;
	hapax_store_submit(c->near.store, &c->question, 1, (struct hapax_completion){ignore, NULL});
	held_store_do(&c->held);
	c->held.holds = false;
}

static void end_slow(struct slow_case *c)
{
	hapax_store_close(c->near.store);
	held_store_done(&c->held);
	store_case_done(&c->near.far);
}

/* Forgotten while an answer that says "done" is on its way: that one is not remembered. */
static void late_answer_brings_nothing_back(void **state)
{
	struct slow_case c;
	struct hapax_op op;

	(void)state;
	begin_slow(&c);
	op = case_op(&c.near.far, HAPAX_OP_FORGET, "a");
	assert_int_equal(hapax_store_run(c.near.store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_APPLIED);
	held_store_pass(&c.held);
	assert_int_equal(c.question.outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(claim(&c.near, "a", 'X').outcome, HAPAX_OUTCOME_ACQUIRED);
	end_slow(&c);
}

/* What is forgotten elsewhere does not matter here: the answer is remembered. */
static void late_answer_of_another_key_is_remembered(void **state)
{
	struct slow_case c;
	struct hapax_op op;

	(void)state;
	begin_slow(&c);
	op = case_op(&c.near.far, HAPAX_OP_FORGET, "b");
	assert_int_equal(hapax_store_run(c.near.store, &op, 1, NULL), HAPAX_OK);
	held_store_pass(&c.held);
	assert_int_equal(claim(&c.near, "a", 'X').outcome, HAPAX_OUTCOME_REPLAY);
	assert_told(&c.near, 1, 1);
	end_slow(&c);
}

/* An answer is as old as its question: it may have been given at once and come late. */
static void age_counts_from_the_question(void **state)
{
	struct slow_case c;

	(void)state;
	begin_slow(&c);
	store_case_advance(&c.near.far, 600);
	held_store_pass(&c.held);
	store_case_advance(&c.near.far, 399);
	(void)claim(&c.near, "a", 'X');
	assert_told(&c.near, 1, 1);
	store_case_advance(&c.near.far, 1);
	(void)claim(&c.near, "a", 'X');
	assert_told(&c.near, 1, 2);
	end_slow(&c);
}

static void scopes_are_kept_apart(void **state)
{
	struct near_case c;
	struct hapax_op op;

	(void)state;
	begin(&c);
	make_done(&c, "a", 'X', 5);
	(void)claim(&c, "a", 'X');
	op = case_op(&c.far, HAPAX_OP_CLAIM, "a");
	op.tenant = (struct hapax_bytes){"acme", 4};
	assert_int_equal(hapax_store_run(c.store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
	end(&c);
}

/* One that has to go takes the others along; their answers are the store's. */
static void batches_go_whole(void **state)
{
	struct near_case c;
	struct hapax_op ops[2];

	(void)state;
	begin(&c);
	make_done(&c, "a", 'X', 5);
	(void)claim(&c, "a", 'X');
	ops[0] = case_op(&c.far, HAPAX_OP_CLAIM, "a");
	ops[1] = case_op(&c.far, HAPAX_OP_CLAIM, "b");
	assert_int_equal(hapax_store_run(c.store, ops, 2, NULL), HAPAX_OK);
	assert_int_equal(ops[0].outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(ops[1].outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_told(&c, 0, 4);
	ops[0] = ops[1] = case_op(&c.far, HAPAX_OP_CLAIM, "a");
	assert_int_equal(hapax_store_run(c.store, ops, 2, NULL), HAPAX_OK);
	assert_int_equal(ops[1].outcome, HAPAX_OUTCOME_REPLAY);
	assert_told(&c, 2, 4);
	end(&c);
}

static void large_results_stay_away(void **state)
{
	struct near_case c;

	(void)state;
	begin(&c);
	make_done(&c, "a", 'X', 60000);
	(void)claim(&c, "a", 'X');
	assert_int_equal(claim(&c, "a", 'X').record->result.body.size, 60000);
	assert_told(&c, 0, 3);
	end(&c);
}

/* A hit is a decision like any other: statistics do not depend on who gave the answer. */
static void hits_are_counted(void **state)
{
	struct near_case c;
	struct hapax_stats stats = HAPAX_STATS_INIT;

	(void)state;
	begin(&c);
	make_done(&c, "a", 'X', 5);
	for (int i = 0; i < 10; i++)
		(void)claim(&c, "a", 'X');
	assert_told(&c, 9, 2);
	assert_int_equal(hapax_store_stats(c.store, &stats, NULL, NULL, NULL), HAPAX_OK);
	assert_int_equal(stats.counts[HAPAX_DECISION_REPLAY], 10);
	assert_int_equal(stats.counts[HAPAX_DECISION_ACQUIRED], 1);
	end(&c);
}

/* Few places, many keys: nothing is mixed up. */
static void small_cache_answers_truly(void **state)
{
	struct near_case c;

	(void)state;
	begin(&c);
	hapax_store_close(c.store);
	c.options.keys_max = 4;
	assert_int_equal(hapax_near_open(c.far.store, &c.options, &c.store, NULL), HAPAX_OK);
	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 50; i++) {
			char key[16];

			(void)snprintf(key, sizeof(key), "key-%u", i);
			if (round == 0)
				make_done(&c, key, 'X', i);
			else
				assert_int_equal(claim(&c, key, 'X').record->result.body.size, i);
		}
	}
	end(&c);
}

static void memory_is_as_near_as_can_be(void **state)
{
	struct store_case c;
	struct hapax_store *store = NULL;

	(void)state;
	store_case_begin(&c, "memory:");
	assert_int_equal(hapax_near_open(c.store, NULL, &store, NULL), HAPAX_ERR_UNSUPPORTED);
	store_case_done(&c);
}

static void hit_allocates_nothing(void **state)
{
	struct near_case c;
	uint64_t count;

	(void)state;
	begin(&c);
	make_done(&c, "a", 'X', 5);
	(void)claim(&c, "a", 'X');
	(void)claim(&c, "a", 'X');
	count = hx_alloc_count();
	for (int i = 0; i < 100; i++)
		(void)claim(&c, "a", 'X');
	assert_int_equal(hx_alloc_count(), count);
	assert_told(&c, 101, 2);
	end(&c);
}

/* Threads that read keys of two places, while others come and go there. */
enum { CROWD = 4, CROWD_KEYS = 6 };

struct crowd_member {
	struct hapax_store *store;
	struct hx_thread thread;
	unsigned number;
	uint64_t rounds;
	const char *why;
};

/* The key's number, as often as the key is long in bytes; so every answer can be judged. */
static size_t body_of(unsigned key, char body[16])
{
	memset(body, 'a' + (int)key, key + 1);
	return key + 1;
}

static void ask_and_judge(struct crowd_member *member, struct hapax_buf *buf, uint64_t round)
{
	unsigned key = (unsigned)(round / 4 + member->number) % CROWD_KEYS; /* often, then others */
	char name[2] = {(char)('a' + key), '\0'};
	struct hapax_record record;
	char body[16];
	size_t size = body_of(key, body);
	struct hapax_op op = {
		.type = HAPAX_OP_CLAIM,
		.key = {name, 1},
		.attempt_id = case_attempt_id(member->number + 1),
		.record = &record,
		.buf = buf,
	};

	/* A change of nothing, so that the key is dropped. */
	if (round % 16 == 0) {
		struct hapax_op drop = {.type = HAPAX_OP_RELEASE, .key = {name, 1}, .token = 1};

		(void)hapax_store_run(member->store, &drop, 1, NULL);
	}
	if (hapax_store_run(member->store, &op, 1, NULL) != HAPAX_OK ||
	    op.outcome != HAPAX_OUTCOME_REPLAY)
		member->why = "it is not done";
	else if (!case_bytes_are(record.result.body, body, size))
		member->why = "the result is another one's";
}

static void read_on(void *arg)
{
	struct crowd_member *member = arg;
	struct hapax_buf *buf = hapax_buf_new(4096);

	for (uint64_t i = 0; i < member->rounds && member->why == NULL; i++)
		ask_and_judge(member, buf, i);
	hapax_buf_free(buf);
}

static void readers_and_writers_do_not_mix_records(void **state)
{
	struct near_case c;
	struct crowd_member crowd[CROWD];
	struct hapax_near_stats stats = HAPAX_NEAR_STATS_INIT;
	double begin_s = scale_seconds();
	uint64_t rounds = scale_count(1000000, 20000);

	(void)state;
	(void)case_attempt_id(CROWD + 1);
	begin(&c);
	hapax_store_close(c.store);
	c.options.keys_max = 2;
	assert_int_equal(hapax_near_open(c.far.store, &c.options, &c.store, NULL), HAPAX_OK);
	for (unsigned key = 0; key < CROWD_KEYS; key++) {
		char name[2] = {(char)('a' + key), '\0'};
		char body[16];
		struct hapax_result result = {
			.kind = HAPAX_RESULT_BYTES, .body = {body, body_of(key, body)}};
		struct hapax_op op = claim(&c, name, 0);

		op = case_op_token(&c.far, HAPAX_OP_COMPLETE, name, op.token);
		op.result = &result;
		assert_int_equal(hapax_store_run(c.store, &op, 1, NULL), HAPAX_OK);
	}
	for (unsigned i = 0; i < CROWD; i++) {
		crowd[i] = (struct crowd_member){.store = c.store, .number = i, .rounds = rounds};
		assert_int_equal(
			hx_thread_start(&crowd[i].thread, read_on, &crowd[i], "reader", NULL),
			HAPAX_OK);
	}
	for (unsigned i = 0; i < CROWD; i++) {
		hx_thread_join(&crowd[i].thread);
		if (crowd[i].why != NULL)
			fail_msg("%s", crowd[i].why);
	}
	assert_int_equal(hapax_near_tell(c.store, &stats, NULL), HAPAX_OK);
	assert_true(stats.hits > 0);
	scale_report(
		"near cache: reads beside writes", CROWD * rounds, scale_seconds() - begin_s, true);
	end(&c);
}

static void no_memory_is_no_harm(void **state)
{
	struct near_case c;
	struct hapax_near_options options = HAPAX_NEAR_OPTIONS_INIT;
	struct hapax_store *store = NULL;
	enum hapax_status status;
	uint64_t n = 0;

	(void)state;
	begin(&c);
	options.keys_max = 16;
	do {
		hx_alloc_fail_at(++n, 0);
		status = hapax_near_open(c.far.store, &options, &store, NULL);
		hx_alloc_fail_at(0, 0);
		assert_true(status == HAPAX_OK || status == HAPAX_ERR_NO_MEMORY);
	} while (status != HAPAX_OK);
	assert_true(n > 2);
	hapax_store_close(store);
	options.age_ms_max = 1001;
	assert_int_equal(hapax_near_open(c.far.store, &options, &store, NULL), HAPAX_ERR_INVALID);
	end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(second_duplicate_is_near),
		cmocka_unit_test(fingerprints_are_compared),
		cmocka_unit_test(entries_do_not_grow_old),
		cmocka_unit_test(what_is_forgotten_here_is_forgotten),
		cmocka_unit_test(late_answer_brings_nothing_back),
		cmocka_unit_test(late_answer_of_another_key_is_remembered),
		cmocka_unit_test(age_counts_from_the_question),
		cmocka_unit_test(scopes_are_kept_apart),
		cmocka_unit_test(batches_go_whole),
		cmocka_unit_test(large_results_stay_away),
		cmocka_unit_test(hits_are_counted),
		cmocka_unit_test(small_cache_answers_truly),
		cmocka_unit_test(memory_is_as_near_as_can_be),
		cmocka_unit_test(hit_allocates_nothing),
		cmocka_unit_test(readers_and_writers_do_not_mix_records),
		cmocka_unit_test(no_memory_is_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
