/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_wire.c - a connection to a Redis server.
 *
 *	CLOSED ──open──▶ DIALLING ──▶ GREETING ──▶ OPEN
 *	  ▲                 │            │          │
 *	  └─────────────────┴── failed ──┴── lost ──┘
 */
#include "outbox/sink/redis_wire.h"

#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "outbox/outbox.h"

enum {
	/* Replies are ids, errors, and the answer to CONFIG GET. */
	REPLY_SIZE_MAX = 64 * 1024,
	INPUT_SIZE_MAX = 4 * 1024 * 1024,

	/* One event of the largest size, behind as much as is written ahead. */
	OUTPUT_SIZE_MAX = HX_OUTBOX_PAYLOAD_SIZE_MAX + 8 * 1024 * 1024,
};

enum step { STEP_AUTH, STEP_SELECT, STEP_NAME, STEP_SIZE };

/* ------------------------------------------------------------------ greeting */

static enum hapax_status put_command(struct hapax_buf *buf, const char *const *words, size_t count)
{
	enum hapax_status status = hx_resp_put_array(buf, count);

	for (size_t i = 0; i < count && status == HAPAX_OK; i++)
		status = hx_resp_put_text(buf, words[i]);
	return status;
}

static enum hapax_status put_step(
	const struct hx_redis_wire *wire, enum step step, struct hapax_buf *buf)
{
	const struct hx_redis_place *place = wire->place;
	const char *const name[] = {"CLIENT", "SETNAME", "hapax-outbox"};
	const char *const size[] = {"CONFIG", "GET", "proto-max-bulk-len"};
	const char *const auth[] = {"AUTH", place->user, place->password};
	const char *const password[] = {"AUTH", place->password};
	enum hapax_status status;

	switch (step) {
	case STEP_AUTH:
		return place->user[0] != '\0' ? put_command(buf, auth, 3)
					      : put_command(buf, password, 2);
	case STEP_SELECT:
		status = hx_resp_put_array(buf, 2);
		if (status == HAPAX_OK)
			status = hx_resp_put_text(buf, "SELECT");
		return status == HAPAX_OK ? hx_resp_put_bulk_integer(buf, place->db) : status;
	case STEP_NAME: return put_command(buf, name, 3);
	case STEP_SIZE: return put_command(buf, size, 3);
	}
	return HAPAX_OK;
}

static enum hapax_status say_hello(struct hx_redis_wire *wire)
{
	const struct hx_redis_place *place = wire->place;
	struct hapax_buf buf;
	enum hapax_status status = HAPAX_OK;

	wire->step_count = wire->step_next = 0;
	if (place->user[0] != '\0' || place->password[0] != '\0')
		wire->steps[wire->step_count++] = STEP_AUTH;
	if (place->db != 0)
		wire->steps[wire->step_count++] = STEP_SELECT;
	wire->steps[wire->step_count++] = STEP_NAME;
	wire->steps[wire->step_count++] = STEP_SIZE;
	hx_buf_init(&buf, 4096);
	for (unsigned i = 0; i < wire->step_count && status == HAPAX_OK; i++)
		status = put_step(wire, (enum step)wire->steps[i], &buf);
	if (status == HAPAX_OK)
		status = hx_connection_write(&wire->connection, buf.data, buf.size);
	/* The password is in there. */
	if (buf.data != NULL)
		explicit_bzero(buf.data, buf.capacity);
	hx_buf_done(&buf);
	return status;
}

static void refuse(struct hx_redis_wire *wire, struct hapax_bytes text)
{
	struct hapax_error err;
	char place[HX_HOST_SIZE_MAX + 16];

	hx_endpoint_format(&wire->endpoint, place, sizeof(place));
	(void)hx_error_set(
		&err, HAPAX_ERR_UNAVAILABLE, 0, "Redis at %s said: %.*s", place,
		(int)(text.size < 120 ? text.size : 120), (const char *)text.data);
	hx_connection_close(&wire->connection, &err);
}

/* ["proto-max-bulk-len", "536870912"]; whoever may not ask gets an error, and goes without. */
static void take_size(struct hx_redis_wire *wire, struct hapax_bytes rest)
{
	struct hx_resp_value value;
	int64_t size = 0;

	while (hx_resp_next(&rest, &value))
		if (hx_resp_integer(&value, &size) && size > 0 && value.type == HX_RESP_BULK)
			wire->value_size_max = size;
}

static void take_greeting(struct hx_redis_wire *wire, struct hapax_bytes reply)
{
	enum step step = (enum step)wire->steps[wire->step_next++];
	struct hapax_bytes rest = reply;
	struct hx_resp_value value;

	if (!hx_resp_next(&rest, &value))
		return;
	if (value.type == HX_RESP_ERROR &&
	    (step == STEP_AUTH || step == STEP_SELECT || hx_resp_is_error(&value, "NOAUTH") ||
	     hx_resp_is_error(&value, "LOADING"))) {
		refuse(wire, value.text);
		return;
	}
	if (step == STEP_SIZE)
		take_size(wire, reply);
	if (wire->step_next == wire->step_count) {
		wire->state = HX_REDIS_WIRE_OPEN;
		hx_connection_set_deadline(&wire->connection, INT64_MAX);
	}
}

/* ------------------------------------------------------------------ connection */

static void close_broken(struct hx_redis_wire *wire, const char *why)
{
	struct hapax_error err;

	(void)hx_error_set(
		&err, HAPAX_ERR_UNAVAILABLE, 0, "the server does not answer as Redis does: %s",
		why);
	hx_connection_close(&wire->connection, &err);
}

