/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handler.h - who does the work of a message.
 *
 * Threads: the consumer's.
 */
#ifndef HX_SOURCE_HANDLER_HANDLER_H
#define HX_SOURCE_HANDLER_HANDLER_H

#include "source/consume/in_flight.h"

struct hx_handler;

struct hx_handler_ops {
	/* Work on it; hx_in_flight_finish() ends it, perhaps before start returns. */
	void (*start)(struct hx_handler *handler, struct hx_in_flight *in_flight);
	/* Its work no longer counts, or takes too long: stop if that can be. NULL: it cannot. */
	void (*stop)(struct hx_handler *handler, struct hx_in_flight *in_flight);
	/* Take up what ended on other threads. NULL: nothing ends there. */
	void (*turn)(struct hx_handler *handler);
	/* What a message holds for it, when the message is freed. NULL: nothing. */
	void (*forget)(struct hx_handler *handler, struct hx_in_flight *in_flight);
};

struct hx_handler {
	const struct hx_handler_ops *ops;
};

/* Which function, key and options, for which type of events. */
struct hx_route {
	char *type; /* NULL: every other */
	struct hx_identity *identity;
	struct hapax_run_options run;
	struct hapax_run_options unprotected; /* the same for events without a key */
	hapax_handler_fn *fn;                 /* of a function */
	void *context;
	/* With transactions fn is that of tx_session.h, which calls this one. */
	hapax_handler_fn *inner;
	void *inner_context;
	struct hapax_run_options inner_run;
};

#endif
