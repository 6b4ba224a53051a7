/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_server.h - an HTTP/1.1 door on one reactor: requests in, replies out, in order.
 *
 * A request is handed over when all of it has come. Whoever gets it owes it one reply,
 * at any time later; meanwhile nothing more is read from its connection, so requests
 * that a client sends ahead wait there and are answered in order. A client that goes
 * away cancels nothing: the reply is simply not sent.
 *
 * What is not a request is answered here, with a problem document, and the connection
 * is closed: where the next message would begin is not known. So is a client that is
 * too slow to send (408), or that sends too much (413, 414, 431); one that does not
 * read is dropped.
 *
 * A request takes one of exchanges_max slots when it is handed over, not before: clients
 * that send a part of a body and wait take no slot from anybody. What they hold is limited
 * by their connections, by memory_max and by body_ms. That is a credit of time: it runs
 * down while a body comes, each 4 KiB that came give back a second, and it is never more
 * than body_ms. A body that falls silent is refused after body_ms, however much has come.
 *
 * Between requests a connection holds no memory but its own struct.
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

/* A whole request; a reply is owed. */
typedef void hx_http_handle_fn(struct hx_http_exchange *exchange);

/* A streamed reply that was told to wait may go on. */
typedef void hx_http_room_fn(struct hx_http_exchange *exchange);

/* The last connection has ended after hx_http_server_drain(). */
typedef void hx_http_drained_fn(struct hx_http_server *server);

/* Why a client was turned away here. */
enum hx_http_refusal {
	HX_HTTP_REFUSED_MESSAGE,  /* it is no request, or too large; see its status */
	HX_HTTP_REFUSED_HEAD,     /* its head took too long to come */
	HX_HTTP_REFUSED_BODY,     /* the same of its body */
	HX_HTTP_REFUSED_UNREAD,   /* it does not read its reply: dropped, without a status */
	HX_HTTP_REFUSED_REQUESTS, /* exchanges_max */
	HX_HTTP_REFUSED_MEMORY,   /* the budget is full, or there is none */
	HX_HTTP_REFUSED_FILE,     /* a large body could not be put into a file, or file_budget */
	HX_HTTP_REFUSED_ADMIT,    /* admit or take said so */
	HX_HTTP_REFUSED_IDLE,     /* closed for the next connection, see evicts */
};

/* Zero means the default. */
struct hx_http_server_options {
	int64_t idle_ms;        /* 0: 60 s; between two requests */
	int64_t head_ms;        /* 0: 5 s; from the first byte of a request to its body */
	int64_t body_ms;        /* 0: 10 s; the longest wait for 4 KiB/s of a body, see below */
	uint64_t body_max;      /* 0: 16 MiB */
	size_t connections_max; /* 0: 10,000 */
	size_t exchanges_max;   /* 0: 4,096; requests that were handed over */
	struct hx_http1_limits limits; /* of requests; its body_max is not read */
	int64_t stall_ms;              /* 0: 30 s; how long a client may take nothing of a reply */
	/*
	 * NULL: no limit. What the reactor's pool takes from: when it is full new requests
	 * are refused (503), and replies larger than a block that do not fit. Borrowed.
	 */
	struct hx_budget *budget;
	/*
	 * Requests without a body, and replies up to HX_HTTP_SPARED_MAX, are served when the
	 * budget is full: probes, and figures that tell of it.
	 */
	bool serves_when_full;
	struct hx_budget *file_budget; /* NULL: no limit. Of bodies in files. Borrowed */
	/*
	 * When nearly connections_max are open, the one that has asked for nothing for longest
	 * is closed: whoever comes is let in, unless all wait for a reply.
	 */
	bool evicts;
	bool has_errors;            /* every problem has an `error` member, see http_problem.h */
	size_t body_memory_max;     /* 0: 256 KiB; more of a body goes into a file */
	const char *folder;         /* NULL: /tmp; for large bodies. Borrowed */
	struct hx_tls_context *tls; /* NULL: plain. Borrowed */
	int64_t handshake_ms;       /* 0: 10 s; of TLS */
	const struct hapax_clock *clock; /* NULL: the system's; for Date */

