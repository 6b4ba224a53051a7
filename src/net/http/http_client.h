/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_client.h - calls to one HTTP server over connections that are kept.
 *
 * A call ends in one of three ways, and which of them it is decides what may be done
 * next: the response is complete; nothing of the request was sent, so nothing can have
 * happened; or it is lost, and nobody knows what happened. A call is begun again by
 * itself, once, only where nothing was sent: on a kept connection that turned out to be
 * closed.
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
	HX_HTTP_CALL_COMPLETE, /* the response is whole */
	HX_HTTP_CALL_UNSENT,   /* nothing was sent */
	HX_HTTP_CALL_LOST,     /* something was sent, and no whole response came */
};

struct hx_http_call_ops {
	/*
	 * It has waited, for a connection or its handshake, and its first byte is about to be sent:
	 * may it be? False ends it, UNSENT. May be asked more than once, and is not asked of one
	 * that begin sends at once. NULL: it always may.
	 */
	bool (*may_send)(struct hx_http_call *call);
	/* The final head; borrowed for the call. */
	void (*on_head)(struct hx_http_call *call, const struct hx_http1_head *head);
	/* A piece of the body. */
	void (*on_data)(struct hx_http_call *call, struct hapax_bytes data);
	/*
	 * Its time is up, and it was paused for a part of it: that part is given to it now,
	 * once, and it is not to be paused any more. NULL: it is simply late.
	 */
	void (*on_hurry)(struct hx_http_call *call);
	/*
	 * The end; the call may be begun again or freed. err says why it is not COMPLETE;
	 * call->is_late: because its time was up; call->is_revoked: because of may_send. Never from
	 * within begin.
	 */
	void (*on_end)(
		struct hx_http_call *call, enum hx_http_call_end end,
		const struct hapax_error *err);
};

/* Lives inside of what it is for. Zero it, init it once, then set request and body for each. */
struct hx_http_call {
	const struct hx_http_call_ops *ops;
	void *context;
	struct hapax_bytes head;         /* of the request; stays where it is until the end */
	struct hapax_bytes body;         /* the same; or */
	const struct hx_http_body *file; /* a body that goes piece by piece, else NULL */
	bool is_head;                    /* the response to a HEAD has no body */

	bool is_late;
	bool is_revoked; /* may_send said no */
	struct hx_http_client *client;
	struct hx_http_link *link; /* NULL: it waits for one, or is over */
	struct hx_http_call *next; /* among those that wait */
	struct hx_timer timer;
	int64_t deadline_ns;
	bool is_waiting;
	bool is_second;       /* it was begun again */
	bool is_hurried;      /* no time is given any more */
	int64_t paused_at_ns; /* INT64_MAX: it is not paused */
	int64_t paused_ns;    /* before */
};

/* In idle_max: every connection is closed after its call. */
#define HX_HTTP_IDLE_NONE SIZE_MAX

/* Zero means the default. */
struct hx_http_client_options {
	int64_t connect_ms; /* 0: 5 s */
	/*
	 * 0: 4 s; a kept connection is closed after that. Less than what servers allow
	 * (Node's is 5 s), because a request that meets their close is lost.
	 */
	int64_t idle_ms;
	size_t connections_max;     /* 0: 256; SIZE_MAX: no limit */
	size_t idle_max;            /* 0: all are kept; HX_HTTP_IDLE_NONE: none is */
	size_t waiting_max;         /* 0: 4,096; calls that wait for a connection */
	struct hx_tls_context *tls; /* NULL: plain. Borrowed */
};

struct hx_http_client {
	struct hx_reactor *reactor;
	struct hx_resolver *resolver;
	struct hx_endpoint endpoint;
	struct hx_http_client_options options; /* complete */
	struct hx_http_link *idle;             /* the one used last comes first */
	size_t idle_count;
	struct hx_http_link *links; /* every one */
	size_t link_count;
	HX_LIST(struct hx_http_call) waiting;
	size_t waiting_count;
	struct hx_http1_head head; /* of the response that is being read */
	uint64_t dialed;           /* since the beginning, as all below */
	uint64_t reused;
};

/* resolver may be NULL, see hx_dial_init(). client must be zeros. Allocates nothing. */
void hx_http_client_init(
	struct hx_http_client *client, struct hx_reactor *reactor, struct hx_resolver *resolver,
	const struct hx_endpoint *endpoint, const struct hx_http_client_options *options);

/* Go by other options from now on; connections that are there stay. Its tls is not read. */
void hx_http_client_configure(
	struct hx_http_client *client, const struct hx_http_client_options *options);

/* No call is under way: close what is kept. The reactor has to turn once more before done. */
void hx_http_client_close(struct hx_http_client *client);
void hx_http_client_done(struct hx_http_client *client);

/* Once in the life of a call: NO_MEMORY. */
enum hapax_status hx_http_call_init(
	struct hx_http_call *call, struct hx_reactor *reactor, const struct hx_http_call_ops *ops,
	void *context);

/* It is not under way. */
void hx_http_call_done(struct hx_http_call *call, struct hx_reactor *reactor);

/*
 * Begin; head and body are set. deadline_ns (of hx_reactor_now_ns()): when it is given
 * up. LIMIT, NO_MEMORY: it was not begun, and on_end will not be called.
 */
enum hapax_status hx_http_call_begin(
	struct hx_http_call *call, struct hx_http_client *client, int64_t deadline_ns,
	struct hapax_error *err);

/* It is given up at another time. Does nothing when the call is over. */
void hx_http_call_prolong(struct hx_http_call *call, int64_t deadline_ns);

/*
 * Nobody wants the rest of the response, of which the head has come: its connection is
 * closed, and on_end says LOST, later.
 */
void hx_http_call_abandon(struct hx_http_call *call);

/* A call that is under way is given up at deadline_ns at the latest. */
void hx_http_call_hasten(struct hx_http_call *call, int64_t deadline_ns);

/*
 * Take no more of the response for now, so that the server sees its window fill; and go
 * on, later, not from within. Neither does anything when the call is over.
 */
void hx_http_call_pause(struct hx_http_call *call);
void hx_http_call_resume(struct hx_http_call *call);

#endif
