/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_walk.c - scan, stats, sweep and counters.
 */
#include "store/postgres/postgres_walk.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/limits.h"
#include "record/record.h"
#include "store/postgres/postgres_operation.h"
#include "store/postgres/postgres_place.h"
#include "store/scan_place.h"

enum {
	/* A page of a scan: records, and bytes of results. */
	SCAN_COUNT_MAX = 500,
	PAGE_BYTES = 4 * 1024 * 1024,

	/* Records that one sweep transaction removes: it locks them until its commit. */
	SWEEP_COUNT_MAX = 200,

	/* How often the clock is asked; the quickest answer counts. */
	SKEW_TRIES = 3,

	ROWS_AT_ONCE = 64,
};

/* A statement with its arguments. */
struct exchange {
	const struct hx_postgres_walk *walk;
	struct hx_postgres_call call;
	struct hapax_buf sql;
	unsigned char numbers[HX_POSTGRES_CALL_ARGUMENTS_MAX][8];
};

static void exchange_begin(struct exchange *exchange, const struct hx_postgres_walk *walk)
{
	memset(exchange, 0, sizeof(*exchange));
	exchange->walk = walk;
	hx_buf_init(&exchange->sql, 4096);
}

static void exchange_done(struct exchange *exchange)
{
	PQclear(exchange->call.result);
	hx_buf_done(&exchange->sql);
}

static void add(struct exchange *exchange, Oid type, const void *data, size_t size)
{
	struct hx_postgres_call *call = &exchange->call;

	assert(call->argument_count < HX_POSTGRES_CALL_ARGUMENTS_MAX);
	call->types[call->argument_count] = type;
	call->values[call->argument_count] = data;
	call->lengths[call->argument_count++] = (int)size;
}

static void add_number(struct exchange *exchange, int64_t number)
{
	unsigned char *out = exchange->numbers[exchange->call.argument_count];

	hx_postgres_put_i64(out, number);
	add(exchange, HX_POSTGRES_INT8, out, 8);
}

/* NULL if it is empty and may be. */
static void add_bytes(struct exchange *exchange, struct hapax_bytes bytes, bool is_optional)
{
	bool is_null = bytes.size == 0 && is_optional;

	add(exchange, HX_POSTGRES_BYTEA,
	    is_null                      ? NULL
		    : bytes.data == NULL ? ""
					 : bytes.data,
	    bytes.size);
}

static void add_now(struct exchange *exchange)
{
	int64_t now_ms = hx_postgres_session_now_ms(exchange->walk->session);

	if (now_ms < 0)
		add(exchange, HX_POSTGRES_INT8, NULL, 0);
	else
		add_number(exchange, now_ms);
}

static enum hapax_status refuse_form(struct hapax_error *err)
{
	return hx_error_set(err, HAPAX_ERR_CORRUPT, 0, "unexpected answer from the server");
}

static enum hapax_status ask(
	struct exchange *exchange, const char *sql, int columns, struct hapax_error *err)
{
	const struct hx_postgres_walk *walk = exchange->walk;
	enum hapax_status status;

	hx_buf_clear(&exchange->sql);
	status = hx_postgres_sql_append(&exchange->sql, walk->schema, sql);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "not enough memory to ask PostgreSQL");
	PQclear(exchange->call.result);
	exchange->call.result = NULL;
	exchange->call.sql = (const char *)exchange->sql.data;
	status = walk->run(walk->context, &exchange->call, err);
	if (status == HAPAX_OK && PQnfields(exchange->call.result) != columns)
		return refuse_form(err);
	return status;
}

/* The same for exactly one row. */
static enum hapax_status ask_row(
	struct exchange *exchange, const char *sql, int columns, struct hapax_error *err)
{
	enum hapax_status status = ask(exchange, sql, columns, err);

	if (status == HAPAX_OK && PQntuples(exchange->call.result) != 1)
		return refuse_form(err);
	return status;
}

/* ---------------------------------------------------------------- scan */

