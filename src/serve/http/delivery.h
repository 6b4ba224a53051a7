/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delivery.h - a request in progress: claimed, forwarded, completed, answered.
 *
 *	request ──▶ claim ──RUN──▶ forward ──▶ finish ──END──▶ reply
 *	              └─────────────END, without a run────────────┘
 *
 * A request is one delivery; the events of a batch pass through it one after the other. The doors
 * differ in how they find the key (gateway.c, proxy.c) and in the wording of their answers; the
 * rest is one path. A request that passes the proxy without a key takes the same path, without a
 * claim.
 *
 *  (1) The exchange lives until the reply; the delivery lives until the run has ended as well.
 *  (2) The delivery owns the data of the run's result, and keeps it until END.
 *  (3) A response up to max_result is kept and sent when its completion is durable. For a larger
 *      one only the size is kept. It goes to the sender as it comes, and its end when the
 *      completion is durable.
 *  (4) Steps on another thread leave a bit in steps and, at END, a copy of the answer; the loop
 *      handles them in task.
 *
 * Threads: the loop's, but for the step function.
 */
#ifndef HX_SERVE_HTTP_DELIVERY_H
#define HX_SERVE_HTTP_DELIVERY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hapax/processor.h>

#include "net/http/http_client.h"
#include "observe/metrics/metrics.h"
#include "serve/http/large.h"
#include "serve/daemon/loop.h"
#include "serve/http/proxy_body.h"
#include "serve/http/proxy_key.h"
#include "serve/trace/tracing.h"

/* The outcome of an event for its sender; the largest decides a batch. */
enum hx_conclusion {
	HX_CONCLUSION_DONE,       /* 200 */
	HX_CONCLUSION_REJECTED,   /* 422: a retry will not help */
	HX_CONCLUSION_PARKED,     /* 409: an operator must decide */
	HX_CONCLUSION_BUSY,       /* 409: in progress; retry */
	HX_CONCLUSION_UNFINISHED, /* 503: retry */
};

/* A batch in progress. */
struct hx_delivery_batch {
	struct hx_cloudevents_batch reader;
	struct hapax_buf text;    /* the body, if it was in a file */
	struct hapax_bytes event; /* the current JSON object */
	enum hx_conclusion worst;
	bool is_unstored; /* an event ran, but its result could not be stored */
};

/* The key and its scope: borrowed from the delivery and its configuration. */
struct hx_delivery_identity {
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key;           /* empty: no key, runs unprotected */
	const unsigned char *fingerprint; /* NULL: none */
	bool is_two;                      /* two keys: hx_delivery_claim.key has both */
};

/* For the current event, or the request: set before the claim, cleared at END. */
struct hx_delivery_claim {
	const struct hx_config_route *route;
	const struct hx_config_proxy_route *proxy;
	const char *route_name; /* of either door, as are the next two */
	const struct hx_config_target *target;
	struct hx_upstream *upstream;
	struct hx_delivery_identity identity;
	struct hapax_key key; /* the data of identity; proxy: by the strategy of its route */
	struct hapax_request_key keys[2];
	struct hx_proxy_key proxy_key; /* proxy: the same */
	enum hx_proxy_body_end found;  /* proxy, on a route with a strategy */
	bool passes;                   /* proxy: no claim, and the response is streamed */
	bool lacks_key;  /* it passes for lack of a key; its method runs once with one */
	bool is_waiting; /* for another run */
	struct hapax_run_options options;
	struct hapax_run *run; /* from RUN to END */
	int64_t asked_ns;      /* hx_clock_mono_ns(): the store may answer within the turn */
	struct hx_tracing tracing;
	/* Its attributes, for the record and for logs; empty for the proxy, which has no event. */
	struct hapax_cause event;
	struct hapax_bytes cause; /* the event as a record keeps it, in cause_space */
	unsigned char cause_space[HAPAX_CAUSE_SIZE_MAX];
};

/* The request to the upstream and its response, from RUN to END; buffers are reused. */
struct hx_delivery_call {
	struct hx_http_call http;
	struct hapax_buf head; /* of the request */
	int64_t sent_ns;
	int64_t took_ns;          /* until the response was complete; -1: not sent */
	unsigned status;          /* of the response; 0: none */
	struct hapax_buf headers; /* its fields, as "Name: value\r\n" */
	size_t headers_kept; /* size of the stored ones; the rest is for the first client only */
	struct hapax_buf body;
	uint64_t body_size; /* total size; larger than body: it was too large to keep */
	size_t body_noted;  /* in the loop's account */
	bool is_streamed;   /* the sender has its beginning */
	bool is_late;
	bool is_revoked; /* nothing was sent, because its lease had lapsed */
	enum hapax_run_outcome outcome;
	struct hapax_result result;
	struct hapax_error failure; /* the reason if there is no response */
};

