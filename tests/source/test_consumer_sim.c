/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_consumer_sim.c - consumers under a seeded scheduler: I4 at every ack.
 *
 * Two members share a broker and a store. Partitions change hands while messages run, the
 * store goes away, loses answers and comes back, handlers fail in every way, the broker
 * refuses dead letters, offsets are set back. At the end all of it heals, and then
 *
 *  (I4) no message was acknowledged that was neither done nor a dead letter,
 *  (a)  every message is acknowledged: nothing is lost, nothing is wedged,
 *  (b)  every event has an effect or is a dead letter,
 *  (c)  without faults of the store and lapsed leases, every event has at most one effect.
 *
 * A seed that fails is printed; HAPAX_TEST_SEED=<seed> runs it alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "source/source_case.h"
#include "support/scale.h"

enum { STEPS = 250, EVENTS = 24, HEAL_ROUNDS = 4000 };

static struct source_case c;
static uint64_t seen_duplicates, seen_dead, seen_given_back, seen_unstored, seen_in_progress;
static uint64_t seen_diverted, seen_tagged;

struct world {
	struct hx_prng prng;
	bool is_rough; /* the store fails, too */
	bool has_lapsed;
};

static uint64_t below(struct world *w, uint64_t n)
{
	return hx_prng_below(&w->prng, n);
}

static void send_one(struct world *w)
{
	char id[24], key[8], data[32];
	unsigned number = (unsigned)below(w, EVENTS);

	if (c.letter_count == CASE_MESSAGES_MAX)
		return;
	(void)snprintf(id, sizeof(id), "e%u", number);
	(void)snprintf(key, sizeof(key), "k%u", number % 5);
	/* Now and then the same event has another payload. */
	(void)snprintf(data, sizeof(data), "{\"n\":%u}", number + (below(w, 40) == 0 ? 100U : 0U));
	(void)source_case_send(
		&c, (int)(number % CASE_PARTITIONS), id, below(w, 3) == 0 ? "" : key, data);
}

static void finish_one(struct world *w)
{
	struct case_member *member = &c.members[below(w, CASE_MEMBERS)];
	uint64_t dice = below(w, 20);

	if (member->running_count == 0)
		return;
	source_case_finish(
		member, below(w, member->running_count),
		dice < 14           ? HAPAX_RUN_OK
			: dice < 18 ? HAPAX_RUN_TRANSIENT
			: dice < 19 ? HAPAX_RUN_AMBIGUOUS
				    : HAPAX_RUN_DEFINITIVE);
}

static void shake_store(struct world *w)
{
	c.held.away = HAPAX_OK;
	c.held.then = HAPAX_OK;
	switch (below(w, 4)) {
	case 0: c.held.away = HAPAX_ERR_UNAVAILABLE; return;
	case 1: c.held.away = HAPAX_ERR_LIMIT; return;
	case 2:
		c.held.then = HAPAX_ERR_UNCERTAIN;
		c.held.passes = below(w, 6);
		return;
	default: return;
	}
}

static void set_back(struct world *w)
{
	struct case_letter *letter;

	if (c.letter_count == 0)
		return;
	letter = &c.letters[below(w, c.letter_count)];
	if (letter->is_acked && !letter->is_out)
		letter->is_acked = false;
}

static void step(struct world *w)
{
	switch (below(w, 12)) {
	case 0:
	case 1:
	case 2: send_one(w); return;
	case 3:
	case 4:
	case 5: finish_one(w); return;
	case 6:
		source_case_give(&c, (int)below(w, CASE_PARTITIONS), (int)below(w, CASE_MEMBERS));
		return;
	case 7: set_back(w); return;
	case 8: c.refuses_letters = below(w, 2) == 0; return;
	case 9:
		if (w->is_rough)
			shake_store(w);
		return;
	case 10:
		/* The whole process stands still, perhaps beyond its leases. */
		store_case_advance(&c.store, (int64_t)below(w, w->is_rough ? 1500 : 30));
		return;
	default: source_case_pass(&c, (int64_t)below(w, 20)); return;
	}
}

static bool all_acked(void)
{
	for (size_t i = 0; i < c.letter_count; i++) {
		if (!c.letters[i].is_acked)
			return false;
	}
	return true;
}

/* Everything works from now on; what runs ends ok. */
static void heal(void)
{
	c.held.away = HAPAX_OK;
	c.held.then = HAPAX_OK;
	c.refuses_letters = false;
	for (int round = 0; round < HEAL_ROUNDS && !all_acked(); round++) {
		source_case_pass(&c, 5);
		for (size_t i = 0; i < c.member_count; i++) {
			while (c.members[i].running_count > 0)
				source_case_finish(&c.members[i], 0, HAPAX_RUN_OK);
		}
	}
}

