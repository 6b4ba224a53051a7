/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.h - the daemon: doors in front of one store.
 *
 * hx_serve_run() opens the store and the doors and logs their addresses. It returns when a signal
 * or a permanent failure of the store has stopped it. TERM and INT drain: the daemon is not ready,
 * accepts no new connections, and finishes requests in progress. A second one does not wait. HUP
 * reads the configuration again, and keeps the old one if the new one is invalid. USR1 changes
 * nothing; USR2 logs the state.
 *
 * Threads: hx_serve_run() blocks, and is for the main thread of a program.
 */
#ifndef HX_SERVE_H
#define HX_SERVE_H

#include <hapax/error.h>

#include "config/config.h"

enum hx_serve_end {
	HX_SERVE_STOPPED, /* a signal; all work in progress was finished */
	HX_SERVE_CUT,     /* a second signal, a drain timeout, or an unavailable store */
	HX_SERVE_LATCHED, /* the store failed permanently: restart to find out what it holds */
	HX_SERVE_FAILED,  /* could not start: err */
};

/*
 * Takes over config. source is its origin, for HUP; it and its data outlive the call. If it names no
 * file, a reload looks for one.
 */
enum hx_serve_end hx_serve_run(
	struct hx_config *config, struct hx_config_source *source, struct hapax_error *err);

#endif
