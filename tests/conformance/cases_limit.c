/* SPDX-License-Identifier: Apache-2.0 */
/* cases_limit.c - I12: bounded, and definite when full. D3: what LRU may take. */
#include "conformance/cases.h"

#include <stdlib.h>
#include <string.h>

#include "support/scale.h"

static enum hapax_status try_run(struct store_case *c, enum hapax_op_type type, const char *key)
{
	struct hapax_op op = case_op(c, type, key);

	return case_run(c, &op);
}

/* I12: keys_max refuses new keys, and only those. */
static void full_of_keys_refuses_new_ones(void **state)
{
	struct store_case *c = *state;
	uint64_t claimed, parked, released;

	c->options.keys_max = 5;
	store_case_reopen(c);
	claimed = must_claim(c, "claimed");
	released = must_claim(c, "released");
	parked = must_claim(c, "parked");
	must_claim(c, "lapsed");
	assert_int_equal(case_park(c, "parked", parked), HAPAX_OK);
	assert_int_equal(try_run(c, HAPAX_OP_CHECK, "done"), HAPAX_OK);

	assert_int_equal(try_run(c, HAPAX_OP_CLAIM, "new"), HAPAX_ERR_LIMIT);
	assert_int_equal(try_run(c, HAPAX_OP_CHECK, "new"), HAPAX_ERR_LIMIT);
	assert_int_equal(try_run(c, HAPAX_OP_SET, "new"), HAPAX_ERR_LIMIT);
	assert_int_equal(case_state(c, "new"), HAPAX_STATE_ABSENT);
	struct hapax_stats stats = case_stats(c);
	assert_int_equal(stats.keys, 5);
	assert_int_equal(stats.keys_max, 5);
	assert_int_equal(stats.counts[HAPAX_DECISION_LIMIT], 3);
	assert_int_equal(stats.evicted, 0);

	/* Everything that exists goes on as before. */
	assert_int_equal(case_claim(c, "done", NULL), HAPAX_OUTCOME_REPLAY);
	assert_int_equal(case_claim(c, "claimed", NULL), HAPAX_OUTCOME_IN_PROGRESS);
	assert_int_equal(case_renew(c, "claimed", claimed), HAPAX_OK);
	assert_int_equal(case_release(c, "released", released), HAPAX_OK);
	must_claim(c, "released");
	store_case_advance(c, 1000);
	must_claim(c, "lapsed");
	assert_int_equal(case_complete(c, "claimed", claimed), HAPAX_OK);
	assert_int_equal(case_complete(c, "parked", parked), HAPAX_OK);

	/* One out, one in. */
	assert_int_equal(try_run(c, HAPAX_OP_FORGET, "done"), HAPAX_OK);
	must_claim(c, "new");
	assert_int_equal(try_run(c, HAPAX_OP_CLAIM, "newer"), HAPAX_ERR_LIMIT);
}

/* I12: what has expired makes room, by the sweep at the latest. */
static void expired_keys_make_room(void **state)
{
	struct store_case *c = *state;

	c->options.keys_max = 10;
	store_case_reopen(c);
	for (int round = 0; round < 3; round++) {
		char key[32];

		for (int i = 0; i < 10; i++) {
			snprintf(key, sizeof(key), "%d/%d", round, i);
			assert_int_equal(try_run(c, HAPAX_OP_CHECK, key), HAPAX_OK);
		}
		assert_int_equal(try_run(c, HAPAX_OP_CHECK, "one more"), HAPAX_ERR_LIMIT);
		store_case_advance(c, 60000);
		assert_int_equal(case_sweep(c).remaining, 0);
	}
}

/* A group that does not fit as a whole does not begin. */
static void group_fits_or_does_not_begin(void **state)
{
	struct store_case *c = *state;
	struct hapax_op ops[3];

	c->options.keys_max = 4;
	store_case_reopen(c);
	must_claim(c, "x");
	must_claim(c, "y");
	for (int i = 0; i < 3; i++) {
		ops[i] = case_op(c, HAPAX_OP_CLAIM, (const char *[]){"a", "b", "c"}[i]);
		ops[i].attempt_id = case_attempt_id(1000);
		ops[i].flags = i < 2 ? HAPAX_OP_LINKED : 0;
	}
	ops[0].flags |= HAPAX_OP_ALL_OR_NOTHING;
	assert_int_equal(hapax_store_run(c->store, ops, 3, NULL), HAPAX_ERR_LIMIT);
	assert_int_equal(case_stats(c).keys, 2);
	for (int i = 0; i < 3; i++) {
		assert_true(
			ops[i].status == HAPAX_ERR_LIMIT ||
			(ops[i].status == HAPAX_OK && ops[i].outcome == HAPAX_OUTCOME_SKIPPED));
		assert_int_equal(
			case_state(c, (const char *[]){"a", "b", "c"}[i]), HAPAX_STATE_ABSENT);
	}
	ops[1].flags = 0;
	assert_int_equal(hapax_store_run(c->store, ops, 2, NULL), HAPAX_OK);
	assert_int_equal(case_stats(c).keys, 4);
}

