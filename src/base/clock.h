/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - the clock seam: the system's clock, UTC text.
 *
 * Time reaches the library through struct hapax_clock only; this is the one place that asks the
 * kernel. hapax_clock_system()'s boot_ms is CLOCK_BOOTTIME itself, so that all processes on a
 * machine agree. hx_clock_cheap() is for hot paths of a store that belongs to one process.
 *
 * Threads: any.
 */
#ifndef HX_CLOCK_H
#define HX_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <hapax/bytes.h>
#include <hapax/clock.h>

#include "base/time.h"

/* Nanoseconds of CLOCK_MONOTONIC, for deadlines and measurements. */
int64_t hx_clock_mono_ns(void);

/* The system's wall clock, for display and for keys with a date. */
int64_t hx_clock_wall_ms(void);

/* Whether NTP or another source keeps the wall clock right, as far as the kernel knows (E16). */
bool hx_clock_is_synchronized(void);

/*
 * A clock's boot_id() returns all zeros if the boot is unknown, as in a container without /proc.
 * Two unknown boots are not the same boot: compare boot IDs with hx_clock_boot_id_equal(), which is
 * false if either is unknown.
 */
bool hx_clock_boot_id_is_known(const unsigned char boot_id[HAPAX_BOOT_ID_SIZE]);
bool hx_clock_boot_id_equal(
	const unsigned char a[HAPAX_BOOT_ID_SIZE], const unsigned char b[HAPAX_BOOT_ID_SIZE]);

/*
 * A cheap replacement for clock, if its readings are not compared with other processes': the system
 * clock with a cheap boot_ms, or clock itself if it is another one. The cheap boot_ms never goes
 * back and never runs ahead of CLOCK_BOOTTIME. It may be late: always by a timer tick (1 to 10 ms),
 * and by the length of a suspend for up to a second after waking. Late is safe within one process:
 * leases and records end late, never early. Other processes would read such times as lying in the
 * past.
 */
const struct hapax_clock *hx_clock_cheap(const struct hapax_clock *clock);

/*
 * The cheap boot clock behind hx_clock_cheap(), apart so that tests can feed it a
 * suspend. offset_ns is at most BOOTTIME - MONOTONIC and only ever grows; both
 * members begin as INT64_MIN.
 */
typedef int64_t hx_clock_read_fn(clockid_t id);

struct hx_boot_clock {
	_Atomic int64_t offset_ns;
	_Atomic int64_t refresh_at_ns; /* in CLOCK_MONOTONIC_COARSE */
};

int64_t hx_boot_clock_ns(struct hx_boot_clock *boot_clock, hx_clock_read_fn *read);

/* The first millisecond of the year 0 and the last of 9999. */
#define HX_UTC_MS_MIN INT64_C(-62167219200000)
#define HX_UTC_MS_MAX INT64_C(253402300799999)

/*
 * "2026-11-15T20:22:15.123Z". Times outside the years 0000 to 9999 are clamped to
 * the first or last millisecond of that range, so the text is always RFC 3339.
 */
void hx_clock_format_utc(int64_t ms, char out[32]);

#endif
