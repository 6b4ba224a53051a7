/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline.c - the requests to send and the commands that wait for a reply.
 *
 *  (1) units[unit_first ...] are the commands without reply, in the order in which the server
 *      answers them.
 *  (2) A request is in the pending list, or has units in the ring, or both; when it is in
 *      neither, it is complete.
 *  (3) No operation of a request is sent after a command that may have to be repeated. Operations
 *      on one key therefore take effect in the order of the array.
 */
#include "store/redis/pipeline.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/time.h"
#include "store/core.h"
#include "store/redis/cluster.h"
#include "store/redis/redis_client.h"
#include "store/room.h"

enum {
	/* Expected replies in flight: they fit the preallocated memory. */
	REPLY_WINDOW = 192 * 1024,

	/* The reply to a call: a page of records, an hour's counters. */
	CALL_REPLY_SIZE_MAX = 64 * 1024 * 1024,
	ASKING_REPLY_SIZE_MAX = 64 * 1024,

	/* Operations that share a command: it is built in preallocated memory. */
	BATCH_SIZE_MAX = 64 * 1024,
};

/* ---------------------------------------------------------------- requests */

void hx_redis_pipeline_add(struct hx_redis_link *link, struct hx_redis_request *request)
{
	request->next = NULL;
	request->is_pending = true;
	if (link->pending == NULL)
		link->pending = request;
	else
		link->pending_last->next = request;
	link->pending_last = request;
}

/* At the front, because it is older than the pending ones. */
static void return_to_pending(struct hx_redis_link *link, struct hx_redis_request *request)
{
	if (request->is_pending)
		return;
	request->is_pending = true;
	request->next = link->pending;
	if (link->pending == NULL)
		link->pending_last = request;
	link->pending = request;
}

/* End every undecided operation with status. */
static void fail_undecided(
	struct hx_redis_request *request, size_t first, size_t count, enum hapax_status status)
{
	if (request->call != NULL) {
		request->call->status = status;
		return;
	}
	for (size_t i = first; i < first + count; i++)
		hx_store_fail_undecided(&request->ops[i], status);
}

void hx_redis_request_fail(struct hx_redis_request *request, enum hapax_status status)
{
	fail_undecided(request, 0, request->count, status);
}

void hx_redis_request_end(struct hx_redis_client *client, struct hx_redis_request *request)
{
	struct hx_redis_request done = *request;

	assert(!request->is_pending && request->in_flight == 0);
	if (request->parent != NULL) {
		hx_redis_cluster_child_done(client, request);
		return;
	}
	hx_request_queue_give_back(&client->queue, request);
	if (done.call == NULL)
		hapax_store_complete(client->store, done.ops, done.count, done.completion);
	else if (done.call->fn != NULL)
		done.call->fn(done.call, done.call->context);
	else
		hx_event_set(&done.call->done);
}

/* Remove the request that follows before from the pending list. */
static struct hx_redis_request *remove_pending(
	struct hx_redis_link *link, struct hx_redis_request *before,
	struct hx_redis_request *request)
{
	struct hx_redis_request *next = request->next;

	if (before == NULL)
		link->pending = next;
	else
		before->next = next;
	if (link->pending_last == request)
		link->pending_last = before;
	request->is_pending = false;
	request->next = NULL;
	return next;
}

static void unlink_pending(struct hx_redis_link *link, struct hx_redis_request *request)
{
	struct hx_redis_request *before = NULL;

	for (struct hx_redis_request *item = link->pending; item != request; item = item->next)
		before = item;
	(void)remove_pending(link, before, request);
}

void hx_redis_pipeline_withdraw(struct hx_redis_link *link, struct hx_redis_request *request)
{
	unlink_pending(link, request);
}

/* ---------------------------------------------------------------- deadlines */

static struct hx_redis_unit *unit_at(struct hx_redis_link *link, size_t index)
{
	return &link->units[(link->unit_first + index) % HX_REDIS_UNITS_MAX];
}

