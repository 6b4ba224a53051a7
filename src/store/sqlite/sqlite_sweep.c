/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_sweep.c - remove expired records, settle lapsed claims.
 *
 * The index of due_ms finds the records, so a sweep costs what it finds, not what the store
 * holds. A settled record leaves the due part of that index; an unreadable row is skipped and
 * stays.
 */
#include "store/sqlite/sqlite_sweep.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "record/record.h"
#include "record/transition.h"
#include "store/sqlite/row.h"

enum {
	/* Removed in a few milliseconds: no operation waits longer for the lock. */
	CHUNK_COUNT = 512,

	/* The texts of a record without headers and body. */
	RECORD_BYTES_MAX = 2 * HX_SCOPE_PART_SIZE_MAX + HX_KEY_SIZE_MAX + HX_OWNER_SIZE_MAX +
		HX_ERROR_TEXT_SIZE_MAX,
};

/* Between two chunks; waiters for the lock retry at least every 5 ms. */
#define GAP_NS INT64_C(2000000)

/* Copy the next due record into buf. *ret_found: there is one. */
static int find_due(
	struct hx_sqlite_transaction *transaction, size_t passed_over, struct hapax_buf *buf,
	int64_t *ret_id, struct hapax_record *ret_record, bool *ret_found, bool *ret_valid)
{
	struct hapax_record row = {0};
	sqlite3_stmt *statement;
	int code = hx_sqlite_statement(transaction->connection, HX_SQLITE_DUE_NEXT, &statement);

	if (code != SQLITE_OK)
		return code;
	code |= sqlite3_bind_int64(statement, 1, transaction->now_ms);
	code |= sqlite3_bind_int64(statement, 2, (int64_t)passed_over);
	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	*ret_found = code == SQLITE_ROW;
	if (code == SQLITE_DONE)
		code = SQLITE_OK;
	if (*ret_found) {
		code = hx_sqlite_column_bytes(statement, HX_SQLITE_ROW_COUNT, &row.tenant);
		if (code == SQLITE_OK)
			code = hx_sqlite_column_bytes(
				statement, HX_SQLITE_ROW_COUNT + 1, &row.group);
		if (code == SQLITE_OK)
			code = hx_sqlite_column_bytes(statement, HX_SQLITE_ROW_COUNT + 2, &row.key);
		if (code == SQLITE_OK)
			code = hx_sqlite_row_read(statement, ret_id, &row, ret_valid);
		if (code == SQLITE_OK && *ret_valid &&
		    hx_record_copy(&row, ret_record, buf) != HAPAX_OK)
			code = SQLITE_NOMEM;
	}
	(void)sqlite3_reset(statement);
	return code;
}

/* *ret_settled is false if the rules find nothing to do: due_ms was wrong. */
static int settle(
	struct hx_sqlite_transaction *transaction, int64_t id, const struct hapax_record *record,
	struct hapax_sweep *sweep, bool *ret_settled)
{
	struct hx_transition_rules rules = {.now_ms = transaction->now_ms};
	struct hx_transition transition;

	*ret_settled = true;
	if (hx_record_is_expired(record, transaction->now_ms)) {
		sweep->removed++;
		return hx_sqlite_transaction_remove(transaction, id, record);
	}
	hx_transition_sweep(record, &rules, &transition);
	*ret_settled = transition.effect == HX_EFFECT_PUT;
	if (!*ret_settled)
		return SQLITE_OK;
	sweep->lapsed++;
	return hx_sqlite_transaction_replace(transaction, id, record->state, &transition.next);
}

int hx_sqlite_sweep_some(
	struct hx_sqlite_transaction *transaction, size_t count_max, struct hapax_sweep *sweep)
{
	struct hapax_record record;
	struct hapax_buf buf;
	size_t passed_over = 0;
	size_t i = 0;
	int code = SQLITE_OK;

