/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counter.c - decisions per hour and scope, in hapax_counter.
 */
#include "store/sqlite/counter.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/time.h"
#include "store/counting.h"
#include "store/sqlite/transaction.h"

/* Hours are kept for a month: enough to compare this week with the one before. */
#define KEPT_MS (30 * HX_MS_PER_DAY)

/* Parameters of HX_SQLITE_COUNTER_ADD. The columns of COUNTER_LIST are one less. */
enum { ADD_HOUR_MS = 1, ADD_TENANT, ADD_GROUP, ADD_COUNTS };

enum { PAGE_ROWS = 64, WAIT_MS_MAX = 250 };

/* A row of a page, with its names. */
struct listed {
	int64_t hour_ms;
	size_t tenant_size;
	size_t group_size;
	unsigned char tenant[HX_SCOPE_PART_SIZE_MAX];
	unsigned char group[HX_SCOPE_PART_SIZE_MAX];
	uint64_t counts[HAPAX_DECISION_COUNT];
};

struct page {
	size_t count;
	struct listed rows[PAGE_ROWS];
};

static int add_row(
	struct hx_sqlite_connection *connection, const struct hapax_counters *row, int64_t hour_ms)
{
	sqlite3_stmt *statement;
	int code = hx_sqlite_statement(connection, HX_SQLITE_COUNTER_ADD, &statement);

	if (code != SQLITE_OK)
		return code;
	code |= sqlite3_bind_int64(statement, ADD_HOUR_MS, hour_ms);
	code |= hx_sqlite_bind_bytes(statement, ADD_TENANT, row->tenant);
	code |= hx_sqlite_bind_bytes(statement, ADD_GROUP, row->group);
	for (int i = 0; i < HAPAX_DECISION_COUNT; i++)
		code |= sqlite3_bind_int64(statement, ADD_COUNTS + i, (int64_t)row->counts[i]);
	return code == SQLITE_OK ? hx_sqlite_finish(statement) : SQLITE_NOMEM;
}

static int drop_old(struct hx_sqlite_transaction *transaction)
{
	sqlite3_stmt *statement;
	int code = hx_sqlite_statement(transaction->connection, HX_SQLITE_COUNTER_DROP, &statement);

	if (code == SQLITE_OK)
		code = sqlite3_bind_int64(statement, 1, transaction->now_ms - KEPT_MS);
	return code == SQLITE_OK ? hx_sqlite_finish(statement) : code;
}

/* No caller waits for counts: a failed flush is retried, and a close goes without. */
static int64_t wait_ms(const struct hapax_store_options *options)
{
	return options->timeout_ms < WAIT_MS_MAX ? options->timeout_ms : WAIT_MS_MAX;
}

/*
 * NORMAL leaves the log unsynced after a commit, but syncs it before a checkpoint. A power cut
 * may lose the last counts and a clock reading; nothing else is written here.
 */
enum hapax_status hx_sqlite_counter_add(
	struct hx_sqlite_connection *connection, const struct hapax_store_options *options,
	const struct hapax_counters *rows, size_t count, struct hapax_error *err)
{
	struct hx_sqlite_transaction transaction = {.stage = HX_SQLITE_BEFORE_COMMIT};
	int code;

	hx_sqlite_connection_set_timeout(connection, wait_ms(options));
	code = hx_sqlite_connection_relax(connection, true);
	if (code == SQLITE_OK)
		code = hx_sqlite_transaction_begin(
			&transaction, connection, options, HX_SQLITE_WRITE);
	if (code == SQLITE_OK) {
		code = drop_old(&transaction);
		for (size_t i = 0; i < count && code == SQLITE_OK; i++)
			code = add_row(
				connection, &rows[i], hx_counting_hour_ms(transaction.now_ms));
		/* A store that only answers duplicates keeps its clock here. */
		transaction.is_dirty |= hx_sqlite_transaction_has_old_mark(&transaction);
		if (code == SQLITE_OK)
			code = hx_sqlite_transaction_commit(&transaction);
		else
			hx_sqlite_transaction_abort(&transaction);
	}
	if (code == SQLITE_OK)
		return HAPAX_OK;
	return hx_sqlite_connection_fail(
		connection, code, transaction.stage, "could not store the counters", err);
}

int hx_sqlite_counter_sum(
	struct hx_sqlite_connection *connection, uint64_t ret_counts[HAPAX_DECISION_COUNT])
{
	sqlite3_stmt *statement;
	int code = hx_sqlite_statement(connection, HX_SQLITE_COUNTER_SUM, &statement);

