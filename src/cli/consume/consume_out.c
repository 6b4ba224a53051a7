/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consume_out.c - what hapax consume prints.
 */
#include "cli/consume/consume_out.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/bytes.h"
#include "cli/frame/report.h"
#include "wire/record/record_json.h"

static const char *name_of(enum hapax_consumer_fact fact)
{
	switch (fact) {
	case HAPAX_FACT_DUPLICATE: return "duplicate";
	case HAPAX_FACT_RETRY: return "retry";
	case HAPAX_FACT_DEAD_LETTER: return "dead_letter";
	case HAPAX_FACT_UNDELIVERED: return "undelivered";
	case HAPAX_FACT_STORE_AWAY: return "store_away";
	case HAPAX_FACT_STORE_BACK: return "store_back";
	case HAPAX_FACT_SOURCE_FAILED: return "source_failed";
	case HAPAX_FACT_UNPROTECTED: return "unprotected";
	case HAPAX_FACT_WARM_UP: return "warm_up";
	case HAPAX_FACT_DECIDED: return "decided";
	case HAPAX_FACT_ENDED: return "ended";
	case HAPAX_FACT_KEYS_DIFFER: return "keys_differ";
	case HAPAX_FACT_NO_KEY: return "no_key";
	case HAPAX_FACT_PLACE_KEY: return "place_key";
	case HAPAX_FACT_SOURCE_REACHED: return "source_reached";
	}
	return "unknown";
}

static void write_message(struct hx_json_write *json, const struct hapax_consumer_event *event)
{
	if (event->place.size == 0)
		return;
	hx_json_write_any(json, "topic", event->topic);
	hx_json_write_any(json, "place", event->place);
	if (event->key.size > 0) {
		hx_json_write_any(json, "tenant", event->tenant);
		hx_json_write_any(json, "group", event->group);
		hx_json_write_any(json, "key", event->key);
	}
	if (event->id.size > 0)
		hx_json_write_any(json, "event_id", event->id);
	if (event->type.size > 0)
		hx_json_write_any(json, "event_type", event->type);
	if (event->source.size > 0)
		hx_json_write_any(json, "event_source", event->source);
	if (event->attempt > 0)
		hx_json_write_unsigned(json, "attempt", event->attempt);
}

static void write_event(struct hx_out *out, const struct hapax_consumer_event *event)
{
	struct hapax_cause original;
	struct hx_json_write json;

	hx_out_json(&json, out);
	hx_json_write_text(&json, "event", name_of(event->fact));
	write_message(&json, event);
	if (event->fact == HAPAX_FACT_DUPLICATE) {
		hx_json_write_text(&json, "cause", hapax_duplicate_cause_name(event->cause));
		hx_json_write_time(&json, "first_seen", event->first_seen_ms);
		if (event->expires_ms != HAPAX_TIME_NEVER)
			hx_json_write_time(&json, "expires_at", event->expires_ms);
		if (event->original.size > 0)
			hx_json_write_any(&json, "original", event->original);
		if (hapax_cause_read(event->answer->original_cause, &original))
			hx_record_event_write_json(&json, "original_event", &original);
	}
	if (event->fact == HAPAX_FACT_ENDED)
		hx_json_write_text(
			&json, "outcome", hapax_run_outcome_name(event->answer->run_outcome));
	if (event->strategy != NULL)
		hx_json_write_text(&json, "strategy", event->strategy);
	if (event->why[0] != '\0')
		hx_json_write_any(&json, "why", hapax_bytes_from_text(event->why));
	if (event->target != NULL && event->target[0] != '\0')
		hx_json_write_text(&json, "target", event->target);
	if ((event->fact == HAPAX_FACT_RETRY || event->fact == HAPAX_FACT_UNDELIVERED) &&
	    event->delay_ms >= 0)
		hx_json_write_signed(&json, "delay_ms", event->delay_ms);
	hx_json_write_end(&json, '}');
	hx_out_flush(out);
}

static void say_undelivered(const char *command, const struct hapax_consumer_event *event)
{
	int size = (int)event->place.size;
	const char *place = event->place.data;

	if (event->delay_ms < 0)
		hx_report(
			command, "note: %.*s: could not forward it: %s; it stays in the source",
			size, place, event->why);
	else if (event->delay_ms == 0)
		hx_report(command, "note: %.*s: could not forward it: %s", size, place, event->why);
	else
		hx_report(
			command,
			"note: %.*s: could not forward it: %s; next attempt in %" PRId64 " ms",
			size, place, event->why, event->delay_ms);
}

