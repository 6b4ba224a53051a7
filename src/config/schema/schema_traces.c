/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_traces.c - the settings of traces.
 */
#include "config/schema/schema_row.h"

#include <stdio.h>
#include <string.h>

#include "config/complete/complete.h"

/* Digits of a share: a billionth is less than one event a day. */
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
	(void)snprintf(why, HX_SETTING_WHY_SIZE, "must be a number from 0 to 1, such as 0.1");
	return false;
}

static const struct hx_setting traces_settings[] = {
	{"endpoint", AT(traces, endpoint), TEXT("", 0, TEXT_MAX, hx_config_check_url),
	 RESTART | SECRET,
	 "URL of a collector (OTLP over HTTP); default path /v1/traces; empty: none",
	 .variable = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"},
	{"sample", AT(traces, sample), TEXT("1", 1, 16, check_share), RUNTIME,
	 "share of new traces that are sampled, from 0 to 1; for others the sender decides",
	 .variable = "OTEL_TRACES_SAMPLER_ARG"},
	{"service_name", AT(traces, service_name),
	 TEXT("hapax", 1, NAME_MAX_SIZE, hx_config_check_name), RESTART,
	 "service name of this daemon in traces", .variable = "OTEL_SERVICE_NAME"},
	{"headers_file", AT(traces, headers_file), TEXT("", 0, TEXT_MAX, hx_config_check_name),
	 RESTART,
	 "file of lines NAME: VALUE that are sent to the collector as headers; empty: none"},
	{"timeout", AT(traces, timeout_ms), DURATION("10s", 1, HOUR), RESTART,
	 "maximum time for an answer of the collector"},
	{.name = NULL},
};

const struct hx_section hx_config_traces_section = {
	"traces", .settings = traces_settings, .size = sizeof(struct hx_config_traces)};

void hx_schema_traces_complete(struct hx_complete *complete, struct hx_config_traces *traces)
{
	static const struct hx_place place = {.name = "traces.endpoint"};

	(void)read_share(traces->sample, &traces->sample_billionths);
	if (traces->endpoint[0] != '\0')
		hx_complete_target(complete, traces->endpoint, "traces", &place, &traces->target);
}