enum { FULL_BYTES_MAX = 8 << 20 };

/* Set keys with values of that size until the store is full; returns how many bytes went in. */
static uint64_t fill_with_bytes(struct store_case *c, size_t size)
{
	enum { BATCH = 64 };
	static char body[1000];
	struct hapax_result result = {.kind = HAPAX_RESULT_BYTES, .body = {body, size}};
	uint64_t filled = 0;

	for (enum hapax_status status = HAPAX_OK; status == HAPAX_OK;
	     filled += status == HAPAX_OK) {
		struct hapax_op ops[BATCH];
		char keys[BATCH][32];

		for (int i = 0; i < BATCH; i++) {
			snprintf(
				keys[i], sizeof(keys[i]), "fill %zu/%llu/%d", size,
				(unsigned long long)filled, i);
			ops[i] = case_op(c, HAPAX_OP_SET, keys[i]);
			ops[i].result = &result;
		}
		status = hapax_store_run(c->store, ops, BATCH, NULL);
		if (status != HAPAX_OK)
			assert_int_equal(status, HAPAX_ERR_LIMIT);
		assert_true(filled < 1000);
	}
	return filled * BATCH * size;
}

static void complete_with(
	struct store_case *c, const char *key, uint64_t token, const char *body, size_t size)
{
	struct hapax_result result = {.kind = HAPAX_RESULT_EXEC, .status = 7, .body = {body, size}};
	struct hapax_op op = case_op_token(c, HAPAX_OP_COMPLETE, key, token);

	op.result = &result;
	must_run(c, &op, HAPAX_OUTCOME_APPLIED);
	assert_int_equal(case_state(c, key), HAPAX_STATE_DONE);
	assert_int_equal(c->record.result.status, 7);
	/* Whole or not at all, and it says so. */
	if (c->record.result.omitted_bytes == 0)
		assert_true(case_bytes_are(c->record.result.body, body, size));
	else
		assert_int_equal(c->record.result.omitted_bytes, size);
	assert_true(!c->record.result.omitted_bytes || c->record.result.body.size == 0);
}

/* Where a value did not fit a claim may, once or twice: buckets grow by the key's hash. */
static void must_become_full(struct store_case *c)
{
	enum hapax_status status = HAPAX_OK;

	for (int i = 0; i < 16 && status == HAPAX_OK; i++) {
		char key[32];

		snprintf(key, sizeof(key), "a new one %d", i);
		status = try_run(c, HAPAX_OP_CLAIM, key);
	}
	assert_int_equal(status, HAPAX_ERR_LIMIT);
}

/* I12: bytes_max is definite too, and live claims can still end. */
static void full_of_bytes_lets_claims_end(void **state)
{
	struct store_case *c = *state;
	enum { CLAIMS = 60 };
	static char text[1024];
	uint64_t tokens[CLAIMS];
	char key[64];

	memset(text, 'e', sizeof(text));
	c->options.bytes_max = FULL_BYTES_MAX;
	store_case_reopen(c);
	for (int i = 0; i < CLAIMS; i++) {
		snprintf(key, sizeof(key), "claim %d", i);
		tokens[i] = must_claim(c, key);
	}
	/* Full, not tiny: most of the room was used. */
	assert_true(fill_with_bytes(c, 1000) > FULL_BYTES_MAX / 4);
	(void)fill_with_bytes(c, 0);
	must_become_full(c);
	for (int i = 0; i < CLAIMS; i++) {
		struct hapax_op op;

		snprintf(key, sizeof(key), "claim %d", i);
		assert_int_equal(case_renew(c, key, tokens[i]), HAPAX_OK);
		if (i % 3 == 0) {
			complete_with(c, key, tokens[i], text, 300);
			continue;
		}
		op = case_op_token(
			c, i % 3 == 1 ? HAPAX_OP_PARK : HAPAX_OP_RELEASE, key, tokens[i]);
		op.error = hapax_bytes_from_text("failed while the store was full");
		must_run(c, &op, HAPAX_OUTCOME_APPLIED);
		if (i % 3 == 1)
			assert_int_equal(case_complete(c, key, tokens[i]), HAPAX_OK);
		else
			must_claim(c, key);
	}
	struct hapax_stats stats = case_stats(c);
	assert_int_equal(stats.bytes_max, FULL_BYTES_MAX);
	assert_true(stats.bytes <= FULL_BYTES_MAX);
	assert_int_equal(stats.evicted, 0);

	/* Expiry and the sweep make room again. */
	store_case_advance(c, 60000);
	case_sweep(c);
	assert_int_equal(try_run(c, HAPAX_OP_CLAIM, "a new one"), HAPAX_OK);
}

