/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_peer.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/time.h"
#include "net/tls/tls.h"
#include "wire/http1/http1_write.h"

enum {
	/*
	 * A complete head, even the largest, and room for pipelined requests.
	 */
	INPUT_SIZE_MAX = HX_HTTP1_HEAD_LIMIT + 16 * 1024,

	/* The largest result with its head. */
	OUTPUT_SIZE_MAX = 17 * 1024 * 1024,

	/* A client with this much unread output gets no more replies until it has read. */
	UNREAD_MAX = 64 * 1024,

	/* Connections kept free for new clients while others are being closed. */
	EVICT_ROOM = 64,

	/* The minimum rate for sending a body, and for reading a reply. */
	BYTES_PER_MS_MIN = 4,
};

static const char full_text[] = "the memory for requests and responses is in use; retry later";

static void link_peer(struct hx_http_peer *peer)
{
	struct hx_http_server *server = peer->server;

	peer->back = NULL;
	peer->next = server->peers;
	if (server->peers != NULL)
		server->peers->back = peer;
	else
		server->oldest = peer;
	server->peers = peer;
}

static void unlink_peer(struct hx_http_peer *peer)
{
	struct hx_http_server *server = peer->server;

	if (peer->back != NULL)
		peer->back->next = peer->next;
	else
		server->peers = peer->next;
	if (peer->next != NULL)
		peer->next->back = peer->back;
	else
		server->oldest = peer->back;
}

/* Make room for the next connection by closing the one that has been idle longest. */
static void evict(struct hx_http_server *server)
{
	size_t max = server->options.connections_max;
	size_t kept = max / 8 < EVICT_ROOM ? max / 8 : EVICT_ROOM;

	if (server->peer_count + kept < max)
		return;
	for (struct hx_http_peer *peer = server->oldest; peer != server->peers; peer = peer->back) {
		bool is_asking = peer->exchange != NULL && peer->exchange->is_handed_over;

		if (is_asking || peer->connection.state != HX_CONNECTION_OPEN)
			continue;
		hx_http_server_tell_refused(server, 0, HX_HTTP_REFUSED_IDLE);
		hx_connection_close(&peer->connection, NULL);
		return;
	}
}

static int64_t now_ns(const struct hx_http_peer *peer)
{
	return hx_reactor_now_ns(peer->connection.reactor);
}

/* Most deadlines are moved before they expire: the timer is set again only for an earlier one. */
static void set_deadline(struct hx_http_peer *peer, int64_t at_ns)
{
	peer->deadline_ns = at_ns;
	if (at_ns == INT64_MAX)
		return;
	if (!hx_timer_is_set(&peer->timer) || at_ns < peer->timer.at)
		hx_timer_set(&peer->connection.reactor->timers, &peer->timer, at_ns);
}

static void await_request(struct hx_http_peer *peer)
{
	set_deadline(peer, now_ns(peer) + peer->server->options.idle_ms * HX_NS_PER_MS);
}

bool hx_http_peer_is_idle(const struct hx_http_peer *peer)
{
	return peer->exchange == NULL && peer->began_ns == 0;
}

/* The writer of a streamed reply may continue. */
static void tell_room(struct hx_http_exchange *exchange)
{
	if (exchange->on_room == NULL || !exchange->is_full)
		return;
	exchange->is_full = false;
	exchange->on_room(exchange);
}

static void tell_gone(const struct hx_http_server *server, struct hx_http_exchange *exchange)
{
	if (server->options.gone != NULL)
		server->options.gone(exchange);
}

static void drop_exchange(struct hx_http_peer *peer)
{
	struct hx_http_exchange *exchange = peer->exchange;

	if (exchange == NULL)
		return;
	peer->exchange = NULL;
	exchange->peer = NULL;
	/* Both may give the reply, which frees the exchange. */
	if (!exchange->is_handed_over)
		hx_http_exchange_give(exchange);
	else if (exchange->on_room != NULL)
		tell_room(exchange);
	else
		tell_gone(peer->server, exchange);
}

