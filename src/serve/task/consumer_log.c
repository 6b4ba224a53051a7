/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consumer_log.c - logs the events of a consumer of the daemon.
 */
#include "serve/task/consumer_log.h"

#include <string.h>

#include <hapax/clock.h>
#include <hapax/source.h>

#include "base/macros.h"
#include "observe/logger/logger_line.h"
#include "serve/task/background.h"

enum { FIELDS_MAX = 7 };

/* The log line of a fact; DUPLICATE is logged separately. */
struct line {
	enum hx_logger_level level;
	const char *msg;
};

static const struct line lines[] = {
	[HAPAX_FACT_RETRY] = {HX_LOGGER_WARN, "message will be retried"},
	[HAPAX_FACT_DEAD_LETTER] = {HX_LOGGER_WARN, "message moved to dead letters"},
	[HAPAX_FACT_UNDELIVERED] = {HX_LOGGER_ERROR, "message could not be published"},
	[HAPAX_FACT_STORE_AWAY] = {HX_LOGGER_ERROR, "consumer paused: store unavailable"},
	[HAPAX_FACT_STORE_BACK] = {HX_LOGGER_INFO, "consumer resumed"},
	[HAPAX_FACT_SOURCE_FAILED] = {HX_LOGGER_WARN, "source failed"},
	[HAPAX_FACT_UNPROTECTED] = {HX_LOGGER_INFO, "message ran without a key"},
};

/* A fact without its own line is logged with the consumer's text. */
static struct line line_of(enum hapax_consumer_fact fact)
{
	static const struct line other = {HX_LOGGER_INFO, "consumer report"};
	size_t index = (size_t)fact;

	return index < HX_COUNT(lines) && lines[index].msg != NULL ? lines[index] : other;
}

static void log_duplicate(struct hx_logger *log, const void *context)
{
	hx_logger_duplicate(log, context);
}

static void tell_duplicate(
	struct hx_background *background, const char *name,
	const struct hapax_consumer_event *event)
{
	const struct hapax_clock *clock = hapax_clock_system();
	const struct hx_logger_duplicate duplicate = {
		.tenant = event->tenant,
		.group = event->group,
		.key = event->key,
		.event_id = event->id,
		.event_type = event->type,
		.event_source = event->source,
		.original_token = event->token,
		.first_seen_ms = event->first_seen_ms,
		.ttl_left_ms = event->expires_ms == HAPAX_TIME_NEVER
			? INT64_MAX
			: event->expires_ms - clock->wall_ms(clock->context),
		.consumer = name,
		.cause = hapax_duplicate_cause_name(event->cause),
		.place = event->place,
		.original = event->original,
	};

	hx_background_tell(background, log_duplicate, &duplicate);
}

void hx_consumer_log(
	struct hx_background *background, const char *name,
	const struct hapax_consumer_event *event)
{
	bool has_delay =
		(event->fact == HAPAX_FACT_RETRY || event->fact == HAPAX_FACT_UNDELIVERED) &&
		event->delay_ms >= 0;
	const char *target = event->target == NULL ? "" : event->target;
	struct line line = line_of(event->fact);
	const struct hx_logger_field fields[FIELDS_MAX] = {
		HX_LOGGER_TEXT("consumer", name),
		HX_LOGGER_BYTES(event->place.size == 0 ? NULL : "place", event->place),
		HX_LOGGER_KEY(event->key.size == 0 ? NULL : "idempotency_key", event->key),
		HX_LOGGER_UNSIGNED(event->attempt == 0 ? NULL : "attempt", event->attempt),
		HX_LOGGER_TEXT(event->why[0] == '\0' ? NULL : "why", event->why),
		HX_LOGGER_TEXT(target[0] == '\0' ? NULL : "target", target),
		HX_LOGGER_DURATION(has_delay ? "again_in" : NULL, event->delay_ms),
	};

	if (event->fact == HAPAX_FACT_DUPLICATE)
		tell_duplicate(background, name, event);
	else
		hx_background_say(background, line.level, line.msg, fields, FIELDS_MAX);
}
