/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consume_out.h - what hapax consume prints.
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

struct consume_out {
	struct hx_invocation *inv;
	bool is_verbose; /* print each message, too */
	const char *from;
	const char *store;
	struct hx_mutex mutex;
	bool is_ready;     /* the broker was reached */
	char strategy[96]; /* that fits a message without a key; empty: none came */
};

/* hapax_consumer_told_fn; context: a struct consume_out. */
void hx_consume_out_told(const struct hapax_consumer_event *event, void *context);

void hx_consume_out_progress(struct consume_out *out, const struct hapax_consumer_stats *stats);
void hx_consume_out_end(struct consume_out *out, const struct hapax_consumer_stats *stats);

#endif
