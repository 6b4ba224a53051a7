/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_pipeline.c - requests on one connection.
 *
 *	take ──▶ next ──▶ send ──▶ answer ──┬──▶ next … finish
 *	                   ▲                ├──▶ send again: more room, a deadlock
 *	                   └── one by one ◀─┘    a transaction of several that failed
 */
#include "store/postgres/postgres_pipeline.h"

#include <assert.h>
#include <string.h>

#include "base/time.h"
#include "store/core.h"
#include "store/postgres/postgres_client.h"
#include "store/postgres/postgres_fault.h"
#include "store/room.h"

enum {
	/* How often a transaction is resent. Each operation asks for room once. */
	REPEATS_MAX = 8,
};

enum hapax_status hx_postgres_pipeline_init(
	struct hx_postgres_pipeline *pipeline, struct hx_postgres_client *client)
{
	memset(pipeline, 0, sizeof(*pipeline));
	pipeline->client = client;
	hx_postgres_arguments_init(&pipeline->arguments);
	return hx_postgres_connection_init(&pipeline->connection, &client->reactor);
}

void hx_postgres_pipeline_done(struct hx_postgres_pipeline *pipeline)
{
	hx_postgres_connection_done(&pipeline->connection);
	hx_postgres_arguments_done(&pipeline->arguments);
}

bool hx_postgres_pipeline_is_free(const struct hx_postgres_pipeline *pipeline)
{
	return pipeline->connection.state == HX_POSTGRES_IDLE && pipeline->requests == NULL;
}

/* ---------------------------------------------------------------- requests */

static bool is_undecided(const struct hapax_op *op)
{
	return op->status == HAPAX_OK && op->outcome == HAPAX_OUTCOME_NONE;
}

static void complete(struct hx_postgres_client *client, struct hx_postgres_request *request)
{
	struct hx_postgres_request done = *request;

	hx_request_queue_give_back(&client->queue, request);
	if (done.call != NULL)
		hx_event_set(&done.call->done);
	else
		hapax_store_complete(client->store, done.ops, done.count, done.completion);
}

void hx_postgres_request_fail(
	struct hx_postgres_client *client, struct hx_postgres_request *request,
	enum hapax_status status)
{
	if (request->call != NULL)
		request->call->status = status;
	else
		for (size_t i = 0; i < request->count; i++)
			hx_store_fail_undecided(&request->ops[i], status);
	complete(client, request);
}

/* Every request of the pipeline is decided. The pipeline is free before their completions run. */
static void finish(struct hx_postgres_pipeline *pipeline)
{
	struct hx_postgres_request *requests = pipeline->requests;
	struct hx_postgres_client *client = pipeline->client;

	pipeline->requests = NULL;
	pipeline->count = 0;
	while (requests != NULL) {
		struct hx_postgres_request *request = requests;

		requests = request->next;
		complete(client, request);
	}
}

/* ---------------------------------------------------------------- sending */

static struct hx_postgres_rules rules_of(const struct hx_postgres_pipeline *pipeline)
{
	const struct hx_postgres_client *client = pipeline->client;

	return (struct hx_postgres_rules){
		.now_ms = hx_postgres_session_now_ms(&client->session),
		.parked_max = client->options->parked_max,
		.result_size_max = client->options->result_size_max,
		.is_listening = client->listener.is_listening,
	};
}

static void fail_transaction(struct hx_postgres_pipeline *pipeline, enum hapax_status status)
{
	for (size_t i = 0; i < pipeline->count; i++)
		hx_store_fail_undecided(pipeline->ops[i], status);
	pipeline->is_split = false;
}

/* Refuse operations whose record has no room, and leave them out. */
static void reserve_rooms(struct hx_postgres_pipeline *pipeline)
{
	enum hapax_status refused = HAPAX_OK;
	size_t kept = 0;

	for (size_t i = 0; i < pipeline->count; i++) {
		enum hapax_status status = hx_room_reserve(pipeline->ops[i]);

		if (status == HAPAX_OK)
			pipeline->ops[kept++] = pipeline->ops[i];
		else
			refused = status;
	}
	pipeline->count = kept;
	if (refused != HAPAX_OK && pipeline->kind == HX_POSTGRES_ALL_OR_NOTHING) {
		fail_transaction(pipeline, refused);
		pipeline->count = 0;
	}
}

/* The operations in progress. */
static struct hapax_op **current(struct hx_postgres_pipeline *pipeline, size_t *ret_count)
{
	*ret_count = pipeline->is_split ? 1 : pipeline->count;
	return pipeline->ops + (pipeline->is_split ? pipeline->next : 0);
}