static enum hapax_status ask_page(
	struct exchange *exchange, const struct hapax_scan *scan, const struct hapax_cursor *cursor,
	int64_t count_max, struct hapax_error *err)
{
	static const unsigned char yes = 1, no = 0;
	struct hx_scan_place from = hx_scan_place_first(scan);
	bool is_first = cursor->size == 0;

	if (!is_first && !hx_scan_place_get(cursor, &from))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the cursor belongs to another store");
	add_bytes(exchange, from.tenant, false);
	add_bytes(exchange, from.group, false);
	add_bytes(exchange, from.key, false);
	add(exchange, HX_POSTGRES_BOOL, is_first ? &yes : &no, 1);
	add_bytes(exchange, scan->tenant, true);
	add_bytes(exchange, scan->group, true);
	add_number(exchange, count_max);
	add_number(exchange, PAGE_BYTES);
	return ask(
		exchange,
		"SELECT s.tenant, s.grp, s.key, @@hapax_now(), (s.record).* FROM"
		" (SELECT * FROM @@hapax_scan($1, $2, $3, $4, $5, $6, $7, $8) OFFSET 0) s",
		4 + HX_POSTGRES_COLUMNS, err);
}

enum hapax_status hx_postgres_scan(
	const struct hx_postgres_walk *walk, const struct hapax_scan *scan,
	struct hapax_cursor *cursor, hapax_scan_fn *each, void *context, struct hapax_error *err)
{
	size_t count_max = scan->count_max < SCAN_COUNT_MAX ? scan->count_max : SCAN_COUNT_MAX;
	int64_t now_ms = hx_postgres_session_now_ms(walk->session);
	struct exchange exchange;
	enum hapax_status status;
	bool stops = false;
	int rows = 0;

	exchange_begin(&exchange, walk);
	status = ask_page(&exchange, scan, cursor, (int64_t)count_max, err);
	if (status == HAPAX_OK)
		rows = PQntuples(exchange.call.result);
	for (int row = 0; row < rows && status == HAPAX_OK && !stops && !cursor->done; row++) {
		const PGresult *result = exchange.call.result;
		struct hapax_record record;
		bool is_good = hx_postgres_record_read(result, row, 4, NULL, &record);
		const struct hx_scan_place place = {
			hx_postgres_get_bytes(result, row, 0),
			hx_postgres_get_bytes(result, row, 1),
			hx_postgres_get_bytes(result, row, 2)};

		record.tenant = place.tenant;
		record.group = place.group;
		record.key = place.key;
		if (walk->session->clock == NULL)
			now_ms = hx_postgres_number(result, row, 3);
		if (!hx_scan_place_put(cursor, 0, &place))
			status = hx_error_set(
				err, HAPAX_ERR_CORRUPT, 0,
				"hapax_record has an invalid row: its key has more than 1,024 "
				"bytes, or its tenant or group more than 128; delete it");
		else if (hx_scan_place_is_behind(scan, &place))
			cursor->done = 1;
		else if (
			is_good && hx_record_is_valid(&record) &&
			hx_scan_place_accepts(scan, &record, now_ms))
			stops = each(&record, context) != 0;
	}
	/* Only an empty page is the end; large results make a page short. */
	if (status == HAPAX_OK && rows == 0)
		cursor->done = 1;
	exchange_done(&exchange);
	return status;
}

/* ---------------------------------------------------------------- sweep */

static enum hapax_status sweep_some(
	struct exchange *exchange, size_t count_max, struct hapax_sweep *sweep,
	struct hapax_error *err)
{
	const PGresult *result;
	uint64_t looked;
	enum hapax_status status;

	exchange->call.argument_count = 0;
	add_now(exchange);
	add_number(exchange, (int64_t)count_max);
	status = ask_row(
		exchange, "SELECT looked, removed, lapsed FROM @@hapax_sweep($1, $2)", 3, err);
	if (status != HAPAX_OK)
		return status;
	result = exchange->call.result;
	/* Another process is sweeping and does the rest. */
	if (PQgetisnull(result, 0, 0)) {
		sweep->done = 1;
		return HAPAX_OK;
	}
	looked = (uint64_t)hx_postgres_number(result, 0, 0);
	sweep->looked += looked;
	sweep->removed += (uint64_t)hx_postgres_number(result, 0, 1);
	sweep->lapsed += (uint64_t)hx_postgres_number(result, 0, 2);
	sweep->done = looked < count_max;
	return HAPAX_OK;
}

