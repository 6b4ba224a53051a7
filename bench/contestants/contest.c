/* SPDX-License-Identifier: Apache-2.0 */
#include "contest.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool first_measure;

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now) != 0)
		contest_fail("clock %d cannot be read", (int)clock);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void contest_start(struct contest_time *time)
{
	time->wall_ns -= clock_ns(CLOCK_MONOTONIC);
	time->cpu_ns -= clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void contest_stop(struct contest_time *time)
{
	time->cpu_ns += clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	time->wall_ns += clock_ns(CLOCK_MONOTONIC);
}

void contest_run(
	const char *contestant, const char *version, contest_round_fn *round, void *context)
{
	char line[256];

	printf("{\"contestant\":\"%s\",\"version\":\"%s\"}\n", contestant, version);
	fflush(stdout);
	for (uint64_t seed = 1; fgets(line, sizeof(line), stdin) != NULL; seed++) {
		putchar('{');
		first_measure = true;
		round(seed, context);
		puts("}");
		fflush(stdout);
	}
}

static void print_name(const char *name)
{
	printf("%s\"%s\":", first_measure ? "" : ",", name);
	first_measure = false;
}

void contest_print_time(const char *name, const struct contest_time *time, uint64_t ops)
{
	print_name(name);
	printf("{\"ops\":%llu,\"wall_ns\":%lld,\"cpu_ns\":%lld}", (unsigned long long)ops,
	       (long long)time->wall_ns, (long long)time->cpu_ns);
}

void contest_print_value(const char *name, double value)
{
	print_name(name);
	printf("%.6g", value);
}

uint64_t contest_resident_bytes(void)
{
	char line[256];
	unsigned long long kib = 0;
	bool found = false;
	FILE *file = fopen("/proc/self/smaps_rollup", "re");

	if (file == NULL)
		contest_fail("/proc/self/smaps_rollup cannot be opened");
	while (!found && fgets(line, sizeof(line), file) != NULL) {
		found = strncmp(line, "Rss:", 4) == 0;
		if (found)
			kib = strtoull(line + 4, NULL, 10);
	}
	fclose(file);
	if (!found)
		contest_fail("/proc/self/smaps_rollup has no Rss");
	return kib * 1024;
}

uint64_t contest_parse_count(const char *text)
{
	char *end = NULL;

	errno = 0;

	unsigned long long value = strtoull(text, &end, 10);

	if (errno != 0 || end == text || *end != '\0')
		contest_fail("'%s' is not a count", text);
	return value;
}

void contest_fail(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

void contest_expect_ok(enum hapax_status status, const struct hapax_error *err, const char *what)
{
	if (status != HAPAX_OK)
		contest_fail("%s: %s", what, err->message);
}
