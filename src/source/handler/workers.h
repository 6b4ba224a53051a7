/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workers.h - a handler that calls functions, on threads that may block.
 *
 * A message is queued. A worker takes it, calls its route's function and adds it to the list of
 * ended ones, which the consumer processes in its next turn. Without workers, the function is
 * called at once, on the consumer's thread.
 *
 * Threads: start and turn are the consumer's.
 */
#ifndef HX_SOURCE_HANDLER_WORKERS_H
#define HX_SOURCE_HANDLER_WORKERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/thread.h"
#include "source/handler/handler.h"

struct hx_workers {
	struct hx_handler base;
	void (*wake)(void *context); /* asks the consumer for a turn */
	void *wake_context;
	struct hx_thread *threads;
	size_t thread_count;
	struct hx_mutex mutex;
	struct hx_cond cond;
	/* Locks: mutex for everything below. */
	struct hx_in_flight *first;
	struct hx_in_flight *last;
	struct hx_in_flight *ended;
	bool is_stopped;
};

/* count 0: no thread. On failure nothing is left behind. */
enum hapax_status hx_workers_init(
	struct hx_workers *workers, size_t count, void (*wake)(void *context), void *wake_context,
	struct hapax_error *err);

/* Waits for running functions. Zero is allowed. */
void hx_workers_done(struct hx_workers *workers);

/* The message of this work. */
struct hx_in_flight *hx_workers_in_flight(const struct hapax_work *work);

#endif
