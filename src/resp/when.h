/* SPDX-License-Identifier: Apache-2.0 */
/*
 * when.h - EX, PX, EXAT and PXAT: when a value expires, as commands say it.
 *
 * Threads: as command.h.
 */
#ifndef HX_RESP_WHEN_H
#define HX_RESP_WHEN_H

#include "resp/resp_command.h"

enum hx_resp_when_unit {
	HX_RESP_WHEN_NONE = 0, /* nothing was said: it is kept for ever */
	HX_RESP_WHEN_SECONDS,
	HX_RESP_WHEN_MS,
	HX_RESP_WHEN_AT_SECONDS,
	HX_RESP_WHEN_AT_MS,
};

struct hx_resp_when {
	enum hx_resp_when_unit unit;
	struct hapax_bytes text;
};

/*
 * What it means. A point in time is one by the store's clock: the store is handed the number itself,
 * so that EXPIRETIME gives back what was said, and expiry is judged by the clock that all share.
 */
struct hx_resp_expiry {
	int64_t ttl_ms; /* what is left, by the store's clock as far as it is known; 0 or less: it has passed */
	int64_t at_ms; /* the point in time that was said; 0: a time to live was */
};

/* Into an operation that sets or expires. It must not have passed. */
void hx_resp_expiry_put(const struct hx_resp_expiry *expiry, struct hapax_op *op);

/* EX, PX, EXAT or PXAT with what follows it; false: it is none, or another one came before. */
bool hx_resp_when_option(
	struct hx_resp_when *when, struct hapax_bytes word, struct hapax_bytes value);

/*
 * For SET and its kin: HAPAX_TTL_FOREVER if nothing was said. False: it was refused, as Redis
 * does: not a number, not above zero, or more than a hundred years ahead.
 */
bool hx_resp_when_set(
	struct hx_resp_call *call, const struct hx_resp_when *when,
	struct hx_resp_expiry *ret_expiry);

/* As above, for EXPIRE and its kin: below zero is a time that has passed. */
bool hx_resp_when_expire(
	struct hx_resp_call *call, const struct hx_resp_when *when,
	struct hx_resp_expiry *ret_expiry);

/* hx_resp_when_set() of a time to live. */
bool hx_resp_when_ttl(
	struct hx_resp_call *call, const struct hx_resp_when *when, int64_t *ret_ttl_ms);

#endif
