/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_processor_direct.c - the fast path of hapax_process() against the ordinary one.
 *
 * A random history (calls of many kinds, handlers that fail, call again, outlive their
 * lease or lose their key, other users of the store, time, sweeps, refusals) is lived
 * through twice, on two stores with two clocks: once where the store says that it
 * answers at once, and once where it does not say so. Every answer, every report, every
 * run and what is left in the store must be the same; and so what the simulation (tests/sim)
 * shows of the ordinary path holds for the other one. A seed that fails is printed;
 * HAPAX_TEST_SEED repeats it. Requirements: C2, C3, C4, C5.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "processor/processor.h"
#include "support/held_store.h"
#include "support/scale.h"
#include "support/store_case.h"

enum {
	KEYS = 3,
	STEPS = 40,
	DEPTH_MAX = 2,
	TOKENS_MAX = 1000,
	TRACE_SIZE = 256 * 1024,
	TEXT_SIZE = 600,
};

/* One of the two, while it lives through its history. */
struct side {
	struct store_case store;
	struct held_store held;
	struct hapax_processor *processor;
	struct hx_prng prng;
	uint64_t random;
	unsigned depth; /* handlers within handlers */
	uint64_t tokens[TOKENS_MAX];
	unsigned token_count;
	size_t size;
	char trace[TRACE_SIZE];
};

/* What a handler does, drawn before it is called. */
struct plan {
	struct side *side;
	enum hapax_run_outcome outcome;
	size_t body_size;
	int64_t takes_ms;
	bool calls_again;
	bool loses_key;
	bool ticks;
};

static uint64_t seen_fast, seen_ordinary, seen_outcomes[HAPAX_OUTCOME_SKIPPED + 1];

static unsigned draw(struct side *side, unsigned bound)
{
	return (unsigned)hx_prng_below(&side->prng, bound);
}

static bool draw_chance(struct side *side, unsigned percent)
{
	return draw(side, 100) < percent;
}

__attribute__((format(printf, 2, 3))) static void note(struct side *side, const char *format, ...)
{
	va_list args;
	int size;

	va_start(args, format);
	size = vsnprintf(side->trace + side->size, TRACE_SIZE - side->size, format, args);
	va_end(args);
	if (size < 0 || (size_t)size + 2 >= TRACE_SIZE - side->size)
		abort();
	side->size += (size_t)size;
	side->trace[side->size++] = '\n';
	side->trace[side->size] = '\0';
}

/*
 * The number of a token, in the order in which they are seen: who asks twice, because its
 * buffer is too small, uses one up, and that does not matter.
 */
static unsigned rank(struct side *side, uint64_t token)
{
	unsigned i = 0;

	while (i < side->token_count && side->tokens[i] != token)
		i++;
	if (i == TOKENS_MAX)
		abort();
	if (i == side->token_count)
		side->tokens[side->token_count++] = token;
	return i;
}

static const char *key_name(unsigned number)
{
	static const char *const names[KEYS] = {"k0", "k1", "k2"};

	return names[number];
}

/* Bytes as text; an end of a queue would make two of it. */
static void write_text(char out[TEXT_SIZE], struct hapax_bytes bytes)
{
	(void)snprintf(
		out, TEXT_SIZE, "%zu:%.*s", bytes.size, bytes.size < 100 ? (int)bytes.size : 100,
		(const char *)bytes.data);
}

static void note_answer(struct side *side, const char *what, const struct hapax_answer *answer)
{
	char owner[TEXT_SIZE], error[TEXT_SIZE], body[TEXT_SIZE], headers[TEXT_SIZE];

	write_text(owner, answer->owner);
	write_text(error, answer->error);
	write_text(body, answer->result.body);
	write_text(headers, answer->result.headers);
	note(side,
	     "%s: %s %s %s flags %x attempt %u token %u of %u index %zu seen %lld expires %lld left %lld",
	     what, hapax_status_name(answer->status), hapax_outcome_name(answer->outcome),
	     hapax_run_outcome_name(answer->run_outcome), answer->flags, (unsigned)answer->attempt,
	     rank(side, answer->token), rank(side, answer->original_token), answer->key_index,
	     (long long)answer->first_seen_ms, (long long)answer->expires_ms,
	     (long long)answer->lease_left_ms);
	note(side, "  owner %s error %s result %d %d %d omitted %llu headers %s body %s", owner,
	     error, (int)answer->result.kind, (int)answer->result.result_class,
	     (int)answer->result.status, (unsigned long long)answer->result.omitted_bytes, headers,
	     body);
}

