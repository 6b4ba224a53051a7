/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_stats.c - statistics of the ledger.
 */
#include "store/sqlite/sqlite_stats.h"

#include "store/sqlite/counter.h"
#include "store/sqlite/transaction.h"

/* Expired records are counted up to this number. */
enum { EXPIRED_COUNT_MAX = 10000 };

static int count_expired(struct hx_sqlite_transaction *transaction, uint64_t *ret_count)
{
	sqlite3_stmt *statement;
	int code = hx_sqlite_statement(transaction->connection, HX_SQLITE_DUE_COUNT, &statement);

	if (code != SQLITE_OK)
		return code;
	code |= sqlite3_bind_int64(statement, 1, transaction->now_ms);
	code |= sqlite3_bind_int64(statement, 2, EXPIRED_COUNT_MAX);
	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	if (code == SQLITE_ROW) {
		*ret_count = (uint64_t)sqlite3_column_int64(statement, 0);
		code = SQLITE_OK;
	}
	(void)sqlite3_reset(statement);
	return code;
}

static int read_stats(struct hx_sqlite_transaction *transaction, struct hapax_stats *stats)
{
	const struct hapax_clock *clock = transaction->options->clock;
	const struct hx_sqlite_meta *meta = &transaction->meta;
	int code;

	stats->now_ms = transaction->now_ms;
	stats->skew_ms = transaction->now_ms - clock->wall_ms(clock->context);
	stats->keys = hx_sqlite_meta_records(meta);
	stats->claimed = meta->counts[HAPAX_STATE_CLAIMED];
	stats->done = meta->counts[HAPAX_STATE_DONE];
	stats->failed = meta->counts[HAPAX_STATE_FAILED];
	stats->parked = meta->counts[HAPAX_STATE_PARKED];
	stats->token = meta->token;
	code = count_expired(transaction, &stats->expired);
	if (code == SQLITE_OK)
		code = hx_sqlite_transaction_bytes(transaction, &stats->bytes);
	if (code == SQLITE_OK)
		code = hx_sqlite_counter_sum(transaction->connection, stats->counts);
	return code;
}

enum hapax_status hx_sqlite_stats(
	struct hx_sqlite_connection *connection, const struct hapax_store_options *options,
	struct hapax_stats *stats, struct hapax_error *err)
{
	struct hx_sqlite_transaction transaction;
	int code;

	hx_sqlite_connection_set_timeout(connection, options->timeout_ms);
	code = hx_sqlite_transaction_begin(&transaction, connection, options, HX_SQLITE_READ);
	if (code == SQLITE_OK) {
		code = read_stats(&transaction, stats);
		hx_sqlite_transaction_abort(&transaction);
	}
	if (code == SQLITE_OK)
		return HAPAX_OK;
	return hx_sqlite_connection_fail(
		connection, code, HX_SQLITE_BEFORE_COMMIT, "could not read the statistics", err);
}