/* Sweep months of results, then records in batches of one transaction; then count the rest. */
enum hapax_status hx_postgres_sweep(
	const struct hx_postgres_walk *walk, struct hapax_sweep *sweep, struct hapax_error *err)
{
	size_t left = sweep->count_max;
	struct exchange exchange;
	enum hapax_status status;

	exchange_begin(&exchange, walk);
	add_now(&exchange);
	status = ask(&exchange, "SELECT @@hapax_months(coalesce($1, @@hapax_now()))", 1, err);
	while (status == HAPAX_OK && left > 0 && !sweep->done) {
		size_t count = left < SWEEP_COUNT_MAX ? left : SWEEP_COUNT_MAX;

		status = sweep_some(&exchange, count, sweep, err);
		left -= count;
	}
	exchange.call.argument_count = 0;
	if (status == HAPAX_OK)
		status = ask_row(&exchange, "SELECT @@hapax_left()", 1, err);
	if (status == HAPAX_OK)
		sweep->remaining = (uint64_t)hx_postgres_number(exchange.call.result, 0, 0);
	exchange_done(&exchange);
	return status;
}

/* ---------------------------------------------------------------- counters */

/* Convert rows to arrays of tenants, groups and counts. */
static enum hapax_status fill_arrays(
	struct hapax_buf arrays[3], const struct hapax_counters *rows, size_t count)
{
	enum hapax_status status = HAPAX_OK;

	for (int i = 0; i < 3 && status == HAPAX_OK; i++) {
		hx_buf_clear(&arrays[i]);
		status = hx_postgres_append_array(
			&arrays[i], i < 2 ? HX_POSTGRES_BYTEA : HX_POSTGRES_INT8,
			i < 2 ? count : count * HAPAX_DECISION_COUNT);
	}
	for (size_t i = 0; i < count && status == HAPAX_OK; i++) {
		status = hx_postgres_append_bytes(&arrays[0], rows[i].tenant);
		if (status == HAPAX_OK)
			status = hx_postgres_append_bytes(&arrays[1], rows[i].group);
		for (int k = 0; k < HAPAX_DECISION_COUNT && status == HAPAX_OK; k++) {
			unsigned char number[8];

			hx_postgres_put_i64(number, (int64_t)rows[i].counts[k]);
			status = hx_postgres_append_bytes(
				&arrays[2], hx_bytes(number, sizeof(number)));
		}
	}
	return status;
}

static enum hapax_status count_some(
	struct exchange *exchange, struct hapax_buf arrays[3], const struct hapax_counters *rows,
	size_t count, struct hapax_error *err)
{
	static const Oid types[3] = {
		HX_POSTGRES_BYTEA_ARRAY, HX_POSTGRES_BYTEA_ARRAY, HX_POSTGRES_INT8_ARRAY};
	enum hapax_status status = fill_arrays(arrays, rows, count);

	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "not enough memory to count");
	exchange->call.argument_count = 0;
	add_now(exchange);
	for (int i = 0; i < 3; i++)
		add(exchange, types[i], arrays[i].data, arrays[i].size);
	status = ask(exchange, "SELECT @@hapax_count($1, $2, $3, $4)", 1, err);
	/* A repeat might count twice; counters may lose a second, but never gain one. */
	return status == HAPAX_ERR_UNCERTAIN ? HAPAX_OK : status;
}

enum hapax_status hx_postgres_count(
	const struct hx_postgres_walk *walk, const struct hapax_counters *rows, size_t count,
	struct hapax_error *err)
{
	struct hapax_buf arrays[3];
	struct exchange exchange;
	enum hapax_status status = HAPAX_OK;

	exchange_begin(&exchange, walk);
	for (int i = 0; i < 3; i++)
		hx_buf_init(&arrays[i], 1 << 20);
	for (size_t first = 0; first < count && status == HAPAX_OK; first += ROWS_AT_ONCE)
		status = count_some(
			&exchange, arrays, rows + first,
			count - first < ROWS_AT_ONCE ? count - first : ROWS_AT_ONCE, err);
	for (int i = 0; i < 3; i++)
		hx_buf_done(&arrays[i]);
	exchange_done(&exchange);
	return status;
}

