/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logger_line.h - log lines with a guaranteed wording, as the documents require.
 *
 * Programs parse them by msg and fields, so they are created in one place.
 *
 * Threads: any.
 */
#ifndef HX_LOGGER_LINE_H
#define HX_LOGGER_LINE_H

#include <hapax/store.h>

#include "observe/logger/logger.h"

/* A delivery that was not run again. Empty and 0: unknown. */
struct hx_logger_duplicate {
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key;
	struct hapax_bytes event_id;
	struct hapax_bytes event_type;
	struct hapax_bytes event_source;
	const char *route;
	struct hapax_bytes trace_id; /* digits */
	struct hapax_bytes span_id;
	uint64_t original_token; /* of the run whose result is stored */
	int64_t first_seen_ms;
	int64_t ttl_left_ms; /* INT64_MAX: forever */
	/* For a message: its consumer, cause, place, and the original. NULL: none */
	const char *consumer;
	const char *cause;
	struct hapax_bytes place;
	struct hapax_bytes original;
};

/*
 * "duplicate job blocked" (E12, A10), info: idempotency_key, job_id (the event's id), queue
 * (the scope), original_job_id (the token), ttl_remaining, event_id, event_type,
 * event_source, first_seen, route, trace_id, span_id; for a message also consumer, cause, place,
 * original.
 */
void hx_logger_duplicate(struct hx_logger *log, const struct hx_logger_duplicate *duplicate);

/* "high duplicate rate detected" (E12), warn: queue, hit_rate and threshold (%), suggestion. */
void hx_logger_duplicate_rate(
	struct hx_logger *log, struct hapax_bytes tenant, struct hapax_bytes group, double hit_rate,
	double threshold);

/* "cleanup finished" (A10), info, or debug if none was removed: total, deleted, remaining. */
void hx_logger_cleanup(
	struct hx_logger *log, uint64_t total, uint64_t deleted, uint64_t remaining,
	int64_t took_ms);

#endif
