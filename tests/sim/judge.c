/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge.c - what was applied and what was told, against the invariants.
 *
 * The judge keeps each key as it must be by the operations that the store says it
 * applied. It is written from the text of the invariants, not from the processor.
 * Times are the store's, counted from the beginning: milliseconds since boot.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "processor/run.h"
#include "sim/sim.h"

static struct judge_key *key_of(struct sim_world *world, const struct hapax_op *op)
{
	const char *name = op->key.data;

	return &world->judge.keys[name[1] - '0'];
}

static unsigned number_of(const struct sim_world *world, const struct judge_key *key)
{
	return (unsigned)(key - world->judge.keys);
}

static char letter_of(const struct hapax_op *op)
{
	char letter = '\0';

	if (op->fingerprint)
		letter = (char)op->fingerprint[0];
	return letter;
}

static void fail(
	struct sim_world *world, const char *invariant, const struct judge_key *key,
	const struct hapax_op *op, const char *what)
{
	sim_fail(
		world, "%s: k%u, %s with token %llu: %s (key: %s, token %llu)", invariant,
		number_of(world, key), hapax_op_type_name(op->type), (unsigned long long)op->token,
		what, hapax_state_name(key->state), (unsigned long long)key->token);
}

static bool is_lapsed(const struct sim_world *world, const struct judge_key *key)
{
	return key->state == HAPAX_STATE_CLAIMED && key->lease_ends_ms <= sim_now(world);
}

static bool is_expired(const struct sim_world *world, const struct judge_key *key)
{
	return (key->state == HAPAX_STATE_DONE || key->state == HAPAX_STATE_FAILED) &&
		key->expires_ms <= sim_now(world);
}

/*
 * Another run takes over: the former holder must not think that it still holds the key.
 * A process that is paused or gone thinks nothing.
 */
static void check_belief(struct sim_world *world, struct judge_key *key, const struct hapax_op *op)
{
	const struct sim_call *holder = key->holder;

	if (!holder || holder->life != holder->process->life || holder->has_ended ||
	    !(holder->told & (1U << HAPAX_STEP_RUN)))
		return;
	if (holder->run->token == key->token && holder->run->state == HX_RUN_RUNNING &&
	    !holder->run->is_lapsed && holder->run->lease_ends_ms > sim_now(world))
		fail(world, "I1b", key, op, "taken over while its holder believed in its lease");
}

static void check_token(struct sim_world *world, struct judge_key *key, const struct hapax_op *op)
{
	struct judge *judge = &world->judge;

	if (op->token == judge->token_max && judge->submit_of_token == world->submits)
		return;
	if (op->token <= judge->token_max)
		fail(world, "I5", key, op, "a token that does not rise");
	judge->token_max = op->token;
	judge->submit_of_token = world->submits;
}

static void granted(
	struct sim_world *world, struct judge_key *key, const struct hapax_op *op,
	struct sim_call *call)
{
	int64_t now_ms = sim_now(world);

	if (key->state == HAPAX_STATE_CLAIMED && op->token == key->token) {
		/* The same call, repeated. */
		if (key->holder != call)
			fail(world, "I1b", key, op, "one token for two calls");
		key->lease_ends_ms = now_ms + op->lease_ms;
		return;
	}
	check_token(world, key, op);
	if (key->state == HAPAX_STATE_PARKED)
		fail(world, "I1b", key, op, "a parked key was given out");
	if (key->state == HAPAX_STATE_CLAIMED && !(key->holder == call && call->was_robbed)) {
		if (!is_lapsed(world, key))
			fail(world, "I1b", key, op, "a second live claim");
		check_belief(world, key, op);
	}
	if (key->state == HAPAX_STATE_DONE && !is_expired(world, key))
		fail(world, "I8", key, op, "a result expired early");
	key->state = HAPAX_STATE_CLAIMED;
	key->token = op->token;
	key->letter = letter_of(op);
	key->lease_ms = op->lease_ms;
	key->ttl_ms = op->ttl_ms;
	key->lease_ends_ms = now_ms + op->lease_ms;
	key->holder = call;
	call->granted = op->token;
}

static bool is_other_payload(const struct judge_key *key, const struct hapax_op *op)
{
	return key->letter && letter_of(op) && key->letter != letter_of(op);
}

