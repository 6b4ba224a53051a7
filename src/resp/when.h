/* SPDX-License-Identifier: Apache-2.0 */
/*
 * when.h - EX, PX, EXAT and PXAT: when a value expires, as commands say it.
 *
 * Threads: as command.h.
 */
#ifndef HX_RESP_WHEN_H
#define HX_RESP_WHEN_H

#include "resp/command.h"

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

/* EX, PX, EXAT or PXAT with what follows it; false: it is none, or another one came before. */
bool hx_resp_when_option(
	struct hx_resp_when *when, struct hapax_bytes word, struct hapax_bytes value);

/*
 * The time to live that it means: HAPAX_TTL_FOREVER if nothing was said, 0 or less for a
 * point in time that has passed. False: it was refused, as Redis does: not a number, not
 * above zero, or more than a hundred years ahead.
 */
bool hx_resp_when_ttl(
	struct hx_resp_call *call, const struct hx_resp_when *when, int64_t *ret_ttl_ms);

/* As above, for EXPIRE and its kin: below zero is a time that has passed. */
bool hx_resp_when_expire(
	struct hx_resp_call *call, const struct hx_resp_when *when, int64_t *ret_ttl_ms);

#endif
