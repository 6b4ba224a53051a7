/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox_postgres_connection.c - a connection to PostgreSQL with a limit on every wait.
 *
 * libpq owns the socket; the reactor reports that it is ready, or a timeout.
 */
#include "outbox/postgres/outbox_postgres.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/postgres/postgres_fault.h"
#include "store/postgres/postgres_operation.h"

/* A statement touches at most a batch of rows; a server that takes longer is down. */
#define CALL_NS (15 * HX_NS_PER_S)

/* Except for scans of large tables. */
#define PATIENT_CALL_NS (24 * 3600 * HX_NS_PER_S)

/* How often an audit looks whether it must stop. */
#define STOP_NS (HX_NS_PER_S / 5)

static const char session_sql[] =
	"SELECT set_config('lock_timeout', '5s', false), set_config('statement_timeout', '12s', false),"
	" set_config('default_transaction_isolation', 'read committed', false),"
	" CASE WHEN current_setting('synchronous_commit') = 'off' THEN"
	" set_config('synchronous_commit', 'on', false) END,"
	" to_regclass('@@hapax_outbox_meta') IS NOT NULL, pg_is_in_recovery()";

static void on_ready(struct hx_watch *watch, unsigned ready)
{
	(void)watch;
	(void)ready;
}

void hx_outbox_postgres_assert(const struct hx_outbox_postgres *outbox)
{
	/* The caller's connection is always there; our own may be lost. */
	assert(outbox->conn != NULL || !outbox->is_joined);
	assert(outbox->base.has_reactor == !outbox->is_joined);
	/* What belongs to a connection goes with it. */
	assert(outbox->conn != NULL || !outbox->is_watched);
	assert(outbox->conn != NULL || !outbox->is_listening);
	assert(!outbox->is_joined || !outbox->is_watched);
	assert(!outbox->is_joined || !outbox->is_listening);
}

static void forget_watch(struct hx_outbox_postgres *outbox)
{
	assert(!outbox->is_joined);
	if (outbox->is_watched)
		hx_reactor_unwatch(&outbox->base.reactor, &outbox->watch);
	outbox->is_watched = false;
}

void hx_outbox_postgres_disconnect(struct hx_outbox_postgres *outbox)
{
	if (outbox->is_joined)
		return;
	forget_watch(outbox);
	PQfinish(outbox->conn);
	outbox->conn = NULL;
	outbox->is_listening = false;
	hx_outbox_postgres_assert(outbox);
}

/* Wait until the socket may be ready. False: timeout. */
static bool turn(struct hx_outbox_postgres *outbox, unsigned ready, int64_t deadline_ns)
{
	struct hx_reactor *reactor = &outbox->base.reactor;
	int64_t left_ns = deadline_ns - hx_clock_mono_ns();
	int fd = PQsocket(outbox->conn);

	assert(!outbox->is_joined);
	assert(outbox->base.has_reactor);
	assert(ready != 0);
	if (left_ns <= 0 || fd < 0)
		return false;
	/* libpq may change its socket while it connects. */
	if (outbox->is_watched && outbox->watch.fd != fd)
		forget_watch(outbox);
	if (!outbox->is_watched) {
		outbox->watch = (struct hx_watch){.fd = fd, .fn = on_ready};
		if (hx_reactor_watch(reactor, &outbox->watch, ready, NULL) != HAPAX_OK)
			return false;
		outbox->is_watched = true;
	} else {
		hx_reactor_rewatch(reactor, &outbox->watch, ready);
	}
	assert(outbox->watch.fd == fd);
	hx_reactor_turn(reactor, outbox->stop == NULL || left_ns < STOP_NS ? left_ns : STOP_NS);
	return true;
}

static void ignore_notice(void *context, const PGresult *result)
{
	(void)context;
	(void)result;
}

static enum hapax_status connect_socket(struct hx_outbox_postgres *outbox, struct hapax_error *err)
{
	const char *const names[] = {
		"dbname", "fallback_application_name", "client_encoding", NULL};
	const char *const values[] = {outbox->place.url, "hapax outbox", "UTF8", NULL};
	int64_t deadline_ns = hx_clock_mono_ns() + CALL_NS;
	PostgresPollingStatusType polling = PGRES_POLLING_WRITING;

