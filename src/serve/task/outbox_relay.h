/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox_relay.h - the relay of an outbox inside the daemon, by `outbox` of the configuration.
 *
 * hapax_relay_run() on its own thread (background.h). The relay itself waits out an outage of
 * database or broker. An initial error (no table, a wrong password) ends it, and it is retried.
 * /healthz reports both.
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
	struct hapax_relay_stats past; /* of ended relays. Locks: background.mutex */
};

extern const struct hx_background_ops hx_outbox_relay_ops;

/* Since the daemon started. False: there is no outbox. */
bool hx_outbox_relay_stats(struct hx_outbox_relay *relay, struct hapax_relay_stats *ret_stats);

#endif
