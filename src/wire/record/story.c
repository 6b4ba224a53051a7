/* SPDX-License-Identifier: Apache-2.0 */
/*
 * story.c - a record in sentences.
 */
#include "wire/record/story.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/duration.h"

/* "2026-11-15T20:22:15Z (5m ago)" or "2026-11-15T20:22:15.123Z". */
enum { TIME_SIZE = 96 };

void hx_story_add(struct hx_story *story, const char *format, ...)
{
	va_list arguments;

	if (story->link_count == HX_STORY_LINES_MAX)
		return;
	va_start(arguments, format);
	(void)vsnprintf(story->lines[story->link_count++], HX_STORY_LINE_SIZE, format, arguments);
	va_end(arguments);
}

static void suggest(struct hx_story *story, enum hx_story_action action)
{
	assert(story->action_count < HX_STORY_ACTIONS_MAX);
	story->actions[story->action_count++] = action;
}

const char *hx_story_reason(enum hx_story_action action)
{
	switch (action) {
	case HX_STORY_DONE: return "the work happened; never run it again";
	case HX_STORY_RETRY: return "the work did not happen; the next claim runs";
	case HX_STORY_FORGET: return "the next delivery counts as new";
	}
	return "";
}

static void format_time(const struct hx_story *story, int64_t ms, char out[TIME_SIZE])
{
	char time[32], span[HX_DURATION_TEXT_SIZE];
	bool is_ahead = ms > story->now_ms;

	hx_clock_format_utc(ms, time);
	if (!story->is_for_shell) {
		(void)snprintf(out, TIME_SIZE, "%s", time);
		return;
	}
	hx_duration_span(is_ahead ? ms - story->now_ms : story->now_ms - ms, span);
	/* The milliseconds are for programs. */
	(void)snprintf(
		out, TIME_SIZE, "%.19sZ (%s%s%s)", time, is_ahead ? "in " : "", span,
		is_ahead ? "" : " ago");
}

static void tell_history(struct hx_story *story)
{
	const struct hapax_record *record = story->record;
	char first[TIME_SIZE], changed[TIME_SIZE];

	format_time(story, record->first_seen_ms, first);
	format_time(story, record->changed_ms, changed);
	hx_story_add(
		story, "It was first used %s; %u %s started, and it has been %s since %s.", first,
		(unsigned)record->attempt, record->attempt == 1 ? "run was" : "runs were",
		hapax_state_name(record->state), changed);
}

static void tell_held(struct hx_story *story, const char *owner, int size)
{
	char span[HX_DURATION_TEXT_SIZE];

	if (story->is_for_shell)
		hx_duration_span(story->lease_left_ms, span);
	else
		(void)snprintf(
			span, sizeof(span), "%" PRId64 " s", (story->lease_left_ms + 999) / 1000);
	hx_story_add(
		story, "%.*s holds it for another %s unless it renews the lease.", size, owner,
		span);
	story->next = HAPAX_OUTCOME_IN_PROGRESS;
}

static void tell_lapsed(struct hx_story *story, const char *owner, int size)
{
	bool parks = story->record->on_lapse == HAPAX_ON_LAPSE_PARK;
	char span[HX_DURATION_TEXT_SIZE];

	hx_duration_span(story->now_ms - story->record->lease_ends_ms, span);
	hx_story_add(
		story, "%.*s holds it, but its lease %s%s%s: %s.", size, owner,
		story->is_for_shell ? "lapsed " : "has lapsed", story->is_for_shell ? span : "",
		story->is_for_shell ? " ago" : "",
		parks ? "the next claim parks it" : "the next claim takes over");
	story->next = parks ? HAPAX_OUTCOME_PARKED : HAPAX_OUTCOME_ACQUIRED;
	suggest(story, HX_STORY_DONE);
	suggest(story, HX_STORY_RETRY);
}

static void tell_claimed(struct hx_story *story)
{
	struct hapax_bytes owner = story->record->owner;
	bool is_held = story->lease_left_ms > 0;

	if (owner.size == 0)
		owner = hapax_bytes_from_text("A caller");
	(is_held ? tell_held : tell_lapsed)(story, owner.data, (int)owner.size);
}

