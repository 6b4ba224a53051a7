/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.c - the system's clock, a virtual one, UTC text.
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

#include "base/bytes.h"
#include "base/io.h"
#include "base/uuid7.h"

#define NS_PER_S  INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)
#define MS_PER_S  INT64_C(1000)

#define MS_PER_DAY (INT64_C(24) * 3600 * MS_PER_S)

/* The first millisecond of the year 0 and the last of 9999. */
#define UTC_MS_MIN INT64_C(-62167219200000)
#define UTC_MS_MAX INT64_C(253402300799999)

enum { BOOT_OFFSET_REFRESH_S = 1 };

static int64_t read_ns(clockid_t id)
{
	struct timespec time;
	int failed = clock_gettime(id, &time);

	assert(!failed);
	return time.tv_sec * NS_PER_S + time.tv_nsec;
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
	/* Release: who sees the new time also sees an offset, on the first call too. */
	atomic_store_explicit(
		&boot_clock->refresh_at_ns, coarse_ns + BOOT_OFFSET_REFRESH_S * NS_PER_S,
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
	return read_ns(CLOCK_REALTIME) / NS_PER_MS;
}

static int64_t system_boot_ms(void *context)
{
	(void)context;
	return read_ns(CLOCK_BOOTTIME) / NS_PER_MS;
}

static int64_t cheap_boot_ms(void *context)
{
	static struct hx_boot_clock boot_clock = {INT64_MIN, INT64_MIN};

	(void)context;
	return hx_boot_clock_ns(&boot_clock, read_ns) / NS_PER_MS;
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
	if (size != HX_UUID_TEXT_SIZE || !hx_uuid_parse(hx_bytes(text, sizeof(text)), boot_id))
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

bool hx_boot_id_is_known(const unsigned char boot_id[HAPAX_BOOT_ID_SIZE])
{
	static const unsigned char unknown[HAPAX_BOOT_ID_SIZE];

	return memcmp(boot_id, unknown, HAPAX_BOOT_ID_SIZE) != 0;
}

bool hx_boot_id_equal(
	const unsigned char a[HAPAX_BOOT_ID_SIZE], const unsigned char b[HAPAX_BOOT_ID_SIZE])
{
	return hx_boot_id_is_known(a) && memcmp(a, b, HAPAX_BOOT_ID_SIZE) == 0;
}

static int64_t virtual_wall_ms(void *context)
{
	struct hx_virtual_clock *vc = context;

	return atomic_load(&vc->wall_ms);
}

static int64_t virtual_boot_ms(void *context)
{
	struct hx_virtual_clock *vc = context;

	return atomic_load(&vc->boot_ms);
}

static void virtual_boot_id(void *context, unsigned char boot_id[HAPAX_BOOT_ID_SIZE])
{
	struct hx_virtual_clock *vc = context;
	uint64_t number = atomic_load(&vc->boot_number);

	memset(boot_id, 0, HAPAX_BOOT_ID_SIZE);
	memcpy(boot_id, &number, sizeof(number));
}

void hx_virtual_clock_init(struct hx_virtual_clock *vc, int64_t wall_ms)
{
	atomic_init(&vc->wall_ms, wall_ms);
	atomic_init(&vc->boot_ms, 0);
	/* From 1: the id of boot 0 would read as unknown. */
	atomic_init(&vc->boot_number, 1);
	vc->clock = (struct hapax_clock){
		.wall_ms = virtual_wall_ms,
		.boot_ms = virtual_boot_ms,
		.boot_id = virtual_boot_id,
		.context = vc,
	};
}

const struct hapax_clock *hx_virtual_clock_clock(struct hx_virtual_clock *vc)
{
	return &vc->clock;
}

void hx_virtual_clock_advance(struct hx_virtual_clock *vc, int64_t ms)
{
	assert(ms >= 0);
	(void)atomic_fetch_add(&vc->boot_ms, ms);
	(void)atomic_fetch_add(&vc->wall_ms, ms);
}

void hx_virtual_clock_set_wall(struct hx_virtual_clock *vc, int64_t wall_ms)
{
	atomic_store(&vc->wall_ms, wall_ms);
}

void hx_virtual_clock_reboot(struct hx_virtual_clock *vc)
{
	(void)atomic_fetch_add(&vc->boot_number, 1);
	atomic_store(&vc->boot_ms, 0);
}

/*
 * Days and dates of the Gregorian calendar, extended backwards. A year is counted
 * from its first of March: the leap day then comes last, and the lengths of the
 * months before it follow (153 * month + 2) / 5. One cycle of 400 years is added
 * to keep what is divided positive; the calendar repeats after it.
 */
enum {
	DAYS_PER_YEAR = 365,
	DAYS_PER_4_YEARS = 4 * DAYS_PER_YEAR + 1,
	DAYS_PER_100_YEARS = 25 * DAYS_PER_4_YEARS - 1,
	DAYS_PER_400_YEARS = 4 * DAYS_PER_100_YEARS + 1,
	/* From 1 March of the year -400 to 1 January 1970. */
	DAYS_BEFORE_1970 = 719468 + DAYS_PER_400_YEARS,
};

struct date {
	int year;
	int month; /* 1 .. 12 */
	int day;   /* 1 .. 31 */
};

static int smaller(int a, int b)
{
	return a < b ? a : b;
}

static struct date date_from_day(int day_since_1970)
{
	int day = day_since_1970 + DAYS_BEFORE_1970;
	int cycles, centuries, fours, years, month;
	struct date date;

	assert(day >= 0);
	cycles = day / DAYS_PER_400_YEARS;
	day %= DAYS_PER_400_YEARS;
	/* The last century, and the last year of four, are a day longer. */
	centuries = smaller(day / DAYS_PER_100_YEARS, 3);
	day -= centuries * DAYS_PER_100_YEARS;
	fours = day / DAYS_PER_4_YEARS;
	day %= DAYS_PER_4_YEARS;
	years = smaller(day / DAYS_PER_YEAR, 3);
	day -= years * DAYS_PER_YEAR;

	month = (5 * day + 2) / 153;
	date.year = 400 * (cycles - 1) + 100 * centuries + 4 * fours + years + (month >= 10);
	date.month = month < 10 ? month + 3 : month - 9;
	date.day = day - (153 * month + 2) / 5 + 1;
	return date;
}

static int day_from_date(struct date date)
{
	int month = date.month > 2 ? date.month - 3 : date.month + 9;
	int year = date.year + 400 - (date.month <= 2);

	return year * DAYS_PER_YEAR + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 +
		date.day - 1 - DAYS_BEFORE_1970;
}

void hx_clock_format_utc(int64_t ms, char out[32])
{
	int64_t day, rest;
	int second;
	struct date date;

	ms = ms < UTC_MS_MIN ? UTC_MS_MIN : ms > UTC_MS_MAX ? UTC_MS_MAX : ms;
	day = ms / MS_PER_DAY;
	rest = ms % MS_PER_DAY;
	if (rest < 0) {
		day -= 1;
		rest += MS_PER_DAY;
	}
	date = date_from_day((int)day);
	second = (int)(rest / MS_PER_S);
	(void)snprintf(
		out, 32, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", date.year, date.month, date.day,
		second / 3600, second / 60 % 60, second % 60, (int)(rest % MS_PER_S));
}

/*
 * Match text against a pattern in which a digit stands for a digit and anything
 * else for itself.
 */
static bool matches(const char *text, const char *pattern, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (pattern[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != pattern[i])
			return false;
	}
	return true;
}

static int number(const char *digits, size_t count)
{
	int value = 0;

	for (size_t i = 0; i < count; i++)
		value = 10 * value + (digits[i] - '0');
	return value;
}

bool hx_clock_parse_utc(struct hapax_bytes text, int64_t *ret_ms)
{
	static const char whole[] = "0000-00-00T00:00:00Z";
	static const char parts[] = "0000-00-00T00:00:00.000Z";
	const char *t = text.data;
	int hour, minute, second, ms, day;
	struct date date, same;

	if (text.size == sizeof(whole) - 1 && matches(t, whole, text.size))
		ms = 0;
	else if (text.size == sizeof(parts) - 1 && matches(t, parts, text.size))
		ms = number(t + 20, 3);
	else
		return false;

	date = (struct date){number(t, 4), number(t + 5, 2), number(t + 8, 2)};
	hour = number(t + 11, 2);
	minute = number(t + 14, 2);
	second = number(t + 17, 2);
	if (date.month < 1 || date.month > 12 || hour > 23 || minute > 59 || second > 59)
		return false;
	/* A day that does not exist comes back as another one. */
	day = day_from_date(date);
	same = date_from_day(day);
	if (same.month != date.month || same.day != date.day)
		return false;
	*ret_ms = day * MS_PER_DAY + ((hour * 60 + minute) * 60 + second) * MS_PER_S + ms;
	return true;
}
