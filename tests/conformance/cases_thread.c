/* SPDX-License-Identifier: Apache-2.0 */
/* cases_thread.c - many threads on few keys: A2, I1, I1b, I5 while everybody runs. */
#include "conformance/cases.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "conformance/checker.h"
#include "support/crowd.h"
#include "support/scale.h"
#include "support/virtual_clock.h"

static bool is_memory(const struct store_case *c)
{
	return strcmp(c->kind, "memory:") == 0;
}

/* May two stores be opened on the same place? One process owns a file: store. */
static bool can_share(const struct store_case *c)
{
	return c->has_dir && strcmp(c->kind, "file:") != 0;
}

/* ------------------------------------------------------------------ one winner */

enum { WINNER_THREADS = 100 };

struct race {
	struct hapax_store *store;
	uint64_t round;
	struct {
		enum hapax_status status;
		enum hapax_outcome outcome;
		uint64_t token;
	} answers[WINNER_THREADS];
};

static void race_for_key(size_t index, void *context)
{
	struct race *race = context;
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE] = {1};
	char key[32];
	int size = snprintf(key, sizeof(key), "race %llu", (unsigned long long)race->round);
	struct hapax_op op = {
		.type = race->round % 2 ? HAPAX_OP_CLAIM : HAPAX_OP_CHECK,
		.key = {key, (size_t)size},
		.attempt_id = attempt_id};

	memcpy(attempt_id + 1, &race->round, sizeof(race->round));
	memcpy(attempt_id + 9, &index, 4);
	hapax_store_run(race->store, &op, 1, NULL);
	race->answers[index].status = op.status;
	race->answers[index].outcome = op.outcome;
	race->answers[index].token = op.token;
}

/* A2: of 100 threads that ask at once, one is told to go, the others why not. */
static void one_of_many_is_first(void **state)
{
	struct store_case *c = *state;
	uint64_t rounds = is_memory(c) ? scale_count(20000, 3000) : scale_count(2000, 200);
	double begun = scale_seconds();
	struct race *race = calloc(1, sizeof(*race));
	struct crowd crowd;
	uint64_t bad = 0;
	uint64_t last = 0;

	assert_non_null(race);
	race->store = c->store;
	crowd_init(&crowd, WINNER_THREADS);
	for (race->round = 0; race->round < rounds && !bad; race->round++) {
		enum hapax_outcome loser =
			race->round % 2 ? HAPAX_OUTCOME_IN_PROGRESS : HAPAX_OUTCOME_REPLAY;
		size_t winners = 0;
		uint64_t token = 0;

		crowd_run(&crowd, race_for_key, race);
		for (size_t i = 0; i < WINNER_THREADS; i++) {
			bool won = race->answers[i].outcome == HAPAX_OUTCOME_ACQUIRED;

			winners += won;
			if (won)
				token = race->answers[i].token;
			bad += race->answers[i].status != HAPAX_OK ||
				(!won && race->answers[i].outcome != loser);
		}
		bad += winners != 1 || (token <= last && store_case_is_whole(c));
		last = token;
		if (bad)
			printf("# round %llu: %zu winners\n", (unsigned long long)race->round,
			       winners);
	}
	crowd_done(&crowd);
	char what[64];
	snprintf(what, sizeof(what), "100 threads on one key, rounds, %s", c->kind);
	scale_report(what, race->round, scale_seconds() - begun, bad == 0);
	free(race);
	assert_int_equal(bad, 0);
}

/* ------------------------------------------------------------------ one winner of each */

enum { CHASE_THREADS = 4, CHASE_BATCH = 32 };

/* Threads that run through the same keys, side by side, without waiting for each other. */
struct chase {
	struct hapax_store *stores[2]; /* a store with files is opened twice */
	uint64_t keys;
	_Atomic unsigned char *winners; /* of each key */
	_Atomic uint64_t failed;
};

