/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.c - the path to one Redis server. It connects when a request waits to be sent.
 */
#include "store/redis/link.h"

#include "base/time.h"
#include "store/redis/pipeline.h"
#include "store/redis/redis_client.h"

enum {
	/* Preallocated memory for replies and commands. */
	KEPT_SIZE = 256 * 1024,

	/* A group of 1,024 with the largest results. The scan rejects much smaller bad replies. */
	STREAM_SIZE_MAX = 1 << 30,

	RETRY_MS_FIRST = 10,
	RETRY_MS_LAST = 1000,
};

enum hapax_status hx_redis_link_write(struct hx_redis_link *link)
{
	return hx_connection_write(
		&link->connection.stream, link->client->output.data, link->client->output.size);
}

static enum hapax_status greet(struct hx_redis_connection *connection)
{
	struct hx_redis_link *link = connection->context;
	enum hapax_status status;

	hx_buf_clear(&link->client->output);
	status = hx_redis_session_begin(&link->session, &link->client->output);
	return status == HAPAX_OK ? hx_redis_link_write(link) : status;
}

static void take_greeting(struct hx_redis_link *link, struct hapax_bytes reply)
{
	struct hapax_error err = {.status = HAPAX_OK};
	enum hx_redis_session_result result;

	hx_buf_clear(&link->client->output);
	result = hx_redis_session_reply(&link->session, reply, &link->client->output, &err);
	if (result != HX_REDIS_SESSION_REFUSED && link->client->output.size > 0 &&
	    hx_redis_link_write(link) != HAPAX_OK)
		result = HX_REDIS_SESSION_REFUSED;
	if (result == HX_REDIS_SESSION_REFUSED)
		hx_connection_close(&link->connection.stream, &err);
	if (result != HX_REDIS_SESSION_READY)
		return;
	hx_redis_connection_ready(&link->connection);
	link->connection.failures = 0;
	hx_redis_client_link_ready(link);
	hx_redis_pipeline_pump(link);
}

static size_t reply_size_max(struct hx_redis_connection *connection)
{
	return hx_redis_pipeline_reply_size_max(connection->context);
}

static bool on_reply(struct hx_redis_connection *connection, struct hapax_bytes reply)
{
	if (connection->state == HX_REDIS_CONNECTION_READY)
		return hx_redis_pipeline_take(connection->context, reply);
	take_greeting(connection->context, reply);
	return true;
}

static bool on_closed(struct hx_redis_connection *connection, const struct hapax_error *why)
{
	struct hx_redis_link *link = connection->context;
	enum hx_redis_connection_state state = connection->state;

	hx_redis_pipeline_lose(link);
	link->needs_scripts = false;
	if (state != HX_REDIS_CONNECTION_DIALLING && hx_redis_client_link_closed(link))
		return false;
	return state != HX_REDIS_CONNECTION_READY && hx_redis_client_link_failed(link, why);
}

static void pump(struct hx_redis_connection *connection)
{
	hx_redis_pipeline_pump(connection->context);
}

static const struct hx_redis_connection_ops connection_ops = {
	.greet = greet,
	.reply_size_max = reply_size_max,
	.reply = on_reply,
	.taken = pump,
	.closed = on_closed,
	.idle = pump,
};

void hx_redis_link_connect(struct hx_redis_link *link)
{
	hx_redis_connection_open(
		&link->connection, &link->endpoint,
		hx_reactor_now_ns(&link->client->reactor) +
			link->client->options->timeout_ms * HX_NS_PER_MS);
}

enum hapax_status hx_redis_link_init(
	struct hx_redis_link *link, struct hx_redis_client *client,
	const struct hx_endpoint *endpoint)
{
	const struct hx_redis_connection_options options = {
		.ops = &connection_ops,
		.reactor = &client->reactor,
		.resolver = &client->resolver,
		.tls = client->tls,
		.place = client->place,
		.limits.input_size_max = STREAM_SIZE_MAX,
		.limits.output_size_max = STREAM_SIZE_MAX,
		.limits.stall_ms_max = client->options->timeout_ms,
		.kept_size = KEPT_SIZE,
		.retry_ms_first = RETRY_MS_FIRST,
		.retry_ms_last = RETRY_MS_LAST,
	};
	enum hapax_status status;

	link->client = client;
	link->endpoint = *endpoint;
	link->session = (struct hx_redis_session){
		.place = client->place,
		.scripts = &client->scripts,
		.must_exist = (client->options->flags & HAPAX_STORE_MUST_EXIST) != 0,
		.must_be_durable = client->must_be_durable,
		.clock = client->clock,
	};
	status = hx_redis_connection_init(&link->connection, &options, link);
	if (status == HAPAX_OK)
		status = hx_timer_introduce(
			&client->reactor.timers, &link->deadline, hx_redis_pipeline_deadline, link);
	if (status != HAPAX_OK)
		hx_redis_link_done(link);
	return status;
}

void hx_redis_link_done(struct hx_redis_link *link)
{
	hx_redis_connection_done(&link->connection);
	hx_timer_retire(&link->client->reactor.timers, &link->deadline);
}
