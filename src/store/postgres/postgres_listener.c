/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_listener.c - a connection on which the server reports the ends of claims.
 */
#include "store/postgres/postgres_listener.h"

#include <stdlib.h>

#include "base/error.h"
#include "store/postgres/postgres_client.h"
#include "store/postgres/postgres_fault.h"

static struct hx_postgres_listener *listener_of(struct hx_postgres_connection *connection)
{
	return connection->context;
}

static void on_ready(struct hx_postgres_connection *connection)
{
	struct hx_postgres_listener *listener = listener_of(connection);
	struct hapax_buf *sql = &listener->client->session.sql;
	struct hapax_error err;

	hx_buf_clear(sql);
	if (hx_postgres_sql_append(sql, connection->place->schema, "SELECT @@hapax_listen()") ==
		    HAPAX_OK &&
	    PQsendQueryParams(
		    connection->conn, (const char *)sql->data, 0, NULL, NULL, NULL, NULL, 0) == 1) {
		(void)hx_postgres_connection_go(connection);
		return;
	}
	(void)hx_error_set(
		&err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to listen to PostgreSQL");
	hx_postgres_connection_fail(connection, &err);
}

static void on_answer(struct hx_postgres_connection *connection, PGresult *result)
{
	struct hx_postgres_listener *listener = listener_of(connection);
	struct hapax_error err;

	if (PQresultStatus(result) == PGRES_TUPLES_OK) {
		listener->is_listening = true;
		listener->failures = 0;
		if (!listener->is_muted)
			hx_postgres_awaited_end_all(&listener->awaited);
	} else {
		(void)hx_postgres_result_error(
			result, "could not listen for changes of the store", &err);
		hx_postgres_connection_fail(connection, &err);
	}
	PQclear(result);
}

static void on_notice(struct hx_postgres_connection *connection, const char *text)
{
	struct hx_postgres_listener *listener = listener_of(connection);

	if (!listener->is_muted)
		hx_postgres_awaited_end(&listener->awaited, strtoull(text, NULL, 10));
}

static void on_close(struct hx_postgres_connection *connection, const struct hapax_error *err)
{
	struct hx_postgres_listener *listener = listener_of(connection);
	struct hx_reactor *reactor = connection->reactor;

	(void)err;
	listener->is_listening = false;
	hx_timer_set(
		&reactor->timers, &listener->retry,
		hx_reactor_now_ns(reactor) + hx_postgres_retry_ns(listener->failures++));
}

static const struct hx_postgres_connection_ops connection_ops = {
	.on_ready = on_ready,
	.on_answer = on_answer,
	.on_close = on_close,
	.on_notice = on_notice,
};

static void on_retry(struct hx_timer *timer)
{
	struct hx_postgres_listener *listener = timer->context;

	hx_postgres_connection_open(&listener->connection);
}

static void on_want(struct hx_task *task)
{
	struct hx_postgres_listener *listener = task->context;

	listener->is_wanted = true;
}

static void on_mute(struct hx_task *task)
{
	struct hx_postgres_listener *listener = task->context;

	listener->is_muted = true;
	hx_event_set(&listener->muted);
}

void hx_postgres_listener_want(struct hx_postgres_listener *listener)
{
	hx_reactor_post(listener->connection.reactor, &listener->want);
}

void hx_postgres_listener_mute(struct hx_postgres_listener *listener)
{
	hx_event_init(&listener->muted);
	hx_reactor_post(listener->connection.reactor, &listener->mute);
	hx_event_wait(&listener->muted);
}

void hx_postgres_listener_stop(struct hx_postgres_listener *listener)
{
	hx_timer_clear(&listener->connection.reactor->timers, &listener->retry);
	hx_postgres_connection_close(&listener->connection);
	listener->is_listening = false;
}

void hx_postgres_listener_note(
	struct hx_postgres_listener *listener, const struct hapax_op *op, uint64_t holder)
{
	if (!listener->is_wanted || listener->is_muted || op->outcome != HAPAX_OUTCOME_IN_PROGRESS)
		return;
	hx_postgres_awaited_add(&listener->awaited, op, holder);
	/* Once it listens, the key is asked for again, and marked. */
	if (listener->connection.state == HX_POSTGRES_CLOSED && !hx_timer_is_set(&listener->retry))
		hx_postgres_connection_open(&listener->connection);
}

enum hapax_status hx_postgres_listener_init(
	struct hx_postgres_listener *listener, struct hx_postgres_client *client)
{
	struct hx_postgres_connection *connection = &listener->connection;
	enum hapax_status status = hx_postgres_connection_init(connection, &client->reactor);

	if (status != HAPAX_OK)
		return status;
	status = hx_timer_introduce(&client->reactor.timers, &listener->retry, on_retry, listener);
	if (status != HAPAX_OK) {
		hx_postgres_connection_done(connection);
		return status;
	}
	listener->client = client;
	listener->want = (struct hx_task){.fn = on_want, .context = listener};
	listener->mute = (struct hx_task){.fn = on_mute, .context = listener};
	connection->ops = &connection_ops;
	connection->context = listener;
	connection->session = &client->session;
	connection->place = client->place;
	connection->timeout_ms = client->options->timeout_ms;
	hx_postgres_awaited_init(&listener->awaited, client->store);
	return HAPAX_OK;
}

void hx_postgres_listener_done(struct hx_postgres_listener *listener)
{
	if (listener->client == NULL)
		return;
	hx_postgres_connection_done(&listener->connection);
	hx_timer_retire(&listener->client->reactor.timers, &listener->retry);
	hx_postgres_awaited_done(&listener->awaited);
	listener->client = NULL;
}
