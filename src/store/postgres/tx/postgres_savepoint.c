/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/tx/postgres_savepoint.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "store/postgres/postgres_fault.h"

/* Top-level runs need no depths beyond these. */
const struct hx_postgres_savepoint_statement hx_postgres_savepoint_statements[] = {
	{"hapax_begin", "BEGIN"},
	{"hapax_commit", "COMMIT"},
	{"hapax_savepoint_1", "SAVEPOINT hapax_1"},
	{"hapax_savepoint_2", "SAVEPOINT hapax_2"},
	{"hapax_release_1", "RELEASE SAVEPOINT hapax_1"},
	{NULL, NULL},
};

static bool send_statement(struct hx_postgres_trip *trip, const char *sql)
{
	const struct hx_postgres_savepoint_statement *statement = hx_postgres_savepoint_statements;

	while (statement->sql != NULL && strcmp(statement->sql, sql) != 0)
		statement++;
	if (statement->sql == NULL)
		return hx_postgres_trip_send(trip, sql);
	return hx_postgres_trip_send_prepared(trip, statement->name, 0, NULL, NULL, NULL);
}

static enum hapax_status lose(struct hx_postgres_savepoints *savepoints, struct hapax_error *err)
{
	savepoints->is_lost = true;
	savepoints->pending_count = 0;
	return hx_error_set(
		err, HAPAX_ERR_FAILED, 0,
		"the handler's own SQL ended the transaction; join the connection again");
}

/* A run's savepoint holds one of a handler, which may hold runs again. */
static bool is_handlers(unsigned depth)
{
	return depth % 2 == 0;
}

static void name_savepoint(char *sql, const char *words, unsigned depth)
{
	(void)snprintf(sql, HX_POSTGRES_SAVEPOINT_SQL_SIZE, "%s hapax_%u", words, depth);
}

static bool run_on_savepoint(
	const struct hx_postgres_savepoints *savepoints, const char *words, unsigned depth)
{
	char sql[HX_POSTGRES_SAVEPOINT_SQL_SIZE];
	PGresult *result;
	bool is_good;

	name_savepoint(sql, words, depth);
	result = PQexec(savepoints->conn, sql);
	is_good = PQresultStatus(result) == PGRES_COMMAND_OK;
	PQclear(result);
	return is_good;
}

/* ---------------------------------------------------------------- pending statements */

static bool is_pending_first(const struct hx_postgres_savepoints *savepoints)
{
	return savepoints->pending_count > 0 && strcmp(savepoints->pending[0], "BEGIN") == 0;
}

bool hx_postgres_savepoints_are_open(const struct hx_postgres_savepoints *savepoints)
{
	return savepoints->depth > 0 || PQtransactionStatus(savepoints->conn) != PQTRANS_IDLE;
}

static char *add_pending(struct hx_postgres_savepoints *savepoints)
{
	/* At most one release and one begin precede an operation or the handler. */
	assert(savepoints->pending_count < HX_POSTGRES_PENDING_MAX);
	return savepoints->pending[savepoints->pending_count++];
}

void hx_postgres_savepoints_release_handlers(struct hx_postgres_savepoints *savepoints)
{
	if (savepoints->has_handlers)
		name_savepoint(add_pending(savepoints), "RELEASE SAVEPOINT", savepoints->depth + 1);
	savepoints->has_handlers = false;
}

bool hx_postgres_savepoints_send_pending(
	struct hx_postgres_savepoints *savepoints, struct hx_postgres_trip *trip)
{
	bool is_sent = true;

	for (unsigned i = 0; i < savepoints->pending_count && is_sent; i++)
		is_sent = send_statement(trip, savepoints->pending[i]);
	return is_sent;
}

bool hx_postgres_savepoints_send_ahead(
	struct hx_postgres_savepoints *savepoints, struct hx_postgres_trip *trip)
{
	char sql[HX_POSTGRES_SAVEPOINT_SQL_SIZE];

	name_savepoint(sql, "SAVEPOINT", savepoints->depth + 1);
	return send_statement(trip, sql);
}

bool hx_postgres_savepoints_send_end(
	struct hx_postgres_savepoints *savepoints, struct hx_postgres_trip *trip)
{
	char sql[HX_POSTGRES_SAVEPOINT_SQL_SIZE];