	if (code != SQLITE_OK)
		return code;
	code = sqlite3_step(statement);
	if (code == SQLITE_ROW) {
		for (int i = 0; i < HAPAX_DECISION_COUNT; i++)
			ret_counts[i] = (uint64_t)sqlite3_column_int64(statement, i);
		code = SQLITE_OK;
	}
	(void)sqlite3_reset(statement);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int copy_name(
	sqlite3_stmt *statement, int column, unsigned char target[HX_SCOPE_PART_SIZE_MAX],
	size_t *ret_size)
{
	struct hapax_bytes name;
	int code = hx_sqlite_column_bytes(statement, column, &name);

	if (code != SQLITE_OK)
		return code;
	if (name.size > HX_SCOPE_PART_SIZE_MAX)
		return SQLITE_CORRUPT;
	if (name.size != 0)
		memcpy(target, name.data, name.size);
	*ret_size = name.size;
	return SQLITE_OK;
}

static int read_row(sqlite3_stmt *statement, struct listed *row)
{
	int code = copy_name(statement, ADD_TENANT - 1, row->tenant, &row->tenant_size);

	if (code == SQLITE_OK)
		code = copy_name(statement, ADD_GROUP - 1, row->group, &row->group_size);
	row->hour_ms = sqlite3_column_int64(statement, ADD_HOUR_MS - 1);
	for (int i = 0; i < HAPAX_DECISION_COUNT; i++)
		row->counts[i] = (uint64_t)sqlite3_column_int64(statement, ADD_COUNTS - 1 + i);
	return code;
}

/* Read rows after last; NULL: from the beginning. */
static int read_page(
	struct hx_sqlite_connection *connection, const struct listed *last, struct page *page)
{
	sqlite3_stmt *statement;
	int code = hx_sqlite_statement(connection, HX_SQLITE_COUNTER_LIST, &statement);

	page->count = 0;
	if (code != SQLITE_OK)
		return code;
	code |= sqlite3_bind_int64(statement, 1, last == NULL ? INT64_MIN : last->hour_ms);
	code |= hx_sqlite_bind_bytes(
		statement, 2,
		last == NULL ? hx_bytes(NULL, 0) : hx_bytes(last->tenant, last->tenant_size));
	code |= hx_sqlite_bind_bytes(
		statement, 3,
		last == NULL ? hx_bytes(NULL, 0) : hx_bytes(last->group, last->group_size));
	code |= sqlite3_bind_int(statement, 4, PAGE_ROWS);
	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	while (code == SQLITE_ROW && page->count < PAGE_ROWS) {
		code = read_row(statement, &page->rows[page->count]);
		if (code == SQLITE_OK) {
			page->count++;
			code = sqlite3_step(statement);
		}
	}
	(void)sqlite3_reset(statement);
	return code == SQLITE_DONE || code == SQLITE_ROW ? SQLITE_OK : code;
}

static bool hand_out(const struct page *page, hapax_counters_fn *each, void *context)
{
	for (size_t i = 0; i < page->count; i++) {
		const struct listed *row = &page->rows[i];
		struct hapax_counters counters = {
			.tenant = hx_bytes(row->tenant, row->tenant_size),
			.group = hx_bytes(row->group, row->group_size),
			.hour_ms = row->hour_ms,
		};

		memcpy(counters.counts, row->counts, sizeof(counters.counts));
		if (each(&counters, context) != 0)
			return false;
	}
	return page->count == PAGE_ROWS;
}

enum hapax_status hx_sqlite_counter_list(
	struct hx_sqlite_connection *connection, struct hx_mutex *mutex,
	const struct hapax_store_options *options, hapax_counters_fn *each, void *context,
	struct hapax_error *err)
{
	struct page *page = hx_alloc(sizeof(*page));
	enum hapax_status status = HAPAX_OK;
	struct listed last;
	bool is_first = true;
	bool goes_on = true;

	if (page == NULL)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to list the counters");
	while (goes_on && status == HAPAX_OK) {
		int code;

		if (mutex != NULL)
			hx_mutex_lock(mutex);
		hx_sqlite_connection_set_timeout(connection, options->timeout_ms);
		code = read_page(connection, is_first ? NULL : &last, page);
		if (code != SQLITE_OK)
			status = hx_sqlite_connection_fail(
				connection, code, HX_SQLITE_BEFORE_COMMIT,
				"could not read the counters", err);
		if (mutex != NULL)
			hx_mutex_unlock(mutex);
		if (status != HAPAX_OK)
			break;
		goes_on = hand_out(page, each, context);
		if (goes_on)
			last = page->rows[page->count - 1];
		is_first = false;
	}
	hx_free(page);
	return status;
}