static enum hapax_op_type chase_type(uint64_t number)
{
	static const enum hapax_op_type types[] = {
		HAPAX_OP_CHECK, HAPAX_OP_CHECK, HAPAX_OP_CLAIM, HAPAX_OP_SET};

	return types[number / CHASE_BATCH % 4];
}

static void chase_keys(size_t index, void *context)
{
	struct chase *chase = context;
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE] = {1, (unsigned char)index};
	struct hapax_record record;
	struct hapax_buf *buf = hapax_buf_new(4096);

	for (uint64_t first = 0; first < chase->keys;) {
		/* Alone, or many in one submit; each thread in its own rhythm. */
		size_t count = (first + index) % 3 ? 1 : CHASE_BATCH - first % CHASE_BATCH;
		struct hapax_op ops[CHASE_BATCH];
		char keys[CHASE_BATCH][40];

		for (size_t i = 0; i < count; i++) {
			int size = snprintf(
				keys[i], sizeof(keys[i]), "%08llx-0000-4000-8000-%012llx",
				(unsigned long long)(first + i) * 0x9e3779b1u & 0xffffffff,
				(unsigned long long)(first + i));

			ops[i] = (struct hapax_op){
				.type = chase_type(first + i),
				.key = {keys[i], (size_t)size},
				.attempt_id = attempt_id,
				.set_if = HAPAX_SET_IF_ABSENT};
			/* Who wants the record takes another way through a store. */
			if ((first + i) % 5 == 0 && count == 1) {
				ops[i].record = &record;
				ops[i].buf = buf;
			}
		}
		if (hapax_store_run(chase->stores[index % 2], ops, count, NULL) != HAPAX_OK)
			atomic_fetch_add(&chase->failed, 1);
		for (size_t i = 0; i < count; i++)
			if (ops[i].outcome == HAPAX_OUTCOME_ACQUIRED ||
			    ops[i].outcome == HAPAX_OUTCOME_APPLIED)
				atomic_fetch_add(&chase->winners[first + i], 1);
		first += count;
	}
	hapax_buf_free(buf);
}

/* A2: each of very many keys has one first, in any order of callers. */
static void each_key_has_one_first(void **state)
{
	struct store_case *c = *state;
	struct chase chase = {.stores = {c->store, c->store}};
	double begun = scale_seconds();
	struct crowd crowd;
	uint64_t bad = 0;

	chase.keys = is_memory(c) ? scale_count(10000000, 500000) : scale_count(50000, 2000);
	chase.keys += CHASE_BATCH - chase.keys % CHASE_BATCH;
	void *winners = calloc(chase.keys, sizeof(*chase.winners));
	assert_non_null(winners);
	chase.winners = winners;
	if (can_share(c))
		assert_int_equal(
			hapax_store_open(c->url, &c->options, &chase.stores[1], NULL), HAPAX_OK);
	crowd_init(&crowd, CHASE_THREADS);
	crowd_run(&crowd, chase_keys, &chase);
	crowd_done(&crowd);
	if (can_share(c))
		hapax_store_close(chase.stores[1]);
	for (uint64_t i = 0; i < chase.keys; i++)
		bad += chase.winners[i] != 1;
	char what[64];
	snprintf(what, sizeof(what), "keys raced for by 4 threads, %s", c->kind);
	scale_report(what, chase.keys, scale_seconds() - begun, bad == 0);
	assert_int_equal(chase.failed, 0);
	assert_int_equal(bad, 0);
	assert_int_equal(case_stats(c).keys, chase.keys);
	free(winners);
}

/* ------------------------------------------------------------------ hot keys */

enum { HOT_THREADS = 6, HOT_KEYS = 2, HOT_STEPS = 16, HOT_LEASE_MS = 10, HOT_TTL_MS = 25 };

/* What all threads know of one key: its events, and the tokens that were seen. */
struct hot_key {
	char name[40];
	struct checker_event events[CHECKER_EVENTS_MAX];
	_Atomic uint32_t taken;
	_Atomic uint64_t token; /* the last one that any thread was given */
};

