/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_consumer.c - what becomes of a message, row by row of the table in source.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "source/source_case.h"

static struct source_case c;

static struct case_member *first(void)
{
	return &c.members[0];
}

static void open_one(void)
{
	source_case_init(&c);
	source_case_open(&c, 1);
}

static void close_all(void)
{
	assert_null(c.broken);
	source_case_done(&c);
}

static void is_acknowledged_after_its_completion_is_stored(void **state)
{
	struct case_letter *letter;

	(void)state;
	open_one();
	letter = source_case_send(&c, 0, "e1", "", "{}");
	source_case_turns(&c);
	assert_int_equal(first()->running_count, 1);
	assert_false(letter->is_acked);
	c.held.holds = true;
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	/* The completion is on its way. */
	assert_int_equal(c.held.count, 1);
	assert_false(letter->is_acked);
	c.held.holds = false;
	held_store_pass(&c.held);
	source_case_turns(&c);
	assert_true(letter->is_acked);
	close_all();
}

static void a_duplicate_is_acknowledged_and_told_with_its_cause(void **state)
{
	struct case_letter *letter, *twin;

	(void)state;
	open_one();
	letter = source_case_send(&c, 0, "e1", "", "{}");
	source_case_turns(&c);
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	twin = source_case_send(&c, 1, "e1", "", "{}");
	source_case_turns(&c);
	assert_true(twin->is_acked);
	assert_int_equal(c.facts[HAPAX_FACT_DUPLICATE], 1);
	assert_int_equal(c.cause, HAPAX_CAUSE_PRODUCER);
	assert_string_equal(c.original, "orders/0/0");
	/* The offset is set back. */
	letter->is_acked = false;
	source_case_turns(&c);
	assert_true(letter->is_acked);
	assert_int_equal(c.cause, HAPAX_CAUSE_REREAD);
	/* It was in progress at a member that died: that is not why it is there twice. */
	twin = source_case_send(&c, 1, "e1", "", "{}");
	twin->flags = HAPAX_MESSAGE_REDELIVERED;
	source_case_turns(&c);
	assert_int_equal(c.cause, HAPAX_CAUSE_PRODUCER);
	/* Without a place, the broker's word is all there is. */
	twin = source_case_send(&c, 1, "e1", "", "{}");
	twin->place[0] = '\0';
	twin->flags = HAPAX_MESSAGE_REDELIVERED;
	source_case_turns(&c);
	assert_int_equal(c.cause, HAPAX_CAUSE_REDELIVERED);
	twin = source_case_send(&c, 1, "e1", "", "{}");
	twin->headers[twin->header_count++] = (struct hapax_field){
		hapax_bytes_from_text("hapax-dead-reason"), hapax_bytes_from_text("attempts")};
	source_case_turns(&c);
	assert_int_equal(c.cause, HAPAX_CAUSE_DEAD_LETTER);
	assert_int_equal(letter->effects, 1);
	/* A dead letter that came back and ran: read again, it is a duplicate of itself. */
	letter = source_case_send(&c, 0, "e2", "", "{}");
	letter->headers[letter->header_count++] = (struct hapax_field){
		hapax_bytes_from_text("hapax-dead-reason"), hapax_bytes_from_text("attempts")};
	source_case_turns(&c);
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	letter->is_acked = false;
	source_case_turns(&c);
	assert_true(letter->is_acked);
	assert_int_equal(c.cause, HAPAX_CAUSE_REREAD);
	close_all();
}

