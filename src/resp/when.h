/* SPDX-License-Identifier: Apache-2.0 */
/*
 * when.h - EX, PX, EXAT and PXAT: when a value expires, as commands specify it.
 *
 * Threads: as resp_command.h.
 */
#ifndef HX_RESP_WHEN_H
#define HX_RESP_WHEN_H

#include "resp/resp_command.h"

enum hx_resp_when_unit {
	HX_RESP_WHEN_NONE = 0, /* not specified: never expires */
	HX_RESP_WHEN_SECONDS,
	HX_RESP_WHEN_MS,
	HX_RESP_WHEN_AT_SECONDS,
	HX_RESP_WHEN_AT_MS,
};

static inline bool hx_resp_when_is_absolute(enum hx_resp_when_unit unit)
{
	return unit == HX_RESP_WHEN_AT_SECONDS || unit == HX_RESP_WHEN_AT_MS;
}

static inline bool hx_resp_when_is_ms(enum hx_resp_when_unit unit)
{
	return unit == HX_RESP_WHEN_MS || unit == HX_RESP_WHEN_AT_MS;
}

struct hx_resp_when {
	enum hx_resp_when_unit unit;
	struct hapax_bytes text;
};

/*
 * An expiry. A point in time is by the store's clock. The store gets the number itself, so that
 * EXPIRETIME returns the original number and all clients share one clock.
 */
struct hx_resp_expiry {
	int64_t ttl_ms; /* time left by the store's clock, as known; 0 or less: it has passed */
	int64_t at_ms;  /* the point in time; 0: a time to live was given */
};

/* Stores it in a set or expire operation. It must not have passed. */
void hx_resp_expiry_put(const struct hx_resp_expiry *expiry, struct hapax_op *op);

/* Reads EX, PX, EXAT or PXAT and its value. False: not one of these, or a second one. */
bool hx_resp_when_option(
	struct hx_resp_when *when, struct hapax_bytes word, struct hapax_bytes value);

/*
 * For SET and its variants: HAPAX_TTL_FOREVER if not specified. False: refused like in Redis, as
 * not a number, not above zero, or more than a hundred years ahead.
 */
bool hx_resp_when_set(
	struct hx_resp_call *call, const struct hx_resp_when *when,
	struct hx_resp_expiry *ret_expiry);

/* As above, for EXPIRE and its variants: below zero is a time that has passed. */
bool hx_resp_when_expire(
	struct hx_resp_call *call, const struct hx_resp_when *when,
	struct hx_resp_expiry *ret_expiry);

/* hx_resp_when_set() for a time to live. */
bool hx_resp_when_ttl(
	struct hx_resp_call *call, const struct hx_resp_when *when, int64_t *ret_ttl_ms);

#endif
