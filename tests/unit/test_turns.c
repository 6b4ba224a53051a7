/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/turns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { LARGE = 3000, SMALL = 300, ADDRESSES = 24 };

static bool may(void *arg, const struct hx_turn *turn)
{
	(void)arg;
	(void)turn;
	return true;
}

static struct hx_turn *read_next(struct hx_turns *turns)
{
	struct hx_turn *turn = hx_turns_take(turns, may, NULL);

	assert_non_null(turn);
	hx_turns_leave(turns, turn);
	return turn;
}

/* Whenever it comes: before, it waited for all of them. */
static void a_small_one_overtakes_large_ones_of_many(void **state)
{
	(void)state;
	for (size_t read = 0; read < ADDRESSES; read++) {
		struct hx_turns turns = {0};
		struct hx_turn large[ADDRESSES];
		struct hx_turn small = {.who = ADDRESSES};

		for (size_t i = 0; i < ADDRESSES; i++) {
			large[i] = (struct hx_turn){.who = i};
			hx_turns_ask(&turns, &large[i], LARGE);
		}
		for (size_t i = 0; i < read; i++)
			assert_ptr_equal(read_next(&turns), &large[i]);
		hx_turns_ask(&turns, &small, SMALL);
		/* To the end: the last ones would have ended before it. */
		if (read < ADDRESSES * 3 / 4)
			assert_ptr_equal(read_next(&turns), &small);
	}
}

/* New addresses without end, each with a small one: the large one has its part. */
static void a_large_one_does_not_wait_for_ever(void **state)
{
	struct hx_turns turns = {0};
	struct hx_turn large = {.who = 0};
	struct hx_turn small[4];
	uint64_t who = 1;
	size_t before = 0;

	(void)state;
	hx_turns_ask(&turns, &large, LARGE);
	for (size_t i = 0; i < 4; i++) {
		small[i] = (struct hx_turn){.who = who++};
		hx_turns_ask(&turns, &small[i], SMALL);
	}
	for (;;) {
		struct hx_turn *turn = read_next(&turns);

		if (turn == &large)
			break;
		*turn = (struct hx_turn){.who = who++};
		hx_turns_ask(&turns, turn, SMALL);
		before++;
		assert_true(before <= (size_t)(5 + HX_TURNS_LEFT_MAX) * LARGE / SMALL);
	}
	assert_true(before > 0);
}

/* Many of one address are one after the other; another one's come between. */
static void many_of_one_address_are_its_own_part(void **state)
{
	struct hx_turns turns = {0};
	struct hx_turn many[10];
	struct hx_turn other = {.who = 1};

	(void)state;
	for (size_t i = 0; i < 10; i++) {
		many[i] = (struct hx_turn){.who = 0};
		hx_turns_ask(&turns, &many[i], SMALL);
	}
	assert_ptr_equal(read_next(&turns), &many[0]);
	hx_turns_ask(&turns, &other, 2 * SMALL);
	assert_ptr_equal(read_next(&turns), &many[1]);
	(void)read_next(&turns);
	(void)read_next(&turns);
	assert_int_equal(turns.waiting_count, 7);
	for (const struct hx_turn *turn = turns.waiting; turn != NULL; turn = turn->next)
		assert_ptr_not_equal(turn, &other);
}

static bool is_not_first(void *arg, const struct hx_turn *turn)
{
	return turn != arg;
}

static void what_may_not_is_passed_over(void **state)
{
	struct hx_turns turns = {0};
	struct hx_turn one = {.who = 1};
	struct hx_turn two = {.who = 2};

	(void)state;
	hx_turns_ask(&turns, &one, SMALL);
	assert_null(hx_turns_take(&turns, is_not_first, &one));
	hx_turns_ask(&turns, &two, LARGE);
	assert_ptr_equal(hx_turns_take(&turns, is_not_first, &one), &two);
	assert_int_equal(hx_turns_reading_of(&turns, 2), 1);
	hx_turns_ask_again(&turns, &two);
	assert_int_equal(hx_turns_reading(&turns), 0);
	assert_ptr_equal(read_next(&turns), &one);
	assert_ptr_equal(read_next(&turns), &two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_small_one_overtakes_large_ones_of_many),
		cmocka_unit_test(a_large_one_does_not_wait_for_ever),
		cmocka_unit_test(many_of_one_address_are_its_own_part),
		cmocka_unit_test(what_may_not_is_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