static void drain(void)
{
	for (size_t i = 0; i < c.member_count; i++)
		hx_consumer_stop(&c.members[i].core);
	for (int round = 0; round < HEAL_ROUNDS; round++) {
		source_case_pass(&c, 5);
		for (size_t i = 0; i < c.member_count; i++) {
			while (c.members[i].running_count > 0)
				source_case_finish(&c.members[i], 0, HAPAX_RUN_OK);
		}
		if (hx_consumer_is_idle(&c.members[0].core) &&
		    hx_consumer_is_idle(&c.members[1].core))
			return;
	}
}

/* NULL: all is well. */
static const char *judge(const struct world *w)
{
	if (c.broken != NULL)
		return c.broken;
	if (!all_acked())
		return "(a): a message was never acknowledged";
	if (!hx_consumer_is_idle(&c.members[0].core) || !hx_consumer_is_idle(&c.members[1].core))
		return "(a): a member did not come to rest";
	for (unsigned number = 0; number < EVENTS; number++) {
		unsigned effects = 0, letters = 0, dead = 0;
		char id[24];

		(void)snprintf(id, sizeof(id), "e%u", number);
		for (size_t i = 0; i < c.letter_count; i++) {
			if (strcmp(c.letters[i].id, id) != 0)
				continue;
			letters++;
			effects += c.letters[i].effects;
			dead += c.letters[i].is_dead;
		}
		if (letters > 0 && effects == 0 && dead == 0)
			return "(b): an event has no effect and no dead letter";
		if (!w->is_rough && effects > 1)
			return "(c): an event took effect twice";
	}
	return NULL;
}

static void count_seen(void)
{
	for (size_t i = 0; i < c.member_count; i++) {
		const struct hapax_consumer_stats *stats = &c.members[i].core.stats;

		for (size_t k = 0; k < HAPAX_CAUSE_COUNT; k++)
			seen_duplicates += stats->duplicates[k];
		seen_dead += stats->dead_letters;
		seen_given_back += stats->given_back;
		seen_unstored += stats->unstored;
		seen_in_progress += stats->in_progress;
		seen_diverted += stats->diverted;
		seen_tagged += stats->tagged;
	}
}

static bool run_seed(uint64_t seed)
{
	struct world w = {.is_rough = seed % 2 == 0};
	const char *why;

	hx_prng_seed(&w.prng, seed);
	source_case_init(&c);
	c.random = seed;
	c.options.order = (enum hapax_order)(seed / 2 % 3);
	c.options.on_duplicate = (enum hapax_on_duplicate)(seed / 6 % 3);
	source_case_open(&c, CASE_MEMBERS);
	for (int i = 0; i < STEPS; i++)
		step(&w);
	heal();
	drain();
	why = judge(&w);
	count_seen();
	if (why == NULL) {
		source_case_done(&c);
		return true;
	}
	printf("# seed %llu failed: %s; repeat it with HAPAX_TEST_SEED=%llu\n",
	       (unsigned long long)seed, why, (unsigned long long)seed);
	return false;
}

static void invariants_hold_for_many_seeds(void **state)
{
	uint64_t first = 1;
	uint64_t count = scale_count(20000, 200);
	double begun = scale_seconds();
	uint64_t failed = 0;

	(void)state;
	if (scale_seed(&first))
		count = 1;
	for (uint64_t i = 0; i < count && failed == 0; i++)
		failed += !run_seed(first + i);
	scale_report(
		"simulated seeds of consumers (I4)", count, scale_seconds() - begun, failed == 0);
	assert_int_equal(failed, 0);
}

/* A simulation that never meets a duplicate proves nothing about them. */
static void seeds_reach_what_they_are_for(void **state)
{
	uint64_t seed;

	(void)state;
	if (scale_seed(&seed))
		return;
	printf("# duplicates %llu, dead letters %llu, given back %llu, unstored %llu, in progress %llu\n",
	       (unsigned long long)seen_duplicates, (unsigned long long)seen_dead,
	       (unsigned long long)seen_given_back, (unsigned long long)seen_unstored,
	       (unsigned long long)seen_in_progress);
	assert_true(seen_duplicates > 0);
	assert_true(seen_dead > 0);
	assert_true(seen_given_back > 0);
	assert_true(seen_unstored > 0);
	assert_true(seen_in_progress > 0);
	assert_true(seen_diverted > 0);
	assert_true(seen_tagged > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(invariants_hold_for_many_seeds),
		cmocka_unit_test(seeds_reach_what_they_are_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
