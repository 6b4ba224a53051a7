/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_client.c - a pool of connections to a PostgreSQL server.
 */
#include "store/postgres/postgres_client.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "store/core.h"
#include "store/postgres/postgres_fault.h"

/* ---------------------------------------------------------------- the pool */

static struct hx_postgres_pipeline *find_free(struct hx_postgres_client *client)
{
	for (unsigned i = 0; i < client->pipeline_count; i++) {
		if (hx_postgres_pipeline_is_free(&client->pipelines[i]))
			return &client->pipelines[i];
	}
	return NULL;
}

/* Open one more connection, unless one is being opened. */
static void open_one(struct hx_postgres_client *client)
{
	struct hx_postgres_pipeline *closed = NULL;

	assert(client->pipelines != NULL);
	if (hx_timer_is_set(&client->retry))
		return;
	for (unsigned i = 0; i < client->pipeline_count; i++) {
		enum hx_postgres_connection_state state = client->pipelines[i].connection.state;

		if (state == HX_POSTGRES_CONNECTING || state == HX_POSTGRES_GREETING)
			return;
		if (state == HX_POSTGRES_CLOSED && closed == NULL)
			closed = &client->pipelines[i];
	}
	if (closed != NULL)
		hx_postgres_connection_open(&closed->connection);
}

static void update_deadline(struct hx_postgres_client *client)
{
	/* Later requests have later deadlines. */
	if (client->pending == NULL)
		hx_timer_clear(&client->reactor.timers, &client->deadline);
	else
		hx_timer_set(
			&client->reactor.timers, &client->deadline, client->pending->deadline_ns);
}

/* Give waiting requests to free connections. Nested calls return; the loop serves them. */
static void pump(struct hx_postgres_client *client)
{
	struct hx_postgres_pipeline *pipeline;

	if (client->is_pumping || client->is_stopped)
		return;
	client->is_pumping = true;
	while (client->pending != NULL && (pipeline = find_free(client)) != NULL)
		hx_postgres_pipeline_take(pipeline, &client->pending);
	client->is_pumping = false;
	if (client->pending != NULL || !client->is_opened)
		open_one(client);
	update_deadline(client);
}

static void on_deadline(struct hx_timer *timer)
{
	struct hx_postgres_client *client = timer->context;
	int64_t now_ns = hx_reactor_now_ns(&client->reactor);

	while (client->pending != NULL && client->pending->deadline_ns <= now_ns) {
		struct hx_postgres_request *late = client->pending;

		client->pending = late->next;
		hx_postgres_request_fail(client, late, HAPAX_ERR_UNAVAILABLE);
	}
	update_deadline(client);
}

static void on_retry(struct hx_timer *timer)
{
	pump(timer->context);
}

static void on_ready(struct hx_postgres_connection *connection)
{
	struct hx_postgres_client *client = connection->context;

	client->failures = 0;
	/* A different server may have answered this time. */
	hx_mutex_lock(&client->guarantee_mutex);
	memcpy(client->guarantee, client->session.guarantee, sizeof(client->guarantee));
	hx_mutex_unlock(&client->guarantee_mutex);
	if (!client->is_opened) {
		client->is_opened = true;
		client->session.must_be_durable |= client->session.is_durable;
		hx_event_set(&client->opened);
	}
	pump(client);
}

/* The pipeline of a connection, which is its first member. */
static struct hx_postgres_pipeline *pipeline_of(struct hx_postgres_connection *connection)
{
	return (struct hx_postgres_pipeline *)connection;
}

static void on_answer(struct hx_postgres_connection *connection, PGresult *result)
{
	struct hx_postgres_client *client = connection->context;

	hx_postgres_pipeline_answer(pipeline_of(connection), result);
	pump(client);
}

static void wait_before_retry(struct hx_postgres_client *client)
{
	hx_timer_set(
		&client->reactor.timers, &client->retry,
		hx_reactor_now_ns(&client->reactor) + hx_postgres_retry_ns(client->failures++));
}

static void on_close(struct hx_postgres_connection *connection, const struct hapax_error *err)
{
	struct hx_postgres_client *client = connection->context;

	if (!client->is_opened) {
		client->is_opened = true;
		client->open_err = *err;
		client->is_stopped = true;
		hx_event_set(&client->opened);
		return;
	}
	wait_before_retry(client);
	hx_postgres_pipeline_lose(pipeline_of(connection));
	pump(client);
}

