/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_connection.c - one connection to a Redis server.
 */
#include "source/redis/stream_connection.h"

#include <stdio.h>
#include <string.h>

#include "base/backoff.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/random.h"

enum {
	CONNECT_MS = 5000,
	/* A reply takes longer only when nobody is there. */
	REPLY_MS = 15000,
	RETRY_MS_FIRST = 50,
	RETRY_MS_LAST = 5000,
	OUTPUT_SIZE_MAX = 1 << 30,
	KEPT_SIZE = 64 * 1024,
};

#define MS_NS INT64_C(1000000)

static int64_t after_ms(const struct hx_redis_line *line, int64_t ms)
{
	return hx_reactor_now_ns(line->reactor) + ms * MS_NS;
}

static void fail(struct hx_redis_line *line, const char *why)
{
	line->is_ready = false;
	line->open_calls = 0;
	if (line->is_closing) {
		line->ops->closed(line);
		return;
	}
	hx_timer_set(
		&line->reactor->timers, &line->retry,
		after_ms(
			line,
			hx_backoff(
				RETRY_MS_FIRST, RETRY_MS_LAST, line->failures++, hx_random_u64())));
	line->ops->lost(line, why);
}

static void break_with(struct hx_redis_line *line, const char *what, struct hapax_bytes said)
{
	struct hapax_error err;

	(void)hx_error_set(
		&err, HAPAX_ERR_UNAVAILABLE, 0, "%s%s%.*s", what, said.size > 0 ? ": " : "",
		(int)(said.size < 160 ? said.size : 160),
		said.size == 0 ? "" : (const char *)said.data);
	hx_connection_close(&line->connection, &err);
}

void hx_redis_line_break(struct hx_redis_line *line, const char *why)
{
	if (line->is_open)
		break_with(line, why, hx_bytes(NULL, 0));
}

/* AUTH and SELECT answer with OK, or the server does not want us; CLIENT ID may be forbidden. */
static void take_greeting(struct hx_redis_line *line, struct hapax_bytes reply)
{
	struct hx_resp_value value;
	bool is_known = hx_resp_next(&reply, &value);

	if (is_known && line->greeting == 1) {
		if (value.type == HX_RESP_INTEGER)
			line->client_id = value.integer;
	} else if (!is_known || value.type == HX_RESP_ERROR) {
		break_with(line, "Redis refused the connection", value.text);
		return;
	}
	if (--line->greeting > 0)
		return;
	line->is_ready = true;
	line->open_calls = 0;
	hx_connection_set_deadline(&line->connection, INT64_MAX);
	line->ops->ready(line);
}

static void take_reply(struct hx_redis_line *line, struct hapax_bytes reply)
{
	if (!line->is_ready) {
		take_greeting(line, reply);
		return;
	}
	if (line->open_calls == 0) {
		hx_redis_line_break(line, "Redis said something unasked");
		return;
	}
	line->open_calls--;
	/* It works: a line on which all is refused is not opened again at once. */
	if (*(const char *)reply.data != HX_RESP_ERROR)
		line->failures = 0;
	hx_connection_set_deadline(
		&line->connection, line->open_calls > 0 ? after_ms(line, REPLY_MS) : INT64_MAX);
	line->ops->reply(line, reply);
}

static size_t on_input(struct hx_connection *connection, struct hapax_bytes input, bool is_end)
{
	struct hx_redis_line *line = connection->context;
	size_t consumed = 0;

	while (connection->state == HX_CONNECTION_OPEN && consumed < input.size) {
		struct hapax_bytes rest =
			hx_bytes((const char *)input.data + consumed, input.size - consumed);
		enum hx_resp_result result = hx_resp_scan(&line->scan, rest, line->reply_size_max);

		if (result == HX_RESP_MORE)
			break;
		if (result == HX_RESP_BAD) {
			line->has_choked = true;
			break_with(
				line, "Redis sent what is no reply, or too large",
				hapax_bytes_from_text(line->scan.why));
			break;
		}
		rest.size = line->scan.size;
		consumed += rest.size;
		memset(&line->scan, 0, sizeof(line->scan));
		take_reply(line, rest);
	}
	if (is_end)
		hx_connection_close(connection, NULL);
	return consumed;
}

static void on_close(struct hx_connection *connection, const struct hapax_error *why)
{
	struct hx_redis_line *line = connection->context;

	line->is_open = false;
	fail(line, why->status == HAPAX_OK ? "Redis closed the connection" : why->message);
}

static const struct hx_connection_ops connection_ops = {
	.on_input = on_input,
	.on_close = on_close,
};

/* False: the line is broken. */
static bool write_output(struct hx_redis_line *line)
{
	bool is_written = !line->is_spoilt &&
		hx_connection_write(&line->connection, line->output.data, line->output.size) ==
			HAPAX_OK;

	hx_buf_clear(&line->output);
	if (!is_written)
		hx_redis_line_break(line, "there was no memory for a command to Redis");
	return is_written;
}

