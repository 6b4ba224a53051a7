/* SPDX-License-Identifier: Apache-2.0 */
#include "store/clock_mark.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/random.h"
#include "support/scale.h"
#include "support/virtual_clock.h"

#define START INT64_C(1767225600000)
#define DAY   (INT64_C(86400) * 1000)

struct fixture {
	struct hx_virtual_clock clock;
	const struct hapax_clock *reading;
	struct hx_clock_mark mark;
};

static void begin(struct fixture *f)
{
	hx_virtual_clock_init(&f->clock, START);
	f->reading = hx_virtual_clock_clock(&f->clock);
	hx_clock_mark_init(&f->mark, f->reading);
}

static int64_t now(const struct fixture *f)
{
	return hx_clock_mark_now(&f->mark, f->reading);
}

static void reboot(struct fixture *f, int64_t wall_ms, int64_t step_ms_max)
{
	hx_virtual_clock_reboot(&f->clock);
	hx_virtual_clock_set_wall(&f->clock, wall_ms);
	assert_false(hx_clock_mark_is_current(&f->mark, f->reading));
	hx_clock_mark_reboot(&f->mark, f->reading, step_ms_max);
	assert_true(hx_clock_mark_is_current(&f->mark, f->reading));
}

static void time_in_a_boot_is_exact(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	assert_true(hx_clock_mark_is_current(&f.mark, f.reading));
	assert_int_equal(now(&f), START);
	for (int64_t i = 1; i <= 100; i++) {
		hx_virtual_clock_advance(&f.clock, i);
		hx_virtual_clock_set_wall(&f.clock, i % 2 ? 0 : START * 2);
		assert_int_equal(now(&f), START + i * (i + 1) / 2);
		if (i % 7 == 0)
			hx_clock_mark_advance(&f.mark, f.reading);
		assert_int_equal(now(&f), START + i * (i + 1) / 2);
	}
}

static void reboot_takes_the_wall_clock_up_to_a_step(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	hx_virtual_clock_advance(&f.clock, 5000);
	hx_clock_mark_advance(&f.mark, f.reading);
	/* Ahead, within the step: taken as it is. */
	reboot(&f, START + DAY, 7 * DAY);
	assert_int_equal(now(&f), START + DAY);
	assert_int_equal(f.mark.owed_ms, 0);
	/* Exactly the step. */
	reboot(&f, START + 8 * DAY, 7 * DAY);
	assert_int_equal(now(&f), START + 8 * DAY);
	assert_int_equal(f.mark.owed_ms, 0);
	/* Behind: stands where it stood. */
	reboot(&f, START, 7 * DAY);
	assert_int_equal(now(&f), START + 8 * DAY);
	assert_int_equal(f.mark.owed_ms, 0);
	hx_virtual_clock_advance(&f.clock, 10);
	assert_int_equal(now(&f), START + 8 * DAY + 10);
}

static void what_is_beyond_the_step_is_slewed_in(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	reboot(&f, START + 8 * DAY, 7 * DAY);
	assert_int_equal(now(&f), START + 7 * DAY);
	assert_int_equal(f.mark.owed_ms, DAY);
	/* A tenth faster, until the day is paid, and not a moment longer. */
	hx_virtual_clock_advance(&f.clock, 5 * DAY);
	assert_int_equal(now(&f), START + 12 * DAY + DAY / 2);
	hx_virtual_clock_advance(&f.clock, 5 * DAY);
	assert_int_equal(now(&f), START + 18 * DAY);
	hx_virtual_clock_advance(&f.clock, 5 * DAY);
	assert_int_equal(now(&f), START + 23 * DAY);
	hx_clock_mark_advance(&f.mark, f.reading);
	assert_int_equal(f.mark.owed_ms, 0);
	assert_int_equal(now(&f), START + 23 * DAY);
}

