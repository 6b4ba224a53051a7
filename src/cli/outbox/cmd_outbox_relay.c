/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_outbox_relay.c - hapax outbox relay: publish pending events until stopped.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/owner.h"
#include "cli/frame/interrupt.h"
#include "cli/input/duration_text.h"
#include "wire/json/json_write.h"
#include "cli/outbox/cmd_outbox.h"
#include "cli/frame/report.h"

static const char *name_of(enum hapax_relay_event event)
{
	switch (event) {
	case HAPAX_RELAY_READY: return "ready";
	case HAPAX_RELAY_OUTAGE: return "outage";
	case HAPAX_RELAY_RESUMED: return "resumed";
	case HAPAX_RELAY_RETRY: return "retry";
	case HAPAX_RELAY_PARKED: return "parked";
	case HAPAX_RELAY_PURGED: return "deleted sent events";
	case HAPAX_RELAY_UNPURGED: return "could not delete sent events";
	case HAPAX_RELAY_CONFIRMED: return NULL;
	}
	return NULL;
}

static void on_report(void *context, enum hapax_relay_event event, const char *text)
{
	const char *name = name_of(event);

	(void)context;
	if (name != NULL)
		hx_report_line("hapax: outbox: %s: %s", name, text);
}

static int on_stop(void *context)
{
	(void)context;
	return hx_interrupt_signal() != 0;
}

/* "0" and "forever": sent events stay. */
static int read_retention(const struct hx_invocation *inv, int64_t *ret_ms)
{
	const char *text = hx_options_text(&inv->options, HX_OUTBOX_RETENTION);

	if (text == NULL || (strcmp(text, "0") != 0 && strcmp(text, "forever") != 0))
		return hx_duration_text_read(inv, HX_OUTBOX_RETENTION, HX_TTL_MS_MAX, ret_ms);
	*ret_ms = HAPAX_TTL_FOREVER;
	return HX_EXIT_OK;
}

static int read_options(const struct hx_invocation *inv, struct hapax_relay_options *options)
{
	int64_t batch = hx_options_number(&inv->options, HX_OUTBOX_BATCH);
	int64_t attempts = hx_options_number(&inv->options, HX_OUTBOX_ATTEMPTS);
	int code = hx_duration_text_read(inv, HX_OUTBOX_LEASE, INT64_MAX, &options->lease_ms);

	if (code == HX_EXIT_OK)
		code = hx_duration_text_read(inv, HX_OUTBOX_BACKOFF, INT64_MAX, &options->retry_ms);
	if (code == HX_EXIT_OK)
		code = read_retention(inv, &options->retention_ms);
	if (code != HX_EXIT_OK)
		return code;
	options->sink = hx_options_text(&inv->options, HX_OUTBOX_TO);
	if (options->sink == NULL)
		return hx_report_misuse(
			inv->command->name,
			"use amqp://HOST/VHOST, kafka://HOST, redis://HOST or "
			"http://HOST/PATH",
			"missing option --to");
	options->batch_max = batch > UINT32_MAX ? UINT32_MAX : (unsigned)batch;
	options->attempts_max = attempts > UINT32_MAX ? UINT32_MAX : (unsigned)attempts;
	options->source = hx_options_text(&inv->options, HX_OUTBOX_SOURCE);
	options->headers = hx_options_text(&inv->options, HX_OUTBOX_HEADERS);
	options->is_finite = hx_options_has(&inv->options, HX_OUTBOX_UNTIL_EMPTY);
	options->report = on_report;
	options->stop = on_stop;
	return HX_EXIT_OK;
}

static void print_stats(struct hx_invocation *inv, struct hapax_relay *relay)
{
	struct hapax_relay_stats stats = HAPAX_RELAY_STATS_INIT;
	struct hx_json_write json;

	hapax_relay_stats(relay, &stats);
	if (inv->settings.format == HX_FORMAT_TEXT) {
		hx_out_printf(
			&inv->out,
			"published %" PRIu64 ", failed attempts %" PRIu64 ", parked %" PRIu64 "\n",
			stats.published, stats.retried, stats.parked);
		return;
	}
	hx_out_json(&json, &inv->out);
	hx_json_write_unsigned(&json, "published", stats.published);
	hx_json_write_unsigned(&json, "retried", stats.retried);
	hx_json_write_unsigned(&json, "parked", stats.parked);
	hx_json_write_unsigned(&json, "purged", stats.purged);
	hx_json_write_unsigned(&json, "batches", stats.batches);
	hx_json_write_unsigned(&json, "outages", stats.outages);
	hx_json_write_signed(&json, "lag_ms", stats.lag_ms);
	hx_json_write_end(&json, '}');
}

/* Empty is not the same as published: parked rows wait for a person. */
static int judge_parked(const struct hx_invocation *inv, const char *url)
{
	struct hapax_outbox_status status = HAPAX_OUTBOX_STATUS_INIT;
	struct hapax_outbox *outbox = NULL;
	struct hapax_error err;
	enum hapax_status opened = hapax_outbox_open(url, &outbox, &err);

	if (opened == HAPAX_OK)
		opened = hapax_outbox_status(outbox, &status, &err);
	hapax_outbox_close(outbox);
	if (opened != HAPAX_OK)
		return hx_report_error(inv->command->name, &err);
	if (status.parked == 0)
		return HX_EXIT_OK;
	hx_report(
		inv->command->name, "%" PRIu64 " event%s parked, %" PRIu64 " behind %s",
		status.parked, status.parked == 1 ? " is" : "s are", status.waiting,
		status.parked == 1 ? "it" : "them");
	hx_report_hint(
		"'hapax outbox status' shows why; 'hapax outbox retry' publishes them again");
	return HX_EXIT_NO;
}

int hx_outbox_relay(struct hx_invocation *inv)
{
	struct hapax_relay_options options = HAPAX_RELAY_OPTIONS_INIT;
	char owner[HX_OWNER_SIZE_MAX + 1];
	const char *url = hx_outbox_url(inv);
	struct hapax_relay *relay = NULL;
	struct hapax_error err;
	int code;

	if (url == NULL)
		return HX_EXIT_USAGE;
	code = read_options(inv, &options);
	if (code != HX_EXIT_OK)
		return code;
	hx_owner_text(owner);
	options.owner = owner;
	if (hapax_relay_open(url, &options, &relay, &err) != HAPAX_OK)
		return hx_report_error(inv->command->name, &err);
	hx_interrupt_watch();
	if (hapax_relay_run(relay, &err) != HAPAX_OK)
		code = hx_report_error(inv->command->name, &err);
	else
		print_stats(inv, relay);
	hapax_relay_close(relay);
	if (code == HX_EXIT_OK && options.is_finite && hx_interrupt_signal() == 0)
		code = judge_parked(inv, url);
	return code;
}
