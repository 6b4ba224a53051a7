/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_server.h - an HTTP/1.1 door on one reactor: requests in, replies out, in order.
 *
 * A request is handed over once it is complete. Its handler must give one reply, at any later time.
 * Until then nothing more is read from its connection, so pipelined requests wait there and are
 * answered in order. A client that disconnects cancels nothing: the reply is just not sent.
 *
 * The server answers an invalid request with a problem document and closes the connection, since
 * the start of the next message is unknown. It does the same for a client that sends too slowly
 * (408) or too much (413, 414, 431). A client that does not read is dropped.
 *
 * A request takes one of exchanges_max slots when it is handed over, not before: a client that
 * sends part of a body and waits takes no slot. Its memory is limited by its connections, by
 * memory_max and by body_ms. body_ms is a time credit: it runs down while a body arrives, each 4
 * KiB received restores a second, and it is never more than body_ms. A body that stops is refused
 * after body_ms, however much has arrived.
 *
 * Between requests a connection holds no memory except its own struct.
 *
 * Threads: the reactor's thread.
 */
#ifndef HX_NET_HTTP_HTTP_SERVER_H
#define HX_NET_HTTP_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/clock.h>
#include <hapax/error.h>
#include <hapax/key.h>

#include "base/budget.h"
#include "base/buf.h"
#include "net/connection.h"
#include "net/http/http_body.h"
#include "net/http/http_problem.h"
#include "net/listener.h"
#include "wire/http1/http1.h"

/* An IPv6 address in digits with a zone. */
enum { HX_HTTP_CLIENT_SIZE = HX_ADDRESS_HOST_SIZE };

/* A page of metrics with a few hundred scopes. */
enum { HX_HTTP_SPARED_MAX = 256 * 1024 };

struct hx_http_exchange;
struct hx_http_peer;
struct hx_http_server;
struct hx_tls_context;
struct hx_tls_peer;

/* A complete request; the function must give a reply, now or later. */
typedef void hx_http_handle_fn(struct hx_http_exchange *exchange);

/* A streamed reply that had to wait may continue. */
typedef void hx_http_room_fn(struct hx_http_exchange *exchange);

/* The last connection has ended after hx_http_server_drain(). */
typedef void hx_http_drained_fn(struct hx_http_server *server);

/* Why the server refused a client. */
enum hx_http_refusal {
	HX_HTTP_REFUSED_MESSAGE,  /* malformed, or too large; see its status */
	HX_HTTP_REFUSED_HEAD,     /* its head took too long */
	HX_HTTP_REFUSED_BODY,     /* its body took too long */
	HX_HTTP_REFUSED_UNREAD,   /* it does not read its reply: dropped, without a status */
	HX_HTTP_REFUSED_REQUESTS, /* exchanges_max */
	HX_HTTP_REFUSED_MEMORY,   /* the budget is full, or there is none */
	HX_HTTP_REFUSED_FILE,     /* a large body could not be put into a file, or file_budget */
	HX_HTTP_REFUSED_ADMIT,    /* admit or take refused it */
	HX_HTTP_REFUSED_IDLE,     /* closed to make room for the next connection, see evicts */
};

/* Zero means the default. */
struct hx_http_server_options {
	int64_t idle_ms;        /* 0: 60 s; between two requests */
	int64_t head_ms;        /* 0: 5 s; from the first byte of a request to its body */
	int64_t body_ms;        /* 0: 10 s; the longest wait for 4 KiB/s of a body, see above */
	uint64_t body_max;      /* 0: 16 MiB */
	size_t connections_max; /* 0: 10,000 */
	size_t exchanges_max;   /* 0: 4,096; requests handed over */
	struct hx_http1_limits limits; /* of requests; its body_max is not read */
	int64_t stall_ms;              /* 0: 30 s; how long a client may accept nothing of a
	                                  reply */
	/*
	 * NULL: no limit. The budget of the reactor's pool: when it is full, new requests are
	 * refused (503), and so are replies larger than a block that do not fit. Borrowed.
	 */
	struct hx_budget *budget;
	/*
	 * Requests without a body, and replies up to HX_HTTP_SPARED_MAX, are served when the budget
	 * is full: probes and metrics.
	 */
	bool serves_when_full;
	struct hx_budget *file_budget; /* NULL: no limit. For bodies in files. Borrowed */
	/*
	 * When nearly connections_max are open, the connection that has been idle longest is closed
	 * to admit a new one, unless all wait for a reply.
	 */
	bool evicts;
	bool has_errors;            /* every problem has an `error` member, see http_problem.h */
	size_t body_memory_max;     /* 0: 256 KiB; larger bodies go into a file */
	const char *folder;         /* NULL: /tmp; for large bodies. Borrowed */
	struct hx_tls_context *tls; /* NULL: plain. Borrowed */
	int64_t handshake_ms;       /* 0: 10 s; of TLS */
	const struct hapax_clock *clock; /* NULL: the system clock; for Date */

