/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_log.c - logs the state of the daemon, for operators without an admin door.
 *
 * One line of figures, and one for each part that is not well. It does not wait for the store but
 * logs its last answer.
 */
#include "base/error.h"
#include "base/macros.h"
#include "observe/health.h"
#include "observe/logger/logger.h"
#include "observe/metrics/metrics.h"
#include "serve/daemon/daemon.h"
#include "serve/daemon/probe.h"

/* The sum over all doors. */
static int64_t sum_doors(const struct hx_serve *serve, enum hx_metric metric)
{
	int64_t sum = 0;

	for (unsigned door = 0; door < HX_DOOR_COUNT; door++)
		sum += hx_metrics_sum(serve->metrics, metric, 0, door);
	return sum;
}

static void say_part(struct hx_serve *serve, const struct hx_health_component *part)
{
	const struct hx_logger_field fields[] = {
		HX_LOGGER_TEXT("part", part->name),
		HX_LOGGER_TEXT("reason", part->reason != NULL ? part->reason : ""),
	};

	hx_logger_always(serve->log, HX_LOGGER_WARN, "component degraded", fields, 2);
}

void hx_serve_say_config(struct hx_serve *serve)
{
	hx_descriptors_say(&serve->descriptors, serve->config, serve->log);
	hx_serve_watch_also(serve, true);
}

static void say_also(
	struct hx_serve *serve, enum hx_logger_level level, const char *msg,
	const struct hx_config_key_also *at)
{
	const struct hx_logger_field fields[] = {
		HX_LOGGER_TEXT(at->what, at->name),
		HX_LOGGER_TEXT("until", at->until),
	};

	hx_logger(serve->log, level, msg, fields, 2);
}

void hx_serve_watch_also(struct hx_serve *serve, bool is_first)
{
	const struct hapax_clock *clock = hapax_clock_system();
	int64_t now_ms = clock->wall_ms(clock->context);
	int64_t before_ms = serve->also_watched_ms;
	struct hx_config_key_also at;

	serve->also_watched_ms = now_ms;
	for (size_t row = 0; hx_config_key_also(serve->config, &row, &at);) {
		if (is_first && now_ms < at.until_ms)
			say_also(serve, HX_LOGGER_INFO, "old key strategy is used as well", &at);
		else if (!is_first && before_ms < at.until_ms && now_ms >= at.until_ms)
			say_also(
				serve, HX_LOGGER_INFO,
				"old key strategy ends, only the new one is used", &at);
	}
}

enum hapax_status hx_serve_check_also(
	const struct hx_serve *serve, const struct hx_config *config, struct hapax_error *err)
{
	struct hx_config_key_also at;
	size_t row = 0;

	if ((hapax_store_capabilities(serve->store) & HAPAX_STORE_MULTI_KEY) ||
	    !hx_config_key_also(config, &row, &at))
		return HAPAX_OK;
	return hx_error_set(
		err, HAPAX_ERR_UNSUPPORTED, 0,
		"%s '%s': key_also needs a store that claims two keys in one step; %s cannot",
		at.what, at.name, hapax_store_url(serve->store));
}

void hx_serve_say_state(struct hx_serve *serve)
{
	struct hapax_processor_stats processor = HAPAX_PROCESSOR_STATS_INIT;
	struct hx_probe probe = {.count = 0};
	struct hx_store_facts facts;

	hx_store_view_look(&serve->view, &facts);
	hx_probe_ready(&probe, serve, &facts);
	hapax_processor_stats(serve->processor, &processor);
	{
		const struct hx_logger_field fields[] = {
			HX_LOGGER_BOOLEAN("ready", hx_health_is_ok(probe.components, probe.count)),
			HX_LOGGER_SIGNED("connections", sum_doors(serve, HX_METRIC_CONNECTIONS)),
			HX_LOGGER_SIGNED("requests", sum_doors(serve, HX_METRIC_IN_PROGRESS)),
			HX_LOGGER_UNSIGNED("running", processor.running),
			HX_LOGGER_UNSIGNED("waiting", processor.waiting),
			HX_LOGGER_UNSIGNED("reloads", serve->reloads),
			HX_LOGGER_UNSIGNED("reload_failures", serve->reload_failures),
			HX_LOGGER_UNSIGNED("keys", facts.stats.keys),
		};
		size_t count = HX_COUNT(fields);

		/* The number of keys is unknown until the store has answered. */
		hx_logger_always(
			serve->log, HX_LOGGER_INFO, "state", fields,
			facts.has_stats ? count : count - 1);
	}
	for (size_t i = 0; i < probe.count; i++) {
		if (!probe.components[i].is_ok)
			say_part(serve, &probe.components[i]);
	}
}
