/* SPDX-License-Identifier: Apache-2.0 */
/*
 * breaker.h - whether a store that has failed shall be asked.
 *
 * Closed: it is. After so many failures in a row it opens; then the store is tried again
 * after a while, which doubles with every failure, up to a bound. The while is random
 * between its half and its whole, so that nodes that lost a store together do not come
 * back together. Only who tries closes it.
 *
 * Threads: the caller's lock. Time and randomness are passed in.
 */
#ifndef HX_STORE_OUTAGE_BREAKER_H
#define HX_STORE_OUTAGE_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

struct hx_breaker {
	unsigned failures_max;
	int64_t backoff_ms_min;
	int64_t backoff_ms_max;
	unsigned failures; /* in a row */
	bool is_open;
	unsigned retries; /* in a row, that failed since it opened */
	int64_t retry_ms; /* when to try again */
};

/* The store was asked, and did not answer. Returns true when this has opened it. */
bool hx_breaker_fail(struct hx_breaker *breaker, int64_t now_ms, uint64_t random);

/* The store has answered. Does not close it. */
void hx_breaker_succeed(struct hx_breaker *breaker);

/* The store is as it was. */
void hx_breaker_close(struct hx_breaker *breaker);

/* Open, and time to try. */
bool hx_breaker_is_due(const struct hx_breaker *breaker, int64_t now_ms);

#endif