/* False: it was not sent, and the operations have their status. */
static bool send_transaction(struct hx_postgres_pipeline *pipeline)
{
	struct hx_postgres_rules rules = rules_of(pipeline);
	struct hx_postgres_arguments *arguments = &pipeline->arguments;
	size_t count;
	struct hapax_op **ops = current(pipeline, &count);
	enum hapax_status status =
		hx_postgres_arguments_encode(arguments, ops, count, pipeline->kind, &rules);

	if (status == HAPAX_OK &&
	    PQsendQueryPrepared(
		    pipeline->connection.conn, HX_POSTGRES_OPERATE, HX_POSTGRES_ARGUMENTS,
		    arguments->values, arguments->lengths, arguments->formats, 1) != 1)
		status = HAPAX_ERR_NO_MEMORY;
	if (status == HAPAX_OK) {
		/* If it fails, lose() has already run. */
		(void)hx_postgres_connection_go(&pipeline->connection);
		return true;
	}
	for (size_t i = 0; i < count; i++)
		hx_store_fail_undecided(ops[i], status);
	return false;
}

static void send_call(struct hx_postgres_pipeline *pipeline)
{
	static const int formats[HX_POSTGRES_CALL_ARGUMENTS_MAX] = {1, 1, 1, 1, 1, 1, 1, 1};
	struct hx_postgres_call *call = pipeline->requests->call;

	if (PQsendQueryParams(
		    pipeline->connection.conn, call->sql, call->argument_count, call->types,
		    call->values, call->lengths, formats, 1) == 1) {
		(void)hx_postgres_connection_go(&pipeline->connection);
		return;
	}
	call->status = HAPAX_ERR_NO_MEMORY;
	finish(pipeline);
}

/* ---------------------------------------------------------------- transactions */

static void add_op(struct hx_postgres_pipeline *pipeline, struct hapax_op *op)
{
	if (is_undecided(op))
		pipeline->ops[pipeline->count++] = op;
}

/* Add the next operations of a request with groups: one group, or those between two. */
static void add_segment(struct hx_postgres_pipeline *pipeline, struct hx_postgres_request *request)
{
	size_t end = hx_postgres_segment_end(
		request->ops, request->count, request->sent, HX_POSTGRES_BATCH_OPS,
		&pipeline->kind);

	for (size_t i = request->sent; i < end; i++)
		add_op(pipeline, &request->ops[i]);
	request->sent_end = end;
}

/* Add as many operations of every request as fit. */
static void add_plain(struct hx_postgres_pipeline *pipeline)
{
	pipeline->kind = HX_POSTGRES_APART;
	for (struct hx_postgres_request *request = pipeline->requests; request != NULL;
	     request = request->next) {
		request->sent_end = request->sent;
		while (request->sent_end < request->count &&
		       pipeline->count < HX_POSTGRES_BATCH_OPS)
			add_op(pipeline, &request->ops[request->sent_end++]);
	}
}

static bool has_more(const struct hx_postgres_pipeline *pipeline)
{
	for (const struct hx_postgres_request *request = pipeline->requests; request != NULL;
	     request = request->next) {
		if (request->sent < request->count)
			return true;
	}
	return false;
}

/* Begin the next transaction; free the pipeline if there is none. */
static void next(struct hx_postgres_pipeline *pipeline)
{
	while (has_more(pipeline)) {
		pipeline->count = 0;
		pipeline->is_split = false;
		pipeline->repeats = 0;
		assert(pipeline->requests != NULL);
		if (pipeline->requests->has_group)
			add_segment(pipeline, pipeline->requests);
		else
			add_plain(pipeline);
		reserve_rooms(pipeline);
		hx_postgres_ops_sort(pipeline->ops, pipeline->count);
		if (pipeline->count > 0 && send_transaction(pipeline))
			return;
		for (struct hx_postgres_request *request = pipeline->requests; request != NULL;
		     request = request->next)
			request->sent = request->sent_end;
	}
	finish(pipeline);
}

void hx_postgres_pipeline_take(
	struct hx_postgres_pipeline *pipeline, struct hx_postgres_request **requests)
{
	struct hx_postgres_request *last = *requests;
	size_t count = last->count;

	assert(hx_postgres_pipeline_is_free(pipeline));
	pipeline->requests = last;
	while (last->call == NULL && !last->has_group && last->next != NULL &&
	       last->next->call == NULL && !last->next->has_group &&
	       count + last->next->count <= HX_POSTGRES_BATCH_OPS) {
		last = last->next;
		count += last->count;
	}
	*requests = last->next;
	last->next = NULL;
	if (pipeline->requests->call != NULL)
		send_call(pipeline);
	else
		next(pipeline);
}

/* ---------------------------------------------------------------- answers */

/* Each may wait for a lock; together they wait no longer than one call may take. */
static void end_split_if_late(struct hx_postgres_pipeline *pipeline)
{
	if (hx_reactor_now_ns(&pipeline->client->reactor) < pipeline->split_ends_ns)
		return;
	for (size_t i = pipeline->next + 1; i < pipeline->count; i++)
		hx_store_fail_undecided(pipeline->ops[i], HAPAX_ERR_UNAVAILABLE);
	pipeline->is_split = false;
}