	assert(outbox->conn == NULL);
	assert(!outbox->is_watched);
	assert(!outbox->is_listening);
	outbox->conn = PQconnectStartParams(names, values, 1);
	if (outbox->conn == NULL || PQstatus(outbox->conn) == CONNECTION_BAD)
		return hx_postgres_connect_error(outbox->conn, err);
	(void)PQsetNoticeReceiver(outbox->conn, ignore_notice, NULL);
	while (polling != PGRES_POLLING_OK) {
		unsigned ready = polling == PGRES_POLLING_READING ? HX_READY_IN : HX_READY_OUT;

		if (polling == PGRES_POLLING_FAILED)
			return hx_postgres_connect_error(outbox->conn, err);
		if (!turn(outbox, ready, deadline_ns))
			return hx_error_set(
				err, HAPAX_ERR_UNAVAILABLE, 0, "PostgreSQL did not answer in time");
		polling = PQconnectPoll(outbox->conn);
	}
	(void)PQsetnonblocking(outbox->conn, 1);
	return HAPAX_OK;
}

static bool is_stopped(const struct hx_outbox_postgres *outbox)
{
	return outbox->stop != NULL && hx_event_is_set(outbox->stop);
}

/* The server would run the statement to its end, although no caller waits for it. */
static void cancel(struct hx_outbox_postgres *outbox)
{
	PGcancel *handle = PQgetCancel(outbox->conn);
	char why[256];

	if (handle != NULL)
		(void)PQcancel(handle, why, sizeof(why));
	PQfreeCancel(handle);
}

/* Wait for the last result of the sent statement; NULL: lost. */
static PGresult *collect(struct hx_outbox_postgres *outbox, int64_t deadline_ns)
{
	PGresult *last = NULL;

	assert(!outbox->is_joined);
	assert(deadline_ns > 0);
	for (;;) {
		int left = PQflush(outbox->conn);

		if (left < 0)
			break;
		if (left == 0 && !PQisBusy(outbox->conn)) {
			PGresult *result = PQgetResult(outbox->conn);

			if (result == NULL)
				return last;
			PQclear(last);
			last = result;
			continue;
		}
		if (is_stopped(outbox)) {
			cancel(outbox);
			break;
		}
		if (!turn(outbox, left > 0 ? HX_READY_IN | HX_READY_OUT : HX_READY_IN, deadline_ns))
			break;
		if (PQconsumeInput(outbox->conn) != 1)
			break;
	}
	/* The server's last message before it hung up is the best explanation. */
	if (last == NULL)
		last = PQmakeEmptyPGresult(outbox->conn, PGRES_FATAL_ERROR);
	return last;
}

static PGresult *execute(
	struct hx_outbox_postgres *outbox, const struct hx_outbox_argument *arguments, int count)
{
	const char *sql = (const char *)outbox->sql.data;
	const char *values[HX_OUTBOX_POSTGRES_ARGUMENTS_MAX] = {NULL};
	int sizes[HX_OUTBOX_POSTGRES_ARGUMENTS_MAX] = {0};
	int formats[HX_OUTBOX_POSTGRES_ARGUMENTS_MAX] = {0};

	assert(count >= 0);
	assert(count <= HX_OUTBOX_POSTGRES_ARGUMENTS_MAX);
	/* libpq takes a text that ends with a NUL. */
	assert(outbox->sql.size > 0);
	assert(sql[outbox->sql.size - 1] == '\0');
	for (int i = 0; i < count; i++) {
		values[i] = arguments[i].data;
		sizes[i] = arguments[i].size;
		formats[i] = arguments[i].is_binary;
	}
	if (outbox->is_joined)
		return PQexecParams(outbox->conn, sql, count, NULL, values, sizes, formats, 1);
	if (PQsendQueryParams(outbox->conn, sql, count, NULL, values, sizes, formats, 1) != 1)
		return PQmakeEmptyPGresult(outbox->conn, PGRES_FATAL_ERROR);
	return collect(
		outbox,
		hx_clock_mono_ns() + outbox->limit_ns +
			(outbox->is_patient ? PATIENT_CALL_NS : CALL_NS));
}

PGresult *hx_outbox_postgres_ask(struct hx_outbox_postgres *outbox)
{
	assert(!outbox->is_joined);
	assert(outbox->conn != NULL);
	return execute(outbox, NULL, 0);
}