static void greet(struct hx_redis_line *line)
{
	const struct hx_redis_place *place = line->place;
	bool has_user = place->user[0] != '\0';
	char db[16];

	line->greeting = 2;
	line->client_id = 0;
	if (has_user || place->password[0] != '\0') {
		hx_redis_line_command(line, has_user ? 3 : 2, "AUTH");
		if (has_user)
			hx_redis_line_put(line, hapax_bytes_from_text(place->user));
		hx_redis_line_put(line, hapax_bytes_from_text(place->password));
		line->greeting++;
		if (!write_output(line))
			return;
	}
	(void)snprintf(db, sizeof(db), "%d", place->db);
	hx_redis_line_command(line, 2, "SELECT");
	hx_redis_line_put(line, hapax_bytes_from_text(db));
	if (!write_output(line))
		return;
	hx_redis_line_command(line, 2, "CLIENT");
	hx_redis_line_put(line, HX_BYTES_LIT("ID"));
	(void)write_output(line);
}

static enum hapax_status open_connection(
	struct hx_redis_line *line, int fd, struct hapax_error *err)
{
	const struct hx_connection_limits limits = {
		.input_size_max = HX_REDIS_REPLY_SIZE_MAX + KEPT_SIZE,
		.output_size_max = OUTPUT_SIZE_MAX,
	};
	const struct hx_net *net = line->reactor->net;
	struct hx_tls *tls = NULL;
	enum hapax_status status = HAPAX_OK;

	if (line->tls != NULL)
		status = hx_tls_new(line->tls, line->dial.endpoint.host, &tls, err);
	if (status == HAPAX_OK) {
		line->connection.context = line;
		status = hx_connection_open(
			&line->connection, line->reactor, fd, tls, &connection_ops, &limits, err);
		if (status != HAPAX_OK)
			hx_tls_free(tls);
	}
	if (status != HAPAX_OK)
		net->ops->close(net->context, fd);
	return status;
}

static void on_dialled(struct hx_dial *dial, int fd, const struct hapax_error *err)
{
	struct hx_redis_line *line = dial->context;
	const struct hx_net *net = line->reactor->net;
	struct hapax_error why = *err;

	if (fd >= 0 && line->is_closing) {
		net->ops->close(net->context, fd);
		fd = -1;
	}
	if (fd < 0 || open_connection(line, fd, &why) != HAPAX_OK) {
		fail(line, why.message);
		return;
	}
	if (!dial->endpoint.is_unix)
		(void)net->ops->set_option(net->context, fd, HX_NET_KEEPALIVE, 30);
	line->is_open = true;
	memset(&line->scan, 0, sizeof(line->scan));
	hx_connection_set_deadline(&line->connection, after_ms(line, CONNECT_MS));
	greet(line);
}

void hx_redis_line_open(struct hx_redis_line *line)
{
	hx_dial_begin(&line->dial, &line->place->endpoints[0], after_ms(line, CONNECT_MS));
}

static void on_retry(struct hx_timer *timer)
{
	hx_redis_line_open(timer->context);
}

void hx_redis_line_close(struct hx_redis_line *line)
{
	line->is_closing = true;
	if (line->is_open) {
		hx_connection_close(&line->connection, NULL);
	} else if (!line->dial.is_busy) {
		hx_timer_clear(&line->reactor->timers, &line->retry);
		line->ops->closed(line);
	}
}

enum hapax_status hx_redis_line_init(
	struct hx_redis_line *line, struct hx_reactor *reactor, struct hx_resolver *resolver,
	const struct hx_redis_place *place, struct hx_tls_context *tls,
	const struct hx_redis_line_ops *ops, void *context)
{
	enum hapax_status status;

	line->ops = ops;
	line->context = context;
	line->reactor = reactor;
	line->place = place;
	line->tls = tls;
	line->reply_size_max = HX_REDIS_REPLY_SIZE_MAX;
	hx_buf_init(&line->output, OUTPUT_SIZE_MAX);
	status = hx_dial_init(&line->dial, reactor, resolver, on_dialled, line);
	if (status == HAPAX_OK)
		status = hx_timer_introduce(&reactor->timers, &line->retry, on_retry, line);
	return status;
}

void hx_redis_line_done(struct hx_redis_line *line)
{
	if (line->reactor == NULL)
		return;
	hx_dial_done(&line->dial);
	hx_timer_retire(&line->reactor->timers, &line->retry);
	hx_buf_done(&line->output);
}

void hx_redis_line_command(struct hx_redis_line *line, size_t count, const char *name)
{
	hx_buf_clear(&line->output);
	line->is_spoilt = hx_resp_put_array(&line->output, count) != HAPAX_OK;
	hx_redis_line_put(line, hapax_bytes_from_text(name));
}

void hx_redis_line_put(struct hx_redis_line *line, struct hapax_bytes word)
{
	if (hx_resp_put_bulk(&line->output, word) != HAPAX_OK)
		line->is_spoilt = true;
}

bool hx_redis_line_send(struct hx_redis_line *line)
{
	if (!line->is_ready || !write_output(line))
		return false;
	/* Of the oldest: later ones must not put it off, and every reply moves it on. */
	if (line->open_calls++ == 0)
		hx_connection_set_deadline(&line->connection, after_ms(line, REPLY_MS));
	return true;
}
