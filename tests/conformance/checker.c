/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/checker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The key as it stands after some events. No padding: it is compared as memory. */
struct key_state {
	uint64_t state; /* enum hapax_state */
	uint64_t token;
	uint64_t token_max; /* of this key, forever */
	uint64_t attempt;
	uint64_t attempt_number;
	uint64_t value;
	int64_t ttl_ms;
	int64_t deadline_first_ms; /* CLAIMED: the lease's end; DONE, FAILED: the expiry */
	int64_t deadline_last_ms;
};

struct visited {
	uint64_t done; /* bit i: event i has taken effect */
	struct key_state key;
};

/* Most histories are through after a few dozen states; beyond the last there is no hope. */
enum { VISITED_SLOTS_FIRST = 1 << 8, VISITED_SLOTS_LAST = 1 << 16 };

struct search {
	const struct checker_event *events;
	size_t count;
	struct visited *visited; /* open addressing, at most half full */
	unsigned char *used;
	size_t slots;
	size_t visited_count;
};

/* ------------------------------------------------------------------ the key alone */

/* No record; only what tokens there were is remembered. */
static struct key_state absent_key(uint64_t token_max)
{
	return (struct key_state){
		.token_max = token_max,
		.deadline_first_ms = HAPAX_TIME_NEVER,
		.deadline_last_ms = HAPAX_TIME_NEVER};
}

static void set_deadline(struct key_state *key, const struct checker_event *event, int64_t span_ms)
{
	key->deadline_first_ms = key->deadline_last_ms = HAPAX_TIME_NEVER;
	if (span_ms == HAPAX_TTL_FOREVER)
		return;
	key->deadline_first_ms = event->now_first_ms + span_ms;
	key->deadline_last_ms = event->now_last_ms + span_ms;
}

static void enter(struct key_state *key, const struct checker_event *event, enum hapax_state state)
{
	key->state = state;
	set_deadline(key, event, state == HAPAX_STATE_PARKED ? HAPAX_TTL_FOREVER : key->ttl_ms);
	if (state != HAPAX_STATE_CLAIMED && state != HAPAX_STATE_PARKED)
		key->attempt_number = 0;
}

/* A claim or a check gets the key. */
static bool acquire(struct key_state *key, const struct checker_event *event)
{
	if (event->outcome != HAPAX_OUTCOME_ACQUIRED || event->token <= key->token_max ||
	    event->attempt != key->attempt + 1)
		return false;
	key->token = key->token_max = event->token;
	key->attempt++;
	key->ttl_ms = event->ttl_ms;
	key->value = 0;
	if (event->type == HAPAX_OP_CHECK) {
		enter(key, event, HAPAX_STATE_DONE);
		return true;
	}
	enter(key, event, HAPAX_STATE_CLAIMED);
	key->attempt_number = event->attempt_number;
	set_deadline(key, event, event->lease_ms);
	return true;
}

static bool ask(struct key_state *key, const struct checker_event *event, bool late)
{
	switch ((enum hapax_state)key->state) {
	case HAPAX_STATE_ABSENT:
	case HAPAX_STATE_FAILED: return acquire(key, event);
	case HAPAX_STATE_PARKED: return event->outcome == HAPAX_OUTCOME_PARKED;
	case HAPAX_STATE_DONE:
		return event->outcome == HAPAX_OUTCOME_REPLAY && event->value == key->value;
	case HAPAX_STATE_CLAIMED: break;
	}
	if (event->type == HAPAX_OP_CLAIM && event->attempt_number == key->attempt_number) {
		set_deadline(key, event, event->lease_ms);
		return event->outcome == HAPAX_OUTCOME_ACQUIRED && event->token == key->token &&
			event->attempt == key->attempt;
	}
	return late ? acquire(key, event) : event->outcome == HAPAX_OUTCOME_IN_PROGRESS;
}

