/* SPDX-License-Identifier: Apache-2.0 */
/* A store that refuses new keys of the tenants that were named to it, and nothing else. */
#include "store/tenant/tenant_limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <hapax/ext/store_ops.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/thread.h"
#include "support/held_store.h"
#include "support/store_case.h"

/* A real store, one before it that the test can stop, and the one under test. */
struct limit_case {
	struct store_case far;
	struct held_store held;
	struct hapax_store *store;
};

static const struct hapax_bytes acme = HX_BYTES_LIT("acme");
static const struct hapax_bytes initech = HX_BYTES_LIT("initech");

static void begin(struct limit_case *c)
{
	memset(c, 0, sizeof(*c));
	store_case_begin(&c->far, "memory:");
	held_store_init(&c->held, c->far.store, &c->far.clock.clock);
	assert_int_equal(
		hx_tenant_limit_open(&c->held.base, c->far.store, &c->store, NULL), HAPAX_OK);
}

static void end(struct limit_case *c)
{
	hapax_store_close(c->store);
	held_store_done(&c->held);
	store_case_done(&c->far);
}

static void name(struct limit_case *c, const struct hapax_bytes *tenants, size_t count)
{
	assert_int_equal(hx_tenant_limit_set(c->store, tenants, count), HAPAX_OK);
}

static struct hapax_op make_op(
	struct limit_case *c, enum hapax_op_type type, struct hapax_bytes tenant, const char *key)
{
	struct hapax_op op = case_op(&c->far, type, key);

	op.tenant = tenant;
	return op;
}

static struct hapax_op run(
	struct limit_case *c, enum hapax_op_type type, struct hapax_bytes tenant, const char *key,
	uint64_t token)
{
	struct hapax_op op = make_op(c, type, tenant, key);

	op.token = token;
	(void)hapax_store_run(c->store, &op, 1, NULL);
	return op;
}

static enum hapax_state state_of(struct limit_case *c, struct hapax_bytes tenant, const char *key)
{
	struct hapax_op op = make_op(c, HAPAX_OP_LOOKUP, tenant, key);

	(void)case_run(&c->far, &op);
	return op.outcome == HAPAX_OUTCOME_FOUND ? c->far.record.state : HAPAX_STATE_ABSENT;
}

/* Refused, and as the caller wrote it. */
static void assert_refused(
	struct limit_case *c, const struct hapax_op *op, enum hapax_op_type type, unsigned flags)
{
	assert_int_equal(op->status, HAPAX_ERR_LIMIT);
	assert_int_equal(op->outcome, HAPAX_OUTCOME_NONE);
	assert_int_equal(op->type, type);
	assert_int_equal(op->flags, flags);
	/* Keys are texts here. */
	assert_int_equal(state_of(c, op->tenant, op->key.data), HAPAX_STATE_ABSENT);
}

