/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics_render.c - cells and facts as families of text.
 *
 * A series of a numbered label appears at its first count, with all its decisions or reasons: a
 * rate over a series that begins with its first event would miss that event.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "observe/metrics/cells.h"
#include "observe/condition.h"
#include "observe/metrics/metrics_consumers.h"
#include "observe/metrics/process_facts.h"

struct render {
	const struct hx_metrics *metrics;
	const struct hx_metrics_facts *facts;
	struct hx_promtext text;
};

/* The labels of one series. */
struct labels {
	struct hx_promtext_label labels[HX_LABELS_MAX];
	size_t count;
	char code[8];
};

static void add_label(struct labels *labels, const char *name, struct hapax_bytes value)
{
	assert(labels->count < HX_LABELS_MAX);
	labels->labels[labels->count++] = (struct hx_promtext_label){name, value};
}

static void add_numbered(
	const struct render *render, struct labels *labels, enum hx_numbering numbering,
	uint32_t number)
{
	static const char *const names[HX_NUMBERING_COUNT][2] = {
		[HX_NUMBERED_SCOPE] = {"tenant", "group"},     [HX_NUMBERED_TYPE] = {"event_type"},
		[HX_NUMBERED_EVENT] = {"event_type", "group"}, [HX_NUMBERED_ROUTE] = {"route"},
		[HX_NUMBERED_CONSUMER] = {"consumer"},
	};
	struct hapax_bytes first = HX_BYTES_LIT("other"), second = HX_BYTES_LIT("other");

	if (numbering == HX_NUMBERED_NOT)
		return;
	if (number > 0) {
		const struct hx_label_entry *entry =
			hx_label_table_entry(&render->metrics->tables[numbering], number);

		first = hx_bytes(entry->text, entry->first_size);
		second = hx_bytes(entry->text + entry->first_size, entry->second_size);
	}
	add_label(labels, names[numbering][0], first);
	if (names[numbering][1] != NULL)
		add_label(labels, names[numbering][1], second);
}

static void add_fixed(struct labels *labels, const struct hx_fixed_label *fixed, size_t index)
{
	if (fixed->name == NULL)
		return;
	if (fixed->values != NULL) {
		add_label(labels, fixed->name, hapax_bytes_from_text(fixed->values[index]));
		return;
	}
	if (index == HX_CODE_NONE)
		(void)snprintf(labels->code, sizeof(labels->code), "none");
	else
		(void)snprintf(
			labels->code, sizeof(labels->code), "%u", (unsigned)index + HX_CODE_FIRST);
	add_label(labels, fixed->name, hapax_bytes_from_text(labels->code));
}

/* ------------------------------------------------------------------ cells */

static void write_histogram(
	struct render *render, const struct labels *labels, enum hx_metric metric, uint32_t number,
	size_t first_cell)
{
	const struct hx_family *family = &hx_families[metric];
	double bounds[HX_PROMTEXT_BUCKETS_MAX];
	uint64_t buckets[HX_PROMTEXT_BUCKETS_MAX];
	uint64_t sum;

	for (size_t i = 0; i <= family->bound_count; i++) {
		if (i < family->bound_count)
			bounds[i] = (double)family->bounds_ns[i] / 1e9;
		(void)hx_metrics_cell(render->metrics, metric, number, first_cell + i, &buckets[i]);
	}
	(void)hx_metrics_cell(
		render->metrics, metric, number, first_cell + family->bound_count + 1, &sum);
	hx_promtext_histogram(
		&render->text, labels->labels, labels->count,
		&(struct hx_promtext_histogram){
			.bounds = bounds,
			.buckets = buckets,
			.bound_count = family->bound_count,
			.sum = (double)sum / 1e9});
}

static void write_series(
	struct render *render, enum hx_metric metric, uint32_t number, size_t fixed)
{
	const struct hx_family *family = &hx_families[metric];
	const struct hx_fixed_label *last = &family->fixed[1];
	size_t last_count = last->name == NULL ? 1 : last->count;
	struct labels labels = {.count = 0};
	uint64_t value;

	add_numbered(render, &labels, family->numbering, number);
	add_fixed(&labels, &family->fixed[0], fixed / last_count);
	add_fixed(&labels, last, fixed % last_count);
	if (family->kind == HX_PROMTEXT_HISTOGRAM) {
		write_histogram(
			render, &labels, metric, number, fixed * hx_family_series_cells(family));
		return;
	}
	(void)hx_metrics_cell(render->metrics, metric, number, fixed, &value);
	if (family->kind == HX_PROMTEXT_GAUGE)
		hx_promtext_value(
			&render->text, labels.labels, labels.count, (double)(int64_t)value);
	else
		hx_promtext_count(&render->text, labels.labels, labels.count, value);
}