static void claimed(
	struct sim_world *world, struct judge_key *key, const struct hapax_op *op,
	struct sim_call *call, bool is_grouped)
{
	switch (op->outcome) {
	case HAPAX_OUTCOME_ACQUIRED: granted(world, key, op, call); return;
	case HAPAX_OUTCOME_REPLAY:
		if (key->state != HAPAX_STATE_DONE || is_expired(world, key))
			fail(world, "I1", key, op, "a replay of what is not done");
		if (is_other_payload(key, op))
			fail(world, "I7", key, op, "a replay to another payload");
		return;
	case HAPAX_OUTCOME_IN_PROGRESS:
		if (key->state != HAPAX_STATE_CLAIMED || is_lapsed(world, key))
			fail(world, "I3", key, op, "in progress, without a holder");
		return;
	case HAPAX_OUTCOME_MISMATCH:
		if (!is_other_payload(key, op))
			fail(world, "I7", key, op, "a mismatch of the same payload");
		if (key->state == HAPAX_STATE_ABSENT || key->state == HAPAX_STATE_FAILED ||
		    is_expired(world, key))
			fail(world, "I3", key, op, "a mismatch with what is not there");
		return;
	case HAPAX_OUTCOME_PARKED:
		/* A group that is held up by one changes nothing: it stays lapsed, and to be parked. */
		if (is_lapsed(world, key) && world->shape.on_lapse == HAPAX_ON_LAPSE_PARK) {
			check_belief(world, key, op);
			if (is_grouped)
				return;
			key->state = HAPAX_STATE_PARKED;
		}
		if (key->state != HAPAX_STATE_PARKED)
			fail(world, "I3", key, op, "parked, without a park");
		return;
	case HAPAX_OUTCOME_SKIPPED: return;
	default: fail(world, "I13", key, op, "the store did not answer a claim");
	}
}

/* The bit of a key among those of a call. */
static unsigned bit_of(
	const struct sim_world *world, const struct sim_call *call, const struct judge_key *key)
{
	for (size_t i = 0; i < call->key_count; i++) {
		if (call->keys[i] == number_of(world, key))
			return 1U << i;
	}
	return 0;
}

static unsigned all_bits(const struct sim_call *call)
{
	return (1U << call->key_count) - 1;
}

static void completed(
	struct sim_world *world, struct judge_key *key, const struct hapax_op *op,
	struct sim_call *call)
{
	int64_t now_ms = sim_now(world);

	call->completed |= bit_of(world, call, key);
	if (key->state == HAPAX_STATE_DONE)
		return;
	world->counts[SIM_LATE_COMPLETES] += key->state == HAPAX_STATE_FAILED;
	world->judge.successes++;
	key->state = HAPAX_STATE_DONE;
	key->expires_ms = now_ms + key->ttl_ms;
	key->free_since_ms = now_ms;
	snprintf(
		key->body, sizeof(key->body), "%.*s", (int)op->result->body.size,
		(const char *)op->result->body.data);
}

static void released(struct sim_world *world, struct judge_key *key)
{
	key->state = HAPAX_STATE_FAILED;
	key->expires_ms = sim_now(world) + key->ttl_ms;
	key->free_since_ms = sim_now(world);
}

/* Where the rules say FENCED for the right token. */
static bool is_too_late(const struct judge_key *key, enum hapax_op_type type)
{
	if (type == HAPAX_OP_COMPLETE)
		return false;
	if (type == HAPAX_OP_RELEASE)
		return key->state == HAPAX_STATE_DONE;
	return key->state == HAPAX_STATE_DONE || key->state == HAPAX_STATE_FAILED;
}

static void with_token(
	struct sim_world *world, struct judge_key *key, const struct sim_applied *applied)
{
	const struct hapax_op *op = applied->op;
	struct sim_call *call = applied->call;
	bool is_current = applied->token == key->token && key->state != HAPAX_STATE_ABSENT &&
		!is_expired(world, key);

	if (op->outcome == HAPAX_OUTCOME_SKIPPED)
		return;
	if (op->status == HAPAX_ERR_FENCED) {
		if (is_current && !is_too_late(key, op->type))
			fail(world, "I5", key, op, "fenced in spite of the right token");
		return;
	}
	if (!is_current || is_too_late(key, op->type)) {
		fail(world, "I5", key, op, "took effect with a token that is not the key's");
		return;
	}
	switch (op->type) {
	case HAPAX_OP_RENEW:
		key->state = HAPAX_STATE_CLAIMED;
		key->lease_ends_ms = sim_now(world) + op->lease_ms;
		return;
	case HAPAX_OP_COMPLETE: completed(world, key, op, call); return;
	case HAPAX_OP_RELEASE:
		call->given_up |= bit_of(world, call, key);
		if (key->state != HAPAX_STATE_FAILED)
			released(world, key);
		return;
	case HAPAX_OP_PARK:
		call->given_up |= bit_of(world, call, key);
		call->parked |= bit_of(world, call, key);
		key->state = HAPAX_STATE_PARKED;
		key->free_since_ms = sim_now(world);
		return;
	default: fail(world, "I13", key, op, "an operation that no processor asks for");
	}
}

