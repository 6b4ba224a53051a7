/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health.c - the bodies of probes.
 */
#include "observe/health.h"

#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "observe/condition.h"
#include "wire/json/json_write.h"
#include "wire/media_type.h"
#include "wire/percent.h"

const char *hx_health_content_type(enum hx_health_form form)
{
	return form == HX_HEALTH_JSON ? "application/json" : "text/plain; charset=utf-8";
}

bool hx_health_is_ok(const struct hx_health_component *components, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!components[i].is_ok && !components[i].is_optional)
			return false;
	}
	return true;
}

enum hx_health_form hx_health_form_of(struct hapax_bytes query, struct hapax_bytes accept)
{
	struct hapax_bytes name, value;

	if (hx_media_type_accepts_json(accept))
		return HX_HEALTH_JSON;
	while (hx_percent_query_next(&query, &name, &value)) {
		if (hx_bytes_equal(name, HX_BYTES_LIT("verbose")))
			return HX_HEALTH_VERBOSE;
	}
	return HX_HEALTH_SHORT;
}

static bool is_excluded(const char *component, struct hapax_bytes query)
{
	struct hapax_bytes name, value;

	while (hx_percent_query_next(&query, &name, &value)) {
		if (hx_bytes_equal(name, HX_BYTES_LIT("exclude")) &&
		    hx_bytes_equal(value, hapax_bytes_from_text(component)))
			return true;
	}
	return false;
}

size_t hx_health_exclude(
	struct hx_health_component *components, size_t count, struct hapax_bytes query)
{
	size_t left = 0;

	for (size_t i = 0; i < count; i++) {
		if (!is_excluded(components[i].name, query))
			components[left++] = components[i];
	}
	return left;
}

static enum hapax_status render_short(const struct hx_health *health, struct hapax_buf *out)
{
	for (size_t i = 0; i < health->count; i++) {
		const struct hx_health_component *component = &health->components[i];

		if (!component->is_ok && !component->is_optional)
			return hx_buf_printf(
				out, "%s: %s\n", component->name,
				component->reason == NULL ? "failed" : component->reason);
	}
	return hx_buf_printf(out, "ok\n");
}

static enum hapax_status render_component(
	const struct hx_health_component *component, struct hapax_buf *out)
{
	const char *state = component->is_optional ? "failed (optional)" : "failed";

	return hx_buf_printf(
		out, "[%c]%s %s%s%s\n", component->is_ok ? '+' : '-', component->name,
		component->is_ok ? "ok" : state, component->reason == NULL ? "" : ": ",
		component->reason == NULL ? "" : component->reason);
}

static enum hapax_status render_condition(const struct hx_condition_row *row, struct hapax_buf *out)
{
	const struct hx_condition_kind *kind = &hx_condition_kinds[row->condition];
	char since[32];

	hx_clock_format_utc(row->since_ms, since);
	return hx_buf_printf(
		out, "[!]%s%s%s (%s, since %s): %s\n", kind->name,
		row->subject[0] == '\0' ? "" : " ", row->subject, hx_severity_names[kind->severity],
		since, row->reason);
}

static enum hapax_status render_verbose(const struct hx_health *health, struct hapax_buf *out)
{
	enum hapax_status status = HAPAX_OK;

	for (size_t i = 0; i < health->count && status == HAPAX_OK; i++)
		status = render_component(&health->components[i], out);
	for (size_t i = 0; i < health->condition_count && status == HAPAX_OK; i++)
		status = render_condition(&health->conditions[i], out);
	if (status == HAPAX_OK)
		status = hx_buf_printf(
			out, "%s check %s\n", health->probe,
			hx_health_is_ok(health->components, health->count) ? "passed" : "failed");
	return status;
}