/* Hours and scopes, in pages; the counts of a row are columns. */
static enum hapax_status list_counters(
	struct exchange *exchange, struct hapax_stats *stats, hapax_counters_fn *each,
	void *context, struct hapax_error *err)
{
	enum hapax_status status;
	bool stops = false;

	exchange->call.argument_count = 0;
	_Static_assert(HAPAX_DECISION_COUNT == 11, "the columns below");
	status = ask(
		exchange,
		"SELECT hour, tenant, grp, counts[1], counts[2], counts[3], counts[4], counts[5], counts[6],"
		" counts[7], counts[8], counts[9], counts[10], counts[11] FROM @@hapax_counter"
		" ORDER BY hour, tenant, grp",
		3 + HAPAX_DECISION_COUNT, err);
	if (status != HAPAX_OK)
		return status;
	for (int row = 0; row < PQntuples(exchange->call.result); row++) {
		const PGresult *result = exchange->call.result;
		struct hapax_counters counters = {
			.hour_ms = hx_postgres_number(result, row, 0),
			.tenant = hx_postgres_get_bytes(result, row, 1),
			.group = hx_postgres_get_bytes(result, row, 2),
		};

		for (int i = 0; i < HAPAX_DECISION_COUNT; i++) {
			counters.counts[i] = (uint64_t)hx_postgres_number(result, row, 3 + i);
			stats->counts[i] += counters.counts[i];
		}
		if (each != NULL && !stops)
			stops = each(&counters, context) != 0;
	}
	return HAPAX_OK;
}

/*
 * Measure the server's clock minus ours. The error is half the round trip: the quickest try
 * counts.
 */
static enum hapax_status measure_skew(
	struct exchange *exchange, int64_t *ret_skew_ms, struct hapax_error *err)
{
	const struct hapax_clock *clock = exchange->walk->options->clock;
	int64_t shortest_ms = INT64_MAX;

	for (int i = 0; i < SKEW_TRIES; i++) {
		int64_t before_ms = clock->wall_ms(clock->context);
		enum hapax_status status;
		int64_t after_ms;

		exchange->call.argument_count = 0;
		add_now(exchange);
		status = ask_row(exchange, "SELECT coalesce($1, @@hapax_now())", 1, err);
		if (status != HAPAX_OK)
			return status;
		after_ms = clock->wall_ms(clock->context);
		if (after_ms - before_ms < shortest_ms) {
			shortest_ms = after_ms - before_ms;
			*ret_skew_ms = hx_postgres_number(exchange->call.result, 0, 0) -
				(before_ms + shortest_ms / 2);
		}
	}
	return HAPAX_OK;
}

enum hapax_status hx_postgres_stats(
	const struct hx_postgres_walk *walk, struct hapax_stats *stats, hapax_counters_fn *each,
	void *context, struct hapax_error *err)
{
	struct exchange exchange;
	enum hapax_status status;

	exchange_begin(&exchange, walk);
	status = measure_skew(&exchange, &stats->skew_ms, err);
	exchange.call.argument_count = 0;
	add_now(&exchange);
	if (status == HAPAX_OK)
		status = ask_row(
			&exchange,
			"SELECT now, token, bytes, claimed, done, failed, parked, expired FROM @@hapax_stats($1)",
			8, err);
	if (status == HAPAX_OK) {
		const PGresult *result = exchange.call.result;

		stats->now_ms = hx_postgres_number(result, 0, 0);
		stats->token = (uint64_t)hx_postgres_number(result, 0, 1);
		stats->bytes = (uint64_t)hx_postgres_number(result, 0, 2);
		stats->claimed = (uint64_t)hx_postgres_number(result, 0, 3);
		stats->done = (uint64_t)hx_postgres_number(result, 0, 4);
		stats->failed = (uint64_t)hx_postgres_number(result, 0, 5);
		stats->parked = (uint64_t)hx_postgres_number(result, 0, 6);
		stats->expired = (uint64_t)hx_postgres_number(result, 0, 7);
		stats->keys = stats->claimed + stats->done + stats->failed + stats->parked;
		status = list_counters(&exchange, stats, each, context, err);
	}
	exchange_done(&exchange);
	return status;
}