	/*
	 * A connection from client was opened, or closed; may be NULL. If admit returns LIMIT or
	 * NO_MEMORY, the client gets 429 or 503 and is closed, and left is not called. admit sets
	 * *ret_is_counted if it counts the client by its address; left gets it back.
	 */
	enum hapax_status (*admit)(
		struct hx_http_server *server, const char *client, bool *ret_is_counted);
	void (*left)(struct hx_http_server *server, const char *client, bool is_counted);

	/*
	 * A request is about to be handed over, or its reply was given; may be NULL. take sets the
	 * address that the request counts for (origin). It returns LIMIT or NO_MEMORY to refuse it
	 * (429, 503); then give is not called.
	 */
	enum hapax_status (*take)(struct hx_http_exchange *exchange);
	void (*give)(struct hx_http_exchange *exchange);

	/* A connection ended before its TLS handshake did; may be NULL. */
	void (*unsecured)(
		struct hx_http_server *server, const char *client, const struct hapax_error *why);

	/*
	 * The server refused a client by itself; may be NULL. status 0: nothing was sent, or the
	 * refusal replaced a reply that was given.
	 */
	void (*refused)(struct hx_http_server *server, unsigned status, enum hx_http_refusal why);

	/*
	 * The client of a request that was handed over has disconnected, or sends no more and may
	 * have; may be NULL. The reply is still required, and may be given from within.
	 */
	void (*gone)(struct hx_http_exchange *exchange);
};

struct hx_http_server_stats {
	uint64_t requests; /* handed over */
	uint64_t refused;  /* answered by the server: malformed, too large, too slow, too many */
	uint64_t connections;
};

struct hx_http_server {
	struct hx_reactor *reactor;
	struct hx_http_server_options options; /* complete */
	struct hx_listener listener;
	hx_http_handle_fn *handle;
	hx_http_drained_fn *drained;
	void *context;

	struct hx_http_peer *peers; /* every connection; the most recent request first */
	struct hx_http_peer *oldest;
	size_t peer_count;
	struct hx_http_exchange *spare; /* for later requests */
	size_t spare_count;
	size_t exchange_count; /* in use, including requests still arriving */
	size_t handed_count;   /* of these, handed over: at most exchanges_max */
	bool is_draining;
	bool is_leaving; /* each reply is the last of its connection */
	struct hx_timer drain_timer;
	struct hx_http1_head head; /* of the message being read */
	struct hapax_buf out;      /* the head of the reply being written */
	int64_t date_turn_ns;      /* the turn in which date was last updated */
	int64_t date_second;
	char date[32];
	struct hx_http_server_stats stats;
};

/* How the end of a reply is marked. */
enum hx_http_framing {
	HX_HTTP_LENGTH,  /* by its length: it is complete in memory */
	HX_HTTP_CHUNKED, /* by its last chunk */
	HX_HTTP_CLOSE,   /* by the end of the connection, as in HTTP/1.0 */
	HX_HTTP_SIZED,   /* by the length that was announced */
};

/* A request and its reply. */
struct hx_http_exchange {
	struct hx_http_server *server;
	struct hx_http_peer *peer; /* NULL: the client has disconnected */
	struct hx_http1_head head; /* points into text */
	struct hapax_buf text;     /* the head as received */
	struct hx_http_body body;
	size_t noted; /* memory of body, in the reactor's account */
	bool is_handed_over;
	bool has_slot; /* counts in handed_count */
	bool is_full;  /* of a streamed reply: on_room must be called */
	bool has_sent; /* of a streamed reply: a piece was sent */
	bool is_bare;  /* of a streamed reply: it has no body; writes are dropped */
	enum hx_http_framing framing;
	uint64_t left;                    /* of a SIZED one: bytes not yet written */
	hx_http_room_fn *on_room;         /* the reply is streamed; else NULL */
	char client[HX_HTTP_CLIENT_SIZE]; /* its address in digits; empty: none */
	char origin[HX_HTTP_CLIENT_SIZE]; /* the address it counts for; empty: none. Set by take */
	bool is_trusted;                  /* its forwarding fields are trusted. Set by take */
	void *context;                    /* belongs to the handler */
	struct hx_http_exchange *next;    /* among the spare ones */
};

