/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual_clock.h - a clock that stands still until a test advances it.
 *
 * Threads: any.
 */
#ifndef HX_TEST_VIRTUAL_CLOCK_H
#define HX_TEST_VIRTUAL_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>

#include <hapax/clock.h>

struct hx_virtual_clock {
	_Atomic int64_t wall_ms;
	_Atomic int64_t boot_ms;
	_Atomic uint64_t boot_number;
	struct hapax_clock clock;
};

/* Starts at wall_ms in its first boot, with boot_ms 0. */
void hx_virtual_clock_init(struct hx_virtual_clock *vc, int64_t wall_ms);

/* Borrowed from vc. */
const struct hapax_clock *hx_virtual_clock_clock(struct hx_virtual_clock *vc);

/* Time passes: both readings grow by ms, which is not negative. */
void hx_virtual_clock_advance(struct hx_virtual_clock *vc, int64_t ms);

/* Sets the wall clock, in either direction; boot_ms does not change. */
void hx_virtual_clock_set_wall(struct hx_virtual_clock *vc, int64_t wall_ms);

/* A new boot id, boot_ms from 0, wall clock as it was. */
void hx_virtual_clock_reboot(struct hx_virtual_clock *vc);

#endif
