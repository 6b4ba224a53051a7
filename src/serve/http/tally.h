/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally.h - counters of deliveries, and of clients that a door refused.
 *
 * Threads: that of the cells.
 */
#ifndef HX_SERVE_HTTP_TALLY_H
#define HX_SERVE_HTTP_TALLY_H

#include "net/http/http_server.h"
#include "observe/metrics/metrics.h"

struct hapax_answer;
struct hx_delivery;

/* Counts by door and status, unless that is 0, and by the limit that refused it, if any. */
void hx_tally_refused(
	struct hx_cells *cells, enum hx_door door, unsigned status, enum hx_http_refusal why);

/* A delivery was decided, by RUN or by an END without a run; and it has ended. */
void hx_tally_decided(struct hx_delivery *delivery, const struct hapax_answer *answer);
void hx_tally_ended(struct hx_delivery *delivery, const struct hapax_answer *answer);

#endif
