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
 *  (4) Only the owner sends a command again or opens the connection again.
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
	/* Write the commands after AUTH and SELECT. A failure ends the connection. */
	enum hapax_status (*greet)(struct hx_redis_connection *connection);

	/* The maximum size of the next reply; 0: none is due. Called when READY. */
	size_t (*reply_size_max)(struct hx_redis_connection *connection);

	/*
	 * One complete reply, borrowed for the call: to the greeting, until ready() is called, then
	 * to the oldest unanswered command. May write and close. False: the reply is invalid, and
	 * the connection ends.
	 */
	bool (*reply)(struct hx_redis_connection *connection, struct hapax_bytes reply);

	/* All replies received so far were passed. May be NULL. */
	void (*taken)(struct hx_redis_connection *connection);

	/*
	 * The attempt failed, or the connection is gone: unanswered commands get no reply. Runs
	 * once for each open(), in the state that it ended in, so that it is not opened yet.
	 * why->status is never HAPAX_OK. True: wait before idle, longer each time.
	 */
	bool (*closed)(struct hx_redis_connection *connection, const struct hapax_error *why);

	/*
	 * It may be opened again: closed returned false, or the wait is over. Not called after
	 * hx_redis_connection_close(). NULL: the owner opens it on demand.
	 */
	void (*idle)(struct hx_redis_connection *connection);
};

/* All pointers outlive the connection. */
struct hx_redis_connection_options {
	const struct hx_redis_connection_ops *ops;
	struct hx_reactor *reactor;
	struct hx_resolver *resolver;
	struct hx_tls_context *tls;         /* NULL: plain */
	const struct hx_redis_place *place; /* user, password, db */
	struct hx_connection_limits limits;
	size_t kept_size;       /* for input and output each: memory that is never released */
	int64_t retry_ms_first; /* the wait doubles from the first to the last, with jitter */
	int64_t retry_ms_last;
};

enum hx_redis_connection_state {
	HX_REDIS_CONNECTION_CLOSED,
	HX_REDIS_CONNECTION_WAITING, /* for the next attempt */
	HX_REDIS_CONNECTION_DIALLING,
	HX_REDIS_CONNECTION_GREETING, /* connected; the greeting is not complete */
	HX_REDIS_CONNECTION_READY,
};

struct hx_redis_connection {
	struct hx_redis_connection_options options;
	void *context; /* belongs to the owner */
	enum hx_redis_connection_state state;
	struct hx_dial dial;         /* dial.endpoint: the server */
	struct hx_connection stream; /* closing shows here first, and in state when complete */
	struct hx_timer retry;
	struct hx_resp_scan scan;
	int64_t deadline_ns; /* of open() */
	unsigned failures;   /* attempts in a row; the owner resets it when the server works */
	bool awaits_auth;
	bool awaits_select;
	bool has_choked; /* it ended because of a reply that was too large or malformed */
	bool is_closing; /* hx_redis_connection_close() was called since open() */
};

/* connection must be zeros. NO_MEMORY: nothing was created. */
enum hapax_status hx_redis_connection_init(
	struct hx_redis_connection *connection, const struct hx_redis_connection_options *options,
	void *context);

/* It must be disconnected, or the reactor stopped. Does nothing for zeros. */
void hx_redis_connection_done(struct hx_redis_connection *connection);

/* Connect and greet, until deadline_ns. It must be CLOSED. Never calls back from within. */
void hx_redis_connection_open(
	struct hx_redis_connection *connection, const struct hx_endpoint *endpoint,
	int64_t deadline_ns);

/* The greeting succeeded: replies now belong to commands, and the deadline is removed. */
void hx_redis_connection_ready(struct hx_redis_connection *connection);

/* It must be READY with no reply due: replies belong to a greeting again, until deadline_ns. */
void hx_redis_connection_greet_again(struct hx_redis_connection *connection, int64_t deadline_ns);

/* End it with UNAVAILABLE. The first reason stays; does nothing unless connected. */
void hx_redis_connection_break(struct hx_redis_connection *connection, const char *why);

/*
 * End it in an orderly way, including an attempt or wait in progress. True: closed will be called,
 * at the end of the turn. False: there was no connection, and it will not.
 */
bool hx_redis_connection_close(struct hx_redis_connection *connection);

/* The TLS context for the URL; NULL if the URL does not use TLS. */
enum hapax_status hx_redis_connection_tls_context(
	const struct hx_redis_place *place, struct hx_tls_context **ret_tls,
	struct hapax_error *err);

#endif