static bool use_token(struct key_state *key, const struct checker_event *event)
{
	bool own = key->state != HAPAX_STATE_ABSENT && key->token == event->token;
	bool held = own && (key->state == HAPAX_STATE_CLAIMED || key->state == HAPAX_STATE_PARKED);
	bool failed = own && key->state == HAPAX_STATE_FAILED;
	bool done = own && key->state == HAPAX_STATE_DONE;
	bool applies = false;

	switch (event->type) {
	case HAPAX_OP_RENEW: applies = held; break;
	case HAPAX_OP_COMPLETE: applies = held || failed || done; break;
	case HAPAX_OP_RELEASE: applies = held || failed; break;
	case HAPAX_OP_PARK: applies = held; break;
	default: return false;
	}
	if (!applies)
		return event->status == HAPAX_ERR_FENCED;
	if (event->status != HAPAX_OK || event->outcome != HAPAX_OUTCOME_APPLIED)
		return false;
	if (event->type == HAPAX_OP_RENEW) {
		key->state = HAPAX_STATE_CLAIMED;
		set_deadline(key, event, event->lease_ms);
	} else if (event->type == HAPAX_OP_COMPLETE && !done) {
		enter(key, event, HAPAX_STATE_DONE);
		key->value = event->value;
	} else if (event->type == HAPAX_OP_RELEASE && !failed) {
		enter(key, event, HAPAX_STATE_FAILED);
	} else if (event->type == HAPAX_OP_PARK && key->state == HAPAX_STATE_CLAIMED) {
		uint64_t attempt_number = key->attempt_number;

		enter(key, event, HAPAX_STATE_PARKED);
		key->attempt_number = attempt_number;
	}
	return true;
}

/*
 * Is event a possible next step of key, seen after (late) or before its deadline?
 * Who only looks does not make the expiry happen: a call that took its time before
 * may still come after it.
 */
static bool take_step(struct key_state *key, const struct checker_event *event, bool late)
{
	struct key_state seen = *key;
	bool fits = false;

	if (late && (key->state == HAPAX_STATE_DONE || key->state == HAPAX_STATE_FAILED))
		seen = absent_key(key->token_max);
	bool there = seen.state != HAPAX_STATE_ABSENT;
	switch (event->type) {
	case HAPAX_OP_CLAIM:
	case HAPAX_OP_CHECK:
		fits = event->status == HAPAX_OK && ask(&seen, event, late);
		if (fits && event->outcome == HAPAX_OUTCOME_ACQUIRED)
			*key = seen;
		return fits;
	case HAPAX_OP_RENEW:
	case HAPAX_OP_COMPLETE:
	case HAPAX_OP_RELEASE:
	case HAPAX_OP_PARK:
		fits = use_token(&seen, event);
		if (fits && event->status == HAPAX_OK)
			*key = seen;
		return fits;
	case HAPAX_OP_LOOKUP:
		if (!there)
			return event->outcome == HAPAX_OUTCOME_ABSENT;
		return event->outcome == HAPAX_OUTCOME_FOUND && event->state == seen.state &&
			event->token == seen.token &&
			(seen.state != HAPAX_STATE_DONE || event->value == seen.value);
	case HAPAX_OP_FORGET:
		if (there)
			*key = absent_key(key->token_max);
		return event->outcome == (there ? HAPAX_OUTCOME_APPLIED : HAPAX_OUTCOME_ABSENT);
	case HAPAX_OP_SET:
	case HAPAX_OP_EXPIRE:
	case HAPAX_OP_LOAD: return false;
	}
	return false;
}

/* ------------------------------------------------------------------ the search */

static uint64_t hash_of(const struct visited *entry)
{
	const unsigned char *at = (const unsigned char *)entry;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < sizeof(*entry); i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return hash ^ hash >> 29;
}

static void give_slots(struct search *search, size_t slots)
{
	search->visited = malloc(slots * sizeof(*search->visited));
	search->used = calloc(slots, 1);
	search->slots = slots;
	if (!search->visited || !search->used)
		abort();
}

