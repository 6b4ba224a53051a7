/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - the time source of a store.
 *
 * A store derives its own clock from these three readings. That clock never goes back and never
 * jumps ahead by more than max_clock_step at once. Tests can pass a clock of their own; NULL means
 * the system clock.
 *
 * Threads: any thread may call the functions, several at a time.
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
	/* The ID of this boot. Readings of boot_ms are comparable while it stays the same. */
	void (*boot_id)(void *context, unsigned char boot_id[HAPAX_BOOT_ID_SIZE]);
	void *context;
};

/* The system clock. Borrowed, valid forever. */
HAPAX_API const struct hapax_clock *hapax_clock_system(void);

#ifdef __cplusplus
}
#endif

#endif
