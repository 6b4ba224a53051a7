/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.c - one connection to a Redis server.
 *
 *	IDLE ──submit──▶ DIALLING ──▶ GREETING ──▶ READY
 *	  ▲                 │            │           │
 *	  └── WAITING ◀─────┴── failed ──┴── lost ───┘
 *
 *  (1) units[unit_first ...] are the commands without reply, in the order in which the
 *      server answers them.
 *  (2) A request is in the pending list, or has units in the ring, or both; when it is in
 *      neither, it is complete.
 *  (3) Of one request nothing is sent behind a command that may have to be repeated, so
 *      operations on one key take effect in the order of the array.
 */
#include "store/redis/client.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/random.h"
#include "store/core.h"

enum {
	/* Replies that may be on their way at once: they fit memory that is always there. */
	REPLY_WINDOW = 192 * 1024,
	KEPT_SIZE = 256 * 1024,

	/* A group of 1,024 with the largest results. The scan refuses far smaller nonsense. */
	INPUT_SIZE_MAX = 1 << 30,
	OUTPUT_SIZE_MAX = 1 << 30,

	/* The reply to a call: a page of records, an hour's counters. */
	CALL_REPLY_SIZE_MAX = 64 * 1024 * 1024,
	GREETING_REPLY_SIZE_MAX = 1024 * 1024,

	/* Between attempts to connect: doubles from the first to the last, with jitter. */
	RETRY_MS_FIRST = 10,
	RETRY_MS_LAST = 1000,
};

#define MS_NS INT64_C(1000000)

static void pump(struct hx_redis_client *client);
static void try_to_connect(struct hx_redis_client *client);

int64_t hx_redis_client_now_ms(const struct hx_redis_client *client)
{
	const struct hapax_clock *clock = client->session.clock;

	return clock == NULL ? -1 : client->session.epoch_ms + clock->boot_ms(clock->context);
}

/* ---------------------------------------------------------------- requests */

static void append_pending(struct hx_redis_client *client, struct hx_redis_request *request)
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

static void on_deadline(struct hx_timer *timer)
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

static enum hapax_status write_output(struct hx_redis_client *client)
{
	return hx_connection_write(&client->connection, client->output.data, client->output.size);
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
		status = write_output(client);
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
	    write_output(client) != HAPAX_OK)
		hx_connection_close(&client->connection, NULL);
}

