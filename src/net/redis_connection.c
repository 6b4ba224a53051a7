/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_connection.c - a connection to one Redis server.
 */
#include "net/redis_connection.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/backoff.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/random.h"
#include "base/time.h"

enum {
	/* INFO is the largest reply to a greeting. */
	GREETING_REPLY_SIZE_MAX = 1024 * 1024,
	KEEPALIVE_S = 30,
};

/* ---------------------------------------------------------------- greeting */

static enum hapax_status write_auth(struct hx_redis_connection *connection)
{
	const char *user = connection->options.place->user;
	const char *password = connection->options.place->password;
	char text[2 * HX_REDIS_TEXT_SIZE + 64];
	enum hapax_status status;
	int size;

	if (user[0] != '\0')
		size = snprintf(
			text, sizeof(text), "*3\r\n$4\r\nAUTH\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n",
			strlen(user), user, strlen(password), password);
	else
		size = snprintf(
			text, sizeof(text), "*2\r\n$4\r\nAUTH\r\n$%zu\r\n%s\r\n", strlen(password),
			password);
	assert(size > 0 && (size_t)size < sizeof(text));
	status = hx_connection_write(&connection->stream, text, (size_t)size);
	explicit_bzero(text, sizeof(text));
	return status;
}

static enum hapax_status write_select(struct hx_redis_connection *connection)
{
	char db[16];
	char text[64];
	int db_size = snprintf(db, sizeof(db), "%d", connection->options.place->db);
	int size = snprintf(text, sizeof(text), "*2\r\n$6\r\nSELECT\r\n$%d\r\n%s\r\n", db_size, db);

	return hx_connection_write(&connection->stream, text, (size_t)size);
}

static enum hapax_status greet(struct hx_redis_connection *connection)
{
	const struct hx_redis_place *place = connection->options.place;
	size_t kept_size = connection->options.kept_size;
	enum hapax_status status = HAPAX_OK;

	connection->awaits_auth = place->user[0] != '\0' || place->password[0] != '\0';
	connection->awaits_select = place->db != 0;
	if (kept_size > 0) {
		connection->stream.input.keep_size = kept_size;
		connection->stream.output.keep_size = kept_size;
		status = hx_byte_queue_reserve(&connection->stream.input, kept_size);
		if (status == HAPAX_OK)
			status = hx_byte_queue_reserve(&connection->stream.output, kept_size);
	}
	if (status == HAPAX_OK && connection->awaits_auth)
		status = write_auth(connection);
	if (status == HAPAX_OK && connection->awaits_select)
		status = write_select(connection);
	return status == HAPAX_OK ? connection->options.ops->greet(connection) : status;
}

/* The server refused the connection. */
static void redis_connection_refuse(
	struct hx_redis_connection *connection, const struct hx_resp_value *value, bool is_auth)
{
	int size = (int)(value->text.size < 120 ? value->text.size : 120);
	const char *text = value->text.data;
	struct hapax_error err;

	if (is_auth)
		(void)hx_error_set(
			&err, HAPAX_ERR_INVALID, 0,
			"Redis rejected the user or password: '%.*s'; set them as "
			"redis://user:password@host",
			size, text);
	else if (hx_resp_is_error(value, "LOADING"))
		(void)hx_error_set(
			&err, HAPAX_ERR_UNAVAILABLE, 0, "Redis is loading its data; retry later");
	else
		(void)hx_error_set(
			&err, HAPAX_ERR_INVALID, 0,
			"Redis has no database %d: '%.*s'; use a smaller number, or raise "
			"'databases' in its configuration",
			connection->options.place->db, size, text);
	hx_connection_close(&connection->stream, &err);
}

static bool take_greeting(struct hx_redis_connection *connection, struct hapax_bytes reply)
{
	bool is_auth = connection->awaits_auth;
	bool is_select = !is_auth && connection->awaits_select;
	struct hapax_bytes rest = reply;
	struct hx_resp_value value;
	bool is_error;

	if (!hx_resp_next(&rest, &value))
		return false;
	is_error = value.type == HX_RESP_ERROR || value.type == HX_RESP_BULK_ERROR;
	connection->awaits_auth = false;
	connection->awaits_select &= !is_select;
	if (is_error && (is_auth || hx_resp_is_error(&value, "NOAUTH")))
		redis_connection_refuse(connection, &value, true);
	else if (is_error && (is_select || hx_resp_is_error(&value, "LOADING")))
		redis_connection_refuse(connection, &value, false);
	else if (!is_auth && !is_select)
		return connection->options.ops->reply(connection, reply);
	return true;
}

/* ---------------------------------------------------------------- replies */