/* Was anything counted in count series from fixed on? */
static bool has_counted(
	const struct render *render, enum hx_metric metric, uint32_t number, size_t fixed,
	size_t count)
{
	size_t cells = hx_family_series_cells(&hx_families[metric]);
	uint64_t sum;

	for (size_t i = fixed * cells; i < (fixed + count) * cells; i++) {
		if (!hx_metrics_cell(render->metrics, metric, number, i, &sum))
			return false;
		if (sum != 0)
			return true;
	}
	return false;
}

/* The series of one number: row by row of the last fixed label. */
static void write_number(struct render *render, enum hx_metric metric, uint32_t number)
{
	const struct hx_family *family = &hx_families[metric];
	size_t count = hx_family_fixed_count(family);
	const struct hx_fixed_label *last =
		family->fixed[1].name != NULL ? &family->fixed[1] : &family->fixed[0];
	bool has_codes = last->name != NULL && last->values == NULL;
	/* Only the status codes that occurred: there are 500. */
	size_t row = has_codes || last->name == NULL ? 1 : last->count;
	bool is_always = family->numbering == HX_NUMBERED_NOT && !has_codes;

	for (size_t fixed = 0; fixed < count; fixed += row) {
		if (!is_always && !has_counted(render, metric, number, fixed, row))
			continue;
		for (size_t i = 0; i < row; i++)
			write_series(render, metric, number, fixed + i);
	}
}

static void write_family(struct render *render, enum hx_metric metric, const char *name)
{
	const struct hx_family *family = &hx_families[metric];
	uint32_t count = family->numbering == HX_NUMBERED_NOT
		? 0
		: hx_label_table_count(&render->metrics->tables[family->numbering]);

	hx_promtext_family(&render->text, family->kind, name, family->unit, family->help);
	for (uint32_t number = 0; number <= count; number++)
		write_number(render, metric, number);
}

/* ------------------------------------------------------------------ facts */

static void family(
	struct render *render, enum hx_promtext_kind kind, const char *name, const char *unit,
	const char *help)
{
	hx_promtext_family(&render->text, kind, name, unit, help);
}

static void count(struct render *render, const char *name, const char *help, uint64_t value)
{
	family(render, HX_PROMTEXT_COUNTER, name, NULL, help);
	hx_promtext_count(&render->text, NULL, 0, value);
}

static void gauge(
	struct render *render, const char *name, const char *unit, const char *help, double value)
{
	family(render, HX_PROMTEXT_GAUGE, name, unit, help);
	hx_promtext_value(&render->text, NULL, 0, value);
}

static void labeled(struct render *render, const char *label, const char *name, uint64_t value)
{
	struct hx_promtext_label one = {label, hapax_bytes_from_text(name)};

	hx_promtext_count(&render->text, &one, 1, value);
}

static void write_build(struct render *render)
{
	const struct hx_metrics_facts *facts = render->facts;
	const char *const all[][2] = {
		{"version", facts->version},
		{"revision", facts->revision},
		{"store", facts->store},
	};
	struct hx_promtext_label labels[HX_COUNT(all)];
	size_t count = 0;

	/* An unknown value is not a label. */
	for (size_t i = 0; i < HX_COUNT(all); i++) {
		if (all[i][1] != NULL && all[i][1][0] != '\0')
			labels[count++] = (struct hx_promtext_label){
				all[i][0], hapax_bytes_from_text(all[i][1])};
	}
	family(render, HX_PROMTEXT_INFO, "hapax_build", NULL, "Version of this program.");
	hx_promtext_info(&render->text, labels, count);
}

/* The share of duplicates in all deliveries that could be one (requirement X 12). */
static double hit_ratio(const struct hapax_stats *stats)
{
	double hits = (double)stats->counts[HAPAX_DECISION_REPLAY];
	double all = hits + (double)stats->counts[HAPAX_DECISION_ACQUIRED];

	return all == 0 ? 0 : hits / all;
}