static void a_duplicate_of_another_door_is_known(void **state)
{
	uint64_t token = 0;
	struct case_letter *letter;

	(void)state;
	open_one();
	assert_int_equal(case_claim(&c.store, "e1", &token), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(case_complete(&c.store, "e1", token), HAPAX_OK);
	letter = source_case_send(&c, 0, "e1", "", "{}");
	source_case_turns(&c);
	assert_true(letter->is_acked);
	assert_int_equal(c.cause, HAPAX_CAUSE_OTHER_DOOR);
	close_all();
}

static void a_duplicate_can_be_diverted(void **state)
{
	struct case_letter *twin;

	(void)state;
	source_case_init(&c);
	c.options.on_duplicate = HAPAX_ON_DUPLICATE_DIVERT;
	source_case_open(&c, 1);
	(void)source_case_send(&c, 0, "e1", "", "{}");
	source_case_turns(&c);
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	twin = source_case_send(&c, 1, "e1", "", "{}");
	c.refuses_letters = true;
	source_case_turns(&c);
	assert_false(twin->is_acked);
	c.refuses_letters = false;
	source_case_pass(&c, 100);
	assert_true(twin->is_acked);
	assert_true(twin->is_diverted);
	assert_false(twin->is_dead);
	close_all();
}

/* One event done by its first message, whose twin is delivered as a duplicate. */
static struct case_letter *open_tagged(void)
{
	source_case_init(&c);
	c.options.on_duplicate = HAPAX_ON_DUPLICATE_TAG;
	source_case_open(&c, 1);
	(void)source_case_send(&c, 0, "e1", "", "{}");
	source_case_turns(&c);
	assert_false(first()->running[0]->is_tagged);
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	return source_case_send(&c, 1, "e1", "", "{}");
}

/* Nothing but the first run is known to the store and to the figures. */
static void expect_one_run(void)
{
	const struct hapax_consumer_stats *stats = &first()->core.stats;

	assert_int_equal(case_state(&c.store, "e1"), HAPAX_STATE_DONE);
	assert_int_equal(c.store.record.attempt, 1);
	assert_int_equal(c.store.record.result.result_class, HAPAX_RESULT_OK);
	assert_int_equal(stats->runs[HAPAX_RUN_OK], 1);
	assert_int_equal(stats->runs[HAPAX_RUN_DEFINITIVE], 0);
	assert_int_equal(stats->runs[HAPAX_RUN_TRANSIENT], 0);
	assert_int_equal(stats->duplicates[HAPAX_CAUSE_PRODUCER], 1);
	assert_int_equal(stats->dead_letters, 0);
	assert_int_equal(first()->core.running, 0);
}

static void a_duplicate_can_be_tagged(void **state)
{
	static const enum hapax_run_outcome outcomes[] = {HAPAX_RUN_OK, HAPAX_RUN_DEFINITIVE};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct case_letter *twin = open_tagged();
		const struct hx_in_flight *in_flight;

		source_case_turns(&c);
		in_flight = source_case_running(first(), twin);
		assert_non_null(in_flight);
		assert_true(in_flight->is_tagged);
		assert_int_equal(in_flight->token, 0);
		assert_int_equal(in_flight->duplicate.cause, HAPAX_CAUSE_PRODUCER);
		assert_memory_equal(in_flight->duplicate.original.data, "orders/0/0", 10);
		assert_int_equal(in_flight->duplicate.original.size, 10);
		assert_int_equal(case_state(&c.store, "e1"), HAPAX_STATE_DONE);
		assert_int_equal(in_flight->duplicate.first_seen_ms, c.store.record.first_seen_ms);
		assert_int_equal(in_flight->duplicate.token, c.store.record.token);
		assert_false(twin->is_acked);
		source_case_finish(first(), 0, outcomes[i]);
		source_case_turns(&c);
		assert_true(twin->is_acked);
		assert_int_equal(first()->core.stats.tagged, 1);
		assert_int_equal(first()->core.claimed, 0);
		expect_one_run();
		close_all();
	}
}

/* It is done, so in the end it is acknowledged, and does not become a dead letter. */
static void a_tagged_duplicate_that_fails_is_tried_again_and_let_go(void **state)
{
	struct case_letter *twin = open_tagged();

	(void)state;
	for (int attempt = 1; attempt <= 3; attempt++) {
		source_case_pass(&c, 100);
		assert_int_equal(first()->running_count, 1);
		assert_int_equal(first()->running[0]->attempt, attempt);
		assert_true(first()->running[0]->is_tagged);
		source_case_finish(
			first(), 0, attempt == 2 ? HAPAX_RUN_AMBIGUOUS : HAPAX_RUN_TRANSIENT);
		source_case_turns(&c);
	}
	assert_true(twin->is_acked);
	assert_false(twin->is_dead);
	assert_int_equal(c.facts[HAPAX_FACT_DUPLICATE], 1);
	assert_int_equal(c.facts[HAPAX_FACT_RETRY], 2);
	assert_int_equal(c.facts[HAPAX_FACT_UNDELIVERED], 1);
	assert_int_equal(first()->core.stats.tagged, 0);
	expect_one_run();
	/* What takes its place has nothing of it. */
	(void)source_case_send(&c, 1, "e2", "", "{}");
	source_case_turns(&c);
	assert_false(first()->running[0]->is_tagged);
	assert_true(first()->running[0]->token > 0);
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	close_all();
}

