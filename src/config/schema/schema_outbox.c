/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_outbox.c - the settings of the outbox.
 */
#include "config/schema/schema_row.h"

#include <stdio.h>
#include <string.h>

#include <hapax/outbox.h>

#include "config/complete/complete.h"

/* The values of enum hx_audit_by. */
static const char *const columns[] = {"id", "ordering_key", "subject", NULL};

enum { AUDITS_MAX = 100 };

static const struct hx_setting audit_settings[] = {
	{"name", AT(audit, name), TEXT("", 0, NAME_MAX_SIZE, hx_config_check_name), 0,
	 "for metrics and logs; unique; empty: audit-1, audit-2 and so on"},
	{"query", AT(audit, query), TEXT(NULL, 1, TEXT_MAX, NULL), REQUIRED,
	 "SELECT of business rows; its first column names the event of each"},
	{"by", AT(audit, by), CHOICE("id", columns), 0, "what the first column of query holds"},
	{"every", AT(audit, every_ms), DURATION("1h", SECOND, 365 * DAY), 0,
	 "pause between two runs of the query"},
	{.name = NULL},
};

static const struct hx_section audit_section = {
	"an audit", .settings = audit_settings, .size = sizeof(struct hx_config_audit),
	.place_offset = offsetof(struct hx_config_audit, place)};

static const struct hx_setting outbox_settings[] = {
	{"url", AT(outbox, url), TEXT("", 0, TEXT_MAX, NULL), SECRET,
	 "database of the outbox: postgres://... or sqlite:FILE; empty: none"},
	{"sink", AT(outbox, sink), TEXT("", 0, TEXT_MAX, NULL), SECRET,
	 "URL that rows are published to, as in hapax outbox relay --to"},
	{"source", AT(outbox, source), TEXT("/hapax/outbox", 1, 1024, hx_config_check_name), 0,
	 "CloudEvents source of events that have none"},
	{"headers", AT(outbox, headers), TEXT("", 0, TEXT_MAX, NULL), 0,
	 "more headers of each message, as NAME=COLUMN, separated by commas"},
	{"batch", AT(outbox, batch), COUNT("1000", 1, 1000), RUNTIME,
	 "maximum number of rows in progress"},
	{"attempts", AT(outbox, attempts), COUNT("10", 1, 1000000), RUNTIME,
	 "attempts of a row before it is parked"},
	{"lease", AT(outbox, lease_ms), DURATION("30s", SECOND, HOUR), RUNTIME,
	 "how long other relays wait before they take over the partitions of a dead one"},
	{"retry", AT(outbox, retry_ms), DURATION("1s", 1, DAY), RUNTIME,
	 "delay after the first failure of a row; it doubles with each failure"},
	{"retry_max", AT(outbox, retry_max_ms), DURATION("5m", 1, DAY), RUNTIME,
	 "maximum delay after a failure"},
	{"retention", AT(outbox, retention_ms), DURATION("7d", 0, HX_TTL_MS_MAX), FOREVER,
	 "how long sent rows stay in the database; 0s, forever: no row is deleted"},
	{"audits", LIST_AT(outbox, audits, audit_count), LIST(AUDITS_MAX, &audit_section), 0,
	 "queries whose rows must have events"},
	{.name = NULL},
};

const struct hx_section hx_config_outbox_section = {
	"outbox", .settings = outbox_settings, .size = sizeof(struct hx_config_outbox)};

/* Audits without a name get one; names are unique. */
static void complete_audits(struct hx_complete *complete, struct hx_config_outbox *outbox)
{
	for (size_t i = 0; i < outbox->audit_count; i++) {
		struct hx_config_audit *audit = &outbox->audits[i];
		char name[32];

		(void)snprintf(name, sizeof(name), "audit-%zu", i + 1);
		if (audit->name[0] == '\0')
			audit->name = hx_complete_text(
				complete, &audit->place, hapax_bytes_from_text(name));
		for (size_t k = 0; k < i; k++)
			if (strcmp(outbox->audits[k].name, audit->name) == 0)
				hx_fault(
					complete->faults, HAPAX_ERR_INVALID, &audit->place,
					"audit '%.64s' occurs twice", audit->name);
	}
	if (outbox->audit_count > 0 && outbox->url[0] == '\0')
		hx_fault(
			complete->faults, HAPAX_ERR_INVALID, &outbox->audits[0].place,
			"outbox.audits is set, but outbox.url is empty; set the database that has "
			"the outbox");
}

/* The relay itself checks both URLs, without connecting. */
void hx_schema_outbox_complete(struct hx_complete *complete, struct hx_config_outbox *outbox)
{
	static const struct hx_place url = {.name = "outbox.url"}, sink = {.name = "outbox.sink"},
				     section = {.name = "outbox"};
	struct hapax_relay_options options = HAPAX_RELAY_OPTIONS_INIT;
	struct hapax_relay *relay = NULL;
	struct hapax_error err;

	complete_audits(complete, outbox);
	if (outbox->url[0] == '\0' && outbox->sink[0] == '\0')
		return;
	if (outbox->url[0] == '\0') {
		hx_fault(
			complete->faults, HAPAX_ERR_INVALID, &url,
			"outbox.sink is set, but this is empty; set the database that has the "
			"outbox");
		return;
	}
	if (outbox->sink[0] == '\0') {
		hx_fault(
			complete->faults, HAPAX_ERR_INVALID, &sink,
			"outbox.url is set, but this is empty; set the URL that rows are "
			"published to");
		return;
	}
	options.sink = outbox->sink;
	options.headers = outbox->headers;
	if (hapax_relay_open(outbox->url, &options, &relay, &err) != HAPAX_OK)
		hx_fault(complete->faults, HAPAX_ERR_INVALID, &section, "%s", err.message);
	hapax_relay_close(relay);
}