static void on_hangup(struct hx_connection *connection)
{
	struct hx_http_peer *peer = (struct hx_http_peer *)connection;

	if (peer->exchange != NULL && peer->exchange->is_handed_over)
		tell_gone(peer->server, peer->exchange);
}

static void write_refusal(struct hx_http_peer *peer, unsigned status, const char *detail)
{
	struct hx_http_problem problem = {
		.status = status,
		.detail = detail,
		.error_type = peer->server->options.has_errors ? hx_http_problem_error_type(status)
							       : NULL};
	struct hapax_buf *out = &peer->server->out;
	struct hx_http1_writer writer;
	unsigned char body_space[2048];
	struct hapax_buf body = {body_space, 0, sizeof(body_space), sizeof(body_space), NULL};

	hx_buf_clear(out);
	(void)hx_http_problem_write(&problem, &body);
	hx_http1_write_response(&writer, out, status);
	hx_http1_write_field(
		&writer, HX_BYTES_LIT("Content-Type"), HX_BYTES_LIT(HX_HTTP_PROBLEM_CONTENT_TYPE));
	if (status == 503 || status == 429)
		hx_http1_write_field(&writer, HX_BYTES_LIT("Retry-After"), HX_BYTES_LIT("1"));
	hx_http1_write_length(&writer, body.size);
	hx_http1_write_close(&writer);
	if (hx_http1_write_end(&writer, NULL) != HAPAX_OK ||
	    hx_buf_append(out, body.data, body.size) != HAPAX_OK)
		return;
	(void)hx_connection_write(&peer->connection, out->data, out->size);
}

void hx_http_peer_refuse(
	struct hx_http_peer *peer, unsigned status, enum hx_http_refusal why, const char *detail)
{
	hx_http_server_tell_refused(peer->server, status, why);
	drop_exchange(peer);
	write_refusal(peer, status, detail);
	set_deadline(peer, INT64_MAX);
	hx_connection_finish(&peer->connection);
}

static bool is_shaking_hands(const struct hx_http_peer *peer)
{
	return peer->connection.tls != NULL && !peer->connection.is_secured;
}

/* No reply is possible yet. */
static void end_handshake(struct hx_http_peer *peer)
{
	struct hapax_error err = {.status = HAPAX_OK};

	(void)hx_error_set(
		&err, HAPAX_ERR_UNAVAILABLE, 0, "the TLS handshake did not finish in time");
	hx_connection_close(&peer->connection, &err);
}

static void on_secured(struct hx_connection *connection)
{
	struct hx_http_peer *peer = (struct hx_http_peer *)connection;

	/* Unless it was refused before. */
	if (peer->deadline_ns != INT64_MAX)
		await_request(peer);
}

static void on_timer(struct hx_timer *timer)
{
	struct hx_http_peer *peer = timer->context;
	unsigned status;

	if (peer->deadline_ns == INT64_MAX)
		return;
	if (now_ns(peer) < peer->deadline_ns) {
		hx_timer_set(&peer->connection.reactor->timers, timer, peer->deadline_ns);
		return;
	}
	peer->deadline_ns = INT64_MAX;
	status = hx_http1_timeout_status(&peer->http);
	if (is_shaking_hands(peer))
		end_handshake(peer);
	else if (status == 0)
		hx_connection_finish(&peer->connection);
	else
		hx_http_peer_refuse(
			peer, status,
			peer->exchange != NULL ? HX_HTTP_REFUSED_BODY : HX_HTTP_REFUSED_HEAD,
			"the request did not arrive in time");
}

/* Translate a pointer into the text to one into the copy; "/", which stands for no path, stays. */
static const void *moved(const void *data, struct hapax_bytes bytes, const struct hapax_buf *text)
{
	uintptr_t distance = (uintptr_t)data - (uintptr_t)bytes.data;

	return distance < bytes.size ? text->data + distance : data;
}

