/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_server.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/time.h"
#include "net/http/http_peer.h"
#include "net/tls/tls.h"
#include "wire/http1/http1_write.h"

enum {
	IDLE_MS_DEFAULT = 60 * 1000,
	HEAD_MS_DEFAULT = 5 * 1000,
	BODY_MS_DEFAULT = 10 * 1000,
	HANDSHAKE_MS_DEFAULT = 10 * 1000,
	BODY_MAX_DEFAULT = 16 * 1024 * 1024,
	CONNECTIONS_MAX_DEFAULT = 10000,
	EXCHANGES_MAX_DEFAULT = 4096,

	/*
	 * As many as are kept for later requests.
	 */
	SPARE_MAX = 256,

	/* The head of a reply: a stored one, and added fields. */
	REPLY_HEAD_MAX = 96 * 1024,

	/*
	 * Drain waits this long for clients that are about to connect, and again for connected
	 * clients to begin their request. A round trip to another continent is longer; those
	 * clients are refused.
	 */
	DRAIN_MS = 50,
	TEXT_KEPT_MAX = 4 * 1024,
};

const struct hx_tls_peer *hx_http_exchange_certificate(const struct hx_http_exchange *exchange)
{
	if (exchange->peer == NULL || exchange->peer->connection.tls == NULL)
		return NULL;
	return hx_tls_peer(exchange->peer->connection.tls);
}

static struct hx_http_server_options complete(const struct hx_http_server_options *options)
{
	struct hx_http_server_options complete = {.idle_ms = 0};

	if (options != NULL)
		complete = *options;
	if (complete.idle_ms == 0)
		complete.idle_ms = IDLE_MS_DEFAULT;
	if (complete.head_ms == 0)
		complete.head_ms = HEAD_MS_DEFAULT;
	if (complete.body_ms == 0)
		complete.body_ms = BODY_MS_DEFAULT;
	if (complete.handshake_ms == 0)
		complete.handshake_ms = HANDSHAKE_MS_DEFAULT;
	if (complete.body_max == 0)
		complete.body_max = BODY_MAX_DEFAULT;
	if (complete.connections_max == 0)
		complete.connections_max = CONNECTIONS_MAX_DEFAULT;
	if (complete.exchanges_max == 0)
		complete.exchanges_max = EXCHANGES_MAX_DEFAULT;
	if (complete.body_memory_max == 0)
		complete.body_memory_max = HX_HTTP_BODY_MEMORY_MAX;
	if (complete.folder == NULL)
		complete.folder = "/tmp";
	if (complete.clock == NULL)
		complete.clock = hapax_clock_system();
	return complete;
}

void hx_http_server_configure(
	struct hx_http_server *server, const struct hx_http_server_options *options)
{
	struct hx_http_server_options before = server->options;

	server->options = complete(options);
	server->options.folder = before.folder;
	server->options.tls = before.tls;
	server->options.clock = before.clock;
	server->options.budget = before.budget;
	server->options.file_budget = before.file_budget;
	hx_listener_limit(&server->listener, server->options.connections_max);
}

/* The last quarter is reserved for replies to accepted requests. */
bool hx_http_server_is_full(const struct hx_http_server *server)
{
	return server->options.budget != NULL && hx_budget_is_full(server->options.budget);
}

bool hx_http_server_has_drained(const struct hx_http_server *server)
{
	return server->is_draining && server->peer_count == 0 &&
		!hx_listener_is_open(&server->listener);
}

static void tell_drained(struct hx_http_server *server)
{
	if (hx_http_server_has_drained(server) && server->drained != NULL)
		server->drained(server);
}

/* First the listener, then idle connections. */
static void on_drain_timer(struct hx_timer *timer)
{
	struct hx_http_server *server = timer->context;
	struct hx_http_peer *next;

	if (hx_listener_is_open(&server->listener)) {
		hx_listener_finish(&server->listener);
		if (server->peer_count > 0)
			hx_timer_set(
				&server->reactor->timers, timer,
				hx_reactor_now_ns(server->reactor) + DRAIN_MS * HX_NS_PER_MS);
		tell_drained(server);
		return;
	}
	for (struct hx_http_peer *peer = server->peers; peer != NULL; peer = next) {
		next = peer->next;
		if (hx_http_peer_is_idle(peer))
			hx_connection_finish(&peer->connection);
	}
}

enum hapax_status hx_http_server_open(
	struct hx_http_server *server, struct hx_reactor *reactor, const struct hx_address *address,
	bool shares_port, const struct hx_http_server_options *options, hx_http_handle_fn *handle,
	hx_http_drained_fn *drained, void *context, struct hapax_error *err)
{
	enum hapax_status status;

	server->reactor = reactor;
	server->options = complete(options);
	server->handle = handle;
	server->drained = drained;
	server->context = context;
	server->date_turn_ns = INT64_MIN;
	server->date_second = -1;
	hx_buf_init(&server->out, REPLY_HEAD_MAX);
	server->listener.open_max = server->options.connections_max;
	status = hx_timer_introduce(&reactor->timers, &server->drain_timer, on_drain_timer, server);
	if (status != HAPAX_OK)
		(void)hx_error_set(err, status, 0, "not enough memory for a server");
	else
		status = hx_listener_open(
			&server->listener, reactor, address, shares_port, hx_http_peer_accept,
			server, err);
	if (status != HAPAX_OK) {
		hx_timer_retire(&reactor->timers, &server->drain_timer);
		server->reactor = NULL;
	}
	return status;
}

