/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - where a store takes its time from.
 *
 * A store keeps its own clock, made from these three readings, that never goes
 * back and never jumps ahead by more than max_clock_step at once. Give a clock of
 * your own to drive time in tests; NULL anywhere means the system's.
 *
 * Threads: the functions are called from any thread, several at a time.
 */
#ifndef HAPAX_CLOCK_H
#define HAPAX_CLOCK_H

#include <stdint.h>

#include <hapax/export.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HAPAX_BOOT_ID_SIZE = 16 };

struct hapax_clock {
	/* Milliseconds since 1970 UTC; may jump either way. */
	int64_t (*wall_ms)(void *context);
	/* Milliseconds since boot, suspend included; never goes back within a boot. */
	int64_t (*boot_ms)(void *context);
	/* Which boot this is: equal as long as boot_ms readings can be compared. */
	void (*boot_id)(void *context, unsigned char boot_id[HAPAX_BOOT_ID_SIZE]);
	void *context;
};

/* The system's clock. Borrowed, lives for ever. */
HAPAX_API const struct hapax_clock *hapax_clock_system(void);

#ifdef __cplusplus
}
#endif

#endif