struct hot {
	struct store_case *c;
	uint64_t round;
	bool time_passes;
	_Atomic uint64_t moment;
	_Atomic uint64_t value;
	struct hot_key keys[HOT_KEYS];
	struct hx_prng prng[HOT_THREADS];
	struct hapax_buf *bufs[HOT_THREADS + 1];
};

static int64_t hot_now(struct hot *hot)
{
	return CASE_EPOCH_MS + atomic_load(&hot->c->clock.boot_ms);
}

static uint64_t value_of(const struct hapax_record *record)
{
	uint64_t value = 0;

	if (record->result.body.size == sizeof(value))
		memcpy(&value, record->result.body.data, sizeof(value));
	return value;
}

/* Make the call that event describes, and note what came of it. */
static void perform(
	struct hot *hot, struct hot_key *key, struct checker_event *event, struct hapax_buf *buf)
{
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE] = {[15] = 1};
	struct hapax_record record = {.state = HAPAX_STATE_ABSENT};
	struct hapax_result result = {
		.kind = HAPAX_RESULT_BYTES, .body = {&event->value, sizeof(event->value)}};
	struct hapax_op op = {
		.type = event->type,
		.key = hapax_bytes_from_text(key->name),
		.attempt_id = attempt_id,
		.lease_ms = event->lease_ms,
		.ttl_ms = event->ttl_ms,
		.token = event->token,
		.record = &record,
		.buf = buf};

	memcpy(attempt_id, &event->attempt_number, sizeof(event->attempt_number));
	if (event->type == HAPAX_OP_COMPLETE)
		op.result = &result;
	if (event->type == HAPAX_OP_FORGET)
		op.flags = HAPAX_OP_FORCE;
	event->now_first_ms = hot_now(hot);
	event->begun = atomic_fetch_add(&hot->moment, 1);
	hapax_store_run(hot->c->store, &op, 1, NULL);
	event->ended = atomic_fetch_add(&hot->moment, 1);
	event->now_last_ms = hot_now(hot);
	event->status = op.status;
	event->outcome = op.outcome;
	if (op.status != HAPAX_OK)
		return;
	event->attempt = op.attempt;
	if (op.outcome == HAPAX_OUTCOME_ACQUIRED || op.outcome == HAPAX_OUTCOME_FOUND)
		event->token = op.token;
	if (op.outcome == HAPAX_OUTCOME_REPLAY || op.outcome == HAPAX_OUTCOME_FOUND)
		event->value = value_of(&record);
	event->state = record.state;
	if (op.outcome == HAPAX_OUTCOME_ACQUIRED)
		atomic_store(&key->token, op.token);
}

static struct checker_event *next_event(struct hot_key *key)
{
	uint32_t at = atomic_fetch_add(&key->taken, 1);

	/* One place is kept for the look at the end. */
	if (at >= CHECKER_EVENTS_MAX - 1) {
		atomic_store(&key->taken, CHECKER_EVENTS_MAX - 1);
		return NULL;
	}
	key->events[at] = (struct checker_event){.lease_ms = HOT_LEASE_MS, .ttl_ms = HOT_TTL_MS};
	return &key->events[at];
}

/* Claim, and sometimes repeat the call, as after an answer that got lost. */
static uint64_t hot_claim(struct hot *hot, struct hot_key *key, size_t index)
{
	uint64_t number = atomic_fetch_add(&hot->value, 1) << 8 | index;
	uint64_t token = 0;

	for (int calls = 0; calls < 2; calls++) {
		struct checker_event *event = next_event(key);

		if (!event)
			break;
		event->type = HAPAX_OP_CLAIM;
		event->attempt_number = number;
		perform(hot, key, event, hot->bufs[index]);
		if (event->outcome == HAPAX_OUTCOME_ACQUIRED)
			token = event->token;
		if (hx_prng_below(&hot->prng[index], 6))
			break;
	}
	return token;
}

