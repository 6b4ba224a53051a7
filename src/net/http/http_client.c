/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_client.c - calls over links; a link is one connection.
 *
 *	DIALING ──▶ BUSY ◀──▶ IDLE
 *	    └─────────┴─────────┴──▶ closed, freed
 *
 *  (1) call is set while DIALING for it and while BUSY.
 *  (2) sent_before: bytes that the connection had sent before this call. While it is unchanged,
 *      nothing of the call was sent.
 *  (3) A link is reused only after a response that ended properly, with nothing after it.
 */
#include "net/http/http_client.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/time.h"
#include "net/connection.h"
#include "net/dial.h"
#include "net/tls/tls.h"

enum {
	CONNECT_MS_DEFAULT = 5000,
	IDLE_MS_DEFAULT = 4000,
	CONNECTIONS_MAX_DEFAULT = 256,
	WAITING_MAX_DEFAULT = 4096,
	INPUT_SIZE_MAX = 64 * 1024,

	/* An event of the largest batch with its head. */
	OUTPUT_SIZE_MAX = 65 * 1024 * 1024,

	/* Large bodies are sent in pieces. */
	PIECE_SIZE = 64 * 1024,
};

enum link_state {
	LINK_DIALING,
	LINK_BUSY,
	LINK_IDLE,
	LINK_CLOSING,
};

struct hx_http_link {
	struct hx_connection connection; /* first: they are the same address */
	struct hx_http_client *client;
	enum link_state state;
	struct hx_dial dial;
	struct hx_http_call *call;
	struct hx_http1 http;
	uint64_t sent_before;
	uint64_t body_offset; /* of a file: bytes written */
	bool is_kept;         /* the response said so */
	bool was_used;        /* for an earlier call */
	bool has_waited;      /* the call has waited since may_send was last called */
	struct hx_http_link *idle_next;
	struct hx_http_link *next; /* among all */
	struct hx_http_link *back;
};

static void serve_waiting(struct hx_http_client *client);

static struct hx_http_client_options complete_options(const struct hx_http_client_options *options)
{
	struct hx_http_client_options complete = {.connect_ms = 0};

	if (options != NULL)
		complete = *options;
	if (complete.connect_ms == 0)
		complete.connect_ms = CONNECT_MS_DEFAULT;
	if (complete.idle_ms == 0)
		complete.idle_ms = IDLE_MS_DEFAULT;
	if (complete.connections_max == 0)
		complete.connections_max = CONNECTIONS_MAX_DEFAULT;
	if (complete.waiting_max == 0)
		complete.waiting_max = WAITING_MAX_DEFAULT;
	return complete;
}

void hx_http_client_init(
	struct hx_http_client *client, struct hx_reactor *reactor, struct hx_resolver *resolver,
	const struct hx_endpoint *endpoint, const struct hx_http_client_options *options)
{
	client->reactor = reactor;
	client->resolver = resolver;
	client->endpoint = *endpoint;
	client->options = complete_options(options);
}

void hx_http_client_configure(
	struct hx_http_client *client, const struct hx_http_client_options *options)
{
	struct hx_tls_context *tls = client->options.tls;

	client->options = complete_options(options);
	client->options.tls = tls;
	/* Waiting calls may have room now. */
	serve_waiting(client);
}

static void free_link(struct hx_http_link *link)
{
	struct hx_http_client *client = link->client;

	if (link->back != NULL)
		link->back->next = link->next;
	else
		client->links = link->next;
	if (link->next != NULL)
		link->next->back = link->back;
	client->link_count--;
	hx_dial_done(&link->dial);
	hx_free(link);
}

static void leave_idle(struct hx_http_link *link)
{
	struct hx_http_link **at = &link->client->idle;

	while (*at != link)
		at = &(*at)->idle_next;
	*at = link->idle_next;
	link->client->idle_count--;
}

static void close_link(struct hx_http_link *link, const struct hapax_error *why)
{
	if (link->state == LINK_IDLE)
		leave_idle(link);
	link->state = LINK_CLOSING;
	hx_connection_close(&link->connection, why);
}

/* The call is over. */
static void end_call(
	struct hx_http_call *call, enum hx_http_call_end end, const struct hapax_error *err)
{
	call->link = NULL;
	call->deadline_ns = INT64_MAX;
	call->ops->on_end(call, end, err);
}