static void decided(const struct hapax_decided *decided, void *context)
{
	char key[TEXT_SIZE];

	write_text(key, decided->key);
	note(context, "decided on %s", key);
	note_answer(context, "decided", decided->answer);
}

static void live(struct side *side);

static void pass_time(struct side *side, int64_t ms, bool ticks)
{
	store_case_advance(&side->store, ms);
	if (ticks)
		(void)hapax_processor_tick(side->processor);
}

static void forget(struct side *side, unsigned key, unsigned flags)
{
	struct hapax_op op = case_op(&side->store, HAPAX_OP_FORGET, key_name(key));

	op.flags = flags;
	(void)case_run(&side->store, &op);
	note(side, "forget %u: %s %s", key, hapax_status_name(op.status),
	     hapax_outcome_name(op.outcome));
}

static enum hapax_run_outcome handle(struct hapax_work *work, void *context)
{
	static const char text[4096] = "a body that is longer than what is kept of it";
	const struct plan *plan = context;
	struct side *side = plan->side;
	char key[TEXT_SIZE];

	side->held.away = HAPAX_OK;
	write_text(key, work->key);
	note(side, "runs %s attempt %u token %u", key, (unsigned)work->attempt,
	     rank(side, work->token));
	if (plan->loses_key && work->key.size == 2)
		forget(side, (unsigned)(((const char *)work->key.data)[1] - '0'), HAPAX_OP_FORCE);
	pass_time(side, plan->takes_ms, plan->ticks);
	if (plan->calls_again && side->depth < DEPTH_MAX) {
		side->depth++;
		live(side);
		side->depth--;
	}
	note(side, "ends, fenced %d", hapax_work_is_fenced(work));
	if (plan->outcome == HAPAX_RUN_TRANSIENT || plan->outcome == HAPAX_RUN_AMBIGUOUS)
		return hapax_work_fail(work, plan->outcome, "not today");
	assert_int_equal(hapax_work_write(work, text, plan->body_size), HAPAX_OK);
	return plan->outcome;
}

/* One thread cannot wait: only a key without a holder works. */
static bool may_wait(struct side *side, unsigned key)
{
	return side->depth == 0 && case_state(&side->store, key_name(key)) != HAPAX_STATE_CLAIMED;
}

static struct hapax_run_options draw_options(struct side *side, unsigned key)
{
	struct hapax_run_options options = HAPAX_RUN_OPTIONS_INIT;

	options.lease_ms = 50 + draw(side, 200);
	options.ttl_ms = 1 + draw(side, 400);
	options.max_run_ms = draw_chance(side, 20) ? 1 + draw(side, 100) : 0;
	options.result_size_max = draw_chance(side, 30) ? 40 : 0;
	options.on_lapse = draw_chance(side, 30) ? HAPAX_ON_LAPSE_PARK : HAPAX_ON_LAPSE_RETRY;
	options.on_mismatch =
		draw_chance(side, 40) ? HAPAX_ON_MISMATCH_DUPLICATE : HAPAX_ON_MISMATCH_REJECT;
	options.is_disabled = draw_chance(side, 5);
	if (draw_chance(side, 20) && may_wait(side, key))
		options.wait_ms = 10;
	/* A call that is refused. */
	if (draw_chance(side, 3))
		options.lease_ms = -1;
	return options;
}

static struct plan draw_plan(struct side *side)
{
	static const enum hapax_run_outcome outcomes[] = {
		HAPAX_RUN_OK, HAPAX_RUN_OK, HAPAX_RUN_DEFINITIVE, HAPAX_RUN_TRANSIENT,
		HAPAX_RUN_AMBIGUOUS};
	struct plan plan = {.side = side};

	plan.outcome = outcomes[draw(side, 5)];
	plan.body_size = draw(side, 80);
	plan.takes_ms = draw_chance(side, 70) ? 0 : draw(side, 400);
	plan.calls_again = draw_chance(side, 30);
	plan.loses_key = draw_chance(side, 5);
	plan.ticks = draw_chance(side, 50);
	return plan;
}

