/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_connection.h - a connection to one Redis server: dial, TLS, credentials, whole replies
 * in order, and the wait before the next attempt.
 *
 * Stores, sources and sinks embed one for each server and keep to themselves what they say. The
 * connection sends AUTH and SELECT as the URL asks for them (and wipes the password from the
 * buffer), lets the owner say what follows in the same turn, and hands over each reply as soon
 * as it is whole.
 *
 *	CLOSED ──open()──▶ DIALLING ──▶ GREETING ──ready()──▶ READY
 *	  ▲                    │            │  ▲──greet_again()─│
 *	  ├─── closed: false ──┴────────────┴───────────────────┤
 *	  └─── idle ─── WAITING ◀── closed: true ───────────────┘
 *
 * Rules:
 *  (1) A reply that nothing asked for, one that is larger than the owner expects, and one that
 *      is not RESP end the connection: no later byte can be told apart from an answer.
 *  (2) Everything up to READY has one deadline, that of open().
 *  (3) A server that wants a password or is loading its data ends the greeting with a message
 *      that says so. The owner never sees those replies.
 *  (4) Nothing is sent a second time, and nothing is opened, but by the owner.
 *
 * The stream is the owner's to write to, with hx_connection_write(): no copy or call lies
 * between. stream.written_bytes and stream.sent_bytes say what the server can have seen.
 *
 *	static enum hapax_status greet(struct hx_redis_connection *c)
 *	{
 *		return hx_connection_write(&c->stream, "*1\r\n$4\r\nPING\r\n", 14);
 *	}
 *	static bool reply(struct hx_redis_connection *c, struct hapax_bytes reply)
 *	{
 *		if (c->state == HX_REDIS_CONNECTION_GREETING)
 *			hx_redis_connection_ready(c);
 *		return true;
 *	}
 *	...
 *	hx_redis_connection_init(&c, &options, owner);
 *	hx_redis_connection_open(&c, &place.endpoints[0], hx_reactor_now_ns(&reactor) + limit_ns);
 *
 * Threads: the reactor's thread.
 */
#ifndef HX_NET_REDIS_CONNECTION_H
#define HX_NET_REDIS_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "net/connection.h"
#include "net/dial.h"
#include "net/redis_place.h"
#include "net/tls/tls.h"
#include "wire/resp/resp_reply.h"

struct hx_redis_connection;

struct hx_redis_connection_ops {
	/* Write what follows AUTH and SELECT. A failure ends the connection. */
	enum hapax_status (*greet)(struct hx_redis_connection *connection);

	/* The most bytes that the next reply may have; 0: none is due. Asked when READY. */
	size_t (*reply_size_max)(struct hx_redis_connection *connection);

	/*
	 * One whole reply, borrowed for the call: to the greeting, until ready() is called, then
	 * to the oldest command without one. May write and close. False: it makes no sense, and
	 * the connection ends.
	 */
	bool (*reply)(struct hx_redis_connection *connection, struct hapax_bytes reply);

	/* Every reply that has come was handed over. NULL: the owner does not need it. */
	void (*taken)(struct hx_redis_connection *connection);

	/*
	 * The attempt failed, or the connection is gone: no reply will come to what has none.
	 * Runs once for each open(), in the state that it ended in, so that nobody opens it yet.
	 * why->status is never HAPAX_OK. True: wait before idle, longer each time.
	 */
	bool (*closed)(struct hx_redis_connection *connection, const struct hapax_error *why);

	/*
	 * It may be opened again: closed has returned false, or the wait is over. Not called
	 * after hx_redis_connection_close(). NULL: the owner opens it when it needs it.
	 */
	void (*idle)(struct hx_redis_connection *connection);
};

/* What is pointed to outlives the connection. */
struct hx_redis_connection_options {
	const struct hx_redis_connection_ops *ops;
	struct hx_reactor *reactor;
	struct hx_resolver *resolver;
	struct hx_tls_context *tls;         /* NULL: plain */
	const struct hx_redis_place *place; /* user, password, db */
	struct hx_connection_limits limits;
	size_t kept_size;       /* of input and output each: memory that is always there */
	int64_t retry_ms_first; /* the wait doubles from the first to the last, with jitter */
	int64_t retry_ms_last;
};

enum hx_redis_connection_state {
	HX_REDIS_CONNECTION_CLOSED,
	HX_REDIS_CONNECTION_WAITING, /* for the next attempt */
	HX_REDIS_CONNECTION_DIALLING,
	HX_REDIS_CONNECTION_GREETING, /* connected; the owner is not content yet */
	HX_REDIS_CONNECTION_READY,
};

struct hx_redis_connection {
	struct hx_redis_connection_options options;
	void *context; /* the owner's */
	enum hx_redis_connection_state state;
	struct hx_dial dial;         /* dial.endpoint: the server */
	struct hx_connection stream; /* closing shows here first, and in state when it is done */
	struct hx_timer retry;
	struct hx_resp_scan scan;
	int64_t deadline_ns; /* of open() */
	unsigned failures;   /* attempts in a row; the owner sets 0 when the server works */
	bool awaits_auth;
	bool awaits_select;
	bool has_choked; /* it ended because of a reply that was too large, or was none */
	bool is_closing; /* hx_redis_connection_close() was called since open() */
};

/* connection is all zeros. NO_MEMORY: nothing was made. */
enum hapax_status hx_redis_connection_init(
	struct hx_redis_connection *connection, const struct hx_redis_connection_options *options,
	void *context);

/* It is not connected, or the reactor has stopped. Does nothing for zeros. */
void hx_redis_connection_done(struct hx_redis_connection *connection);

/* Connect and greet, until deadline_ns. It is CLOSED. Never calls back from within. */
void hx_redis_connection_open(
	struct hx_redis_connection *connection, const struct hx_endpoint *endpoint,
	int64_t deadline_ns);

/* The greeting went well: replies are to commands from now on, and the deadline is gone. */
void hx_redis_connection_ready(struct hx_redis_connection *connection);

/* It is READY and no reply is due: replies are to a greeting again, until deadline_ns. */
void hx_redis_connection_greet_again(struct hx_redis_connection *connection, int64_t deadline_ns);

/* End it with UNAVAILABLE. The first reason stays; does nothing unless it is connected. */
void hx_redis_connection_break(struct hx_redis_connection *connection, const char *why);

/*
 * End it in an orderly way: neither the attempt nor the wait under way goes on. True: closed
 * will be called, at the end of the turn; false: it will not, there was no connection.
 */
bool hx_redis_connection_close(struct hx_redis_connection *connection);

/* What TLS needs by the URL; NULL if the URL asks for none. */
enum hapax_status hx_redis_connection_tls_context(
	const struct hx_redis_place *place, struct hx_tls_context **ret_tls,
	struct hapax_error *err);

#endif