	/*
	 * A connection has come from client, and one has gone; NULL: nobody wants to know.
	 * admit returning LIMIT or NO_MEMORY: it is told so (429, 503) and closed, and left
	 * is not called. Whoever counts it by its address sets *ret_is_counted, and gets it back.
	 */
	enum hapax_status (*admit)(
		struct hx_http_server *server, const char *client, bool *ret_is_counted);
	void (*left)(struct hx_http_server *server, const char *client, bool is_counted);

	/*
	 * A request is about to be handed over, and its reply was given; NULL: nobody wants to
	 * know. take finds out for whom it counts (origin) and returns LIMIT or NO_MEMORY to
	 * refuse it (429, 503): then give is not called.
	 */
	enum hapax_status (*take)(struct hx_http_exchange *exchange);
	void (*give)(struct hx_http_exchange *exchange);

	/* A connection has ended before its TLS handshake did; NULL: nobody wants to know. */
	void (*unsecured)(
		struct hx_http_server *server, const char *client, const struct hapax_error *why);

	/*
	 * A client was turned away without a word from whoever handles requests; NULL: nobody
	 * wants to know. status 0: nothing was sent, or it stands in place of a reply that was
	 * given.
	 */
	void (*refused)(struct hx_http_server *server, unsigned status, enum hx_http_refusal why);

	/*
	 * The client of a request that was handed over has gone, or sends no more and may
	 * have; NULL: nobody wants to know. The reply is owed all the same, and may be given
	 * from within.
	 */
	void (*gone)(struct hx_http_exchange *exchange);
};

struct hx_http_server_stats {
	uint64_t requests; /* that were handed over */
	uint64_t refused;  /* answered here: not a request, too large, too slow, too many */
	uint64_t connections;
};

struct hx_http_server {
	struct hx_reactor *reactor;
	struct hx_http_server_options options; /* complete */
	struct hx_listener listener;
	hx_http_handle_fn *handle;
	hx_http_drained_fn *drained;
	void *context;

	struct hx_http_peer *peers; /* every connection; who asked last is the first */
	struct hx_http_peer *oldest;
	size_t peer_count;
	struct hx_http_exchange *spare; /* for the next requests */
	size_t spare_count;
	size_t exchange_count; /* in use, also for requests that are still coming */
	size_t handed_count;   /* of these, handed over: at most exchanges_max */
	bool is_draining;
	bool is_leaving; /* each reply is the last of its connection */
	struct hx_timer drain_timer;
	struct hx_http1_head head; /* of the message that is being read */
	struct hapax_buf out;      /* the head of the reply that is being written */
	int64_t date_turn_ns;      /* the turn in which date was looked at last */
	int64_t date_second;
	char date[32];
	struct hx_http_server_stats stats;
};

/* How the end of a reply is told. */
enum hx_http_framing {
	HX_HTTP_LENGTH,  /* by its length: it is there as a whole */
	HX_HTTP_CHUNKED, /* by its last chunk */
	HX_HTTP_CLOSE,   /* by the end of the connection, as HTTP/1.0 has it */
	HX_HTTP_SIZED,   /* by the length that was given before it came */
};

/* A request and the reply that it is owed. */
struct hx_http_exchange {
	struct hx_http_server *server;
	struct hx_http_peer *peer; /* NULL: the client has gone */
	struct hx_http1_head head; /* points into text */
	struct hapax_buf text;     /* the head as it came */
	struct hx_http_body body;
	size_t noted; /* memory of body, in the reactor's account */
	bool is_handed_over;
	bool has_slot; /* counts in handed_count */
	bool is_full;  /* of a streamed reply: on_room is to be called */
	bool has_sent; /* of a streamed reply: a piece */
	bool is_bare;  /* of a streamed reply: there is no body, whatever is written */
	enum hx_http_framing framing;
	uint64_t left;                    /* of a SIZED one: bytes that were not written yet */
	hx_http_room_fn *on_room;         /* the reply is streamed; else NULL */
	char client[HX_HTTP_CLIENT_SIZE]; /* its address in digits; empty: it has none */
	char origin[HX_HTTP_CLIENT_SIZE]; /* for whom it counts; empty: nobody. Of take */
	bool is_trusted;                  /* what it says of those before it is believed. Of take */
	void *context;                    /* whoever handles it */
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
	uint64_t length; /* of SIZED, which is only streamed */
};

