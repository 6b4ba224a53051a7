/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"
#include "base/random.h"
#include "base/thread.h"
#include "support/virtual_clock.h"

#define S_NS  INT64_C(1000000000)
#define MS_NS INT64_C(1000000)

static int64_t boottime_ms(void)
{
	struct timespec now;

	assert_int_equal(clock_gettime(CLOCK_BOOTTIME, &now), 0);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void system_wall_clock_is_the_kernels(void **state)
{
	const struct hapax_clock *clock = hapax_clock_system();
	struct timespec before, after;
	int64_t wall_ms;

	(void)state;
	assert_int_equal(clock_gettime(CLOCK_REALTIME, &before), 0);
	wall_ms = clock->wall_ms(clock->context);
	assert_int_equal(clock_gettime(CLOCK_REALTIME, &after), 0);
	assert_true(wall_ms >= before.tv_sec * 1000 + before.tv_nsec / 1000000);
	assert_true(wall_ms <= after.tv_sec * 1000 + after.tv_nsec / 1000000);
}

/* What one thread saw of the boot clock; all must be 0. */
struct boot_watch {
	const struct hapax_clock *clock;
	int64_t late_ms_max;
	int went_back;
	int ran_ahead;
	int was_late; /* by more than a second, without a suspend */
};

static void watch_boot_clock(void *arg)
{
	struct boot_watch *watch = arg;
	const struct hapax_clock *clock = watch->clock;
	int64_t last_ms = 0;

	for (int i = 0; i < 100000; i++) {
		int64_t before_ms = boottime_ms();
		int64_t boot_ms = clock->boot_ms(clock->context);

		watch->went_back += boot_ms < last_ms;
		watch->ran_ahead += boot_ms > boottime_ms();
		watch->was_late += boot_ms < before_ms - watch->late_ms_max;
		last_ms = boot_ms;
	}
}

static void must_keep_promises(const struct hapax_clock *clock, int64_t late_ms_max)
{
	struct hx_thread threads[4];
	struct boot_watch watches[4];

	for (int i = 0; i < 4; i++) {
		watches[i] = (struct boot_watch){.clock = clock, .late_ms_max = late_ms_max};
		assert_int_equal(
			hx_thread_start(&threads[i], watch_boot_clock, &watches[i], "boot", NULL),
			HAPAX_OK);
	}
	for (int i = 0; i < 4; i++)
		hx_thread_join(&threads[i]);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(watches[i].went_back, 0);
		assert_int_equal(watches[i].ran_ahead, 0);
		assert_int_equal(watches[i].was_late, 0);
	}
}

/* What one process writes, another one reads: never late by a tick, nor by a suspend. */
static void system_boot_clock_is_exact(void **state)
{
	(void)state;
	must_keep_promises(hapax_clock_system(), 0);
}

static void cheap_boot_clock_keeps_its_promises(void **state)
{
	struct hx_virtual_clock own;

	(void)state;
	assert_ptr_not_equal(hx_clock_cheap(hapax_clock_system()), hapax_clock_system());
	must_keep_promises(hx_clock_cheap(hapax_clock_system()), 1000);
	/* A caller's own clock may say anything. */
	hx_virtual_clock_init(&own, 0);
	assert_ptr_equal(
		hx_clock_cheap(hx_virtual_clock_clock(&own)), hx_virtual_clock_clock(&own));
}

/* A kernel to order: time passes with every reading, and sleep adds to BOOTTIME only. */
static int64_t fake_mono_ns, fake_suspended_ns, fake_suspend_between_ns, fake_step_ns;
static int fake_offset_reads;

static int64_t fake_read(clockid_t id)
{
	int64_t mono_ns = fake_mono_ns += fake_step_ns;
	int64_t suspended_ns = fake_suspended_ns;

	if (id == CLOCK_MONOTONIC_COARSE)
		return mono_ns / (4 * MS_NS) * (4 * MS_NS);
	if (id == CLOCK_MONOTONIC)
		return mono_ns;
	assert_int_equal(id, CLOCK_BOOTTIME);
	fake_offset_reads++;
	/* The machine falls asleep right after this reading. */
	fake_suspended_ns += fake_suspend_between_ns;
	fake_suspend_between_ns = 0;
	return mono_ns + suspended_ns;
}

