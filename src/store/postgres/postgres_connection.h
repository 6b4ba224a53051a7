/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_connection.h - one connection to a PostgreSQL server, in libpq's pipeline mode.
 *
 *	CLOSED ──open──▶ CONNECTING ──▶ GREETING ──▶ IDLE ◀──▶ BUSY
 *	   ▲                  │             │          │         │
 *	   └──────────────────┴─────────────┴── lost ──┴─────────┘
 *
 * libpq owns the socket; the reactor only reports when it is ready. At most one transaction is in
 * progress: one statement and a sync. Operations are answered when the sync returns, because only
 * then are they committed.
 *
 * Threads: the reactor's.
 */
#ifndef HX_STORE_POSTGRES_POSTGRES_CONNECTION_H
#define HX_STORE_POSTGRES_POSTGRES_CONNECTION_H

#include <stdbool.h>

#include <libpq-fe.h>

#include "net/reactor.h"
#include "store/postgres/postgres_session.h"

enum hx_postgres_connection_state {
	HX_POSTGRES_CLOSED,
	HX_POSTGRES_CONNECTING,
	HX_POSTGRES_GREETING,
	HX_POSTGRES_IDLE,
	HX_POSTGRES_BUSY,
};

struct hx_postgres_connection;

struct hx_postgres_connection_ops {
	/* The connection is IDLE for the first time. */
	void (*on_ready)(struct hx_postgres_connection *connection);
	/* The transaction has ended, and the connection is IDLE. Owned: rows, or an error. */
	void (*on_answer)(struct hx_postgres_connection *connection, PGresult *result);
	/* The connection is CLOSED; err is the reason. A transaction in progress has no answer. */
	void (*on_close)(struct hx_postgres_connection *connection, const struct hapax_error *err);
	/* A NOTIFY with that text arrived. NULL: the connection does not listen. */
	void (*on_notice)(struct hx_postgres_connection *connection, const char *text);
};

struct hx_postgres_connection {
	const struct hx_postgres_connection_ops *ops;
	void *context;
	struct hx_reactor *reactor;
	struct hx_postgres_session *session;
	const struct hx_postgres_place *place;
	int64_t timeout_ms;
	enum hx_postgres_connection_state state;
	PGconn *conn;
	struct hx_watch watch;
	bool is_watched;
	struct hx_timer deadline;
	PGresult *result; /* of the transaction in progress, until its sync */
	bool is_flushing; /* the kernel does not have all of it yet */
	unsigned step;    /* of the greeting */
};

/* NO_MEMORY: nothing changed. */
enum hapax_status hx_postgres_connection_init(
	struct hx_postgres_connection *connection, struct hx_reactor *reactor);
void hx_postgres_connection_done(struct hx_postgres_connection *connection);

/* Open it; on_ready or on_close follows, perhaps before this returns. */
void hx_postgres_connection_open(struct hx_postgres_connection *connection);

/* Calls no callback. */
void hx_postgres_connection_close(struct hx_postgres_connection *connection);

/* Close it; on_close follows at once. */
void hx_postgres_connection_fail(
	struct hx_postgres_connection *connection, const struct hapax_error *err);

/*
 * Send libpq's buffer and a sync: the connection is BUSY. False: it is closed, and on_close was
 * called.
 */
bool hx_postgres_connection_go(struct hx_postgres_connection *connection);

/* The delay before the next attempt; grows with the failures, with jitter. */
int64_t hx_postgres_retry_ns(unsigned failures);

/* Can the server have seen all of the transaction in progress? */
static inline bool hx_postgres_connection_is_sent(const struct hx_postgres_connection *connection)
{
	return !connection->is_flushing;
}

#endif
