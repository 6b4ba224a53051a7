/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_stats.c - GET /stats, POST /stats/reset, POST /gc: figures of the store, and cleanup; GET
 * /conditions: what is wrong with the daemon.
 *
 * A store's counters are never reset. A reset is a point in time from which this daemon counts;
 * metrics continue unchanged.
 */
#include <string.h>

#include "api/api_request.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "observe/condition.h"
#include "observe/health.h"
#include "wire/record/stats_json.h"

#define HOUR_MS INT64_C(3600000)

enum { HOURS = 24, ROWS_MAX = 100000, SWEEP_SECONDS_MAX = 10 };

/* In the order of the table's parameters. */
enum { VALUE_HOURS };

/* The decisions of one scope. */
struct row {
	uint16_t tenant_size;
	uint16_t group_size;
	char names[2 * HX_SCOPE_PART_SIZE_MAX];
	int64_t hour_ms;
	uint64_t counts[HAPAX_DECISION_COUNT];
};

struct figures {
	struct hapax_stats stats;
	struct hapax_buf rows; /* struct row */
	bool by_hour;
	int64_t since_ms;
	enum hapax_status status;
	struct hapax_sweep sweep;
	bool is_whole; /* sweep until it is done */
};

static struct row *rows_of(struct figures *figures, size_t *ret_count)
{
	*ret_count = figures->rows.size / sizeof(struct row);
	return (struct row *)(void *)figures->rows.data;
}

static struct row *find_row(struct figures *figures, const struct row *row)
{
	size_t count;
	struct row *rows = rows_of(figures, &count);

	for (size_t i = 0; i < count; i++) {
		if (rows[i].tenant_size == row->tenant_size &&
		    rows[i].group_size == row->group_size && rows[i].hour_ms == row->hour_ms &&
		    memcmp(rows[i].names, row->names, (size_t)row->tenant_size + row->group_size) ==
			    0)
			return &rows[i];
	}
	return NULL;
}

static int collect(const struct hapax_counters *counters, void *context)
{
	struct figures *figures = context;
	struct row row = {.hour_ms = figures->by_hour ? counters->hour_ms : 0};
	struct row *known;

	if (!figures->by_hour && counters->hour_ms < figures->since_ms)
		return 0;
	row.tenant_size = (uint16_t)counters->tenant.size;
	row.group_size = (uint16_t)counters->group.size;
	if (counters->tenant.size + counters->group.size > sizeof(row.names))
		return 0;
	if (row.tenant_size > 0)
		memcpy(row.names, counters->tenant.data, row.tenant_size);
	if (row.group_size > 0)
		memcpy(row.names + row.tenant_size, counters->group.data, row.group_size);
	known = figures->by_hour ? NULL : find_row(figures, &row);
	if (known != NULL) {
		for (size_t d = 0; d < HAPAX_DECISION_COUNT; d++)
			known->counts[d] += counters->counts[d];
		return 0;
	}
	memcpy(row.counts, counters->counts, sizeof(row.counts));
	figures->status = hx_buf_append(&figures->rows, &row, sizeof(row));
	return figures->status != HAPAX_OK;
}

static void write_rows(struct hx_json_write *json, struct figures *figures)
{
	size_t count;
	struct row *rows = rows_of(figures, &count);

	hx_json_write_begin(json, figures->by_hour ? "hours" : "last_24h", '[');
	for (size_t i = 0; i < count; i++) {
		hx_json_write_begin(json, NULL, '{');
		hx_json_write_any(json, "tenant", hx_bytes(rows[i].names, rows[i].tenant_size));
		hx_json_write_any(
			json, "group",
			hx_bytes(rows[i].names + rows[i].tenant_size, rows[i].group_size));
		if (figures->by_hour)
			hx_json_write_time(json, "hour", rows[i].hour_ms);
		hx_stats_json_write_decisions(json, rows[i].counts);
		hx_json_write_end(json, '}');
	}
	hx_json_write_end(json, ']');
}

static void on_told(struct hx_api_request *request)
{
	struct hx_api *api = request->api;
	struct figures *figures = request->extra;
	struct hapax_stats *stats = &figures->stats;
	unsigned capabilities = hapax_store_capabilities(api->options.store);
	struct hx_json_write json;

	hx_api_json(request, &json);
	hx_json_write_text(&json, "store", hapax_store_url(api->options.store));
	hx_json_write_unsigned(&json, "capabilities", capabilities);
	hx_stats_json_write(&json, stats, HX_STATS_JSON_WITH_SWEPT);
	hx_json_write_time(&json, "since", api->reset_ms != 0 ? api->reset_ms : INT64_MAX);
	/* By the hour, the figures are those of the store, for callers that add them up. */
	for (size_t d = 0; d < HAPAX_DECISION_COUNT && !figures->by_hour; d++) {
		uint64_t before = api->reset_counts[d];

		stats->counts[d] -= stats->counts[d] < before ? stats->counts[d] : before;
	}
	hx_stats_json_write_decisions(&json, stats->counts);
	write_rows(&json, figures);
	hx_api_reply_json(request, &json);
}

/* Threads: the worker's. */
static void ask_stats(struct hx_api_job *job)
{
	struct hx_api_request *request = hx_api_request_of(job);
	struct figures *figures = request->extra;

	figures->since_ms = hx_api_now_ms(request->api) - HOURS * HOUR_MS;
	request->status = hapax_store_stats(
		request->api->options.store, &figures->stats, collect, figures, &request->err);
	if (request->status == HAPAX_OK)
		request->status = figures->status;
}

static void figures_done(void *extra)
{
	struct figures *figures = extra;

	hx_buf_done(&figures->rows);
}