static void advance(struct hx_postgres_pipeline *pipeline)
{
	pipeline->repeats = 0;
	if (pipeline->is_split)
		end_split_if_late(pipeline);
	while (pipeline->is_split && ++pipeline->next < pipeline->count) {
		if (send_transaction(pipeline))
			return;
	}
	for (struct hx_postgres_request *request = pipeline->requests; request != NULL;
	     request = request->next)
		request->sent = request->sent_end;
	next(pipeline);
}

static void send_again(struct hx_postgres_pipeline *pipeline)
{
	if (!send_transaction(pipeline))
		advance(pipeline);
}

static void answer_fault(
	struct hx_postgres_pipeline *pipeline, enum hx_postgres_fault fault, const char *detail)
{
	size_t count;
	struct hapax_op **ops = current(pipeline, &count);

	if (fault == HX_POSTGRES_FAULT_ROOM && hx_postgres_op_make_room(ops, count, detail)) {
		send_again(pipeline);
		return;
	}
	if (fault == HX_POSTGRES_FAULT_AGAIN && pipeline->repeats++ < REPEATS_MAX) {
		send_again(pipeline);
		return;
	}
	if (count > 1 && pipeline->kind == HX_POSTGRES_APART) {
		pipeline->is_split = true;
		pipeline->next = 0;
		pipeline->split_ends_ns = hx_reactor_now_ns(&pipeline->client->reactor) +
			pipeline->client->options->timeout_ms * HX_NS_PER_MS;
		pipeline->repeats = 0;
		if (!send_transaction(pipeline))
			advance(pipeline);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		if (fault != HX_POSTGRES_FAULT_LOCKED || pipeline->kind != HX_POSTGRES_APART ||
		    !hx_postgres_op_answer_locked(ops[i]))
			hx_store_fail_undecided(ops[i], hx_postgres_fault_status(fault));
	}
	advance(pipeline);
}

/* Close a session that has become unusable. */
static void leave(struct hx_postgres_pipeline *pipeline, const PGresult *result)
{
	struct hapax_error err;

	for (struct hx_postgres_request *request = pipeline->requests; request != NULL;
	     request = request->next) {
		for (size_t i = 0; i < request->count; i++)
			hx_store_fail_undecided(&request->ops[i], HAPAX_ERR_UNAVAILABLE);
	}
	(void)hx_postgres_result_error(result, "could not reach the store", &err);
	hx_postgres_connection_fail(&pipeline->connection, &err);
}

static void take_answers(struct hx_postgres_pipeline *pipeline, const PGresult *result)
{
	size_t count;
	struct hapax_op **ops = current(pipeline, &count);

	/* A committed but unreadable answer has an unknown outcome. */
	if (!hx_postgres_answers_decode(result, ops, count)) {
		for (size_t i = 0; i < count; i++)
			hx_store_fail_undecided(
				ops[i],
				hx_postgres_ops_only_read(&ops[i], 1) ? HAPAX_ERR_UNAVAILABLE
								      : HAPAX_ERR_UNCERTAIN);
		return;
	}
	for (int row = 0; row < (int)count; row++) {
		size_t place;
		uint64_t holder = hx_postgres_answer_holder(result, row, &place);

		if (holder != 0)
			hx_postgres_listener_note(
				&pipeline->client->listener, ops[place - 1], holder);
	}
}

void hx_postgres_pipeline_answer(struct hx_postgres_pipeline *pipeline, PGresult *result)
{
	enum hx_postgres_fault fault;

	if (pipeline->requests->call != NULL) {
		pipeline->requests->call->result = result;
		finish(pipeline);
		return;
	}
	if (PQresultStatus(result) == PGRES_TUPLES_OK) {
		take_answers(pipeline, result);
		PQclear(result);
		advance(pipeline);
		return;
	}
	fault = hx_postgres_fault(result);
	if (fault == HX_POSTGRES_FAULT_GONE)
		leave(pipeline, result);
	else
		answer_fault(pipeline, fault, PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL));
	PQclear(result);
}

void hx_postgres_pipeline_lose(struct hx_postgres_pipeline *pipeline)
{
	enum hapax_status status = HAPAX_ERR_UNCERTAIN;
	size_t count;
	struct hapax_op **ops = current(pipeline, &count);

	if (pipeline->requests == NULL)
		return;
	if (!hx_postgres_connection_is_sent(&pipeline->connection) ||
	    (pipeline->requests->call == NULL && hx_postgres_ops_only_read(ops, count)))
		status = HAPAX_ERR_UNAVAILABLE;
	if (pipeline->requests->call != NULL) {
		pipeline->requests->call->status = status;
	} else {
		for (size_t i = 0; i < count; i++)
			hx_store_fail_undecided(ops[i], status);
		/* Later operations must not overtake an uncertain one. */
		for (struct hx_postgres_request *request = pipeline->requests; request != NULL;
		     request = request->next)
			for (size_t i = 0; i < request->count; i++)
				hx_store_fail_undecided(&request->ops[i], HAPAX_ERR_UNAVAILABLE);
	}
	finish(pipeline);
}