/*
 * When to give up on a request. A submit of many commands may outlast its deadline while the
 * server keeps answering.
 */
static int64_t give_up_ns(const struct hx_redis_link *link, const struct hx_redis_request *request)
{
	int64_t silent_ns = link->answered_ns + link->client->options->timeout_ms * HX_NS_PER_MS;
	bool is_alone = request->parent != NULL ? request->parent->count == 1 : request->count == 1;

	if (is_alone || link->unit_count == 0 || silent_ns < request->deadline_ns)
		return request->deadline_ns;
	return silent_ns;
}

/* The request that the next reply is for. The answer to ASKING belongs to the command after it. */
static const struct hx_redis_request *first_in_flight(struct hx_redis_link *link)
{
	struct hx_redis_unit *unit = unit_at(link, 0);

	return unit->request != NULL ? unit->request : unit_at(link, 1)->request;
}

static void update_deadline(struct hx_redis_link *link)
{
	int64_t at_ns = INT64_MAX;

	if (link->unit_count > 0)
		at_ns = give_up_ns(link, first_in_flight(link));
	for (struct hx_redis_request *request = link->pending; request != NULL;
	     request = request->next) {
		int64_t pending_ns = give_up_ns(link, request);

		/* A request in flight lives as long as its commands are answered. */
		if (request->in_flight > 0)
			continue;
		if (pending_ns < at_ns)
			at_ns = pending_ns;
		/* Later requests have later deadlines. */
		break;
	}
	if (at_ns == INT64_MAX)
		hx_timer_clear(&link->client->reactor.timers, &link->deadline);
	else if (!hx_timer_is_set(&link->deadline) || link->deadline.at != at_ns)
		hx_timer_set(&link->client->reactor.timers, &link->deadline, at_ns);
}

void hx_redis_pipeline_deadline(struct hx_timer *timer)
{
	struct hx_redis_link *link = timer->context;
	int64_t now_ns = hx_reactor_now_ns(&link->client->reactor);
	struct hx_redis_request *before = NULL;
	struct hapax_error err;

	for (struct hx_redis_request *request = link->pending; request != NULL;) {
		struct hx_redis_request *late = request;

		if (give_up_ns(link, request) > now_ns || request->in_flight > 0) {
			before = request;
			request = request->next;
			continue;
		}
		request = remove_pending(link, before, late);
		fail_undecided(late, late->sent, late->count - late->sent, HAPAX_ERR_UNAVAILABLE);
		hx_redis_request_end(link->client, late);
	}
	if (link->unit_count > 0 && give_up_ns(link, first_in_flight(link)) <= now_ns) {
		/* Any reply is now too late, and a stream cannot skip one. */
		(void)hx_error_set(&err, HAPAX_ERR_UNAVAILABLE, 0, "Redis did not answer in time");
		hx_connection_close(&link->connection.stream, &err);
	}
	update_deadline(link);
}

/* ---------------------------------------------------------------- sending */

static void settle(struct hx_redis_link *link, struct hx_redis_request *request);

static bool has_room(const struct hx_redis_link *link, size_t reply_size)
{
	/* It may be closed without having reported it yet. */
	if (link->connection.stream.state != HX_CONNECTION_OPEN)
		return false;
	return link->unit_count + 1 < HX_REDIS_UNITS_MAX &&
		(link->unit_count == 0 || link->expected_bytes + reply_size <= REPLY_WINDOW);
}

static const char asking[] = "*1\r\n$6\r\nASKING\r\n";

/* Encode a group or call into link->client->output. */
static enum hapax_status encode(
	struct hx_redis_link *link, struct hx_redis_request *request, size_t count)
{
	struct hapax_op *ops;

