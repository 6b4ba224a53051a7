/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health.c - the bodies of probes.
 */
#include "observe/health.h"

#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
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

static enum hapax_status render_short(
	const struct hx_health_component *components, size_t count, struct hapax_buf *out)
{
	for (size_t i = 0; i < count; i++) {
		if (!components[i].is_ok && !components[i].is_optional)
			return hx_buf_printf(
				out, "%s: %s\n", components[i].name,
				components[i].reason == NULL ? "failed" : components[i].reason);
	}
	return hx_buf_printf(out, "ok\n");
}

static enum hapax_status render_verbose(
	const char *probe, const struct hx_health_component *components, size_t count,
	struct hapax_buf *out)
{
	enum hapax_status status = HAPAX_OK;

	for (size_t i = 0; i < count && status == HAPAX_OK; i++) {
		const struct hx_health_component *component = &components[i];

		status = hx_buf_printf(
			out, "[%c]%s %s%s%s\n", component->is_ok ? '+' : '-', component->name,
			component->is_ok                 ? "ok"
				: component->is_optional ? "failed (optional)"
							 : "failed",
			component->reason == NULL ? "" : ": ",
			component->reason == NULL ? "" : component->reason);
	}
	if (status == HAPAX_OK)
		status = hx_buf_printf(
			out, "%s check %s\n", probe,
			hx_health_is_ok(components, count) ? "passed" : "failed");
	return status;
}

static enum hapax_status render_json(
	const char *probe, const struct hx_health_component *components, size_t count,
	struct hapax_buf *out)
{
	struct hx_json_write json;

	hx_json_write_init(&json, out);
	hx_json_write_begin(&json, NULL, '{');
	hx_json_write_text(&json, "probe", probe);
	hx_json_write_text(&json, "status", hx_health_is_ok(components, count) ? "ok" : "failed");
	hx_json_write_begin(&json, "components", '[');
	for (size_t i = 0; i < count; i++) {
		hx_json_write_begin(&json, NULL, '{');
		hx_json_write_text(&json, "name", components[i].name);
		hx_json_write_text(&json, "status", components[i].is_ok ? "ok" : "failed");
		if (components[i].is_optional)
			hx_json_write_boolean(&json, "optional", true);
		if (components[i].reason != NULL)
			hx_json_write_text(&json, "reason", components[i].reason);
		hx_json_write_end(&json, '}');
	}
	hx_json_write_end(&json, ']');
	hx_json_write_end(&json, '}');
	if (json.status == HAPAX_OK)
		json.status = hx_buf_append_byte(out, '\n');
	return json.status;
}

enum hapax_status hx_health_render(
	const char *probe, const struct hx_health_component *components, size_t count,
	enum hx_health_form form, struct hapax_buf *out)
{
	size_t begin = out->size;
	enum hapax_status status = HAPAX_OK;

	switch (form) {
	case HX_HEALTH_SHORT: status = render_short(components, count, out); break;
	case HX_HEALTH_VERBOSE: status = render_verbose(probe, components, count, out); break;
	case HX_HEALTH_JSON: status = render_json(probe, components, count, out); break;
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
