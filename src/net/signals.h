/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.h - signals as events of a reactor, for programs.
 *
 * No handler runs: a signal is blocked and read from a descriptor, so its function runs on the loop
 * like all others. Open it before any thread is started.
 *
 * Threads: the reactor's thread.
 */
#ifndef HX_NET_SIGNALS_H
#define HX_NET_SIGNALS_H

#include <hapax/error.h>

#include "net/reactor.h"

struct hx_signals;

typedef void hx_signals_fn(struct hx_signals *signals, int signal);

struct hx_signals {
	struct hx_reactor *reactor;
	struct hx_watch watch;
	hx_signals_fn *fn;
	void *context;
};

/* wanted ends with 0, as {SIGTERM, SIGHUP, 0}. */
enum hapax_status hx_signals_open(
	struct hx_signals *signals, struct hx_reactor *reactor, const int *wanted,
	hx_signals_fn *fn, void *context, struct hapax_error *err);

/* The signals stay blocked. Does nothing for zeros. */
void hx_signals_close(struct hx_signals *signals);

#endif