static void fake_reset(void)
{
	fake_mono_ns = 100 * S_NS;
	fake_suspended_ns = 5000 * S_NS;
	fake_suspend_between_ns = 0;
	fake_step_ns = 30;
	fake_offset_reads = 0;
}

static void boot_clock_counts_a_suspend(void **state)
{
	struct hx_boot_clock clock = {INT64_MIN, INT64_MIN};
	int64_t before_ns, now_ns;

	(void)state;
	fake_reset();
	before_ns = hx_boot_clock_ns(&clock, fake_read);
	assert_in_range(before_ns, 5100 * S_NS - 5 * MS_NS, 5100 * S_NS + MS_NS);

	/* Asleep for an hour: not seen before the next measurement, which comes within 1 s. */
	fake_suspended_ns += 3600 * S_NS;
	now_ns = hx_boot_clock_ns(&clock, fake_read);
	assert_in_range(now_ns, before_ns, before_ns + 5 * MS_NS);
	fake_mono_ns += 1005 * MS_NS;
	now_ns = hx_boot_clock_ns(&clock, fake_read);
	assert_in_range(now_ns, before_ns + 3601 * S_NS, before_ns + 3601 * S_NS + 10 * MS_NS);
}

static void boot_clock_measures_once_a_second(void **state)
{
	struct hx_boot_clock clock = {INT64_MIN, INT64_MIN};

	(void)state;
	fake_reset();
	fake_step_ns = 1000;
	for (int i = 0; i < 10000; i++)
		(void)hx_boot_clock_ns(&clock, fake_read);
	assert_int_equal(fake_offset_reads, 1);
	fake_mono_ns += 5 * S_NS;
	for (int i = 0; i < 10000; i++)
		(void)hx_boot_clock_ns(&clock, fake_read);
	assert_int_equal(fake_offset_reads, 2);
}

static void boot_clock_survives_a_suspend_while_measuring(void **state)
{
	struct hx_boot_clock clock = {INT64_MIN, INT64_MIN};

	(void)state;
	fake_reset();
	fake_suspend_between_ns = 60 * S_NS;
	assert_true(hx_boot_clock_ns(&clock, fake_read) <= fake_mono_ns + fake_suspended_ns);
	/* Measured too small; the next one mends it. */
	assert_true(atomic_load(&clock.offset_ns) <= 5000 * S_NS);
	fake_mono_ns += 2 * S_NS;
	(void)hx_boot_clock_ns(&clock, fake_read);
	assert_in_range(atomic_load(&clock.offset_ns), 5060 * S_NS - MS_NS, 5060 * S_NS);
}

static void boot_clock_drops_a_smaller_measurement(void **state)
{
	struct hx_boot_clock clock = {INT64_MIN, INT64_MIN};
	int64_t offset_ns;

	(void)state;
	fake_reset();
	(void)hx_boot_clock_ns(&clock, fake_read);
	offset_ns = atomic_load(&clock.offset_ns);
	/* As if the thread had lost the processor for 2 s between the two readings. */
	fake_mono_ns += 2 * S_NS;
	fake_step_ns = 2 * S_NS;
	(void)hx_boot_clock_ns(&clock, fake_read);
	assert_int_equal(atomic_load(&clock.offset_ns), offset_ns);
}

static void boot_clock_never_back_never_ahead_at_random(void **state)
{
	struct hx_boot_clock clock = {INT64_MIN, INT64_MIN};
	struct hx_prng prng;
	int64_t last_ns = 0;

	(void)state;
	fake_reset();
	hx_prng_seed(&prng, 5);
	for (int i = 0; i < 100000; i++) {
		int64_t now_ns;

		fake_step_ns = (int64_t)hx_prng_below(&prng, 50 * MS_NS);
		if (hx_prng_below(&prng, 100) == 0)
			fake_suspended_ns += (int64_t)hx_prng_below(&prng, 3600) * S_NS;
		if (hx_prng_below(&prng, 100) == 0)
			fake_suspend_between_ns = (int64_t)hx_prng_below(&prng, 10) * S_NS;
		now_ns = hx_boot_clock_ns(&clock, fake_read);
		assert_true(now_ns >= last_ns);
		assert_true(now_ns <= fake_mono_ns + fake_suspended_ns);
		last_ns = now_ns;
	}
}

