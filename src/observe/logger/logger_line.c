/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logger_line.c - log lines with a guaranteed wording.
 */
#include "observe/logger/logger_line.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/time.h"
#include "observe/decision.h"

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

static const char *unless_null(const char *name, const char *value)
{
	return value == NULL ? NULL : name;
}

static const char duplicate_msg[] = "duplicate job blocked";

/* The fields that lines about a decision share. */
enum { COMMON_MAX = 10, OTHERS_MAX = 12 };

struct common {
	struct hx_logger_field fields[COMMON_MAX];
	char queue[2 * HX_SCOPE_PART_SIZE_MAX + 2];
};

static void set_common(struct common *common, const struct hx_decision *decision)
{
	const struct hapax_cause *event = &decision->event;
	const char *route = decision->route;
	const char *consumer = decision->consumer;
	const struct hx_logger_field fields[COMMON_MAX] = {
		HX_LOGGER_KEY(unless_empty("idempotency_key", decision->key), decision->key),
		HX_LOGGER_BYTES(unless_empty("job_id", event->id), event->id),
		HX_LOGGER_BYTES(
			"queue", scope_text(decision->tenant, decision->group, common->queue)),
		HX_LOGGER_TEXT("door", hx_door_name(decision->door)),
		HX_LOGGER_BYTES(unless_empty("event_id", event->id), event->id),
		HX_LOGGER_BYTES(unless_empty("event_type", event->type), event->type),
		HX_LOGGER_BYTES(unless_empty("event_source", event->source), event->source),
		HX_LOGGER_TEXT(unless_null("route", route), route == NULL ? "" : route),
		HX_LOGGER_TEXT(unless_null("consumer", consumer), consumer == NULL ? "" : consumer),
		HX_LOGGER_BYTES(unless_empty("place", decision->place), decision->place),
	};

	memcpy(common->fields, fields, sizeof(fields));
}

/*
 * The same in the file of decisions. tenant and group come first: a line that is cut must not lose
 * them, or an erasure would not find it. IDs are often parts of the key, so they are as secret.
 */
static void file_with(
	struct hx_logger *file, const char *msg, const struct hx_decision *decision,
	const struct hx_logger_field *others, size_t count)
{
	enum { SCOPE_FIELDS = 2 };
	struct common common;
	struct hx_logger_field fields[SCOPE_FIELDS + COMMON_MAX + OTHERS_MAX] = {
		HX_LOGGER_BYTES("tenant", decision->tenant),
		HX_LOGGER_BYTES("group", decision->group),
	};

	assert(count <= OTHERS_MAX);
	set_common(&common, decision);
	memcpy(fields + SCOPE_FIELDS, common.fields, sizeof(common.fields));
	memcpy(fields + SCOPE_FIELDS + COMMON_MAX, others, count * sizeof(*others));
	count += SCOPE_FIELDS + COMMON_MAX;
	for (size_t i = SCOPE_FIELDS; i < count; i++) {
		const char *name = fields[i].name == NULL ? "" : fields[i].name;

		if (strcmp(name, "queue") == 0)
			fields[i].name = NULL;
		if (strcmp(name, "job_id") == 0 || strcmp(name, "event_id") == 0 ||
		    strcmp(name, "original_job_id") == 0)
			fields[i].kind = HX_LOGGER_FIELD_KEY;
	}
	(void)hx_logger(file, HX_LOGGER_INFO, msg, fields, count);
}

/* Log the common fields and count others, if log takes the level. False: the rate suppressed it. */
static bool log_with(
	struct hx_logger *log, enum hx_logger_level level, const char *msg,
	const struct hx_decision *decision, const struct hx_logger_field *others, size_t count)
{
	struct common common;
	struct hx_logger_field fields[COMMON_MAX + OTHERS_MAX];
	uint64_t suppressed = 0;

	assert(count <= OTHERS_MAX);
	if (!hx_logger_takes(log, level))
		return true;
	/* Most lines of a busy log are suppressed: do not make them. */
	if (!hx_logger_admits(log, msg, &suppressed))
		return false;
	set_common(&common, decision);
	memcpy(fields, common.fields, sizeof(common.fields));
	memcpy(fields + COMMON_MAX, others, count * sizeof(*others));
	hx_logger_admitted(log, level, msg, fields, COMMON_MAX + count, suppressed);
	return true;
}

bool hx_logger_duplicate(struct hx_logger *log, const struct hx_decision *decision, int64_t now_ms)
{
	const struct hapax_cause *original = &decision->original;
	bool is_replay = decision->decision == HAPAX_DECISION_REPLAY;
	bool is_forever = decision->expires_ms == HAPAX_TIME_NEVER;
	const struct hx_logger_field fields[] = {
		HX_LOGGER_TEXT("decision", hapax_decision_name(decision->decision)),
		HX_LOGGER_BYTES(unless_empty("original_job_id", original->id), original->id),
		HX_LOGGER_BYTES(unless_empty("original_type", original->type), original->type),
		HX_LOGGER_BYTES(
			unless_empty("original_source", original->source), original->source),
		HX_LOGGER_TIME(original->time_ms == 0 ? NULL : "original_time", original->time_ms),
		HX_LOGGER_UNSIGNED(decision->token == 0 ? NULL : "original_token", decision->token),
		HX_LOGGER_DURATION(
			decision->expires_ms == 0 ? NULL : "ttl_remaining",
			is_forever ? INT64_MAX : decision->expires_ms - now_ms),
		HX_LOGGER_TIME(
			decision->first_seen_ms == 0 ? NULL : "first_seen",
			decision->first_seen_ms),
		HX_LOGGER_TEXT(
			is_replay ? unless_null("cause", decision->consumer) : NULL,
			hapax_duplicate_cause_name(decision->cause)),
		HX_LOGGER_BYTES(
			unless_empty("original", decision->original_place),
			decision->original_place),
		HX_LOGGER_BYTES(unless_empty("trace_id", decision->trace_id), decision->trace_id),
		HX_LOGGER_BYTES(unless_empty("span_id", decision->span_id), decision->span_id),
	};

	if (!hx_logger_takes(log, HX_LOGGER_INFO))
		return true;
	return log_with(log, HX_LOGGER_INFO, duplicate_msg, decision, fields, HX_COUNT(fields));
}