static void hot_thread(size_t index, void *context)
{
	static const enum hapax_op_type types[] = {
		HAPAX_OP_COMPLETE, HAPAX_OP_COMPLETE, HAPAX_OP_RELEASE, HAPAX_OP_RELEASE,
		HAPAX_OP_RENEW,    HAPAX_OP_PARK,     HAPAX_OP_LOOKUP,  HAPAX_OP_LOOKUP,
		HAPAX_OP_FORGET,   HAPAX_OP_CHECK,
	};
	struct hot *hot = context;
	struct hx_prng *prng = &hot->prng[index];
	uint64_t held[HOT_KEYS] = {0};

	for (int step = 0; step < HOT_STEPS; step++) {
		size_t k = hx_prng_below(prng, HOT_KEYS);
		struct hot_key *key = &hot->keys[k];

		if (hot->time_passes && hx_prng_below(prng, 12) == 0)
			hx_virtual_clock_advance(&hot->c->clock, (int64_t)hx_prng_below(prng, 30));
		if (hx_prng_below(prng, 2) == 0) {
			uint64_t token = hot_claim(hot, key, index);

			held[k] = token ? token : held[k];
			continue;
		}
		/* The own token mostly, now and then the last one of any thread. */
		uint64_t token = hx_prng_below(prng, 4) ? held[k] : atomic_load(&key->token);
		enum hapax_op_type type =
			types[hx_prng_below(prng, sizeof(types) / sizeof(types[0]))];
		bool needs_token = type != HAPAX_OP_LOOKUP && type != HAPAX_OP_FORGET &&
			type != HAPAX_OP_CHECK;
		/* A mark or a removal ends the game for all: rarely. */
		if (((type == HAPAX_OP_FORGET || type == HAPAX_OP_CHECK) &&
		     hx_prng_below(prng, 3)) ||
		    (needs_token && !token))
			type = HAPAX_OP_LOOKUP;
		struct checker_event *event = next_event(key);
		if (!event)
			continue;
		event->type = type;
		event->token = type == HAPAX_OP_LOOKUP ? 0 : token;
		if (type == HAPAX_OP_COMPLETE)
			event->value = atomic_fetch_add(&hot->value, 1);
		perform(hot, key, event, hot->bufs[index]);
	}
}

/* I1, I1b, I3, I5, I7: what threads saw of hot keys must have an order that explains it. */
static void run_hot_keys(struct store_case *c, bool time_passes, const char *what)
{
	uint64_t rounds = is_memory(c) ? scale_count(50000, 8000) : scale_count(1000, 60);
	double begun = scale_seconds();
	uint64_t seed = 1;
	uint64_t events = 0;
	uint64_t gave_up = 0;
	bool ok = true;
	struct hot *hot = calloc(1, sizeof(*hot));
	struct crowd crowd;

	assert_non_null(hot);
	/* Every round leaves parked keys behind. */
	c->options.parked_max = UINT64_C(1) << 40;
	store_case_reopen(c);
	scale_seed(&seed);
	printf("# seed %llu\n", (unsigned long long)seed);
	hot->c = c;
	hot->time_passes = time_passes;
	for (size_t i = 0; i < HOT_THREADS; i++)
		hx_prng_seed(&hot->prng[i], seed * HOT_THREADS + i);
	for (size_t i = 0; i <= HOT_THREADS; i++)
		hot->bufs[i] = hapax_buf_new(65536);
	crowd_init(&crowd, HOT_THREADS);
	for (hot->round = 0; hot->round < rounds && ok; hot->round++) {
		for (size_t k = 0; k < HOT_KEYS; k++) {
			struct hot_key *key = &hot->keys[k];

			snprintf(
				key->name, sizeof(key->name), "hot %llu/%zu",
				(unsigned long long)hot->round, k);
			atomic_store(&key->taken, 0);
			atomic_store(&key->token, 0);
		}
		crowd_run(&crowd, hot_thread, hot);
		for (size_t k = 0; k < HOT_KEYS && ok; k++) {
			struct hot_key *key = &hot->keys[k];
			size_t count = atomic_load(&key->taken);

			key->events[count] = (struct checker_event){.type = HAPAX_OP_LOOKUP};
			perform(hot, key, &key->events[count], hot->bufs[HOT_THREADS]);
			count++;
			enum checker_verdict verdict = checker_run(key->events, count);
			events += count;
			gave_up += verdict == CHECKER_GAVE_UP;
			if (verdict == CHECKER_REJECTED) {
				ok = false;
				printf("# no order explains what was seen of '%s':\n", key->name);
				checker_print(key->events, count);
			}
		}
	}
	crowd_done(&crowd);
	for (size_t i = 0; i <= HOT_THREADS; i++)
		hapax_buf_free(hot->bufs[i]);
	char text[96];
	snprintf(text, sizeof(text), "%s, %s", what, c->kind);
	scale_report(text, events, scale_seconds() - begun, ok);
	if (gave_up)
		printf("# the checker gave up on %llu keys\n", (unsigned long long)gave_up);
	assert_true(gave_up <= rounds / 100);
	free(hot);
	assert_true(ok);
}

