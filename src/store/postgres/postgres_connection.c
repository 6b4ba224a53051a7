/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_connection.c - one connection to a PostgreSQL server.
 */
#include "store/postgres/postgres_connection.h"

#include <assert.h>
#include <string.h>

#include "base/backoff.h"
#include "base/error.h"
#include "base/random.h"
#include "base/time.h"
#include "store/postgres/postgres_fault.h"

enum {
	/*
	 * The server cancels a statement at timeout_ms and reports it; that answer may take a
	 * while.
	 */
	GRACE_MS = 2000,

	/* Delay between attempts to connect: doubles from first to last, with jitter. */
	RETRY_MS_FIRST = 10,
	RETRY_MS_LAST = 1000,
};

int64_t hx_postgres_retry_ns(unsigned failures)
{
	return hx_backoff(RETRY_MS_FIRST, RETRY_MS_LAST, failures, hx_random_u64()) * HX_NS_PER_MS;
}

static void set_deadline(struct hx_postgres_connection *connection)
{
	hx_timer_set(
		&connection->reactor->timers, &connection->deadline,
		hx_reactor_now_ns(connection->reactor) +
			(connection->timeout_ms + GRACE_MS) * HX_NS_PER_MS);
}

static void forget_watch(struct hx_postgres_connection *connection)
{
	if (connection->is_watched)
		hx_reactor_unwatch(connection->reactor, &connection->watch);
	connection->is_watched = false;
}

void hx_postgres_connection_close(struct hx_postgres_connection *connection)
{
	forget_watch(connection);
	hx_timer_clear(&connection->reactor->timers, &connection->deadline);
	PQclear(connection->result);
	connection->result = NULL;
	PQfinish(connection->conn);
	connection->conn = NULL;
	connection->state = HX_POSTGRES_CLOSED;
}

void hx_postgres_connection_fail(
	struct hx_postgres_connection *connection, const struct hapax_error *err)
{
	struct hapax_error why = *err;

	hx_postgres_connection_close(connection);
	connection->ops->on_close(connection, &why);
}

static void fail_to_connect(struct hx_postgres_connection *connection)
{
	struct hapax_error err;

	(void)hx_postgres_connect_error(connection->conn, &err);
	hx_postgres_connection_fail(connection, &err);
}

/* libpq may change its socket while it connects. False: the connection is closed. */
static bool watch_for(struct hx_postgres_connection *connection, unsigned ready)
{
	int fd = PQsocket(connection->conn);
	struct hapax_error err;

	if (connection->is_watched && connection->watch.fd == fd) {
		hx_reactor_rewatch(connection->reactor, &connection->watch, ready);
		return true;
	}
	forget_watch(connection);
	connection->watch.fd = fd;
	if (hx_reactor_watch(connection->reactor, &connection->watch, ready, &err) != HAPAX_OK) {
		hx_postgres_connection_fail(connection, &err);
		return false;
	}
	connection->is_watched = true;
	return true;
}

/* Send the rest. False: the connection is closed. */
static bool flush(struct hx_postgres_connection *connection)
{
	int left = PQflush(connection->conn);

	if (left < 0) {
		fail_to_connect(connection);
		return false;
	}
	connection->is_flushing = left > 0;
	return watch_for(connection, left > 0 ? HX_READY_IN | HX_READY_OUT : HX_READY_IN);
}

bool hx_postgres_connection_go(struct hx_postgres_connection *connection)
{
	assert(connection->state == HX_POSTGRES_IDLE || connection->state == HX_POSTGRES_GREETING);
	connection->is_flushing = true;
	if (connection->state == HX_POSTGRES_IDLE)
		connection->state = HX_POSTGRES_BUSY;
	if (PQpipelineSync(connection->conn) != 1) {
		fail_to_connect(connection);
		return false;
	}
	set_deadline(connection);
	return flush(connection);
}

static void greet(struct hx_postgres_connection *connection)
{
	struct hapax_error err;

	if (hx_postgres_session_say(
		    connection->session, connection->conn, connection->step, &err) != HAPAX_OK)
		hx_postgres_connection_fail(connection, &err);
	else
		(void)hx_postgres_connection_go(connection);
}

static void begin_session(struct hx_postgres_connection *connection)
{
	struct hapax_error err;

	if (PQsetnonblocking(connection->conn, 1) != 0 ||
	    PQenterPipelineMode(connection->conn) != 1) {
		(void)hx_error_set(
			&err, HAPAX_ERR_UNAVAILABLE, 0, "could not start a pipeline to PostgreSQL");
		hx_postgres_connection_fail(connection, &err);
		return;
	}
	connection->state = HX_POSTGRES_GREETING;
	connection->step = 0;
	greet(connection);
}

static void poll_connect(struct hx_postgres_connection *connection)
{
	switch (PQconnectPoll(connection->conn)) {
	case PGRES_POLLING_READING: (void)watch_for(connection, HX_READY_IN); break;
	case PGRES_POLLING_WRITING: (void)watch_for(connection, HX_READY_OUT); break;
	case PGRES_POLLING_OK: begin_session(connection); break;
	case PGRES_POLLING_FAILED:
	case PGRES_POLLING_ACTIVE: fail_to_connect(connection); break;
	}
}

/* Process the answer to a step of the greeting. */
static void take_greeting(struct hx_postgres_connection *connection)
{
	PGresult *result = connection->result;
	struct hapax_error err;
	enum hapax_status status;

	connection->result = NULL;
	status = hx_postgres_session_reply(connection->session, result, connection->step, &err);
	PQclear(result);
	if (status != HAPAX_OK) {
		hx_postgres_connection_fail(connection, &err);
		return;
	}
	if (++connection->step < HX_POSTGRES_SESSION_STEPS) {
		greet(connection);
		return;
	}
	hx_timer_clear(&connection->reactor->timers, &connection->deadline);
	connection->state = HX_POSTGRES_IDLE;
	connection->ops->on_ready(connection);
}

