/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ticker.h - the thread that ticks for callers without an event loop.
 *
 * Threads: any.
 */
#ifndef HX_PROCESSOR_TICKER_H
#define HX_PROCESSOR_TICKER_H

#include <stdbool.h>

#include <hapax/processor.h>

#include "base/thread.h"

struct hx_ticker {
	struct hx_mutex mutex;
	struct hx_cond changed;
	struct hx_thread thread;
	bool runs; /* Locks: mutex, as for all below */
	bool stops;
	bool is_due; /* tick again, whatever the time */
};

void hx_ticker_init(struct hx_ticker *ticker);

/* Start it unless it runs. */
enum hapax_status hx_ticker_start(struct hapax_processor *processor, struct hapax_error *err);

void hx_ticker_wake(struct hx_ticker *ticker);

/* Stop it if it runs, and free its memory. */
void hx_ticker_done(struct hx_ticker *ticker);

#endif