/* Moving the mark in between does not change what is paid, up to a millisecond each. */
static void debt_is_paid_however_often_the_mark_moves(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	reboot(&f, START + 8 * DAY, 7 * DAY);
	for (int i = 0; i < 1000; i++) {
		int64_t before = now(&f);

		hx_virtual_clock_advance(&f.clock, 1000);
		hx_clock_mark_advance(&f.mark, f.reading);
		assert_true(now(&f) - before >= 1099);
		assert_true(now(&f) - before <= 1100);
	}
}

/* Readings beyond belief do not overflow. */
static void absurd_readings_do_no_harm(void **state)
{
	static const int64_t walls[] = {INT64_MIN, INT64_MIN + 1, -1, 0, INT64_MAX - 1, INT64_MAX};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof(walls) / sizeof(walls[0]); i++) {
		begin(&f);
		reboot(&f, walls[i], 7 * DAY);
		int64_t before = now(&f);
		assert_true(before >= START);
		assert_true(before <= START + 7 * DAY);
		hx_virtual_clock_advance(&f.clock, DAY);
		hx_clock_mark_advance(&f.mark, f.reading);
		assert_true(now(&f) >= before + DAY);
		assert_true(now(&f) <= before + DAY + DAY / 10);
	}
}

/* An unknown boot is never the same boot. */
static void unknown_boot(void *context, unsigned char boot_id[HAPAX_BOOT_ID_SIZE])
{
	(void)context;
	for (size_t i = 0; i < HAPAX_BOOT_ID_SIZE; i++)
		boot_id[i] = 0;
}

static void unknown_boot_is_not_current(void **state)
{
	struct fixture f;
	struct hapax_clock clock;

	(void)state;
	begin(&f);
	clock = *f.reading;
	clock.boot_id = unknown_boot;
	hx_clock_mark_init(&f.mark, &clock);
	assert_false(hx_clock_mark_is_current(&f.mark, &clock));
}

/* I8 over random lives of a clock: never back, at most a tenth fast, bounded jumps. */
static void random_lives_keep_the_promise(void **state)
{
	uint64_t lives = scale_count(20000, 500);
	struct hx_prng prng;

	(void)state;
	hx_prng_seed(&prng, 8);
	for (uint64_t life = 0; life < lives; life++) {
		int64_t step_ms = 1 + (int64_t)hx_prng_below(&prng, 10 * DAY);
		struct fixture f;
		int64_t last;

		begin(&f);
		last = now(&f);
		for (int i = 0; i < 100; i++) {
			int64_t passed = 0;
			int64_t jump = 0;

			switch (hx_prng_below(&prng, 5)) {
			case 0:
				hx_virtual_clock_set_wall(
					&f.clock,
					START + (int64_t)hx_prng_below(&prng, 400 * DAY) -
						200 * DAY);
				break;
			case 1:
				/* What was read but never kept is what a reboot may take back. */
				hx_clock_mark_advance(&f.mark, f.reading);
				hx_virtual_clock_reboot(&f.clock);
				hx_clock_mark_reboot(&f.mark, f.reading, step_ms);
				jump = step_ms;
				break;
			case 2: hx_clock_mark_advance(&f.mark, f.reading); break;
			default:
				passed =
					(int64_t)(hx_prng_next(&prng) >> (30 + hx_prng_below(&prng, 34)));
				hx_virtual_clock_advance(&f.clock, passed);
				break;
			}
			int64_t reading = now(&f);
			assert_true(reading >= last + passed - 1);
			assert_true(reading <= last + passed + passed / 10 + 1 + jump);
			/* Late by the millisecond that moving the mark may cost, never back. */
			if (reading > last)
				last = reading;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_in_a_boot_is_exact),
		cmocka_unit_test(reboot_takes_the_wall_clock_up_to_a_step),
		cmocka_unit_test(what_is_beyond_the_step_is_slewed_in),
		cmocka_unit_test(debt_is_paid_however_often_the_mark_moves),
		cmocka_unit_test(absurd_readings_do_no_harm),
		cmocka_unit_test(unknown_boot_is_not_current),
		cmocka_unit_test(random_lives_keep_the_promise),
	};

	return cmocka_run_group_tests_name("clock_mark", tests, NULL, NULL);
}
