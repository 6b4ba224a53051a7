/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delivery.h - a request on its way: claimed, forwarded, completed, answered.
 *
 *	request ──▶ claim ──RUN──▶ forward ──▶ finish ──END──▶ reply
 *	              └─────────────END, without a run────────────┘
 *
 * A request is one delivery; the events of a batch go through it one after the other. The
 * doors differ in how they find the key (gateway.c, proxy.c) and in the words of their
 * answers; all the rest is one path. What passes the proxy without a key goes the same way,
 * without a claim.
 *
 *  (1) The exchange lives until the reply; the delivery until the run has ended, too.
 *  (2) What the run's result points at is the delivery's, and stays until END.
 *  (3) A response up to max_result is kept and answered when its completion is durable.
 *      Of a larger one nothing is kept but its size: it goes to the sender as it comes,
 *      and its end when the completion is durable.
 *  (4) Steps that come on another thread leave a bit in steps and, at END, a copy of the
 *      answer; the loop takes them up in task.
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
#include "serve/http/proxy_key.h"
#include "serve/trace/tracing.h"

/* How an event came out, as far as its sender is concerned; the largest decides a batch. */
enum hx_conclusion {
	HX_CONCLUSION_DONE,       /* 200 */
	HX_CONCLUSION_REJECTED,   /* 422: it will not get better */
	HX_CONCLUSION_PARKED,     /* 409: a person has to decide */
	HX_CONCLUSION_BUSY,       /* 409: somebody has it; come again */
	HX_CONCLUSION_UNFINISHED, /* 503: come again */
};

/* A batch on its way. */
struct hx_delivery_batch {
	struct hx_cloudevents_batch reader;
	struct hapax_buf text;    /* the body, if it was in a file */
	struct hapax_bytes event; /* the JSON object that is on its way */
	enum hx_conclusion worst;
	bool is_unstored; /* an event was run, and that could not be kept */
};

/* Which key, in which scope: borrowed from the delivery and its configuration. */
struct hx_delivery_identity {
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key;           /* empty: there is none, and it runs unprotected */
	const unsigned char *fingerprint; /* NULL: none */
};

/* Of the event that is on its way, or of the request: set before it is asked for, gone at END. */
struct hx_delivery_claim {
	const struct hx_config_route *route;
	const struct hx_config_proxy_route *proxy;
	const char *route_name; /* of either, as are the next two */
	const struct hx_config_target *target;
	struct hx_upstream *upstream;
	struct hx_delivery_identity identity;
	struct hapax_key key;          /* of the gateway: what identity points at */
	struct hx_proxy_key proxy_key; /* of the proxy: the same */
	bool passes;     /* the proxy: without a claim, and the response as it comes */
	bool lacks_key;  /* and so it passes; others of its method are run once */
	bool is_waiting; /* for somebody else's run */
	struct hapax_run_options options;
	struct hapax_run *run; /* from RUN to END */
	uint32_t scope_number; /* for metrics */
	int64_t asked_ns;      /* hx_clock_mono_ns(): the store may answer within the turn */
	struct hx_tracing tracing;
	/* For logs: what the event says it is; of the proxy empty. */
	char type[128];
	char source[256];
	char id[256];
};

/* The request to the upstream and its response, from RUN to END; buffers stay for the next. */
struct hx_delivery_call {
	struct hx_http_call http;
	struct hapax_buf head; /* of the request */
	int64_t sent_ns;
	unsigned status;          /* of the response; 0: there is none */
	struct hapax_buf headers; /* its fields, as "Name: value\r\n" */
	size_t headers_kept;      /* of them, that are stored: the rest is for the first only */
	struct hapax_buf body;
	uint64_t body_size; /* all of it; more than body holds: it was too large */
	size_t body_noted;  /* in the loop's account */
	bool is_streamed;   /* the sender has its beginning */
	bool is_late;
	bool is_revoked; /* nothing was sent, because its lease had lapsed */
	enum hapax_run_outcome outcome;
	struct hapax_result result;
	struct hapax_error failure; /* when there is no response: why */
};