struct hx_http_reply {
	unsigned status;
	const struct hapax_field *fields;
	size_t field_count;
	/* More fields, as "Name: value\r\n" each; or empty. */
	struct hapax_bytes field_lines;
	struct hapax_bytes body;
	enum hx_http_framing framing;
	uint64_t length; /* for SIZED, which is only streamed */
};

/*
 * Open a server on the given address, see hx_listener_open(). drained and options may be NULL.
 * server must be zeros.
 */
enum hapax_status hx_http_server_open(
	struct hx_http_server *server, struct hx_reactor *reactor, const struct hx_address *address,
	bool shares_port, const struct hx_http_server_options *options, hx_http_handle_fn *handle,
	hx_http_drained_fn *drained, void *context, struct hapax_error *err);

/*
 * Change the options; existing connections keep their limits. folder, tls, clock and budgets are
 * not read.
 */
void hx_http_server_configure(
	struct hx_http_server *server, const struct hx_http_server_options *options);

/*
 * Accept no new connections. Connections already in the kernel's queue are served, and requests
 * that have begun get their reply, which announces that it is the last. Idle connections are closed
 * a moment later. Then drained is called.
 */
void hx_http_server_drain(struct hx_http_server *server);

/*
 * Prepare to drain: connections are still accepted and served, but each reply announces that it is
 * the last, so that clients with kept connections move elsewhere.
 */
void hx_http_server_leave(struct hx_http_server *server);

/* Is the budget full? Then no new requests are accepted. */
bool hx_http_server_is_full(const struct hx_http_server *server);

/* No connection is left after drain. */
bool hx_http_server_has_drained(const struct hx_http_server *server);

/* Close all connections at once; the reactor must run one more turn before done. */
void hx_http_server_close(struct hx_http_server *server);

/* Every connection has ended, every reply was given. Does nothing for zeros. */
void hx_http_server_done(struct hx_http_server *server);

/*
 * The verified certificate of the client, or NULL. Ask when the request is handed over: it belongs
 * to the connection, and is freed with it.
 */
const struct hx_tls_peer *hx_http_exchange_certificate(const struct hx_http_exchange *exchange);

/* Reply and free the exchange. Never fails: if the reply cannot be sent, the connection ends. */
void hx_http_reply(struct hx_http_exchange *exchange, const struct hx_http_reply *reply);

/* A problem as the reply, with up to one more field; fields may be NULL. */
void hx_http_reply_problem(
	struct hx_http_exchange *exchange, const struct hx_http_problem *problem,
	const struct hapax_field *fields, size_t field_count);

/*
 * A reply whose body is sent in pieces, so that memory holds no more than the client is about to
 * read: begin, write ..., end. reply->body is not read. A SIZED reply has the announced length.
 * Otherwise clients that support chunks get chunks, and for older ones the end of the connection
 * marks the end. Replies to HEAD, 204 and 304 have no body, and writes are dropped.
 *
 * begin: NO_MEMORY, LIMIT: nothing was sent, and a reply is still required.
 */
enum hapax_status hx_http_stream_begin(
	struct hx_http_exchange *exchange, const struct hx_http_reply *reply,
	hx_http_room_fn *on_room);

/*
 * The next piece. False: the client has enough to read; write no more until on_room is called.
 * on_room is also called when the client has disconnected; writes are then dropped.
 */
bool hx_http_stream_write(struct hx_http_exchange *exchange, struct hapax_bytes data);

/*
 * End the reply and free the exchange. lines: trailer fields, as "Name: value\r\n" each, which the
 * head has announced (Trailer); or empty. If the client cannot get them, or got less than the
 * announced length, the connection is cut instead.
 */
void hx_http_stream_end(struct hx_http_exchange *exchange, struct hapax_bytes lines);

/*
 * Reset the connection, so that the client does not take the reply for complete. Later writes are
 * dropped.
 */
void hx_http_stream_cut(struct hx_http_exchange *exchange);

#endif
