/* SPDX-License-Identifier: Apache-2.0 */
/*
 * breaker.h - a circuit breaker: decides whether to ask a store that has failed.
 *
 * Closed: the store is asked. After a number of failures in a row the breaker opens. The store is
 * then retried after a delay, which doubles with every failure, up to a bound. The delay is
 * random between half and all of it, so that nodes that lost a store together do not return
 * together. Only a retry closes the breaker.
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
	unsigned retries; /* failed retries in a row since it opened */
	int64_t retry_ms; /* time of the next retry */
};

/* Record that the store did not answer. Returns true if this opened the breaker. */
bool hx_breaker_fail(struct hx_breaker *breaker, int64_t now_ms, uint64_t random);

/* Record that the store answered. Does not close the breaker. */
void hx_breaker_succeed(struct hx_breaker *breaker);

/* Record that the store works again. */
void hx_breaker_close(struct hx_breaker *breaker);

#endif