static void nobody_is_named_nobody_is_asked(void **state)
{
	struct limit_case c;

	(void)state;
	begin(&c);
	assert_int_equal(run(&c, HAPAX_OP_CLAIM, acme, "a", 0).outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(c.held.total, 1);
	name(&c, &initech, 1);
	assert_int_equal(run(&c, HAPAX_OP_CLAIM, acme, "b", 0).outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(c.held.total, 2);
	end(&c);
}

static void new_keys_are_refused(void **state)
{
	struct limit_case c;
	struct hapax_op op;

	(void)state;
	begin(&c);
	name(&c, &acme, 1);
	op = run(&c, HAPAX_OP_CLAIM, acme, "a", 0);
	assert_refused(&c, &op, HAPAX_OP_CLAIM, 0);
	assert_int_equal(op.token, 0);
	op = run(&c, HAPAX_OP_CHECK, acme, "a", 0);
	assert_refused(&c, &op, HAPAX_OP_CHECK, 0);
	op = run(&c, HAPAX_OP_SET, acme, "a", 0);
	assert_refused(&c, &op, HAPAX_OP_SET, 0);
	op = make_op(&c, HAPAX_OP_SET, acme, "a");
	op.set_if = HAPAX_SET_IF_ABSENT;
	op.flags = HAPAX_OP_KEEP_TTL;
	assert_int_equal(hapax_store_run(c.store, &op, 1, NULL), HAPAX_ERR_LIMIT);
	assert_refused(&c, &op, HAPAX_OP_SET, HAPAX_OP_KEEP_TTL);
	/* As often as it is asked. */
	op = run(&c, HAPAX_OP_CLAIM, acme, "a", 0);
	assert_refused(&c, &op, HAPAX_OP_CLAIM, 0);
	/* Named no more. */
	name(&c, NULL, 0);
	assert_int_equal(run(&c, HAPAX_OP_CLAIM, acme, "a", 0).outcome, HAPAX_OUTCOME_ACQUIRED);
	end(&c);
}

/* What makes no record has its answer from the store, without a lookup before it. */
static void what_makes_no_record_is_not_judged(void **state)
{
	static const enum hapax_op_type types[] = {
		HAPAX_OP_RENEW, HAPAX_OP_COMPLETE, HAPAX_OP_RELEASE, HAPAX_OP_PARK};
	struct limit_case c;
	struct hapax_op op;

	(void)state;
	begin(&c);
	name(&c, &acme, 1);
	assert_int_equal(run(&c, HAPAX_OP_LOOKUP, acme, "a", 0).outcome, HAPAX_OUTCOME_ABSENT);
	assert_int_equal(run(&c, HAPAX_OP_FORGET, acme, "a", 0).outcome, HAPAX_OUTCOME_ABSENT);
	assert_int_equal(run(&c, HAPAX_OP_EXPIRE, acme, "a", 0).outcome, HAPAX_OUTCOME_ABSENT);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		assert_int_equal(run(&c, types[i], acme, "a", 7).status, HAPAX_ERR_FENCED);
	op = make_op(&c, HAPAX_OP_SET, acme, "a");
	op.set_if = HAPAX_SET_IF_PRESENT;
	assert_int_equal(hapax_store_run(c.store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_NOT_MET);
	assert_int_equal(c.held.total, 8);
	/* What is wrong by itself is said to be so. */
	assert_int_equal(run(&c, HAPAX_OP_CLAIM, acme, "", 0).status, HAPAX_ERR_INVALID);
	end(&c);
}

/* A key that is there goes its whole way, whatever its tenant has. */
static void keys_that_exist_go_on(void **state)
{
	struct limit_case c;
	uint64_t token;

	(void)state;
	begin(&c);
	token = run(&c, HAPAX_OP_CLAIM, acme, "a", 0).token;
	assert_int_equal(run(&c, HAPAX_OP_CHECK, acme, "mark", 0).outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(run(&c, HAPAX_OP_SET, acme, "value", 0).outcome, HAPAX_OUTCOME_APPLIED);
	name(&c, &acme, 1);
	assert_int_equal(run(&c, HAPAX_OP_CLAIM, acme, "a", 0).outcome, HAPAX_OUTCOME_IN_PROGRESS);
	assert_int_equal(run(&c, HAPAX_OP_RENEW, acme, "a", token).status, HAPAX_OK);
	assert_int_equal(run(&c, HAPAX_OP_RELEASE, acme, "a", token).status, HAPAX_OK);
	/* A repeated run of one that failed. */
	token = run(&c, HAPAX_OP_CLAIM, acme, "a", 0).token;
	assert_int_not_equal(token, 0);
	assert_int_equal(run(&c, HAPAX_OP_PARK, acme, "a", token).status, HAPAX_OK);
	assert_int_equal(run(&c, HAPAX_OP_CLAIM, acme, "a", 0).outcome, HAPAX_OUTCOME_PARKED);
	assert_int_equal(run(&c, HAPAX_OP_RELEASE, acme, "a", token).status, HAPAX_OK);
	token = run(&c, HAPAX_OP_CLAIM, acme, "a", 0).token;
	assert_int_equal(run(&c, HAPAX_OP_COMPLETE, acme, "a", token).status, HAPAX_OK);
	assert_int_equal(run(&c, HAPAX_OP_CLAIM, acme, "a", 0).outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(run(&c, HAPAX_OP_CHECK, acme, "mark", 0).outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(run(&c, HAPAX_OP_SET, acme, "value", 0).outcome, HAPAX_OUTCOME_APPLIED);
	/* Forgotten, it is new; and so it is when it has expired. */
	assert_int_equal(run(&c, HAPAX_OP_FORGET, acme, "a", 0).outcome, HAPAX_OUTCOME_APPLIED);
	assert_int_equal(run(&c, HAPAX_OP_CLAIM, acme, "a", 0).status, HAPAX_ERR_LIMIT);
	store_case_advance(&c.far, 60001);
	assert_int_equal(run(&c, HAPAX_OP_CHECK, acme, "mark", 0).status, HAPAX_ERR_LIMIT);
	end(&c);
}

static void other_tenants_are_not_held_up(void **state)
{
	static const char *const names[] = {"", "a", "acm", "acme2", "Acme", "initech", "zzz"};
	struct hapax_bytes many[100];
	char texts[100][8];
	struct limit_case c;

	(void)state;
	begin(&c);
	name(&c, &acme, 1);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(
			run(&c, HAPAX_OP_CLAIM, hapax_bytes_from_text(names[i]), "a", 0).outcome,
			HAPAX_OUTCOME_ACQUIRED);
	/* Who is named is found among many, in whatever order they come. */
	for (size_t i = 0; i < 100; i++) {
		(void)snprintf(texts[i], sizeof(texts[i]), "t%zu", (i * 37) % 100);
		many[i] = hapax_bytes_from_text(texts[i]);
	}
	name(&c, many, 100);
	memset(texts[99], 'x', sizeof(texts[99]) - 1);
	for (size_t i = 0; i < 99; i++)
		assert_int_equal(run(&c, HAPAX_OP_CLAIM, many[i], "a", 0).status, HAPAX_ERR_LIMIT);
	assert_int_equal(
		run(&c, HAPAX_OP_CLAIM, HX_BYTES_LIT("t100"), "a", 0).outcome,
		HAPAX_OUTCOME_ACQUIRED);
	/* The names were copied. */
	assert_int_equal(
		run(&c, HAPAX_OP_CLAIM, HX_BYTES_LIT("t63"), "a", 0).status, HAPAX_ERR_LIMIT);
	/* acme is not among them any more; default is a name like others. */
	assert_int_equal(run(&c, HAPAX_OP_CLAIM, acme, "a", 0).outcome, HAPAX_OUTCOME_ACQUIRED);
	many[0] = HX_BYTES_LIT("default");
	name(&c, many, 1);
	assert_int_equal(run(&c, HAPAX_OP_CLAIM, HX_BYTES_LIT(""), "b", 0).status, HAPAX_ERR_LIMIT);
	end(&c);
}

/* Each of a batch gets its own answer, in its place; those that are let in are done. */
static void batches_are_judged_one_by_one(void **state)
{
	enum { COUNT = 8 };
	struct limit_case c;
	struct hapax_op ops[COUNT];
	uint64_t token;

	(void)state;
	begin(&c);
	token = run(&c, HAPAX_OP_CLAIM, acme, "held", 0).token;
	assert_int_equal(run(&c, HAPAX_OP_CHECK, acme, "mark", 0).outcome, HAPAX_OUTCOME_ACQUIRED);
	name(&c, &acme, 1);
	c.held.total = 0;
	ops[0] = make_op(&c, HAPAX_OP_CLAIM, acme, "new");
	ops[1] = make_op(&c, HAPAX_OP_CHECK, acme, "mark");
	ops[2] = make_op(&c, HAPAX_OP_COMPLETE, acme, "held");
	ops[2].token = token;
	ops[3] = make_op(&c, HAPAX_OP_CHECK, acme, "new");
	ops[4] = make_op(&c, HAPAX_OP_CLAIM, initech, "new");
	ops[5] = make_op(&c, HAPAX_OP_CLAIM, acme, "");
	ops[6] = make_op(&c, HAPAX_OP_LOOKUP, acme, "mark");
	ops[7] = make_op(&c, HAPAX_OP_CLAIM, acme, "last");
	assert_int_equal(hapax_store_run(c.store, ops, COUNT, NULL), HAPAX_ERR_LIMIT);
	/* The lookups go together, and so do the operations. */
	assert_int_equal(c.held.total, 2);
	assert_refused(&c, &ops[0], HAPAX_OP_CLAIM, 0);
	assert_int_equal(ops[1].outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(ops[2].outcome, HAPAX_OUTCOME_APPLIED);
	assert_refused(&c, &ops[3], HAPAX_OP_CHECK, 0);
	assert_int_equal(ops[4].outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(ops[5].status, HAPAX_ERR_INVALID);
	assert_int_equal(ops[6].outcome, HAPAX_OUTCOME_FOUND);
	assert_refused(&c, &ops[7], HAPAX_OP_CLAIM, 0);
	assert_int_equal(state_of(&c, acme, "held"), HAPAX_STATE_DONE);
	assert_int_equal(state_of(&c, initech, "new"), HAPAX_STATE_CLAIMED);
	end(&c);
}

/* A group is refused as a whole, the end of a claim in it, too; its neighbors are not. */
static void groups_go_as_a_whole(void **state)
{
	enum { COUNT = 6 };
	static const unsigned flags[COUNT] = {
		0, HAPAX_OP_LINKED | HAPAX_OP_ALL_OR_NOTHING, HAPAX_OP_LINKED, 0, HAPAX_OP_LINKED,
		0};
	struct limit_case c;
	struct hapax_op ops[COUNT];
	uint64_t token;

	(void)state;
	begin(&c);
	token = run(&c, HAPAX_OP_CLAIM, acme, "held", 0).token;
	name(&c, &acme, 1);
	ops[0] = make_op(&c, HAPAX_OP_CLAIM, initech, "before");
	ops[1] = make_op(&c, HAPAX_OP_COMPLETE, acme, "held");
	ops[1].token = token;
	ops[2] = make_op(&c, HAPAX_OP_SET, acme, "new");
	ops[3] = make_op(&c, HAPAX_OP_SET, initech, "new");
	ops[4] = make_op(&c, HAPAX_OP_SET, initech, "x");
	ops[5] = make_op(&c, HAPAX_OP_SET, initech, "y");
	for (size_t i = 0; i < COUNT; i++)
		ops[i].flags = flags[i];
	assert_int_equal(hapax_store_run(c.store, ops, COUNT, NULL), HAPAX_ERR_LIMIT);
	assert_int_equal(ops[0].outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(ops[1].status, HAPAX_ERR_LIMIT);
	assert_int_equal(ops[1].type, HAPAX_OP_COMPLETE);
	assert_int_equal(ops[1].flags, flags[1]);
	assert_int_equal(ops[1].token, token);
	assert_refused(&c, &ops[2], HAPAX_OP_SET, flags[2]);
	assert_refused(&c, &ops[3], HAPAX_OP_SET, flags[3]);
	assert_int_equal(ops[4].outcome, HAPAX_OUTCOME_APPLIED);
	assert_int_equal(ops[5].outcome, HAPAX_OUTCOME_APPLIED);
	/* The holder is not fenced: it ends its claim by itself. */
	assert_int_equal(state_of(&c, acme, "held"), HAPAX_STATE_CLAIMED);
	assert_int_equal(run(&c, HAPAX_OP_COMPLETE, acme, "held", token).status, HAPAX_OK);
	end(&c);
}

static void note(struct hapax_op *ops, size_t count, void *context)
{
	(void)ops;
	*(size_t *)context += count;
}

/* A lookup without an answer does not refuse; what the store says is passed on. */
static void failures_of_the_store_are_its_own(void **state)
{
	struct limit_case c;
	struct hapax_op op;
	size_t answers = 0;

	(void)state;
	begin(&c);
	name(&c, &acme, 1);
	c.held.away = HAPAX_ERR_UNAVAILABLE;
	assert_int_equal(run(&c, HAPAX_OP_CLAIM, acme, "a", 0).status, HAPAX_ERR_UNAVAILABLE);
	c.held.away = HAPAX_OK;
	c.held.holds = true;
	op = make_op(&c, HAPAX_OP_CLAIM, acme, "a");
	hapax_store_submit(c.store, &op, 1, (struct hapax_completion){note, &answers});
	held_store_refuse(&c.held, HAPAX_ERR_UNAVAILABLE);
	assert_int_equal(c.held.count, 1);
	assert_int_equal(answers, 0);
	held_store_pass(&c.held);
	assert_int_equal(answers, 1);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
	/* UNCERTAIN is said of what goes to the store; of what does not, that nothing was done. */
	op = make_op(&c, HAPAX_OP_CLAIM, acme, "a");
	hapax_store_submit(c.store, &op, 1, (struct hapax_completion){note, &answers});
	held_store_pass(&c.held);
	held_store_lose_answer(&c.held);
	assert_int_equal(op.status, HAPAX_ERR_UNCERTAIN);
	op = make_op(&c, HAPAX_OP_CLAIM, acme, "b");
	hapax_store_submit(c.store, &op, 1, (struct hapax_completion){note, &answers});
	held_store_pass(&c.held);
	held_store_lose_answer(&c.held);
	assert_int_equal(answers, 3);
	assert_refused(&c, &op, HAPAX_OP_CLAIM, 0);
	end(&c);
}

/* Tenants are named while operations are on their way: each is judged by one list. */
static void names_change_at_any_time(void **state)
{
	struct limit_case c;
	struct hapax_op first;
	struct hapax_op second;
	size_t answers = 0;

	(void)state;
	begin(&c);
	name(&c, &acme, 1);
	c.held.holds = true;
	first = make_op(&c, HAPAX_OP_CLAIM, acme, "a");
	hapax_store_submit(c.store, &first, 1, (struct hapax_completion){note, &answers});
	name(&c, &initech, 1);
	second = make_op(&c, HAPAX_OP_CLAIM, acme, "b");
	hapax_store_submit(c.store, &second, 1, (struct hapax_completion){note, &answers});
	while (c.held.count > 0)
		held_store_pass(&c.held);
	assert_int_equal(answers, 2);
	assert_refused(&c, &first, HAPAX_OP_CLAIM, 0);
	assert_int_equal(second.outcome, HAPAX_OUTCOME_ACQUIRED);
	end(&c);
}

static int count_record(const struct hapax_record *record, void *context)
{
	(void)record;
	++*(size_t *)context;
	return 0;
}

/* Records and figures are the store's. */
static void answers_are_passed_on(void **state)
{
	struct hapax_result result = {.kind = HAPAX_RESULT_BYTES, .body = {"12345", 5}};
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;
	struct hapax_scan scan = HAPAX_SCAN_INIT;
	struct hapax_cursor cursor = {0};
	struct limit_case c;
	struct hapax_op op;
	size_t records = 0;

	(void)state;
	begin(&c);
	hapax_store_close(c.store);
	assert_int_equal(hx_tenant_limit_open(c.far.store, c.far.store, &c.store, NULL), HAPAX_OK);
	assert_string_equal(hapax_store_name(c.store), "memory");
	assert_int_equal(hapax_store_capabilities(c.store), hapax_store_capabilities(c.far.store));
	op = make_op(&c, HAPAX_OP_COMPLETE, acme, "a");
	op.token = run(&c, HAPAX_OP_CLAIM, acme, "a", 0).token;
	op.result = &result;
	assert_int_equal(hapax_store_run(c.store, &op, 1, NULL), HAPAX_OK);
	name(&c, &acme, 1);
	op = make_op(&c, HAPAX_OP_CLAIM, acme, "a");
	op.record = &c.far.record;
	op.buf = c.far.buf;
	assert_int_equal(hapax_store_run(c.store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(op.attempt, 1);
	assert_true(case_bytes_are(op.record->result.body, "12345", 5));
	assert_int_equal(hapax_store_stats(c.store, &stats, NULL, NULL, NULL), HAPAX_OK);
	assert_int_equal(stats.keys, 1);
	assert_int_equal(stats.counts[HAPAX_DECISION_ACQUIRED], 1);
	assert_int_equal(stats.counts[HAPAX_DECISION_REPLAY], 1);
	assert_int_equal(
		hapax_store_scan(c.store, &scan, &cursor, count_record, &records, NULL), HAPAX_OK);
	assert_int_equal(records, 1);
	store_case_advance(&c.far, 60001);
	assert_int_equal(hapax_store_sweep(c.store, &sweep, NULL), HAPAX_OK);
	assert_int_equal(case_stats(&c.far).keys, 0);
	end(&c);
}

static void count_announcement(
	struct hapax_bytes tenant, struct hapax_bytes group, struct hapax_bytes key, void *context)
{
	(void)tenant, (void)group, (void)key;
	++*(size_t *)context;
}

static void begin_watch(struct hapax_store *store)
{
	(void)store;
}

/* Of a store that others use as well: a waiter here learns what they did. */
static void announcements_are_passed_on(void **state)
{
	struct limit_case c;
	size_t announced = 0;
	struct hapax_watcher watcher = {.fn = count_announcement, .context = &announced};

	(void)state;
	begin(&c);
	c.held.ops.watch = begin_watch;
	hapax_store_watch(c.store, &watcher);
	hapax_store_announce(&c.held.base, acme, HX_BYTES_LIT("g"), HX_BYTES_LIT("a"));
	assert_int_equal(announced, 1);
	hapax_store_unwatch(c.store, &watcher);
	hapax_store_announce(&c.held.base, acme, HX_BYTES_LIT("g"), HX_BYTES_LIT("a"));
	assert_int_equal(announced, 1);
	end(&c);
}

/* Without memory nothing is done and nothing is let in that was not before. */
static void memory_runs_out(void **state)
{
	struct hapax_bytes both[] = {initech, acme};
	struct limit_case c;
	struct hapax_op op;

	(void)state;
	begin(&c);
	name(&c, &acme, 1);
	op = make_op(&c, HAPAX_OP_CLAIM, acme, "a");
	hx_alloc_fail_at(1, 0);
	assert_int_equal(hapax_store_run(c.store, &op, 1, NULL), HAPAX_ERR_NO_MEMORY);
	hx_alloc_fail_at(1, 0);
	assert_int_equal(hx_tenant_limit_set(c.store, both, 2), HAPAX_ERR_NO_MEMORY);
	hx_alloc_fail_at(0, 0);
	assert_int_equal(state_of(&c, acme, "a"), HAPAX_STATE_ABSENT);
	assert_int_equal(run(&c, HAPAX_OP_CLAIM, acme, "a", 0).status, HAPAX_ERR_LIMIT);
	assert_int_equal(run(&c, HAPAX_OP_CLAIM, initech, "a", 0).outcome, HAPAX_OUTCOME_ACQUIRED);
	end(&c);
}

static uint64_t acquired(struct limit_case *c)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;

	assert_int_equal(hapax_store_stats(c->far.store, &stats, NULL, NULL, NULL), HAPAX_OK);
	return stats.counts[HAPAX_DECISION_ACQUIRED];
}

/* No store counts plain sets, so they are counted here when they make a record. */
static void plain_sets_that_make_records_are_counted(void **state)
{
	struct limit_case c;
	struct hapax_op ops[6];

	(void)state;
	begin(&c);
	assert_int_equal(run(&c, HAPAX_OP_SET, acme, "a", 0).outcome, HAPAX_OUTCOME_APPLIED);
	assert_int_equal(acquired(&c), 1);
	/* Again, and one with a condition, which the store counts. */
	assert_int_equal(run(&c, HAPAX_OP_SET, acme, "a", 0).outcome, HAPAX_OUTCOME_APPLIED);
	assert_int_equal(acquired(&c), 1);
	ops[0] = make_op(&c, HAPAX_OP_SET, acme, "b");
	ops[0].set_if = HAPAX_SET_IF_ABSENT;
	assert_int_equal(hapax_store_run(c.store, ops, 1, NULL), HAPAX_OK);
	assert_int_equal(acquired(&c), 2);
	/* Forgotten, it is new. */
	assert_int_equal(run(&c, HAPAX_OP_FORGET, acme, "a", 0).outcome, HAPAX_OUTCOME_APPLIED);
	assert_int_equal(run(&c, HAPAX_OP_SET, acme, "a", 0).outcome, HAPAX_OUTCOME_APPLIED);
	assert_int_equal(acquired(&c), 3);
	/* In a batch a key counts once. Of another tenant it is another key. */
	ops[0] = make_op(&c, HAPAX_OP_SET, acme, "y");
	ops[1] = make_op(&c, HAPAX_OP_SET, acme, "x");
	ops[2] = make_op(&c, HAPAX_OP_SET, acme, "y");
	ops[3] = make_op(&c, HAPAX_OP_SET, initech, "y");
	ops[4] = make_op(&c, HAPAX_OP_SET, acme, "y");
	ops[5] = make_op(&c, HAPAX_OP_SET, acme, "a");
	assert_int_equal(hapax_store_run(c.store, ops, 6, NULL), HAPAX_OK);
	assert_int_equal(acquired(&c), 6);
	/* What is refused makes no record. */
	name(&c, &acme, 1);
	assert_int_equal(run(&c, HAPAX_OP_SET, acme, "z", 0).status, HAPAX_ERR_LIMIT);
	assert_int_equal(acquired(&c), 6);
	end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_is_named_nobody_is_asked),
		cmocka_unit_test(new_keys_are_refused),
		cmocka_unit_test(what_makes_no_record_is_not_judged),
		cmocka_unit_test(keys_that_exist_go_on),
		cmocka_unit_test(other_tenants_are_not_held_up),
		cmocka_unit_test(batches_are_judged_one_by_one),
		cmocka_unit_test(groups_go_as_a_whole),
		cmocka_unit_test(failures_of_the_store_are_its_own),
		cmocka_unit_test(names_change_at_any_time),
		cmocka_unit_test(answers_are_passed_on),
		cmocka_unit_test(announcements_are_passed_on),
		cmocka_unit_test(memory_runs_out),
		cmocka_unit_test(plain_sets_that_make_records_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
