/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consume_out.h - what `hapax consume` says: each fact as it happens, figures now and then.
 *
 * As text, facts go to standard error and the figures to standard output at the end. As
 * JSON all of it is one document a line on standard output, whose member "event" says what
 * it is.
 *
 * Threads: any; a mutex keeps lines whole.
 */
#ifndef HX_CLI_CONSUME_CONSUME_OUT_H
#define HX_CLI_CONSUME_CONSUME_OUT_H

#include <stdbool.h>

#include <hapax/source.h>

#include "base/thread.h"
#include "cli/frame/command.h"

struct hx_consume_out {
	struct hx_invocation *inv;
	bool is_verbose; /* duplicates, too */
	struct hx_mutex mutex;
};

void hx_consume_out_init(struct hx_consume_out *out, struct hx_invocation *inv, bool is_verbose);
void hx_consume_out_done(struct hx_consume_out *out);

/* A hapax_consumer_told_fn. */
void hx_consume_out_told(const struct hapax_consumer_event *event, void *context);

/* Figures, as JSON only: what tells them from the last ones. */
void hx_consume_out_progress(struct hx_consume_out *out, const struct hapax_consumer_stats *stats);

/* The last figures, in the form that was asked for. */
void hx_consume_out_end(struct hx_consume_out *out, const struct hapax_consumer_stats *stats);

#endif