void judge_applied(struct sim_world *world, const struct sim_applied *applied)
{
	const struct hapax_op *op = applied->op;
	struct judge_key *key = key_of(world, op);

	sim_log(world, "store: %s k%u of c%llu token %llu: %s %s", hapax_op_type_name(op->type),
		number_of(world, key), (unsigned long long)applied->call->number,
		(unsigned long long)op->token, hapax_outcome_name(op->outcome),
		hapax_status_name(op->status));
	if (op->status != HAPAX_OK && op->status != HAPAX_ERR_FENCED) {
		fail(world, "I13", key, op, "the store itself failed");
		return;
	}
	if (op->type == HAPAX_OP_CLAIM)
		claimed(world, key, op, applied->call, applied->is_grouped);
	else
		with_token(world, key, applied);
}

void judge_group(struct sim_world *world, const struct hapax_op *ops, size_t count)
{
	size_t effective = 0;

	for (size_t i = 0; i < count; i++)
		effective += ops[i].status == HAPAX_OK &&
			(ops[i].outcome == HAPAX_OUTCOME_ACQUIRED ||
			 ops[i].outcome == HAPAX_OUTCOME_APPLIED);
	if (effective != 0 && effective != count)
		fail(world, "group", key_of(world, &ops[0]), &ops[0],
		     "a part of a group took effect");
}

/* No claim took it over for a time to live after its lease: settled, as its on_lapse says. */
static bool is_abandoned(const struct sim_world *world, const struct judge_key *key)
{
	return key->state == HAPAX_STATE_CLAIMED &&
		key->lease_ends_ms + key->ttl_ms <= sim_now(world);
}

void judge_swept(struct sim_world *world, uint64_t lapsed)
{
	static const struct hapax_op sweep = {.type = HAPAX_OP_RELEASE};
	uint64_t expected = 0;

	for (unsigned i = 0; i < world->shape.key_count; i++) {
		struct judge_key *key = &world->judge.keys[i];

		if (is_expired(world, key))
			key->state = HAPAX_STATE_ABSENT;
		if (!is_abandoned(world, key))
			continue;
		check_belief(world, key, &sweep);
		if (world->shape.on_lapse == HAPAX_ON_LAPSE_PARK)
			key->state = HAPAX_STATE_PARKED;
		else
			released(world, key);
		world->counts[SIM_SWEPT]++;
		expected++;
	}
	if (lapsed != expected)
		sim_fail(
			world, "I8: a sweep gave up %llu claims, and should have %llu",
			(unsigned long long)lapsed, (unsigned long long)expected);
	/* Nothing else, and those as they should. */
	judge_content(world);
}

void judge_forgot(struct sim_world *world, const struct hapax_op *op)
{
	struct judge_key *key = key_of(world, op);
	bool is_there = key->state != HAPAX_STATE_ABSENT && !is_expired(world, key);
	bool is_held = key->state == HAPAX_STATE_CLAIMED || key->state == HAPAX_STATE_PARKED;
	enum hapax_outcome expected = HAPAX_OUTCOME_ABSENT;

	if (is_there)
		expected = is_held && !(op->flags & HAPAX_OP_FORCE) ? HAPAX_OUTCOME_BUSY
								    : HAPAX_OUTCOME_APPLIED;
	sim_log(world, "an operator forgets k%u%s: %s %s", number_of(world, key),
		op->flags & HAPAX_OP_FORCE ? " by force" : "", hapax_outcome_name(op->outcome),
		hapax_status_name(op->status));
	if (op->status != HAPAX_OK || op->outcome != expected)
		fail(world, "I5", key, op, "forgotten, or not, against the rules");
	if (expected != HAPAX_OUTCOME_APPLIED)
		return;
	world->counts[SIM_FORGOTTEN]++;
	world->counts[SIM_FORCED] += is_held;
	/* Its former holder holds nothing from now on, whatever it believes. */
	if (is_held && key->holder)
		key->holder->was_robbed = true;
	key->state = HAPAX_STATE_ABSENT;
	key->holder = NULL;
	key->free_since_ms = sim_now(world);
}