static const struct hx_postgres_connection_ops connection_ops = {
	.on_ready = on_ready,
	.on_answer = on_answer,
	.on_close = on_close,
};

/* ---------------------------------------------------------------- the thread */

static void on_arrived(struct hx_task *task)
{
	struct hx_postgres_client *client = task->context;
	struct hx_postgres_request **end = &client->pending;

	while (*end != NULL)
		end = &(*end)->next;
	for (struct hx_postgres_request *request = hx_request_queue_take(&client->queue);
	     request != NULL; request = hx_request_queue_next(request)) {
		*end = request;
		end = &request->next;
	}
	pump(client);
}

static void on_stop(struct hx_task *task)
{
	struct hx_postgres_client *client = task->context;

	assert(client->pending == NULL);
	client->is_stopped = true;
	for (unsigned i = 0; i < client->pipelines_made; i++)
		hx_postgres_connection_close(&client->pipelines[i].connection);
	hx_postgres_listener_stop(&client->listener);
	hx_timer_clear(&client->reactor.timers, &client->retry);
	hx_reactor_stop(&client->reactor);
}

static void io_run(void *arg)
{
	struct hx_postgres_client *client = arg;

	hx_reactor_run(&client->reactor);
}

/* ---------------------------------------------------------------- life */

void hx_postgres_client_close(struct hx_postgres_client *client)
{
	if (client->has_thread) {
		hx_reactor_post(&client->reactor, &client->stop);
		hx_thread_join(&client->thread);
		client->has_thread = false;
	}
	if (client->has_reactor) {
		for (unsigned i = 0; i < client->pipelines_made; i++)
			hx_postgres_pipeline_done(&client->pipelines[i]);
		hx_postgres_listener_done(&client->listener);
		hx_timer_retire(&client->reactor.timers, &client->retry);
		hx_timer_retire(&client->reactor.timers, &client->deadline);
		hx_reactor_done(&client->reactor);
		client->has_reactor = false;
	}
	if (client->has_queue)
		hx_request_queue_done(&client->queue);
	client->has_queue = false;
	hx_free(client->pipelines);
	client->pipelines = NULL;
	hx_mutex_done(&client->guarantee_mutex);
	hx_postgres_session_done(&client->session);
}

static enum hapax_status make_pipelines(struct hx_postgres_client *client)
{
	enum hapax_status status = HAPAX_OK;

	client->pipelines = hx_alloc_zero(client->place->pool, sizeof(*client->pipelines));
	if (client->pipelines == NULL)
		return HAPAX_ERR_NO_MEMORY;
	for (unsigned i = 0; i < client->place->pool && status == HAPAX_OK; i++) {
		struct hx_postgres_connection *connection = &client->pipelines[i].connection;

		status = hx_postgres_pipeline_init(&client->pipelines[i], client);
		if (status != HAPAX_OK)
			break;
		client->pipelines_made++;
		connection->ops = &connection_ops;
		connection->context = client;
		connection->session = &client->session;
		connection->place = client->place;
		connection->timeout_ms = client->options->timeout_ms;
	}
	client->pipeline_count = client->pipelines_made;
	return status;
}

static enum hapax_status make_parts(struct hx_postgres_client *client, struct hapax_error *err)
{
	enum hapax_status status =
		hx_request_queue_init(&client->queue, sizeof(struct hx_postgres_request));

	client->has_queue = status == HAPAX_OK;
	if (status == HAPAX_OK) {
		status = hx_reactor_init(&client->reactor, hx_net_system(), err);
		if (status != HAPAX_OK)
			return status;
		client->has_reactor = true;
		status = make_pipelines(client);
	}
	if (status == HAPAX_OK)
		status = hx_postgres_listener_init(&client->listener, client);
	if (status == HAPAX_OK)
		status = hx_timer_introduce(
			&client->reactor.timers, &client->retry, on_retry, client);
	if (status == HAPAX_OK)
		status = hx_timer_introduce(
			&client->reactor.timers, &client->deadline, on_deadline, client);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "not enough memory to open a store");
	return HAPAX_OK;
}

