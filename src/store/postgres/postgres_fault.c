/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_fault.c - PostgreSQL's errors as statuses of error.h.
 */
#include "store/postgres/postgres_fault.h"

#include <string.h>

#include "base/error.h"

/* By SQLSTATE or its two-character class; the first match counts. */
static const struct {
	const char *code;
	enum hx_postgres_fault fault;
} faults[] = {
	{"HX003", HX_POSTGRES_FAULT_ROOM},
	{"HX006", HX_POSTGRES_FAULT_FENCED},
	{"HX008", HX_POSTGRES_FAULT_ENDED},
	{"55P03", HX_POSTGRES_FAULT_LOCKED},
	{"40P01", HX_POSTGRES_FAULT_AGAIN},
	{"40001", HX_POSTGRES_FAULT_AGAIN},
	{"2200H", HX_POSTGRES_FAULT_LIMIT}, /* the token sequence is exhausted */
	{"53", HX_POSTGRES_FAULT_LIMIT},    /* disk, memory, connections, configured limits */
	{"54", HX_POSTGRES_FAULT_LIMIT},
	{"XX001", HX_POSTGRES_FAULT_CORRUPT},
	{"XX002", HX_POSTGRES_FAULT_CORRUPT},
	{"23", HX_POSTGRES_FAULT_CORRUPT}, /* a constraint of the ledger is violated */
	{"42501", HX_POSTGRES_FAULT_DENIED},
	{"25006", HX_POSTGRES_FAULT_GONE}, /* read only: a standby, after a failover */
	{"42P01", HX_POSTGRES_FAULT_GONE}, /* no such table, function, type, schema */
	{"42883", HX_POSTGRES_FAULT_GONE},
	{"42704", HX_POSTGRES_FAULT_GONE},
	{"3F000", HX_POSTGRES_FAULT_GONE},
	{"26000", HX_POSTGRES_FAULT_GONE}, /* no such prepared statement: a pooler in between */
	{"57P", HX_POSTGRES_FAULT_LOST},   /* shutdown, terminated */
	{"08", HX_POSTGRES_FAULT_LOST},
};

enum hx_postgres_fault hx_postgres_fault_of_code(const char *sqlstate)
{
	if (sqlstate == NULL)
		return HX_POSTGRES_FAULT_LOST;
	for (size_t i = 0; i < HX_COUNT(faults); i++) {
		if (strncmp(sqlstate, faults[i].code, strlen(faults[i].code)) == 0)
			return faults[i].fault;
	}
	return HX_POSTGRES_FAULT_OTHER;
}

enum hx_postgres_fault hx_postgres_fault(const PGresult *result)
{
	const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);

	if (severity == NULL || strcmp(severity, "ERROR") != 0)
		return HX_POSTGRES_FAULT_LOST;
	return hx_postgres_fault_of_code(PQresultErrorField(result, PG_DIAG_SQLSTATE));
}

enum hapax_status hx_postgres_fault_status(enum hx_postgres_fault fault)
{
	switch (fault) {
	case HX_POSTGRES_FAULT_FENCED: return HAPAX_ERR_FENCED;
	case HX_POSTGRES_FAULT_LIMIT: return HAPAX_ERR_LIMIT;
	case HX_POSTGRES_FAULT_CORRUPT: return HAPAX_ERR_CORRUPT;
	case HX_POSTGRES_FAULT_DENIED: return HAPAX_ERR_INVALID;
	case HX_POSTGRES_FAULT_LOST: return HAPAX_ERR_UNCERTAIN;
	case HX_POSTGRES_FAULT_ENDED: return HAPAX_ERR_FAILED;
	case HX_POSTGRES_FAULT_ROOM:
	case HX_POSTGRES_FAULT_LOCKED:
	case HX_POSTGRES_FAULT_AGAIN:
	case HX_POSTGRES_FAULT_GONE:
	case HX_POSTGRES_FAULT_OTHER: break;
	}
	return HAPAX_ERR_UNAVAILABLE;
}

/* Hints, by the message of libpq or the server. */
static const struct {
	const char *part;
	const char *hint;
} hints[] = {
	{"password", "check user and password in the URL, PGPASSWORD or ~/.pgpass"},
	{"no pg_hba.conf entry", "allow this host and user in pg_hba.conf of the server"},
	{"database \"", "create it with createdb, or choose another database in the URL"},
	{"role \"", "create it with createuser, or choose another user in the URL"},
	{"refused", "check that the server is running, and its host and port"},
	{"No such file", "check that the server is running, and its host and port"},
	{"could not translate", "check the host name"},
	{"too many", "raise max_connections of the server, or lower ?pool="},
	{"starting up", "retry later"},
};

static const char *hint_for(const char *message)
{
	for (size_t i = 0; i < HX_COUNT(hints); i++) {
		if (strstr(message, hints[i].part) != NULL)
			return hints[i].hint;
	}
	return "check the URL and the server's log";
}

/* The first line, after the last "failed: " if there is one. */
static struct hapax_error first_line(const char *message)
{
	struct hapax_error line;
	const char *end = message + strcspn(message, "\n");

	(void)hx_error_set(
		&line, HAPAX_ERR_UNAVAILABLE, 0, "%.*s",
		(int)(end - message < 300 ? end - message : 300), message);
	return line;
}

const char *hx_postgres_busy_text(const PGconn *conn)
{
	switch (PQtransactionStatus(conn)) {
	case PQTRANS_INERROR: return "the transaction has failed; roll back first";
	case PQTRANS_UNKNOWN: return "the connection was lost; open a new one";
	case PQTRANS_ACTIVE: break;
	case PQTRANS_IDLE:
	case PQTRANS_INTRANS:
		if (PQpipelineStatus(conn) == PQ_PIPELINE_OFF)
			return "PostgreSQL did not begin the transaction";
	}
	return "the connection is busy: read the results of its query or pipeline first";
}

enum hapax_status hx_postgres_connect_error(const PGconn *conn, struct hapax_error *err)
{
	const char *message = conn == NULL ? "not enough memory" : PQerrorMessage(conn);
	struct hapax_error line = first_line(message);

	if (conn == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to connect");
	return hx_error_set(
		err, HAPAX_ERR_UNAVAILABLE, 0, "%s; %s",
		line.message[0] == '\0' ? "PostgreSQL closed the connection" : line.message,
		hint_for(message));
}

enum hapax_status hx_postgres_result_error(
	const PGresult *result, const char *what, struct hapax_error *err)
{
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	enum hx_postgres_fault fault = hx_postgres_fault(result);
	const char *hint = "";

	if (fault == HX_POSTGRES_FAULT_DENIED)
		hint = "; as the owner of the store, run SELECT hapax_grant('ROLE'), and add ?tenant=NAME";
	else if (fault == HX_POSTGRES_FAULT_GONE)
		hint = "; run 'hapax store migrate URL'";
	return hx_error_set(
		err, hx_postgres_fault_status(fault), 0, "%s: %.200s%s", what,
		message == NULL ? "the connection was lost" : message, hint);
}