static void break_off(struct hx_redis_connection *connection, const char *why)
{
	struct hapax_error err;

	(void)hx_error_set(
		&err, HAPAX_ERR_UNAVAILABLE, 0, "the server does not speak the Redis protocol: %s",
		why);
	hx_connection_close(&connection->stream, &err);
}

/* One message from the front of input. False: none, or the end. */
static bool take_message(
	struct hx_redis_connection *connection, struct hapax_bytes input, size_t *ret_size)
{
	const struct hx_redis_connection_ops *ops = connection->options.ops;
	bool is_ready = connection->state == HX_REDIS_CONNECTION_READY;
	size_t size_max = is_ready ? ops->reply_size_max(connection) : GREETING_REPLY_SIZE_MAX;
	enum hx_resp_result result;

	if (size_max == 0) {
		break_off(connection, "unexpected message");
		return false;
	}
	result = hx_resp_scan(&connection->scan, input, size_max);
	if (result == HX_RESP_MORE)
		return false;
	if (result == HX_RESP_BAD) {
		connection->has_choked = true;
		break_off(connection, connection->scan.why);
		return false;
	}
	*ret_size = connection->scan.size;
	memset(&connection->scan, 0, sizeof(connection->scan));
	input.size = *ret_size;
	if (is_ready ? ops->reply(connection, input) : take_greeting(connection, input))
		return true;
	break_off(connection, "unexpected reply");
	return false;
}

static size_t on_input(struct hx_connection *stream, struct hapax_bytes input, bool is_end)
{
	struct hx_redis_connection *connection = stream->context;
	size_t consumed = 0;
	size_t size = 0;

	while (stream->state == HX_CONNECTION_OPEN && consumed < input.size &&
	       take_message(
		       connection,
		       hx_bytes((const char *)input.data + consumed, input.size - consumed), &size))
		consumed += size;
	/* Unsent output must not be sent: it would get no answer. */
	if (is_end)
		hx_connection_close(stream, NULL);
	if (stream->state == HX_CONNECTION_OPEN && connection->options.ops->taken != NULL)
		connection->options.ops->taken(connection);
	return consumed;
}

/* ---------------------------------------------------------------- connecting */

static void wait_for_retry(struct hx_redis_connection *connection)
{
	const struct hx_redis_connection_options *options = &connection->options;
	int64_t wait_ms = hx_backoff(
		options->retry_ms_first, options->retry_ms_last, connection->failures++,
		hx_random_u64());

	connection->state = HX_REDIS_CONNECTION_WAITING;
	hx_timer_set(
		&options->reactor->timers, &connection->retry,
		hx_reactor_now_ns(options->reactor) + wait_ms * HX_NS_PER_MS);
}

static void end(struct hx_redis_connection *connection, const struct hapax_error *why)
{
	const struct hx_redis_connection_ops *ops = connection->options.ops;
	bool is_to_wait;

	memset(&connection->scan, 0, sizeof(connection->scan));
	is_to_wait = ops->closed(connection, why);
	connection->state = HX_REDIS_CONNECTION_CLOSED;
	if (connection->is_closing)
		return;
	if (is_to_wait)
		wait_for_retry(connection);
	else if (ops->idle != NULL)
		ops->idle(connection);
}

static void on_retry(struct hx_timer *timer)
{
	struct hx_redis_connection *connection = timer->context;

	connection->state = HX_REDIS_CONNECTION_CLOSED;
	connection->options.ops->idle(connection);
}

static void on_close(struct hx_connection *stream, const struct hapax_error *why)
{
	struct hapax_error err = *why;

	if (err.status == HAPAX_OK)
		(void)hx_error_set(&err, HAPAX_ERR_UNAVAILABLE, 0, "Redis closed the connection");
	end(stream->context, &err);
}

static const struct hx_connection_ops stream_ops = {
	.on_input = on_input,
	.on_close = on_close,
};

/* The socket belongs to the stream, or is closed. */
static enum hapax_status open_stream(
	struct hx_redis_connection *connection, int fd, struct hapax_error *err)
{
	const struct hx_redis_connection_options *options = &connection->options;
	const struct hx_net *net = options->reactor->net;
	struct hx_tls *tls = NULL;
	enum hapax_status status = HAPAX_OK;

	if (options->tls != NULL)
		status = hx_tls_new(options->tls, connection->dial.endpoint.host, &tls, err);
	if (status == HAPAX_OK) {
		connection->stream.context = connection;
		status = hx_connection_open(
			&connection->stream, options->reactor, fd, tls, &stream_ops,
			&options->limits, err);
		if (status != HAPAX_OK)
			hx_tls_free(tls);
	}
	if (status != HAPAX_OK)
		net->ops->close(net->context, fd);
	else if (!connection->dial.endpoint.is_unix)
		(void)net->ops->set_option(net->context, fd, HX_NET_KEEPALIVE, KEEPALIVE_S);
	return status;
}