void hx_logger_duplicates_suppressed(struct hx_logger *log, uint64_t count)
{
	hx_logger_suppress(log, duplicate_msg, count);
}

void hx_logger_received(struct hx_logger *log, const struct hx_decision *decision)
{
	bool is_unprotected = (decision->flags & HX_DECISION_UNPROTECTED) != 0;
	const struct hx_logger_field fields[] = {
		HX_LOGGER_TEXT(
			"decision",
			is_unprotected ? "unprotected" : hapax_decision_name(decision->decision)),
		HX_LOGGER_UNSIGNED(decision->attempt == 0 ? NULL : "attempt", decision->attempt),
		HX_LOGGER_UNSIGNED(decision->token == 0 ? NULL : "token", decision->token),
		HX_LOGGER_BYTES(unless_empty("trace_id", decision->trace_id), decision->trace_id),
		HX_LOGGER_BYTES(unless_empty("span_id", decision->span_id), decision->span_id),
	};

	if (hx_logger_takes(log, HX_LOGGER_DEBUG))
		(void)log_with(
			log, HX_LOGGER_DEBUG, "job received", decision, fields, HX_COUNT(fields));
}

/* The fields of the end of a run. */
enum { END_FIELDS = 7 };

static void set_end(
	struct hx_logger_field out[END_FIELDS], const struct hx_decision *decision,
	const struct hx_decision_end *end)
{
	bool is_done = end->status == HAPAX_OK && end->outcome == HAPAX_RUN_OK;
	const struct hx_logger_field fields[END_FIELDS] = {
		HX_LOGGER_TEXT(
			"outcome",
			end->status == HAPAX_OK ? hapax_run_outcome_name(end->outcome)
						: "unstored"),
		HX_LOGGER_UNSIGNED(decision->attempt == 0 ? NULL : "attempt", decision->attempt),
		HX_LOGGER_UNSIGNED(decision->token == 0 ? NULL : "token", decision->token),
		HX_LOGGER_DURATION(end->took_ns < 0 ? NULL : "took", end->took_ns / HX_NS_PER_MS),
		HX_LOGGER_UNSIGNED(end->code == 0 ? NULL : "code", end->code),
		HX_LOGGER_BYTES(is_done ? NULL : unless_empty("error", end->why), end->why),
		HX_LOGGER_TEXT(
			end->status == HAPAX_OK ? NULL : "status", hapax_status_name(end->status)),
	};

	memcpy(out, fields, sizeof(fields));
}

void hx_logger_ended(
	struct hx_logger *log, const struct hx_decision *decision,
	const struct hx_decision_end *end)
{
	bool is_done = end->status == HAPAX_OK && end->outcome == HAPAX_RUN_OK;
	struct hx_logger_field fields[END_FIELDS];

	if (!hx_logger_takes(log, HX_LOGGER_DEBUG))
		return;
	set_end(fields, decision, end);
	(void)log_with(
		log, HX_LOGGER_DEBUG, is_done ? "job succeeded" : "job failed", decision, fields,
		END_FIELDS);
}

void hx_logger_run_ended(
	struct hx_logger *file, const struct hx_decision *decision,
	const struct hx_decision_end *end)
{
	struct hx_logger_field fields[END_FIELDS];

	if (file == NULL)
		return;
	set_end(fields, decision, end);
	file_with(file, "run ended", decision, fields, END_FIELDS);
}

static const char *decision_word(const struct hx_decision *decision)
{
	if (decision->flags & HX_DECISION_UNPROTECTED)
		return "unprotected";
	return decision->status == HAPAX_OK ? hapax_decision_name(decision->decision) : "none";
}

void hx_logger_decided(struct hx_logger *file, const struct hx_decision *decision)
{
	const struct hapax_cause *original = &decision->original;
	bool is_acquired = decision->decision == HAPAX_DECISION_ACQUIRED;
	const struct hx_logger_field fields[] = {
		HX_LOGGER_TEXT("decision", decision_word(decision)),
		HX_LOGGER_TEXT(
			decision->status == HAPAX_OK ? NULL : "status",
			hapax_status_name(decision->status)),
		HX_LOGGER_UNSIGNED(decision->attempt == 0 ? NULL : "attempt", decision->attempt),
		HX_LOGGER_UNSIGNED(
			decision->token == 0  ? NULL
				: is_acquired ? "token"
					      : "original_token",
			decision->token),
		HX_LOGGER_BYTES(unless_empty("original_job_id", original->id), original->id),
		HX_LOGGER_TIME(
			decision->first_seen_ms == 0 ? NULL : "first_seen",
			decision->first_seen_ms),
		HX_LOGGER_BYTES(unless_empty("trace_id", decision->trace_id), decision->trace_id),
		HX_LOGGER_BYTES(unless_empty("span_id", decision->span_id), decision->span_id),
	};

	if (file != NULL)
		file_with(file, "decision", decision, fields, HX_COUNT(fields));
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