static void a_tagged_duplicate_is_given_back_at_the_end(void **state)
{
	struct case_letter *twin = open_tagged();

	(void)state;
	source_case_turns(&c);
	source_case_finish(first(), 0, HAPAX_RUN_TRANSIENT);
	source_case_turns(&c);
	hx_consumer_stop(&first()->core);
	source_case_turns(&c);
	assert_true(hx_consumer_is_idle(&first()->core));
	assert_int_equal(first()->back, 1);
	assert_false(twin->is_acked);
	expect_one_run();
	close_all();
}

static void a_failure_is_tried_again_later_and_then_a_dead_letter(void **state)
{
	struct case_letter *letter;

	(void)state;
	open_one();
	letter = source_case_send(&c, 0, "e1", "", "{}");
	for (int attempt = 1; attempt <= 3; attempt++) {
		source_case_pass(&c, 100);
		assert_int_equal(first()->running_count, 1);
		assert_int_equal(first()->running[0]->attempt, attempt);
		source_case_finish(
			first(), 0, attempt == 2 ? HAPAX_RUN_AMBIGUOUS : HAPAX_RUN_TRANSIENT);
		source_case_turns(&c);
		assert_int_equal(first()->running_count, 0);
	}
	assert_true(letter->is_dead);
	assert_string_equal(letter->reason, "attempts");
	assert_true(letter->is_acked);
	assert_int_equal(c.facts[HAPAX_FACT_RETRY], 2);
	close_all();
}

/* However often it was begun before, here or elsewhere: it is given up by a run that fails, not before it. */
static void what_was_begun_often_is_run(void **state)
{
	struct case_letter *letter;
	uint64_t token = 0;

	(void)state;
	open_one();
	for (int i = 0; i < 10; i++) {
		assert_int_equal(case_claim(&c.store, "e1", &token), HAPAX_OUTCOME_ACQUIRED);
		if (i % 2 == 0)
			source_case_pass(&c, 1100);
		else
			assert_int_equal(case_release(&c.store, "e1", token), HAPAX_OK);
	}
	letter = source_case_send(&c, 0, "e1", "", "{}");
	source_case_turns(&c);
	assert_int_equal(first()->running_count, 1);
	assert_int_equal(first()->running[0]->attempt, 11);
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	assert_true(letter->is_acked);
	assert_false(letter->is_dead);
	close_all();
}

/* Attempts are those of the key, wherever they were made. */
static void attempts_of_others_count(void **state)
{
	struct case_letter *letter;
	uint64_t token = 0;

	(void)state;
	open_one();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(case_claim(&c.store, "e1", &token), HAPAX_OUTCOME_ACQUIRED);
		assert_int_equal(case_release(&c.store, "e1", token), HAPAX_OK);
	}
	letter = source_case_send(&c, 0, "e1", "", "{}");
	source_case_turns(&c);
	source_case_finish(first(), 0, HAPAX_RUN_TRANSIENT);
	source_case_turns(&c);
	assert_true(letter->is_dead);
	close_all();
}

