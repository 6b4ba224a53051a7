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

enum {
	/* How often a transaction is sent again. Room is asked for once by each operation. */
	REPEATS_MAX = 8,
};

enum hapax_status hx_postgres_lane_init(
	struct hx_postgres_lane *lane, struct hx_postgres_client *client)
{
	memset(lane, 0, sizeof(*lane));
	lane->client = client;
	hx_postgres_arguments_init(&lane->arguments);
	return hx_postgres_connection_init(&lane->connection, &client->reactor);
}

void hx_postgres_lane_done(struct hx_postgres_lane *lane)
{
	hx_postgres_connection_done(&lane->connection);
	hx_postgres_arguments_done(&lane->arguments);
}

bool hx_postgres_lane_is_free(const struct hx_postgres_lane *lane)
{
	return lane->connection.state == HX_POSTGRES_IDLE && lane->requests == NULL;
}

/* ---------------------------------------------------------------- requests */

static bool is_undecided(const struct hapax_op *op)
{
	return op->status == HAPAX_OK && op->outcome == HAPAX_OUTCOME_NONE;
}

static void fail_undecided(struct hapax_op *op, enum hapax_status status)
{
	if (is_undecided(op))
		hx_store_refuse(op, status);
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
			fail_undecided(&request->ops[i], status);
	complete(client, request);
}

/* All requests of the lane are decided. It is free before their completions run. */
static void finish(struct hx_postgres_lane *lane)
{
	struct hx_postgres_request *requests = lane->requests;
	struct hx_postgres_client *client = lane->client;

	lane->requests = NULL;
	lane->count = 0;
	while (requests != NULL) {
		struct hx_postgres_request *request = requests;

		requests = request->next;
		complete(client, request);
	}
}

/* ---------------------------------------------------------------- sending */

static struct hx_postgres_rules rules_of(const struct hx_postgres_lane *lane)
{
	const struct hx_postgres_client *client = lane->client;

	return (struct hx_postgres_rules){
		.now_ms = hx_postgres_session_now_ms(&client->session),
		.parked_max = client->options->parked_max,
		.result_size_max = client->options->result_size_max,
		.is_listening = client->listener.is_listening,
	};
}

static void fail_transaction(struct hx_postgres_lane *lane, enum hapax_status status)
{
	for (size_t i = 0; i < lane->count; i++)
		fail_undecided(lane->ops[i], status);
	lane->is_split = false;
}

/* Operations that find no room for their record are refused, and left out. */
static void reserve_rooms(struct hx_postgres_lane *lane)
{
	enum hapax_status refused = HAPAX_OK;
	size_t kept = 0;

	for (size_t i = 0; i < lane->count; i++) {
		enum hapax_status status = hx_postgres_op_reserve(lane->ops[i]);

		if (status == HAPAX_OK)
			lane->ops[kept++] = lane->ops[i];
		else
			refused = status;
	}
	lane->count = kept;
	if (refused != HAPAX_OK && lane->kind == HX_POSTGRES_ALL_OR_NOTHING) {
		fail_transaction(lane, refused);
		lane->count = 0;
	}
}

/* The operations that are under way. */
static struct hapax_op **current(struct hx_postgres_lane *lane, size_t *ret_count)
{
	*ret_count = lane->is_split ? 1 : lane->count;
	return lane->ops + (lane->is_split ? lane->next : 0);
}

/* False: it did not go, and the operations have their status. */
static bool send_transaction(struct hx_postgres_lane *lane)
{
	struct hx_postgres_rules rules = rules_of(lane);
	struct hx_postgres_arguments *arguments = &lane->arguments;
	size_t count;
	struct hapax_op **ops = current(lane, &count);
	enum hapax_status status =
		hx_postgres_arguments_encode(arguments, ops, count, lane->kind, &rules);

	if (status == HAPAX_OK &&
	    PQsendQueryPrepared(
		    lane->connection.conn, HX_POSTGRES_OPERATE, HX_POSTGRES_ARGUMENTS,
		    arguments->values, arguments->lengths, arguments->formats, 1) != 1)
		status = HAPAX_ERR_NO_MEMORY;
	if (status == HAPAX_OK) {
		/* When it fails, lose() has been here. */
		(void)hx_postgres_connection_go(&lane->connection);
		return true;
	}
	for (size_t i = 0; i < count; i++)
		fail_undecided(ops[i], status);
	return false;
}

