/* SPDX-License-Identifier: Apache-2.0 */
/*
 * duplicate_watch.c - detect scopes with a high share of duplicates.
 */
#include "observe/duplicate_watch.h"

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "observe/metrics/cells.h"
#include "observe/logger/logger_line.h"

/* The counts of one scope at the last look. */
struct seen {
	uint64_t acquired;
	uint64_t replays;
};

struct hx_duplicate_watch {
	struct hx_metrics *metrics;
	struct seen *scopes; /* [number] */
};

enum hapax_status hx_duplicate_watch_new(
	struct hx_metrics *metrics, struct hx_duplicate_watch **ret_watch, struct hapax_error *err)
{
	struct hx_duplicate_watch *watch = hx_alloc_zero(1, sizeof(*watch));

	if (watch != NULL) {
		watch->metrics = metrics;
		watch->scopes = hx_alloc_zero(
			hx_metrics_numbers(metrics, HX_METRIC_DECISIONS), sizeof(struct seen));
	}
	if (watch == NULL || watch->scopes == NULL) {
		hx_duplicate_watch_free(watch);
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to count duplicates");
	}
	*ret_watch = watch;
	return HAPAX_OK;
}

void hx_duplicate_watch_free(struct hx_duplicate_watch *watch)
{
	if (watch == NULL)
		return;
	hx_free(watch->scopes);
	hx_free(watch);
}

/* The sum over all doors and consumers. */
static uint64_t decided(
	const struct hx_metrics *metrics, uint32_t scope, enum hapax_decision decision)
{
	size_t decisions = hx_families[HX_METRIC_DECISIONS].fixed[1].count;
	uint64_t sum = 0;

	for (size_t door = 0; door < HX_DECIDER_COUNT; door++) {
		uint64_t count;

		if (hx_metrics_cell(
			    metrics, HX_METRIC_DECISIONS, scope, door * decisions + decision,
			    &count))
			sum += count;
	}
	return sum;
}

static void tell(
	const struct hx_metrics *metrics, struct hx_logger *log, uint32_t scope, double percent,
	uint64_t threshold_percent)
{
	struct hapax_bytes tenant = HX_BYTES_LIT("other"), group = HX_BYTES_LIT("other");

	if (scope > 0) {
		const struct hx_label_entry *entry =
			hx_label_table_entry(&metrics->tables[HX_NUMBERED_SCOPE], scope);

		tenant = hx_bytes(entry->text, entry->first_size);
		group = hx_bytes(entry->text + entry->first_size, entry->second_size);
	}
	hx_logger_duplicate_rate(log, tenant, group, percent, (double)threshold_percent);
}

size_t hx_duplicate_watch_look(
	struct hx_duplicate_watch *watch, struct hx_logger *log, uint64_t threshold_percent)
{
	uint32_t count = hx_label_table_count(&watch->metrics->tables[HX_NUMBERED_SCOPE]);
	size_t above = 0;

	for (uint32_t scope = 0; scope <= count; scope++) {
		struct seen *seen = &watch->scopes[scope];
		struct seen now = {
			.acquired = decided(watch->metrics, scope, HAPAX_DECISION_ACQUIRED),
			.replays = decided(watch->metrics, scope, HAPAX_DECISION_REPLAY)};
		uint64_t replays = now.replays - seen->replays;
		uint64_t all = replays + now.acquired - seen->acquired;

		/* Too few: they count the next time. */
		if (all < HX_DUPLICATE_WATCH_MIN)
			continue;
		*seen = now;
		if (threshold_percent == 0 || replays * 100 <= threshold_percent * all)
			continue;
		tell(watch->metrics, log, scope, 100 * (double)replays / (double)all,
		     threshold_percent);
		above++;
	}
	return above;
}
