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

struct hx_decision;
struct hx_decision_end;

/*
 * "duplicate job blocked" (E12, A10), info: idempotency_key, job_id (the event's id), queue (the
 * scope), original_job_id, original_type, original_source and original_time of the event that the key
 * was claimed for, original_token, ttl_remaining, event_id, event_type, event_source, first_seen, door,
 * decision, route, trace_id, span_id; for a message also consumer, cause, place, original. False:
 * suppressed by the rate.
 */
bool hx_logger_duplicate(struct hx_logger *log, const struct hx_decision *decision, int64_t now_ms);

/* Duplicates that were left out, because one was just suppressed. */
void hx_logger_duplicates_suppressed(struct hx_logger *log, uint64_t count);

/*
 * "job received", debug, when a run begins or a delivery is refused; "job succeeded" and "job
 * failed", debug, when a run ends: outcome, took, code, error.
 */
void hx_logger_received(struct hx_logger *log, const struct hx_decision *decision);
void hx_logger_ended(
	struct hx_logger *log, const struct hx_decision *decision,
	const struct hx_decision_end *end);

/*
 * The lines of log.decisions (E20), info: "decision" for each of them, "run ended" for each run.
 * tenant and group stand by themselves: 'hapax decisions erase' looks for the tenant.
 */
void hx_logger_decided(struct hx_logger *file, const struct hx_decision *decision);
void hx_logger_run_ended(
	struct hx_logger *file, const struct hx_decision *decision,
	const struct hx_decision_end *end);

/* "high duplicate rate detected" (E12), warn: queue, hit_rate and threshold (%), suggestion. */
void hx_logger_duplicate_rate(
	struct hx_logger *log, struct hapax_bytes tenant, struct hapax_bytes group, double hit_rate,
	double threshold);

/* "cleanup finished" (A10), info, or debug if none was removed: total, deleted, remaining. */
void hx_logger_cleanup(
	struct hx_logger *log, uint64_t total, uint64_t deleted, uint64_t remaining,
	int64_t took_ms);

#endif