static void fail_call(
	struct sim_world *world, const struct sim_call *call, const char *invariant,
	const char *what)
{
	sim_fail(
		world, "%s: c%llu on k%u: %s", invariant, (unsigned long long)call->number,
		call->keys[0], what);
}

/* Does the call still hold a claim, and keeps others from it, by what the store applied? */
static bool holds(const struct sim_world *world, const struct sim_call *call)
{
	for (size_t i = 0; i < call->key_count && !call->has_late && !call->was_robbed; i++) {
		const struct judge_key *key = &world->judge.keys[call->keys[i]];

		if (key->state == HAPAX_STATE_CLAIMED && key->holder == call &&
		    key->token == call->granted && !is_lapsed(world, key))
			return true;
	}
	return false;
}

/* What other processes go by is the store's count. */
void judge_begins(struct sim_world *world, const struct sim_call *call)
{
	for (size_t i = 0; i < call->key_count && !call->has_late && !call->was_robbed; i++) {
		const struct judge_key *key = &world->judge.keys[call->keys[i]];

		if (key->state != HAPAX_STATE_CLAIMED || key->token != call->granted ||
		    is_lapsed(world, key))
			fail_call(world, call, "I1b", "it begins under a lease that is over");
	}
}

static void check_own_run(
	struct sim_world *world, const struct sim_call *call, const struct hapax_answer *answer)
{
	bool is_ok = call->outcome == HAPAX_RUN_OK;

	if (!(call->told & (1U << HAPAX_STEP_RUN)))
		fail_call(world, call, "I13", "it ended as run, and was never told to run");
	if (answer->token != call->granted && !call->has_late)
		fail_call(world, call, "I5", "told another token than it was given");
	if (!is_ok && call->completed != 0)
		fail_call(world, call, "I3", "a failure was kept as a success");
	if (is_ok && (call->given_up & ~call->parked) != 0)
		fail_call(world, call, "I13", "a success was released");
	if (answer->status == HAPAX_OK) {
		/* Every key of it, and at some time: it may be gone again by now. */
		if (is_ok && call->completed != all_bits(call))
			fail_call(world, call, "I13", "told that it is stored, and it is not");
		if (!is_ok && call->given_up != all_bits(call))
			fail_call(world, call, "I3", "told that it is released, and it is not");
		if (!is_ok && holds(world, call))
			fail_call(world, call, "I3", "told that it is released, and it holds on");
	} else if (answer->status == HAPAX_ERR_UNCERTAIN) {
		world->counts[SIM_UNCERTAIN]++;
	} else if (call->completed != 0) {
		fail_call(world, call, "I13", "told that it is not stored, and it is");
	}
}

static void check_replay(
	struct sim_world *world, const struct sim_call *call, const struct hapax_answer *answer)
{
	char text[SIM_BODY_MAX];

	world->counts[SIM_REPLAYS]++;
	if (answer->flags & HAPAX_ANSWER_MISMATCH) {
		if (answer->result.body.size != 0 || answer->result.kind != HAPAX_RESULT_NONE)
			fail_call(world, call, "I7", "another payload got the stored result");
		return;
	}
	/* "A of 0 by 7": whose result it is stands in it. */
	snprintf(
		text, sizeof(text), "%.*s", (int)answer->result.body.size,
		(const char *)answer->result.body.data);
	if (text[0] != call->letter)
		fail_call(world, call, "I7", "got the result of another payload");
	if (strstr(text, " by ") == NULL ||
	    (unsigned long long)answer->original_token !=
		    strtoull(strstr(text, " by ") + 4, NULL, 10))
		fail_call(world, call, "I2", "got a result that is not the key's");
}

/*
 * In a calm world every change is known where it is waited for: who is told "in
 * progress" at the end of its wait was told so while the key was held, but for what
 * is still on its way.
 */
static void check_in_progress(struct sim_world *world, const struct sim_call *call)
{
	int64_t slack_ms = 4 * world->shape.delay_ms_max + 4;

	const struct judge_key *key = &world->judge.keys[call->keys[0]];

	/* Those with several keys ask in turn, and find other keys taken, before it is our turn. */
	if (!world->shape.is_calm || call->has_left || world->shape.several > 0)
		return;
	if (key->state != HAPAX_STATE_CLAIMED && call->wait_ms > slack_ms &&
	    sim_now(world) - key->free_since_ms > slack_ms)
		fail_call(world, call, "I14", "it waited on although the key was free");
}

