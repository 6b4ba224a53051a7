/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline.c - what waits to be sent and what waits for its reply.
 *
 *  (1) units[unit_first ...] are the commands without reply, in the order in which the
 *      server answers them.
 *  (2) A request is in the pending list, or has units in the ring, or both; when it is in
 *      neither, it is complete.
 *  (3) Of one request nothing is sent behind a command that may have to be repeated, so
 *      operations on one key take effect in the order of the array.
 */
#include "store/redis/pipeline.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "store/core.h"

enum {
	/* Replies that may be on their way at once: they fit memory that is always there. */
	REPLY_WINDOW = 192 * 1024,

	/* The reply to a call: a page of records, an hour's counters. */
	CALL_REPLY_SIZE_MAX = 64 * 1024 * 1024,
	GREETING_REPLY_SIZE_MAX = 1024 * 1024,
};

#define MS_NS INT64_C(1000000)

/* ---------------------------------------------------------------- requests */

void hx_redis_pipeline_add(struct hx_redis_client *client, struct hx_redis_request *request)
{
	request->next = NULL;
	request->is_pending = true;
	if (client->pending == NULL)
		client->pending = request;
	else
		client->pending_last->next = request;
	client->pending_last = request;
}

/* In front, because it is older than what waits. */
static void return_to_pending(struct hx_redis_client *client, struct hx_redis_request *request)
{
	if (request->is_pending)
		return;
	request->is_pending = true;
	request->next = client->pending;
	if (client->pending == NULL)
		client->pending_last = request;
	client->pending = request;
}

/* Every operation that has no answer yet ends with status. */
static void fail_undecided(
	struct hx_redis_request *request, size_t first, size_t count, enum hapax_status status)
{
	if (request->call != NULL) {
		request->call->status = status;
		return;
	}
	for (size_t i = first; i < first + count; i++) {
		struct hapax_op *op = &request->ops[i];

		if (op->status == HAPAX_OK && op->outcome == HAPAX_OUTCOME_NONE)
			hx_store_refuse(op, status);
	}
}

static void complete(struct hx_redis_client *client, struct hx_redis_request *request)
{
	struct hx_redis_request done = *request;

	assert(!request->is_pending && request->in_flight == 0);
	hx_redis_request_give_back(&client->queue, request);
	if (done.call != NULL)
		hx_event_set(&done.call->done);
	else
		hapax_store_complete(client->store, done.ops, done.count, done.completion);
}

/* The request that follows before in the pending list leaves it. */
static struct hx_redis_request *remove_pending(
	struct hx_redis_client *client, struct hx_redis_request *before,
	struct hx_redis_request *request)
{
	struct hx_redis_request *next = request->next;

	if (before == NULL)
		client->pending = next;
	else
		before->next = next;
	if (client->pending_last == request)
		client->pending_last = before;
	request->is_pending = false;
	request->next = NULL;
	return next;
}

static void unlink_pending(struct hx_redis_client *client, struct hx_redis_request *request)
{
	struct hx_redis_request *before = NULL;

	for (struct hx_redis_request *item = client->pending; item != request; item = item->next)
		before = item;
	(void)remove_pending(client, before, request);
}

/* ---------------------------------------------------------------- deadlines */

static struct hx_redis_unit *unit_at(struct hx_redis_client *client, size_t index)
{
	return &client->units[(client->unit_first + index) % HX_REDIS_UNITS_MAX];
}

/*
 * When to give up on the first command without reply. A submit of many commands may take
 * longer than one of them as long as the server answers.
 */
static int64_t give_up_ns(struct hx_redis_client *client)
{
	struct hx_redis_unit *unit = unit_at(client, 0);
	int64_t silent_ns = client->answered_ns + client->options->timeout_ms * MS_NS;
	int64_t deadline_ns = unit->request->deadline_ns;

	return unit->count == unit->request->count || silent_ns < deadline_ns ? deadline_ns
									      : silent_ns;
}

static void update_deadline(struct hx_redis_client *client)
{
	int64_t at_ns = INT64_MAX;

	if (client->unit_count > 0)
		at_ns = give_up_ns(client);
	for (struct hx_redis_request *request = client->pending; request != NULL;
	     request = request->next) {
		/* One that is under way lives as long as its commands are answered. */
		if (request->in_flight > 0)
			continue;
		if (request->deadline_ns < at_ns)
			at_ns = request->deadline_ns;
		/* Those behind it came later: they have time. */
		break;
	}
	if (at_ns == INT64_MAX)
		hx_timer_clear(&client->reactor.timers, &client->deadline);
	else if (!hx_timer_is_set(&client->deadline) || client->deadline.at_ns != at_ns)
		hx_timer_set(&client->reactor.timers, &client->deadline, at_ns);
}

