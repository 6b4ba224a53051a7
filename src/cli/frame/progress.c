/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.c - one line of progress on the terminal during long work.
 */
#include "cli/frame/progress.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/frame/report.h"

#define SHOWN_AFTER_NS INT64_C(1000000000)
#define INTERVAL_NS    INT64_C(200000000)

enum { BAR_COLUMNS = 30 };

void hx_progress_init(struct hx_progress *progress)
{
	*progress = (struct hx_progress){
		.is_terminal = isatty(STDERR_FILENO) != 0 && !hx_report_is_quiet(),
		.next_ns = hx_clock_mono_ns() + SHOWN_AFTER_NS,
	};
}

bool hx_progress_is_due(const struct hx_progress *progress)
{
	return progress->is_terminal && hx_clock_mono_ns() >= progress->next_ns;
}

void hx_progress_show(struct hx_progress *progress, const char *format, ...)
{
	va_list arguments;

	if (!hx_progress_is_due(progress))
		return;
	/* Return to column 0 and erase the rest of a longer line. */
	(void)fputc('\r', stderr);
	va_start(arguments, format);
	(void)vfprintf(stderr, format, arguments);
	va_end(arguments);
	(void)fputs("\033[K", stderr);
	(void)fflush(stderr);
	progress->is_shown = true;
	progress->next_ns = hx_clock_mono_ns() + INTERVAL_NS;
}

static void draw_bar(double share, char bar[BAR_COLUMNS + 1])
{
	for (int i = 0; i < BAR_COLUMNS; i++)
		bar[i] = i + 1 <= share * BAR_COLUMNS ? '#' : '.';
	bar[BAR_COLUMNS] = '\0';
}

void hx_progress_bar(struct hx_progress *progress, const char *what, uint64_t part, uint64_t whole)
{
	char bar[BAR_COLUMNS + 1];
	double share;

	if (!hx_progress_is_due(progress))
		return;
	/* whole was counted at the beginning; there may be more by now. */
	if (part > whole)
		whole = part;
	share = whole == 0 ? 0 : (double)part / (double)whole;
	draw_bar(share, bar);
	hx_progress_show(
		progress, "[%s] %3.0f %%  %" PRIu64 " of %" PRIu64 " %s", bar, share * 100.0, part,
		whole, what);
}

void hx_progress_rate(
	struct hx_progress *progress, const char *what, double share, uint64_t count,
	int64_t elapsed_ns)
{
	char bar[BAR_COLUMNS + 1];

	if (!hx_progress_is_due(progress))
		return;
	draw_bar(share, bar);
	hx_progress_show(
		progress, "[%s] %3.0f %%  %" PRIu64 " %s, %.0f/s", bar, share * 100.0, count, what,
		(double)count * (double)HX_NS_PER_S / (double)(elapsed_ns + 1));
}

void hx_progress_done(struct hx_progress *progress)
{
	if (progress->is_shown)
		(void)fputs("\r\033[K", stderr);
	progress->is_shown = false;
}
