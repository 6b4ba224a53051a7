/* SPDX-License-Identifier: Apache-2.0 */
/*
 * durable.h - what the engines of the row "durable" have in common: a folder of their
 * own, threads that ask at once, batches, and how the figures are printed.
 *
 * An engine answers "is this the first time?" for keys of 36 bytes, durably, with a
 * value of 8 bytes. With --width W and --mode threads, W threads each commit one key at
 * a time; with --mode batch, one thread commits W keys at a time.
 */
#ifndef BENCH_DURABLE_H
#define BENCH_DURABLE_H

#include <stdint.h>

#include "keys.h"

struct durable_engine {
	const char *name;
	const char *version;
	/* Open a new store in folder, for so many threads. */
	void (*open)(const char *folder, uint64_t threads);
	/* Mark count keys in one commit; returns how many of them were new. */
	uint64_t (*mark)(uint64_t thread, const char (*keys)[KEY_TEXT_SIZE], uint64_t count);
	void (*close)(void);
	/* An option of the engine's own, or 0. */
	int (*option)(const char *text);
};

/* Parse the command line and run the contest. */
int durable_main(int argc, char **argv, const struct durable_engine *engine);

#endif