/* Copy the head to memory that does not move, and adjust every pointer. */
static enum hapax_status keep_head(
	struct hx_http_exchange *exchange, const struct hx_http1_head *head,
	struct hapax_bytes bytes)
{
	struct hx_http1_head *kept = &exchange->head;
	enum hapax_status status = hx_buf_append(&exchange->text, bytes.data, bytes.size);
	struct hapax_bytes *parts[] = {
		&kept->method, &kept->target, &kept->path, &kept->authority, &kept->reason};

	if (status != HAPAX_OK)
		return status;
	memcpy(kept, head,
	       offsetof(struct hx_http1_head, fields) +
		       head->field_count * sizeof(head->fields[0]));
	for (size_t i = 0; i < HX_COUNT(parts); i++) {
		if (parts[i]->size > 0)
			parts[i]->data = moved(parts[i]->data, bytes, &exchange->text);
	}
	for (size_t i = 0; i < kept->field_count; i++) {
		struct hapax_field *field = &kept->fields[i];

		field->name.data = moved(field->name.data, bytes, &exchange->text);
		if (field->value.size > 0)
			field->value.data = moved(field->value.data, bytes, &exchange->text);
	}
	return HAPAX_OK;
}

static const char no_slot[] = "too many requests are waiting for their responses; retry later";

/* The head is complete. False: it was refused. */
static bool begin_exchange(struct hx_http_peer *peer, struct hapax_bytes head)
{
	struct hx_http_server *server = peer->server;
	struct hx_http_exchange *exchange;
	struct hapax_bytes go_on = hx_http1_continue();

	if (hx_http_server_is_full(server) &&
	    !(server->options.serves_when_full && server->head.body == HX_HTTP1_BODY_NONE)) {
		hx_http_peer_refuse(peer, 503, HX_HTTP_REFUSED_MEMORY, full_text);
		return false;
	}
	/* Its body would arrive in vain. */
	if (server->handed_count >= server->options.exchanges_max) {
		hx_http_peer_refuse(peer, 503, HX_HTTP_REFUSED_REQUESTS, no_slot);
		return false;
	}
	exchange = hx_http_exchange_take(server);
	if (exchange == NULL) {
		hx_http_peer_refuse(
			peer, 503, HX_HTTP_REFUSED_MEMORY,
			"not enough memory for a request; retry later");
		return false;
	}
	peer->exchange = exchange;
	exchange->peer = peer;
	memcpy(exchange->client, peer->client, sizeof(exchange->client));
	if (keep_head(exchange, &server->head, head) != HAPAX_OK) {
		hx_http_peer_refuse(
			peer, 503, HX_HTTP_REFUSED_MEMORY,
			"not enough memory for a request; retry later");
		return false;
	}
	peer->body_until_ns = now_ns(peer) + server->options.body_ms * HX_NS_PER_MS;
	peer->body_seen = 0;
	if (exchange->head.expects_continue && exchange->head.body != HX_HTTP1_BODY_NONE)
		(void)hx_connection_write(&peer->connection, go_on.data, go_on.size);
	return true;
}

static bool add_data(struct hx_http_peer *peer, struct hapax_bytes data)
{
	struct hx_http_exchange *exchange = peer->exchange;
	struct hapax_error err;
	enum hapax_status status = hx_http_body_add(&exchange->body, data, &err);

	hx_http_exchange_note(exchange);
	if (status == HAPAX_OK && hx_http_body_is_in_memory(&exchange->body) &&
	    hx_http_server_is_full(peer->server))
		status = hx_error_set(&err, HAPAX_ERR_LIMIT, 0, full_text);
	if (status == HAPAX_OK)
		return true;
	hx_http_peer_refuse(
		peer, 503,
		hx_http_body_is_in_memory(&exchange->body) ? HX_HTTP_REFUSED_MEMORY
							   : HX_HTTP_REFUSED_FILE,
		err.message);
	return false;
}