/* Steps from another thread, until the loop handles them. */
struct hx_delivery_told {
	_Atomic unsigned steps;
	struct hx_task task;
	struct hapax_answer answer; /* of RUN and END, with its bytes: */
	struct hapax_buf answer_text;
};

/* A request, from acceptance until it is answered and its last run has ended. */
struct hx_delivery {
	struct hx_loop *loop;
	struct hx_loop_config *config;
	struct hx_http_exchange *exchange; /* NULL: already answered */
	enum hx_door door;                 /* GATEWAY or PROXY */
	bool is_left;                      /* its client is gone: it need not wait */
	bool is_counted;                   /* among the requests of its tenant */
	bool has_certificate;              /* proxy: its client has shown one */
	unsigned char certificate[HX_SHA256_SIZE];
	char tenant[HAPAX_SCOPE_SIZE_MAX + 1]; /* owner of the request, if is_counted */
	int64_t came_ns;
	struct hx_delivery_batch *batch; /* NULL: a single event */
	struct hx_large *large;          /* NULL: the loop reads it */
	struct hx_delivery_claim claim;
	struct hx_delivery_call call;
	struct hx_delivery_told told;
	struct hx_delivery *next; /* in a list of the loop */
};

/*
 * Takes up a request of either door: takes a delivery from the loop's pool; the request is read at
 * the end of the turn.
 */
void hx_delivery_accept(struct hx_http_exchange *exchange);

/* Frees its batch, if any. */
void hx_delivery_drop_batch(struct hx_delivery *delivery);

/* Returns it to the pool. */
void hx_delivery_give(struct hx_delivery *delivery);
void hx_deliveries_free(struct hx_loop *loop);

/* Reads a request of the proxy: its key, if it has one. */
void hx_proxy_take_up(struct hx_delivery *delivery);

/*
 * Asks for the claim at the end of the turn: route, identity, options and asked_ns are set. False:
 * refused, and the delivery is freed unless it is a batch.
 */
bool hx_delivery_ask(struct hx_delivery *delivery);

/* Sets its destination; the routes of the gateway come first, then those of the proxy. */
void hx_delivery_set_route(
	struct hx_delivery *delivery, const char *name, const struct hx_config_target *target,
	size_t index);

/* The claim is ours: send the request. */
void hx_forward(struct hx_delivery *delivery, const struct hapax_answer *answer);

/* The same for a RUN that came some time ago: if its lease has lapsed, it fails. */
void hx_forward_late(struct hx_delivery *delivery, const struct hapax_answer *answer);

/* The end of a turn: reads, claims and completes all that gathered. */
void hx_delivery_read_all(struct hx_task *task);
void hx_delivery_begin_all(struct hx_task *task);
void hx_delivery_finish_all(struct hx_task *task);

/* Completes it at the end of the turn. */
void hx_delivery_finish(struct hx_delivery *delivery);

/* The store has decided, by RUN or by an END without a run; its own run has ended. */
void hx_delivery_decided(struct hx_delivery *delivery, const struct hapax_answer *answer);
void hx_delivery_ran(struct hx_delivery *delivery, const struct hapax_answer *answer);

/* Answers the client; in a batch, notes the answer for the common reply. */
void hx_delivery_answer(struct hx_delivery *delivery, const struct hapax_answer *answer);

/* The client is gone, or sends no more: a request that waits for another run leaves the line. */
void hx_delivery_gone(struct hx_http_exchange *exchange);

/* Sends the upstream's reply, although it may not be stored. */
void hx_delivery_answer_unstored(struct hx_delivery *delivery);

/* The response is too large to keep: forwards the part received, and the rest as it comes. */
void hx_delivery_stream(struct hx_delivery *delivery);

/* Pass-through: the response goes to the client from its head on. */
void hx_delivery_pass(struct hx_delivery *delivery, const struct hx_http1_head *head);

/* 400: an upstream may read the path as a different one. */
#define HX_DELIVERY_OTHER_ROUTE \
	"a service that decodes the path, or drops its ';' parameters, would use a different route"
void hx_delivery_refuse_path(struct hx_delivery *delivery, const char *detail);

/*
 * Replies with a problem; the delivery stays if its run continues. In a batch the problem is noted,
 * and the caller continues with the next event.
 */
void hx_delivery_refuse(
	struct hx_delivery *delivery, unsigned status, const char *type, const char *title,
	const char *detail);

extern const struct hx_http_call_ops hx_forward_ops;

/* What the upstream's status means on the delivery's route. */
enum hapax_run_outcome hx_forward_outcome(const struct hx_delivery *delivery);

#endif