/*
 * Open a server on an address that was given, see hx_listener_open(). drained may be
 * NULL, as may options. server must be zeros.
 */
enum hapax_status hx_http_server_open(
	struct hx_http_server *server, struct hx_reactor *reactor, const struct hx_address *address,
	bool shares_port, const struct hx_http_server_options *options, hx_http_handle_fn *handle,
	hx_http_drained_fn *drained, void *context, struct hapax_error *err);

/*
 * Go by other options from now on; connections that are there keep their limits. Its
 * folder, tls, clock and budgets are not read.
 */
void hx_http_server_configure(
	struct hx_http_server *server, const struct hx_http_server_options *options);

/*
 * Nobody new is let in. Whoever was let in by the kernel already is served, and whoever
 * has begun a request gets its reply, which says that it is the last; connections
 * without a request are closed a moment later. Then drained is called.
 */
void hx_http_server_drain(struct hx_http_server *server);

/*
 * It drains before long: all are let in and served, and each reply says that it is the last,
 * so that clients with connections that they keep are elsewhere by then.
 */
void hx_http_server_leave(struct hx_http_server *server);

/* Whether the budget is full: then nothing more is taken on. */
bool hx_http_server_is_full(const struct hx_http_server *server);

/* Nobody is left after drain. */
bool hx_http_server_has_drained(const struct hx_http_server *server);

/* Close what is left at once; the reactor has to turn once more before done. */
void hx_http_server_close(struct hx_http_server *server);

/* Every connection has ended, every reply was given. Does nothing for zeros. */
void hx_http_server_done(struct hx_http_server *server);

/*
 * The certificate that the client has shown and that was verified, or NULL. Ask when the
 * request is handed over: it is the connection's, and gone with it.
 */
const struct hx_tls_peer *hx_http_exchange_certificate(const struct hx_http_exchange *exchange);

/* The reply; the exchange is gone afterwards. Never fails: what cannot be sent ends the connection. */
void hx_http_reply(struct hx_http_exchange *exchange, const struct hx_http_reply *reply);

/* A problem as the reply, with up to one more field; fields may be NULL. */
void hx_http_reply_problem(
	struct hx_http_exchange *exchange, const struct hx_http_problem *problem,
	const struct hapax_field *fields, size_t field_count);

/*
 * A reply whose body comes in pieces, so that no more of it is held than a client is
 * about to read: begin, write ..., end. reply->body is not read. A reply that is SIZED
 * has the length that it says; else clients that know chunks get chunks, and an older one
 * is told the end by that of its connection. A reply to HEAD, 204 and 304 have no body,
 * and what is written is dropped.
 *
 * begin: NO_MEMORY, LIMIT: nothing was sent, and a reply is owed as before.
 */
enum hapax_status hx_http_stream_begin(
	struct hx_http_exchange *exchange, const struct hx_http_reply *reply,
	hx_http_room_fn *on_room);

/*
 * The next piece. False: the client has enough to read; write no more until on_room is
 * called, which also comes when the client has gone. What is written then is dropped.
 */
bool hx_http_stream_write(struct hx_http_exchange *exchange, struct hapax_bytes data);

/*
 * The end; the exchange is gone afterwards. lines: fields behind the body, as
 * "Name: value\r\n" each, which the head has announced (Trailer); or empty. A client
 * that could not be told of them is not told of the end either: cut. So is one that has
 * less than the length that it was told.
 */
void hx_http_stream_end(struct hx_http_exchange *exchange, struct hapax_bytes lines);

/* Reset the connection: nobody may take what was sent for the whole. It goes on for nobody. */
void hx_http_stream_cut(struct hx_http_exchange *exchange);

#endif