void hx_http_server_drain(struct hx_http_server *server)
{
	if (server->is_draining)
		return;
	server->is_draining = true;
	server->is_leaving = true;
	hx_listener_shut(&server->listener);
	hx_timer_set(
		&server->reactor->timers, &server->drain_timer,
		hx_reactor_now_ns(server->reactor) + DRAIN_MS * HX_NS_PER_MS);
}

void hx_http_server_leave(struct hx_http_server *server)
{
	server->is_leaving = true;
}

void hx_http_server_close(struct hx_http_server *server)
{
	if (server->reactor == NULL)
		return;
	hx_listener_close(&server->listener);
	for (struct hx_http_peer *peer = server->peers; peer != NULL; peer = peer->next)
		hx_connection_close(&peer->connection, NULL);
}

void hx_http_server_done(struct hx_http_server *server)
{
	if (server->reactor == NULL)
		return;
	assert(server->peer_count == 0 && server->exchange_count == 0);
	assert(server->handed_count == 0);
	while (server->spare != NULL) {
		struct hx_http_exchange *exchange = server->spare;

		server->spare = exchange->next;
		hx_buf_done(&exchange->text);
		hx_http_body_done(&exchange->body);
		hx_free(exchange);
	}
	hx_buf_done(&server->out);
	hx_timer_retire(&server->reactor->timers, &server->drain_timer);
	server->reactor = NULL;
}

void hx_http_server_tell_refused(
	struct hx_http_server *server, unsigned status, enum hx_http_refusal why)
{
	server->stats.refused++;
	if (server->options.refused != NULL)
		server->options.refused(server, status, why);
}

struct hx_http_exchange *hx_http_exchange_take(struct hx_http_server *server)
{
	struct hx_http_exchange *exchange = server->spare;

	if (exchange != NULL) {
		server->spare = exchange->next;
		server->spare_count--;
	} else {
		exchange = hx_alloc_zero(1, sizeof(*exchange));
		if (exchange == NULL)
			return NULL;
		exchange->server = server;
		hx_buf_init(&exchange->text, HX_HTTP1_HEAD_LIMIT);
		hx_http_body_init(
			&exchange->body, server->options.folder, server->options.body_memory_max);
	}
	server->exchange_count++;
	exchange->is_handed_over = false;
	exchange->has_slot = false;
	exchange->is_trusted = false;
	exchange->origin[0] = '\0';
	exchange->on_room = NULL;
	exchange->body.memory.size_max = server->options.body_memory_max;
	exchange->body.file_budget = server->options.file_budget;
	exchange->context = NULL;
	return exchange;
}

void hx_http_exchange_note(struct hx_http_exchange *exchange)
{
	hx_block_pool_note(
		&exchange->server->reactor->blocks, &exchange->noted,
		exchange->body.memory.capacity);
}

void hx_http_exchange_give(struct hx_http_exchange *exchange)
{
	struct hx_http_server *server = exchange->server;

	server->exchange_count--;
	if (exchange->has_slot) {
		server->handed_count--;
		if (server->options.give != NULL)
			server->options.give(exchange);
	}
	hx_buf_clear(&exchange->text);
	if (exchange->text.capacity > TEXT_KEPT_MAX)
		hx_buf_done(&exchange->text);
	hx_http_body_clear(&exchange->body);
	if (server->spare_count == SPARE_MAX) {
		hx_buf_done(&exchange->text);
		hx_http_body_done(&exchange->body);
		hx_http_exchange_note(exchange);
		hx_free(exchange);
		return;
	}
	hx_http_exchange_note(exchange);
	exchange->next = server->spare;
	server->spare = exchange;
	server->spare_count++;
}

void hx_http_reply_problem(
	struct hx_http_exchange *exchange, const struct hx_http_problem *problem,
	const struct hapax_field *fields, size_t field_count)
{
	unsigned char body_space[4096];
	struct hapax_buf body = {body_space, 0, sizeof(body_space), sizeof(body_space), NULL};
	struct hx_http_problem with_error = *problem;
	struct hapax_field all[8];
	size_t count = 0;

	all[count++] = (struct hapax_field){
		HX_BYTES_LIT("Content-Type"), HX_BYTES_LIT(HX_HTTP_PROBLEM_CONTENT_TYPE)};
	assert(field_count < HX_COUNT(all));
	for (size_t i = 0; i < field_count; i++)
		all[count++] = fields[i];
	if (with_error.error_type == NULL && exchange->server->options.has_errors)
		with_error.error_type = hx_http_problem_error_type(problem->status);
	(void)hx_http_problem_write(&with_error, &body);
	hx_http_reply(
		exchange,
		&(struct hx_http_reply){
			.status = problem->status,
			.fields = all,
			.field_count = count,
			.body = hapax_buf_bytes(&body)});
}
