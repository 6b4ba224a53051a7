/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock_mark.h - the store's own clock: never back, never far ahead at once.
 *
 * A mark is one reading of the clock that can be kept in a file. Within the boot that made it,
 * time is the mark plus the difference in boot time, exact and immune to changes of the wall
 * clock. After a reboot the wall clock is trusted for at most step_ms_max ahead. The rest is
 * owed and paid back by running 10 % fast. So a record may expire late, never early (I8).
 *
 * All readers of the same mark compute the same time. Within a boot a mark needs to be written
 * only to keep its age bounded.
 */
#ifndef HX_STORE_CLOCK_MARK_H
#define HX_STORE_CLOCK_MARK_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/clock.h>

struct hx_clock_mark {
	int64_t store_ms; /* the store's time at the mark */
	int64_t boot_ms;  /* boot_ms() at the mark */
	int64_t owed_ms;  /* how far the store was behind the wall clock then, or 0 */
	unsigned char boot_id[HAPAX_BOOT_ID_SIZE];
};

/* The first mark of a new store: the wall clock, unchanged. */
void hx_clock_mark_init(struct hx_clock_mark *mark, const struct hapax_clock *clock);

/* Was the mark made in this boot? Otherwise renew it before use. */
bool hx_clock_mark_is_current(const struct hx_clock_mark *mark, const struct hapax_clock *clock);

/* Make a mark of an earlier boot current. */
void hx_clock_mark_reboot(
	struct hx_clock_mark *mark, const struct hapax_clock *clock, int64_t step_ms_max);

/* The store's time now. The mark must be current. */
int64_t hx_clock_mark_now(const struct hx_clock_mark *mark, const struct hapax_clock *clock);

/* Move the mark to now; it reads the same afterwards. */
void hx_clock_mark_advance(struct hx_clock_mark *mark, const struct hapax_clock *clock);

#endif