static void check_end(
	struct sim_world *world, struct sim_call *call, const struct hapax_answer *answer)
{
	bool is_certain = answer->status != HAPAX_ERR_UNCERTAIN;

	if (call->told & (1U << HAPAX_STEP_END))
		fail_call(world, call, "I14", "it ended twice");
	if ((call->told & (1U << HAPAX_STEP_RUN)) && answer->outcome != HAPAX_OUTCOME_ACQUIRED)
		fail_call(world, call, "I13", "it ran, and ended as if it had not");
	if (answer->status == HAPAX_ERR_FENCED)
		world->counts[SIM_FENCED]++;
	if (answer->outcome != HAPAX_OUTCOME_ACQUIRED && is_certain && holds(world, call))
		/* Unless giving it back was lost on the way, which a call that left is not told. */
		if (!call->has_left || world->shape.is_calm)
			fail_call(world, call, "I13", "it ended without the claim that it holds");
	switch (answer->outcome) {
	case HAPAX_OUTCOME_ACQUIRED: check_own_run(world, call, answer); return;
	case HAPAX_OUTCOME_REPLAY: check_replay(world, call, answer); return;
	case HAPAX_OUTCOME_IN_PROGRESS: check_in_progress(world, call); return;
	case HAPAX_OUTCOME_PARKED: world->counts[SIM_PARKED]++; return;
	case HAPAX_OUTCOME_MISMATCH:
		if (answer->result.body.size != 0 || answer->owner.size != 0)
			fail_call(world, call, "I7", "a mismatch was told what is not its own");
		return;
	case HAPAX_OUTCOME_NONE:
		if (answer->status == HAPAX_OK)
			fail_call(world, call, "I13", "no outcome and no error");
		if (answer->status == HAPAX_ERR_UNCERTAIN)
			world->counts[SIM_UNCERTAIN]++;
		return;
	default: fail_call(world, call, "I13", "an outcome that no request has");
	}
}

void judge_told(
	struct sim_world *world, struct sim_call *call, enum hapax_step step,
	const struct hapax_answer *answer)
{
	if (call->life != call->process->life)
		fail_call(world, call, "I14", "a process that crashed was told something");
	if (call->told & (1U << HAPAX_STEP_END))
		fail_call(world, call, "I14", "told something after the end");
	if (answer->outcome != HAPAX_OUTCOME_ACQUIRED && answer->token != 0)
		fail_call(world, call, "I5", "told a token that it was not given");
	switch (step) {
	case HAPAX_STEP_WAIT:
		world->counts[SIM_WAITS]++;
		if (call->told != 0)
			fail_call(
				world, call, "I14", "told to wait when it was not the first word");
		return;
	case HAPAX_STEP_RUN:
		world->counts[SIM_RUNS]++;
		if (call->told & (1U << HAPAX_STEP_RUN))
			fail_call(world, call, "I14", "told to run twice");
		if (answer->token != call->granted && !call->has_late)
			fail_call(world, call, "I5", "told to run with a token it was not given");
		if (call->has_left)
			fail_call(world, call, "I13", "told to run after it had left");
		/* By its own count, from when it asked; then by the store's, which is longer. */
		if (sim_now(world) >= call->asked_ms + world->shape.lease_ms)
			fail_call(world, call, "I1b", "told to run under a lease that is over");
		judge_begins(world, call);
		return;
	case HAPAX_STEP_LAPSED: world->counts[SIM_LAPSED]++; return;
	case HAPAX_STEP_OVERDUE:
	case HAPAX_STEP_FENCED:
	case HAPAX_STEP_UNSTORED: return;
	case HAPAX_STEP_END: check_end(world, call, answer); return;
	}
}

void judge_content(struct sim_world *world)
{
	for (unsigned i = 0; i < world->shape.key_count; i++) {
		const struct judge_key *key = &world->judge.keys[i];
		enum hapax_state expected =
			is_expired(world, key) ? HAPAX_STATE_ABSENT : key->state;
		char name[] = {'k', (char)('0' + i), '\0'};
		enum hapax_state found = case_state(&world->store, name);

		if (found != expected)
			sim_fail(
				world, "I2: k%u is %s in the store, and should be %s", i,
				hapax_state_name(found), hapax_state_name(expected));
		if (found != HAPAX_STATE_ABSENT && world->store.record.token != key->token)
			sim_fail(world, "I5: k%u has a token that was never given out", i);
	}
}