static void write_store(struct render *render)
{
	const struct hapax_stats *stats = render->facts->stats;

	gauge(render, "hapax_store_up", NULL, "1 while the store is available.",
	      render->facts->is_store_up ? 1 : 0);
	if (stats == NULL)
		return;
	gauge(render, "hapax_store_stats_age_seconds", "seconds",
	      "Age of the following store statistics.", render->facts->stats_age_seconds);
	family(render, HX_PROMTEXT_GAUGE, "hapax_keys", NULL, "Keys in the store, by state.");
	labeled(render, "state", "claimed", stats->claimed);
	labeled(render, "state", "done", stats->done);
	labeled(render, "state", "failed", stats->failed);
	labeled(render, "state", "parked", stats->parked);
	gauge(render, "hapax_expiry_backlog_keys", NULL, "Expired keys that are not deleted yet.",
	      (double)stats->expired);
	count(render, "hapax_expired_keys", "Keys deleted because they had expired.", stats->swept);
	count(render, "hapax_evictions",
	      "Keys evicted before they expired, because the store was full.", stats->evicted);
	gauge(render, "hapax_store_bytes", "bytes", "Size of the records in memory or on disk.",
	      (double)stats->bytes);
	if (stats->bytes_max > 0)
		gauge(render, "hapax_store_max_bytes", "bytes", "Maximum size of the records.",
		      (double)stats->bytes_max);
	if (stats->keys_max > 0)
		gauge(render, "hapax_store_max_keys", NULL, "Maximum number of keys.",
		      (double)stats->keys_max);
	gauge(render, "hapax_hit_ratio", NULL,
	      "Share of duplicates in all deliveries that ran or were duplicates, over the hours "
	      "kept.",
	      hit_ratio(stats));
	gauge(render, "hapax_clock_skew_seconds", "seconds",
	      "Clock of the store minus the clock of this host.", (double)stats->skew_ms / 1e3);
	count(render, "hapax_cleanups", "Sweeps for expired keys.", stats->sweeps);
	family(render, HX_PROMTEXT_COUNTER, "hapax_cleanup_duration_seconds", "seconds",
	       "Time spent in sweeps.");
	hx_promtext_value(&render->text, NULL, 0, (double)stats->sweep_ns / 1e9);
	count(render, "hapax_cleanup_errors", "Failed sweeps.", stats->sweep_failures);
}

static void write_scope_keys(struct render *render)
{
	const struct hx_metrics_facts *facts = render->facts;

	if (facts->scope_key_count == 0)
		return;
	family(render, HX_PROMTEXT_GAUGE, "hapax_scope_keys", NULL,
	       "An estimate of the keys by scope: those claimed within its TTL, by whole hours, of at "
	       "most 30 days.");
	for (size_t i = 0; i < facts->scope_key_count; i++) {
		const struct hx_promtext_label labels[] = {
			{"tenant", facts->scope_keys[i].tenant},
			{"group", facts->scope_keys[i].group},
		};

		hx_promtext_value(
			&render->text, labels, HX_COUNT(labels), (double)facts->scope_keys[i].keys);
	}
}

/* Figures of current and past outages of the store (E13). */
static void write_outage(struct render *render)
{
	const struct hapax_outage *outage = render->facts->outage;

	if (outage == NULL)
		return;
	gauge(render, "hapax_store_away", NULL,
	      "1 while the circuit breaker is open and the store is not used.", outage->is_away);
	count(render, "hapax_store_outages", "Outages of the store.", outage->outages);
	count(render, "hapax_store_refused_operations",
	      "Operations refused at once because the store was unavailable.", outage->refused);
	count(render, "hapax_journal_continued",
	      "Claims that the journal granted while the store was unavailable.",
	      outage->continued);
	count(render, "hapax_journal_kept_results",
	      "Results of earlier claims that the journal recorded.", outage->kept_results);
	gauge(render, "hapax_journal_records", NULL,
	      "Records in the journal that must still be written to the store.",
	      (double)render->facts->journal_records);
	family(render, HX_PROMTEXT_COUNTER, "hapax_journal_reconciled", NULL,
	       "Reconciled records of the journal, by result; twice: the key also ran elsewhere.");
	for (int i = 0; i < HAPAX_RECONCILED_COUNT; i++) {
		/* Records that stay are counted later, once they are settled. */
		if (i != HAPAX_RECONCILED_LATER)
			labeled(render, "became", hapax_reconciled_name((enum hapax_reconciled)i),
				outage->reconciled[i]);
	}
}