	if (savepoints->own_depth == savepoints->depth)
		return send_statement(trip, "COMMIT");
	name_savepoint(sql, "RELEASE SAVEPOINT", savepoints->depth);
	return send_statement(trip, sql);
}

enum hapax_status hx_postgres_savepoints_take_pending(
	struct hx_postgres_savepoints *savepoints, const struct hx_postgres_trip *trip)
{
	unsigned count = savepoints->pending_count;

	savepoints->pending_count = 0;
	for (unsigned i = 0; i < count; i++) {
		if (hx_postgres_trip_is_good(trip, (int)i))
			continue;
		if (PQstatus(savepoints->conn) == CONNECTION_BAD)
			return HAPAX_ERR_UNAVAILABLE;
		/* One of our savepoints is gone. */
		if (strncmp(savepoints->pending[i], "RELEASE", 7) == 0) {
			(void)lose(savepoints, NULL);
			return HAPAX_ERR_FAILED;
		}
		return HAPAX_ERR_UNAVAILABLE;
	}
	return HAPAX_OK;
}

/* Send the pending statements, and one more if given. False: at least one failed. */
static bool flush(struct hx_postgres_savepoints *savepoints, const char *sql, bool *ret_is_lost)
{
	struct hx_postgres_trip trip;
	enum hapax_status status = HAPAX_ERR_UNAVAILABLE;
	bool is_sent;

	if (hx_postgres_trip_begin(&trip, savepoints->conn)) {
		is_sent = hx_postgres_savepoints_send_pending(savepoints, &trip) &&
			(sql == NULL || send_statement(&trip, sql));
		hx_postgres_trip_end(&trip);
		status = hx_postgres_savepoints_take_pending(savepoints, &trip);
		if (status == HAPAX_OK &&
		    (!is_sent || (sql != NULL && !hx_postgres_trip_is_good(&trip, trip.count - 1))))
			status = HAPAX_ERR_UNAVAILABLE;
	}
	hx_postgres_trip_clear(&trip);
	*ret_is_lost = status == HAPAX_ERR_FAILED;
	return status == HAPAX_OK;
}

/* ---------------------------------------------------------------- beginning */

static enum hapax_status refuse_begin(
	const struct hx_postgres_savepoints *savepoints, struct hapax_error *err)
{
	return hx_error_set(
		err, HAPAX_ERR_UNAVAILABLE, 0, "%s", hx_postgres_busy_text(savepoints->conn));
}

static enum hapax_status begin(struct hx_postgres_savepoints *savepoints, struct hapax_error *err)
{
	PGTransactionStatusType state = PQtransactionStatus(savepoints->conn);
	bool is_first = state == PQTRANS_IDLE && !is_pending_first(savepoints);

	if (savepoints->depth == 0)
		savepoints->own_depth = 0;
	if (savepoints->is_lost || (is_first && savepoints->depth > 0))
		return lose(savepoints, err);
	if ((state != PQTRANS_IDLE && state != PQTRANS_INTRANS) ||
	    PQpipelineStatus(savepoints->conn) != PQ_PIPELINE_OFF)
		return refuse_begin(savepoints, err);
	savepoints->depth++;
	savepoints->is_fresh = true;
	savepoints->is_ahead = false;
	savepoints->is_last = false;
	savepoints->is_kept = false;
	savepoints->has_handlers = false;
	if (is_first) {
		savepoints->own_depth = savepoints->depth;
		(void)snprintf(
			add_pending(savepoints), HX_POSTGRES_SAVEPOINT_SQL_SIZE, "%s", "BEGIN");
	} else {
		name_savepoint(add_pending(savepoints), "SAVEPOINT", savepoints->depth);
	}
	return HAPAX_OK;
}

/* The caller's own SQL comes next. */
static enum hapax_status begin_handler(
	struct hx_postgres_savepoints *savepoints, struct hapax_error *err)
{
	bool is_ahead = savepoints->is_ahead && !savepoints->is_lost;
	bool is_lost;
	enum hapax_status status;

	assert(is_handlers(savepoints->depth + 1));
	savepoints->is_fresh = false;
	if (is_ahead && PQtransactionStatus(savepoints->conn) == PQTRANS_INTRANS) {
		savepoints->is_ahead = false;
		savepoints->depth++;
		return HAPAX_OK;
	}
	status = begin(savepoints, err);
	if (status != HAPAX_OK)
		return status;
	savepoints->is_fresh = false;
	if (flush(savepoints, NULL, &is_lost))
		return HAPAX_OK;
	savepoints->depth--;
	return is_lost ? lose(savepoints, err) : refuse_begin(savepoints, err);
}