/* The server's text about the outbox's own errors is meant for users. */
static enum hapax_status result_error(
	const PGresult *result, const char *what, struct hapax_error *err)
{
	const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);
	enum hx_postgres_fault fault = hx_postgres_fault(result);

	/* PostgreSQL's hint is a sentence; here it ends one. */
	if (code != NULL && strcmp(code, "HX004") == 0 && hint != NULL && hint[0] != '\0')
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "%s; %c%.*s", text,
			tolower((unsigned char)hint[0]), (int)strcspn(hint + 1, "."), hint + 1);
	if (code != NULL && strcmp(code, "HX004") == 0)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "%s", text);
	if (code != NULL && strcmp(code, "23505") == 0)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"%s: the outbox already has an event with this id", what);
	if (fault == HX_POSTGRES_FAULT_DENIED)
		return hx_error_set(
			err, hx_postgres_fault_status(fault), 0,
			"%s: %.200s; as the owner of the outbox, run SELECT "
			"hapax_outbox_grant('ROLE'), or hapax_outbox_grant('ROLE', true) for a "
			"relay",
			what, text);
	if (fault == HX_POSTGRES_FAULT_GONE)
		return hx_error_set(
			err, hx_postgres_fault_status(fault), 0,
			"%s: %.200s; check that this is the primary, and run 'hapax outbox init "
			"--db URL' if there is no outbox",
			what, text);
	return hx_postgres_result_error(result, what, err);
}

static enum hapax_status outbox_postgres_connection_run(
	struct hx_outbox_postgres *outbox, const char *text,
	const struct hx_outbox_argument *arguments, int count, const char *what,
	PGresult **ret_result, struct hapax_error *err)
{
	enum hx_postgres_fault fault;
	enum hapax_status status;
	ExecStatusType kind;
	PGresult *result;

	hx_buf_clear(&outbox->sql);
	status = hx_postgres_sql_append(&outbox->sql, outbox->place.schema, text);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "not enough memory to ask PostgreSQL");
	result = execute(outbox, arguments, count);
	kind = PQresultStatus(result);
	if (kind == PGRES_TUPLES_OK || kind == PGRES_COMMAND_OK) {
		if (ret_result != NULL)
			*ret_result = result;
		else
			PQclear(result);
		return HAPAX_OK;
	}
	status = result_error(result, what, err);
	fault = hx_postgres_fault(result);
	/* Another server may be the primary now. */
	if (fault == HX_POSTGRES_FAULT_LOST || fault == HX_POSTGRES_FAULT_GONE)
		hx_outbox_postgres_disconnect(outbox);
	PQclear(result);
	return status;
}

static enum hapax_status greet(struct hx_outbox_postgres *outbox, struct hapax_error *err)
{
	PGresult *result = NULL;
	int64_t version = 0;
	bool has_outbox, is_standby;
	enum hapax_status status = outbox_postgres_connection_run(
		outbox, session_sql, NULL, 0, "could not open the outbox", &result, err);

	if (status != HAPAX_OK)
		return status;
	/* A server that answers without a row, or with NULL, has no outbox. */
	has_outbox = hx_postgres_number(result, 0, 4) != 0;
	is_standby = hx_postgres_number(result, 0, 5) != 0;
	PQclear(result);
	if (is_standby)
		return hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0,
			"the server is a standby; use the address of the primary");
	if (has_outbox)
		status = outbox_postgres_connection_run(
			outbox, "SELECT version FROM @@hapax_outbox_meta", NULL, 0,
			"could not open the outbox", &result, err);
	if (status != HAPAX_OK)
		return status;
	if (has_outbox) {
		version = hx_postgres_number(result, 0, 0);
		PQclear(result);
	}
	if (version == HX_OUTBOX_POSTGRES_VERSION)
		return HAPAX_OK;
	if (version > HX_OUTBOX_POSTGRES_VERSION)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"the outbox has version %d, and this hapax supports up to %d; use a "
			"newer hapax",
			(int)version, HX_OUTBOX_POSTGRES_VERSION);
	if (version > 0)
		return hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0, HX_OUTBOX_TOO_OLD, (int)version,
			HX_OUTBOX_POSTGRES_VERSION);
	return hx_error_set(
		err, HAPAX_ERR_UNAVAILABLE, 0,
		"schema '%s' has no outbox; run 'hapax outbox init --db URL'",
		outbox->place.schema);
}

enum hapax_status hx_outbox_postgres_connect(
	struct hx_outbox_postgres *outbox, struct hapax_error *err)
{
	enum hapax_status status;