/* May a whole request be handed over? False: it was refused. */
static bool take_slot(struct hx_http_peer *peer)
{
	struct hx_http_exchange *exchange = peer->exchange;
	struct hx_http_server *server = peer->server;
	enum hapax_status status = HAPAX_OK;

	if (server->handed_count >= server->options.exchanges_max) {
		hx_http_peer_refuse(peer, 503, HX_HTTP_REFUSED_REQUESTS, no_slot);
		return false;
	}
	if (server->options.take != NULL)
		status = server->options.take(exchange);
	if (status == HAPAX_ERR_LIMIT)
		hx_http_peer_refuse(
			peer, 429, HX_HTTP_REFUSED_ADMIT,
			"too many requests in progress from this address; retry later");
	else if (status != HAPAX_OK)
		hx_http_peer_refuse(
			peer, 503, HX_HTTP_REFUSED_MEMORY,
			"not enough memory for a request; retry later");
	if (status != HAPAX_OK)
		return false;
	server->handed_count++;
	exchange->has_slot = true;
	return true;
}

/* The request is complete. False: read no more until it is answered. */
static bool hand_over(struct hx_http_peer *peer)
{
	struct hx_http_exchange *exchange = peer->exchange;
	struct hx_http_server *server = peer->server;

	if (!take_slot(peer))
		return false;
	hx_http1_reset(&peer->http);
	peer->deadline_ns = INT64_MAX;
	exchange->is_handed_over = true;
	server->stats.requests++;
	server->handle(exchange);
	if (peer->exchange != NULL) {
		hx_connection_pause(&peer->connection);
		return false;
	}
	return peer->connection.state == HX_CONNECTION_OPEN && !peer->is_waiting;
}

/* Part of a body has arrived: time reduces the credit, bytes restore it, up to the maximum. */
static void await_body(struct hx_http_peer *peer)
{
	int64_t most_ns = now_ns(peer) + peer->server->options.body_ms * HX_NS_PER_MS;
	uint64_t size = peer->exchange->body.size;

	peer->body_until_ns +=
		(int64_t)((size - peer->body_seen) * (uint64_t)(HX_NS_PER_MS / BYTES_PER_MS_MIN));
	peer->body_seen = size;
	if (peer->body_until_ns > most_ns)
		peer->body_until_ns = most_ns;
	set_deadline(peer, peer->body_until_ns);
}

/* The message is incomplete: how long may the rest take? */
static void await_rest(struct hx_http_peer *peer)
{
	if (peer->exchange != NULL) {
		await_body(peer);
	} else if (peer->began_ns == 0) {
		peer->began_ns = now_ns(peer);
		set_deadline(peer, peer->began_ns + peer->server->options.head_ms * HX_NS_PER_MS);
	}
}

/* Process one event at the front of input. False: stop for now. */
static bool take_event(struct hx_http_peer *peer, struct hapax_bytes input, size_t *ret_used)
{
	struct hx_http1_event event;
	struct hapax_error err;

	*ret_used = 0;
	if (hx_http1_next(&peer->http, input, &peer->server->head, &event, &err) != HAPAX_OK) {
		hx_http_peer_refuse(
			peer, hx_http1_reply_status(&peer->http), HX_HTTP_REFUSED_MESSAGE,
			err.message);
		return false;
	}
	*ret_used = event.used;
	switch (event.type) {
	case HX_HTTP1_HEAD: return begin_exchange(peer, hx_bytes(input.data, event.used));
	case HX_HTTP1_DATA: return add_data(peer, event.data);
	case HX_HTTP1_END: return hand_over(peer);
	case HX_HTTP1_MORE:
	case HX_HTTP1_IDLE: break;
	}
	if (input.size > event.used || peer->exchange != NULL)
		await_rest(peer);
	return false;
}