static void write_processor(struct render *render)
{
	const struct hapax_processor_stats *stats = render->facts->processor;

	if (stats == NULL)
		return;
	gauge(render, "hapax_runs_open", NULL, "Runs in progress.", (double)stats->open);
	gauge(render, "hapax_runs_waiting", NULL, "Duplicates waiting for a run.",
	      (double)stats->waiting);
	count(render, "hapax_attached", "Duplicates that waited for a run in progress.",
	      stats->attached);
	count(render, "hapax_leases_renewed", "Leases renewed.", stats->renewed);
	count(render, "hapax_leases_lapsed", "Leases that could not be renewed in time.",
	      stats->lapsed);
	count(render, "hapax_runs_overdue", "Runs that exceeded max_run.", stats->overdue);
	count(render, "hapax_runs_fenced", "Runs that lost their key to another run.",
	      stats->fenced);
	count(render, "hapax_operations_repeated",
	      "Operations that the store accepted only after a retry.", stats->repeated);
}

/* Waiting rows in the database, as last seen by the relay. */
static void write_backlog(struct render *render, const struct hapax_relay_stats *stats)
{
	const struct hapax_outbox_status *backlog = &stats->backlog;
	int64_t lag_ms = backlog->oldest_ms;

	if (stats->backlog_age_ms < 0)
		return;
	/* Nothing has been published since then. */
	if (backlog->pending > 0 && !render->facts->is_outbox_up)
		lag_ms += stats->backlog_age_ms;
	gauge(render, "hapax_outbox_pending_rows", NULL, "Rows to be published.",
	      (double)backlog->pending);
	gauge(render, "hapax_outbox_lag_seconds", "seconds",
	      "Age of the oldest row to be published.", (double)lag_ms / 1e3);
	gauge(render, "hapax_outbox_parked_rows", NULL, "Parked rows.", (double)backlog->parked);
	gauge(render, "hapax_outbox_waiting_rows", NULL,
	      "Rows waiting behind a parked row with the same ordering key.",
	      (double)backlog->waiting);
	gauge(render, "hapax_outbox_backlog_age_seconds", "seconds", "Age of these counts.",
	      (double)stats->backlog_age_ms / 1e3);
}

static void write_outbox(struct render *render)
{
	const struct hapax_relay_stats *stats = render->facts->outbox;

	if (stats == NULL)
		return;
	gauge(render, "hapax_outbox_up", NULL,
	      "1 while the database and the sink of the outbox are available.",
	      render->facts->is_outbox_up ? 1 : 0);
	write_backlog(render, stats);
	count(render, "hapax_outbox_published",
	      "Rows that this relay published and marked after confirmation.", stats->published);
	count(render, "hapax_outbox_batches", "Batches of rows processed.", stats->batches);
	count(render, "hapax_outbox_purged", "Sent rows that this relay deleted: outbox.retention.",
	      stats->purged);
	family(render, HX_PROMTEXT_COUNTER, "hapax_outbox_errors", NULL,
	       "Failed rows (retry), parked rows (parked), and outages of database or sink.");
	labeled(render, "reason", "retry", stats->retried);
	labeled(render, "reason", "parked", stats->parked);
	labeled(render, "reason", "outage", stats->outages);
	gauge(render, "hapax_outbox_publish_delay_seconds", "seconds",
	      "Time from commit to confirmation of the row published last.",
	      (double)stats->lag_ms / 1e3);
	gauge(render, "hapax_outbox_partitions", NULL, "Partitions, of 64, held by this relay.",
	      (double)stats->partitions);
}

/* One family of the audits of the outbox, with a figure of each that has one. */
static void write_audit_family(
	struct render *render, const char *name, const char *unit, const char *help,
	double (*figure)(const struct hx_audit_facts *facts))
{
	family(render, HX_PROMTEXT_GAUGE, name, unit, help);
	for (size_t i = 0; i < render->facts->audit_count; i++) {
		const struct hx_audit_facts *facts = &render->facts->audits[i];
		struct hx_promtext_label label = {"audit", hapax_bytes_from_text(facts->name)};

		if (facts->age_ms >= 0)
			hx_promtext_value(&render->text, &label, 1, figure(facts));
	}
}

static double missing_of(const struct hx_audit_facts *facts)
{
	return (double)facts->missing;
}

static double checked_of(const struct hx_audit_facts *facts)
{
	return (double)facts->checked;
}

static double age_of(const struct hx_audit_facts *facts)
{
	return (double)facts->age_ms / 1e3;
}