static void call(struct side *side)
{
	unsigned key = draw(side, KEYS);
	struct hapax_run_options options = draw_options(side, key);
	struct hapax_request request = HAPAX_REQUEST_INIT;
	struct hapax_answer answer = HAPAX_ANSWER_INIT;
	struct plan plan = draw_plan(side);
	bool has_answer = draw_chance(side, 80);
	unsigned room = draw(side, 10);
	struct hapax_buf *buf = room == 0 ? NULL : hapax_buf_new(room == 1 ? 8 : 1 << 16);
	struct hapax_error err = {.status = HAPAX_OK};
	enum hapax_status status;

	request.key = hapax_bytes_from_text(draw_chance(side, 2) ? "" : key_name(key));
	request.fingerprint = case_fingerprint("\0AAAB"[draw(side, 5)]);
	request.options = draw_chance(side, 20) ? NULL : &options;
	if (draw_chance(side, 20))
		request.owner = hapax_bytes_from_text("an owner");
	if (draw_chance(side, 5))
		side->held.away = draw_chance(side, 50) ? HAPAX_ERR_LIMIT : HAPAX_ERR_FAILED;
	status = hapax_process(
		side->processor, &request, handle, &plan, has_answer ? &answer : NULL, buf, &err);
	side->held.away = HAPAX_OK;
	note(side, "called %u: %s \"%s\"", key, hapax_status_name(status),
	     status == HAPAX_OK ? "" : err.message);
	if (has_answer) {
		note_answer(side, "answer", &answer);
		seen_outcomes[answer.outcome]++;
	}
	hapax_buf_free(buf);
}

/* Another caller, in another process. */
static void meddle(struct side *side)
{
	static const enum hapax_op_type ends[] = {
		HAPAX_OP_COMPLETE, HAPAX_OP_RELEASE, HAPAX_OP_PARK};
	const char *key = key_name(draw(side, KEYS));
	struct hapax_op op = case_op(&side->store, HAPAX_OP_CLAIM, key);
	unsigned then = draw(side, 4);

	op.owner = hapax_bytes_from_text("another");
	op.lease_ms = 1 + draw(side, 200);
	op.ttl_ms = 1 + draw(side, 400);
	op.on_lapse = draw_chance(side, 30) ? HAPAX_ON_LAPSE_PARK : HAPAX_ON_LAPSE_RETRY;
	op.fingerprint = case_fingerprint("\0AAB"[draw(side, 4)]);
	(void)case_run(&side->store, &op);
	note(side, "another claims: %s token %u", hapax_outcome_name(op.outcome),
	     rank(side, op.token));
	/* Sometimes it dies with its claim. */
	if (op.outcome != HAPAX_OUTCOME_ACQUIRED || then == 3)
		return;
	op = case_op_token(&side->store, ends[then], key, op.token);
	(void)case_run(&side->store, &op);
}

static void live(struct side *side)
{
	unsigned what = draw(side, 100);

	if (what < 70)
		call(side);
	else if (what < 80)
		pass_time(side, draw(side, 400), draw_chance(side, 50));
	else if (what < 85)
		note(side, "swept: %llu", (unsigned long long)case_sweep(&side->store).removed);
	else if (what < 90)
		forget(side, draw(side, KEYS), draw_chance(side, 50) ? HAPAX_OP_FORCE : 0);
	else
		meddle(side);
}

static void count_bytes(void *out, size_t size, void *context)
{
	struct side *side = context;
	unsigned char *bytes = out;

	for (size_t i = 0; i < size; i++) {
		if (i % 8 == 0)
			side->random += UINT64_C(0x9e3779b97f4a7c15);
		bytes[i] = (unsigned char)(side->random >> (i % 8 * 8));
	}
}

static void ignore_wake(void *context)
{
	(void)context;
}

static void begin(struct side *side, uint64_t seed, bool is_fast)
{
	struct hapax_processor_options options = HAPAX_PROCESSOR_OPTIONS_INIT;

	memset(side, 0, sizeof(*side));
	store_case_begin(&side->store, "memory:");
	held_store_init(&side->held, side->store.store, side->store.options.clock);
	side->held.ops.is_synchronous = is_fast;
	hx_prng_seed(&side->prng, seed);
	options.clock = side->store.options.clock;
	options.owner = "test";
	options.random_bytes = count_bytes;
	options.random_context = side;
	options.wake = ignore_wake;
	options.run.lease_ms = 100;
	options.run.ttl_ms = 300;
	if (draw_chance(side, 50)) {
		options.decided = decided;
		options.decided_context = side;
	}
	if (hapax_processor_new(&side->held.base, &options, &side->processor, NULL) != HAPAX_OK)
		abort();
}

