/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/bracket.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "store/postgres/fault.h"

/* A word or two, and ten digits. */
enum { SQL_SIZE_MAX = 60 };

static enum hapax_status lose(struct hx_postgres_brackets *brackets, struct hapax_error *err)
{
	brackets->is_lost = true;
	return hx_error_set(
		err, HAPAX_ERR_FAILED, 0,
		"the transaction was ended in between by the handler's own SQL; join the connection anew");
}

static PGresult *run_on_savepoint(
	const struct hx_postgres_brackets *brackets, const char *words, unsigned depth)
{
	char sql[SQL_SIZE_MAX];

	(void)snprintf(sql, sizeof(sql), "%s hapax_%u", words, depth);
	return PQexec(brackets->conn, sql);
}

static bool is_done(PGresult *result)
{
	bool is_good = PQresultStatus(result) == PGRES_COMMAND_OK;

	PQclear(result);
	return is_good;
}

static enum hapax_status begin(struct hx_postgres_brackets *brackets, struct hapax_error *err)
{
	PGTransactionStatusType state = PQtransactionStatus(brackets->conn);
	bool is_first = state == PQTRANS_IDLE;
	PGresult *result;
	enum hapax_status status = HAPAX_OK;

	if (brackets->depth == 0)
		brackets->own_depth = 0;
	if (brackets->is_lost || (is_first && brackets->depth > 0))
		return lose(brackets, err);
	if (state != PQTRANS_IDLE && state != PQTRANS_INTRANS)
		return hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0,
			"the connection is busy or lost, or its transaction has failed: roll back first");
	result = is_first ? PQexec(brackets->conn, "BEGIN")
			  : run_on_savepoint(brackets, "SAVEPOINT", brackets->depth + 1);
	if (PQresultStatus(result) != PGRES_COMMAND_OK) {
		(void)hx_postgres_result_error(result, "the transaction was not begun", err);
		/* Nothing has been done in it, whatever became of it. */
		status = HAPAX_ERR_UNAVAILABLE;
		if (err != NULL)
			err->status = status;
	}
	PQclear(result);
	if (status != HAPAX_OK)
		return status;
	brackets->depth++;
	if (is_first)
		brackets->own_depth = brackets->depth;
	return HAPAX_OK;
}

/* The whole transaction, which is ours. */
static void roll_back(struct hx_postgres_brackets *brackets)
{
	if (PQtransactionStatus(brackets->conn) != PQTRANS_IDLE)
		PQclear(PQexec(brackets->conn, "ROLLBACK"));
}

static enum hapax_status undo(
	struct hx_postgres_brackets *brackets, unsigned depth, bool is_own, struct hapax_error *err)
{
	/* With the session went all that was done in it. */
	if (PQtransactionStatus(brackets->conn) == PQTRANS_UNKNOWN)
		return HAPAX_OK;
	if (is_own) {
		roll_back(brackets);
		return HAPAX_OK;
	}
	if (!is_done(run_on_savepoint(brackets, "ROLLBACK TO SAVEPOINT", depth)) ||
	    !is_done(run_on_savepoint(brackets, "RELEASE SAVEPOINT", depth)))
		return lose(brackets, err);
	return HAPAX_OK;
}

static enum hapax_status commit(struct hx_postgres_brackets *brackets, struct hapax_error *err)
{
	PGresult *result = PQexec(brackets->conn, "COMMIT");
	const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	enum hapax_status status = HAPAX_OK;

	if (PQresultStatus(result) == PGRES_COMMAND_OK) {
		/* A transaction in which a statement failed says that it was rolled back. */
		if (strcmp(PQcmdStatus(result), "COMMIT") != 0)
			status = hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"undone, because a statement had failed in the transaction");
	} else if (
		hx_postgres_fault(result) != HX_POSTGRES_FAULT_LOST &&
		strncmp(code, "23", 2) == 0) {
		/* Deferred constraints are judged at last. */
		status = hx_error_set(
			err, HAPAX_ERR_HANDLER, 0, "the transaction was undone: %.200s",
			PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY));
	} else {
		status = hx_postgres_result_error(result, "the transaction was not committed", err);
	}
	PQclear(result);
	if (PQstatus(brackets->conn) == CONNECTION_OK)
		roll_back(brackets);
	return status;
}

static enum hapax_status keep(
	struct hx_postgres_brackets *brackets, unsigned depth, bool is_own, struct hapax_error *err)
{
	PGTransactionStatusType state = PQtransactionStatus(brackets->conn);
	enum hapax_status status;

	if (state == PQTRANS_UNKNOWN)
		return hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0,
			"the connection was lost before the commit; nothing was done");
	if (state == PQTRANS_INTRANS && is_own)
		return commit(brackets, err);
	if (state == PQTRANS_INTRANS)
		return is_done(run_on_savepoint(brackets, "RELEASE SAVEPOINT", depth))
			? HAPAX_OK
			: lose(brackets, err);
	status = undo(brackets, depth, is_own, err);
	if (status != HAPAX_OK)
		return status;
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"undone, because a statement had failed, or its result was left to be read");
}

enum hapax_status hx_postgres_bracket(
	struct hx_postgres_brackets *brackets, enum hapax_bracket bracket, struct hapax_error *err)
{
	unsigned depth = brackets->depth;
	bool is_own = brackets->own_depth == depth;

	if (bracket == HAPAX_BRACKET_BEGIN)
		return begin(brackets, err);
	assert(depth > 0);
	brackets->depth--;
	if (is_own)
		brackets->own_depth = 0;
	if (brackets->is_lost || PQtransactionStatus(brackets->conn) == PQTRANS_IDLE) {
		/* None was open when it began, and none is when it has ended. */
		if (is_own)
			roll_back(brackets);
		return lose(brackets, err);
	}
	return bracket == HAPAX_BRACKET_KEEP ? keep(brackets, depth, is_own, err)
					     : undo(brackets, depth, is_own, err);
}