static void in_progress_counts_for_nothing(void **state)
{
	struct case_letter *letter;
	uint64_t token = 0;

	(void)state;
	open_one();
	assert_int_equal(case_claim(&c.store, "e1", &token), HAPAX_OUTCOME_ACQUIRED);
	letter = source_case_send(&c, 0, "e1", "", "{}");
	source_case_pass(&c, 800);
	assert_false(letter->is_acked);
	assert_false(letter->is_dead);
	assert_true(first()->core.stats.in_progress > 3);
	/* Its holder dies, and the lease ends. */
	source_case_pass(&c, 500);
	assert_int_equal(first()->running_count, 1);
	assert_int_equal(first()->running[0]->attempt, 2);
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	assert_true(letter->is_acked);
	assert_false(letter->is_dead);
	close_all();
}

static void a_store_that_refuses_stops_the_taking(void **state)
{
	struct case_letter *letter;

	(void)state;
	open_one();
	c.held.away = HAPAX_ERR_UNAVAILABLE;
	letter = source_case_send(&c, 0, "e1", "", "{}");
	source_case_pass(&c, 500);
	assert_int_equal(c.facts[HAPAX_FACT_STORE_AWAY], 1);
	(void)source_case_send(&c, 0, "e2", "", "{}");
	source_case_pass(&c, 500);
	/* Nothing more was taken, nothing was given up. */
	assert_int_equal(first()->core.stats.received, 1);
	assert_false(letter->is_dead);
	c.held.away = HAPAX_OK;
	source_case_pass(&c, 200);
	assert_int_equal(c.facts[HAPAX_FACT_STORE_BACK], 1);
	assert_int_equal(first()->running_count, 2);
	assert_int_equal(first()->running[0]->attempt, 1);
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	assert_true(letter->is_acked);
	close_all();
}

static void an_outcome_that_is_not_stored_is_not_acknowledged(void **state)
{
	struct case_letter *letter;

	(void)state;
	open_one();
	letter = source_case_send(&c, 0, "e1", "", "{}");
	source_case_turns(&c);
	c.held.away = HAPAX_ERR_UNAVAILABLE;
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_pass(&c, 1500);
	assert_false(letter->is_acked);
	assert_int_equal(first()->core.stats.unstored, 1);
	c.held.away = HAPAX_OK;
	/* The store never heard of it: it runs again, and that is said. */
	source_case_pass(&c, 1500);
	assert_int_equal(first()->running_count, 1);
	assert_int_equal(first()->running[0]->attempt, 2);
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	assert_true(letter->is_acked);
	close_all();
}

static void a_mismatch_is_a_dead_letter_at_once(void **state)
{
	struct case_letter *letter;

	(void)state;
	open_one();
	(void)source_case_send(&c, 0, "e1", "", "{\"a\":1}");
	source_case_turns(&c);
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	letter = source_case_send(&c, 1, "e1", "", "{\"a\":2}");
	source_case_turns(&c);
	assert_true(letter->is_dead);
	assert_string_equal(letter->reason, "mismatch");
	assert_int_equal(letter->effects, 0);
	close_all();
}

static void a_parked_key_is_a_dead_letter_at_once(void **state)
{
	struct case_letter *letter;

	(void)state;
	source_case_init(&c);
	c.options.run.on_lapse = HAPAX_ON_LAPSE_PARK;
	source_case_open(&c, 1);
	letter = source_case_send(&c, 0, "e1", "", "{}");
	source_case_turns(&c);
	source_case_finish(first(), 0, HAPAX_RUN_AMBIGUOUS);
	source_case_pass(&c, 100);
	assert_int_equal(first()->running_count, 0);
	assert_true(letter->is_dead);
	assert_string_equal(letter->reason, "parked");
	close_all();
}

/* One event done by its first message, whose result is damaged; its twin, and another one. */
static void open_damaged(const char *dead_letter, struct case_letter *ret_letters[2])
{
	source_case_init(&c);
	c.options.dead_letter = dead_letter;
	source_case_open(&c, 1);
	(void)source_case_send(&c, 0, "e1", "", "{}");
	source_case_turns(&c);
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	c.held.damaged = "e1";
	ret_letters[0] = source_case_send(&c, 1, "e1", "", "{}");
	ret_letters[1] = source_case_send(&c, 1, "e2", "", "{}");
}