/* The call has waited: its caller may have lost the claim. */
static bool may_send(struct hx_http_call *call, struct hapax_error *err)
{
	if (call->ops->may_send == NULL || call->ops->may_send(call))
		return true;
	call->is_revoked = true;
	(void)hx_error_set(
		err, HAPAX_ERR_UNAVAILABLE, 0, "the lease lapsed before the request was sent");
	return false;
}

static enum hapax_status start(struct hx_http_call *call, struct hapax_error *err);

/* The link failed during its call. If it was a kept one and nothing was sent, try once more. */
static void fail_call(struct hx_http_link *link, const struct hapax_error *why)
{
	struct hx_http_call *call = link->call;
	bool is_sent = link->connection.sent_bytes != link->sent_before;
	struct hapax_error err = *why;

	link->call = NULL;
	if (call == NULL)
		return;
	call->link = NULL;
	if (err.status == HAPAX_OK)
		(void)hx_error_set(
			&err, HAPAX_ERR_UNAVAILABLE, 0,
			"the connection was closed before the response");
	if (!is_sent && link->was_used && !call->is_second && !call->is_late &&
	    may_send(call, &err)) {
		call->is_second = true;
		if (start(call, &err) == HAPAX_OK)
			return;
	}
	end_call(call, is_sent ? HX_HTTP_CALL_LOST : HX_HTTP_CALL_UNSENT, &err);
}

static void on_close(struct hx_connection *connection, const struct hapax_error *why)
{
	struct hx_http_link *link = (struct hx_http_link *)connection;
	struct hx_http_client *client = link->client;

	if (link->state == LINK_IDLE)
		leave_idle(link);
	link->state = LINK_CLOSING;
	fail_call(link, why);
	free_link(link);
	serve_waiting(client);
}

/* The next piece of a body in a file. */
static void send_piece(struct hx_http_link *link)
{
	const struct hx_http_body *file = link->call->file;
	uint64_t left = file->size - link->body_offset;
	size_t size = left < PIECE_SIZE ? (size_t)left : PIECE_SIZE;
	unsigned char *space;
	struct hapax_error err = {.status = HAPAX_OK};
	enum hapax_status status;

	if (size == 0)
		return;
	status = hx_connection_reserve(&link->connection, size, &space);
	if (status == HAPAX_OK)
		status = hx_http_body_read(file, link->body_offset, space, size, &err);
	if (status != HAPAX_OK) {
		close_link(link, &err);
		return;
	}
	hx_connection_wrote(&link->connection, size);
	link->body_offset += size;
}

static void on_drained(struct hx_connection *connection)
{
	struct hx_http_link *link = (struct hx_http_link *)connection;

	if (link->state == LINK_BUSY && link->call != NULL && link->call->file != NULL)
		send_piece(link);
}

/*
 * The first byte is about to be sent. Until now the call has waited for a connection, a handshake,
 * or a server that accepts nothing. A call that is sent in the turn in which it arrived has not
 * waited.
 */
static void on_first(struct hx_connection *connection)
{
	struct hx_http_link *link = (struct hx_http_link *)connection;
	struct hapax_error err;

	assert(link->call != NULL);
	if (link->has_waited && !may_send(link->call, &err))
		close_link(link, &err);
	link->has_waited = true;
}

