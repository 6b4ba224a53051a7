/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_log.c - logs the state of the daemon, for operators without an admin door.
 *
 * One line of figures, and one for each part that is not well. It does not wait for the store but
 * logs its last answer.
 */
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
	struct hx_config_short_lease at;

	hx_descriptors_say(&serve->descriptors, serve->config, serve->log);
	for (size_t row = 0; hx_config_short_lease(serve->config, &row, &at);) {
		const struct hx_logger_field fields[] = {
			HX_LOGGER_TEXT(at.what, at.name),
			HX_LOGGER_DURATION("lease", at.lease_ms),
			HX_LOGGER_DURATION("timeout", serve->config->store.timeout_ms),
		};

		hx_logger(
			serve->log, HX_LOGGER_WARN,
			"lease is shorter than store.timeout, claims may lapse before they are "
			"answered",
			fields, 3);
	}
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
