/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_listener.h - a connection on which the server reports the ends of claims.
 *
 * It is opened when a watched store first answers IN_PROGRESS, so short processes have no extra
 * connection. It is reopened when lost. While it listens, a claim that is answered IN_PROGRESS
 * marks the record in the server (hapax_await() in operate.sql). The server reports the end of
 * marked claims only: a NOTIFY for every completion would serialize all commits of the database.
 * Notices sent while there is no connection are lost, so waiters also ask on a timer.
 *
 * Threads: the I/O thread of the client, except as noted.
 */
#ifndef HX_STORE_POSTGRES_POSTGRES_LISTENER_H
#define HX_STORE_POSTGRES_POSTGRES_LISTENER_H

#include <stdbool.h>

#include "base/thread.h"
#include "store/postgres/awaited.h"
#include "store/postgres/postgres_connection.h"

struct hx_postgres_client;

struct hx_postgres_listener {
	struct hx_postgres_connection connection;
	struct hx_postgres_client *client;
	struct hx_postgres_awaited awaited;
	struct hx_timer retry;
	struct hx_task want;
	struct hx_task mute;
	struct hx_event muted;
	unsigned failures; /* in a row */
	bool is_wanted;
	bool is_listening;
	bool is_muted;
};

/* NO_MEMORY: nothing was created. The rest of listener is zero. */
enum hapax_status hx_postgres_listener_init(
	struct hx_postgres_listener *listener, struct hx_postgres_client *client);

/* Does nothing for zeros. */
void hx_postgres_listener_done(struct hx_postgres_listener *listener);

/* The store has a watcher. Threads: any. */
void hx_postgres_listener_want(struct hx_postgres_listener *listener);

/* Announce nothing after this returns. Threads: any; blocks. */
void hx_postgres_listener_mute(struct hx_postgres_listener *listener);

/* Close the connection permanently. */
void hx_postgres_listener_stop(struct hx_postgres_listener *listener);

/* op was answered, and its completion has not run; holder is the token of the claim that it met. */
void hx_postgres_listener_note(
	struct hx_postgres_listener *listener, const struct hapax_op *op, uint64_t holder);

#endif
