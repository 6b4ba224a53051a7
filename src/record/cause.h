/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cause.h - the event that a record was made for, as bytes.
 *
 * Stores keep a cause as one string of bytes and do not look into it; record.h of the library packs
 * and reads it. cause.c shows the layout.
 *
 * Threads: any; the functions keep no state.
 */
#ifndef HX_RECORD_CAUSE_H
#define HX_RECORD_CAUSE_H

#include <stdbool.h>

#include <hapax/record.h>

/* Empty, or sizes that add up. Cheap: for asserts. */
bool hx_cause_fits(struct hapax_bytes packed);

/* The same, every text is UTF-8 without NUL, and the time is of years 1 to 9999. For bytes from a disk or a peer. */
bool hx_cause_is_valid(struct hapax_bytes packed);

#endif
