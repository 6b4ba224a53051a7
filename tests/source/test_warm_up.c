/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_warm_up.c - messages of the past (D5): marked as done, never run, and nothing that the store
 * knows already is changed by them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
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

static struct case_letter *send_past(const char *id, const char *data)
{
	struct case_letter *letter = source_case_send(&c, 0, id, "k", data);

	letter->flags = HAPAX_MESSAGE_WARM_UP;
	return letter;
}

static void what_was_acknowledged_is_marked_and_does_not_run(void **state)
{
	struct case_letter *letters[10];
	struct case_letter *twin, *other;

	(void)state;
	open_one();
	for (int i = 0; i < 10; i++) {
		char id[8];

		/* The last one is the first one again. */
		(void)snprintf(id, sizeof(id), "e%d", i % 9);
		letters[i] = send_past(id, "{}");
	}
	source_case_turns(&c);
	for (int i = 0; i < 10; i++)
		assert_true(letters[i]->is_acked);
	assert_int_equal(first()->running_count, 0);
	assert_int_equal(first()->core.stats.warmed, 9);
	/* Not duplicates: no producer sent them again. */
	assert_int_equal(c.facts[HAPAX_FACT_DUPLICATE], 0);
	twin = source_case_send(&c, 1, "e3", "", "{}");
	other = source_case_send(&c, 1, "new", "", "{}");
	source_case_turns(&c);
	assert_true(twin->is_acked);
	assert_int_equal(c.facts[HAPAX_FACT_DUPLICATE], 1);
	assert_int_equal(first()->running_count, 1);
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	assert_true(other->is_acked);
	close_all();
}

static void another_payload_is_noticed_after_a_warm_up(void **state)
{
	struct case_letter *other;

	(void)state;
	open_one();
	(void)send_past("e1", "{\"n\":1}");
	source_case_turns(&c);
	other = source_case_send(&c, 1, "e1", "", "{\"n\":2}");
	source_case_turns(&c);
	assert_true(other->is_dead);
	assert_string_equal(other->reason, "mismatch");
	close_all();
}

static void what_the_store_knows_stays_as_it_is(void **state)
{
	struct case_letter *failed, *again, *past;

	(void)state;
	open_one();
	failed = source_case_send(&c, 0, "e1", "", "{}");
	for (int i = 0; i < 3; i++) {
		source_case_pass(&c, 100);
		source_case_finish(first(), 0, HAPAX_RUN_TRANSIENT);
	}
	source_case_pass(&c, 100);
	assert_true(failed->is_dead);
	/* A dead letter is in the past, and is sent again when what was wrong is right. */
	past = send_past("e1", "{}");
	source_case_turns(&c);
	assert_true(past->is_acked);
	assert_int_equal(first()->core.stats.warmed, 0);
	again = source_case_send(&c, 1, "e1", "", "{}");
	source_case_turns(&c);
	assert_int_equal(first()->running_count, 1);
	source_case_finish(first(), 0, HAPAX_RUN_OK);
	source_case_turns(&c);
	assert_true(again->is_acked);
	close_all();
}

static void what_had_no_key_was_settled_and_is_no_dead_letter_again(void **state)
{
	struct case_letter *letter;

	(void)state;
	source_case_init(&c);
	c.options.strategy = "field:data.order";
	source_case_open(&c, 1);
	letter = send_past("", "{\"no\":1}");
	source_case_turns(&c);
	assert_true(letter->is_acked);
	assert_false(letter->is_dead);
	assert_int_equal(first()->core.stats.warmed, 0);
	close_all();
}

static void a_store_that_refuses_is_waited_for(void **state)
{
	struct case_letter *a, *b;

	(void)state;
	open_one();
	a = send_past("e1", "{}");
	b = send_past("e2", "{}");
	c.held.away = HAPAX_ERR_UNAVAILABLE;
	source_case_pass(&c, 200);
	assert_false(a->is_acked || b->is_acked);
	assert_int_equal(c.facts[HAPAX_FACT_STORE_AWAY], 1);
	c.held.away = HAPAX_OK;
	source_case_pass(&c, 200);
	assert_true(a->is_acked && b->is_acked);
	assert_int_equal(c.facts[HAPAX_FACT_STORE_BACK], 1);
	assert_int_equal(first()->core.stats.warmed, 2);
	close_all();
}

static void a_mark_is_acknowledged_when_it_is_stored(void **state)
{
	struct case_letter *letter;

	(void)state;
	open_one();
	letter = send_past("e1", "{}");
	c.held.holds = true;
	source_case_turns(&c);
	/* The question, then the mark. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(c.held.count, 1);
		assert_false(letter->is_acked);
		held_store_pass(&c.held);
		source_case_turns(&c);
	}
	assert_true(letter->is_acked);
	assert_int_equal(c.held.count, 0);
	c.held.holds = false;
	close_all();
}

static void a_stop_in_the_middle_leaves_nothing_in_hand(void **state)
{
	struct case_letter *letter;

	(void)state;
	open_one();
	c.held.holds = true;
	letter = send_past("e1", "{}");
	source_case_turns(&c);
	hx_consumer_stop(&first()->core);
	source_case_turns(&c);
	assert_false(hx_consumer_is_idle(&first()->core));
	for (int i = 0; i < 3 && c.held.count > 0; i++) {
		held_store_pass(&c.held);
		source_case_turns(&c);
	}
	assert_true(hx_consumer_is_idle(&first()->core));
	assert_true(letter->is_acked);
	c.held.holds = false;
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_acknowledged_is_marked_and_does_not_run),
		cmocka_unit_test(another_payload_is_noticed_after_a_warm_up),
		cmocka_unit_test(what_the_store_knows_stays_as_it_is),
		cmocka_unit_test(what_had_no_key_was_settled_and_is_no_dead_letter_again),
		cmocka_unit_test(a_store_that_refuses_is_waited_for),
		cmocka_unit_test(a_mark_is_acknowledged_when_it_is_stored),
		cmocka_unit_test(a_stop_in_the_middle_leaves_nothing_in_hand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