static void tell_done(struct hx_story *story)
{
	const struct hapax_record *record = story->record;
	const struct hapax_result *result = &record->result;
	bool is_check = story->is_for_shell && record->origin == HAPAX_ORIGIN_CHECK;
	char expires[TIME_SIZE];

	if (result->kind == HAPAX_RESULT_NONE)
		hx_story_add(
			story, "There is no result to replay%s.",
			is_check
				? ": it is a mark, as 'hapax check' and 'hapax store import' make it"
				: "");
	else if (result->omitted_bytes > 0)
		hx_story_add(
			story,
			"Its result (%s, status %" PRId32
			") is replayed without its body of %" PRIu64
			" bytes, which was too large to store.",
			hapax_result_kind_name(result->kind), result->status,
			result->omitted_bytes);
	else
		hx_story_add(
			story, "Its result (%s, %s, status %" PRId32 ", %zu bytes) is replayed.",
			hapax_result_kind_name(result->kind),
			hapax_result_class_name(result->result_class), result->status,
			result->body.size);
	format_time(story, record->expires_ms, expires);
	if (record->expires_ms == HAPAX_TIME_NEVER)
		hx_story_add(story, "It never expires.");
	else
		hx_story_add(story, "It expires %s; after that the key counts as new.", expires);
	story->next = HAPAX_OUTCOME_REPLAY;
	suggest(story, HX_STORY_FORGET);
}

static void tell_error(struct hx_story *story, const char *what)
{
	struct hapax_bytes error = story->record->error;

	if (error.size > 0)
		hx_story_add(story, "%s: %.*s.", what, (int)error.size, (const char *)error.data);
}

static void tell_parked(struct hx_story *story)
{
	tell_error(story, "It is unknown whether its work happened");
	hx_story_add(story, "It does not run until it is resolved.");
	story->next = HAPAX_OUTCOME_PARKED;
	suggest(story, HX_STORY_DONE);
	suggest(story, HX_STORY_RETRY);
}

/* Append to the line being written; it is long enough for every part of an event. */
static void add_part(char line[HX_STORY_LINE_SIZE], const char *name, struct hapax_bytes value)
{
	size_t used = strlen(line);

	if (value.size > 0)
		(void)snprintf(
			line + used, HX_STORY_LINE_SIZE - used, "%s %s '%.*s'",
			used == 0 ? "" : ",", name, (int)value.size, (const char *)value.data);
}

static void tell_event(struct hx_story *story)
{
	char line[HX_STORY_LINE_SIZE] = "", time[TIME_SIZE];
	struct hapax_cause event;

	if (!hapax_cause_read(story->record->cause, &event))
		return;
	add_part(line, "id", event.id);
	add_part(line, "type", event.type);
	add_part(line, "source", event.source);
	if (event.time_ms != 0) {
		format_time(story, event.time_ms, time);
		add_part(line, "time", hapax_bytes_from_text(time));
	}
	hx_story_add(story, "It was claimed for the event with%s.", line);
}

void hx_story_tell(struct hx_story *story)
{
	story->link_count = 0;
	story->action_count = 0;
	story->next = HAPAX_OUTCOME_ACQUIRED;
	if (story->record == NULL) {
		hx_story_add(
			story,
			"There is no record of it: it was never used, or its record has expired "
			"or was deleted.");
		return;
	}
	tell_history(story);
	tell_event(story);
	switch (story->record->state) {
	case HAPAX_STATE_ABSENT: break;
	case HAPAX_STATE_CLAIMED: tell_claimed(story); break;
	case HAPAX_STATE_DONE: tell_done(story); break;
	case HAPAX_STATE_FAILED:
		tell_error(story, "The last run failed");
		hx_story_add(
			story,
			"No run has succeeded, so the next claim runs. Nothing runs by itself.");
		break;
	case HAPAX_STATE_PARKED: tell_parked(story); break;
	}
}