static size_t on_input(struct hx_connection *connection, struct hapax_bytes input, bool is_end)
{
	struct hx_http_peer *peer = (struct hx_http_peer *)connection;
	const unsigned char *data = input.data;
	size_t used = 0;
	size_t step;
	bool goes_on = true;

	(void)is_end;
	peer->is_in_input = true;
	/* The end of a message may need no more bytes. */
	while (goes_on && (used < input.size || peer->exchange != NULL)) {
		goes_on = take_event(peer, hx_bytes(data + used, input.size - used), &step);
		used += step;
	}
	peer->is_in_input = false;
	return used;
}

static void on_drained(struct hx_connection *connection)
{
	struct hx_http_peer *peer = (struct hx_http_peer *)connection;

	if (peer->exchange != NULL)
		tell_room(peer->exchange);
	if (!peer->is_waiting)
		return;
	peer->is_waiting = false;
	hx_connection_resume(connection);
}

void hx_http_peer_answered(struct hx_http_peer *peer, bool is_last)
{
	peer->exchange = NULL;
	peer->began_ns = 0;
	if (peer->server->options.evicts) {
		unlink_peer(peer);
		link_peer(peer);
	}
	if (is_last) {
		hx_connection_finish(&peer->connection);
		return;
	}
	await_request(peer);
	if (hx_connection_unsent(&peer->connection) > UNREAD_MAX) {
		peer->is_waiting = true;
		hx_connection_pause(&peer->connection);
	} else if (!peer->is_in_input) {
		hx_connection_resume(&peer->connection);
	}
}

/* Replies of one turn share a date: the clock is not read for each. */
static struct hapax_bytes date_of(struct hx_http_server *server)
{
	const struct hapax_clock *clock = server->options.clock;
	int64_t turn_ns = hx_reactor_now_ns(server->reactor);
	int64_t ms;

	if (turn_ns != server->date_turn_ns) {
		server->date_turn_ns = turn_ns;
		ms = clock->wall_ms(clock->context);
		if (ms / 1000 != server->date_second) {
			server->date_second = ms / 1000;
			hx_http1_date(ms, server->date);
		}
	}
	return hx_bytes(server->date, HX_HTTP1_DATE_SIZE);
}

/*
 * Lines of "Name: value\r\n". They come from a store, which does not check them: lines of any other
 * form, or that would define the length of the reply, are left out.
 */
static void write_lines(struct hx_http1_writer *writer, struct hapax_bytes lines)
{
	const unsigned char *at = lines.data;
	size_t left = lines.size;

	while (left > 0) {
		const unsigned char *end = memchr(at, '\r', left);
		size_t size = end == NULL ? left : (size_t)(end - at);
		const unsigned char *colon = memchr(at, ':', size);
		size_t step = size + 2 < left ? size + 2 : left;

		if (colon != NULL && (size_t)(colon - at) + 2 <= size) {
			const struct hapax_field field = {
				hx_bytes(at, (size_t)(colon - at)),
				hx_bytes(colon + 2, size - (size_t)(colon - at) - 2)};

			if (hx_http1_is_field(field.name, field.value))
				hx_http1_write_read_field(writer, &field);
		}
		at += step;
		left -= step;
	}
}

bool hx_http_status_has_body(unsigned status)
{
	return status >= 200 && status != 204 && status != 304;
}

static enum hapax_status write_head(
	struct hx_http_server *server, const struct hx_http_reply *reply, bool is_last)
{
	struct hx_http1_writer writer;

	hx_buf_clear(&server->out);
	hx_http1_write_response(&writer, &server->out, reply->status);
	hx_http1_write_field(&writer, HX_BYTES_LIT("Date"), date_of(server));
	for (size_t i = 0; i < reply->field_count; i++)
		hx_http1_write_field(&writer, reply->fields[i].name, reply->fields[i].value);
	write_lines(&writer, reply->field_lines);
	if (!hx_http_status_has_body(reply->status))
		;
	else if (reply->framing == HX_HTTP_CHUNKED)
		hx_http1_write_chunked(&writer);
	else if (reply->framing == HX_HTTP_LENGTH)
		hx_http1_write_length(&writer, reply->body.size);
	else if (reply->framing == HX_HTTP_SIZED)
		hx_http1_write_length(&writer, reply->length);
	if (is_last)
		hx_http1_write_close(&writer);
	return hx_http1_write_end(&writer, NULL);
}

