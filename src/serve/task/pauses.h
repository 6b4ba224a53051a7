/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pauses.h - asks the store which consumers are paused (api/pause.h), without waiting for it.
 *
 * One question at a time, about all consumers. Its answer comes on the control loop, where the
 * question was asked.
 *
 * Threads: the control loop's.
 */
#ifndef HX_SERVE_TASK_PAUSES_H
#define HX_SERVE_TASK_PAUSES_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/store.h>

#include "api/pause.h"
#include "base/buf.h"
#include "net/reactor.h"

enum { HX_PAUSES_NAME_SIZE = 128 + 1 };

struct hx_pauses_question {
	struct hapax_record record;
	struct hapax_buf buf;
	char name[HX_PAUSES_NAME_SIZE];
};

struct hx_pauses {
	struct hapax_store *store;
	struct hx_reactor *reactor;
	/* The answer for a consumer of that name; is_known is false after an error. */
	void (*told)(
		void *context, const char *name, const struct hx_pause *pause,
		enum hapax_status status);
	/* All answers were told. */
	void (*ended)(void *context);
	void *context;
	struct hx_task task;
	struct hapax_op *ops;
	struct hx_pauses_question *questions;
	size_t count;
	bool is_asking; /* the store has the question */
};

/* Begin a question about count consumers. False: one is in progress, or there is no memory. */
bool hx_pauses_begin(struct hx_pauses *pauses, size_t count);

/* Its next consumer. */
void hx_pauses_add(struct hx_pauses *pauses, const char *name);

/* Ask. */
void hx_pauses_ask(struct hx_pauses *pauses);

#endif