static void write_audits(struct render *render)
{
	const struct hx_metrics_facts *facts = render->facts;

	if (facts->audit_count == 0)
		return;
	write_audit_family(
		render, "hapax_outbox_audit_missing_rows", NULL,
		"Rows of the audit's query that have no event.", missing_of);
	write_audit_family(
		render, "hapax_outbox_audit_checked_rows", NULL, "Rows of the audit's query.",
		checked_of);
	write_audit_family(
		render, "hapax_outbox_audit_age_seconds", "seconds", "Age of these counts.",
		age_of);
	family(render, HX_PROMTEXT_COUNTER, "hapax_outbox_audit_failures", NULL,
	       "Runs of the audit that failed.");
	for (size_t i = 0; i < facts->audit_count; i++)
		labeled(render, "audit", facts->audits[i].name, facts->audits[i].failures);
}

/* Memory and files held for clients; a limit of 0 means none, and is not shown. */
static void write_memory(struct render *render)
{
	const struct hx_memory_facts *memory = &render->facts->memory;

	if (memory->limit > 0)
		gauge(render, "hapax_memory_limit_bytes", "bytes",
		      "Memory from which the limits of listeners and store are computed.",
		      (double)memory->limit);
	gauge(render, "hapax_listener_memory_bytes", "bytes",
	      "Memory held by requests and responses of all listeners.", (double)memory->listeners);
	if (memory->listeners_max > 0)
		gauge(render, "hapax_listener_memory_max_bytes", "bytes",
		      "Maximum of that memory; new requests are refused at three quarters of it.",
		      (double)memory->listeners_max);
	gauge(render, "hapax_temporary_file_bytes", "bytes",
	      "Size of request bodies in temporary files.", (double)memory->files);
	if (memory->files_max > 0)
		gauge(render, "hapax_temporary_file_max_bytes", "bytes",
		      "Maximum size of temporary files.", (double)memory->files_max);
}

/* A row of each kind: those that do not hold are 0. */
static void write_conditions(struct render *render)
{
	const struct hx_metrics_facts *facts = render->facts;
	uint64_t counts[HX_CONDITION_COUNT] = {0};
	int64_t since_ms[HX_CONDITION_COUNT];

	if (facts->conditions == NULL)
		return;
	for (size_t i = 0; i < facts->condition_count; i++) {
		const struct hx_condition_row *row = &facts->conditions[i];

		/* The oldest comes first. */
		if (counts[row->condition]++ == 0)
			since_ms[row->condition] = row->since_ms;
	}
	family(render, HX_PROMTEXT_GAUGE, "hapax_conditions", NULL,
	       "Conditions that hold now: what /healthz reports.");
	for (size_t i = 0; i < HX_CONDITION_COUNT; i++) {
		const struct hx_condition_kind *kind = &hx_condition_kinds[i];
		const struct hx_promtext_label labels[] = {
			{"name", hapax_bytes_from_text(kind->name)},
			{"severity", hapax_bytes_from_text(hx_severity_names[kind->severity])},
		};

		hx_promtext_count(&render->text, labels, 2, counts[i]);
	}
	family(render, HX_PROMTEXT_GAUGE, "hapax_condition_since_timestamp_seconds", "seconds",
	       "Time at which the oldest of them began.");
	for (size_t i = 0; i < HX_CONDITION_COUNT; i++) {
		struct hx_promtext_label label = {
			"name", hapax_bytes_from_text(hx_condition_kinds[i].name)};

		if (counts[i] > 0)
			hx_promtext_value(&render->text, &label, 1, (double)since_ms[i] / 1e3);
	}
}

static void write_daemon(struct render *render)
{
	const struct hx_metrics_facts *facts = render->facts;
	uint64_t lost = 0;

	gauge(render, "hapax_ready", NULL, "1 while /readyz reports ready.",
	      facts->is_ready ? 1 : 0);
	write_conditions(render);
	write_memory(render);
	count(render, "hapax_config_reloads", "Reloads of the configuration.", facts->reloads);
	count(render, "hapax_config_reload_failures", "Rejected reloads of the configuration.",
	      facts->reload_failures);
	if (facts->reloaded_ms > 0)
		gauge(render, "hapax_config_last_reload_success_timestamp_seconds", "seconds",
		      "Time at which the active configuration was loaded.",
		      (double)facts->reloaded_ms / 1e3);
	count(render, "hapax_log_suppressed_lines", "Log lines suppressed by the rate limit.",
	      facts->log_suppressed);
	count(render, "hapax_log_lost_lines", "Log lines lost because they could not be written.",
	      facts->log_lost);
	if (facts->has_traces) {
		count(render, "hapax_trace_exported_spans", "Spans accepted by the collector.",
		      facts->spans_exported);
		family(render, HX_PROMTEXT_COUNTER, "hapax_trace_dropped_spans", NULL,
		       "Spans dropped: the queue was full, or the collector did not accept them "
		       "in time.");
		labeled(render, "reason", "queue_full", facts->spans_dropped);
		labeled(render, "reason", "not_taken", facts->spans_failed);
	}
	for (size_t i = 0; i < render->metrics->writer_count; i++)
		lost += atomic_load_explicit(
			&render->metrics->writers[i].lost, memory_order_relaxed);
	count(render, "hapax_metrics_lost", "Events not counted because memory was short.", lost);
}

