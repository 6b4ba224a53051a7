/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_consumer.c - what becomes of a message, row by row of the table in source.h. Dead letters:
 * test_consumer_letter.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

static void a_pause_lets_runs_finish_and_begins_nothing(void **state)
{
	struct case_letter *first_letter, *second, *failed;

	(void)state;
	open_one();
	first_letter = source_case_send(&c, 0, "e1", "", "{}");
	failed = source_case_send(&c, 0, "e2", "", "{}");
	source_case_pass(&c, 100);
	assert_int_equal(first()->running_count, 2);
	hx_consumer_pause(&first()->core, true);
	second = source_case_send(&c, 0, "e3", "", "{}");
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_finish(first(), 0, HAPAX_RUN_TRANSIENT);
	source_case_pass(&c, 120 * 1000);
	assert_true(first_letter->is_acked);
	assert_false(failed->is_acked);
	assert_int_equal(first()->running_count, 0);
	assert_int_equal(first()->core.stats.received, 2);
	hx_consumer_pause(&first()->core, false);
	source_case_pass(&c, 100);
	assert_int_equal(first()->running_count, 2);
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_pass(&c, 100);
	assert_true(failed->is_acked && second->is_acked);
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

/* E20: a message is a duplicate by either key, and both are done together. */
static void two_keys_while_the_strategy_changes(void **state)
{
	struct hapax_key_options keys = HAPAX_KEY_OPTIONS_INIT;
	struct case_letter *letter;
	uint64_t token = 0;

	(void)state;
	source_case_init(&c);
	keys.also = "header:eventId";
	keys.also_until_ms = INT64_MAX;
	c.options.strategy = "field:data.o";
	c.options.key_options = &keys;
	source_case_open(&c, 1);
	/* Done before the change. */
	assert_int_equal(case_claim(&c.store, "e1", &token), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(case_complete(&c.store, "e1", token), HAPAX_OK);
	letter = source_case_send(&c, 0, "e1", "", "{\"o\":\"x\"}");
	source_case_turns(&c);
	assert_int_equal(first()->running_count, 0);
	assert_true(letter->is_acked);
	assert_int_equal(c.facts[HAPAX_FACT_KEYS_DIFFER], 1);
	/* New: one run, two keys. */
	letter = source_case_send(&c, 0, "e2", "", "{\"o\":\"y\"}");
	source_case_turns(&c);
	assert_int_equal(first()->running_count, 1);
	assert_int_equal(case_state(&c.store, "e2"), HAPAX_STATE_CLAIMED);
	assert_int_equal(case_state(&c.store, "y"), HAPAX_STATE_CLAIMED);
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	assert_true(letter->is_acked);
	assert_int_equal(case_state(&c.store, "e2"), HAPAX_STATE_DONE);
	assert_int_equal(case_state(&c.store, "y"), HAPAX_STATE_DONE);
	(void)source_case_send(&c, 0, "e2", "", "{\"o\":\"y\"}");
	source_case_turns(&c);
	assert_int_equal(c.facts[HAPAX_FACT_KEYS_DIFFER], 1);
	/* Known by its new key only. */
	letter = source_case_send(&c, 0, "e3", "", "{\"o\":\"y\"}");
	source_case_turns(&c);
	assert_true(letter->is_acked);
	assert_int_equal(c.facts[HAPAX_FACT_KEYS_DIFFER], 2);
	assert_int_equal(c.facts[HAPAX_FACT_DUPLICATE], 3);
	assert_int_equal(first()->core.stats.diverged, 2);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_acknowledged_after_its_completion_is_stored),
		cmocka_unit_test(a_duplicate_is_acknowledged_and_told_with_its_cause),
		cmocka_unit_test(two_keys_while_the_strategy_changes),
		cmocka_unit_test(a_duplicate_of_another_door_is_known),
		cmocka_unit_test(a_duplicate_can_be_diverted),
		cmocka_unit_test(a_duplicate_can_be_tagged),
		cmocka_unit_test(a_tagged_duplicate_that_fails_is_tried_again_and_let_go),
		cmocka_unit_test(a_tagged_duplicate_is_given_back_at_the_end),
		cmocka_unit_test(in_progress_counts_for_nothing),
		cmocka_unit_test(a_store_that_refuses_stops_the_taking),
		cmocka_unit_test(a_pause_lets_runs_finish_and_begins_nothing),
		cmocka_unit_test(an_outcome_that_is_not_stored_is_not_acknowledged),
		cmocka_unit_test(messages_of_one_key_wait_for_each_other),
		cmocka_unit_test(messages_of_one_partition_wait_for_each_other),
		cmocka_unit_test(no_more_run_than_may),
		cmocka_unit_test(a_stop_finishes_what_runs_and_gives_back_the_rest),
		cmocka_unit_test(what_was_taken_away_is_not_begun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
