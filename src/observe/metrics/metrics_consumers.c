/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics_consumers.c - the consumers of the daemon as metrics.
 */
#include "observe/metrics/metrics_consumers.h"

#include "base/bytes.h"
#include "wire/promtext.h"

/* The consumers, during a walk family by family. */
struct consumers {
	struct hx_promtext *text;
	const struct hx_consumer_facts *facts;
	size_t count;
};

/* A family with one figure per consumer. */
struct figure {
	const char *name;
	const char *help;
	size_t offset; /* of a uint64_t in struct hapax_consumer_stats */
};

#define AT(member) offsetof(struct hapax_consumer_stats, member)
static const struct figure counters[] = {
	{"hapax_consumer_received", "Messages delivered by the broker.", AT(received)},
	{"hapax_consumer_acknowledged", "Messages acknowledged to the broker.", AT(acknowledged)},
	{"hapax_consumer_given_back", "Messages left to another consumer.", AT(given_back)},
	{"hapax_consumer_retries", "Failed runs that will be retried.", AT(retries)},
	{"hapax_consumer_dead_letters", "Messages moved to dead letters.", AT(dead_letters)},
	{"hapax_consumer_diverted", "Duplicates diverted.", AT(diverted)},
	{"hapax_consumer_tagged", "Duplicates passed to the handler, tagged.", AT(tagged)},
	{"hapax_consumer_key_divergence", "Duplicates whose old and new key disagree.",
	 AT(diverged)},
	{"hapax_consumer_place_keys",
	 "Messages without an ID, whose key is their position at the broker.", AT(placed)},
	{"hapax_consumer_store_refusals", "Times that the store refused.", AT(refused)},
	{"hapax_consumer_source_failures", "Failures of the broker or of the connection to it.",
	 AT(failures)},
	{"hapax_consumer_rebalances", "Changes of the assignment of this consumer.",
	 AT(rebalances)},
};

static const struct figure gauges[] = {
	{"hapax_consumer_in_hand_messages", "Messages that are not settled.", AT(in_hand)},
	{"hapax_consumer_running_messages", "Messages whose handler is running.", AT(running)},
	{"hapax_consumer_waiting_messages", "Messages waiting for a retry.", AT(waiting)},
};
#undef AT

static uint64_t value_of(const struct hx_consumer_facts *facts, const struct figure *figure)
{
	return *(const uint64_t *)(const void *)((const char *)&facts->stats + figure->offset);
}

static void sample(
	struct consumers *consumers, size_t index, const char *label, const char *value,
	uint64_t number)
{
	const struct hx_promtext_label labels[] = {
		{"consumer", hapax_bytes_from_text(consumers->facts[index].name)},
		{label, hapax_bytes_from_text(value)},
	};

	hx_promtext_count(consumers->text, labels, label == NULL ? 1 : 2, number);
}

static void write_figures(
	struct consumers *consumers, enum hx_promtext_kind kind, const struct figure *figures,
	size_t count)
{
	for (size_t i = 0; i < count; i++) {
		hx_promtext_family(consumers->text, kind, figures[i].name, NULL, figures[i].help);
		for (size_t k = 0; k < consumers->count; k++)
			sample(consumers, k, NULL, "", value_of(&consumers->facts[k], &figures[i]));
	}
}

static uint64_t sum_of(const uint64_t *values, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += values[i];
	return sum;
}

/* The store's decision about each message, for each time that it was asked. */
static void write_decisions(struct consumers *consumers)
{
	hx_promtext_family(
		consumers->text, HX_PROMTEXT_COUNTER, "hapax_consumer_messages", NULL,
		"Messages, by decision.");
	for (size_t i = 0; i < consumers->count; i++) {
		const struct hapax_consumer_stats *stats = &consumers->facts[i].stats;

		sample(consumers, i, "decision", "acquired",
		       sum_of(stats->runs, HX_COUNT(stats->runs)) + stats->unstored);
		sample(consumers, i, "decision", "replay",
		       sum_of(stats->duplicates, HAPAX_CAUSE_COUNT));
		sample(consumers, i, "decision", "in_progress", stats->in_progress);
		sample(consumers, i, "decision", "mismatch", stats->mismatches);
		sample(consumers, i, "decision", "parked", stats->parked);
		sample(consumers, i, "decision", "unreadable", stats->unreadable);
	}
}

