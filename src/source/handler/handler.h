/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handler.h - the interface of message handlers.
 *
 * Threads: the consumer's.
 */
#ifndef HX_SOURCE_HANDLER_HANDLER_H
#define HX_SOURCE_HANDLER_HANDLER_H

#include "source/consume/in_flight.h"

struct hx_handler;

struct hx_handler_ops {
	/* Start the work; hx_in_flight_finish() ends it, perhaps before start returns. */
	void (*start)(struct hx_handler *handler, struct hx_in_flight *in_flight);
	/* The work no longer counts, or takes too long: stop it. NULL: not possible. */
	void (*stop)(struct hx_handler *handler, struct hx_in_flight *in_flight);
	/* Process work that ended on other threads. NULL: none does. */
	void (*turn)(struct hx_handler *handler);
	/* Free the handler's data of a message. NULL: none. */
	void (*forget)(struct hx_handler *handler, struct hx_in_flight *in_flight);
};

struct hx_handler {
	const struct hx_handler_ops *ops;
};

/* The function, key and options for a type of events. */
struct hx_route {
	char *type; /* NULL: every other type */
	struct hx_identity *identity;
	struct hapax_run_options run;
	struct hapax_run_options unprotected; /* the same for events without a key */
	hapax_handler_fn *fn;                 /* for a function */
	void *context;
	/* With transactions, fn is that of tx_session.h, which calls inner. */
	hapax_handler_fn *inner;
	void *inner_context;
	struct hapax_run_options inner_run;
};

#endif