static void send_request(struct hx_http_link *link)
{
	struct hx_http_call *call = link->call;
	unsigned char *space;
	size_t size = call->head.size + call->body.size;
	struct hapax_error err;

	link->state = LINK_BUSY;
	link->sent_before = link->connection.sent_bytes;
	link->body_offset = 0;
	link->is_kept = false;
	link->has_waited = !link->was_used;
	hx_http1_reset_answer(&link->http, call->is_head);
	hx_connection_set_deadline(&link->connection, INT64_MAX);
	/* Input so far answers nothing: on_input() must see it before the request is sent. */
	hx_connection_read_first(&link->connection);
	if (hx_connection_reserve(&link->connection, size, &space) != HAPAX_OK) {
		(void)hx_error_set(&err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for a request");
		close_link(link, &err);
		return;
	}
	memcpy(space, call->head.data, call->head.size);
	if (call->body.size > 0)
		memcpy(space + call->head.size, call->body.data, call->body.size);
	hx_connection_wrote(&link->connection, size);
}

/*
 * Keep one more? Yes if there is room, or a waiting call takes it at once. NONE: each call has its
 * own.
 */
static bool is_wanted(const struct hx_http_client *client)
{
	size_t max = client->options.idle_max;

	return max != HX_HTTP_IDLE_NONE &&
		(max == 0 || client->waiting.first != NULL || client->idle_count < max);
}

/* The response is complete. */
static void complete(struct hx_http_link *link, bool is_clean)
{
	struct hx_http_call *call = link->call;
	struct hx_http_client *client = link->client;
	bool is_sent = hx_connection_unsent(&link->connection) == 0 &&
		(call->file == NULL || link->body_offset == call->file->size);

	link->call = NULL;
	link->was_used = true;
	if (link->is_kept && is_clean && is_sent && is_wanted(client) &&
	    link->connection.state == HX_CONNECTION_OPEN && !link->connection.is_hung_up) {
		link->state = LINK_IDLE;
		link->idle_next = client->idle;
		client->idle = link;
		client->idle_count++;
		hx_connection_set_deadline(
			&link->connection,
			hx_reactor_now_ns(client->reactor) +
				client->options.idle_ms * HX_NS_PER_MS);
	} else {
		close_link(link, NULL);
	}
	end_call(call, HX_HTTP_CALL_COMPLETE, NULL);
	serve_waiting(client);
}

/* False: read no more. */
static bool take_event(struct hx_http_link *link, struct hapax_bytes input, size_t *ret_used)
{
	struct hx_http1_head *head = &link->client->head;
	struct hx_http1_event event;
	struct hapax_error err;

	*ret_used = 0;
	if (hx_http1_next(&link->http, input, head, &event, &err) != HAPAX_OK) {
		close_link(link, &err);
		return false;
	}
	*ret_used = event.used;
	switch (event.type) {
	case HX_HTTP1_HEAD:
		if (head->status < 200)
			return true;
		link->is_kept = head->keep_alive;
		link->call->ops->on_head(link->call, head);
		return true;
	case HX_HTTP1_DATA: link->call->ops->on_data(link->call, event.data); return true;
	case HX_HTTP1_END: complete(link, event.used == input.size); return false;
	case HX_HTTP1_MORE:
	case HX_HTTP1_IDLE: break;
	}
	return false;
}

static size_t on_input(struct hx_connection *connection, struct hapax_bytes input, bool is_end)
{
	struct hx_http_link *link = (struct hx_http_link *)connection;
	const unsigned char *data = input.data;
	struct hx_http1_event event;
	struct hapax_error err = {.status = HAPAX_OK};
	size_t used = 0;
	size_t step;

	if (link->state != LINK_BUSY) {
		/* There was no request. */
		if (link->state == LINK_IDLE)
			close_link(link, NULL);
		return input.size;
	}
	if (input.size > 0 && link->connection.sent_bytes == link->sent_before) {
		/* A response without a request must not be taken for that of this call. */
		(void)hx_error_set(
			&err, HAPAX_ERR_UNAVAILABLE, 0,
			"the response arrived before the request was sent");
		close_link(link, &err);
		return input.size;
	}
	while (link->state == LINK_BUSY && !link->connection.is_paused) {
		bool goes_on = take_event(link, hx_bytes(data + used, input.size - used), &step);

		used += step;
		if (!goes_on)
			break;
	}
	if (!is_end || link->state != LINK_BUSY || link->connection.is_paused)
		return used;
	if (hx_http1_closed(&link->http, &event, &err) == HAPAX_OK && event.type == HX_HTTP1_END)
		complete(link, false);
	else
		close_link(link, &err);
	return used;
}

static const struct hx_connection_ops ops = {
	.on_input = on_input,
	.on_drained = on_drained,
	.on_first = on_first,
	.on_close = on_close,
};

static enum hapax_status open_link(struct hx_http_link *link, int fd, struct hapax_error *err)
{
	const struct hx_connection_limits limits = {
		.input_size_max = INPUT_SIZE_MAX, .output_size_max = OUTPUT_SIZE_MAX};
	struct hx_http_client *client = link->client;
	const struct hx_net *net = client->reactor->net;
	struct hx_tls *tls = NULL;
	enum hapax_status status = HAPAX_OK;

	if (!client->endpoint.is_unix)
		(void)net->ops->set_option(net->context, fd, HX_NET_NODELAY, 1);
	if (client->options.tls != NULL)
		status = hx_tls_new(client->options.tls, client->endpoint.host, &tls, err);
	if (status == HAPAX_OK)
		status = hx_connection_open(
			&link->connection, client->reactor, fd, tls, &ops, &limits, err);
	if (status != HAPAX_OK) {
		hx_tls_free(tls);
		net->ops->close(net->context, fd);
	}
	return status;
}

static void on_dialed(struct hx_dial *dial, int fd, const struct hapax_error *err)
{
	struct hx_http_link *link = dial->context;
	struct hapax_error failure;

	if (fd < 0)
		on_close(&link->connection, err);
	else if (open_link(link, fd, &failure) != HAPAX_OK)
		on_close(&link->connection, &failure);
	else if (link->call == NULL)
		close_link(link, NULL); /* its deadline passed in the meantime */
	else
		send_request(link);
}

static enum hapax_status dial(struct hx_http_call *call, struct hapax_error *err)
{
	struct hx_http_client *client = call->client;
	struct hx_http_link *link = hx_alloc_zero(1, sizeof(*link));
	int64_t deadline_ns =
		hx_reactor_now_ns(client->reactor) + client->options.connect_ms * HX_NS_PER_MS;

	if (link == NULL ||
	    hx_dial_init(&link->dial, client->reactor, client->resolver, on_dialed, link) !=
		    HAPAX_OK) {
		hx_free(link);
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for a connection");
	}
	hx_http1_init(&link->http, HX_HTTP1_CLIENT, NULL);
	link->client = client;
	link->state = LINK_DIALING;
	link->call = call;
	call->link = link;
	link->next = client->links;
	if (client->links != NULL)
		client->links->back = link;
	client->links = link;
	client->link_count++;
	client->dialed++;
	hx_dial_begin(
		&link->dial, &client->endpoint,
		call->deadline_ns < deadline_ns ? call->deadline_ns : deadline_ns);
	return HAPAX_OK;
}

static enum hapax_status enqueue(struct hx_http_call *call, struct hapax_error *err)
{
	struct hx_http_client *client = call->client;

	if (client->waiting_count >= client->options.waiting_max)
		return hx_error_set(
			err, HAPAX_ERR_LIMIT, 0, "too many requests are waiting for a connection");
	call->is_waiting = true;
	HX_LIST_ADD(&client->waiting, call, next);
	client->waiting_count++;
	return HAPAX_OK;
}

static void dequeue(struct hx_http_call *call)
{
	struct hx_http_client *client = call->client;
	struct hx_http_call *before = NULL;

	for (struct hx_http_call *at = client->waiting.first; at != call; at = at->next)
		before = at;
	if (before == NULL)
		client->waiting.first = call->next;
	else
		before->next = call->next;
	if (client->waiting.last == call)
		client->waiting.last = before;
	call->is_waiting = false;
	client->waiting_count--;
}

/*
 * Use a kept link, a new one, or wait for one. A repeated call needs a new link, but only that: a
 * call that waits while there is a link would be repeated forever.
 */
static enum hapax_status start(struct hx_http_call *call, struct hapax_error *err)
{
	struct hx_http_client *client = call->client;
	bool is_room = client->link_count < client->options.connections_max;
	struct hx_http_link *link = call->is_second && is_room ? NULL : client->idle;

	if (link != NULL) {
		client->idle = link->idle_next;
		client->idle_count--;
		client->reused++;
		link->call = call;
		call->link = link;
		send_request(link);
		return HAPAX_OK;
	}
	return is_room ? dial(call, err) : enqueue(call, err);
}

static void serve_waiting(struct hx_http_client *client)
{
	while (client->waiting.first != NULL &&
	       (client->idle != NULL || client->link_count < client->options.connections_max)) {
		struct hx_http_call *call = client->waiting.first;
		struct hapax_error err;

		dequeue(call);
		if (!may_send(call, &err) || start(call, &err) != HAPAX_OK)
			end_call(call, HX_HTTP_CALL_UNSENT, &err);
	}
}

/* The server is not late if the client paused reading. */
static bool hurries(struct hx_http_call *call)
{
	int64_t now_ns = hx_reactor_now_ns(call->client->reactor);
	int64_t paused_ns = call->paused_ns;

	if (call->paused_at_ns != INT64_MAX)
		paused_ns += now_ns - call->paused_at_ns;
	if (call->is_hurried || paused_ns == 0 || call->ops->on_hurry == NULL)
		return false;
	call->is_hurried = true;
	call->deadline_ns = now_ns + paused_ns;
	hx_timer_set(&call->client->reactor->timers, &call->timer, call->deadline_ns);
	call->ops->on_hurry(call);
	return true;
}

/* Deadlines usually move before they expire: the timer checks when it runs. */
static void on_timer(struct hx_timer *timer)
{
	struct hx_http_call *call = timer->context;
	struct hx_http_client *client = call->client;
	struct hapax_error err;

	if (call->deadline_ns == INT64_MAX)
		return;
	if (hx_reactor_now_ns(client->reactor) < call->deadline_ns) {
		hx_timer_set(&client->reactor->timers, timer, call->deadline_ns);
		return;
	}
	if (hurries(call))
		return;
	call->is_late = true;
	call->deadline_ns = INT64_MAX;
	(void)hx_error_set(&err, HAPAX_ERR_UNAVAILABLE, 0, "no response in time");
	if (call->is_waiting) {
		dequeue(call);
		end_call(call, HX_HTTP_CALL_UNSENT, &err);
	} else if (call->link != NULL && call->link->state == LINK_DIALING) {
		call->link->call = NULL;
		end_call(call, HX_HTTP_CALL_UNSENT, &err);
	} else if (call->link != NULL) {
		close_link(call->link, &err);
	}
}

enum hapax_status hx_http_call_init(
	struct hx_http_call *call, struct hx_reactor *reactor, const struct hx_http_call_ops *ops_,
	void *context)
{
	call->ops = ops_;
	call->context = context;
	call->deadline_ns = INT64_MAX;
	return hx_timer_introduce(&reactor->timers, &call->timer, on_timer, call);
}

void hx_http_call_done(struct hx_http_call *call, struct hx_reactor *reactor)
{
	assert(call->link == NULL && !call->is_waiting);
	hx_timer_retire(&reactor->timers, &call->timer);
}

static void arm(struct hx_http_call *call)
{
	if (!hx_timer_is_set(&call->timer) || call->deadline_ns < call->timer.at)
		hx_timer_set(&call->client->reactor->timers, &call->timer, call->deadline_ns);
}

enum hapax_status hx_http_call_begin(
	struct hx_http_call *call, struct hx_http_client *client, int64_t deadline_ns,
	struct hapax_error *err)
{
	enum hapax_status status;

	assert(call->link == NULL && !call->is_waiting);
	call->client = client;
	call->is_late = false;
	call->is_revoked = false;
	call->is_second = false;
	call->is_hurried = false;
	call->paused_at_ns = INT64_MAX;
	call->paused_ns = 0;
	call->deadline_ns = deadline_ns;
	status = start(call, err);
	if (status != HAPAX_OK)
		call->deadline_ns = INT64_MAX;
	else
		arm(call);
	return status;
}

void hx_http_call_prolong(struct hx_http_call *call, int64_t deadline_ns)
{
	if (call->deadline_ns == INT64_MAX)
		return;
	call->deadline_ns = deadline_ns;
	arm(call);
}

void hx_http_call_abandon(struct hx_http_call *call)
{
	struct hapax_error err;

	if (call->link == NULL || call->link->state != LINK_BUSY)
		return;
	(void)hx_error_set(
		&err, HAPAX_ERR_UNAVAILABLE, 0, "the caller stopped waiting for the response");
	close_link(call->link, &err);
}

void hx_http_call_hasten(struct hx_http_call *call, int64_t deadline_ns)
{
	if (deadline_ns >= call->deadline_ns)
		return;
	call->deadline_ns = deadline_ns;
	arm(call);
}

void hx_http_call_pause(struct hx_http_call *call)
{
	if (call->link == NULL || call->paused_at_ns != INT64_MAX)
		return;
	call->paused_at_ns = hx_reactor_now_ns(call->client->reactor);
	hx_connection_pause(&call->link->connection);
}

void hx_http_call_resume(struct hx_http_call *call)
{
	if (call->link == NULL || call->paused_at_ns == INT64_MAX)
		return;
	call->paused_ns += hx_reactor_now_ns(call->client->reactor) - call->paused_at_ns;
	call->paused_at_ns = INT64_MAX;
	hx_connection_resume(&call->link->connection);
}

void hx_http_client_close(struct hx_http_client *client)
{
	struct hx_http_link *next;

	if (client->reactor == NULL)
		return;
	assert(client->waiting.first == NULL);
	for (struct hx_http_link *link = client->links; link != NULL; link = next) {
		next = link->next;
		assert(link->call == NULL);
		if (link->state == LINK_DIALING)
			free_link(link);
		else
			close_link(link, NULL);
	}
}

void hx_http_client_done(struct hx_http_client *client)
{
	assert(client->link_count == 0);
}
