/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics_sample.c - metrics in which every family has something.
 */
#include "support/metrics_sample.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/io.h"
#include "observe/metrics/family.h"
#include "observe/metrics/metrics_consumers.h"

struct hx_metrics *metrics_sample_new(void)
{
	struct hx_metrics_options options = {.writers = 2};
	struct hx_metrics *metrics;
	struct hx_cells *cells;

	if (hx_metrics_new(&options, &metrics, NULL) != HAPAX_OK)
		abort();
	cells = hx_metrics_cells(metrics, 1);
	for (unsigned i = 0; i < HX_METRIC_COUNT; i++) {
		const struct hx_family *family = &hx_families[i];
		uint32_t number = 0;

		if (family->numbering == HX_NUMBERED_SCOPE)
			number = hx_metrics_scope(
				cells, HX_BYTES_LIT("a\\b\"c\nd"), HX_BYTES_LIT("\xff\xc3\xa9"));
		else if (family->numbering == HX_NUMBERED_TYPE)
			number = hx_metrics_type(cells, HX_BYTES_LIT("com.example.paid"));
		else if (family->numbering == HX_NUMBERED_ROUTE)
			number = hx_metrics_route(cells, "orders");
		for (unsigned k = 0; k < hx_family_fixed_count(family); k++) {
			if (family->kind == HX_PROMTEXT_HISTOGRAM)
				hx_metrics_observe_ns(
					cells, (enum hx_metric)i, number, k,
					INT64_C(1) << (k + 20));
			else
				hx_metrics_add(cells, (enum hx_metric)i, number, k, k + 1);
		}
	}
	return metrics;
}

struct hx_metrics_facts metrics_sample_facts(void)
{
	static struct hapax_stats stats = HAPAX_STATS_INIT;
	static struct hapax_processor_stats processor = HAPAX_PROCESSOR_STATS_INIT;
	static struct hapax_outage outage = HAPAX_OUTAGE_INIT;
	static struct hapax_relay_stats outbox = HAPAX_RELAY_STATS_INIT;

	static struct hx_consumer_facts consumers[] = {
		{"orders", HAPAX_CONSUMER_STATS_INIT, true, false, false, false, 1},
		{"q\"u\\o\nte", HAPAX_CONSUMER_STATS_INIT, false, true, true, true, 7},
	};

	consumers[0].stats.received = 70;
	consumers[0].stats.runs[HAPAX_RUN_OK] = 50;
	consumers[0].stats.unstored = 2;
	consumers[0].stats.duplicates[HAPAX_CAUSE_PRODUCER] = 9;
	consumers[0].stats.duplicates[HAPAX_CAUSE_OTHER_DOOR] = 1;
	consumers[0].stats.lag = 12;
	stats.keys = 50;
	stats.claimed = 2;
	stats.done = 40;
	stats.failed = 3;
	stats.parked = 5;
	stats.expired = 5;
	stats.evicted = 6;
	stats.bytes = 4096;
	stats.bytes_max = 8192;
	stats.keys_max = 100;
	stats.skew_ms = -1500;
	stats.counts[HAPAX_DECISION_ACQUIRED] = 80;
	stats.counts[HAPAX_DECISION_REPLAY] = 20;
	stats.sweeps = 7;
	stats.sweep_ns = UINT64_C(1250000000);
	processor.open = 1;
	outage.outages = 2;
	outage.continued = 9;
	outage.reconciled[HAPAX_RECONCILED_KEPT] = 8;
	outage.reconciled[HAPAX_RECONCILED_TWICE] = 1;
	outbox.published = 30;
	outbox.retried = 3;
	outbox.parked = 1;
	outbox.lag_ms = 4;
	outbox.backlog.pending = 12;
	outbox.backlog.oldest_ms = 2500;
	outbox.backlog_age_ms = 500;
	return (struct hx_metrics_facts){
		.version = "0.1.0",
		.revision = "abc",
		.store = "memory",
		.stats = &stats,
		.processor = &processor,
		.consumers = consumers,
		.consumer_count = sizeof(consumers) / sizeof(consumers[0]),
		.is_store_up = true,
		.stats_age_seconds = 0.5,
		.outage = &outage,
		.outbox = &outbox,
		.journal_records = 11,
		.reloads = 2,
		.reload_failures = 1,
		.reloaded_ms = INT64_C(1767225599250),
		.is_ready = true,
		.process_io = hx_io_system(),
	};
}