static void write_runs(struct consumers *consumers)
{
	/* In the order of enum hapax_run_outcome. */
	static const char *const outcomes[] = {"ok", "definitive", "transient", "ambiguous"};

	hx_promtext_family(
		consumers->text, HX_PROMTEXT_COUNTER, "hapax_consumer_runs", NULL,
		"Finished runs of the handler, by outcome; unstored: it is unknown whether the "
		"result was stored.");
	for (size_t i = 0; i < consumers->count; i++) {
		const struct hapax_consumer_stats *stats = &consumers->facts[i].stats;

		for (size_t k = 0; k < HX_COUNT(outcomes); k++)
			sample(consumers, i, "outcome", outcomes[k], stats->runs[k]);
		sample(consumers, i, "outcome", "unstored", stats->unstored);
	}
}

static void write_causes(struct consumers *consumers)
{
	hx_promtext_family(
		consumers->text, HX_PROMTEXT_COUNTER, "hapax_consumer_duplicates", NULL,
		"Duplicates, by the cause of the redelivery.");
	for (size_t i = 0; i < consumers->count; i++) {
		for (int k = 0; k < HAPAX_CAUSE_COUNT; k++)
			sample(consumers, i, "cause",
			       hapax_duplicate_cause_name((enum hapax_duplicate_cause)k),
			       consumers->facts[i].stats.duplicates[k]);
	}
}

/* An unknown value has no sample. */
static void write_lag(struct consumers *consumers)
{
	hx_promtext_family(
		consumers->text, HX_PROMTEXT_GAUGE, "hapax_consumer_lag_messages", NULL,
		"Messages that wait at the broker or are not settled.");
	for (size_t i = 0; i < consumers->count; i++) {
		if (consumers->facts[i].stats.lag >= 0)
			sample(consumers, i, NULL, "", (uint64_t)consumers->facts[i].stats.lag);
	}
}

static void write_states(struct consumers *consumers)
{
	hx_promtext_family(
		consumers->text, HX_PROMTEXT_GAUGE, "hapax_consumer_up", NULL,
		"1 while it runs, 0 while it waits for a restart or is not enabled.");
	for (size_t i = 0; i < consumers->count; i++)
		sample(consumers, i, NULL, "", consumers->facts[i].is_up);
	hx_promtext_family(
		consumers->text, HX_PROMTEXT_GAUGE, "hapax_consumer_paused", NULL,
		"1 while nothing begins: an operator paused it, the store refuses, or a message "
		"has no ID.");
	for (size_t i = 0; i < consumers->count; i++) {
		sample(consumers, i, "reason", "operator", consumers->facts[i].is_paused);
		sample(consumers, i, "reason", "store", consumers->facts[i].is_waiting);
		sample(consumers, i, "reason", "no_id", consumers->facts[i].is_halted);
	}
	hx_promtext_family(
		consumers->text, HX_PROMTEXT_COUNTER, "hapax_consumer_starts", NULL,
		"Starts: by the daemon, by a reload, or after a failure.");
	for (size_t i = 0; i < consumers->count; i++)
		sample(consumers, i, NULL, "", consumers->facts[i].starts);
}

void hx_metrics_write_consumers(
	struct hx_promtext *text, const struct hx_consumer_facts *facts, size_t count)
{
	struct consumers consumers = {text, facts, count};

	if (count == 0)
		return;
	write_states(&consumers);
	write_lag(&consumers);
	write_decisions(&consumers);
	write_causes(&consumers);
	write_runs(&consumers);
	write_figures(&consumers, HX_PROMTEXT_COUNTER, counters, HX_COUNT(counters));
	write_figures(&consumers, HX_PROMTEXT_GAUGE, gauges, HX_COUNT(gauges));
}