	hx_buf_clear(&link->client->output);
	if (request->asks &&
	    hx_buf_append(&link->client->output, asking, sizeof(asking) - 1) != HAPAX_OK)
		return HAPAX_ERR_NO_MEMORY;
	if (request->call != NULL)
		return hx_buf_append(
			&link->client->output, request->call->command.data,
			request->call->command.size);
	ops = request->ops + request->sent;
	for (;;) {
		size_t left = hx_redis_group_count(ops, count);
		enum hapax_status status;

		if (left == 0) {
			hx_buf_clear(&link->client->output);
			return HAPAX_OK;
		}
		status = hx_redis_group_encode(
			&link->client->encoder, &link->client->output, ops, count,
			(unsigned)request->partition, hx_redis_client_now_ms(link->client));
		/* Operations without room are refused. Unless all or nothing, the rest continue. */
		if (status == HAPAX_OK || hx_redis_group_count(ops, count) == left ||
		    (ops[0].flags & HAPAX_OP_ALL_OR_NOTHING))
			return status;
	}
}

/* Is the next operation a usual one? */
static bool is_usual(const struct hx_redis_request *request)
{
	return request->call == NULL && !request->asks &&
		request->ops[request->sent].status == HAPAX_OK &&
		hx_redis_op_is_usual(&request->ops[request->sent]);
}

static size_t reply_size(const struct hx_redis_request *request, size_t count)
{
	if (request->call != NULL)
		return 0;
	return hx_redis_group_reply_size(request->ops + request->sent, count);
}

/* Remove the last unit, which belongs to the batch, before it has a command. */
static void lose_last_unit(struct hx_redis_link *link, enum hapax_status status)
{
	struct hx_redis_unit *unit = unit_at(link, --link->unit_count);

	link->expected_bytes -= unit->reply_size;
	fail_undecided(unit->request, unit->first, unit->count, status);
	if (--unit->request->in_flight == 0)
		settle(link, unit->request);
}

static void send_batch(struct hx_redis_link *link)
{
	struct hx_redis_client *client = link->client;
	struct hx_redis_batch *batch = &link->batch;
	enum hapax_status status;

	if (batch->count == 0)
		return;
	hx_buf_clear(&client->output);
	status = hx_redis_usual_encode(
		&client->encoder, &client->output, batch->ops, batch->count, batch->partition,
		hx_redis_client_now_ms(client));
	if (status == HAPAX_OK)
		status = hx_redis_link_write(link);
	if (status == HAPAX_ERR_LIMIT)
		status = HAPAX_ERR_UNAVAILABLE;
	for (size_t i = 0; i < batch->count; i++) {
		if (status == HAPAX_OK)
			unit_at(link, link->unit_count - 1 - i)->end_bytes =
				link->connection.stream.written_bytes;
		else
			lose_last_unit(link, status);
	}
	batch->count = 0;
	batch->size = 0;
}

/* Add request's next operation, a usual one, to the batch. */
static void join_batch(
	struct hx_redis_link *link, struct hx_redis_request *request, size_t expected)
{
	struct hapax_op *op = &request->ops[request->sent];
	struct hx_redis_batch *batch = &link->batch;
	size_t size = hx_redis_op_size(op);

	if (batch->count > 0 &&
	    (batch->ops[0]->type != op->type || batch->count == HX_REDIS_BATCH_OPS_MAX ||
	     batch->size + size > BATCH_SIZE_MAX || link->client->cluster != NULL))
		send_batch(link);
	if (hx_room_reserve(op) == HAPAX_OK) {
		*unit_at(link, link->unit_count++) = (struct hx_redis_unit){
			.request = request,
			.first = request->sent,
			.count = 1,
			.reply_size = expected,
			.is_usual = true,
			.is_joined = batch->count > 0,
		};
		link->expected_bytes += expected;
		request->in_flight++;
		batch->partition = (unsigned)request->partition;
		batch->size += size;
		batch->ops[batch->count++] = op;
	}
	request->sent++;
}