	hx_outbox_postgres_assert(outbox);
	if (outbox->conn != NULL)
		return HAPAX_OK;
	status = connect_socket(outbox, err);
	if (status == HAPAX_OK)
		status = greet(outbox, err);
	if (status != HAPAX_OK)
		hx_outbox_postgres_disconnect(outbox);
	assert((status == HAPAX_OK) == (outbox->conn != NULL));
	return status;
}

enum hapax_status hx_outbox_postgres_run(
	struct hx_outbox_postgres *outbox, const char *sql,
	const struct hx_outbox_argument *arguments, int count, const char *what,
	PGresult **ret_result, struct hapax_error *err)
{
	enum hapax_status status =
		outbox->is_joined ? HAPAX_OK : hx_outbox_postgres_connect(outbox, err);

	if (status != HAPAX_OK)
		return status;
	return outbox_postgres_connection_run(outbox, sql, arguments, count, what, ret_result, err);
}

enum hapax_status hx_outbox_postgres_be_patient(
	struct hx_outbox_postgres *outbox, bool is_patient, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	assert(outbox->is_patient != is_patient);
	/* The statement that sets the server's limit has the short deadline itself. */
	outbox->is_patient = false;
	/* A new connection has the default limits. */
	if (!outbox->is_joined && (is_patient || outbox->conn != NULL))
		status = hx_outbox_postgres_run(
			outbox,
			is_patient ? "SET statement_timeout = 0" : "SET statement_timeout = '12s'",
			NULL, 0, "nothing changed", NULL, err);
	outbox->is_patient = is_patient && status == HAPAX_OK;
	return status;
}

enum hapax_status hx_outbox_postgres_call(
	struct hx_outbox_postgres *outbox, const char *sql, const char *types,
	const void *const *values, const char *what, int64_t *ret_number, struct hapax_error *err)
{
	struct hx_outbox_argument arguments[HX_OUTBOX_POSTGRES_ARGUMENTS_MAX] = {{NULL, 0, false}};
	char numbers[HX_OUTBOX_POSTGRES_ARGUMENTS_MAX][24];
	PGresult *result = NULL;
	enum hapax_status status;
	int count = 0;

	hx_outbox_postgres_assert(outbox);
	assert(strlen(types) <= HX_OUTBOX_POSTGRES_ARGUMENTS_MAX);
	for (; types[count] != '\0'; count++) {
		arguments[count].data = values[count];
		if (types[count] != 'n')
			continue;
		(void)snprintf(
			numbers[count], sizeof(numbers[count]), "%" PRId64,
			*(const int64_t *)values[count]);
		arguments[count].data = numbers[count];
	}
	status = hx_outbox_postgres_run(outbox, sql, arguments, count, what, &result, err);
	if (status == HAPAX_OK && ret_number != NULL)
		*ret_number = hx_postgres_number(result, 0, 0);
	PQclear(result);
	return status;
}

/* Consume notifications of new rows, including those read with an earlier answer. */
static bool hear(struct hx_outbox_postgres *outbox)
{
	bool is_told = false;
	PGnotify *notice;

	while ((notice = PQnotifies(outbox->conn)) != NULL) {
		PQfreemem(notice);
		is_told = true;
	}
	return is_told;
}

/* Wait for a notification; the caller then looks for new rows. */
void hx_outbox_postgres_wait(struct hapax_outbox *base, int64_t wait_ns)
{
	struct hx_outbox_postgres *outbox = (struct hx_outbox_postgres *)base;

	hx_outbox_postgres_assert(outbox);
	assert(!outbox->is_joined);
	if (outbox->conn == NULL) {
		hx_reactor_turn(&base->reactor, wait_ns);
		return;
	}
	if (!outbox->is_listening) {
		outbox->is_listening =
			outbox_postgres_connection_run(
				outbox, "LISTEN hapax_outbox", NULL, 0,
				"could not listen for new rows", NULL, NULL) == HAPAX_OK;
		/* After LISTEN, look at once for earlier rows; if it failed, poll. */
		if (!outbox->is_listening)
			hx_reactor_turn(&base->reactor, wait_ns);
		return;
	}
	if (hear(outbox))
		return;
	if (turn(outbox, HX_READY_IN, hx_clock_mono_ns() + wait_ns))
		(void)PQconsumeInput(outbox->conn);
	(void)hear(outbox);
	if (PQstatus(outbox->conn) == CONNECTION_BAD)
		hx_outbox_postgres_disconnect(outbox);
}