/* What came on another thread, until the loop has taken it up. */
struct hx_delivery_told {
	_Atomic unsigned steps;
	struct hx_task task;
	struct hapax_answer answer; /* of RUN and END, with its bytes: */
	struct hapax_buf answer_text;
};

/* A request, from when it is accepted until it is answered and its last run has ended. */
struct hx_delivery {
	struct hx_loop *loop;
	struct hx_loop_config *config;
	struct hx_http_exchange *exchange; /* NULL: it is answered */
	enum hx_door door;                 /* GATEWAY or PROXY */
	bool is_left;                      /* by its client: it need not wait */
	bool is_counted;                   /* among the requests of its tenant */
	bool has_certificate;              /* of the proxy: its client has shown one */
	unsigned char certificate[HX_SHA256_SIZE];
	char tenant[HAPAX_SCOPE_SIZE_MAX + 1]; /* whose request it is, when is_counted */
	int64_t came_ns;
	struct hx_delivery_batch *batch; /* NULL: it is one event */
	struct hx_large *large;          /* NULL: the loop reads it */
	struct hx_delivery_claim claim;
	struct hx_delivery_call call;
	struct hx_delivery_told told;
	struct hx_delivery *next; /* in a list of the loop */
};

/* Take up a request of the proxy: at the end of the turn. */
void hx_proxy_handle(struct hx_http_exchange *exchange);

/*
 * From the loop's pool, for this request, which is read at the end of the turn. False: no
 * memory, and the request was refused.
 */
bool hx_delivery_accept(struct hx_http_exchange *exchange, enum hx_door door);

/* And back. */
void hx_delivery_give(struct hx_delivery *delivery);
void hx_deliveries_free(struct hx_loop *loop);

/* Read a request of the proxy: its key, if it has one. */
void hx_proxy_take_up(struct hx_delivery *delivery);

/*
 * Ask for the claim at the end of the turn: route, identity, options and asked_ns are set.
 * False: it was refused, and the delivery is gone unless it is a batch.
 */
bool hx_delivery_ask(struct hx_delivery *delivery);

/* Where it goes; the routes of the gateway come first, then those of the proxy. */
void hx_delivery_set_route(
	struct hx_delivery *delivery, const char *name, const struct hx_config_target *target,
	size_t index);

/* The right to run is ours: send it. */
void hx_forward(struct hx_delivery *delivery, const struct hapax_answer *answer);

/* The same for one that was told to run some time ago: if its lease is over, it fails. */
void hx_forward_late(struct hx_delivery *delivery, const struct hapax_answer *answer);

/* The end of a turn: read, claim and complete what has come together. */
void hx_delivery_read_all(struct hx_task *task);
void hx_delivery_begin_all(struct hx_task *task);
void hx_delivery_finish_all(struct hx_task *task);

/* Have it completed at the end of the turn. */
void hx_delivery_finish(struct hx_delivery *delivery);

/* What happened, for the client; of a batch, noted for the reply to all of its events. */
void hx_delivery_answer(struct hx_delivery *delivery, const struct hapax_answer *answer);

/* The client has gone, or sends no more: if its request waits for another's run, it leaves. */
void hx_delivery_gone(struct hx_http_exchange *exchange);

/* The upstream's reply, although it is not known to be stored. */
void hx_delivery_answer_unstored(struct hx_delivery *delivery);

/* The response is too large to be kept: pass on what came of it, and the rest as it comes. */
void hx_delivery_stream(struct hx_delivery *delivery);

/* It passes: the response goes to the client from its head on. */
void hx_delivery_pass(struct hx_delivery *delivery, const struct hx_http1_head *head);

/* 400: an upstream may take the path for another one. */
#define HX_DELIVERY_OTHER_ROUTE \
	"a service that decodes the path, or drops its ';' parameters, finds another route"
void hx_delivery_refuse_path(struct hx_delivery *delivery, const char *detail);

/*
 * A problem instead of a reply; the delivery goes on if its run does. Of a batch it is noted, and
 * the caller goes on with the next event.
 */
void hx_delivery_refuse(
	struct hx_delivery *delivery, unsigned status, const char *type, const char *title,
	const char *detail);

extern const struct hx_http_call_ops hx_forward_ops;

#endif
