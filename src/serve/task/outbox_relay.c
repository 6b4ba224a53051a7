/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/task/outbox_relay.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/owner.h"
#include "config/config.h"

enum { OWNER_SIZE = HX_OWNER_SIZE_MAX + sizeof(", hapax serve") };

/* One relay, from open to close. */
struct relay_work {
	struct hx_background *background;
	struct hapax_relay *relay;
	char owner[OWNER_SIZE];
};

static bool is_wanted(const struct hx_background *background, const struct hx_config *config)
{
	(void)background;
	return config->outbox.url[0] != '\0';
}

/* Threads: the relay's. */
static void on_report(void *context, enum hapax_relay_event event, const char *text)
{
	struct relay_work *work = context;
	const struct hx_logger_field field =
		HX_LOGGER_TEXT(event == HAPAX_RELAY_READY ? "database" : "detail", text);
	struct hapax_error trouble;

	switch (event) {
	case HAPAX_RELAY_READY:
		hx_background_trouble(work->background, NULL);
		hx_background_say(
			work->background, HX_LOGGER_INFO, "outbox relay started", &field, 1);
		break;
	case HAPAX_RELAY_OUTAGE:
		(void)hx_error_set(&trouble, HAPAX_ERR_UNAVAILABLE, 0, "%s", text);
		hx_background_trouble(work->background, &trouble);
		hx_background_say(
			work->background, HX_LOGGER_WARN, "outbox relay paused", &field, 1);
		break;
	case HAPAX_RELAY_RESUMED:
		hx_background_trouble(work->background, NULL);
		hx_background_say(
			work->background, HX_LOGGER_INFO, "outbox relay resumed", NULL, 0);
		break;
	case HAPAX_RELAY_RETRY:
		hx_background_say(
			work->background, HX_LOGGER_WARN, "outbox event failed and will be retried",
			&field, 1);
		break;
	case HAPAX_RELAY_PARKED:
		hx_background_say(
			work->background, HX_LOGGER_ERROR, "outbox event parked", &field, 1);
		break;
	case HAPAX_RELAY_PURGED:
		hx_background_say(
			work->background, HX_LOGGER_INFO, "outbox events deleted", &field, 1);
		break;
	case HAPAX_RELAY_UNPURGED:
		hx_background_say(
			work->background, HX_LOGGER_WARN, "outbox events could not be deleted",
			&field, 1);
		break;
	case HAPAX_RELAY_CONFIRMED: break;
	}
}

/* Our name, for operators that look up the relay of an outbox. */
static void name_owner(char owner[OWNER_SIZE])
{
	char text[HX_OWNER_SIZE_MAX + 1];

	hx_owner_text(text);
	(void)snprintf(owner, OWNER_SIZE, "%s, hapax serve", text);
}

static enum hapax_status open_work(
	struct hx_background *background, const struct hx_config *config, void **ret_work,
	struct hapax_error *err)
{
	const struct hx_config_outbox *outbox = &config->outbox;
	struct hapax_relay_options options = HAPAX_RELAY_OPTIONS_INIT;
	struct relay_work *work = hx_alloc_zero(1, sizeof(*work));
	enum hapax_status status;

	if (work == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for a relay");
	work->background = background;
	name_owner(work->owner);
	options.sink = outbox->sink;
	options.source = outbox->source;
	options.headers = outbox->headers;
	options.owner = work->owner;
	options.batch_max = (unsigned)outbox->batch;
	options.attempts_max = (unsigned)outbox->attempts;
	options.lease_ms = outbox->lease_ms;
	options.retry_ms = outbox->retry_ms;
	options.retry_ms_max = outbox->retry_max_ms;
	options.retention_ms = outbox->retention_ms == 0 ? HAPAX_TTL_FOREVER : outbox->retention_ms;
	options.report = on_report;
	options.context = work;
	status = hapax_relay_open(outbox->url, &options, &work->relay, err);
	if (status == HAPAX_OK)
		*ret_work = work;
	else
		hx_free(work);
	return status;
}

static enum hapax_status run_work(void *context, struct hapax_error *err)
{
	struct relay_work *work = context;

	return hapax_relay_run(work->relay, err);
}

static void stop_work(void *context)
{
	struct relay_work *work = context;

	hapax_relay_stop(work->relay);
}

/* Counters continue to rise across relays. */
static void add(struct hapax_relay_stats *sum, const struct hapax_relay_stats *stats)
{
	sum->published += stats->published;
	sum->retried += stats->retried;
	sum->parked += stats->parked;
	sum->outages += stats->outages;
	sum->batches += stats->batches;
	sum->purged += stats->purged;
	sum->lag_ms = stats->lag_ms;
	if (stats->backlog_age_ms >= 0) {
		sum->backlog = stats->backlog;
		sum->backlog_age_ms = stats->backlog_age_ms;
	}
}

static void retire_work(struct hx_background *background, void *context)
{
	struct hx_outbox_relay *relay = (struct hx_outbox_relay *)(void *)background;
	struct relay_work *work = context;
	struct hapax_relay_stats stats = HAPAX_RELAY_STATS_INIT;

	hapax_relay_stats(work->relay, &stats);
	add(&relay->past, &stats);
}

static void close_work(void *context)
{
	struct relay_work *work = context;

	hapax_relay_close(work->relay);
	hx_free(work);
}

const struct hx_background_ops hx_outbox_relay_ops = {
	.name = "outbox",
	.section = "outbox",
	.is_wanted = is_wanted,
	.open = open_work,
	.run = run_work,
	.stop = stop_work,
	.retire = retire_work,
	.close = close_work,
};

static void look(struct hx_background *background, void *context, void *target)
{
	const struct hx_outbox_relay *relay = (struct hx_outbox_relay *)(void *)background;
	const struct relay_work *work = context;
	struct hapax_relay_stats *sum = target;
	struct hapax_relay_stats stats = HAPAX_RELAY_STATS_INIT;

	*sum = relay->past;
	sum->size = sizeof(*sum);
	sum->backlog_age_ms = -1;
	if (work == NULL)
		return;
	hapax_relay_stats(work->relay, &stats);
	add(sum, &stats);
	sum->partitions = stats.partitions;
}

bool hx_outbox_relay_stats(struct hx_outbox_relay *relay, struct hapax_relay_stats *ret_stats)
{
	return hx_background_visit(&relay->background, look, ret_stats);
}