enum hapax_status hx_postgres_client_open(
	struct hx_postgres_client *client, struct hapax_store *store,
	const struct hx_postgres_place *place, const struct hapax_store_options *options,
	struct hapax_error *err)
{
	enum hapax_status status;

	memset(client, 0, sizeof(*client));
	client->store = store;
	client->place = place;
	client->options = options;
	hx_mutex_init(&client->guarantee_mutex);
	client->arrived = (struct hx_task){.fn = on_arrived, .context = client};
	client->stop = (struct hx_task){.fn = on_stop, .context = client};
	hx_postgres_session_init(&client->session, place, options->timeout_ms, options->clock);
	status = make_parts(client, err);
	if (status == HAPAX_OK)
		status = hx_thread_start(&client->thread, io_run, client, "hapax-postgres", err);
	client->has_thread = status == HAPAX_OK;
	if (status == HAPAX_OK) {
		hx_reactor_post(&client->reactor, &client->arrived);
		hx_event_wait(&client->opened);
		status = client->open_err.status;
		if (status != HAPAX_OK && err != NULL)
			*err = client->open_err;
	}
	if (status != HAPAX_OK)
		hx_postgres_client_close(client);
	return status;
}

static enum hapax_status enqueue(
	struct hx_postgres_client *client, struct hx_postgres_request *request)
{
	enum hapax_status status;

	request->deadline_ns = hx_clock_mono_ns() + client->options->timeout_ms * HX_NS_PER_MS;
	status = hx_request_queue_push(&client->queue, request);
	if (status == HAPAX_OK)
		hx_reactor_post(&client->reactor, &client->arrived);
	return status;
}

/*
 * Other tenants' records are invisible and cannot be written: a lookup finds none, the rest is
 * refused.
 */
static void refuse_foreign(
	const struct hx_postgres_client *client, struct hapax_op *ops, size_t count)
{
	struct hapax_bytes own = hapax_bytes_from_text(client->place->tenant);

	for (size_t i = 0; own.size != 0 && i < count; i++) {
		if (ops[i].status == HAPAX_OK && ops[i].type != HAPAX_OP_LOOKUP &&
		    !hx_bytes_equal(ops[i].tenant, own))
			hx_store_refuse(&ops[i], HAPAX_ERR_INVALID);
	}
}

void hx_postgres_client_submit(
	struct hx_postgres_client *client, struct hapax_op *ops, size_t count,
	struct hapax_completion completion)
{
	struct hx_postgres_request request = {.ops = ops, .count = count, .completion = completion};
	enum hapax_status status;

	refuse_foreign(client, ops, count);
	for (size_t i = 0; i < count; i++) {
		ops[i].private_state = 0;
		request.has_group |= (ops[i].flags & HAPAX_OP_LINKED) != 0;
	}
	status = enqueue(client, &request);
	if (status != HAPAX_OK)
		hx_store_fail_submit(client->store, ops, count, completion, status);
}

enum hapax_status hx_postgres_client_call(
	struct hx_postgres_client *client, struct hx_postgres_call *call, struct hapax_error *err)
{
	struct hx_postgres_request request = {.call = call, .count = 1};
	enum hapax_status status;

	hx_event_init(&call->done);
	call->result = NULL;
	call->status = HAPAX_OK;
	status = enqueue(client, &request);
	if (status == HAPAX_OK) {
		hx_event_wait(&call->done);
		status = call->status;
	}
	if (status != HAPAX_OK)
		return hx_error_set(
			err, status, 0,
			status == HAPAX_ERR_NO_MEMORY
				? "not enough memory to ask PostgreSQL"
				: "could not reach PostgreSQL, or it did not answer");
	if (PQresultStatus(call->result) == PGRES_TUPLES_OK)
		return HAPAX_OK;
	status = hx_postgres_result_error(call->result, "PostgreSQL rejected the request", err);
	PQclear(call->result);
	call->result = NULL;
	return status;
}

void hx_postgres_client_guarantee(struct hx_postgres_client *client, char *ret_text, size_t size)
{
	hx_mutex_lock(&client->guarantee_mutex);
	(void)snprintf(ret_text, size, "%s", client->guarantee);
	hx_mutex_unlock(&client->guarantee_mutex);
}
