/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - one line on the terminal while long work goes on.
 *
 * It appears after a second and only where standard error is a terminal: shorter work
 * is over before anybody has read it, and a log file wants no such lines.
 */
#ifndef HX_CLI_FRAME_PROGRESS_H
#define HX_CLI_FRAME_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct hx_progress {
	bool is_terminal;
	bool is_shown;
	int64_t next_ns;
};

void hx_progress_init(struct hx_progress *progress);

/* Is it time for a new line? Ask before it is made. */
bool hx_progress_is_due(const struct hx_progress *progress);

/* Show it in place of the last one, if it is due. */
__attribute__((format(printf, 2, 3))) void hx_progress_show(
	struct hx_progress *progress, const char *format, ...);

/* The same with a bar: part of whole, and what is counted. whole may be 0. */
void hx_progress_bar(struct hx_progress *progress, const char *what, uint64_t part, uint64_t whole);

/* Wipe it. */
void hx_progress_done(struct hx_progress *progress);

#endif