/*
 * I12: the reserve cannot hold what all claims bring. None of them is refused, or
 * its work would run again: results become tombstones, texts for people are cut.
 */
static void end_claims_beyond_the_reserve(struct store_case *c)
{
	enum { CLAIMS = 200, BODY = 200 * 1000 };
	uint64_t tokens[CLAIMS + 4];
	char *body = malloc(BODY);
	int omitted = 0;
	char key[64];

	assert_non_null(body);
	memset(body, 'b', BODY);
	for (int i = 0; i < CLAIMS + 4; i++) {
		snprintf(key, sizeof(key), "claim %d", i);
		tokens[i] = must_claim(c, key);
	}
	for (int i = 0; i < CLAIMS; i++) {
		snprintf(key, sizeof(key), "claim %d", i);
		complete_with(c, key, tokens[i], body, BODY);
		omitted += c->record.result.omitted_bytes != 0;
		assert_true(case_stats(c).bytes <= FULL_BYTES_MAX);
	}
	/* All together are five times what fits. */
	if (c->options.evict == HAPAX_EVICT_NONE)
		assert_in_range(omitted, CLAIMS / 2, CLAIMS - 1);
	else
		assert_int_equal(omitted, 0);
	assert_int_equal(case_renew(c, "claim 200", tokens[CLAIMS]), HAPAX_OK);
	assert_int_equal(case_complete(c, "claim 200", tokens[CLAIMS]), HAPAX_OK);
	struct hapax_op op = case_op_token(c, HAPAX_OP_RELEASE, "claim 201", tokens[CLAIMS + 1]);
	op.error = (struct hapax_bytes){body, 1024};
	must_run(c, &op, HAPAX_OUTCOME_APPLIED);
	op = case_op_token(c, HAPAX_OP_PARK, "claim 202", tokens[CLAIMS + 2]);
	op.error = (struct hapax_bytes){body, 1024};
	must_run(c, &op, HAPAX_OUTCOME_APPLIED);
	complete_with(c, "claim 203", tokens[CLAIMS + 3], body, BODY);
	/* What failed may be tried again. */
	must_claim(c, "claim 201");
	assert_true(case_stats(c).bytes <= FULL_BYTES_MAX);
	free(body);
}

static void full_reserve_lets_claims_end(void **state)
{
	struct store_case *c = *state;

	c->options.bytes_max = FULL_BYTES_MAX;
	store_case_reopen(c);
	end_claims_beyond_the_reserve(c);
}

static void lru_makes_room_for_results(void **state)
{
	struct store_case *c = *state;

	c->options.bytes_max = FULL_BYTES_MAX;
	c->options.evict = HAPAX_EVICT_LRU;
	store_case_reopen(c);
	end_claims_beyond_the_reserve(c);
	assert_true(case_stats(c).evicted > 100);
}

/* D3: a full store makes room for keys that it has, too: a retry, a new value. */
static void lru_makes_room_for_changes(void **state)
{
	struct store_case *c = *state;
	static char body[3000];
	char key[32];

	c->options.bytes_max = FULL_BYTES_MAX;
	c->options.evict = HAPAX_EVICT_LRU;
	store_case_reopen(c);
	for (int i = 0; i < 12000; i++) {
		struct hapax_result result = {
			.kind = HAPAX_RESULT_BYTES, .body = {body, (size_t)(i * 37 % 3000)}};
		struct hapax_op op;

		snprintf(key, sizeof(key), "set %d", i % 4000);
		op = case_op(c, HAPAX_OP_SET, key);
		op.result = &result;
		must_run(c, &op, HAPAX_OUTCOME_APPLIED);
		if (i % 10 == 0) {
			snprintf(key, sizeof(key), "retried %d", i % 100);
			uint64_t token = must_claim(c, key);
			assert_int_equal(case_release(c, key, token), HAPAX_OK);
		}
	}
	assert_true(case_stats(c).evicted > 0);
	assert_int_equal(case_stats(c).failed, 10);
	assert_true(case_stats(c).bytes <= FULL_BYTES_MAX);
}

