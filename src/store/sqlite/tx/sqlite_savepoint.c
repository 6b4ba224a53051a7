/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/tx/sqlite_savepoint.h"

#include <assert.h>
#include <stdio.h>

#include "base/error.h"
#include "store/sqlite/sqlite_fault.h"
#include "store/sqlite/statement.h"

/* One or two words, and ten digits. */
enum { SQL_SIZE_MAX = 40 };

static bool is_in_transaction(const struct hx_sqlite_savepoints *savepoints)
{
	return sqlite3_get_autocommit(savepoints->connection->db) == 0;
}

static enum hapax_status lose(struct hx_sqlite_savepoints *savepoints, struct hapax_error *err)
{
	savepoints->is_lost = true;
	atomic_store(savepoints->connection->is_failed, 1);
	return hx_error_set(
		err, HAPAX_ERR_FAILED, 0,
		"the transaction was ended by the handler's own SQL or by SQLite (as on a full "
		"disk); join the connection again");
}

/* Does not wait: a transaction already has its locks. */
static int run_on_savepoint(
	const struct hx_sqlite_savepoints *savepoints, const char *words, unsigned depth)
{
	char sql[SQL_SIZE_MAX];

	(void)snprintf(sql, sizeof(sql), "%s hapax_%u", words, depth);
	return sqlite3_exec(savepoints->connection->db, sql, NULL, NULL, NULL);
}

/* Like hx_sqlite_run(), but waits for the lock. */
static int run_waiting(struct hx_sqlite_savepoints *savepoints, enum hx_sqlite_statement which)
{
	struct hx_sqlite_connection *connection = savepoints->connection;
	int code;

	hx_sqlite_connection_set_timeout(connection, savepoints->timeout_ms);
	do {
		code = hx_sqlite_run(connection, which);
	} while (hx_sqlite_is_busy(code) && hx_sqlite_connection_wait(connection));
	return code;
}

static enum hapax_status begin(struct hx_sqlite_savepoints *savepoints, struct hapax_error *err)
{
	struct hx_sqlite_connection *connection = savepoints->connection;
	bool is_first = !is_in_transaction(savepoints);
	int code;

	if (savepoints->depth == 0) {
		savepoints->is_lost = false;
		savepoints->own_depth = 0;
	}
	if (hx_sqlite_connection_is_failed(connection))
		return hx_error_set(
			err, HAPAX_ERR_FAILED, 0,
			"the store stopped after an error; join it again");
	if (is_first && savepoints->depth > 0)
		return lose(savepoints, err);
	if (is_first)
		code = run_waiting(savepoints, HX_SQLITE_BEGIN_WRITE);
	else
		code = run_on_savepoint(savepoints, "SAVEPOINT", savepoints->depth + 1);
	if (code != SQLITE_OK)
		return hx_sqlite_connection_fail(
			connection, code, HX_SQLITE_BEFORE_COMMIT,
			"could not begin the transaction", err);
	savepoints->depth++;
	if (is_first)
		savepoints->own_depth = savepoints->depth;
	return HAPAX_OK;
}

/* Roll back the whole transaction, which is ours. */
static void roll_back(struct hx_sqlite_savepoints *savepoints)
{
	if (is_in_transaction(savepoints))
		(void)hx_sqlite_run(savepoints->connection, HX_SQLITE_ROLLBACK);
	/* If it is still open, later statements would run in it. */
	if (is_in_transaction(savepoints))
		atomic_store(savepoints->connection->is_failed, 1);
}

static enum hapax_status undo(
	struct hx_sqlite_savepoints *savepoints, unsigned depth, bool is_own,
	struct hapax_error *err)
{
	if (is_own) {
		roll_back(savepoints);
		return HAPAX_OK;
	}
	if (run_on_savepoint(savepoints, "ROLLBACK TO", depth) != SQLITE_OK)
		return lose(savepoints, err);
	/*
	 * While a statement is in progress the savepoint stays, empty, until the transaction
	 * ends.
	 */
	(void)run_on_savepoint(savepoints, "RELEASE", depth);
	return HAPAX_OK;
}

static enum hapax_status commit(struct hx_sqlite_savepoints *savepoints, struct hapax_error *err)
{
	struct hx_sqlite_connection *connection = savepoints->connection;
	int code = run_waiting(savepoints, HX_SQLITE_COMMIT);
	enum hapax_status status = HAPAX_OK;

	if (code == SQLITE_OK)
		return HAPAX_OK;
	/* Deferred constraints are checked at the commit; the transaction is still open. */
	if ((code & 0xff) == SQLITE_CONSTRAINT && is_in_transaction(savepoints))
		status = hx_error_set(
			err, HAPAX_ERR_HANDLER, 0, "the transaction was rolled back: %s",
			sqlite3_errmsg(connection->db));
	else
		status = hx_sqlite_connection_fail(
			connection, code, HX_SQLITE_IN_COMMIT, "could not commit the transaction",
			err);
	roll_back(savepoints);
	return status;
}

static enum hapax_status sqlite_savepoint_keep(
	struct hx_sqlite_savepoints *savepoints, unsigned depth, bool is_own,
	struct hapax_error *err)
{
	enum hapax_status status;
	int code;

	if (is_own)
		return commit(savepoints, err);
	code = run_on_savepoint(savepoints, "RELEASE", depth);
	if (code == SQLITE_OK)
		return HAPAX_OK;
	if (!hx_sqlite_is_busy(code))
		return lose(savepoints, err);
	status = undo(savepoints, depth, is_own, err);
	if (status != HAPAX_OK)
		return status;
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"rolled back: a statement that writes is still in progress; finalize or reset it");
}

enum hapax_status hx_sqlite_savepoint(
	struct hx_sqlite_savepoints *savepoints, enum hapax_savepoint savepoint,
	struct hapax_error *err)
{
	unsigned depth = savepoints->depth;
	bool is_own = savepoints->own_depth == depth;

	if (savepoint == HAPAX_SAVEPOINT_BEGIN || savepoint == HAPAX_SAVEPOINT_HANDLER)
		return begin(savepoints, err);
	/* SQLite has no round trip to save. */
	if (savepoint == HAPAX_SAVEPOINT_LAST)
		return HAPAX_OK;
	assert(depth > 0);
	savepoints->depth--;
	if (is_own)
		savepoints->own_depth = 0;
	if (savepoints->is_lost || !is_in_transaction(savepoints)) {
		/* No transaction was open when it began, and none is when it has ended. */
		if (is_own)
			roll_back(savepoints);
		return lose(savepoints, err);
	}
	return savepoint == HAPAX_SAVEPOINT_KEEP
		? sqlite_savepoint_keep(savepoints, depth, is_own, err)
		: undo(savepoints, depth, is_own, err);
}
