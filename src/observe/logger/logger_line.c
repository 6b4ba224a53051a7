/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logger_line.c - log lines with a guaranteed wording.
 */
#include "observe/logger/logger_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/limits.h"

/* "acme/payments", in out. */
static struct hapax_bytes scope_text(
	struct hapax_bytes tenant, struct hapax_bytes group,
	char out[2 * HX_SCOPE_PART_SIZE_MAX + 2])
{
	int size = snprintf(
		out, 2 * HX_SCOPE_PART_SIZE_MAX + 2, "%.*s/%.*s",
		(int)(tenant.size > HX_SCOPE_PART_SIZE_MAX ? HX_SCOPE_PART_SIZE_MAX : tenant.size),
		tenant.size == 0 ? "" : (const char *)tenant.data,
		(int)(group.size > HX_SCOPE_PART_SIZE_MAX ? HX_SCOPE_PART_SIZE_MAX : group.size),
		group.size == 0 ? "" : (const char *)group.data);

	return hx_bytes(out, size < 0 ? 0 : (size_t)size);
}

static const char *unless_empty(const char *name, struct hapax_bytes value)
{
	return value.size == 0 ? NULL : name;
}

void hx_logger_duplicate(struct hx_logger *log, const struct hx_logger_duplicate *duplicate)
{
	char queue[2 * HX_SCOPE_PART_SIZE_MAX + 2];
	char token[24];

	if (!hx_logger_takes(log, HX_LOGGER_INFO))
		return;
	(void)snprintf(token, sizeof(token), "%" PRIu64, duplicate->original_token);
	{
		const struct hx_logger_field fields[] = {
			HX_LOGGER_KEY(
				unless_empty("idempotency_key", duplicate->key), duplicate->key),
			HX_LOGGER_BYTES(
				unless_empty("job_id", duplicate->event_id), duplicate->event_id),
			HX_LOGGER_BYTES(
				"queue", scope_text(duplicate->tenant, duplicate->group, queue)),
			HX_LOGGER_TEXT(
				duplicate->original_token == 0 ? NULL : "original_job_id", token),
			HX_LOGGER_DURATION("ttl_remaining", duplicate->ttl_left_ms),
			HX_LOGGER_BYTES(
				unless_empty("event_id", duplicate->event_id), duplicate->event_id),
			HX_LOGGER_BYTES(
				unless_empty("event_type", duplicate->event_type),
				duplicate->event_type),
			HX_LOGGER_BYTES(
				unless_empty("event_source", duplicate->event_source),
				duplicate->event_source),
			HX_LOGGER_TIME(
				duplicate->first_seen_ms == 0 ? NULL : "first_seen",
				duplicate->first_seen_ms),
			HX_LOGGER_TEXT(
				duplicate->route == NULL ? NULL : "route",
				duplicate->route == NULL ? "" : duplicate->route),
			HX_LOGGER_TEXT(
				duplicate->consumer == NULL ? NULL : "consumer",
				duplicate->consumer == NULL ? "" : duplicate->consumer),
			HX_LOGGER_TEXT(
				duplicate->cause == NULL ? NULL : "cause",
				duplicate->cause == NULL ? "" : duplicate->cause),
			HX_LOGGER_BYTES(unless_empty("place", duplicate->place), duplicate->place),
			HX_LOGGER_BYTES(
				unless_empty("original", duplicate->original), duplicate->original),
			HX_LOGGER_BYTES(
				unless_empty("trace_id", duplicate->trace_id), duplicate->trace_id),
			HX_LOGGER_BYTES(
				unless_empty("span_id", duplicate->span_id), duplicate->span_id),
		};

		hx_logger(log, HX_LOGGER_INFO, "duplicate job blocked", fields, HX_COUNT(fields));
	}
}

void hx_logger_duplicate_rate(
	struct hx_logger *log, struct hapax_bytes tenant, struct hapax_bytes group, double hit_rate,
	double threshold)
{
	char queue[2 * HX_SCOPE_PART_SIZE_MAX + 2];
	const struct hx_logger_field fields[] = {
		HX_LOGGER_BYTES("queue", scope_text(tenant, group, queue)),
		HX_LOGGER_SHARE("hit_rate", hit_rate),
		HX_LOGGER_SHARE("threshold", threshold),
		HX_LOGGER_TEXT("suggestion", "review how often the sender retries"),
	};

	hx_logger(log, HX_LOGGER_WARN, "high duplicate rate detected", fields, HX_COUNT(fields));
}

void hx_logger_cleanup(
	struct hx_logger *log, uint64_t total, uint64_t deleted, uint64_t remaining,
	int64_t took_ms)
{
	const struct hx_logger_field fields[] = {
		HX_LOGGER_UNSIGNED("total", total),
		HX_LOGGER_UNSIGNED("deleted", deleted),
		HX_LOGGER_UNSIGNED("remaining", remaining),
		HX_LOGGER_DURATION("took", took_ms),
	};

	hx_logger(
		log, deleted == 0 ? HX_LOGGER_DEBUG : HX_LOGGER_INFO, "cleanup finished", fields,
		HX_COUNT(fields));
}