/* In a time namespace BOOTTIME may lie below MONOTONIC. */
static void boot_clock_takes_a_negative_offset(void **state)
{
	struct hx_boot_clock clock = {INT64_MIN, INT64_MIN};

	(void)state;
	fake_reset();
	fake_suspended_ns = -50 * S_NS;
	assert_true(hx_boot_clock_ns(&clock, fake_read) <= fake_mono_ns - 50 * S_NS);
	assert_true(hx_boot_clock_ns(&clock, fake_read) >= 49 * S_NS);
}

static void boot_ids(void **state)
{
	const struct hapax_clock *clock = hapax_clock_system();
	unsigned char a[HAPAX_BOOT_ID_SIZE], b[HAPAX_BOOT_ID_SIZE];
	const unsigned char unknown[HAPAX_BOOT_ID_SIZE] = {0};

	(void)state;
	clock->boot_id(clock->context, a);
	clock->boot_id(clock->context, b);
	assert_memory_equal(a, b, sizeof(a));
	assert_int_equal(hx_clock_boot_id_equal(a, b), hx_clock_boot_id_is_known(a));
	memset(a, 7, sizeof(a));
	assert_true(hx_clock_boot_id_is_known(a));
	assert_false(hx_clock_boot_id_is_known(unknown));
	/* Two unknown boots are not the same boot. */
	assert_false(hx_clock_boot_id_equal(unknown, unknown));
	assert_false(hx_clock_boot_id_equal(a, unknown));
	assert_false(hx_clock_boot_id_equal(unknown, a));
	assert_true(hx_clock_boot_id_equal(a, a));
}

static void mono_does_not_go_back(void **state)
{
	int64_t last = hx_clock_mono_ns();

	(void)state;
	for (int i = 0; i < 10000; i++) {
		int64_t now = hx_clock_mono_ns();

		assert_true(now >= last);
		last = now;
	}
}

static void virtual_clock_obeys(void **state)
{
	struct hx_virtual_clock vc;
	const struct hapax_clock *clock;
	unsigned char a[HAPAX_BOOT_ID_SIZE], b[HAPAX_BOOT_ID_SIZE];

	(void)state;
	hx_virtual_clock_init(&vc, 1000);
	clock = hx_virtual_clock_clock(&vc);
	assert_int_equal(clock->wall_ms(clock->context), 1000);
	assert_int_equal(clock->boot_ms(clock->context), 0);
	clock->boot_id(clock->context, a);
	assert_true(hx_clock_boot_id_is_known(a));

	hx_virtual_clock_advance(&vc, 50);
	assert_int_equal(clock->wall_ms(clock->context), 1050);
	assert_int_equal(clock->boot_ms(clock->context), 50);

	hx_virtual_clock_set_wall(&vc, -7);
	assert_int_equal(clock->wall_ms(clock->context), -7);
	assert_int_equal(clock->boot_ms(clock->context), 50);
	clock->boot_id(clock->context, b);
	assert_true(hx_clock_boot_id_equal(a, b));

	hx_virtual_clock_reboot(&vc);
	assert_int_equal(clock->wall_ms(clock->context), -7);
	assert_int_equal(clock->boot_ms(clock->context), 0);
	clock->boot_id(clock->context, b);
	assert_true(hx_clock_boot_id_is_known(b));
	assert_false(hx_clock_boot_id_equal(a, b));
}

static void advance_virtual_clock(void *arg)
{
	for (int i = 0; i < 10000; i++)
		hx_virtual_clock_advance(arg, 1);
}

