/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.h - the daemon: doors in front of one store.
 *
 * hx_serve_run() opens the store and the doors, says on which addresses, and returns
 * when a signal or a store that failed for good has ended it. TERM and INT drain: no
 * longer ready, no new connections, requests in progress are finished. A second one
 * does not wait. HUP reads the configuration again, and keeps the old one if the new
 * one is not good. USR1 changes nothing, USR2 logs how it stands.
 *
 * Threads: hx_serve_run() blocks, and is for the main thread of a program.
 */
#ifndef HX_SERVE_H
#define HX_SERVE_H

#include <hapax/error.h>

#include "config/config.h"

enum hx_serve_end {
	HX_SERVE_STOPPED, /* a signal; all that was begun is finished */
	HX_SERVE_CUT,     /* a second signal, the time to drain was over, or the store is away */
	HX_SERVE_LATCHED, /* the store failed for good: start again to find out what is in it */
	HX_SERVE_FAILED,  /* it did not start: err */
};

/*
 * config is taken over. source is where it came from, for HUP; it and what it points at
 * outlive the call.
 */
enum hx_serve_end hx_serve_run(
	struct hx_config *config, const struct hx_config_source *source, struct hapax_error *err);

#endif