/* Send what can be sent. */
static void pump(struct hx_redis_client *client)
{
	struct hx_redis_request *before = NULL;

	if (client->state == HX_REDIS_CLIENT_IDLE && client->pending != NULL)
		try_to_connect(client);
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
static bool take_reply(struct hx_redis_client *client, struct hapax_bytes reply)
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

static void greeted(struct hx_redis_client *client)
{
	client->state = HX_REDIS_CLIENT_READY;
	client->failures = 0;
	hx_connection_set_deadline(&client->connection, INT64_MAX);
	if (!client->is_opened) {
		client->is_opened = true;
		client->session.must_be_durable |= client->session.is_durable;
		hx_event_set(&client->opened);
	}
	pump(client);
}

/* False: the connection is closed. */
static bool take_greeting(struct hx_redis_client *client, struct hapax_bytes reply)
{
	struct hapax_error err = {.status = HAPAX_OK};
	enum hx_redis_session_result result;

	hx_buf_clear(&client->output);
	result = hx_redis_session_reply(&client->session, reply, &client->output, &err);
	if (result != HX_REDIS_SESSION_REFUSED && client->output.size > 0 &&
	    write_output(client) != HAPAX_OK)
		result = HX_REDIS_SESSION_REFUSED;
	if (result == HX_REDIS_SESSION_REFUSED) {
		hx_connection_close(&client->connection, &err);
		return false;
	}
	if (result == HX_REDIS_SESSION_READY)
		greeted(client);
	return true;
}

static size_t reply_size_max(struct hx_redis_client *client)
{
	struct hx_redis_unit *unit;

	if (client->state != HX_REDIS_CLIENT_READY)
		return GREETING_REPLY_SIZE_MAX;
	unit = unit_at(client, 0);
	if (unit->request->call != NULL)
		return CALL_REPLY_SIZE_MAX;
	return hx_redis_group_reply_size_max(unit->request->ops + unit->first, unit->count);
}

static void close_broken(struct hx_redis_client *client, const char *why)
{
	struct hapax_error err;

	(void)hx_error_set(
		&err, HAPAX_ERR_UNAVAILABLE, 0, "the server does not answer as Redis does: %s",
		why);
	hx_connection_close(&client->connection, &err);
}

/* One message from the front of input. False: none, or the end. */
static bool take_message(struct hx_redis_client *client, struct hapax_bytes input, size_t *ret_size)
{
	enum hx_resp_result result;
	bool is_good;

	if (input.size == 0)
		return false;
	if (client->state == HX_REDIS_CLIENT_READY && client->unit_count == 0) {
		close_broken(client, "it says something unasked");
		return false;
	}
	result = hx_resp_scan(&client->scan, input, reply_size_max(client));
	if (result == HX_RESP_MORE)
		return false;
	if (result == HX_RESP_BAD) {
		close_broken(client, client->scan.why);
		return false;
	}
	*ret_size = client->scan.size;
	memset(&client->scan, 0, sizeof(client->scan));
	input.size = *ret_size;
	if (client->state != HX_REDIS_CLIENT_READY)
		return take_greeting(client, input);
	is_good = take_reply(client, input);
	if (!is_good)
		close_broken(client, "a reply has another form");
	return is_good;
}

static size_t on_input(struct hx_connection *connection, struct hapax_bytes input, bool is_end)
{
	struct hx_redis_client *client = connection->context;
	size_t consumed = 0;
	size_t size = 0;

	while (connection->state == HX_CONNECTION_OPEN &&
	       take_message(
		       client,
		       (struct hapax_bytes){
			       (const char *)input.data + consumed, input.size - consumed},
		       &size))
		consumed += size;
	/* What is not sent yet must not be: nobody would answer it. */
	if (is_end)
		hx_connection_close(connection, NULL);
	if (connection->state == HX_CONNECTION_OPEN)
		pump(client);
	return consumed;
}

/* ---------------------------------------------------------------- connecting */

static void lose_units(struct hx_redis_client *client)
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

static void fail_to_connect(struct hx_redis_client *client, const struct hapax_error *err)
{
	int64_t span_ms = RETRY_MS_LAST;
	uint64_t random = 0;

	if (!client->is_opened) {
		client->is_opened = true;
		client->open_err = *err;
		if (client->open_err.status == HAPAX_OK)
			(void)hx_error_set(
				&client->open_err, HAPAX_ERR_UNAVAILABLE, 0,
				"Redis closed the connection");
		client->state = HX_REDIS_CLIENT_IDLE;
		hx_event_set(&client->opened);
		return;
	}
	if (client->failures < 7)
		span_ms = (int64_t)RETRY_MS_FIRST << client->failures;
	client->failures++;
	hx_random_bytes(&random, sizeof(random));
	client->state = HX_REDIS_CLIENT_WAITING;
	hx_timer_set(
		&client->reactor.timers, &client->retry,
		hx_reactor_now_ns(&client->reactor) + span_ms * MS_NS / 2 +
			(int64_t)(random % (uint64_t)(span_ms * MS_NS / 2)));
}

static void on_close(struct hx_connection *connection, const struct hapax_error *why)
{
	struct hx_redis_client *client = connection->context;
	bool was_ready = client->state == HX_REDIS_CLIENT_READY;

	lose_units(client);
	memset(&client->scan, 0, sizeof(client->scan));
	client->needs_scripts = false;
	if (client->state == HX_REDIS_CLIENT_STOPPED) {
		hx_reactor_stop(&client->reactor);
		return;
	}
	if (was_ready)
		client->state = HX_REDIS_CLIENT_IDLE;
	else
		fail_to_connect(client, why);
	pump(client);
}

static const struct hx_connection_ops connection_ops = {
	.on_input = on_input,
	.on_close = on_close,
};

static enum hapax_status greet(struct hx_redis_client *client, int fd, struct hapax_error *err)
{
	struct hx_connection_limits limits = {
		.input_size_max = INPUT_SIZE_MAX,
		.output_size_max = OUTPUT_SIZE_MAX,
		.stall_ms_max = client->options->timeout_ms,
	};
	struct hx_tls *tls = NULL;
	enum hapax_status status = HAPAX_OK;

	if (client->tls != NULL)
		status = hx_tls_new(client->tls, client->place->endpoint.host, &tls, err);
	if (status == HAPAX_OK) {
		client->connection.context = client;
		status = hx_connection_open(
			&client->connection, &client->reactor, fd, tls, &connection_ops, &limits,
			err);
		if (status != HAPAX_OK)
			hx_tls_free(tls);
	}
	if (status != HAPAX_OK) {
		client->net->ops->close(client->net->context, fd);
		return status;
	}
	if (!client->place->endpoint.is_unix)
		(void)client->net->ops->set_option(client->net->context, fd, HX_NET_KEEPALIVE, 30);
	client->connection.input.keep_size = KEPT_SIZE;
	client->connection.output.keep_size = KEPT_SIZE;
	client->state = HX_REDIS_CLIENT_GREETING;
	hx_connection_set_deadline(
		&client->connection,
		hx_reactor_now_ns(&client->reactor) + client->options->timeout_ms * MS_NS);
	hx_buf_clear(&client->output);
	status = hx_byte_queue_reserve(&client->connection.input, KEPT_SIZE);
	if (status == HAPAX_OK)
		status = hx_byte_queue_reserve(&client->connection.output, KEPT_SIZE);
	if (status == HAPAX_OK)
		status = hx_redis_session_begin(&client->session, &client->output);
	if (status == HAPAX_OK)
		status = write_output(client);
	if (status != HAPAX_OK) {
		struct hapax_error why;

		(void)hx_error_set(&why, status, 0, "no memory to greet the server");
		hx_connection_close(&client->connection, &why);
	}
	return HAPAX_OK;
}

static void on_dialled(struct hx_dial *dial, int fd, const struct hapax_error *err)
{
	struct hx_redis_client *client = dial->context;
	struct hapax_error why = *err;

	if (client->state == HX_REDIS_CLIENT_STOPPED) {
		if (fd >= 0)
			client->net->ops->close(client->net->context, fd);
		return;
	}
	if (fd >= 0 && greet(client, fd, &why) == HAPAX_OK)
		return;
	fail_to_connect(client, &why);
	pump(client);
}

static void try_to_connect(struct hx_redis_client *client)
{
	client->state = HX_REDIS_CLIENT_DIALLING;
	hx_dial_begin(
		&client->dial, &client->place->endpoint,
		hx_reactor_now_ns(&client->reactor) + client->options->timeout_ms * MS_NS);
}

static void on_retry(struct hx_timer *timer)
{
	struct hx_redis_client *client = timer->context;

	client->state = HX_REDIS_CLIENT_IDLE;
	pump(client);
}

static void on_arrived(struct hx_task *task)
{
	struct hx_redis_client *client = task->context;
	struct hx_redis_request *next;

	for (struct hx_redis_request *request = hx_redis_request_take(&client->queue);
	     request != NULL; request = next) {
		next = request->next;
		append_pending(client, request);
	}
	/* The first connection is made without being asked for. */
	if (!client->is_opened && client->state == HX_REDIS_CLIENT_IDLE)
		try_to_connect(client);
	pump(client);
}

static void on_stop(struct hx_task *task)
{
	struct hx_redis_client *client = task->context;
	bool has_connection = client->connection.state != HX_CONNECTION_NONE;

	assert(client->pending == NULL && client->unit_count == 0);
	client->state = HX_REDIS_CLIENT_STOPPED;
	hx_timer_clear(&client->reactor.timers, &client->retry);
	if (has_connection)
		hx_connection_close(&client->connection, NULL);
	else
		hx_reactor_stop(&client->reactor);
}

static void io_run(void *arg)
{
	struct hx_redis_client *client = arg;

	hx_reactor_run(&client->reactor);
}

/* ---------------------------------------------------------------- life */

void hx_redis_client_close(struct hx_redis_client *client)
{
	if (client->has_thread) {
		hx_reactor_post(&client->reactor, &client->stop);
		hx_thread_join(&client->thread);
		client->has_thread = false;
	}
	if (client->has_reactor) {
		hx_dial_done(&client->dial);
		hx_timer_retire(&client->reactor.timers, &client->retry);
		hx_timer_retire(&client->reactor.timers, &client->deadline);
		hx_resolver_done(&client->resolver);
		/* An answer of the resolver that nobody waits for. */
		hx_reactor_turn(&client->reactor, 0);
		hx_reactor_done(&client->reactor);
		client->has_reactor = false;
	}
	if (client->has_queue)
		hx_redis_request_queue_done(&client->queue);
	client->has_queue = false;
	hx_tls_context_free(client->tls);
	client->tls = NULL;
	hx_buf_done(&client->output);
	hx_buf_done(&client->encoder.member);
}

static enum hapax_status make_parts(struct hx_redis_client *client, struct hapax_error *err)
{
	const struct hx_redis_place *place = client->place;
	struct hx_tls_options tls = {
		.authority_file = place->authority_file[0] == '\0' ? NULL : place->authority_file,
		.certificate_file =
			place->certificate_file[0] == '\0' ? NULL : place->certificate_file,
		.key_file = place->key_file[0] == '\0' ? NULL : place->key_file,
	};
	enum hapax_status status = hx_redis_request_queue_init(&client->queue);

	client->has_queue = status == HAPAX_OK;
	if (status == HAPAX_OK)
		status = hx_buf_reserve(&client->output, KEPT_SIZE);
	if (status == HAPAX_OK)
		status = hx_buf_reserve(&client->encoder.member, client->encoder.member.size_max);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "no memory to open a store");
	if (place->has_tls)
		status = hx_tls_client_context_new(&tls, &client->tls, err);
	if (status == HAPAX_OK)
		status = hx_reactor_init(&client->reactor, client->net, err);
	if (status != HAPAX_OK)
		return status;
	client->has_reactor = true;
	hx_resolver_init(&client->resolver, client->net);
	status = hx_dial_init(
		&client->dial, &client->reactor, &client->resolver, on_dialled, client);
	if (status == HAPAX_OK)
		status = hx_timer_introduce(
			&client->reactor.timers, &client->retry, on_retry, client);
	if (status == HAPAX_OK)
		status = hx_timer_introduce(
			&client->reactor.timers, &client->deadline, on_deadline, client);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "no memory to open a store");
	return HAPAX_OK;
}

