/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp_errands.h - the thread that runs the errands of the Redis door (resp/errand.h).
 *
 * One for all loops: errands take turns, piece by piece, so that a walk through many keys
 * holds up no other one for long, and nobody's commands at all.
 *
 * Threads: give, any loop's; start and stop, the control loop's.
 */
#ifndef HX_SERVE_RESP_RESP_ERRANDS_H
#define HX_SERVE_RESP_RESP_ERRANDS_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/error.h>

#include "base/thread.h"
#include "net/reactor.h"

struct hx_resp_errand;

/* An errand on its way; part of what waits for it. */
struct hx_resp_trip {
	struct hx_resp_errand *errand;
	struct hx_reactor *reactor; /* where done is posted */
	struct hx_task done;
	struct hx_resp_trip *next;
};

struct hx_resp_errands {
	struct hx_thread thread;
	bool runs;
	struct hx_mutex mutex;
	struct hx_cond wake;
	struct hx_event ended;
	/* Locks: mutex. */
	bool stops;
	struct hx_resp_trip *first;
	struct hx_resp_trip *last;
};

/* errands is zeros. */
enum hapax_status hx_resp_errands_start(struct hx_resp_errands *errands, struct hapax_error *err);

/* Run trip->errand, then post trip->done to trip->reactor. */
void hx_resp_errands_give(struct hx_resp_errands *errands, struct hx_resp_trip *trip);

/*
 * Nothing is given any more. False: the store has not answered by deadline_ns, so the thread
 * is still in it, and it must not be closed. Does nothing for one that was not started.
 */
bool hx_resp_errands_stop(struct hx_resp_errands *errands, int64_t deadline_ns);

#endif
