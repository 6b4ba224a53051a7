/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally.h - what is counted of clients that a door turned away by itself.
 *
 * Threads: that of the cells.
 */
#ifndef HX_SERVE_HTTP_TALLY_H
#define HX_SERVE_HTTP_TALLY_H

#include "net/http/http_server.h"
#include "observe/metrics/metrics.h"

/* By door and status, unless that is 0, and by what turned it away, if it was a limit. */
void hx_tally_refused(
	struct hx_cells *cells, enum hx_door door, unsigned status, enum hx_http_refusal why);

#endif
