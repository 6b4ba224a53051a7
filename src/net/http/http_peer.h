/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_peer.h - a client of an HTTP server: its connection and the request being read. For http_*.c
 * only.
 *
 *	IDLE ──first byte──▶ HEAD ──▶ BODY ──whole──▶ HANDED OVER ──reply──▶ IDLE
 *	                       └───refused, too slow──────▶ closing ◀──last reply──┘
 *
 *  (1) exchange is set from the end of the head to the reply.
 *  (2) While a request is handed over the connection is paused.
 *  (3) The timer is set no later than deadline_ns; it checks that when it runs.
 */
#ifndef HX_NET_HTTP_HTTP_PEER_H
#define HX_NET_HTTP_HTTP_PEER_H

#include "net/http/http_server.h"

struct hx_http_peer {
	struct hx_connection connection; /* first: they are the same address */
	struct hx_http_server *server;
	struct hx_http1 http;
	struct hx_http_exchange *exchange;
	struct hx_timer timer;
	int64_t deadline_ns;   /* INT64_MAX: none */
	int64_t began_ns;      /* when its head began to arrive; 0: no request has begun */
	int64_t body_until_ns; /* for an arriving body: when its time credit is spent */
	uint64_t body_seen;    /* bytes of it that have given credit */
	bool is_in_input;      /* the connection continues by itself */
	bool is_waiting;       /* until the client has read the output */
	bool is_admitted;      /* left must be called */
	bool is_counted;       /* of admit */
	struct hx_http_peer *next;
	struct hx_http_peer *back;
	char client[HX_HTTP_CLIENT_SIZE];
};

/* A listener accepted a connection. */
void hx_http_peer_accept(struct hx_listener *listener, int fd, const struct hx_address *address);

/* No request has begun: closing it loses nothing. */
bool hx_http_peer_is_idle(const struct hx_http_peer *peer);

/* The reply to its exchange is written; is_last: close once it is sent. */
void hx_http_peer_answered(struct hx_http_peer *peer, bool is_last);

/* From the pool, or NULL: out of memory. */
struct hx_http_exchange *hx_http_exchange_take(struct hx_http_server *server);
void hx_http_exchange_give(struct hx_http_exchange *exchange);

/* Report the memory of a body to the reactor's account. */
void hx_http_exchange_note(struct hx_http_exchange *exchange);

/* Does a reply of this status have a body, even an empty one? */
bool hx_http_status_has_body(unsigned status);

/* Write a reply; unless HAPAX_OK, nothing is written. The client must be connected. */
enum hapax_status hx_http_exchange_send(
	struct hx_http_exchange *exchange, const struct hx_http_reply *reply, bool is_last);

/* Write a problem to a client that has no exchange, and close. */
void hx_http_peer_refuse(
	struct hx_http_peer *peer, unsigned status, enum hx_http_refusal why, const char *detail);

/* A client was refused: count and report it. */
void hx_http_server_tell_refused(
	struct hx_http_server *server, unsigned status, enum hx_http_refusal why);

#endif