static void hot_keys_have_an_order(void **state)
{
	run_hot_keys(*state, false, "operations of threads on hot keys");
}

static void hot_keys_have_an_order_while_leases_lapse(void **state)
{
	run_hot_keys(*state, true, "operations of threads on hot keys, time passing");
}

/* ------------------------------------------------------------------ groups */

enum { BUNDLE_KEYS = 24 };

struct bundle {
	struct hapax_store *store;
	uint64_t steps;
	char keys[BUNDLE_KEYS][16];
	_Atomic uint64_t torn;
	_Atomic uint64_t failed;
	_Atomic uint64_t claimed;
};

/* One operation on each key of the bundle, all or nothing. Returns the answer of all. */
static struct hapax_op run_bundle(struct bundle *bundle, const struct hapax_op *like)
{
	struct hapax_op ops[BUNDLE_KEYS];

	for (size_t i = 0; i < BUNDLE_KEYS; i++) {
		ops[i] = *like;
		ops[i].key = hapax_bytes_from_text(bundle->keys[i]);
		ops[i].flags = i + 1 < BUNDLE_KEYS ? HAPAX_OP_LINKED : 0;
	}
	ops[0].flags |= HAPAX_OP_ALL_OR_NOTHING;
	if (hapax_store_run(bundle->store, ops, BUNDLE_KEYS, NULL) != HAPAX_OK)
		atomic_fetch_add(&bundle->failed, 1);
	for (size_t i = 1; i < BUNDLE_KEYS; i++)
		if (ops[i].outcome != ops[0].outcome || ops[i].token != ops[0].token)
			atomic_fetch_add(&bundle->torn, 1);
	return ops[0];
}

/* The first and the last key of the bundle, at once. */
static void look_at_bundle(struct bundle *bundle)
{
	struct hapax_op ops[2] = {{.type = HAPAX_OP_LOOKUP}, {.type = HAPAX_OP_LOOKUP}};

	ops[0].key = hapax_bytes_from_text(bundle->keys[0]);
	ops[1].key = hapax_bytes_from_text(bundle->keys[BUNDLE_KEYS - 1]);
	ops[0].flags = HAPAX_OP_LINKED;
	if (hapax_store_run(bundle->store, ops, 2, NULL) != HAPAX_OK)
		atomic_fetch_add(&bundle->failed, 1);
	if (ops[0].outcome != ops[1].outcome || ops[0].token != ops[1].token ||
	    ops[0].attempt != ops[1].attempt)
		atomic_fetch_add(&bundle->torn, 1);
}

