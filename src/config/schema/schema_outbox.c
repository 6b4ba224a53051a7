/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_outbox.c - the settings of the outbox.
 */
#include "config/schema/schema_outbox.h"

#include <stddef.h>

#include <hapax/outbox.h>

#include "config/config_check.h"
#include "config/config.h"
#include "config/schema/schema_unit.h"

#define AT(member) .offset = offsetof(struct hx_config_outbox, member)
static const struct hx_setting outbox_settings[] = {
	{.name = "url",
         .type = HX_SETTING_TEXT,
         .flags = HX_SETTING_SECRET,
         AT(url),
         .fallback = "",
         .max = TEXT_MAX,
         .doc = "the database that the outbox is in: postgres://... or sqlite:FILE; empty: none"},
	{.name = "sink",
         .type = HX_SETTING_TEXT,
         .flags = HX_SETTING_SECRET,
         AT(sink),
         .fallback = "",
         .max = TEXT_MAX,
         .doc = "URL that its rows are published to, as of hapax outbox relay --to"},
	{.name = "source",
         .type = HX_SETTING_TEXT,
         AT(source),
         .fallback = "/hapax/outbox",
         .min = 1,
         .max = 1024,
         .check = hx_check_name,
         .doc = "the source of events that have none"},
	{.name = "batch",
         .type = HX_SETTING_COUNT,
         .flags = HX_SETTING_RUNTIME,
         AT(batch),
         .fallback = "1000",
         .min = 1,
         .max = 1000,
         .doc = "rows that are under way at a time"},
	{.name = "attempts",
         .type = HX_SETTING_COUNT,
         .flags = HX_SETTING_RUNTIME,
         AT(attempts),
         .fallback = "10",
         .min = 1,
         .max = 1000000,
         .doc = "attempts of a row before it is parked"},
	{.name = "lease",
         .type = HX_SETTING_DURATION,
         .flags = HX_SETTING_RUNTIME,
         AT(lease_ms),
         .fallback = "30s",
         .min = SECOND,
         .max = HOUR,
         .doc = "how long the partitions of a relay that died stay its own"},
	{.name = "retry",
         .type = HX_SETTING_DURATION,
         .flags = HX_SETTING_RUNTIME,
         AT(retry_ms),
         .fallback = "1s",
         .min = 1,
         .max = DAY,
         .doc = "the pause after the first failure of a row, doubling with each"},
	{.name = "retry_max",
         .type = HX_SETTING_DURATION,
         .flags = HX_SETTING_RUNTIME,
         AT(retry_max_ms),
         .fallback = "5m",
         .min = 1,
         .max = DAY,
         .doc = "the longest of these pauses"},
	{.name = NULL},
};
#undef AT

const struct hx_section hx_config_outbox_section = {
	.name = "outbox", .settings = outbox_settings, .size = sizeof(struct hx_config_outbox)};

/* Whoever relays them is asked: it reads both URLs, and connects to neither. */
void hx_complete_outbox(struct hx_complete *complete, const struct hx_config_outbox *outbox)
{
	static const struct hx_place url = {.name = "outbox.url"}, sink = {.name = "outbox.sink"},
				     section = {.name = "outbox"};
	struct hapax_relay_options options = HAPAX_RELAY_OPTIONS_INIT;
	struct hapax_relay *relay = NULL;
	struct hapax_error err;

	if (outbox->url[0] == '\0' && outbox->sink[0] == '\0')
		return;
	if (outbox->url[0] == '\0') {
		hx_fault(
			complete->faults, HAPAX_ERR_INVALID, &url,
			"it is empty: which database has the rows that outbox.sink is to get?");
		return;
	}
	if (outbox->sink[0] == '\0') {
		hx_fault(
			complete->faults, HAPAX_ERR_INVALID, &sink,
			"it is empty: where are the rows of outbox.url published to?");
		return;
	}
	options.sink = outbox->sink;
	if (hapax_relay_open(outbox->url, &options, &relay, &err) != HAPAX_OK)
		hx_fault(complete->faults, HAPAX_ERR_INVALID, &section, "%s", err.message);
	hapax_relay_close(relay);
}