enum hapax_status hx_redis_client_open(
	struct hx_redis_client *client, struct hapax_store *store,
	const struct hx_redis_place *place, const struct hapax_store_options *options,
	const struct hx_net *net, struct hapax_error *err)
{
	enum hapax_status status;

	memset(client, 0, sizeof(*client));
	client->store = store;
	client->place = place;
	client->options = options;
	client->net = net;
	client->arrived = (struct hx_task){.fn = on_arrived, .context = client};
	client->stop = (struct hx_task){.fn = on_stop, .context = client};
	client->session = (struct hx_redis_session){
		.place = place,
		.scripts = &client->scripts,
		.must_exist = (options->flags & HAPAX_STORE_MUST_EXIST) != 0,
		.must_be_durable = place->requires_durable,
		.clock = options->clock == hapax_clock_system() ? NULL : options->clock,
	};
	client->encoder = (struct hx_redis_encoder){
		.place = place, .scripts = &client->scripts, .options = options};
	hx_buf_init(
		&client->encoder.member,
		HX_REDIS_PREFIX_SIZE_MAX + 6 * HX_SCOPE_PART_SIZE_MAX + HX_KEY_SIZE_MAX + 8);
	hx_buf_init(&client->output, OUTPUT_SIZE_MAX);
	status = make_parts(client, err);
	if (status == HAPAX_OK)
		status = hx_thread_start(&client->thread, io_run, client, "hapax-redis", err);
	client->has_thread = status == HAPAX_OK;
	if (status == HAPAX_OK) {
		hx_reactor_post(&client->reactor, &client->arrived);
		hx_event_wait(&client->opened);
		status = client->open_err.status;
		if (status != HAPAX_OK && err != NULL)
			*err = client->open_err;
	}
	if (status != HAPAX_OK)
		hx_redis_client_close(client);
	return status;
}