/* One after the other: the second is not older than the first. */
static void look_twice_at_bundle(struct bundle *bundle, uint64_t step)
{
	struct hapax_op ops[2] = {{.type = HAPAX_OP_LOOKUP}, {.type = HAPAX_OP_LOOKUP}};

	ops[step % 2].key = hapax_bytes_from_text(bundle->keys[0]);
	ops[1 - step % 2].key = hapax_bytes_from_text(bundle->keys[BUNDLE_KEYS - 1]);
	hapax_store_run(bundle->store, &ops[0], 1, NULL);
	hapax_store_run(bundle->store, &ops[1], 1, NULL);
	if (ops[1].token < ops[0].token)
		atomic_fetch_add(&bundle->torn, 1);
}

/* Writes and removals beside the bundle, so that tables move under it. */
static void disturb_bundle(struct bundle *bundle, size_t index, uint64_t step)
{
	char key[32];
	int size = snprintf(
		key, sizeof(key), "beside %zu/%llu", index, (unsigned long long)step / 2 % 300);
	struct hapax_op op = {
		.type = step % 2 ? HAPAX_OP_FORGET : HAPAX_OP_CHECK, .key = {key, (size_t)size}};

	if (hapax_store_run(bundle->store, &op, 1, NULL) != HAPAX_OK)
		atomic_fetch_add(&bundle->failed, 1);
}

/* Even threads take the bundle and give it back; odd ones look. */
static void use_bundle(size_t index, void *context)
{
	struct bundle *bundle = context;
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE] = {[15] = 1};

	for (uint64_t step = 0; step < bundle->steps; step++) {
		uint64_t number = step << 8 | index;

		if (index % 2) {
			look_at_bundle(bundle);
			disturb_bundle(bundle, index, step);
			for (unsigned i = 0; i < 20; i++)
				look_twice_at_bundle(bundle, step);
			continue;
		}
		memcpy(attempt_id, &number, sizeof(number));
		struct hapax_op claim = run_bundle(
			bundle,
			&(struct hapax_op){.type = HAPAX_OP_CLAIM, .attempt_id = attempt_id});
		if (claim.outcome != HAPAX_OUTCOME_ACQUIRED)
			continue;
		atomic_fetch_add(&bundle->claimed, 1);
		run_bundle(
			bundle, &(struct hapax_op){.type = HAPAX_OP_RELEASE, .token = claim.token});
	}
}

/* A group is visible as a whole or not at all. */
static void group_is_seen_as_a_whole(void **state)
{
	struct store_case *c = *state;
	struct bundle bundle = {.store = c->store};
	struct crowd crowd;

	bundle.steps = is_memory(c) ? scale_count(200000, 30000) : scale_count(1000, 50);
	for (size_t i = 0; i < BUNDLE_KEYS; i++)
		snprintf(bundle.keys[i], sizeof(bundle.keys[i]), "bundle %zu", i);
	crowd_init(&crowd, 4);
	crowd_run(&crowd, use_bundle, &bundle);
	crowd_done(&crowd);
	assert_int_equal(bundle.torn, 0);
	assert_int_equal(bundle.failed, 0);
	assert_true(bundle.claimed > 0);
}

/* ------------------------------------------------------------------ whole records */

enum { WHOLE_KEYS = 7, WHOLE_BODY_MAX = 3000 };

struct whole {
	struct hapax_store *store;
	uint64_t steps;
	struct hapax_buf *bufs[4];
	_Atomic uint64_t writing; /* threads that still write */
	_Atomic uint64_t torn;
	_Atomic uint64_t failed;
	_Atomic uint64_t found;
};

/* A value says by its first bytes how long it is, and every other byte follows from that. */
static void fill_whole(unsigned char *body, size_t size, uint32_t seed)
{
	memcpy(body, &seed, sizeof(seed));
	for (size_t i = sizeof(seed); i < size; i++)
		body[i] = (unsigned char)(seed * 31 + i);
}

static size_t whole_size(uint32_t seed)
{
	return sizeof(seed) + seed % (seed % 3 ? 60 : WHOLE_BODY_MAX - 10);
}