static void take_sync(struct hx_postgres_connection *connection)
{
	PGresult *result = connection->result;

	if (connection->state == HX_POSTGRES_GREETING) {
		take_greeting(connection);
		return;
	}
	connection->result = NULL;
	connection->state = HX_POSTGRES_IDLE;
	hx_timer_clear(&connection->reactor->timers, &connection->deadline);
	connection->ops->on_answer(connection, result);
}

/* Keep the answer to a transaction: the first error, else the rows. */
static void keep_result(struct hx_postgres_connection *connection, PGresult *result)
{
	bool is_error = PQresultStatus(result) != PGRES_TUPLES_OK &&
		PQresultStatus(result) != PGRES_COMMAND_OK;
	bool has_error = connection->result != NULL &&
		PQresultStatus(connection->result) == PGRES_FATAL_ERROR;

	if (connection->result == NULL || (is_error && !has_error)) {
		PQclear(connection->result);
		connection->result = result;
	} else {
		PQclear(result);
	}
}

static bool is_waiting(const struct hx_postgres_connection *connection)
{
	return connection->state == HX_POSTGRES_BUSY || connection->state == HX_POSTGRES_GREETING;
}

static void read_results(struct hx_postgres_connection *connection)
{
	while (is_waiting(connection) && !PQisBusy(connection->conn)) {
		PGresult *result = PQgetResult(connection->conn);

		if (result == NULL) {
			/*
			 * One command has ended; more follow until the sync, unless the
			 * connection is lost.
			 */
			if (PQstatus(connection->conn) == CONNECTION_BAD) {
				fail_to_connect(connection);
				return;
			}
			continue;
		}
		if (PQresultStatus(result) == PGRES_PIPELINE_SYNC) {
			PQclear(result);
			take_sync(connection);
			continue;
		}
		if (PQresultStatus(result) == PGRES_FATAL_ERROR &&
		    hx_postgres_fault(result) == HX_POSTGRES_FAULT_LOST) {
			struct hapax_error err;

			(void)hx_postgres_result_error(
				result, "PostgreSQL ended the session", &err);
			PQclear(result);
			hx_postgres_connection_fail(connection, &err);
			return;
		}
		keep_result(connection, result);
	}
}

static void read_notices(struct hx_postgres_connection *connection)
{
	PGnotify *notice;

	while (connection->conn != NULL && (notice = PQnotifies(connection->conn)) != NULL) {
		if (connection->ops->on_notice != NULL)
			connection->ops->on_notice(connection, notice->extra);
		PQfreemem(notice);
	}
}

static void on_ready_fd(struct hx_watch *watch, unsigned ready)
{
	struct hx_postgres_connection *connection = watch->context;

	if (connection->state == HX_POSTGRES_CONNECTING) {
		poll_connect(connection);
		return;
	}
	if ((ready & HX_READY_OUT) && connection->is_flushing && !flush(connection))
		return;
	if (PQconsumeInput(connection->conn) != 1) {
		/*
		 * libpq also sends here: the server may have received the rest before the
		 * failure.
		 */
		connection->is_flushing = false;
		/* Answers from before the failure count. */
		read_results(connection);
		if (connection->conn != NULL)
			fail_to_connect(connection);
		return;
	}
	if (connection->is_flushing && !flush(connection))
		return;
	read_results(connection);
	read_notices(connection);
	/* The server ended an idle session. */
	if (connection->state == HX_POSTGRES_IDLE && PQstatus(connection->conn) == CONNECTION_BAD)
		fail_to_connect(connection);
}

static void on_deadline(struct hx_timer *timer)
{
	struct hx_postgres_connection *connection = timer->context;
	struct hapax_error err;

	(void)hx_error_set(&err, HAPAX_ERR_UNAVAILABLE, 0, "PostgreSQL did not answer in time");
	hx_postgres_connection_fail(connection, &err);
}

/* A library does not print. */
static void ignore_notice(void *context, const PGresult *result)
{
	(void)context;
	(void)result;
}

void hx_postgres_connection_open(struct hx_postgres_connection *connection)
{
	const char *const names[] = {
		"dbname", "fallback_application_name", "client_encoding", NULL};
	const char *const values[] = {connection->place->url, "hapax", "UTF8", NULL};

	assert(connection->state == HX_POSTGRES_CLOSED);
	connection->conn = PQconnectStartParams(names, values, 1);
	connection->is_flushing = false;
	if (connection->conn == NULL || PQstatus(connection->conn) == CONNECTION_BAD) {
		fail_to_connect(connection);
		return;
	}
	(void)PQsetNoticeReceiver(connection->conn, ignore_notice, NULL);
	connection->state = HX_POSTGRES_CONNECTING;
	set_deadline(connection);
	/* The manual demands this: act as if PQconnectPoll() had asked to write. */
	(void)watch_for(connection, HX_READY_OUT);
}

enum hapax_status hx_postgres_connection_init(
	struct hx_postgres_connection *connection, struct hx_reactor *reactor)
{
	memset(connection, 0, sizeof(*connection));
	connection->reactor = reactor;
	connection->watch = (struct hx_watch){.fd = -1, .fn = on_ready_fd, .context = connection};
	return hx_timer_introduce(&reactor->timers, &connection->deadline, on_deadline, connection);
}

void hx_postgres_connection_done(struct hx_postgres_connection *connection)
{
	hx_postgres_connection_close(connection);
	hx_timer_retire(&connection->reactor->timers, &connection->deadline);
}
