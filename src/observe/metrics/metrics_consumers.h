/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics_consumers.h - the consumers of the daemon as metrics.
 *
 * Threads: any.
 */
#ifndef HX_METRICS_CONSUMERS_H
#define HX_METRICS_CONSUMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/source.h>

struct hx_promtext;

/* One consumer at a scrape. */
struct hx_consumer_facts {
	const char *name;
	struct hapax_consumer_stats stats; /* since the daemon started */
	bool is_up;                        /* it consumes, or would if there were messages */
	bool is_paused;                    /* by an operator */
	bool is_waiting;                   /* because the store refuses */
	bool is_halted;                    /* because a message has no ID */
	uint64_t starts;
};

/* Families hapax_consumer_*; without consumers there are none. */
void hx_metrics_write_consumers(
	struct hx_promtext *text, const struct hx_consumer_facts *facts, size_t count);

#endif
