/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_traces.c - the settings of traces.
 */
#include "config/schema/schema_traces.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "config/config_check.h"
#include "config/config.h"
#include "config/schema/schema_unit.h"
#include "config/target.h"

/* Of a share: a billionth is less than one a day. */
enum { SHARE_DIGITS_MAX = 9 };

/* "0", "0.25", "1", "1.0": in billionths. */
static bool read_share(const char *text, uint64_t *ret_billionths)
{
	uint64_t value = (uint64_t)(text[0] - '0');
	size_t digits = 0;

	if (text[0] != '0' && text[0] != '1')
		return false;
	if (text[1] != '\0') {
		digits = strspn(text + 2, "0123456789");
		if (text[1] != '.' || digits == 0 || digits > SHARE_DIGITS_MAX ||
		    text[2 + digits] != '\0')
			return false;
	}
	for (size_t i = 0; i < SHARE_DIGITS_MAX; i++)
		value = value * 10 + (i < digits ? (uint64_t)(text[2 + i] - '0') : 0);
	*ret_billionths = value;
	return value <= HX_CONFIG_SHARE_WHOLE;
}

static bool check_share(const char *text, char why[HX_SETTING_WHY_SIZE])
{
	uint64_t billionths;

	if (read_share(text, &billionths))
		return true;
	(void)snprintf(why, HX_SETTING_WHY_SIZE, "is not a number from 0 to 1, such as 0.1");
	return false;
}

#define AT(member) .offset = offsetof(struct hx_config_traces, member)
static const struct hx_setting traces_settings[] = {
	{.name = "endpoint",
         .type = HX_SETTING_TEXT,
         .flags = HX_SETTING_RESTART | HX_SETTING_SECRET,
         AT(endpoint),
         .fallback = "",
         .max = TEXT_MAX,
         .check = hx_check_url,
         .variable = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
         .doc = "URL of a collector (OTLP over HTTP); without a path /v1/traces; empty: none"},
	{.name = "sample",
         .type = HX_SETTING_TEXT,
         .flags = HX_SETTING_RUNTIME,
         AT(sample),
         .fallback = "1",
         .min = 1,
         .max = 16,
         .check = check_share,
         .variable = "OTEL_TRACES_SAMPLER_ARG",
         .doc = "the share of events that begin a trace, from 0 to 1; others go by their sender"},
	{.name = "service_name",
         .type = HX_SETTING_TEXT,
         .flags = HX_SETTING_RESTART,
         AT(service_name),
         .fallback = "hapax",
         .min = 1,
         .max = NAME_MAX_SIZE,
         .check = hx_check_name,
         .variable = "OTEL_SERVICE_NAME",
         .doc = "what the collector knows this daemon as"},
	{.name = "headers_file",
         .type = HX_SETTING_TEXT,
         .flags = HX_SETTING_RESTART,
         AT(headers_file),
         .fallback = "",
         .max = TEXT_MAX,
         .check = hx_check_name,
         .doc = "a file of lines NAME: VALUE that each request to the collector has; empty: none"},
	{.name = "timeout",
         .type = HX_SETTING_DURATION,
         .flags = HX_SETTING_RESTART,
         AT(timeout_ms),
         .fallback = "10s",
         .min = 1,
         .max = HOUR,
         .doc = "how long the collector may take to answer"},
	{.name = NULL},
};
#undef AT

const struct hx_section hx_config_traces_section = {
	.name = "traces", .settings = traces_settings, .size = sizeof(struct hx_config_traces)};

void hx_complete_traces(struct hx_complete *complete, struct hx_config_traces *traces)
{
	static const struct hx_place place = {.name = "traces.endpoint"};
	char why[HX_SETTING_WHY_SIZE];
	struct hx_url url;
	const char *authority;
	const char *path;

	(void)read_share(traces->sample, &traces->sample_billionths);
	/* It was checked where it was written. */
	if (traces->endpoint[0] == '\0' || !hx_url_parse(traces->endpoint, &url, why))
		return;
	authority = hx_config_arena_text(complete->arena, url.authority);
	path = hx_config_arena_text(complete->arena, url.path);
	if (authority == NULL || path == NULL) {
		hx_fault(
			complete->faults, HAPAX_ERR_NO_MEMORY, &place,
			"there was no memory for all of it");
		return;
	}
	traces->target = (struct hx_config_target){
		.is_tls = url.is_tls,
		.endpoint = url.endpoint,
		.authority = authority,
		.path = path};
}
