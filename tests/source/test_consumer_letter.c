/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_consumer_letter.c - which message becomes a dead letter, when, and what happens where there
 * are none.
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

/* Without an ID, a position and a strategy: nothing is a dead letter, nothing begins. */
static void a_message_without_an_id_halts_the_consumer(void **state)
{
	struct case_letter *letter, *before, *after;

	(void)state;
	source_case_init(&c);
	c.options.flags = HAPAX_CONSUMER_HALTS;
	source_case_open(&c, 1);
	before = source_case_send(&c, 0, "e1", "", "{}");
	source_case_turns(&c);
	letter = source_case_send(&c, 0, "", "", "{}");
	letter->place[0] = '\0';
	after = source_case_send(&c, 0, "e2", "", "{}");
	source_case_turns(&c);
	assert_int_equal(c.facts[HAPAX_FACT_NO_KEY], 1);
	assert_false(letter->is_dead || letter->is_out || after->is_out);
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_pass(&c, 100);
	assert_true(before->is_acked);
	assert_int_equal(first()->running_count, 0);
	hx_consumer_resume(&first()->core);
	source_case_turns(&c);
	assert_int_equal(c.facts[HAPAX_FACT_NO_KEY], 2);
	/* Someone has removed it. */
	letter->is_acked = true;
	hx_consumer_resume(&first()->core);
	source_case_turns(&c);
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_pass(&c, 100);
	assert_true(after->is_acked);
	assert_int_equal(c.facts[HAPAX_FACT_NO_KEY], 2);
	close_all();
	open_one();
	letter = source_case_send(&c, 0, "", "", "{}");
	letter->place[0] = '\0';
	source_case_turns(&c);
	assert_true(first()->core.is_failed);
	assert_int_equal(first()->core.failure.status, HAPAX_ERR_INVALID);
	assert_false(letter->is_dead || letter->is_acked);
	close_all();
}

/* Its position is its key: told once, counted each time. */
static void a_position_as_key_is_told_once(void **state)
{
	(void)state;
	open_one();
	for (int i = 0; i < 3; i++)
		(void)source_case_send(&c, 0, "", "", "{}");
	(void)source_case_send(&c, 0, "e1", "", "{}");
	source_case_turns(&c);
	assert_int_equal(first()->running_count, 4);
	assert_int_equal(c.facts[HAPAX_FACT_PLACE_KEY], 1);
	assert_int_equal(first()->core.stats.placed, 3);
	for (int i = 0; i < 4; i++)
		source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
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
		cmocka_unit_test(a_failure_is_tried_again_later_and_then_a_dead_letter),
		cmocka_unit_test(what_was_begun_often_is_run),
		cmocka_unit_test(attempts_of_others_count),
		cmocka_unit_test(a_mismatch_is_a_dead_letter_at_once),
		cmocka_unit_test(a_parked_key_is_a_dead_letter_at_once),
		cmocka_unit_test(a_result_that_cannot_be_read_is_a_dead_letter_at_once),
		cmocka_unit_test(without_dead_letters_what_cannot_be_read_waits_alone),
		cmocka_unit_test(what_is_not_known_to_be_done_waits_alone),
		cmocka_unit_test(what_the_store_does_not_take_waits_alone),
		cmocka_unit_test(a_definitive_failure_is_kept_and_a_dead_letter),
		cmocka_unit_test(a_message_without_its_key_goes_by_policy),
		cmocka_unit_test(a_message_without_an_id_halts_the_consumer),
		cmocka_unit_test(a_position_as_key_is_told_once),
		cmocka_unit_test(what_is_not_the_event_that_it_says_is_a_dead_letter),
		cmocka_unit_test(without_dead_letters_it_is_tried_for_ever),
		cmocka_unit_test(what_is_too_large_is_a_dead_letter_and_is_not_read),
		cmocka_unit_test(what_is_too_large_is_refused_where_there_are_no_dead_letters),
		cmocka_unit_test(a_letter_without_an_answer_does_not_hold_up_a_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