void hx_redis_pipeline_deadline(struct hx_timer *timer)
{
	struct hx_redis_client *client = timer->context;
	int64_t now_ns = hx_reactor_now_ns(&client->reactor);
	struct hx_redis_request *before = NULL;
	struct hapax_error err;

	for (struct hx_redis_request *request = client->pending; request != NULL;) {
		struct hx_redis_request *late = request;

		if (request->deadline_ns > now_ns || request->in_flight > 0) {
			before = request;
			request = request->next;
			continue;
		}
		request = remove_pending(client, before, late);
		fail_undecided(late, late->sent, late->count - late->sent, HAPAX_ERR_UNAVAILABLE);
		complete(client, late);
	}
	if (client->unit_count > 0 && give_up_ns(client) <= now_ns) {
		/* Whatever comes now comes too late, and nothing can be skipped in a stream. */
		(void)hx_error_set(&err, HAPAX_ERR_UNAVAILABLE, 0, "Redis did not answer in time");
		hx_connection_close(&client->connection, &err);
	}
	update_deadline(client);
}

/* ---------------------------------------------------------------- sending */

static bool has_room(const struct hx_redis_client *client, size_t reply_size)
{
	return client->unit_count < HX_REDIS_UNITS_MAX &&
		(client->unit_count == 0 || client->expected_bytes + reply_size <= REPLY_WINDOW);
}

/* The command of a group or call into client->output. */
static enum hapax_status encode(
	struct hx_redis_client *client, struct hx_redis_request *request, size_t count)
{
	struct hapax_op *ops = request->ops + request->sent;

	hx_buf_clear(&client->output);
	if (request->call != NULL)
		return hx_buf_append(
			&client->output, request->call->command.data, request->call->command.size);
	for (;;) {
		size_t left = hx_redis_group_count(ops, count);
		enum hapax_status status;

		if (left == 0)
			return HAPAX_OK;
		status = hx_redis_group_encode(
			&client->encoder, &client->output, ops, count,
			hx_redis_client_now_ms(client));
		/* Those that found no room are refused; a group that is not one goes on without. */
		if (status == HAPAX_OK || hx_redis_group_count(ops, count) == left ||
		    (ops[0].flags & HAPAX_OP_ALL_OR_NOTHING))
			return status;
	}
}

static size_t reply_size(const struct hx_redis_request *request, size_t count)
{
	if (request->call != NULL)
		return 0;
	return hx_redis_group_reply_size(request->ops + request->sent, count);
}

/* Send the next command of request. False: there is no room for it now. */
static bool send_next(struct hx_redis_client *client, struct hx_redis_request *request)
{
	size_t end = request->call != NULL
		? 1
		: hx_store_group_end(request->ops, request->count, request->sent);
	size_t count = end - request->sent;
	size_t expected = reply_size(request, count);
	enum hapax_status status;

	if (!has_room(client, expected))
		return false;
	status = encode(client, request, count);
	if (status == HAPAX_OK && client->output.size > 0)
		status = hx_redis_client_write(client);
	if (status == HAPAX_ERR_LIMIT && client->unit_count > 0)
		return false;
	if (status != HAPAX_OK) {
		fail_undecided(request, request->sent, count, status);
	} else if (client->output.size > 0) {
		*unit_at(client, client->unit_count++) = (struct hx_redis_unit){
			request, request->sent, count, client->connection.written_bytes, expected};
		client->expected_bytes += expected;
		request->in_flight++;
		request->is_barred = request->call == NULL &&
			hx_redis_group_may_ask(request->ops + request->sent, count);
	}
	request->sent = end;
	return true;
}

static void load_scripts(struct hx_redis_client *client)
{
	hx_buf_clear(&client->output);
	client->needs_scripts = false;
	client->state = HX_REDIS_CLIENT_GREETING;
	hx_connection_set_deadline(
		&client->connection,
		hx_reactor_now_ns(&client->reactor) + client->options->timeout_ms * MS_NS);
	if (hx_redis_session_reload(&client->session, &client->output) != HAPAX_OK ||
	    hx_redis_client_write(client) != HAPAX_OK)
		hx_connection_close(&client->connection, NULL);
}

/* Send what can be sent. */
void hx_redis_pipeline_pump(struct hx_redis_client *client)
{
	struct hx_redis_request *before = NULL;

	if (client->state == HX_REDIS_CLIENT_IDLE && client->pending != NULL)
		hx_redis_client_connect(client);
	if (client->state == HX_REDIS_CLIENT_READY && client->needs_scripts &&
	    client->unit_count == 0)
		load_scripts(client);
	if (client->state == HX_REDIS_CLIENT_READY && !client->needs_scripts) {
		for (struct hx_redis_request *request = client->pending; request != NULL;) {
			struct hx_redis_request *sent = request;
			bool has_room = true;

			while (has_room && sent->sent < sent->count && !sent->is_barred)
				has_room = send_next(client, sent);
			if (sent->sent < sent->count) {
				before = sent;
				request = sent->next;
			} else {
				request = remove_pending(client, before, sent);
				if (sent->in_flight == 0)
					complete(client, sent);
			}
			if (!has_room)
				break;
		}
	}
	update_deadline(client);
}