static void write_component(struct hx_json_write *json, const struct hx_health_component *component)
{
	hx_json_write_begin(json, NULL, '{');
	hx_json_write_text(json, "name", component->name);
	hx_json_write_text(json, "status", component->is_ok ? "ok" : "failed");
	if (component->is_optional)
		hx_json_write_boolean(json, "optional", true);
	if (component->reason != NULL)
		hx_json_write_text(json, "reason", component->reason);
	hx_json_write_end(json, '}');
}

static void write_condition(struct hx_json_write *json, const struct hx_condition_row *row)
{
	const struct hx_condition_kind *kind = &hx_condition_kinds[row->condition];
	char since[32];

	hx_clock_format_utc(row->since_ms, since);
	hx_json_write_begin(json, NULL, '{');
	hx_json_write_text(json, "name", kind->name);
	if (row->subject[0] != '\0')
		hx_json_write_text(json, "subject", row->subject);
	hx_json_write_text(json, "severity", hx_severity_names[kind->severity]);
	hx_json_write_text(json, "since", since);
	hx_json_write_text(json, "reason", row->reason);
	hx_json_write_end(json, '}');
}

void hx_health_write_conditions(
	struct hx_json_write *json, const struct hx_condition_row *rows, size_t count)
{
	hx_json_write_begin(json, "conditions", '[');
	for (size_t i = 0; i < count; i++)
		write_condition(json, &rows[i]);
	hx_json_write_end(json, ']');
}

static enum hapax_status render_json(const struct hx_health *health, struct hapax_buf *out)
{
	bool is_ok = hx_health_is_ok(health->components, health->count);
	struct hx_json_write json;

	hx_json_write_init(&json, out);
	hx_json_write_begin(&json, NULL, '{');
	hx_json_write_text(&json, "probe", health->probe);
	hx_json_write_text(&json, "status", is_ok ? "ok" : "failed");
	hx_json_write_begin(&json, "components", '[');
	for (size_t i = 0; i < health->count; i++)
		write_component(&json, &health->components[i]);
	hx_json_write_end(&json, ']');
	if (health->conditions != NULL)
		hx_health_write_conditions(&json, health->conditions, health->condition_count);
	hx_json_write_end(&json, '}');
	if (json.status == HAPAX_OK)
		json.status = hx_buf_append_byte(out, '\n');
	return json.status;
}

enum hapax_status hx_health_render(
	const struct hx_health *health, enum hx_health_form form, struct hapax_buf *out)
{
	size_t begin = out->size;
	enum hapax_status status = HAPAX_OK;

	switch (form) {
	case HX_HEALTH_SHORT: status = render_short(health, out); break;
	case HX_HEALTH_VERBOSE: status = render_verbose(health, out); break;
	case HX_HEALTH_JSON: status = render_json(health, out); break;
	}
	if (status != HAPAX_OK)
		out->size = begin;
	return status;
}

/* Counts only acquired claims and their duplicates: hits and misses add up to the requests. */
enum hapax_status hx_health_deduplication_render(
	const struct hapax_stats *stats, struct hapax_buf *out)
{
	uint64_t hits = stats->counts[HAPAX_DECISION_REPLAY];
	uint64_t misses = stats->counts[HAPAX_DECISION_ACQUIRED];
	uint64_t requests = hits + misses;
	size_t begin = out->size;
	struct hx_json_write json;

	hx_json_write_init(&json, out);
	hx_json_write_begin(&json, NULL, '{');
	hx_json_write_unsigned(&json, "requestCount", requests);
	hx_json_write_unsigned(&json, "hitCount", hits);
	hx_json_write_unsigned(&json, "missCount", misses);
	hx_json_write_number(
		&json, "hitRate", requests == 0 ? 0 : (double)hits / (double)requests, 6);
	hx_json_write_unsigned(&json, "evictionCount", stats->evicted);
	hx_json_write_end(&json, '}');
	if (json.status == HAPAX_OK)
		json.status = hx_buf_append_byte(out, '\n');
	if (json.status != HAPAX_OK)
		out->size = begin;
	return json.status;
}
