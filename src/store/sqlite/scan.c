/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c - walk the records in the order of tenant, group and key.
 *
 * The place after a key is the key plus a zero byte, because no key lies between the two; so
 * every range begins with >=.
 *
 * A page checks a bounded number of rows, whatever the filter accepts. It reads headers and
 * bodies only of records that are handed out.
 */
#include "store/sqlite/scan.h"

#include <assert.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/limits.h"
#include "record/codec.h"
#include "store/scan_place.h"
#include "store/sqlite/row.h"
#include "store/sqlite/transaction.h"

enum {
	PAGE_ROWS = 4096,
	PAGE_BYTES = 1024 * 1024, /* a page ends with the record that exceeds it */
	PAGE_BYTES_MAX = PAGE_BYTES + HX_RECORD_HEADER_SIZE + 64 * 1024 +
		HX_RESULT_HEADERS_SIZE_MAX + HX_RESULT_SIZE_LIMIT,
};

/* Columns of the scan statements. */
enum { SCAN_ID, SCAN_STATE, SCAN_DUE_MS, SCAN_TENANT, SCAN_GROUP, SCAN_KEY };

/* The inputs and results of one page. */
struct page {
	const struct hapax_scan *scan;
	struct hapax_cursor *cursor;
	struct hapax_buf records; /* encoded, one after the other */
	size_t count;             /* of them */
	size_t count_max;
	int64_t now_ms;
	bool is_corrupt; /* the cursor is after a record that failed its check */
};

static enum hx_sqlite_statement statement_for(const struct hapax_scan *scan)
{
	if (scan->tenant.size == 0)
		return HX_SQLITE_SCAN_ALL;
	return scan->group.size == 0 ? HX_SQLITE_SCAN_TENANT : HX_SQLITE_SCAN_SCOPE;
}

/* The columns of the row that the filter needs. */
static bool matches(
	const struct page *page, sqlite3_stmt *statement, const struct hx_scan_place *place)
{
	struct hapax_record record = {
		.tenant = place->tenant,
		.group = place->group,
		.key = place->key,
		.state = (enum hapax_state)sqlite3_column_int(statement, SCAN_STATE),
		.expires_ms = HAPAX_TIME_NEVER,
	};

	if ((record.state == HAPAX_STATE_DONE || record.state == HAPAX_STATE_FAILED) &&
	    sqlite3_column_type(statement, SCAN_DUE_MS) != SQLITE_NULL)
		record.expires_ms = sqlite3_column_int64(statement, SCAN_DUE_MS);
	return hx_scan_place_accepts(page->scan, &record, page->now_ms);
}

static int read_place(sqlite3_stmt *statement, struct hx_scan_place *ret_place)
{
	int code = hx_sqlite_column_bytes(statement, SCAN_TENANT, &ret_place->tenant);

	if (code == SQLITE_OK)
		code = hx_sqlite_column_bytes(statement, SCAN_GROUP, &ret_place->group);
	if (code == SQLITE_OK)
		code = hx_sqlite_column_bytes(statement, SCAN_KEY, &ret_place->key);
	return code;
}

/* Append the record of a row to the page. */
static int add_record(
	struct page *page, struct hx_sqlite_connection *connection, int64_t id,
	const struct hx_scan_place *place)
{
	struct hapax_record record = {
		.tenant = place->tenant, .group = place->group, .key = place->key};
	sqlite3_stmt *statement;
	bool valid = false;
	int code = hx_sqlite_statement(connection, HX_SQLITE_RECORD_READ_WHOLE, &statement);

	if (code == SQLITE_OK)
		code = sqlite3_bind_int64(statement, 1, id);
	if (code != SQLITE_OK)
		return code;
	code = sqlite3_step(statement);
	if (code == SQLITE_ROW)
		code = hx_sqlite_row_read(statement, &id, &record, &valid);
	else if (code == SQLITE_DONE)
		code = SQLITE_CORRUPT;
	if (code == SQLITE_OK && valid) {
		if (hx_record_encode(&record, &page->records) == HAPAX_OK)
			page->count++;
		else
			code = SQLITE_NOMEM;
	}
	page->is_corrupt = code == SQLITE_OK && !valid;
	(void)sqlite3_reset(statement);
	return code;
}

/* Check one row. *ret_stop ends the page. */
static int visit(
	struct page *page, struct hx_sqlite_connection *connection, sqlite3_stmt *statement,
	bool *ret_stop)
{
	struct hx_scan_place place;
	int code = read_place(statement, &place);

	if (code != SQLITE_OK)
		return code;
	if (!hx_scan_place_put(page->cursor, 0, &place))
		return SQLITE_CORRUPT;
	if (hx_scan_place_is_behind(page->scan, &place)) {
		page->cursor->done = 1;
		*ret_stop = true;
		return SQLITE_OK;
	}
	if (matches(page, statement, &place))
		code = add_record(
			page, connection, sqlite3_column_int64(statement, SCAN_ID), &place);
	*ret_stop = page->is_corrupt || page->count == page->count_max ||
		page->records.size >= PAGE_BYTES;
	return code;
}