/* ---------------------------------------------------------------- replies */

/* All commands of request in flight are answered. */
static void settle(struct hx_redis_client *client, struct hx_redis_request *request)
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
		return_to_pending(client, request);
	else if (!request->is_pending)
		complete(client, request);
}

static void ask_again(struct hx_redis_request *request, size_t first)
{
	if (request->again_from == SIZE_MAX)
		request->again_from = first;
	request->is_barred = true;
}

/* False: it was no reply. */
static bool take_call_reply(
	struct hx_redis_client *client, struct hx_redis_request *request, struct hapax_bytes reply)
{
	struct hx_redis_call *call = request->call;
	struct hapax_bytes rest = reply;
	struct hx_resp_value value;

	if (!hx_resp_next(&rest, &value))
		return false;
	if (hx_resp_is_error(&value, "NOSCRIPT")) {
		client->needs_scripts = true;
		ask_again(request, 0);
		return true;
	}
	hx_buf_clear(call->reply);
	call->status = hx_buf_append(call->reply, reply.data, reply.size);
	return true;
}

static bool take_group_reply(
	struct hx_redis_client *client, const struct hx_redis_unit *unit, struct hapax_bytes reply)
{
	struct hx_redis_request *request = unit->request;
	struct hapax_op *ops = request->ops + unit->first;
	uint64_t removed = 0;
	enum hx_redis_verdict verdict = hx_redis_group_decode(reply, ops, unit->count, &removed);
	struct hapax_error err;

	atomic_fetch_add_explicit(&client->removed, removed, memory_order_relaxed);
	switch (verdict) {
	case HX_REDIS_DECIDED: request->is_overtaken |= request->again_from != SIZE_MAX; break;
	case HX_REDIS_AGAIN: ask_again(request, unit->first); break;
	case HX_REDIS_NO_SCRIPT:
		client->needs_scripts = true;
		ask_again(request, unit->first);
		break;
	case HX_REDIS_MOVED_ON:
		(void)hx_error_set(
			&err, HAPAX_ERR_UNAVAILABLE, 0,
			"the Redis server does not serve us any more");
		hx_connection_close(&client->connection, &err);
		break;
	case HX_REDIS_BROKEN: return false;
	}
	return true;
}

/* One whole reply to the first unit. False: the stream is of no use any more. */
bool hx_redis_pipeline_take(struct hx_redis_client *client, struct hapax_bytes reply)
{
	struct hx_redis_unit unit = *unit_at(client, 0);
	struct hx_redis_request *request = unit.request;
	bool is_good = request->call != NULL ? take_call_reply(client, request, reply)
					     : take_group_reply(client, &unit, reply);

	/* A reply that makes no sense leaves its command without answer. */
	if (!is_good)
		return false;
	client->unit_first = (client->unit_first + 1) % HX_REDIS_UNITS_MAX;
	client->unit_count--;
	client->expected_bytes -= unit.reply_size;
	client->answered_ns = hx_reactor_now_ns(&client->reactor);
	request->in_flight--;
	if (request->in_flight == 0)
		settle(client, request);
	return true;
}

size_t hx_redis_pipeline_reply_size_max(struct hx_redis_client *client)
{
	struct hx_redis_unit *unit;

	if (client->state != HX_REDIS_CLIENT_READY)
		return GREETING_REPLY_SIZE_MAX;
	unit = unit_at(client, 0);
	if (unit->request->call != NULL)
		return CALL_REPLY_SIZE_MAX;
	return hx_redis_group_reply_size_max(unit->request->ops + unit->first, unit->count);
}

void hx_redis_pipeline_lose(struct hx_redis_client *client)
{
	uint64_t sent_bytes = client->connection.sent_bytes;

	for (; client->unit_count > 0; client->unit_count--) {
		struct hx_redis_unit unit = *unit_at(client, 0);
		struct hx_redis_request *request = unit.request;
		bool only_reads = request->call == NULL &&
			hx_redis_group_only_reads(request->ops + unit.first, unit.count);
		bool is_uncertain = unit.end_bytes <= sent_bytes && !only_reads;

		client->unit_first = (client->unit_first + 1) % HX_REDIS_UNITS_MAX;
		request->is_uncertain |= is_uncertain;
		fail_undecided(
			request, unit.first, unit.count,
			is_uncertain ? HAPAX_ERR_UNCERTAIN : HAPAX_ERR_UNAVAILABLE);
		if (--request->in_flight > 0)
			continue;
		/* What comes behind an uncertain operation on the same key must not overtake it. */
		if (request->is_uncertain && request->sent < request->count) {
			fail_undecided(
				request, request->sent, request->count - request->sent,
				HAPAX_ERR_UNAVAILABLE);
			request->sent = request->count;
		}
		if (request->is_pending && request->sent == request->count)
			unlink_pending(client, request);
		settle(client, request);
	}
	client->expected_bytes = 0;
}