static bool is_whole(const struct hapax_record *record, size_t key)
{
	unsigned char expected[WHOLE_BODY_MAX];
	uint32_t seed = 0;
	char name[16];
	int size = snprintf(name, sizeof(name), "whole %zu", key);

	if (record->result.body.size < sizeof(seed) ||
	    !case_bytes_are(record->key, name, (size_t)size))
		return false;
	memcpy(&seed, record->result.body.data, sizeof(seed));
	fill_whole(expected, whole_size(seed), seed);
	return case_bytes_are(record->result.body, expected, whole_size(seed));
}

/* Threads 0 and 1 write values of many sizes, and remove them; the others read. */
static void write_or_read(size_t index, void *context)
{
	struct whole *work = context;
	struct hx_prng prng;

	hx_prng_seed(&prng, index + 1);
	/* Where reading is cheap and writing is not, readers go on as long as there are writers. */
	for (uint64_t step = 0;
	     step < work->steps || (index >= 2 && atomic_load(&work->writing) != 0); step++) {
		size_t key = hx_prng_below(&prng, WHOLE_KEYS);
		unsigned char body[WHOLE_BODY_MAX];
		uint32_t seed = (uint32_t)hx_prng_next(&prng);
		struct hapax_result result = {
			.kind = HAPAX_RESULT_BYTES, .body = {body, whole_size(seed)}};
		struct hapax_record record;
		char name[16];
		struct hapax_op op = {
			.type = HAPAX_OP_LOOKUP,
			.key = {name, (size_t)snprintf(name, sizeof(name), "whole %zu", key)},
			.record = &record,
			.buf = work->bufs[index]};

		if (index < 2) {
			op.type = seed % 11 ? HAPAX_OP_SET : HAPAX_OP_FORGET;
			op.result = &result;
			fill_whole(body, result.body.size, seed);
		}
		if (hapax_store_run(work->store, &op, 1, NULL) != HAPAX_OK)
			atomic_fetch_add(&work->failed, 1);
		if (op.outcome != HAPAX_OUTCOME_FOUND)
			continue;
		atomic_fetch_add(&work->found, 1);
		if (!is_whole(&record, key))
			atomic_fetch_add(&work->torn, 1);
	}
	if (index < 2)
		atomic_fetch_sub(&work->writing, 1);
}

/* A reader gets a record as it was at one moment, never half of two. */
static void record_is_read_as_a_whole(void **state)
{
	struct store_case *c = *state;
	struct whole work = {.store = c->store, .writing = 2};
	struct crowd crowd;

	work.steps = is_memory(c) ? scale_count(3000000, 100000) : scale_count(5000, 200);
	for (size_t i = 0; i < 4; i++)
		work.bufs[i] = hapax_buf_new(65536);
	crowd_init(&crowd, 4);
	crowd_run(&crowd, write_or_read, &work);
	crowd_done(&crowd);
	for (size_t i = 0; i < 4; i++)
		hapax_buf_free(work.bufs[i]);
	assert_int_equal(work.torn, 0);
	assert_int_equal(work.failed, 0);
	assert_true(work.found > 0);
}

/* ------------------------------------------------------------------ scans */

enum { STAYING = 500 };

struct crowded_scan {
	struct hapax_store *store;
	uint64_t inserts;
	uint64_t scans;
	_Atomic uint64_t missed;
	_Atomic uint64_t failed;
	_Atomic bool stop;
};

static int mark_staying(const struct hapax_record *record, void *context)
{
	unsigned char *seen = context;
	char text[32] = {0};

	if (record->key.size < sizeof(text))
		memcpy(text, record->key.data, record->key.size);
	if (strncmp(text, "staying ", 8) == 0)
		seen[strtoul(text + 8, NULL, 10) % STAYING] = 1;
	return 0;
}

