/* SPDX-License-Identifier: Apache-2.0 */
/* cases_async.c - I13: completions, and answers that do not fit where they are wanted. */
#include "conformance/cases.h"

#include <pthread.h>
#include <string.h>

/* Counts completions; the test waits for all of them. */
struct tally {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	size_t completed;
	size_t operations;
	bool wrong;
};

#define TALLY_INIT                                                               \
	{                                                                        \
		PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, false \
	}

static void tally_add(struct tally *tally, size_t operations, bool wrong)
{
	pthread_mutex_lock(&tally->mutex);
	tally->completed++;
	tally->operations += operations;
	tally->wrong = tally->wrong || wrong;
	pthread_cond_signal(&tally->cond);
	pthread_mutex_unlock(&tally->mutex);
}

static void tally_wait(struct tally *tally, size_t completed)
{
	pthread_mutex_lock(&tally->mutex);
	while (tally->completed < completed)
		pthread_cond_wait(&tally->cond, &tally->mutex);
	pthread_mutex_unlock(&tally->mutex);
}

static void note(struct hapax_op *ops, size_t count, void *context)
{
	bool wrong = false;

	for (size_t i = 0; i < count; i++)
		wrong = wrong || ops[i].status != HAPAX_OK ||
			ops[i].outcome == HAPAX_OUTCOME_NONE || ops[i].context != &ops[i];
	tally_add(context, count, wrong);
}

/* Many submits in flight: each completes once, with its own operations. */
static void every_submit_completes_once(void **state)
{
	struct store_case *c = *state;
	enum { SUBMITS = 200, BATCH = 20 };
	static struct hapax_op ops[SUBMITS][BATCH];
	static char keys[SUBMITS][BATCH][16];
	struct tally tally = TALLY_INIT;
	size_t first = 0;

	for (size_t i = 0; i < SUBMITS; i++) {
		for (size_t k = 0; k < BATCH; k++) {
			snprintf(keys[i][k], sizeof(keys[i][k]), "%zu", (i * 7 + k) % 500);
			ops[i][k] = case_op(c, HAPAX_OP_CHECK, keys[i][k]);
			ops[i][k].context = &ops[i][k];
		}
		hapax_store_submit(
			c->store, ops[i], BATCH, (struct hapax_completion){note, &tally});
	}
	tally_wait(&tally, SUBMITS);
	assert_int_equal(tally.completed, SUBMITS);
	assert_int_equal(tally.operations, SUBMITS * BATCH);
	assert_false(tally.wrong);
	/* And each key had one first. */
	for (size_t i = 0; i < SUBMITS; i++)
		for (size_t k = 0; k < BATCH; k++)
			first += ops[i][k].outcome == HAPAX_OUTCOME_ACQUIRED;
	assert_int_equal(first, 500);
	assert_int_equal(case_stats(c).keys, 500);
}

/* A run that goes on from its own completion: claim, complete, next key. */
struct chain {
	struct store_case *c;
	struct tally tally;
	struct hapax_op op;
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	char key[16];
	unsigned step;
};

enum { CHAIN_STEPS = 400 };

static void chain_next(struct hapax_op *ops, size_t count, void *context)
{
	struct chain *chain = context;
	bool claim = chain->step % 2 == 0;

	if (chain->step > 0 &&
	    (count != 1 || ops[0].status != HAPAX_OK ||
	     ops[0].outcome != (claim ? HAPAX_OUTCOME_APPLIED : HAPAX_OUTCOME_ACQUIRED))) {
		tally_add(&chain->tally, 0, true);
		return;
	}
	if (chain->step == CHAIN_STEPS) {
		tally_add(&chain->tally, chain->step, false);
		return;
	}
	uint64_t token = chain->op.token;
	memset(&chain->op, 0, sizeof(chain->op));
	if (claim) {
		snprintf(chain->key, sizeof(chain->key), "%u", chain->step);
		memset(chain->attempt_id, 1, sizeof(chain->attempt_id));
		memcpy(chain->attempt_id, &chain->step, sizeof(chain->step));
		chain->op.type = HAPAX_OP_CLAIM;
		chain->op.attempt_id = chain->attempt_id;
	} else {
		chain->op.type = HAPAX_OP_COMPLETE;
		chain->op.token = token;
	}
	chain->op.key = hapax_bytes_from_text(chain->key);
	chain->step++;
	hapax_store_submit(
		chain->c->store, &chain->op, 1, (struct hapax_completion){chain_next, chain});
}