/* True when the same events have led to the same state before. */
static bool visit(struct search *search, const struct visited *entry)
{
	size_t at = hash_of(entry) % search->slots;

	for (; search->used[at]; at = (at + 1) % search->slots)
		if (memcmp(&search->visited[at], entry, sizeof(*entry)) == 0)
			return true;
	search->used[at] = 1;
	search->visited[at] = *entry;
	return false;
}

static void grow(struct search *search)
{
	struct search old = *search;

	give_slots(search, old.slots * 4);
	for (size_t i = 0; i < old.slots; i++)
		if (old.used[i])
			visit(search, &old.visited[i]);
	free(old.visited);
	free(old.used);
}

static enum checker_verdict explore(
	struct search *search, uint64_t done, const struct key_state *key)
{
	uint64_t all = search->count == 64 ? UINT64_MAX : (UINT64_C(1) << search->count) - 1;
	uint64_t first_end = UINT64_MAX;

	if (done == all)
		return CHECKER_ACCEPTED;
	if (search->visited_count >= VISITED_SLOTS_LAST / 2)
		return CHECKER_GAVE_UP;
	if (visit(search, &(struct visited){done, *key}))
		return CHECKER_REJECTED;
	if (++search->visited_count > search->slots / 2)
		grow(search);
	for (size_t i = 0; i < search->count; i++)
		if (!(done >> i & 1) && search->events[i].ended < first_end)
			first_end = search->events[i].ended;
	for (size_t i = 0; i < search->count; i++) {
		const struct checker_event *event = &search->events[i];

		/* Only what began before another one ended can come first. */
		if ((done >> i & 1) || event->begun > first_end)
			continue;
		for (int late = 0; late < 2; late++) {
			struct key_state next = *key;
			bool possible = late ? key->deadline_first_ms <= event->now_last_ms
					     : key->deadline_last_ms > event->now_first_ms;

			if (!possible || !take_step(&next, event, late))
				continue;
			enum checker_verdict verdict =
				explore(search, done | UINT64_C(1) << i, &next);
			if (verdict != CHECKER_REJECTED)
				return verdict;
		}
	}
	return CHECKER_REJECTED;
}

enum checker_verdict checker_run(const struct checker_event *events, size_t count)
{
	struct search search = {.events = events, .count = count};
	struct key_state absent = absent_key(0);
	enum checker_verdict verdict;

	if (count > CHECKER_EVENTS_MAX)
		return CHECKER_GAVE_UP;
	give_slots(&search, VISITED_SLOTS_FIRST);
	verdict = explore(&search, 0, &absent);
	free(search.visited);
	free(search.used);
	return verdict;
}

static int by_begin(const void *a, const void *b)
{
	const struct checker_event *const *first = a;
	const struct checker_event *const *second = b;

	return ((*first)->begun > (*second)->begun) - ((*first)->begun < (*second)->begun);
}

void checker_print(const struct checker_event *events, size_t count)
{
	const struct checker_event *sorted[CHECKER_EVENTS_MAX];

	for (size_t i = 0; i < count; i++)
		sorted[i] = &events[i];
	qsort(sorted, count, sizeof(const struct checker_event *), by_begin);
	for (size_t i = 0; i < count; i++) {
		const struct checker_event *event = sorted[i];

		printf("# %6" PRIu64 "-%-6" PRIu64 " at %" PRId64 "-%" PRId64
		       " %-8s attempt_id %" PRIu64 " lease %" PRId64 " ttl %" PRId64
		       " token %" PRIu64 " value %" PRIu64 " -> %s %s attempt %u state %s\n",
		       event->begun, event->ended, event->now_first_ms, event->now_last_ms,
		       hapax_op_type_name(event->type), event->attempt_number, event->lease_ms,
		       event->ttl_ms, event->token, event->value, hapax_status_name(event->status),
		       hapax_outcome_name(event->outcome), event->attempt,
		       hapax_state_name(event->state));
	}
}
