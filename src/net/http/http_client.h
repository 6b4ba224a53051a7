/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_client.h - calls to one HTTP server over kept connections.
 *
 * A call ends in one of three ways, which decides what the caller may do next. The response is
 * complete; or nothing of the request was sent, so nothing can have happened; or it is lost, and
 * the outcome is unknown. The client repeats a call by itself only if nothing was sent, once: on a
 * kept connection that turned out to be closed.
 *
 * Threads: the reactor's thread; a client belongs to a reactor.
 */
#ifndef HX_NET_HTTP_HTTP_CLIENT_H
#define HX_NET_HTTP_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

#include "base/list.h"
#include "net/address.h"
#include "net/http/http_body.h"
#include "net/reactor.h"
#include "net/resolver.h"
#include "wire/http1/http1.h"

struct hx_http_call;
struct hx_http_client;
struct hx_http_link;
struct hx_tls_context;

enum hx_http_call_end {
	HX_HTTP_CALL_COMPLETE, /* the response is complete */
	HX_HTTP_CALL_UNSENT,   /* nothing was sent */
	HX_HTTP_CALL_LOST,     /* something was sent, and no complete response arrived */
};

struct hx_http_call_ops {
	/*
	 * The call has waited for a connection or its handshake, and its first byte is about to be
	 * sent: may it be? False ends it, UNSENT. May be called more than once, but not for a call
	 * that begin sends at once. NULL: always send.
	 */
	bool (*may_send)(struct hx_http_call *call);
	/* The final head; borrowed for the call. */
	void (*on_head)(struct hx_http_call *call, const struct hx_http1_head *head);
	/* A piece of the body. */
	void (*on_data)(struct hx_http_call *call, struct hapax_bytes data);
	/*
	 * The deadline passed, and the call was paused for part of the time. It gets that part now,
	 * once, and must not be paused again. NULL: it is simply late.
	 */
	void (*on_hurry)(struct hx_http_call *call);
	/*
	 * The end; the call may be begun again or freed. err says why it is not COMPLETE.
	 * call->is_late: the deadline passed. call->is_revoked: may_send returned false. Never
	 * called from within begin.
	 */
	void (*on_end)(
		struct hx_http_call *call, enum hx_http_call_end end,
		const struct hapax_error *err);
};

/* Embedded in its owner. Zero it, init it once, then set request and body for each call. */
struct hx_http_call {
	const struct hx_http_call_ops *ops;
	void *context;
	struct hapax_bytes head;         /* of the request; must not move until the end */
	struct hapax_bytes body;         /* the same; or */
	const struct hx_http_body *file; /* a body that is sent in pieces, else NULL */
	bool is_head;                    /* the response to a HEAD has no body */

	bool is_late;
	bool is_revoked; /* may_send returned false */
	struct hx_http_client *client;
	struct hx_http_link *link; /* NULL: it waits for one, or has ended */
	struct hx_http_call *next; /* in the list of waiting calls */
	struct hx_timer timer;
	int64_t deadline_ns;
	bool is_waiting;
	bool is_second;       /* it was repeated */
	bool is_hurried;      /* it gets no more time */
	int64_t paused_at_ns; /* INT64_MAX: it is not paused */
	int64_t paused_ns;    /* in earlier pauses */
};

/* In idle_max: every connection is closed after its call. */
#define HX_HTTP_IDLE_NONE SIZE_MAX

/* Zero means the default. */
struct hx_http_client_options {
	int64_t connect_ms; /* 0: 5 s */
	/*
	 * 0: 4 s; a kept connection is closed after that. Less than servers allow (Node's is 5 s),
	 * because a request that meets their close is lost.
	 */
	int64_t idle_ms;
	size_t connections_max;     /* 0: 256; SIZE_MAX: no limit */
	size_t idle_max;            /* 0: keep all; HX_HTTP_IDLE_NONE: keep none */
	size_t waiting_max;         /* 0: 4,096; calls waiting for a connection */
	struct hx_tls_context *tls; /* NULL: plain. Borrowed */
};

struct hx_http_client {
	struct hx_reactor *reactor;
	struct hx_resolver *resolver;
	struct hx_endpoint endpoint;
	struct hx_http_client_options options; /* complete */
	struct hx_http_link *idle;             /* the most recently used first */
	size_t idle_count;
	struct hx_http_link *links; /* all of them */
	size_t link_count;
	HX_LIST(struct hx_http_call) waiting;
	size_t waiting_count;
	struct hx_http1_head head; /* of the response being read */
	uint64_t dialed;           /* since the start, like all below */
	uint64_t reused;
};

/* resolver may be NULL, see hx_dial_init(). client must be zeros. Allocates nothing. */
void hx_http_client_init(
	struct hx_http_client *client, struct hx_reactor *reactor, struct hx_resolver *resolver,
	const struct hx_endpoint *endpoint, const struct hx_http_client_options *options);

/* Change the options; existing connections stay. tls is not read. */
void hx_http_client_configure(
	struct hx_http_client *client, const struct hx_http_client_options *options);

/*
 * No call may be in progress: close kept connections. The reactor must run one more turn before
 * done.
 */
void hx_http_client_close(struct hx_http_client *client);
void hx_http_client_done(struct hx_http_client *client);

/* Call it once for each struct. NO_MEMORY. */
enum hapax_status hx_http_call_init(
	struct hx_http_call *call, struct hx_reactor *reactor, const struct hx_http_call_ops *ops,
	void *context);

/* The call must not be in progress. */
void hx_http_call_done(struct hx_http_call *call, struct hx_reactor *reactor);

/*
 * Begin; head and body are set. The call is given up at deadline_ns (of hx_reactor_now_ns()).
 * LIMIT, NO_MEMORY: it was not begun, and on_end will not be called.
 */
enum hapax_status hx_http_call_begin(
	struct hx_http_call *call, struct hx_http_client *client, int64_t deadline_ns,
	struct hapax_error *err);

/* Change the deadline. Does nothing if the call has ended. */
void hx_http_call_prolong(struct hx_http_call *call, int64_t deadline_ns);

/*
 * Drop the rest of a response whose head has arrived: the connection is closed, and on_end reports
 * LOST, later.
 */
void hx_http_call_abandon(struct hx_http_call *call);

/* Give up a call in progress at deadline_ns at the latest. */
void hx_http_call_hasten(struct hx_http_call *call, int64_t deadline_ns);

/*
 * Stop reading the response for now, so that the server's window fills; and resume later, not from
 * within. Neither does anything if the call has ended.
 */
void hx_http_call_pause(struct hx_http_call *call);
void hx_http_call_resume(struct hx_http_call *call);

#endif