static void say(const struct consume_out *out, const struct hapax_consumer_event *event)
{
	const char *command = out->inv->command->name;
	int size = (int)event->place.size;
	const char *place = event->place.data;

	switch (event->fact) {
	case HAPAX_FACT_DUPLICATE:
		if (out->is_verbose)
			hx_report(
				command, "note: %.*s: key '%.*s': duplicate (%s) of %.*s", size,
				place, (int)event->key.size, (const char *)event->key.data,
				hapax_duplicate_cause_name(event->cause),
				event->original.size > 0 ? (int)event->original.size : 1,
				event->original.size > 0 ? (const char *)event->original.data
							 : "?");
		return;
	case HAPAX_FACT_RETRY:
		hx_report(
			command,
			"note: %.*s: attempt %" PRIu32 " failed, %s; next attempt in %" PRId64
			" ms",
			size, place, event->attempt, event->why, event->delay_ms);
		return;
	case HAPAX_FACT_DEAD_LETTER:
		hx_report(
			command, "note: %.*s: dead letter in '%s': %s", size, place, event->target,
			event->why);
		return;
	case HAPAX_FACT_UNDELIVERED: say_undelivered(command, event); return;
	case HAPAX_FACT_STORE_AWAY:
		hx_report(command, "note: the store is unavailable (%s); waiting", event->why);
		return;
	case HAPAX_FACT_STORE_BACK: hx_report(command, "note: the store is available"); return;
	case HAPAX_FACT_SOURCE_FAILED:
	case HAPAX_FACT_WARM_UP: hx_report(command, "note: %s", event->why); return;
	case HAPAX_FACT_KEYS_DIFFER:
		hx_report(command, "note: %.*s: %s", size, place, event->why);
		return;
	case HAPAX_FACT_UNPROTECTED:
		hx_report(command, "note: %.*s: ran without a key: %s", size, place, event->why);
		return;
	case HAPAX_FACT_PLACE_KEY:
		hx_report(
			command,
			"note: %.*s: the message has no ID, so its position is its key: messages "
			"that a producer sends twice run twice; '--strategy %s' may fit",
			size, place, event->strategy);
		return;
	case HAPAX_FACT_ENDED:
		hx_report(
			command, "note: %.*s: key '%.*s': %s", size, place, (int)event->key.size,
			(const char *)event->key.data,
			hapax_run_outcome_name(event->answer->run_outcome));
		return;
	case HAPAX_FACT_SOURCE_REACHED:
		if (out->is_ready)
			hx_report(command, "note: the broker is available");
		else
			hx_report(command, "ready: %s; records in %s", out->from, out->store);
		return;
	/* The error at the end says it. */
	case HAPAX_FACT_NO_KEY:
	case HAPAX_FACT_DECIDED: return;
	}
}

void hx_consume_out_told(const struct hapax_consumer_event *event, void *context)
{
	struct consume_out *out = context;

	/* Every message has these; the figures at the end count them. */
	if (event->fact == HAPAX_FACT_DECIDED ||
	    (event->fact == HAPAX_FACT_ENDED && !out->is_verbose))
		return;
	hx_mutex_lock(&out->mutex);
	if (out->inv->settings.format == HX_FORMAT_JSON)
		write_event(&out->inv->out, event);
	if (out->inv->settings.format != HX_FORMAT_JSON ||
	    (event->fact == HAPAX_FACT_SOURCE_REACHED && !out->is_ready))
		say(out, event);
	out->is_ready = out->is_ready || event->fact == HAPAX_FACT_SOURCE_REACHED;
	if (event->fact == HAPAX_FACT_NO_KEY)
		(void)snprintf(out->strategy, sizeof(out->strategy), "%s", event->strategy);
	hx_mutex_unlock(&out->mutex);
}

/* Figures and their names, in display order. */
struct figure {
	const char *name;
	uint64_t value;
};

enum { FIGURES_MAX = 24 };