static void a_result_that_cannot_be_read_is_a_dead_letter_at_once(void **state)
{
	struct case_letter *letters[2];

	(void)state;
	open_damaged(NULL, letters);
	source_case_turns(&c);
	assert_true(letters[0]->is_dead && letters[0]->is_acked);
	assert_string_equal(letters[0]->reason, "unreadable");
	assert_int_equal(letters[0]->effects, 0);
	assert_int_equal(first()->core.stats.unreadable, 1);
	assert_int_equal(first()->core.stats.refused, 0);
	assert_int_equal(c.facts[HAPAX_FACT_DEAD_LETTER], 1);
	assert_int_equal(c.facts[HAPAX_FACT_STORE_AWAY], 0);
	/* The others go on. */
	assert_non_null(source_case_running(first(), letters[1]));
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	assert_true(letters[1]->is_acked);
	close_all();
}

static void without_dead_letters_what_cannot_be_read_waits_alone(void **state)
{
	struct case_letter *letters[2];

	(void)state;
	open_damaged("off", letters);
	source_case_pass(&c, 200);
	assert_false(letters[0]->is_acked);
	assert_true(c.facts[HAPAX_FACT_UNDELIVERED] > 1);
	assert_int_equal(c.facts[HAPAX_FACT_STORE_AWAY], 0);
	assert_non_null(source_case_running(first(), letters[1]));
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	/* It was mended. */
	c.held.damaged = NULL;
	source_case_pass(&c, 100);
	assert_true(letters[0]->is_acked && letters[1]->is_acked);
	assert_int_equal(letters[0]->effects, 0);
	close_all();
}

/* It may be so of every key: neither a dead letter, nor an unavailable store. */
static void what_is_not_known_to_be_done_waits_alone(void **state)
{
	struct case_letter *letters[2];

	(void)state;
	open_damaged(NULL, letters);
	c.held.is_unknown = true;
	c.held.away = HAPAX_ERR_UNAVAILABLE;
	source_case_pass(&c, 500);
	assert_int_equal(c.facts[HAPAX_FACT_STORE_AWAY], 1);
	c.held.away = HAPAX_OK;
	source_case_pass(&c, 200);
	assert_int_equal(c.facts[HAPAX_FACT_STORE_AWAY], 1);
	assert_int_equal(c.facts[HAPAX_FACT_STORE_BACK], 1);
	assert_false(letters[0]->is_dead || letters[0]->is_acked);
	assert_true(c.facts[HAPAX_FACT_UNDELIVERED] > 0);
	assert_int_equal(first()->core.stats.unreadable, 0);
	assert_non_null(source_case_running(first(), letters[1]));
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	c.held.damaged = NULL;
	source_case_pass(&c, 100);
	assert_true(letters[0]->is_acked && letters[1]->is_acked);
	assert_int_equal(letters[0]->effects, 0);
	close_all();
}

/* Of a tenant that the store does not serve: it is reported, and holds up no other. */
static void what_the_store_does_not_take_waits_alone(void **state)
{
	struct case_letter *letters[2];

	(void)state;
	source_case_init(&c);
	source_case_open(&c, 1);
	c.held.refused = "e1";
	letters[0] = source_case_send(&c, 0, "e1", "", "{}");
	letters[1] = source_case_send(&c, 1, "e2", "", "{}");
	source_case_pass(&c, 200);
	assert_int_equal(c.facts[HAPAX_FACT_STORE_AWAY], 0);
	assert_true(c.facts[HAPAX_FACT_UNDELIVERED] > 1);
	assert_false(letters[0]->is_dead || letters[0]->is_acked);
	assert_non_null(source_case_running(first(), letters[1]));
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	assert_true(letters[1]->is_acked);
	c.held.refused = NULL;
	source_case_pass(&c, 100000);
	assert_non_null(source_case_running(first(), letters[0]));
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	assert_true(letters[0]->is_acked);
	close_all();
}

