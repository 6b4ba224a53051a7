/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/tx/sqlite_savepoint.h"

#include <assert.h>
#include <stdio.h>

#include "base/error.h"
#include "store/sqlite/sqlite_fault.h"
#include "store/sqlite/statement.h"

/* A word or two, and ten digits. */
enum { SQL_SIZE_MAX = 40 };

static bool is_in_transaction(const struct hx_sqlite_brackets *brackets)
{
	return sqlite3_get_autocommit(brackets->connection->db) == 0;
}

static enum hapax_status lose(struct hx_sqlite_brackets *brackets, struct hapax_error *err)
{
	brackets->is_lost = true;
	atomic_store(brackets->connection->is_failed, 1);
	return hx_error_set(
		err, HAPAX_ERR_FAILED, 0,
		"the transaction was ended in between, by the handler's own SQL or by SQLite "
		"(a full disk does that); join the connection anew");
}

/* Not waiting: within a transaction there is nothing to wait for. */
static int run_on_savepoint(
	const struct hx_sqlite_brackets *brackets, const char *words, unsigned depth)
{
	char sql[SQL_SIZE_MAX];

	(void)snprintf(sql, sizeof(sql), "%s hapax_%u", words, depth);
	return sqlite3_exec(brackets->connection->db, sql, NULL, NULL, NULL);
}

/* As hx_sqlite_run(), until the lock is to be had. */
static int run_waiting(struct hx_sqlite_brackets *brackets, enum hx_sqlite_statement which)
{
	struct hx_sqlite_connection *connection = brackets->connection;
	int code;

	hx_sqlite_connection_set_timeout(connection, brackets->timeout_ms);
	do {
		code = hx_sqlite_run(connection, which);
	} while (hx_sqlite_is_busy(code) && hx_sqlite_connection_wait(connection));
	return code;
}

static enum hapax_status begin(struct hx_sqlite_brackets *brackets, struct hapax_error *err)
{
	struct hx_sqlite_connection *connection = brackets->connection;
	bool is_first = !is_in_transaction(brackets);
	int code;

	if (brackets->depth == 0) {
		brackets->is_lost = false;
		brackets->own_depth = 0;
	}
	if (hx_sqlite_connection_is_failed(connection))
		return hx_error_set(
			err, HAPAX_ERR_FAILED, 0,
			"the ledger has failed before and must be joined anew");
	if (is_first && brackets->depth > 0)
		return lose(brackets, err);
	if (is_first)
		code = run_waiting(brackets, HX_SQLITE_BEGIN_WRITE);
	else
		code = run_on_savepoint(brackets, "SAVEPOINT", brackets->depth + 1);
	if (code != SQLITE_OK)
		return hx_sqlite_connection_fail(
			connection, code, HX_SQLITE_BEFORE_COMMIT, "the transaction was not begun",
			err);
	brackets->depth++;
	if (is_first)
		brackets->own_depth = brackets->depth;
	return HAPAX_OK;
}

/* The whole transaction, which is ours. */
static void roll_back(struct hx_sqlite_brackets *brackets)
{
	if (is_in_transaction(brackets))
		(void)hx_sqlite_run(brackets->connection, HX_SQLITE_ROLLBACK);
	/* Whatever is done next would be done in it. */
	if (is_in_transaction(brackets))
		atomic_store(brackets->connection->is_failed, 1);
}

static enum hapax_status undo(
	struct hx_sqlite_brackets *brackets, unsigned depth, bool is_own, struct hapax_error *err)
{
	if (is_own) {
		roll_back(brackets);
		return HAPAX_OK;
	}
	if (run_on_savepoint(brackets, "ROLLBACK TO", depth) != SQLITE_OK)
		return lose(brackets, err);
	/* While a statement is in progress it stays, empty, until the transaction ends. */
	(void)run_on_savepoint(brackets, "RELEASE", depth);
	return HAPAX_OK;
}

static enum hapax_status commit(struct hx_sqlite_brackets *brackets, struct hapax_error *err)
{
	struct hx_sqlite_connection *connection = brackets->connection;
	int code = run_waiting(brackets, HX_SQLITE_COMMIT);
	enum hapax_status status = HAPAX_OK;

	if (code == SQLITE_OK)
		return HAPAX_OK;
	/* Deferred ones are judged at last; the transaction is open still. */
	if ((code & 0xff) == SQLITE_CONSTRAINT && is_in_transaction(brackets))
		status = hx_error_set(
			err, HAPAX_ERR_HANDLER, 0, "the transaction was undone: %s",
			sqlite3_errmsg(connection->db));
	else
		status = hx_sqlite_connection_fail(
			connection, code, HX_SQLITE_IN_COMMIT, "the transaction was not committed",
			err);
	roll_back(brackets);
	return status;
}

static enum hapax_status keep(
	struct hx_sqlite_brackets *brackets, unsigned depth, bool is_own, struct hapax_error *err)
{
	enum hapax_status status;
	int code;

	if (is_own)
		return commit(brackets, err);
	code = run_on_savepoint(brackets, "RELEASE", depth);
	if (code == SQLITE_OK)
		return HAPAX_OK;
	if (!hx_sqlite_is_busy(code))
		return lose(brackets, err);
	status = undo(brackets, depth, is_own, err);
	if (status != HAPAX_OK)
		return status;
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"undone, because a statement that writes was left in progress; finalize or reset it");
}

enum hapax_status hx_sqlite_bracket(
	struct hx_sqlite_brackets *brackets, enum hapax_bracket bracket, struct hapax_error *err)
{
	unsigned depth = brackets->depth;
	bool is_own = brackets->own_depth == depth;

	if (bracket == HAPAX_BRACKET_BEGIN || bracket == HAPAX_BRACKET_HANDLER)
		return begin(brackets, err);
	/* There is no way to a server that could be saved. */
	if (bracket == HAPAX_BRACKET_LAST)
		return HAPAX_OK;
	assert(depth > 0);
	brackets->depth--;
	if (is_own)
		brackets->own_depth = 0;
	if (brackets->is_lost || !is_in_transaction(brackets)) {
		/* None was open when it began, and none is when it has ended. */
		if (is_own)
			roll_back(brackets);
		return lose(brackets, err);
	}
	return bracket == HAPAX_BRACKET_KEEP ? keep(brackets, depth, is_own, err)
					     : undo(brackets, depth, is_own, err);
}