static size_t figures_of(const struct hapax_consumer_stats *stats, struct figure *figures)
{
	size_t count = 0;
	uint64_t duplicates = 0;

	for (size_t i = 0; i < HAPAX_CAUSE_COUNT; i++)
		duplicates += stats->duplicates[i];
	figures[count++] = (struct figure){"received", stats->received};
	figures[count++] = (struct figure){"acknowledged", stats->acknowledged};
	figures[count++] = (struct figure){"ok", stats->runs[HAPAX_RUN_OK]};
	figures[count++] = (struct figure){"definitive", stats->runs[HAPAX_RUN_DEFINITIVE]};
	figures[count++] = (struct figure){"transient", stats->runs[HAPAX_RUN_TRANSIENT]};
	figures[count++] = (struct figure){"ambiguous", stats->runs[HAPAX_RUN_AMBIGUOUS]};
	figures[count++] = (struct figure){"duplicates", duplicates};
	figures[count++] = (struct figure){"in_progress", stats->in_progress};
	figures[count++] = (struct figure){"mismatches", stats->mismatches};
	figures[count++] = (struct figure){"parked", stats->parked};
	figures[count++] = (struct figure){"unreadable", stats->unreadable};
	figures[count++] = (struct figure){"dead_letters", stats->dead_letters};
	figures[count++] = (struct figure){"diverted", stats->diverted};
	figures[count++] = (struct figure){"tagged", stats->tagged};
	figures[count++] = (struct figure){"given_back", stats->given_back};
	figures[count++] = (struct figure){"unstored", stats->unstored};
	figures[count++] = (struct figure){"refused", stats->refused};
	figures[count++] = (struct figure){"rebalances", stats->rebalances};
	figures[count++] = (struct figure){"warmed", stats->warmed};
	figures[count++] = (struct figure){"place_keys", stats->placed};
	figures[count++] = (struct figure){"retries", stats->retries};
	figures[count++] = (struct figure){"failures", stats->failures};
	return count;
}

static void write_stats(
	struct hx_out *out, const char *name, const struct hapax_consumer_stats *stats)
{
	struct figure figures[FIGURES_MAX];
	size_t count = figures_of(stats, figures);
	struct hx_json_write json;

	hx_out_json(&json, out);
	hx_json_write_text(&json, "event", name);
	for (size_t i = 0; i < count; i++)
		hx_json_write_unsigned(&json, figures[i].name, figures[i].value);
	hx_json_write_begin(&json, "causes", '{');
	for (int i = 0; i < HAPAX_CAUSE_COUNT; i++)
		hx_json_write_unsigned(
			&json, hapax_duplicate_cause_name((enum hapax_duplicate_cause)i),
			stats->duplicates[i]);
	hx_json_write_end(&json, '}');
	hx_json_write_unsigned(&json, "in_hand", stats->in_hand);
	hx_json_write_unsigned(&json, "running", stats->running);
	hx_json_write_unsigned(&json, "waiting", stats->waiting);
	hx_json_write_unsigned(&json, "warming", stats->warming);
	if (stats->lag >= 0)
		hx_json_write_signed(&json, "lag", stats->lag);
	else
		hx_json_write_null(&json, "lag");
	hx_json_write_end(&json, '}');
	hx_out_flush(out);
}

void hx_consume_out_progress(struct consume_out *out, const struct hapax_consumer_stats *stats)
{
	if (out->inv->settings.format != HX_FORMAT_JSON)
		return;
	hx_mutex_lock(&out->mutex);
	write_stats(&out->inv->out, "progress", stats);
	hx_mutex_unlock(&out->mutex);
}

void hx_consume_out_end(struct consume_out *out, const struct hapax_consumer_stats *stats)
{
	struct figure figures[FIGURES_MAX];
	size_t count = figures_of(stats, figures);

	if (out->inv->settings.format == HX_FORMAT_JSON) {
		write_stats(&out->inv->out, "end", stats);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		hx_out_line(&out->inv->out, figures[i].name, "%" PRIu64, figures[i].value);
	}
	for (int i = 0; i < HAPAX_CAUSE_COUNT; i++) {
		if (stats->duplicates[i] == 0)
			continue;
		hx_out_line(
			&out->inv->out, hapax_duplicate_cause_name((enum hapax_duplicate_cause)i),
			"%" PRIu64 " of the duplicates", stats->duplicates[i]);
	}
	if (stats->lag >= 0) {
		hx_out_line(&out->inv->out, "lag", "%" PRId64, stats->lag);
	}
}