static enum hapax_status enqueue(
	struct hx_redis_client *client, const struct hx_redis_request *request)
{
	enum hapax_status status = hx_redis_request_push(&client->queue, request);

	if (status == HAPAX_OK)
		hx_reactor_post(&client->reactor, &client->arrived);
	return status;
}

static int64_t deadline_ns(const struct hx_redis_client *client)
{
	return client->net->ops->now_ns(client->net->context) + client->options->timeout_ms * MS_NS;
}

void hx_redis_client_submit(
	struct hx_redis_client *client, struct hapax_op *ops, size_t count,
	struct hapax_completion completion)
{
	struct hx_redis_request request = {
		.ops = ops,
		.count = count,
		.completion = completion,
		.deadline_ns = deadline_ns(client),
		.again_from = SIZE_MAX,
	};
	enum hapax_status status = enqueue(client, &request);

	if (status == HAPAX_OK)
		return;
	hx_store_fail(ops, count, status);
	hapax_store_complete(client->store, ops, count, completion);
}

enum hapax_status hx_redis_client_call(
	struct hx_redis_client *client, struct hapax_bytes command, struct hapax_buf *reply,
	struct hapax_error *err)
{
	struct hx_redis_call call = {.command = command, .reply = reply};
	struct hx_redis_request request = {
		.call = &call,
		.count = 1,
		.deadline_ns = deadline_ns(client),
		.again_from = SIZE_MAX,
	};
	enum hapax_status status;

	hx_event_init(&call.done);
	status = enqueue(client, &request);
	if (status == HAPAX_OK) {
		hx_event_wait(&call.done);
		status = call.status;
	}
	if (status == HAPAX_OK)
		return HAPAX_OK;
	return hx_error_set(
		err, status, 0,
		status == HAPAX_ERR_NO_MEMORY ? "no memory to talk to Redis"
					      : "Redis was not reached or did not answer");
}