static size_t on_input(struct hx_connection *connection, struct hapax_bytes input, bool is_end)
{
	struct hx_redis_wire *wire = connection->context;
	size_t consumed = 0;

	while (connection->state == HX_CONNECTION_OPEN && consumed < input.size) {
		struct hapax_bytes rest =
			hx_bytes((const char *)input.data + consumed, input.size - consumed);
		enum hx_resp_result result = hx_resp_scan(&wire->scan, rest, REPLY_SIZE_MAX);

		if (result == HX_RESP_MORE)
			break;
		if (result == HX_RESP_BAD) {
			close_broken(wire, wire->scan.why);
			break;
		}
		rest.size = wire->scan.size;
		consumed += rest.size;
		memset(&wire->scan, 0, sizeof(wire->scan));
		if (wire->state == HX_REDIS_WIRE_GREETING)
			take_greeting(wire, rest);
		else
			wire->fn(wire, rest);
	}
	if (is_end)
		hx_connection_close(connection, NULL);
	return consumed;
}

static void on_close(struct hx_connection *connection, const struct hapax_error *why)
{
	struct hx_redis_wire *wire = connection->context;

	wire->state = HX_REDIS_WIRE_CLOSED;
	wire->why = *why;
	if (why->status == HAPAX_OK)
		(void)hx_error_set(
			&wire->why, HAPAX_ERR_UNAVAILABLE, 0, "Redis closed the connection");
}

static const struct hx_connection_ops connection_ops = {
	.on_input = on_input,
	.on_close = on_close,
};

/* The socket is the connection's, or closed. */
static enum hapax_status take_socket(struct hx_redis_wire *wire, int fd, struct hapax_error *err)
{
	const struct hx_net *net = wire->reactor->net;
	const struct hx_connection_limits limits = {
		.input_size_max = INPUT_SIZE_MAX,
		.output_size_max = OUTPUT_SIZE_MAX,
	};
	struct hx_tls *tls = NULL;
	enum hapax_status status = HAPAX_OK;

	if (wire->tls != NULL)
		status = hx_tls_new(wire->tls, wire->endpoint.host, &tls, err);
	if (status == HAPAX_OK) {
		wire->connection.context = wire;
		status = hx_connection_open(
			&wire->connection, wire->reactor, fd, tls, &connection_ops, &limits, err);
		if (status != HAPAX_OK)
			hx_tls_free(tls);
	}
	if (status != HAPAX_OK)
		net->ops->close(net->context, fd);
	else if (!wire->endpoint.is_unix)
		(void)net->ops->set_option(net->context, fd, HX_NET_KEEPALIVE, 30);
	return status;
}

static void on_dialled(struct hx_dial *dial, int fd, const struct hapax_error *err)
{
	struct hx_redis_wire *wire = dial->context;

	wire->state = HX_REDIS_WIRE_CLOSED;
	if (fd < 0)
		wire->why = *err;
	if (fd < 0 || take_socket(wire, fd, &wire->why) != HAPAX_OK)
		return;
	wire->state = HX_REDIS_WIRE_GREETING;
	memset(&wire->scan, 0, sizeof(wire->scan));
	hx_connection_set_deadline(&wire->connection, wire->deadline_ns);
	if (say_hello(wire) != HAPAX_OK)
		close_broken(wire, "no memory to greet it");
}

/* ------------------------------------------------------------------ life */

enum hapax_status hx_redis_wire_init(
	struct hx_redis_wire *wire, struct hx_reactor *reactor, struct hx_resolver *resolver,
	struct hx_tls_context *tls, const struct hx_redis_place *place,
	const struct hx_endpoint *endpoint, hx_redis_wire_reply_fn *fn, void *context)
{
	memset(wire, 0, sizeof(*wire));
	wire->tls = tls;
	wire->place = place;
	wire->endpoint = *endpoint;
	wire->fn = fn;
	wire->context = context;
	wire->reactor = reactor;
	return hx_dial_init(&wire->dial, reactor, resolver, on_dialled, wire);
}

void hx_redis_wire_done(struct hx_redis_wire *wire)
{
	if (wire->reactor == NULL)
		return;
	hx_redis_wire_close(wire);
	hx_dial_done(&wire->dial);
}

enum hapax_status hx_redis_wire_open(
	struct hx_redis_wire *wire, int64_t deadline_ns, struct hapax_error *err)
{
	if (wire->state == HX_REDIS_WIRE_OPEN)
		return HAPAX_OK;
	wire->state = HX_REDIS_WIRE_DIALLING;
	wire->deadline_ns = deadline_ns;
	hx_dial_begin(&wire->dial, &wire->endpoint, deadline_ns);
	/* Both steps have a deadline of their own. */
	while (wire->state == HX_REDIS_WIRE_DIALLING || wire->state == HX_REDIS_WIRE_GREETING)
		hx_reactor_turn(wire->reactor, -1);
	if (wire->state == HX_REDIS_WIRE_OPEN)
		return HAPAX_OK;
	if (err != NULL)
		*err = wire->why;
	return HAPAX_ERR_UNAVAILABLE;
}

void hx_redis_wire_close(struct hx_redis_wire *wire)
{
	if (wire->connection.state != HX_CONNECTION_NONE)
		hx_connection_close(&wire->connection, NULL);
	while (wire->connection.state != HX_CONNECTION_NONE)
		hx_reactor_turn(wire->reactor, 0);
}