static void send_call(struct hx_postgres_lane *lane)
{
	static const int formats[HX_POSTGRES_CALL_ARGUMENTS_MAX] = {1, 1, 1, 1, 1, 1, 1, 1};
	struct hx_postgres_call *call = lane->requests->call;

	if (PQsendQueryParams(
		    lane->connection.conn, call->sql, call->argument_count, call->types,
		    call->values, call->lengths, formats, 1) == 1) {
		(void)hx_postgres_connection_go(&lane->connection);
		return;
	}
	call->status = HAPAX_ERR_NO_MEMORY;
	finish(lane);
}

/* ---------------------------------------------------------------- transactions */

static bool is_linked(const struct hapax_op *op)
{
	return (op->flags & HAPAX_OP_LINKED) != 0;
}

static void add_op(struct hx_postgres_lane *lane, struct hapax_op *op)
{
	if (is_undecided(op))
		lane->ops[lane->count++] = op;
}

/* The next operations of a request with groups: one group, or what stands between two. */
static void add_segment(struct hx_postgres_lane *lane, struct hx_postgres_request *request)
{
	size_t end = request->sent;

	lane->kind = is_linked(&request->ops[end]) ? HX_POSTGRES_TOGETHER : HX_POSTGRES_APART;
	if (request->ops[end].flags & HAPAX_OP_ALL_OR_NOTHING)
		lane->kind = HX_POSTGRES_ALL_OR_NOTHING;
	if (lane->kind != HX_POSTGRES_APART)
		end = hx_store_group_end(request->ops, request->count, end);
	else
		while (end < request->count && end - request->sent < HX_POSTGRES_BATCH_OPS &&
		       !is_linked(&request->ops[end]))
			end++;
	for (size_t i = request->sent; i < end; i++)
		add_op(lane, &request->ops[i]);
	request->sent_end = end;
}

/* As much of every request as fits. */
static void add_plain(struct hx_postgres_lane *lane)
{
	lane->kind = HX_POSTGRES_APART;
	for (struct hx_postgres_request *request = lane->requests; request != NULL;
	     request = request->next) {
		request->sent_end = request->sent;
		while (request->sent_end < request->count && lane->count < HX_POSTGRES_BATCH_OPS)
			add_op(lane, &request->ops[request->sent_end++]);
	}
}

static bool has_more(const struct hx_postgres_lane *lane)
{
	for (const struct hx_postgres_request *request = lane->requests; request != NULL;
	     request = request->next) {
		if (request->sent < request->count)
			return true;
	}
	return false;
}

/* Begin the next transaction; free the lane when there is none. */
static void next(struct hx_postgres_lane *lane)
{
	while (has_more(lane)) {
		lane->count = 0;
		lane->is_split = false;
		lane->repeats = 0;
		assert(lane->requests != NULL);
		if (lane->requests->has_group)
			add_segment(lane, lane->requests);
		else
			add_plain(lane);
		reserve_rooms(lane);
		hx_postgres_ops_sort(lane->ops, lane->count);
		if (lane->count > 0 && send_transaction(lane))
			return;
		for (struct hx_postgres_request *request = lane->requests; request != NULL;
		     request = request->next)
			request->sent = request->sent_end;
	}
	finish(lane);
}

void hx_postgres_lane_take(struct hx_postgres_lane *lane, struct hx_postgres_request **requests)
{
	struct hx_postgres_request *last = *requests;
	size_t count = last->count;

	assert(hx_postgres_lane_is_free(lane));
	lane->requests = last;
	while (last->call == NULL && !last->has_group && last->next != NULL &&
	       last->next->call == NULL && !last->next->has_group &&
	       count + last->next->count <= HX_POSTGRES_BATCH_OPS) {
		last = last->next;
		count += last->count;
	}
	*requests = last->next;
	last->next = NULL;
	if (lane->requests->call != NULL)
		send_call(lane);
	else
		next(lane);
}

/* ---------------------------------------------------------------- answers */

/* Each of them may wait for a lock; together they wait no longer than one call may take. */
static void end_split_if_late(struct hx_postgres_lane *lane)
{
	if (hx_reactor_now_ns(&lane->client->reactor) < lane->split_ends_ns)
		return;
	for (size_t i = lane->next + 1; i < lane->count; i++)
		fail_undecided(lane->ops[i], HAPAX_ERR_UNAVAILABLE);
	lane->is_split = false;
}

static void advance(struct hx_postgres_lane *lane)
{
	lane->repeats = 0;
	if (lane->is_split)
		end_split_if_late(lane);
	while (lane->is_split && ++lane->next < lane->count) {
		if (send_transaction(lane))
			return;
	}
	for (struct hx_postgres_request *request = lane->requests; request != NULL;
	     request = request->next)
		request->sent = request->sent_end;
	next(lane);
}

static void send_again(struct hx_postgres_lane *lane)
{
	if (!send_transaction(lane))
		advance(lane);
}