static void a_definitive_failure_is_kept_and_a_dead_letter(void **state)
{
	struct case_letter *letter;

	(void)state;
	open_one();
	letter = source_case_send(&c, 0, "e1", "", "{}");
	source_case_turns(&c);
	c.refuses_letters = true;
	source_case_finish(first(), 0, HAPAX_RUN_DEFINITIVE);
	source_case_turns(&c);
	assert_int_equal(case_state(&c.store, "e1"), HAPAX_STATE_DONE);
	assert_false(letter->is_acked);
	c.refuses_letters = false;
	source_case_pass(&c, 100);
	assert_true(letter->is_dead);
	assert_true(letter->is_acked);
	/* A crash before the letter was sent would have brought it again. */
	letter->is_acked = false;
	letter->is_dead = false;
	source_case_pass(&c, 100);
	assert_true(letter->is_dead);
	assert_string_equal(letter->reason, "definitive");
	close_all();
}

static void a_message_without_its_key_goes_by_policy(void **state)
{
	struct hapax_key_options key_options = HAPAX_KEY_OPTIONS_INIT;
	struct case_letter *letter;

	(void)state;
	source_case_init(&c);
	c.options.strategy = "field:data.order";
	source_case_open(&c, 1);
	letter = source_case_send(&c, 0, "", "", "{\"no\":1}");
	source_case_turns(&c);
	assert_true(letter->is_dead);
	assert_string_equal(letter->reason, "no-key");
	close_all();
	source_case_init(&c);
	c.options.strategy = "field:data.order";
	key_options.on_missing = HAPAX_ON_MISSING_PASS;
	c.options.key_options = &key_options;
	source_case_open(&c, 1);
	letter = source_case_send(&c, 0, "", "", "{\"no\":1}");
	source_case_turns(&c);
	assert_int_equal(c.facts[HAPAX_FACT_UNPROTECTED], 1);
	for (int i = 0; i < 3; i++) {
		source_case_finish(first(), 0, HAPAX_RUN_TRANSIENT);
		source_case_pass(&c, 100);
	}
	assert_true(letter->is_dead);
	close_all();
}

static void what_is_not_the_event_that_it_says_is_a_dead_letter(void **state)
{
	struct case_letter *letter;

	(void)state;
	open_one();
	letter = source_case_send(&c, 0, "", "", "{}");
	letter->headers[letter->header_count++] =
		(struct hapax_field){hapax_bytes_from_text("ce_id"), hapax_bytes_from_text("1")};
	source_case_turns(&c);
	assert_true(letter->is_dead);
	assert_string_equal(letter->reason, "malformed");
	close_all();
}

static void messages_of_one_key_wait_for_each_other(void **state)
{
	struct case_letter *a, *b, *other;

	(void)state;
	open_one();
	a = source_case_send(&c, 0, "e1", "k", "{}");
	b = source_case_send(&c, 0, "e2", "k", "{}");
	other = source_case_send(&c, 0, "e3", "x", "{}");
	source_case_turns(&c);
	assert_non_null(source_case_running(first(), a));
	assert_null(source_case_running(first(), b));
	assert_non_null(source_case_running(first(), other));
	/* A failure keeps its place in the line. */
	source_case_finish(first(), 0, HAPAX_RUN_TRANSIENT);
	source_case_turns(&c);
	assert_null(source_case_running(first(), b));
	source_case_pass(&c, 50);
	assert_non_null(source_case_running(first(), a));
	assert_null(source_case_running(first(), b));
	source_case_finish(first(), 1, HAPAX_RUN_OK);
	source_case_turns(&c);
	assert_non_null(source_case_running(first(), b));
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	assert_true(a->is_acked && b->is_acked && other->is_acked);
	close_all();
}

static void messages_of_one_partition_wait_for_each_other(void **state)
{
	struct case_letter *a, *b, *other;

	(void)state;
	source_case_init(&c);
	c.options.order = HAPAX_ORDER_PARTITION;
	source_case_open(&c, 1);
	a = source_case_send(&c, 0, "e1", "k", "{}");
	b = source_case_send(&c, 0, "e2", "x", "{}");
	other = source_case_send(&c, 1, "e3", "k", "{}");
	source_case_turns(&c);
	assert_non_null(source_case_running(first(), a));
	assert_null(source_case_running(first(), b));
	assert_non_null(source_case_running(first(), other));
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	assert_non_null(source_case_running(first(), b));
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	assert_true(a->is_acked && b->is_acked && other->is_acked);
	close_all();
}