static void scan_again_and_again(struct crowded_scan *work)
{
	for (uint64_t i = 0; i < work->scans; i++) {
		unsigned char seen[STAYING] = {0};
		struct hapax_cursor cursor = {0};
		struct hapax_scan scan = HAPAX_SCAN_INIT;

		scan.count_max = 1 + i % 97;
		while (!cursor.done)
			if (hapax_store_scan(
				    work->store, &scan, &cursor, mark_staying, seen, NULL) !=
			    HAPAX_OK) {
				atomic_fetch_add(&work->failed, 1);
				break;
			}
		for (size_t k = 0; k < STAYING; k++)
			if (!seen[k])
				atomic_fetch_add(&work->missed, 1);
	}
	atomic_store(&work->stop, true);
}

/* Thread 0 scans; the others insert, change and forget, so that the index grows. */
static void scan_or_disturb(size_t index, void *context)
{
	struct crowded_scan *work = context;

	if (index == 0) {
		scan_again_and_again(work);
		return;
	}
	for (uint64_t i = 0; i < work->inserts && !atomic_load(&work->stop); i++) {
		struct hapax_op ops[8] = {{.type = HAPAX_OP_CHECK}};
		char keys[8][40];

		for (int k = 0; k < 8; k++) {
			snprintf(
				keys[k], sizeof(keys[k]), "passing %zu/%llu", index,
				(unsigned long long)i * 8 + (unsigned)k);
			ops[k] = (struct hapax_op){
				.type = HAPAX_OP_CHECK, .key = hapax_bytes_from_text(keys[k])};
		}
		if (hapax_store_run(work->store, ops, 8, NULL) != HAPAX_OK)
			atomic_fetch_add(&work->failed, 1);
		/* A record that is changed on its way may move; it may not vanish. */
		snprintf(keys[0], sizeof(keys[0]), "staying %llu", (unsigned long long)i % STAYING);
		ops[0] = (struct hapax_op){
			.type = HAPAX_OP_SET, .key = hapax_bytes_from_text(keys[0])};
		ops[1].type = HAPAX_OP_FORGET;
		if (hapax_store_run(work->store, ops, 2, NULL) != HAPAX_OK)
			atomic_fetch_add(&work->failed, 1);
	}
}

/* What is there from the first call to the last is handed out at least once. */
static void scan_sees_what_stays(void **state)
{
	struct store_case *c = *state;
	struct crowded_scan work = {.store = c->store};
	struct crowd crowd;

	for (int i = 0; i < STAYING; i++) {
		char key[32];

		snprintf(key, sizeof(key), "staying %d", i);
		struct hapax_op op = case_op(c, HAPAX_OP_SET, key);
		must_run(c, &op, HAPAX_OUTCOME_APPLIED);
	}
	work.inserts = is_memory(c) ? scale_count(50000, 4000) : scale_count(2000, 100);
	work.scans = is_memory(c) ? scale_count(300, 30) : scale_count(100, 10);
	crowd_init(&crowd, 4);
	crowd_run(&crowd, scan_or_disturb, &work);
	crowd_done(&crowd);
	assert_int_equal(work.missed, 0);
	assert_int_equal(work.failed, 0);
}

const struct conformance_case thread_cases[] = {
	{"A2 I1: one of 100 threads is first", one_of_many_is_first, NEEDS_NOTHING},
	{"A2 I1: each key has one first", each_key_has_one_first, NEEDS_NOTHING},
	{"I1 I1b I5: hot keys have an order", hot_keys_have_an_order, NEEDS_NOTHING},
	{"I1 I1b I3 I5: hot keys have an order while leases lapse",
	 hot_keys_have_an_order_while_leases_lapse, NEEDS_NOTHING},
	{"I1b: a group is seen as a whole", group_is_seen_as_a_whole, NEEDS_WHOLE},
	{"I1: a record is read as a whole", record_is_read_as_a_whole, NEEDS_NOTHING},
	{"E6: a scan sees what stays while others insert", scan_sees_what_stays, NEEDS_NOTHING},
	{NULL, NULL, NEEDS_NOTHING},
};
