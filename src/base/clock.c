/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.c - the system's clock, UTC text.
 *
 * The cheap boot clock: CLOCK_BOOTTIME costs 27 ns a reading and has no coarse
 * form; CLOCK_MONOTONIC_COARSE costs 6 ns and differs from it by two things. It is
 * that of the last timer tick, and it leaves out time spent suspended. The second
 * is BOOTTIME - MONOTONIC, a number that changes only when the machine wakes and
 * then only grows; it is measured again once a second.
 *
 *  (1) MONOTONIC_COARSE <= MONOTONIC, and it never goes back.
 *  (2) offset_ns <= BOOTTIME - MONOTONIC: of the two clocks, BOOTTIME is read
 *      first, so the time between the readings makes the difference too small, and
 *      so does a suspend that falls there.
 *  (3) offset_ns never shrinks: a smaller measurement is dropped.
 *
 * Hence the sum never goes back (1, 3) and never runs ahead of BOOTTIME (1, 2).
 */
#include "base/clock.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/timex.h>

#include "base/bytes.h"
#include "base/calendar.h"
#include "base/io.h"
#include "base/uuid7.h"

#define MS_PER_DAY (INT64_C(24) * 3600 * HX_MS_PER_S)

enum { BOOT_OFFSET_REFRESH_S = 1 };

static int64_t read_ns(clockid_t id)
{
	struct timespec time;
	int failed = clock_gettime(id, &time);

	assert(!failed);
	return time.tv_sec * HX_NS_PER_S + time.tv_nsec;
}

int64_t hx_clock_mono_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

static void refresh_offset(
	struct hx_boot_clock *boot_clock, int64_t coarse_ns, hx_clock_read_fn *read)
{
	int64_t known = atomic_load_explicit(&boot_clock->offset_ns, memory_order_relaxed);
	int64_t boot_ns = read(CLOCK_BOOTTIME);
	int64_t offset = boot_ns - read(CLOCK_MONOTONIC);

	while (known < offset &&
	       !atomic_compare_exchange_weak_explicit(
		       &boot_clock->offset_ns, &known, offset, memory_order_relaxed,
		       memory_order_relaxed))
		continue;
	/* Release: a thread that sees the new time also sees an offset, even on the first call. */
	atomic_store_explicit(
		&boot_clock->refresh_at_ns, coarse_ns + BOOT_OFFSET_REFRESH_S * HX_NS_PER_S,
		memory_order_release);
}

int64_t hx_boot_clock_ns(struct hx_boot_clock *boot_clock, hx_clock_read_fn *read)
{
	int64_t coarse_ns = read(CLOCK_MONOTONIC_COARSE);

	/* Several threads may refresh at once, which costs little and harms nothing. */
	if (coarse_ns >= atomic_load_explicit(&boot_clock->refresh_at_ns, memory_order_acquire))
		refresh_offset(boot_clock, coarse_ns, read);
	return coarse_ns + atomic_load_explicit(&boot_clock->offset_ns, memory_order_relaxed);
}

static int64_t system_wall_ms(void *context)
{
	(void)context;
	return read_ns(CLOCK_REALTIME) / HX_NS_PER_MS;
}

static int64_t system_boot_ms(void *context)
{
	(void)context;
	return read_ns(CLOCK_BOOTTIME) / HX_NS_PER_MS;
}

static int64_t cheap_boot_ms(void *context)
{
	static struct hx_boot_clock boot_clock = {INT64_MIN, INT64_MIN};

	(void)context;
	return hx_boot_clock_ns(&boot_clock, read_ns) / HX_NS_PER_MS;
}

static void system_boot_id(void *context, unsigned char boot_id[HAPAX_BOOT_ID_SIZE])
{
	const struct hx_io *io = hx_io_system();
	char text[HX_UUID_TEXT_SIZE];
	ssize_t size = -1;
	int file;

	(void)context;
	file = io->ops->open(io->context, "/proc/sys/kernel/random/boot_id", HX_IO_READ, 0);
	if (file >= 0) {
		size = hx_io_read_full(io, file, text, sizeof(text), 0);
		(void)io->ops->close(io->context, file);
	}
	if (size != HX_UUID_TEXT_SIZE || !hx_uuid7_parse(hx_bytes(text, sizeof(text)), boot_id))
		memset(boot_id, 0, HAPAX_BOOT_ID_SIZE);
}

const struct hapax_clock *hapax_clock_system(void)
{
	static const struct hapax_clock system_clock = {
		.wall_ms = system_wall_ms,
		.boot_ms = system_boot_ms,
		.boot_id = system_boot_id,
	};

	return &system_clock;
}

const struct hapax_clock *hx_clock_cheap(const struct hapax_clock *clock)
{
	static const struct hapax_clock cheap_clock = {
		.wall_ms = system_wall_ms,
		.boot_ms = cheap_boot_ms,
		.boot_id = system_boot_id,
	};

	return clock == hapax_clock_system() ? &cheap_clock : clock;
}

bool hx_clock_is_synchronized(void)
{
	struct timex timex = {.modes = 0};

	/* Where a sandbox forbids to ask, nothing is known to be wrong. */
	return adjtimex(&timex) != TIME_ERROR;
}

bool hx_clock_boot_id_is_known(const unsigned char boot_id[HAPAX_BOOT_ID_SIZE])
{
	static const unsigned char unknown[HAPAX_BOOT_ID_SIZE];

	return memcmp(boot_id, unknown, HAPAX_BOOT_ID_SIZE) != 0;
}

bool hx_clock_boot_id_equal(
	const unsigned char a[HAPAX_BOOT_ID_SIZE], const unsigned char b[HAPAX_BOOT_ID_SIZE])
{
	return hx_clock_boot_id_is_known(a) && memcmp(a, b, HAPAX_BOOT_ID_SIZE) == 0;
}

void hx_clock_format_utc(int64_t ms, char out[32])
{
	int64_t day, rest;
	int second;
	struct hx_date date;

	ms = ms < HX_UTC_MS_MIN ? HX_UTC_MS_MIN : ms > HX_UTC_MS_MAX ? HX_UTC_MS_MAX : ms;
	day = ms / MS_PER_DAY;
	rest = ms % MS_PER_DAY;
	if (rest < 0) {
		day -= 1;
		rest += MS_PER_DAY;
	}
	date = hx_calendar_date(day);
	second = (int)(rest / HX_MS_PER_S);
	(void)snprintf(
		out, 32, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", date.year, date.month, date.day,
		second / 3600, second / 60 % 60, second % 60, (int)(rest % HX_MS_PER_S));
}

int64_t hx_clock_wall_ms(void)
{
	const struct hapax_clock *clock = hapax_clock_system();

	return clock->wall_ms(clock->context);
}