void hx_postgres_savepoints_lose(struct hx_postgres_savepoints *savepoints)
{
	(void)lose(savepoints, NULL);
}

bool hx_postgres_savepoints_mend(struct hx_postgres_savepoints *savepoints)
{
	PGTransactionStatusType state = PQtransactionStatus(savepoints->conn);

	assert(savepoints->is_fresh);
	if (state == PQTRANS_INTRANS)
		return true;
	if (state != PQTRANS_INERROR)
		return false;
	if (savepoints->own_depth != savepoints->depth)
		return run_on_savepoint(savepoints, "ROLLBACK TO SAVEPOINT", savepoints->depth);
	PQclear(PQexec(savepoints->conn, "ROLLBACK"));
	(void)snprintf(add_pending(savepoints), HX_POSTGRES_SAVEPOINT_SQL_SIZE, "%s", "BEGIN");
	return PQtransactionStatus(savepoints->conn) == PQTRANS_IDLE;
}

/* ---------------------------------------------------------------- ending */

/* Roll back the whole transaction, which is ours. */
static void roll_back(struct hx_postgres_savepoints *savepoints)
{
	if (PQtransactionStatus(savepoints->conn) != PQTRANS_IDLE)
		PQclear(PQexec(savepoints->conn, "ROLLBACK"));
}

static enum hapax_status undo(
	struct hx_postgres_savepoints *savepoints, unsigned depth, bool is_own,
	struct hapax_error *err)
{
	/* The lost session rolled everything back. */
	if (PQtransactionStatus(savepoints->conn) == PQTRANS_UNKNOWN)
		return HAPAX_OK;
	if (is_own) {
		roll_back(savepoints);
		return HAPAX_OK;
	}
	if (!run_on_savepoint(savepoints, "ROLLBACK TO SAVEPOINT", depth) ||
	    !run_on_savepoint(savepoints, "RELEASE SAVEPOINT", depth))
		return lose(savepoints, err);
	return HAPAX_OK;
}

/*
 * Deferred constraints and triggers run at the commit, and triggers raise any error. The other
 * codes are the server's: a transaction to be repeated, an operator, a system or internal error.
 */
static bool is_handlers_fault(const PGresult *result, const char *code)
{
	static const char *const servers[] = {"40", "57", "58", "XX"};
	enum hx_postgres_fault fault = hx_postgres_fault(result);

	if (code == NULL || fault == HX_POSTGRES_FAULT_LOST)
		return false;
	for (size_t i = 0; i < HX_COUNT(servers); i++) {
		if (strncmp(code, servers[i], 2) == 0)
			return false;
	}
	return fault == HX_POSTGRES_FAULT_OTHER || strncmp(code, "23", 2) == 0;
}

/* The status of a COMMIT's answer; NULL: it was lost. */
static enum hapax_status judge_commit(PGresult *result, struct hapax_error *err)
{
	const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	if (PQresultStatus(result) == PGRES_COMMAND_OK) {
		/* The COMMIT of a failed transaction reports a rollback. */
		if (strcmp(PQcmdStatus(result), "COMMIT") != 0)
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"rolled back: a statement in the transaction had failed");
		return HAPAX_OK;
	}
	if (hx_postgres_fault(result) == HX_POSTGRES_FAULT_LOST)
		return hx_postgres_result_error(
			result, "it is unknown whether the transaction was committed", err);
	if (is_handlers_fault(result, code))
		return hx_error_set(
			err, HAPAX_ERR_HANDLER, 0, "the transaction was rolled back: %.200s",
			PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY));
	return hx_postgres_result_error(result, "could not commit the transaction", err);
}

enum hapax_status hx_postgres_savepoints_take_end(
	struct hx_postgres_savepoints *savepoints, PGresult *result)
{
	bool is_own = savepoints->own_depth == savepoints->depth;