static void end(struct side *side)
{
	struct hapax_stats stats = case_stats(&side->store);

	for (unsigned i = 0; i < KEYS; i++) {
		enum hapax_state state = case_state(&side->store, key_name(i));
		const struct hapax_record *record = &side->store.record;

		if (state == HAPAX_STATE_ABSENT)
			memset(&side->store.record, 0, sizeof(side->store.record));
		note(side, "left: %s token %u attempt %u expires %lld lease %lld",
		     hapax_state_name(state), rank(side, record->token), (unsigned)record->attempt,
		     (long long)record->expires_ms, (long long)record->lease_ends_ms);
	}
	/* A buffer that is too small is a LIMIT, too, and is asked for again. */
	for (unsigned i = 0; i < HAPAX_DECISION_COUNT; i++)
		if (i != HAPAX_DECISION_LIMIT)
			note(side, "counted %u: %llu", i, (unsigned long long)stats.counts[i]);
	*(side->held.ops.is_synchronous ? &seen_fast : &seen_ordinary) += side->processor->sequence;
	hapax_processor_free(side->processor);
	held_store_done(&side->held);
	store_case_done(&side->store);
}

/* Up to the first queue that differs, and that queue. */
static void report(uint64_t seed, const struct side *fast, const struct side *ordinary)
{
	enum { LINES_BEFORE = 12 };
	size_t queue = 0, at = 0, from;

	for (; at < fast->size && fast->trace[at] == ordinary->trace[at]; at++)
		if (fast->trace[at] == '\n')
			queue = at + 1;
	from = queue;
	for (unsigned queues = 0; queues < LINES_BEFORE && from > 0; queues++)
		for (from--; from > 0 && fast->trace[from - 1] != '\n';)
			from--;
	printf("# seed %llu; HAPAX_TEST_SEED repeats it. Both:\n%.*s# fast:\n%.*s\n# ordinary:\n%.*s\n",
	       (unsigned long long)seed, (int)(queue - from), fast->trace + from,
	       (int)strcspn(fast->trace + queue, "\n"), fast->trace + queue,
	       (int)strcspn(ordinary->trace + queue, "\n"), ordinary->trace + queue);
}

static struct side sides[2];

static bool same_for(uint64_t seed)
{
	for (unsigned i = 0; i < 2; i++) {
		begin(&sides[i], seed, i == 0);
		for (unsigned step = 0; step < STEPS; step++)
			live(&sides[i]);
		end(&sides[i]);
	}
	if (strcmp(sides[0].trace, sides[1].trace) == 0)
		return true;
	report(seed, &sides[0], &sides[1]);
	return false;
}

static void both_paths_say_the_same(void **state)
{
	uint64_t count = scale_count(100000, 1000), first = 1, failed = 0;
	double begun = scale_seconds();

	(void)state;
	if (scale_seed(&first))
		count = 1;
	for (uint64_t seed = first; seed < first + count && failed == 0; seed++)
		failed += !same_for(seed);
	scale_report(
		"histories on the fast path and the ordinary one", count, scale_seconds() - begun,
		failed == 0);
	assert_int_equal(failed, 0);
	printf("# runs begun: fast %llu, ordinary %llu\n", (unsigned long long)seen_fast,
	       (unsigned long long)seen_ordinary);
	if (count == 1)
		return;
	/* It was the other path, and all that it can say was said. */
	assert_true(seen_fast < seen_ordinary);
	assert_true(seen_outcomes[HAPAX_OUTCOME_ACQUIRED] > 0);
	assert_true(seen_outcomes[HAPAX_OUTCOME_REPLAY] > 0);
	assert_true(seen_outcomes[HAPAX_OUTCOME_IN_PROGRESS] > 0);
	assert_true(seen_outcomes[HAPAX_OUTCOME_MISMATCH] > 0);
	assert_true(seen_outcomes[HAPAX_OUTCOME_PARKED] > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_paths_say_the_same),
	};

	return cmocka_run_group_tests_name("processor_direct", tests, NULL, NULL);
}