static void virtual_clock_is_for_all_threads(void **state)
{
	struct hx_virtual_clock vc;
	struct hx_thread thread;
	const struct hapax_clock *clock;
	int64_t last = 0;

	(void)state;
	hx_virtual_clock_init(&vc, 0);
	clock = hx_virtual_clock_clock(&vc);
	assert_int_equal(
		hx_thread_start(&thread, advance_virtual_clock, &vc, "advance", NULL), HAPAX_OK);
	while (last < 10000) {
		int64_t now = clock->boot_ms(clock->context);

		assert_true(now >= last);
		last = now;
	}
	hx_thread_join(&thread);
	assert_int_equal(clock->wall_ms(clock->context), 10000);
}

static void formats(int64_t ms, const char *expected)
{
	char text[32];

	hx_clock_format_utc(ms, text);
	assert_string_equal(text, expected);
}

static void utc_text(void **state)
{
	(void)state;
	formats(0, "1970-01-01T00:00:00.000Z");
	formats(-1, "1969-12-31T23:59:59.999Z");
	formats(INT64_C(1794774135123), "2026-11-15T20:22:15.123Z");
	formats(INT64_C(951782400000), "2000-02-29T00:00:00.000Z");
	formats(INT64_C(951868800000), "2000-03-01T00:00:00.000Z");
	formats(INT64_C(4107542399999), "2100-02-28T23:59:59.999Z");
	formats(INT64_C(4107542400000), "2100-03-01T00:00:00.000Z");
	formats(INT64_C(1709164800000), "2024-02-29T00:00:00.000Z");
	formats(INT64_C(1735689599999), "2024-12-31T23:59:59.999Z");
	formats(INT64_C(-62167219200000), "0000-01-01T00:00:00.000Z");
	formats(INT64_C(253402300799999), "9999-12-31T23:59:59.999Z");
}

static void utc_text_is_clamped(void **state)
{
	char text[32];

	(void)state;
	hx_clock_format_utc(INT64_MIN, text);
	assert_string_equal(text, "0000-01-01T00:00:00.000Z");
	hx_clock_format_utc(INT64_C(-62167219200001), text);
	assert_string_equal(text, "0000-01-01T00:00:00.000Z");
	hx_clock_format_utc(INT64_MAX, text);
	assert_string_equal(text, "9999-12-31T23:59:59.999Z");
	hx_clock_format_utc(INT64_C(253402300800000), text);
	assert_string_equal(text, "9999-12-31T23:59:59.999Z");
}

/* Against the C library, day by day through four centuries and random moments beyond. */
static void utc_text_agrees_with_libc(void **state)
{
	struct hx_prng prng;

	(void)state;
	hx_prng_seed(&prng, 3);
	for (int i = 0; i < 150000; i++) {
		int64_t ms = i < 146500 ? INT64_C(-11676096000000) + i * INT64_C(86400000)
					: (int64_t)hx_prng_below(&prng, UINT64_C(315569519999999)) -
				INT64_C(62167219200000);
		time_t second = (time_t)(ms / 1000 - (ms % 1000 < 0));
		char text[32], expected[32];
		struct tm tm;

		hx_clock_format_utc(ms, text);
		assert_non_null(gmtime_r(&second, &tm));
		assert_true(strftime(expected, sizeof(expected), "-%m-%dT%H:%M:%S.", &tm) > 0);
		assert_memory_equal(text + 4, expected, 16);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(system_wall_clock_is_the_kernels),
		cmocka_unit_test(system_boot_clock_is_exact),
		cmocka_unit_test(cheap_boot_clock_keeps_its_promises),
		cmocka_unit_test(boot_clock_counts_a_suspend),
		cmocka_unit_test(boot_clock_measures_once_a_second),
		cmocka_unit_test(boot_clock_survives_a_suspend_while_measuring),
		cmocka_unit_test(boot_clock_drops_a_smaller_measurement),
		cmocka_unit_test(boot_clock_never_back_never_ahead_at_random),
		cmocka_unit_test(boot_clock_takes_a_negative_offset),
		cmocka_unit_test(boot_ids),
		cmocka_unit_test(mono_does_not_go_back),
		cmocka_unit_test(virtual_clock_obeys),
		cmocka_unit_test(virtual_clock_is_for_all_threads),
		cmocka_unit_test(utc_text),
		cmocka_unit_test(utc_text_is_clamped),
		cmocka_unit_test(utc_text_agrees_with_libc),
	};

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
