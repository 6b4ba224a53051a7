/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - checks and copies of struct hapax_record.
 *
 * Threads: any; the functions keep no state.
 */
#ifndef HX_RECORD_RECORD_H
#define HX_RECORD_RECORD_H

#include <stdbool.h>

#include <hapax/error.h>
#include <hapax/record.h>

#include "base/buf.h"

/*
 * Assert the invariants of every stored record, whatever its origin:
 *
 *  (1) state is one of the four; token is in 1 .. HX_TOKEN_MAX; attempt is at least 1.
 *  (2) CLAIMED and PARKED never expire; DONE and FAILED do, unless ttl is forever.
 *  (3) Only CLAIMED has a lease.
 *  (4) Only DONE has a result, and it has no owner and no error.
 *  (5) The fingerprint is zero beyond its size; outside CLAIMED and PARKED, attempt_id is.
 *  (6) Every length lies within limits.h, and no length lacks its data.
 *  (7) first_seen_ms <= changed_ms.
 *  (8) Only a record of origin CLAIM has a cause.
 */
void hx_record_assert(const struct hapax_record *record);

/* The same checks as a question, for bytes from a disk. */
bool hx_record_is_valid(const struct hapax_record *record);

/* DONE or FAILED and past its expiry: treat it as absent. */
bool hx_record_is_expired(const struct hapax_record *record, int64_t now_ms);

/* CLAIMED and past its lease. */
bool hx_record_is_lapsed(const struct hapax_record *record, int64_t now_ms);

/* Drop the body, as a tombstone does. The state stays, and omitted_bytes keeps the body's size. */
void hx_record_result_omit_body(struct hapax_result *result);

/*
 * Copy source to *ret_target with all of its bytes in buf, which is cleared first. source must
 * not point into buf. HAPAX_ERR_LIMIT: buf may not hold that much. HAPAX_ERR_NO_MEMORY.
 */
enum hapax_status hx_record_copy(
	const struct hapax_record *source, struct hapax_record *ret_target, struct hapax_buf *buf);

#endif