/* Send the next command of request, or add it to the batch. False: no room for it now. */
static bool send_next(struct hx_redis_link *link, struct hx_redis_request *request)
{
	size_t end = request->call != NULL
		? 1
		: hx_store_group_end(request->ops, request->count, request->sent);
	size_t count = end - request->sent;
	size_t expected = reply_size(request, count);
	enum hapax_status status;

	if (!has_room(link, expected))
		return false;
	if (count == 1 && is_usual(request)) {
		join_batch(link, request, expected);
		return true;
	}
	send_batch(link);
	status = encode(link, request, count);
	if (status == HAPAX_OK && link->client->output.size > 0)
		status = hx_redis_link_write(link);
	if (status == HAPAX_ERR_LIMIT && link->unit_count > 0)
		return false;
	if (status != HAPAX_OK) {
		fail_undecided(request, request->sent, count, status);
	} else if (link->client->output.size > 0) {
		if (request->asks)
			*unit_at(link, link->unit_count++) = (struct hx_redis_unit){
				.end_bytes = link->connection.stream.written_bytes};
		*unit_at(link, link->unit_count++) = (struct hx_redis_unit){
			.request = request,
			.first = request->sent,
			.count = count,
			.end_bytes = link->connection.stream.written_bytes,
			.reply_size = expected,
		};
		link->expected_bytes += expected;
		request->in_flight++;
		request->is_barred = request->call == NULL &&
			hx_redis_group_may_ask(request->ops + request->sent, count);
	}
	request->sent = end;
	return true;
}

static void load_scripts(struct hx_redis_link *link)
{
	hx_buf_clear(&link->client->output);
	link->needs_scripts = false;
	hx_redis_connection_greet_again(
		&link->connection,
		hx_reactor_now_ns(&link->client->reactor) +
			link->client->options->timeout_ms * HX_NS_PER_MS);
	if (hx_redis_session_reload(&link->session, &link->client->output) != HAPAX_OK ||
	    hx_redis_link_write(link) != HAPAX_OK)
		hx_connection_close(&link->connection.stream, NULL);
}

void hx_redis_pipeline_pump(struct hx_redis_link *link)
{
	struct hx_redis_request *before = NULL;

	if (link->connection.state == HX_REDIS_CONNECTION_CLOSED && link->pending != NULL)
		hx_redis_link_connect(link);
	if (link->connection.state == HX_REDIS_CONNECTION_READY && link->needs_scripts &&
	    link->unit_count == 0 && link->connection.stream.state == HX_CONNECTION_OPEN)
		load_scripts(link);
	if (link->connection.state == HX_REDIS_CONNECTION_READY && !link->needs_scripts) {
		for (struct hx_redis_request *request = link->pending; request != NULL;) {
			struct hx_redis_request *sent = request;
			bool has_room = true;

			while (has_room && sent->sent < sent->count && !sent->is_barred)
				has_room = send_next(link, sent);
			if (sent->sent < sent->count) {
				before = sent;
				request = sent->next;
			} else {
				request = remove_pending(link, before, sent);
				if (sent->in_flight == 0)
					hx_redis_request_end(link->client, sent);
			}
			if (!has_room)
				break;
		}
		send_batch(link);
	}
	update_deadline(link);
}

/* ---------------------------------------------------------------- replies */

/* All commands of request in flight are answered. */
static void settle(struct hx_redis_link *link, struct hx_redis_request *request)
{
	request->is_barred = false;
	if (request->again_from != SIZE_MAX) {
		if (request->is_overtaken || request->is_uncertain)
			fail_undecided(
				request, request->again_from, request->sent - request->again_from,
				HAPAX_ERR_UNAVAILABLE);
		else
			request->sent = request->again_from;
		request->again_from = SIZE_MAX;
		request->is_overtaken = false;
	}
	if (request->sent < request->count)
		return_to_pending(link, request);
	else if (!request->is_pending)
		hx_redis_request_end(link->client, request);
}