/* A small reply costs no more than its refusal would. */
static bool has_room(const struct hx_http_server *server, size_t size)
{
	const struct hx_http_server_options *options = &server->options;
	size_t spared = options->serves_when_full ? HX_HTTP_SPARED_MAX : HX_BLOCK_SIZE;

	return options->budget == NULL || size <= spared ||
		hx_budget_has_room(options->budget, size);
}

enum hapax_status hx_http_exchange_send(
	struct hx_http_exchange *exchange, const struct hx_http_reply *reply, bool is_last)
{
	struct hx_http_server *server = exchange->server;
	struct hx_connection *connection = &exchange->peer->connection;
	bool is_to_head = hx_bytes_equal(exchange->head.method, HX_BYTES_LIT("HEAD"));
	size_t body_size =
		is_to_head || !hx_http_status_has_body(reply->status) ? 0 : reply->body.size;
	enum hapax_status status = write_head(server, reply, is_last);
	unsigned char *space;

	if (status == HAPAX_OK && !has_room(server, server->out.size + body_size))
		status = HAPAX_ERR_LIMIT;
	if (status == HAPAX_OK)
		status = hx_connection_reserve(connection, server->out.size + body_size, &space);
	if (status != HAPAX_OK)
		return status;
	memcpy(space, server->out.data, server->out.size);
	if (body_size > 0)
		memcpy(space + server->out.size, reply->body.data, body_size);
	hx_connection_wrote(connection, server->out.size + body_size);
	return HAPAX_OK;
}

/* The client can request a reply again for which there was no room. */
static enum hapax_status send_or_refuse(
	struct hx_http_exchange *exchange, const struct hx_http_reply *reply, bool is_last)
{
	const struct hx_http_problem problem = {
		.status = 503,
		.detail = "not enough memory for the response; retry later",
		.error_type = exchange->server->options.has_errors ? hx_http_problem_error_type(503)
								   : NULL};
	static const struct hapax_field fields[] = {
		{HX_BYTES_LIT("Content-Type"), HX_BYTES_LIT(HX_HTTP_PROBLEM_CONTENT_TYPE)},
		{HX_BYTES_LIT("Retry-After"), HX_BYTES_LIT("1")}};
	unsigned char space[1024];
	struct hapax_buf body = {space, 0, sizeof(space), sizeof(space), NULL};
	enum hapax_status status = hx_http_exchange_send(exchange, reply, is_last);

	if (status != HAPAX_ERR_LIMIT)
		return status;
	hx_http_server_tell_refused(exchange->server, 0, HX_HTTP_REFUSED_MEMORY);
	(void)hx_http_problem_write(&problem, &body);
	return hx_http_exchange_send(
		exchange,
		&(struct hx_http_reply){
			.status = problem.status,
			.fields = fields,
			.field_count = HX_COUNT(fields),
			.body = hapax_buf_bytes(&body)},
		is_last);
}

void hx_http_reply(struct hx_http_exchange *exchange, const struct hx_http_reply *reply)
{
	struct hx_http_server *server = exchange->server;
	struct hx_http_peer *peer = exchange->peer;
	bool is_last = server->is_leaving || !exchange->head.keep_alive;
	struct hapax_error err;

	assert(exchange->is_handed_over && exchange->on_room == NULL);
	if (peer != NULL && send_or_refuse(exchange, reply, is_last) != HAPAX_OK) {
		(void)hx_error_set(&err, HAPAX_ERR_LIMIT, 0, "could not write the response");
		hx_connection_close(&peer->connection, &err);
		peer->exchange = NULL;
		peer = NULL;
	}
	hx_http_exchange_give(exchange);
	if (peer != NULL)
		hx_http_peer_answered(peer, is_last);
}