static void completion_may_submit(void **state)
{
	struct store_case *c = *state;
	struct chain chain = {.c = c, .tally = TALLY_INIT};

	chain_next(NULL, 0, &chain);
	tally_wait(&chain.tally, 1);
	assert_false(chain.tally.wrong);
	assert_int_equal(chain.tally.operations, CHAIN_STEPS);
	assert_int_equal(case_stats(c).done, CHAIN_STEPS / 2);
}

static void note_refused(struct hapax_op *ops, size_t count, void *context)
{
	bool wrong = false;

	for (size_t i = 0; i < count; i++)
		wrong = wrong || ops[i].status != HAPAX_ERR_INVALID;
	tally_add(context, count, wrong);
}

/* Refused as a whole, or empty: the completion runs all the same. */
static void refused_submit_completes(void **state)
{
	struct store_case *c = *state;
	struct tally tally = TALLY_INIT;
	struct hapax_op ops[2] = {{0}, {0}};

	hapax_store_submit(c->store, ops, 2, (struct hapax_completion){note_refused, &tally});
	tally_wait(&tally, 1);
	hapax_store_submit(c->store, ops, 0, (struct hapax_completion){note_refused, &tally});
	tally_wait(&tally, 2);
	assert_int_equal(tally.operations, 2);
	assert_false(tally.wrong);
}

/* Run op with a buffer that holds only size_max bytes. */
static enum hapax_status run_in(struct store_case *c, struct hapax_op *op, size_t size_max)
{
	struct hapax_buf *buf = hapax_buf_new(size_max);
	enum hapax_status status;

	assert_non_null(buf);
	memset(&c->record, 0, sizeof(c->record));
	op->record = &c->record;
	op->buf = buf;
	status = hapax_store_run(c->store, op, 1, NULL);
	hapax_buf_free(buf);
	return status;
}

/* A record that does not fit into the caller's buffer: LIMIT, and nothing was done. */
static void too_small_a_buffer_does_nothing(void **state)
{
	struct store_case *c = *state;
	static char body[5000];
	struct hapax_result result = {.kind = HAPAX_RESULT_BYTES, .body = {body, sizeof(body)}};
	struct hapax_op op = case_op(c, HAPAX_OP_CLAIM, "a rather long key");

	/* The key alone is too long for the buffer. */
	assert_int_equal(run_in(c, &op, 4), HAPAX_ERR_LIMIT);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_NONE);
	assert_int_equal(case_state(c, "a rather long key"), HAPAX_STATE_ABSENT);
	op = case_op(c, HAPAX_OP_CHECK, "a rather long key");
	assert_int_equal(run_in(c, &op, 4), HAPAX_ERR_LIMIT);
	assert_int_equal(case_state(c, "a rather long key"), HAPAX_STATE_ABSENT);
	/* Nothing to show, nothing to hold. */
	op = case_op(c, HAPAX_OP_LOOKUP, "a rather long key");
	assert_int_equal(run_in(c, &op, 0), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_ABSENT);

	uint64_t token = must_claim(c, "k");
	op = case_op_token(c, HAPAX_OP_COMPLETE, "k", token);
	op.result = &result;
	assert_int_equal(run_in(c, &op, 100), HAPAX_ERR_LIMIT);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_CLAIMED);
	assert_int_equal(case_stats(c).counts[HAPAX_DECISION_COMPLETED], 0);
	op = case_op_token(c, HAPAX_OP_COMPLETE, "k", token);
	op.result = &result;
	assert_int_equal(run_in(c, &op, 6000), HAPAX_OK);

	op = case_op(c, HAPAX_OP_CLAIM, "k");
	assert_int_equal(run_in(c, &op, 100), HAPAX_ERR_LIMIT);
	op = case_op(c, HAPAX_OP_FORGET, "k");
	assert_int_equal(run_in(c, &op, 100), HAPAX_ERR_LIMIT);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_DONE);
	assert_int_equal(c->record.result.body.size, sizeof(body));

	/* set shows the old value: that is the one that must fit. */
	op = case_op(c, HAPAX_OP_SET, "s");
	op.result = &result;
	assert_int_equal(run_in(c, &op, 0), HAPAX_OK);
	result.body.size = 1;
	op = case_op(c, HAPAX_OP_SET, "s");
	op.result = &result;
	assert_int_equal(run_in(c, &op, 100), HAPAX_ERR_LIMIT);
	assert_int_equal(case_state(c, "s"), HAPAX_STATE_DONE);
	assert_int_equal(c->record.result.body.size, sizeof(body));
	assert_int_equal(run_in(c, &op, 6000), HAPAX_OK);
	assert_int_equal(case_state(c, "s"), HAPAX_STATE_DONE);
	assert_int_equal(c->record.result.body.size, 1);
}

