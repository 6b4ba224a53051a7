/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contest.h - a contestant's side of the protocol in bench/README.md.
 *
 * A contestant says who it is in one line of JSON, then waits: each line on its
 * standard input asks for one round, which it answers with one line. What is not
 * worth measuring (making keys, freeing memory) it does outside of the clock.
 */
#ifndef BENCH_CONTEST_H
#define BENCH_CONTEST_H

#include <stdint.h>

#include <hapax/error.h>

/* Wall clock and CPU time of the whole process, added up over the parts of a pass. */
struct contest_time {
	int64_t wall_ns;
	int64_t cpu_ns;
};

/* Start or go on: subtracts now. contest_stop() adds it. */
void contest_start(struct contest_time *time);
void contest_stop(struct contest_time *time);

/* Runs one round and prints its measures by the functions below. */
typedef void contest_round_fn(uint64_t seed, void *context);

/* Say hello, then a round for every line of input, seeds from 1 up. */
void contest_run(
	const char *contestant, const char *version, contest_round_fn *round, void *context);

/* "name":{"ops":…,"wall_ns":…,"cpu_ns":…} */
void contest_print_time(const char *name, const struct contest_time *time, uint64_t ops);

/* "name":value */
void contest_print_value(const char *name, double value);

/* Rss of this process in bytes, exact, from smaps_rollup. */
uint64_t contest_resident_bytes(void);

/* A whole number from the command line, or the end of the program. */
uint64_t contest_parse_count(const char *text);

/* Print to stderr and exit with 1: a contestant that answers wrongly has no figure. */
void contest_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* The same unless status is HAPAX_OK. */
void contest_expect_ok(enum hapax_status status, const struct hapax_error *err, const char *what);

#endif