/* I12: large values count for what they take: full is LIMIT, and before that it is room. */
static void large_values_fill_the_store(void **state)
{
	struct store_case *c = *state;
	enum { BODY = 40 * 1000 };
	static char body[BODY];
	struct hapax_result result = {.kind = HAPAX_RESULT_BYTES, .body = {body, BODY}};
	enum hapax_status status = HAPAX_OK;
	uint64_t count = 0;

	c->options.bytes_max = 64 << 20;
	store_case_reopen(c);
	for (; status == HAPAX_OK && count < 3000; count++) {
		char key[32];

		snprintf(key, sizeof(key), "set %llu", (unsigned long long)count);
		struct hapax_op op = case_op(c, HAPAX_OP_SET, key);
		op.result = &result;
		status = case_run(c, &op);
	}
	assert_int_equal(status, HAPAX_ERR_LIMIT);
	/* Half of the room at least holds values. */
	assert_true(count * BODY > 32 << 20);
	assert_true(case_stats(c).bytes <= 64 << 20);
}

/* parked_max per scope: no new claims there, everything else goes on. */
static void too_many_parked_stop_new_claims(void **state)
{
	struct store_case *c = *state;
	uint64_t tokens[3];
	char key[16];

	c->options.parked_max = 3;
	store_case_reopen(c);
	uint64_t running = must_claim(c, "running");
	for (int i = 0; i < 3; i++) {
		snprintf(key, sizeof(key), "p%d", i);
		tokens[i] = must_claim(c, key);
		assert_int_equal(case_park(c, key, tokens[i]), HAPAX_OK);
	}
	assert_int_equal(case_stats(c).parked, 3);
	assert_int_equal(try_run(c, HAPAX_OP_CLAIM, "new"), HAPAX_ERR_LIMIT);
	assert_int_equal(case_state(c, "new"), HAPAX_STATE_ABSENT);
	/* Another scope has its own. */
	struct hapax_op op = case_op(c, HAPAX_OP_CLAIM, "new");
	op.group = hapax_bytes_from_text("other");
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	/* Live claims end, even by parking: the limit stops new ones only. */
	assert_int_equal(case_park(c, "running", running), HAPAX_OK);
	assert_int_equal(case_complete(c, "running", running), HAPAX_OK);
	assert_int_equal(case_claim(c, "p0", NULL), HAPAX_OUTCOME_PARKED);
	assert_int_equal(case_release(c, "p0", tokens[0]), HAPAX_OK);
	must_claim(c, "new");
	/* Also when the store was closed in between. */
	if (store_case_is_durable(c)) {
		must_claim(c, "p0");
		assert_int_equal(case_park(c, "p0", c->record.token), HAPAX_OK);
		store_case_reopen(c);
		assert_int_equal(try_run(c, HAPAX_OP_CLAIM, "newer"), HAPAX_ERR_LIMIT);
	}
}

/* Write over, remove and let expire what a few hundred keys hold. */
static void churn(struct store_case *c, uint64_t steps, uint64_t *ret_number)
{
	static unsigned char body[2000];

	for (uint64_t i = 0; i < steps; i++) {
		struct hapax_op ops[16];
		struct hapax_result results[16];
		char keys[16][24];

		for (size_t k = 0; k < 16; k++) {
			uint64_t number = ++*ret_number;

			snprintf(
				keys[k], sizeof(keys[k]), "churn %llu",
				(unsigned long long)(number * 7919 % 500));
			ops[k] = case_op(c, number % 9 ? HAPAX_OP_SET : HAPAX_OP_FORGET, keys[k]);
			results[k] = (struct hapax_result){
				.kind = HAPAX_RESULT_BYTES,
				.body = {body, number * 31 % (number % 50 ? 100 : sizeof(body))}};
			ops[k].result = number % 9 ? &results[k] : NULL;
			ops[k].ttl_ms = number % 9 ? 1 + (int64_t)(number % 97) * 1000 : 0;
		}
		assert_int_equal(hapax_store_run(c->store, ops, 16, NULL), HAPAX_OK);
		store_case_advance(c, 10);
		if (i % 1000 == 999)
			case_sweep(c);
	}
}