static void on_close(struct hx_connection *connection, const struct hapax_error *why)
{
	struct hx_http_peer *peer = (struct hx_http_peer *)connection;
	struct hx_http_server *server = peer->server;

	if (why != NULL && why->os_errno == ETIMEDOUT)
		hx_http_server_tell_refused(server, 0, HX_HTTP_REFUSED_UNREAD);
	if (server->options.tls != NULL && !connection->is_secured &&
	    server->options.unsecured != NULL)
		server->options.unsecured(server, peer->client, why);
	drop_exchange(peer);
	hx_timer_retire(&server->reactor->timers, &peer->timer);
	unlink_peer(peer);
	server->peer_count--;
	if (peer->is_admitted && server->options.left != NULL)
		server->options.left(server, peer->client, peer->is_counted);
	hx_listener_ended(&server->listener);
	hx_free(peer);
	if (hx_http_server_has_drained(server) && server->drained != NULL)
		server->drained(server);
}

static const struct hx_connection_ops ops = {
	.on_input = on_input,
	.on_drained = on_drained,
	.on_hangup = on_hangup,
	.on_secured = on_secured,
	.on_close = on_close,
};

static enum hapax_status open_peer(struct hx_http_peer *peer, int fd)
{
	struct hx_http_server *server = peer->server;
	const struct hx_connection_limits limits = {
		.input_size_max = INPUT_SIZE_MAX,
		.output_size_max = OUTPUT_SIZE_MAX,
		.stall_ms_max = server->options.stall_ms,
		.rate_min = BYTES_PER_MS_MIN};
	struct hx_http1_limits http_limits = server->options.limits;
	struct hx_tls *tls = NULL;
	enum hapax_status status = HAPAX_OK;

	http_limits.body_max = server->options.body_max;
	hx_http1_init(&peer->http, HX_HTTP1_SERVER, &http_limits);
	if (server->options.tls != NULL)
		status = hx_tls_new(server->options.tls, NULL, &tls, NULL);
	if (status == HAPAX_OK)
		status = hx_timer_introduce(&server->reactor->timers, &peer->timer, on_timer, peer);
	if (status == HAPAX_OK)
		status = hx_connection_open(
			&peer->connection, server->reactor, fd, tls, &ops, &limits, NULL);
	if (status != HAPAX_OK) {
		hx_timer_retire(&server->reactor->timers, &peer->timer);
		hx_tls_free(tls);
	}
	return status;
}

void hx_http_peer_accept(struct hx_listener *listener, int fd, const struct hx_address *address)
{
	struct hx_http_server *server = listener->context;
	const struct hx_net *net = server->reactor->net;
	struct hx_http_peer *peer = hx_alloc_zero(1, sizeof(*peer));
	enum hapax_status status = HAPAX_OK;

	if (peer != NULL) {
		peer->server = server;
		hx_address_host(address, peer->client);
	}
	if (peer == NULL || open_peer(peer, fd) != HAPAX_OK) {
		hx_free(peer);
		net->ops->close(net->context, fd);
		hx_listener_ended(listener);
		return;
	}
	link_peer(peer);
	server->peer_count++;
	server->stats.connections++;
	if (server->options.admit != NULL)
		status = server->options.admit(server, peer->client, &peer->is_counted);
	peer->is_admitted = status == HAPAX_OK;
	if (peer->is_admitted && server->options.evicts)
		evict(server);
	if (peer->is_admitted && is_shaking_hands(peer))
		set_deadline(peer, now_ns(peer) + server->options.handshake_ms * HX_NS_PER_MS);
	else if (peer->is_admitted)
		await_request(peer);
	else if (status == HAPAX_ERR_LIMIT)
		hx_http_peer_refuse(
			peer, 429, HX_HTTP_REFUSED_ADMIT,
			"too many connections from this address; retry later");
	else
		hx_http_peer_refuse(
			peer, 503, HX_HTTP_REFUSED_MEMORY,
			"not enough memory for a connection; retry later");
}
