/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consume_out.h - the output of `hapax consume`: each event as it happens, and regular figures.
 *
 * In text form, events go to standard error, and the figures to standard output at the end. In JSON
 * form, everything goes to standard output, one document a line; its member "event" names the kind.
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
	bool is_verbose; /* print duplicates, too */
	struct hx_mutex mutex;
};

void hx_consume_out_init(struct hx_consume_out *out, struct hx_invocation *inv, bool is_verbose);
void hx_consume_out_done(struct hx_consume_out *out);

/* A hapax_consumer_told_fn. */
void hx_consume_out_told(const struct hapax_consumer_event *event, void *context);

/* Print interim figures, in JSON form only. */
void hx_consume_out_progress(struct hx_consume_out *out, const struct hapax_consumer_stats *stats);

/* Print the last figures, in the chosen form. */
void hx_consume_out_end(struct hx_consume_out *out, const struct hapax_consumer_stats *stats);

#endif