static int read_rows(struct page *page, struct hx_sqlite_connection *connection)
{
	struct hapax_cursor begin = *page->cursor; /* the page's cursor moves while rows are read */
	struct hx_scan_place from = hx_scan_place_first(page->scan);
	sqlite3_stmt *statement;
	bool stop = false;
	size_t looked = 0;
	int code = hx_sqlite_statement(connection, statement_for(page->scan), &statement);

	if (code != SQLITE_OK)
		return code;
	if (begin.size != 0) {
		if (!hx_scan_place_get(&begin, &from))
			return SQLITE_MISMATCH;
		begin.place[begin.size] = '\0';
		from.key.size++;
	}
	code |= hx_sqlite_bind_bytes(statement, 1, from.tenant);
	code |= hx_sqlite_bind_bytes(statement, 2, from.group);
	code |= hx_sqlite_bind_bytes(statement, 3, from.key);
	code |= sqlite3_bind_int(statement, 4, PAGE_ROWS);
	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	while (code == SQLITE_ROW && !stop) {
		looked++;
		code = visit(page, connection, statement, &stop);
		if (code == SQLITE_OK && !stop)
			code = sqlite3_step(statement);
	}
	if (code == SQLITE_DONE) {
		code = SQLITE_OK;
		page->cursor->done = looked < PAGE_ROWS;
	}
	(void)sqlite3_reset(statement);
	return code;
}

static int read_page(
	struct page *page, struct hx_sqlite_connection *connection,
	const struct hapax_store_options *options)
{
	struct hapax_cursor before = *page->cursor;
	struct hx_sqlite_transaction transaction;
	int code;

	hx_sqlite_connection_set_timeout(connection, options->timeout_ms);
	code = hx_sqlite_transaction_begin(&transaction, connection, options, HX_SQLITE_READ);
	if (code != SQLITE_OK)
		return code;
	page->now_ms = transaction.now_ms;
	code = read_rows(page, connection);
	hx_sqlite_transaction_abort(&transaction);
	if (code != SQLITE_OK)
		*page->cursor = before;
	return code;
}

/* False: each() stopped, and the cursor is after that record. */
static bool hand_out(struct page *page, hapax_scan_fn *each, void *context)
{
	struct hapax_bytes rest = hx_bytes(page->records.data, page->records.size);

	while (rest.size != 0) {
		struct hapax_record record;
		size_t size = 0;
		enum hapax_status status = hx_record_decode(rest, &record, &size, NULL);

		assert(status == HAPAX_OK);
		(void)status;
		if (each(&record, context) != 0) {
			(void)hx_scan_place_put(
				page->cursor, 0,
				&(struct hx_scan_place){record.tenant, record.group, record.key});
			return false;
		}
		rest = hx_bytes((const unsigned char *)rest.data + size, rest.size - size);
	}
	return true;
}

static enum hapax_status fail_page(
	struct hx_sqlite_connection *connection, int code, struct hapax_error *err)
{
	if (code == SQLITE_MISMATCH)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the cursor belongs to another store");
	return hx_sqlite_connection_fail(
		connection, code, HX_SQLITE_BEFORE_COMMIT, "could not read the records", err);
}

enum hapax_status hx_sqlite_scan(
	struct hx_sqlite_connection *connection, struct hx_mutex *mutex,
	const struct hapax_store_options *options, const struct hapax_scan *scan,
	struct hapax_cursor *cursor, hapax_scan_fn *each, void *context, struct hapax_error *err)
{
	struct page page = {.scan = scan, .cursor = cursor};
	size_t left = scan->count_max;
	enum hapax_status status = HAPAX_OK;
	bool goes_on = true;

	hx_buf_init(&page.records, PAGE_BYTES_MAX);
	while (goes_on && status == HAPAX_OK && left > 0 && !cursor->done) {
		int code;

		hx_buf_clear(&page.records);
		page.count = 0;
		page.count_max = left;
		if (mutex != NULL)
			hx_mutex_lock(mutex);
		code = read_page(&page, connection, options);
		if (code != SQLITE_OK)
			status = fail_page(connection, code, err);
		if (mutex != NULL)
			hx_mutex_unlock(mutex);
		left -= page.count;
		if (status == HAPAX_OK)
			goes_on = hand_out(&page, each, context);
		if (goes_on && status == HAPAX_OK && page.is_corrupt)
			status = hx_error_set(
				err, HAPAX_ERR_CORRUPT, 0, "a record in '%s' is damaged",
				connection->name);
	}
	hx_buf_done(&page.records);
	return status;
}
