/* SPDX-License-Identifier: Apache-2.0 */
/*
 * duration.h - lengths of time as people write them: 100ms, 5m, 1h30m, 7d, 1.5h.
 *
 * Numbers with a unit of w, d, h, m, s, ms; largest unit first, each at most once. A number may have a
 * fraction, as Go writes it (1h30m0.5s), if it names whole milliseconds: nothing is rounded. No sign
 * and no blanks, and no bare number: "30" could mean anything.
 *
 * Threads: any.
 */
#ifndef HX_DURATION_H
#define HX_DURATION_H

#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

enum { HX_DURATION_TEXT_SIZE = 48 };

/* INVALID, with the position in the message (0 is the first byte). */
enum hapax_status hx_duration_parse(
	struct hapax_bytes text, int64_t *ret_ms, struct hapax_error *err);

/*
 * The shortest text that parses back to ms, which is not negative: one unit (90m)
 * or all that are needed (1w1ms), whichever is shorter.
 */
void hx_duration_format(int64_t ms, char out[HX_DURATION_TEXT_SIZE]);

/* For logs: "250ms", "1s500ms", "5d2h": at most two units, rounded down. Negative is 0. */
void hx_duration_two_units(int64_t ms, char out[HX_DURATION_TEXT_SIZE]);

/* For people: "<1s", "42s", "3m20s", "5d2h": at most two units, rounded down. Negative is 0. */
void hx_duration_span(int64_t ms, char out[HX_DURATION_TEXT_SIZE]);

#endif