static void write_process(struct render *render)
{
	struct hx_process_facts facts;

	if (render->facts->process_io == NULL ||
	    !hx_process_facts_read(render->facts->process_io, &facts))
		return;
	family(render, HX_PROMTEXT_COUNTER, "process_cpu_seconds", "seconds",
	       "Total user and system CPU time.");
	hx_promtext_value(&render->text, NULL, 0, facts.cpu_seconds);
	gauge(render, "process_resident_memory_bytes", "bytes", "Resident memory size.",
	      (double)facts.resident_bytes);
	gauge(render, "process_virtual_memory_bytes", "bytes", "Virtual memory size.",
	      (double)facts.virtual_bytes);
	gauge(render, "process_open_fds", NULL, "Open file descriptors.", (double)facts.open_fds);
	if (facts.max_fds > 0)
		gauge(render, "process_max_fds", NULL, "Maximum number of open file descriptors.",
		      (double)facts.max_fds);
	gauge(render, "process_threads", NULL, "Threads.", (double)facts.threads);
	gauge(render, "process_start_time_seconds", "seconds",
	      "Start time of the process, since 1970.", facts.start_seconds);
}

/* ------------------------------------------------------------------ aliases */

static uint64_t operations(const struct render *render, enum hapax_op_type type)
{
	unsigned first = ((unsigned)type - HAPAX_OP_CLAIM) * 2;
	uint64_t ok, failed;

	(void)hx_metrics_cell(render->metrics, HX_METRIC_OPERATIONS, 0, first, &ok);
	(void)hx_metrics_cell(render->metrics, HX_METRIC_OPERATIONS, 0, first + 1, &failed);
	return ok + failed;
}

/* Document A's names, for existing dashboards. */
static void write_aliases(struct render *render)
{
	const struct hapax_stats *stats = render->facts->stats;

	for (unsigned i = 0; i < HX_METRIC_COUNT; i++) {
		if (hx_families[i].alias != NULL)
			write_family(render, (enum hx_metric)i, hx_families[i].alias);
	}
	if (stats != NULL) {
		family(render, HX_PROMTEXT_GAUGE, "idempotency_cache_size", NULL,
		       "Keys in the store; same as hapax_keys.");
		labeled(render, "status", "total", stats->keys);
		labeled(render, "status", "expired", stats->expired);
	}
	family(render, HX_PROMTEXT_COUNTER, "idempotency_cache_operations", NULL,
	       "Operations on the store; same as hapax_store_operations.");
	labeled(render, "operation", "check",
		operations(render, HAPAX_OP_CLAIM) + operations(render, HAPAX_OP_CHECK));
	labeled(render, "operation", "mark", operations(render, HAPAX_OP_COMPLETE));
	labeled(render, "operation", "remove",
		operations(render, HAPAX_OP_RELEASE) + operations(render, HAPAX_OP_FORGET));
	labeled(render, "operation", "cleanup", stats == NULL ? 0 : stats->sweeps);
}

enum hapax_status hx_metrics_render(
	struct hx_metrics *metrics, const struct hx_metrics_facts *facts,
	enum hx_promtext_format format, struct hapax_buf *out, struct hapax_error *err)
{
	struct render render = {.metrics = metrics, .facts = facts};

	hx_promtext_init(&render.text, out, format);
	write_build(&render);
	for (unsigned i = 0; i < HX_METRIC_COUNT; i++)
		write_family(&render, (enum hx_metric)i, hx_families[i].name);
	write_store(&render);
	write_scope_keys(&render);
	write_outage(&render);
	write_processor(&render);
	write_outbox(&render);
	write_audits(&render);
	hx_metrics_write_consumers(&render.text, facts->consumers, facts->consumer_count);
	write_daemon(&render);
	write_process(&render);
	if (metrics->has_aliases)
		write_aliases(&render);
	return hx_promtext_end(&render.text, err);
}