static void ask_again(struct hx_redis_request *request, size_t first)
{
	if (request->again_from == SIZE_MAX)
		request->again_from = first;
	request->is_barred = true;
}

/* False: not a valid reply. */
static bool take_call_reply(
	struct hx_redis_link *link, struct hx_redis_request *request, struct hapax_bytes reply,
	bool *ret_elsewhere)
{
	struct hx_redis_call *call = request->call;
	struct hapax_bytes rest = reply;
	struct hx_resp_value value;

	if (!hx_resp_next(&rest, &value))
		return false;
	if (hx_resp_is_error(&value, "NOSCRIPT")) {
		link->needs_scripts = true;
		ask_again(request, 0);
		return true;
	}
	if (link->client->cluster != NULL && request->partition >= 0 &&
	    hx_redis_error_is_elsewhere(&value)) {
		*ret_elsewhere = true;
		return true;
	}
	hx_buf_clear(call->reply);
	call->status = hx_buf_append(call->reply, reply.data, reply.size);
	return true;
}

/* Apply the reply to a unit. False: not a valid reply. */
static bool apply(
	struct hx_redis_link *link, const struct hx_redis_unit *unit, enum hx_redis_verdict verdict,
	bool *ret_elsewhere)
{
	struct hx_redis_request *request = unit->request;
	struct hapax_error err;

	if (verdict == HX_REDIS_ELSEWHERE && link->client->cluster == NULL) {
		fail_undecided(request, unit->first, unit->count, HAPAX_ERR_UNAVAILABLE);
		verdict = HX_REDIS_MOVED_ON;
	}
	switch (verdict) {
	case HX_REDIS_DECIDED: request->is_overtaken |= request->again_from != SIZE_MAX; break;
	case HX_REDIS_AGAIN: ask_again(request, unit->first); break;
	case HX_REDIS_NO_SCRIPT:
		link->needs_scripts = true;
		ask_again(request, unit->first);
		break;
	case HX_REDIS_ELSEWHERE: *ret_elsewhere = true; break;
	case HX_REDIS_MOVED_ON:
		(void)hx_error_set(
			&err, HAPAX_ERR_UNAVAILABLE, 0,
			"this Redis server no longer serves the store");
		hx_connection_close(&link->connection.stream, &err);
		break;
	case HX_REDIS_BROKEN: return false;
	}
	return true;
}

static bool take_group_reply(
	struct hx_redis_link *link, const struct hx_redis_unit *unit, struct hapax_bytes reply,
	bool *ret_elsewhere)
{
	uint64_t removed = 0;
	enum hx_redis_verdict verdict = hx_redis_group_decode(
		reply, unit->request->ops + unit->first, unit->count, &removed);

	atomic_fetch_add_explicit(&link->client->removed, removed, memory_order_relaxed);
	return apply(link, unit, verdict, ret_elsewhere);
}

static void end_first(struct hx_redis_link *link, struct hapax_bytes reply, bool is_elsewhere)
{
	struct hx_redis_unit *unit = unit_at(link, 0);
	struct hx_redis_request *request = unit->request;

	link->expected_bytes -= unit->reply_size;
	link->unit_first = (link->unit_first + 1) % HX_REDIS_UNITS_MAX;
	link->unit_count--;
	if (request == NULL || --request->in_flight > 0)
		return;
	if (is_elsewhere)
		hx_redis_cluster_redirect(link, request, reply);
	else
		settle(link, request);
}

static bool is_error(struct hapax_bytes reply)
{
	struct hx_resp_value value;

	return hx_resp_next(&reply, &value) &&
		(value.type == HX_RESP_ERROR || value.type == HX_RESP_BULK_ERROR);
}

/* How many units, from the first, the next reply answers. */
static size_t joined_count(struct hx_redis_link *link)
{
	size_t count = 1;

	while (count < link->unit_count && unit_at(link, count)->is_joined)
		count++;
	return count;
}

