/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp_tally.h - counts a round of the Redis door, and reports its decisions.
 *
 * Threads: the loop's.
 */
#ifndef HX_SERVE_RESP_RESP_TALLY_H
#define HX_SERVE_RESP_RESP_TALLY_H

struct hx_loop;
struct hx_resp_batch;

/* The batch is answered. */
void hx_resp_tally(struct hx_loop *loop, const struct hx_resp_batch *batch);

#endif