/* I12: the same few keys take the same few bytes forever. */
static void churn_does_not_grow_the_store(void **state)
{
	struct store_case *c = *state;
	uint64_t steps =
		strcmp(c->kind, "memory:") != 0 ? scale_count(2000, 60) : scale_count(100000, 4000);
	uint64_t number = 0;

	churn(c, steps / 4, &number);
	uint64_t early = case_stats(c).bytes;
	churn(c, steps, &number);
	uint64_t late = case_stats(c).bytes;
	if (late > 2 * early + (4 << 20))
		printf("# %llu bytes, then %llu\n", (unsigned long long)early,
		       (unsigned long long)late);
	assert_true(late <= 2 * early + (4 << 20));
	/* And nothing of it is left when all has expired. */
	store_case_advance(c, 200000);
	case_sweep(c);
	assert_int_equal(case_stats(c).keys, 0);
}

static void open_with_lru(struct store_case *c, uint64_t keys_max)
{
	c->options.keys_max = keys_max;
	c->options.evict = HAPAX_EVICT_LRU;
	store_case_reopen(c);
}

static void check_many(struct store_case *c, const char *name, int count)
{
	char key[64];

	for (int i = 0; i < count; i++) {
		snprintf(key, sizeof(key), "%s %d", name, i);
		assert_int_equal(try_run(c, HAPAX_OP_CHECK, key), HAPAX_OK);
	}
}

/* D3: LRU forgets DONE records only, never one in progress, and counts each. */
static void lru_takes_done_records_only(void **state)
{
	struct store_case *c = *state;
	enum { KEYS = 1000, HELD = 100 };
	uint64_t tokens[HELD];
	char key[64];

	open_with_lru(c, KEYS);
	for (int i = 0; i < HELD; i++) {
		snprintf(key, sizeof(key), "held %d", i);
		tokens[i] = must_claim(c, key);
		if (i % 2)
			assert_int_equal(case_park(c, key, tokens[i]), HAPAX_OK);
	}
	store_case_advance(c, 100000);
	check_many(c, "done", 20 * KEYS);
	struct hapax_stats stats = case_stats(c);
	assert_true(stats.keys <= KEYS);
	assert_true(stats.keys > KEYS / 2);
	assert_int_equal(stats.claimed, HELD / 2);
	assert_int_equal(stats.parked, HELD / 2);
	/* Nothing expired meanwhile: every record that is gone was evicted. */
	assert_int_equal(stats.evicted, HELD + 20 * KEYS - stats.keys);
	for (int i = 0; i < HELD; i++) {
		snprintf(key, sizeof(key), "held %d", i);
		assert_int_equal(
			case_state(c, key), i % 2 ? HAPAX_STATE_PARKED : HAPAX_STATE_CLAIMED);
		assert_int_equal(case_complete(c, key, tokens[i]), HAPAX_OK);
	}
}

/* D3: what was used lately stays. */
static void lru_keeps_what_is_used(void **state)
{
	struct store_case *c = *state;

	open_with_lru(c, 200);
	check_many(c, "hot", 10);
	for (int i = 0; i < 50; i++) {
		char name[32];

		snprintf(name, sizeof(name), "cold %d", i);
		check_many(c, name, 40);
		for (int k = 0; k < 10; k++) {
			snprintf(name, sizeof(name), "hot %d", k);
			struct hapax_op op = case_op(c, HAPAX_OP_CHECK, name);
			must_run(c, &op, HAPAX_OUTCOME_REPLAY);
		}
	}
	assert_true(case_stats(c).evicted >= 50 * 40 - 200);
}

/* D3: with nothing left that may be taken, full is full. */
static void lru_of_claims_alone_is_full(void **state)
{
	struct store_case *c = *state;
	char key[32];

	open_with_lru(c, 20);
	for (int i = 0; i < 20; i++) {
		snprintf(key, sizeof(key), "held %d", i);
		must_claim(c, key);
	}
	assert_int_equal(try_run(c, HAPAX_OP_CLAIM, "new"), HAPAX_ERR_LIMIT);
	assert_int_equal(try_run(c, HAPAX_OP_CHECK, "new"), HAPAX_ERR_LIMIT);
	assert_int_equal(case_stats(c).evicted, 0);
	assert_int_equal(case_stats(c).claimed, 20);
}