static struct figures *figures_new(struct hx_api_request *request)
{
	struct figures *figures = hx_api_extra(request, sizeof(*figures), figures_done);

	if (figures == NULL)
		return NULL;
	figures->stats = (struct hapax_stats)HAPAX_STATS_INIT;
	figures->sweep = (struct hapax_sweep)HAPAX_SWEEP_INIT;
	hx_buf_init(&figures->rows, ROWS_MAX * sizeof(struct row));
	return figures;
}

void hx_api_get_stats(struct hx_api_request *request)
{
	struct figures *figures = figures_new(request);

	if (figures == NULL)
		return;
	figures->by_hour = request->values[VALUE_HOURS].number != 0;
	hx_api_work(request, &request->api->worker, ask_stats, on_told);
}

/* ------------------------------------------------------------------ conditions */

/* Without the store, which may be what is wrong. */
void hx_api_get_conditions(struct hx_api_request *request)
{
	struct hx_conditions *conditions = request->api->options.conditions;
	struct hx_condition_row rows[HX_CONDITIONS_MAX];
	size_t count = conditions == NULL ? 0 : hx_conditions_list(conditions, rows);
	struct hx_json_write json;

	hx_api_json(request, &json);
	hx_health_write_conditions(&json, rows, count);
	hx_api_reply_json(request, &json);
}

/* ------------------------------------------------------------------ reset */

static void on_reset(struct hx_api_request *request)
{
	struct hx_api *api = request->api;
	struct figures *figures = request->extra;
	struct hx_json_write json;

	api->reset_ms = hx_api_now_ms(api);
	memcpy(api->reset_counts, figures->stats.counts, sizeof(api->reset_counts));
	hx_api_audit_request(
		request, &(struct hx_audit_entry){.action = "stats.reset", .outcome = "applied"});
	hx_api_json(request, &json);
	hx_json_write_time(&json, "since", api->reset_ms);
	hx_api_reply_json(request, &json);
}

/* Threads: the worker's. */
static void ask_totals(struct hx_api_job *job)
{
	struct hx_api_request *request = hx_api_request_of(job);
	struct figures *figures = request->extra;

	request->status = hapax_store_stats(
		request->api->options.store, &figures->stats, NULL, NULL, &request->err);
}

void hx_api_post_reset(struct hx_api_request *request)
{
	if (figures_new(request) != NULL)
		hx_api_work(request, &request->api->worker, ask_totals, on_reset);
}

/* ------------------------------------------------------------------ gc */

#define AT(member) .offset = offsetof(struct hx_gc_json, member)
static const struct hx_json_field gc_fields[] = {
	{"count_max", HX_JSON_FIELD_INTEGER, .uses = HX_JSON_FIELD_ALWAYS, AT(count_max), .min = 1,
	 .max = 1000000,
	 .doc = "maximum number of records to examine (default: all, for at most 10 s)"},
	{.name = NULL},
};
#undef AT
const struct hx_json_section hx_gc_json_section = {
	"the body", .fields = gc_fields, .given_offset = offsetof(struct hx_gc_json, given)};

/* Threads: the worker's. */
static void sweep(struct hx_api_job *job)
{
	struct hx_api_request *request = hx_api_request_of(job);
	struct figures *figures = request->extra;
	struct hapax_sweep *sum = &figures->sweep;
	int64_t until_ns = hx_clock_mono_ns() + SWEEP_SECONDS_MAX * HX_NS_PER_S;

	do {
		struct hapax_sweep piece = HAPAX_SWEEP_INIT;

		piece.count_max = sum->count_max;
		request->status =
			hapax_store_sweep(request->api->options.store, &piece, &request->err);
		if (request->status != HAPAX_OK)
			return;
		sum->looked += piece.looked;
		sum->removed += piece.removed;
		sum->lapsed += piece.lapsed;
		sum->remaining = piece.remaining;
		sum->done = piece.done;
	} while (figures->is_whole && !sum->done && hx_clock_mono_ns() < until_ns);
}

static void on_swept(struct hx_api_request *request)
{
	struct figures *figures = request->extra;
	const struct hapax_sweep *sum = &figures->sweep;
	struct hx_json_write json;

	hx_api_json(request, &json);
	hx_json_write_unsigned(&json, "looked", sum->looked);
	hx_json_write_unsigned(&json, "removed", sum->removed);
	hx_json_write_unsigned(&json, "lapsed", sum->lapsed);
	hx_json_write_unsigned(&json, "remaining", sum->remaining);
	hx_json_write_boolean(&json, "done", sum->done != 0);
	hx_json_write_end(&json, '}');
	hx_api_audit_request(
		request,
		&(struct hx_audit_entry){
			.action = "gc",
			.outcome = "applied",
			.detail = hapax_buf_bytes(&request->out)});
	if (json.status != HAPAX_OK)
		hx_api_fail(request, json.status, NULL);
	else
		hx_api_reply(request, 200);
}

void hx_api_post_gc(struct hx_api_request *request)
{
	struct hx_gc_json said = {.given = 0};
	struct figures *figures = figures_new(request);

	if (figures == NULL)
		return;
	if (request->body.size > 0) {
		enum hapax_status status = hx_json_object_read(
			&request->reader, &request->reader.tree.nodes[0], &hx_gc_json_section,
			request->route->use, &said, &request->err);

		if (status != HAPAX_OK) {
			hx_api_fail(request, status, request->err.message);
			return;
		}
	}
	figures->sweep.count_max = (size_t)said.count_max;
	figures->is_whole = said.count_max == 0;
	hx_api_work(request, &request->api->worker, sweep, on_swept);
}
