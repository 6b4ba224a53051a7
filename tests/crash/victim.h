/* SPDX-License-Identifier: Apache-2.0 */
/*
 * victim.h - a process that works on a store until it dies, and a journal outside of
 * it of what it was told.
 *
 * The victim claims and completes keys "LIFE/N", some at a time, and says each that
 * was acknowledged through a pipe. Whatever kills it, the journal is what the store
 * must keep: a key in it is never to be run again.
 */
#ifndef TEST_CRASH_VICTIM_H
#define TEST_CRASH_VICTIM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { VICTIM_LIVES_MAX = 4096 };

struct victim {
	const char *url;
	int life;
	uint32_t batch; /* keys in a submit */
	pid_t pid;
	int said; /* the end of the pipe that the parent reads */
};

/* How many keys of each life were acknowledged, in order. */
struct victim_journal {
	uint32_t counts[VICTIM_LIVES_MAX];
};

/* Fork it. The parent must have no thread and no open store. */
void victim_start(struct victim *victim);

/* Read until it has said so many; false: it ended before. */
bool victim_wait(struct victim *victim, uint32_t count, struct victim_journal *journal);

/* Read all that it said before it died, reap it; its exit code, or -1 when it was killed. */
int victim_end(struct victim *victim, struct victim_journal *journal);

/*
 * Open the store and claim every acknowledged key of lives [first, last]: all must be
 * replays with their results. Returns how many were lost, doubled or changed.
 */
uint64_t victim_verify(
	const char *url, const struct victim_journal *journal, int first, int last,
	uint64_t *ret_keys);

#endif
