/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox_relay.h - the relay of an outbox inside the daemon, by `outbox` of the configuration.
 *
 * hapax_relay_run() on a thread of its own (background.h). An outage of database or broker is
 * waited out by the relay itself; what was wrong from the beginning (no table, a wrong password)
 * ends it, and it is tried again. Either is told by /healthz.
 *
 * Threads: the control loop's.
 */
#ifndef HX_SERVE_TASK_OUTBOX_RELAY_H
#define HX_SERVE_TASK_OUTBOX_RELAY_H

#include <stdbool.h>

#include <hapax/outbox.h>

#include "serve/task/background.h"

struct hx_outbox_relay {
	struct hx_background background;
	struct hapax_relay_stats past; /* of relays that have ended. Locks: background.mutex */
};

extern const struct hx_background_ops hx_outbox_relay_ops;

/* Since the daemon started. False: there is no outbox. */
bool hx_outbox_relay_stats(struct hx_outbox_relay *relay, struct hapax_relay_stats *ret_stats);

#endif