	memset(&savepoints->kept, 0, sizeof(savepoints->kept));
	savepoints->is_kept = true;
	if (is_own)
		return judge_commit(result, &savepoints->kept);
	if (PQresultStatus(result) == PGRES_COMMAND_OK)
		return HAPAX_OK;
	if (PQstatus(savepoints->conn) == CONNECTION_BAD)
		return hx_error_set(
			&savepoints->kept, HAPAX_ERR_UNAVAILABLE, 0,
			"the connection was lost before the commit; nothing changed");
	return lose(savepoints, &savepoints->kept);
}

static enum hapax_status commit(struct hx_postgres_savepoints *savepoints, struct hapax_error *err)
{
	PGresult *result = PQexec(savepoints->conn, "COMMIT");
	enum hapax_status status = judge_commit(result, err);

	PQclear(result);
	if (PQstatus(savepoints->conn) == CONNECTION_OK)
		roll_back(savepoints);
	return status;
}

static enum hapax_status postgres_savepoint_keep(
	struct hx_postgres_savepoints *savepoints, unsigned depth, bool is_own,
	struct hapax_error *err)
{
	PGTransactionStatusType state = PQtransactionStatus(savepoints->conn);
	enum hapax_status status;
	bool is_lost;

	if (state == PQTRANS_UNKNOWN)
		return hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0,
			"the connection was lost before the commit; nothing changed");
	if (state == PQTRANS_INTRANS && is_own) {
		if (savepoints->pending_count > 0 && !flush(savepoints, NULL, &is_lost)) {
			roll_back(savepoints);
			return is_lost ? lose(savepoints, err)
				       : hx_error_set(
						 err, HAPAX_ERR_UNAVAILABLE, 0,
						 "the transaction failed; nothing changed");
		}
		return commit(savepoints, err);
	}
	/* A completion may be in the handler's savepoint: the end of the run releases both. */
	if (state == PQTRANS_INTRANS && is_handlers(depth)) {
		savepoints->has_handlers = true;
		return HAPAX_OK;
	}
	if (state == PQTRANS_INTRANS) {
		name_savepoint(add_pending(savepoints), "RELEASE SAVEPOINT", depth);
		return flush(savepoints, NULL, &is_lost) ? HAPAX_OK : lose(savepoints, err);
	}
	status = undo(savepoints, depth, is_own, err);
	if (status != HAPAX_OK)
		return status;
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"rolled back: a statement had failed, or its result was not read");
}

enum hapax_status hx_postgres_savepoint(
	struct hx_postgres_savepoints *savepoints, enum hapax_savepoint savepoint,
	struct hapax_error *err)
{
	unsigned depth = savepoints->depth;
	bool is_own = savepoints->own_depth == depth;
	bool is_unsent = savepoints->is_fresh && savepoints->pending_count > 0;
	bool is_kept = savepoints->is_kept;

	switch (savepoint) {
	case HAPAX_SAVEPOINT_BEGIN: return begin(savepoints, err);
	case HAPAX_SAVEPOINT_HANDLER: return begin_handler(savepoints, err);
	case HAPAX_SAVEPOINT_LAST: savepoints->is_last = true; return HAPAX_OK;
	case HAPAX_SAVEPOINT_KEEP:
	case HAPAX_SAVEPOINT_UNDO: break;
	}
	assert(depth > 0);
	savepoints->depth--;
	savepoints->is_fresh = savepoints->is_ahead = savepoints->is_last = savepoints->is_kept =
		false;
	savepoints->has_handlers = false;
	if (is_own)
		savepoints->own_depth = 0;
	if (is_kept && savepoints->kept.status != HAPAX_OK) {
		if (is_own && PQstatus(savepoints->conn) == CONNECTION_OK)
			roll_back(savepoints);
		if (err != NULL)
			*err = savepoints->kept;
		return savepoints->kept.status;
	}
	/* It ended with its last operation, or never began. */
	if (is_kept || is_unsent) {
		savepoints->pending_count = 0;
		return HAPAX_OK;
	}
	if (savepoints->is_lost || PQtransactionStatus(savepoints->conn) == PQTRANS_IDLE) {
		/* No transaction was open when it began, and none is when it has ended. */
		if (is_own)
			roll_back(savepoints);
		return lose(savepoints, err);
	}
	if (savepoint == HAPAX_SAVEPOINT_KEEP)
		return postgres_savepoint_keep(savepoints, depth, is_own, err);
	savepoints->pending_count = 0;
	return undo(savepoints, depth, is_own, err);
}
