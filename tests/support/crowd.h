/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowd.h - threads that all do one thing at the same moment, round after round.
 *
 * The threads live as long as the crowd, so that a round costs two barriers and
 * not a hundred thread starts. cmocka's assertions jump: use them on the main
 * thread only, after crowd_run() has returned.
 */
#ifndef TEST_SUPPORT_CROWD_H
#define TEST_SUPPORT_CROWD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* Runs in each thread of the crowd; index is 0 .. count - 1. */
typedef void crowd_fn(size_t index, void *context);

struct crowd {
	pthread_barrier_t begin;
	pthread_barrier_t end;
	crowd_fn *fn;
	void *context;
	bool closing;
	size_t count;
	struct crowd_member *members;
};

/* Ends the program when threads cannot be had. */
void crowd_init(struct crowd *crowd, size_t count);
void crowd_done(struct crowd *crowd);

/* One round: all threads call fn at once; returns when the last one has returned. */
void crowd_run(struct crowd *crowd, crowd_fn *fn, void *context);

#endif