/* The reply to a command of usual operations, each with its own answer. */
static bool take_usual_reply(struct hx_redis_link *link, struct hapax_bytes reply)
{
	struct hx_redis_answers answers;
	size_t count = joined_count(link);
	bool is_each = hx_redis_answers_begin(&answers, reply, count);
	bool is_good = is_each || is_error(reply);

	atomic_fetch_add_explicit(&link->client->removed, answers.removed, memory_order_relaxed);
	for (size_t i = 0; i < count && is_good; i++) {
		struct hx_redis_unit unit = *unit_at(link, 0);
		struct hapax_op *op = &unit.request->ops[unit.first];
		bool is_elsewhere = false;

		is_good = is_each
			? apply(link, &unit, hx_redis_answers_next(&answers, op), &is_elsewhere)
			: take_group_reply(link, &unit, reply, &is_elsewhere);
		if (is_good)
			end_first(link, reply, is_elsewhere);
	}
	return is_good;
}

/* Take one whole reply to the first unit. False: the stream is unusable. */
bool hx_redis_pipeline_take(struct hx_redis_link *link, struct hapax_bytes reply)
{
	struct hx_redis_unit unit = *unit_at(link, 0);
	bool is_elsewhere = false;
	bool is_good = true;

	link->answered_ns = hx_reactor_now_ns(&link->client->reactor);
	if (unit.is_usual)
		return take_usual_reply(link, reply);
	if (unit.request != NULL && unit.request->call != NULL)
		is_good = take_call_reply(link, unit.request, reply, &is_elsewhere);
	else if (unit.request != NULL)
		is_good = take_group_reply(link, &unit, reply, &is_elsewhere);
	/* A malformed reply leaves its command without an answer. */
	if (is_good)
		end_first(link, reply, is_elsewhere);
	return is_good;
}

size_t hx_redis_pipeline_reply_size_max(struct hx_redis_link *link)
{
	size_t count;
	size_t size = 0;

	if (link->unit_count == 0)
		return 0;
	if (unit_at(link, 0)->request == NULL)
		return ASKING_REPLY_SIZE_MAX;
	if (unit_at(link, 0)->request->call != NULL)
		return CALL_REPLY_SIZE_MAX;
	count = joined_count(link);
	for (size_t i = 0; i < count; i++) {
		const struct hx_redis_unit *unit = unit_at(link, i);

		size += hx_redis_group_reply_size_max(
			unit->request->ops + unit->first, unit->count);
	}
	return size;
}

void hx_redis_pipeline_lose(struct hx_redis_link *link)
{
	uint64_t sent_bytes = link->connection.stream.sent_bytes;

	while (link->unit_count > 0) {
		struct hx_redis_unit unit = *unit_at(link, 0);
		struct hx_redis_request *request = unit.request;
		bool is_uncertain;
		bool only_reads;

		/* A completion may submit at once and inspect the units in flight. */
		link->unit_first = (link->unit_first + 1) % HX_REDIS_UNITS_MAX;
		link->unit_count--;
		if (request == NULL)
			continue;
		only_reads = request->call == NULL &&
			hx_redis_group_only_reads(request->ops + unit.first, unit.count);
		is_uncertain = unit.end_bytes <= sent_bytes && !only_reads;
		request->is_uncertain |= is_uncertain;
		fail_undecided(
			request, unit.first, unit.count,
			is_uncertain ? HAPAX_ERR_UNCERTAIN : HAPAX_ERR_UNAVAILABLE);
		if (--request->in_flight > 0)
			continue;
		/* Later operations must not overtake an uncertain one on the same key. */
		if (request->is_uncertain && request->sent < request->count) {
			fail_undecided(
				request, request->sent, request->count - request->sent,
				HAPAX_ERR_UNAVAILABLE);
			request->sent = request->count;
		}
		if (request->is_pending && request->sent == request->count)
			unlink_pending(link, request);
		settle(link, request);
	}
	link->expected_bytes = 0;
}