static void on_dialled(struct hx_dial *dial, int fd, const struct hapax_error *err)
{
	struct hx_redis_connection *connection = dial->context;
	struct hapax_error why = *err;

	assert(connection->state == HX_REDIS_CONNECTION_DIALLING);
	if (fd < 0 || open_stream(connection, fd, &why) != HAPAX_OK) {
		end(connection, &why);
		return;
	}
	connection->state = HX_REDIS_CONNECTION_GREETING;
	hx_connection_set_deadline(&connection->stream, connection->deadline_ns);
	if (greet(connection) != HAPAX_OK) {
		(void)hx_error_set(
			&why, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to connect to Redis");
		hx_connection_close(&connection->stream, &why);
	}
}

void hx_redis_connection_open(
	struct hx_redis_connection *connection, const struct hx_endpoint *endpoint,
	int64_t deadline_ns)
{
	assert(connection->state == HX_REDIS_CONNECTION_CLOSED);
	assert(connection->stream.state == HX_CONNECTION_NONE);
	connection->state = HX_REDIS_CONNECTION_DIALLING;
	connection->deadline_ns = deadline_ns;
	connection->has_choked = false;
	connection->is_closing = false;
	hx_dial_begin(&connection->dial, endpoint, deadline_ns);
}

void hx_redis_connection_ready(struct hx_redis_connection *connection)
{
	assert(connection->state == HX_REDIS_CONNECTION_GREETING);
	connection->state = HX_REDIS_CONNECTION_READY;
	hx_connection_set_deadline(&connection->stream, INT64_MAX);
}

void hx_redis_connection_greet_again(struct hx_redis_connection *connection, int64_t deadline_ns)
{
	assert(connection->state == HX_REDIS_CONNECTION_READY);
	connection->state = HX_REDIS_CONNECTION_GREETING;
	hx_connection_set_deadline(&connection->stream, deadline_ns);
}

void hx_redis_connection_break(struct hx_redis_connection *connection, const char *why)
{
	struct hapax_error err;

	(void)hx_error_set(&err, HAPAX_ERR_UNAVAILABLE, 0, "%s", why);
	hx_connection_close(&connection->stream, &err);
}

bool hx_redis_connection_close(struct hx_redis_connection *connection)
{
	connection->is_closing = true;
	if (connection->stream.state != HX_CONNECTION_NONE) {
		hx_connection_close(&connection->stream, NULL);
		return true;
	}
	hx_dial_cancel(&connection->dial);
	hx_timer_clear(&connection->options.reactor->timers, &connection->retry);
	/* During closed the state stays unchanged. */
	if (connection->state == HX_REDIS_CONNECTION_WAITING ||
	    connection->state == HX_REDIS_CONNECTION_DIALLING)
		connection->state = HX_REDIS_CONNECTION_CLOSED;
	return false;
}

/* ---------------------------------------------------------------- life */

enum hapax_status hx_redis_connection_init(
	struct hx_redis_connection *connection, const struct hx_redis_connection_options *options,
	void *context)
{
	struct hx_reactor *reactor = options->reactor;
	enum hapax_status status =
		hx_dial_init(&connection->dial, reactor, options->resolver, on_dialled, connection);

	if (status != HAPAX_OK)
		return status;
	status = hx_timer_introduce(&reactor->timers, &connection->retry, on_retry, connection);
	if (status != HAPAX_OK) {
		hx_dial_done(&connection->dial);
		return status;
	}
	connection->options = *options;
	connection->context = context;
	return HAPAX_OK;
}

void hx_redis_connection_done(struct hx_redis_connection *connection)
{
	if (connection->options.reactor == NULL)
		return;
	hx_dial_done(&connection->dial);
	hx_timer_retire(&connection->options.reactor->timers, &connection->retry);
	memset(&connection->options, 0, sizeof(connection->options));
}

static const char *or_null(const char *text)
{
	return text[0] == '\0' ? NULL : text;
}

enum hapax_status hx_redis_connection_tls_context(
	const struct hx_redis_place *place, struct hx_tls_context **ret_tls,
	struct hapax_error *err)
{
	const struct hx_tls_options options = {
		.authority_file = or_null(place->authority_file),
		.certificate_file = or_null(place->certificate_file),
		.key_file = or_null(place->key_file),
	};

	*ret_tls = NULL;
	return place->has_tls ? hx_tls_client_context_new(&options, ret_tls, err) : HAPAX_OK;
}