static void no_more_run_than_may(void **state)
{
	(void)state;
	source_case_init(&c);
	c.options.parallel = 3;
	source_case_open(&c, 1);
	for (int i = 0; i < 10; i++) {
		char id[8];

		(void)snprintf(id, sizeof(id), "e%d", i);
		(void)source_case_send(&c, 0, id, "", "{}");
	}
	source_case_turns(&c);
	assert_int_equal(first()->running_count, 3);
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	assert_int_equal(first()->running_count, 3);
	while (first()->running_count > 0) {
		source_case_finish(first(), 0, HAPAX_RUN_OK);
		source_case_turns(&c);
	}
	assert_int_equal(first()->acks, 10);
	close_all();
}

static void a_stop_finishes_what_runs_and_gives_back_the_rest(void **state)
{
	struct case_letter *running, *behind, *failed;

	(void)state;
	open_one();
	running = source_case_send(&c, 0, "e1", "k", "{}");
	behind = source_case_send(&c, 0, "e2", "k", "{}");
	failed = source_case_send(&c, 0, "e3", "x", "{}");
	source_case_turns(&c);
	source_case_finish(first(), 1, HAPAX_RUN_TRANSIENT);
	source_case_turns(&c);
	hx_consumer_stop(&first()->core);
	source_case_turns(&c);
	assert_false(failed->is_out);
	assert_false(hx_consumer_is_idle(&first()->core));
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	assert_true(running->is_acked);
	assert_false(behind->is_acked || behind->is_out);
	assert_true(hx_consumer_is_idle(&first()->core));
	close_all();
}

