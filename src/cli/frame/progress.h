/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - one line of progress on the terminal during long work.
 *
 * The line appears after a second, and only if standard error is a terminal: shorter work ends
 * before the line could be read, and a log file needs no such lines.
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

/* Is a new line due? Ask before composing it. */
bool hx_progress_is_due(const struct hx_progress *progress);

/* Replace the last line, if a new one is due. */
__attribute__((format(printf, 2, 3))) void hx_progress_show(
	struct hx_progress *progress, const char *format, ...);

/* The same with a bar: part of whole, and the unit. whole may be 0. */
void hx_progress_bar(struct hx_progress *progress, const char *what, uint64_t part, uint64_t whole);

/* The same for a share of 0 to 1, with the count so far and its rate over elapsed_ns. */
void hx_progress_rate(
	struct hx_progress *progress, const char *what, double share, uint64_t count,
	int64_t elapsed_ns);

/* Erase the line. */
void hx_progress_done(struct hx_progress *progress);

#endif