/* The same in a group that is all or nothing. */
static void too_small_a_buffer_stops_its_group(void **state)
{
	struct store_case *c = *state;
	struct hapax_buf *small = hapax_buf_new(1);
	struct hapax_op ops[2];

	assert_non_null(small);
	for (int i = 0; i < 2; i++) {
		ops[i] = case_op(c, HAPAX_OP_CLAIM, i ? "second" : "first");
		ops[i].attempt_id = case_attempt_id(500);
	}
	ops[0].flags = HAPAX_OP_LINKED | HAPAX_OP_ALL_OR_NOTHING;
	ops[1].record = &c->record;
	ops[1].buf = small;
	assert_int_equal(hapax_store_run(c->store, ops, 2, NULL), HAPAX_ERR_LIMIT);
	assert_int_equal(ops[1].status, HAPAX_ERR_LIMIT);
	assert_true(ops[0].status != HAPAX_OK || ops[0].outcome == HAPAX_OUTCOME_SKIPPED);
	assert_int_equal(case_state(c, "first"), HAPAX_STATE_ABSENT);
	assert_int_equal(case_state(c, "second"), HAPAX_STATE_ABSENT);
	hapax_buf_free(small);
}

/* A buffer is cleared first, and what it held before is gone. */
static void buffer_is_used_again(void **state)
{
	struct store_case *c = *state;
	size_t size = 0;

	must_claim(c, "k");
	for (int i = 0; i < 100; i++) {
		assert_int_equal(case_state(c, "k"), HAPAX_STATE_CLAIMED);
		assert_true(case_bytes_are(c->record.key, "k", 1));
		if (i == 0)
			size = hapax_buf_bytes(c->buf).size;
		assert_int_equal(hapax_buf_bytes(c->buf).size, size);
	}
}

const struct conformance_case async_cases[] = {
	{"I13 I14: every submit completes once", every_submit_completes_once, NEEDS_NOTHING},
	{"I13: a completion may submit", completion_may_submit, NEEDS_NOTHING},
	{"I13: a refused submit completes", refused_submit_completes, NEEDS_NOTHING},
	{"I13 I12: too small a buffer does nothing", too_small_a_buffer_does_nothing,
	 NEEDS_NOTHING},
	{"I13: too small a buffer stops its group", too_small_a_buffer_stops_its_group,
	 NEEDS_WHOLE},
	{"I12: a buffer is used again", buffer_is_used_again, NEEDS_NOTHING},
	{NULL, NULL, NEEDS_NOTHING},
};