static void what_was_taken_away_is_not_begun(void **state)
{
	struct case_letter *a, *b;

	(void)state;
	source_case_init(&c);
	source_case_open(&c, 2);
	a = source_case_send(&c, 0, "e1", "k", "{}");
	b = source_case_send(&c, 0, "e2", "k", "{}");
	source_case_turn(&c, first());
	source_case_give(&c, 0, 1);
	source_case_turns(&c);
	/* The new owner finds the first in progress; the second waits for it. */
	assert_int_equal(c.members[1].running_count, 0);
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	assert_int_equal(first()->back, 1);
	assert_int_equal(first()->running_count, 0);
	source_case_pass(&c, 200);
	assert_true(a->is_acked);
	assert_int_equal(c.members[1].running_count, 1);
	source_case_finish(&c.members[1], 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	assert_true(b->is_acked);
	assert_int_equal(a->effects, 1);
	assert_int_equal(b->effects, 1);
	close_all();
}

static void without_dead_letters_it_is_tried_for_ever(void **state)
{
	struct case_letter *letter;

	(void)state;
	source_case_init(&c);
	c.options.dead_letter = "off";
	source_case_open(&c, 1);
	letter = source_case_send(&c, 0, "e1", "", "{}");
	for (int i = 0; i < 20; i++) {
		source_case_pass(&c, 100);
		assert_int_equal(first()->running_count, 1);
		source_case_finish(first(), 0, HAPAX_RUN_TRANSIENT);
	}
	source_case_pass(&c, 100);
	assert_false(letter->is_acked);
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	assert_true(letter->is_acked);
	close_all();
}

static void what_is_too_large_is_a_dead_letter_and_is_not_read(void **state)
{
	struct case_letter *letter;

	(void)state;
	open_one();
	/* It is an event, and would run. */
	letter = source_case_send(&c, 0, "e1", "", "{}");
	letter->flags = HAPAX_MESSAGE_TOO_LARGE;
	c.refuses_letters = true;
	source_case_pass(&c, 50);
	assert_false(letter->is_acked);
	c.refuses_letters = false;
	source_case_pass(&c, 100);
	assert_true(letter->is_dead && letter->is_acked);
	assert_string_equal(letter->reason, "too-large");
	assert_int_equal(first()->running_count, 0);
	close_all();
}

static void what_is_too_large_is_refused_where_there_are_no_dead_letters(void **state)
{
	struct case_letter *letters[32];

	(void)state;
	source_case_init(&c);
	c.options.dead_letter = "off";
	source_case_open(&c, 1);
	/* Twice as many as it may have in hand, and one that runs. */
	for (size_t i = 0; i < 32; i++) {
		letters[i] = source_case_send(&c, 0, "e1", "", "{}");
		letters[i]->flags = HAPAX_MESSAGE_TOO_LARGE;
	}
	letters[0] = source_case_send(&c, 0, "e2", "", "{}");
	source_case_turns(&c);
	assert_int_equal(c.facts[HAPAX_FACT_UNDELIVERED], 32);
	assert_int_equal(first()->back, 32);
	assert_int_equal(first()->running_count, 1);
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	assert_true(letters[0]->is_acked);
	assert_int_equal(first()->acks, 1);
	close_all();
}

static void a_letter_without_an_answer_does_not_hold_up_a_stop(void **state)
{
	struct case_letter *letter;

	(void)state;
	open_one();
	c.refuses_letters = true;
	c.withholds_answers = true;
	letter = source_case_send(&c, 0, "e1", "", "{}");
	letter->flags = HAPAX_MESSAGE_TOO_LARGE;
	source_case_turns(&c);
	hx_consumer_stop(&first()->core);
	source_case_pass(&c, 100);
	assert_false(hx_consumer_is_idle(&first()->core));
	hx_consumer_hurry(&first()->core);
	source_case_turns(&c);
	assert_true(hx_consumer_is_idle(&first()->core));
	assert_false(letter->is_acked);
	assert_int_equal(first()->back, 1);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_acknowledged_after_its_completion_is_stored),
		cmocka_unit_test(a_duplicate_is_acknowledged_and_told_with_its_cause),
		cmocka_unit_test(a_duplicate_of_another_door_is_known),
		cmocka_unit_test(a_duplicate_can_be_diverted),
		cmocka_unit_test(a_duplicate_can_be_tagged),
		cmocka_unit_test(a_tagged_duplicate_that_fails_is_tried_again_and_let_go),
		cmocka_unit_test(a_tagged_duplicate_is_given_back_at_the_end),
		cmocka_unit_test(a_failure_is_tried_again_later_and_then_a_dead_letter),
		cmocka_unit_test(what_was_begun_often_is_run),
		cmocka_unit_test(attempts_of_others_count),
		cmocka_unit_test(in_progress_counts_for_nothing),
		cmocka_unit_test(a_store_that_refuses_stops_the_taking),
		cmocka_unit_test(an_outcome_that_is_not_stored_is_not_acknowledged),
		cmocka_unit_test(a_mismatch_is_a_dead_letter_at_once),
		cmocka_unit_test(a_parked_key_is_a_dead_letter_at_once),
		cmocka_unit_test(a_result_that_cannot_be_read_is_a_dead_letter_at_once),
		cmocka_unit_test(without_dead_letters_what_cannot_be_read_waits_alone),
		cmocka_unit_test(what_is_not_known_to_be_done_waits_alone),
		cmocka_unit_test(what_the_store_does_not_take_waits_alone),
		cmocka_unit_test(a_definitive_failure_is_kept_and_a_dead_letter),
		cmocka_unit_test(a_message_without_its_key_goes_by_policy),
		cmocka_unit_test(what_is_not_the_event_that_it_says_is_a_dead_letter),
		cmocka_unit_test(messages_of_one_key_wait_for_each_other),
		cmocka_unit_test(messages_of_one_partition_wait_for_each_other),
		cmocka_unit_test(no_more_run_than_may),
		cmocka_unit_test(a_stop_finishes_what_runs_and_gives_back_the_rest),
		cmocka_unit_test(what_was_taken_away_is_not_begun),
		cmocka_unit_test(without_dead_letters_it_is_tried_for_ever),
		cmocka_unit_test(what_is_too_large_is_a_dead_letter_and_is_not_read),
		cmocka_unit_test(what_is_too_large_is_refused_where_there_are_no_dead_letters),
		cmocka_unit_test(a_letter_without_an_answer_does_not_hold_up_a_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
