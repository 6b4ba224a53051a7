/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_listener.h - a connection over which the server tells that claims came to their ends.
 *
 * It is opened when somebody watches the store and is answered IN_PROGRESS for the first time,
 * so that short processes have no connection more, and opened again when it is lost. Claims
 * that are answered IN_PROGRESS while it listens are marked in the server (hapax_await() in
 * operate.sql), whose end is then told: a NOTIFY for every completion would make all
 * commits of the database wait for each other. What is told while there is no connection is
 * not heard: whoever waits for a record also asks now and then.
 *
 * Threads: the I/O thread of the client, but where it says so.
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
	unsigned failures; /* one after the other */
	bool is_wanted;
	bool is_listening;
	bool is_muted;
};

/* NO_MEMORY: nothing was made. The rest of listener is zero. */
enum hapax_status hx_postgres_listener_init(
	struct hx_postgres_listener *listener, struct hx_postgres_client *client);

/* Does nothing for zeros. */
void hx_postgres_listener_done(struct hx_postgres_listener *listener);

/* Somebody watches the store. Threads: any. */
void hx_postgres_listener_want(struct hx_postgres_listener *listener);

/* Announce nothing any more, from the return of this on. Threads: any; blocks. */
void hx_postgres_listener_mute(struct hx_postgres_listener *listener);

/* Close the connection for good. */
void hx_postgres_listener_stop(struct hx_postgres_listener *listener);

/* op was answered, and its completion has not run; holder is the token of the claim that it met. */
void hx_postgres_listener_note(
	struct hx_postgres_listener *listener, const struct hapax_op *op, uint64_t holder);

#endif
