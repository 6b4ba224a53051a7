/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_connection.c - one connection to a Redis server.
 */
#include "source/redis/stream_connection.h"

#include "base/bytes.h"
#include "base/time.h"

enum {
	CONNECT_MS = 5000,
	/* A reply takes longer only if the server is down. */
	REPLY_MS = 15000,
	RETRY_MS_FIRST = 50,
	RETRY_MS_LAST = 5000,
	INPUT_SIZE_MAX = HX_REDIS_REPLY_SIZE_MAX + 64 * 1024,
	OUTPUT_SIZE_MAX = 1 << 30,
};

static int64_t after_ms(const struct hx_redis_line *line, int64_t ms)
{
	return hx_reactor_now_ns(line->connection.options.reactor) + ms * HX_NS_PER_MS;
}

/* ---------------------------------------------------------------- commands */

void hx_redis_line_command(struct hx_redis_line *line, size_t more, const char *const words[])
{
	size_t count = 0;

	while (words[count] != NULL)
		count++;
	hx_buf_clear(&line->output);
	line->is_spoilt = hx_resp_put_array(&line->output, count + more) != HAPAX_OK;
	for (size_t i = 0; i < count; i++)
		hx_redis_line_put_text(line, words[i]);
}

void hx_redis_line_put(struct hx_redis_line *line, struct hapax_bytes word)
{
	if (hx_resp_put_bulk(&line->output, word) != HAPAX_OK)
		line->is_spoilt = true;
}

void hx_redis_line_put_text(struct hx_redis_line *line, const char *text)
{
	hx_redis_line_put(line, hapax_bytes_from_text(text));
}

void hx_redis_line_put_number(struct hx_redis_line *line, int64_t number)
{
	if (hx_resp_put_bulk_integer(&line->output, number) != HAPAX_OK)
		line->is_spoilt = true;
}

static enum hapax_status write_output(struct hx_redis_line *line)
{
	enum hapax_status status = line->is_spoilt
		? HAPAX_ERR_NO_MEMORY
		: hx_connection_write(
			  &line->connection.stream, line->output.data, line->output.size);

	hx_buf_clear(&line->output);
	return status;
}

bool hx_redis_line_send(struct hx_redis_line *line)
{
	if (!line->is_ready)
		return false;
	if (write_output(line) != HAPAX_OK) {
		hx_redis_connection_break(
			&line->connection, "not enough memory for a command to Redis");
		return false;
	}
	/* The deadline of the oldest: later commands must not extend it; every reply does. */
	if (line->open_calls++ == 0)
		hx_connection_set_deadline(&line->connection.stream, after_ms(line, REPLY_MS));
	return true;
}

/* ---------------------------------------------------------------- connection */

static enum hapax_status greet(struct hx_redis_connection *connection)
{
	struct hx_redis_line *line = connection->context;

	line->client_id = 0;
	hx_redis_line_command(line, 0, HX_REDIS_WORDS("CLIENT", "ID"));
	return write_output(line);
}

static size_t reply_size_max(struct hx_redis_connection *connection)
{
	const struct hx_redis_line *line = connection->context;

	return line->open_calls > 0 ? line->reply_size_max : 0;
}

/* Read the reply to CLIENT ID, which may be forbidden. */
static void take_id(struct hx_redis_line *line, struct hapax_bytes reply)
{
	struct hx_resp_value value;

	if (hx_resp_next(&reply, &value) && value.type == HX_RESP_INTEGER)
		line->client_id = value.integer;
	hx_redis_connection_ready(&line->connection);
	line->is_ready = true;
	line->ops->ready(line);
}

static bool on_reply(struct hx_redis_connection *connection, struct hapax_bytes reply)
{
	struct hx_redis_line *line = connection->context;

	if (!line->is_ready) {
		take_id(line, reply);
		return true;
	}
	line->open_calls--;
	/* Reset the backoff only now: a line that refuses everything must not reconnect at once. */
	if (*(const char *)reply.data != HX_RESP_ERROR)
		connection->failures = 0;
	hx_connection_set_deadline(
		&connection->stream, line->open_calls > 0 ? after_ms(line, REPLY_MS) : INT64_MAX);
	line->ops->reply(line, reply);
	return true;
}

static bool on_closed(struct hx_redis_connection *connection, const struct hapax_error *why)
{
	struct hx_redis_line *line = connection->context;

	line->is_ready = false;
	line->open_calls = 0;
	if (connection->is_closing)
		line->ops->closed(line);
	else
		line->ops->lost(line, why->message);
	return true;
}

static void on_idle(struct hx_redis_connection *connection)
{
	hx_redis_line_open(connection->context);
}

static const struct hx_redis_connection_ops connection_ops = {
	.greet = greet,
	.reply_size_max = reply_size_max,
	.reply = on_reply,
	.closed = on_closed,
	.idle = on_idle,
};

void hx_redis_line_open(struct hx_redis_line *line)
{
	const struct hx_redis_place *place = line->connection.options.place;

	hx_redis_connection_open(
		&line->connection, &place->endpoints[0], after_ms(line, CONNECT_MS));
}

void hx_redis_line_close(struct hx_redis_line *line)
{
	if (!hx_redis_connection_close(&line->connection))
		line->ops->closed(line);
}

enum hapax_status hx_redis_line_init(
	struct hx_redis_line *line, struct hx_reactor *reactor, struct hx_resolver *resolver,
	const struct hx_redis_place *place, struct hx_tls_context *tls,
	const struct hx_redis_line_ops *ops, void *context)
{
	const struct hx_redis_connection_options options = {
		.ops = &connection_ops,
		.reactor = reactor,
		.resolver = resolver,
		.tls = tls,
		.place = place,
		.limits = {.input_size_max = INPUT_SIZE_MAX, .output_size_max = OUTPUT_SIZE_MAX},
		.retry_ms_first = RETRY_MS_FIRST,
		.retry_ms_last = RETRY_MS_LAST,
	};

	line->ops = ops;
	line->context = context;
	line->reply_size_max = HX_REDIS_REPLY_SIZE_MAX;
	hx_buf_init(&line->output, OUTPUT_SIZE_MAX);
	return hx_redis_connection_init(&line->connection, &options, line);
}

void hx_redis_line_done(struct hx_redis_line *line)
{
	hx_redis_connection_done(&line->connection);
	hx_buf_done(&line->output);
}