/*
 * Somebody's transaction holds the key, and has done so for longer than ours was to wait:
 * it is in progress, whoever that is.
 */
static void answer_locked(struct hapax_op *op)
{
	if (op->type != HAPAX_OP_CLAIM && op->type != HAPAX_OP_CHECK) {
		fail_undecided(op, HAPAX_ERR_UNAVAILABLE);
		return;
	}
	hx_store_refuse(op, HAPAX_OK);
	op->outcome = HAPAX_OUTCOME_IN_PROGRESS;
}

static void answer_fault(
	struct hx_postgres_lane *lane, enum hx_postgres_fault fault, const char *detail)
{
	size_t count;
	struct hapax_op **ops = current(lane, &count);

	if (fault == HX_POSTGRES_FAULT_ROOM && hx_postgres_op_make_room(ops, count, detail)) {
		send_again(lane);
		return;
	}
	if (fault == HX_POSTGRES_FAULT_AGAIN && lane->repeats++ < REPEATS_MAX) {
		send_again(lane);
		return;
	}
	if (count > 1 && lane->kind == HX_POSTGRES_APART) {
		lane->is_split = true;
		lane->next = 0;
		lane->split_ends_ns = hx_reactor_now_ns(&lane->client->reactor) +
			lane->client->options->timeout_ms * HX_NS_PER_MS;
		lane->repeats = 0;
		if (!send_transaction(lane))
			advance(lane);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		if (fault == HX_POSTGRES_FAULT_LOCKED && lane->kind == HX_POSTGRES_APART)
			answer_locked(ops[i]);
		else
			fail_undecided(ops[i], hx_postgres_fault_status(fault));
	}
	advance(lane);
}

/* A session that has become useless is not used again. */
static void leave(struct hx_postgres_lane *lane, const PGresult *result)
{
	struct hapax_error err;

	for (struct hx_postgres_request *request = lane->requests; request != NULL;
	     request = request->next) {
		for (size_t i = 0; i < request->count; i++)
			fail_undecided(&request->ops[i], HAPAX_ERR_UNAVAILABLE);
	}
	(void)hx_postgres_result_error(result, "the ledger was not reached", &err);
	hx_postgres_connection_fail(&lane->connection, &err);
}

static void take_answers(struct hx_postgres_lane *lane, const PGresult *result)
{
	size_t count;
	struct hapax_op **ops = current(lane, &count);

	/* What is committed and cannot be read is not known. */
	if (!hx_postgres_answers_decode(result, ops, count)) {
		for (size_t i = 0; i < count; i++)
			fail_undecided(
				ops[i],
				hx_postgres_ops_only_read(&ops[i], 1) ? HAPAX_ERR_UNAVAILABLE
								      : HAPAX_ERR_UNCERTAIN);
		return;
	}
	for (int row = 0; row < (int)count; row++) {
		size_t place;
		uint64_t holder = hx_postgres_answer_holder(result, row, &place);

		if (holder != 0)
			hx_postgres_listener_note(&lane->client->listener, ops[place - 1], holder);
	}
}

void hx_postgres_lane_answer(struct hx_postgres_lane *lane, PGresult *result)
{
	enum hx_postgres_fault fault;

	if (lane->requests->call != NULL) {
		lane->requests->call->result = result;
		finish(lane);
		return;
	}
	if (PQresultStatus(result) == PGRES_TUPLES_OK) {
		take_answers(lane, result);
		PQclear(result);
		advance(lane);
		return;
	}
	fault = hx_postgres_fault(result);
	if (fault == HX_POSTGRES_FAULT_GONE)
		leave(lane, result);
	else
		answer_fault(lane, fault, PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL));
	PQclear(result);
}

void hx_postgres_lane_lose(struct hx_postgres_lane *lane)
{
	enum hapax_status status = HAPAX_ERR_UNCERTAIN;
	size_t count;
	struct hapax_op **ops = current(lane, &count);

	if (lane->requests == NULL)
		return;
	if (!hx_postgres_connection_is_sent(&lane->connection) ||
	    (lane->requests->call == NULL && hx_postgres_ops_only_read(ops, count)))
		status = HAPAX_ERR_UNAVAILABLE;
	if (lane->requests->call != NULL) {
		lane->requests->call->status = status;
	} else {
		for (size_t i = 0; i < count; i++)
			fail_undecided(ops[i], status);
		/* What comes behind must not overtake what is uncertain. */
		for (struct hx_postgres_request *request = lane->requests; request != NULL;
		     request = request->next)
			for (size_t i = 0; i < request->count; i++)
				fail_undecided(&request->ops[i], HAPAX_ERR_UNAVAILABLE);
	}
	finish(lane);
}