/* D3: full of bytes makes room as well as full of keys. */
static void lru_makes_room_for_bytes(void **state)
{
	struct store_case *c = *state;
	static unsigned char body[4000];
	char key[32];
	uint64_t token;

	c->options.bytes_max = 8 << 20;
	c->options.evict = HAPAX_EVICT_LRU;
	store_case_reopen(c);
	token = must_claim(c, "held");
	for (int i = 0; i < 20000; i++) {
		struct hapax_result result = {
			.kind = HAPAX_RESULT_BYTES, .body = {body, (size_t)(i * 37 % 4000)}};
		struct hapax_op op;

		snprintf(key, sizeof(key), "set %d", i);
		op = case_op(c, HAPAX_OP_SET, key);
		op.result = &result;
		must_run(c, &op, HAPAX_OUTCOME_APPLIED);
	}
	struct hapax_stats stats = case_stats(c);
	assert_true(stats.bytes <= 8 << 20);
	assert_true(stats.evicted > 0);
	assert_int_equal(stats.evicted + stats.keys, 20001);
	assert_int_equal(case_complete(c, "held", token), HAPAX_OK);
}

/* D3: a list of keys makes room as a single one does. */
static void lru_makes_room_for_a_group(void **state)
{
	struct store_case *c = *state;
	enum hapax_outcome outcome = HAPAX_OUTCOME_NONE;
	size_t index = 0;

	open_with_lru(c, 100);
	check_many(c, "done", 200);
	for (int i = 0; i < 20; i++) {
		struct hapax_op ops[3];
		char keys[3][32];

		for (int k = 0; k < 3; k++) {
			snprintf(keys[k], sizeof(keys[k]), "group %d/%d", i, k);
			ops[k] = case_op(c, HAPAX_OP_CLAIM, keys[k]);
		}
		assert_int_equal(
			hapax_store_claim_all(c->store, ops, 3, &outcome, &index, NULL), HAPAX_OK);
		assert_int_equal(outcome, HAPAX_OUTCOME_ACQUIRED);
	}
	assert_int_equal(case_stats(c).claimed, 60);
	assert_true(case_stats(c).keys <= 100);
	assert_int_equal(case_stats(c).evicted, 200 + 60 - case_stats(c).keys);
}

/* D3: forgetting a key that had expired anyway is not an eviction. */
static void lru_does_not_count_expired_records(void **state)
{
	struct store_case *c = *state;

	open_with_lru(c, 100);
	check_many(c, "old", 100);
	store_case_advance(c, 60000);
	/* Without a sweep: each new key finds a full store, and an old one to take. */
	check_many(c, "new", 100);
	/* The hand may meet a new one twice in a bucket that changes under it. */
	assert_true(case_stats(c).evicted < 10);
	assert_int_equal(case_stats(c).evicted + case_stats(c).swept, 100);
	assert_int_equal(case_stats(c).keys, 100);
}

const struct conformance_case limit_cases[] = {
	{"I12: full of keys refuses new ones", full_of_keys_refuses_new_ones, NEEDS_LIMITS},
	{"I12: expired keys make room", expired_keys_make_room, NEEDS_LIMITS},
	{"I12: a group fits or does not begin", group_fits_or_does_not_begin, NEEDS_LIMITS},
	{"I12: full of bytes lets claims end", full_of_bytes_lets_claims_end, NEEDS_LIMITS},
	{"I12: a full reserve lets claims end", full_reserve_lets_claims_end, NEEDS_LIMITS},
	{"I12: large values fill the store", large_values_fill_the_store, NEEDS_LIMITS},
	{"I12: too many parked stop new claims", too_many_parked_stop_new_claims, NEEDS_WHOLE},
	{"I12: churn does not grow the store", churn_does_not_grow_the_store, NEEDS_LIMITS},
	{"D3: LRU takes done records only", lru_takes_done_records_only, NEEDS_EVICTION},
	{"D3: LRU keeps what is used", lru_keeps_what_is_used, NEEDS_EVICTION},
	{"D3: LRU of claims alone is full", lru_of_claims_alone_is_full, NEEDS_EVICTION},
	{"D3: LRU makes room for bytes", lru_makes_room_for_bytes, NEEDS_EVICTION},
	{"D3: LRU makes room for results", lru_makes_room_for_results, NEEDS_EVICTION},
	{"D3: LRU makes room for changes", lru_makes_room_for_changes, NEEDS_EVICTION},
	{"D3: LRU makes room for a group", lru_makes_room_for_a_group, NEEDS_EVICTION},
	{"D3: LRU does not count expired records", lru_does_not_count_expired_records,
	 NEEDS_EVICTION},
	{NULL, NULL, NEEDS_NOTHING},
};