	hx_buf_init(&buf, RECORD_BYTES_MAX);
	sweep->done = 0;
	for (; i < count_max && code == SQLITE_OK && !sweep->done; i++) {
		bool found = false, valid = false, settled = false;
		int64_t id = 0;

		code = find_due(transaction, passed_over, &buf, &id, &record, &found, &valid);
		if (code != SQLITE_OK)
			break;
		sweep->done = !found;
		sweep->looked += found;
		if (found && valid)
			code = settle(transaction, id, &record, sweep, &settled);
		passed_over += !settled;
	}
	/* Only rows that cannot be settled: another look would not help. */
	if (i == count_max && passed_over == i)
		sweep->done = 1;
	hx_buf_done(&buf);
	return code;
}

/* Is any record due? Mostly not, and then no lock is taken. */
static int peek(
	struct hx_sqlite_connection *connection, const struct hapax_store_options *options,
	struct hapax_sweep *sweep)
{
	struct hx_sqlite_transaction transaction;
	sqlite3_stmt *statement;
	int code = hx_sqlite_transaction_begin(&transaction, connection, options, HX_SQLITE_READ);

	if (code != SQLITE_OK)
		return code;
	code = hx_sqlite_statement(connection, HX_SQLITE_DUE_NEXT, &statement);
	if (code == SQLITE_OK) {
		code |= sqlite3_bind_int64(statement, 1, transaction.now_ms);
		code |= sqlite3_bind_int64(statement, 2, 0);
		if (code == SQLITE_OK)
			code = sqlite3_step(statement);
		(void)sqlite3_reset(statement);
	}
	sweep->done = code == SQLITE_DONE;
	sweep->remaining = hx_sqlite_meta_records(&transaction.meta);
	hx_sqlite_transaction_abort(&transaction);
	return code == SQLITE_DONE || code == SQLITE_ROW ? SQLITE_OK : code;
}

static int sweep_chunk(
	struct hx_sqlite_transaction *transaction, struct hx_sqlite_connection *connection,
	const struct hapax_store_options *options, size_t count_max, struct hapax_sweep *sweep)
{
	struct hapax_sweep work = *sweep;
	int code;

	hx_sqlite_connection_set_timeout(connection, options->timeout_ms);
	/* Other processes act on settled records, so these must survive a power cut (I2b). */
	code = hx_sqlite_connection_relax(connection, false);
	if (code == SQLITE_OK)
		code = hx_sqlite_transaction_begin(
			transaction, connection, options, HX_SQLITE_WRITE);
	if (code != SQLITE_OK)
		return code;
	code = hx_sqlite_sweep_some(transaction, count_max, &work);
	if (code != SQLITE_OK) {
		hx_sqlite_transaction_abort(transaction);
		return code;
	}
	work.remaining = hx_sqlite_meta_records(&transaction->meta);
	code = hx_sqlite_transaction_commit(transaction);
	if (code == SQLITE_OK)
		*sweep = work;
	return code;
}

enum hapax_status hx_sqlite_sweep(
	struct hx_sqlite_connection *connection, const struct hapax_store_options *options,
	struct hapax_sweep *sweep, struct hapax_error *err)
{
	struct hx_sqlite_transaction transaction = {.stage = HX_SQLITE_BEFORE_COMMIT};
	size_t left = sweep->count_max;
	int code;

	hx_sqlite_connection_set_timeout(connection, options->timeout_ms);
	code = peek(connection, options, sweep);
	while (code == SQLITE_OK && !sweep->done && left > 0) {
		size_t count = left < CHUNK_COUNT ? left : CHUNK_COUNT;

		code = sweep_chunk(&transaction, connection, options, count, sweep);
		left -= count;
		if (code == SQLITE_OK && !sweep->done && left > 0 && !connection->is_joined)
			hx_sqlite_pause(GAP_NS);
	}
	if (code == SQLITE_OK)
		return HAPAX_OK;
	return hx_sqlite_connection_fail(
		connection, code, transaction.stage, "could not sweep the store", err);
}
