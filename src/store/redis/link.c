/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.c - one connection to one Redis server.
 *
 *	IDLE ──submit──▶ DIALLING ──▶ GREETING ──▶ READY
 *	  ▲                 │            │           │
 *	  └── WAITING ◀─────┴── failed ──┴── lost ───┘
 */
#include "store/redis/link.h"

#include <string.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "store/redis/redis_client.h"
#include "store/redis/pipeline.h"

enum {
	/* Memory for replies and commands that is always there. */
	KEPT_SIZE = 256 * 1024,

	/* A group of 1,024 with the largest results. The scan refuses far smaller nonsense. */
	INPUT_SIZE_MAX = 1 << 30,
	OUTPUT_SIZE_MAX = 1 << 30,

	/* Between attempts to connect: doubles from the first to the last, with jitter. */
	RETRY_MS_FIRST = 10,
	RETRY_MS_LAST = 1000,
};

#define MS_NS INT64_C(1000000)

enum hapax_status hx_redis_link_write(struct hx_redis_link *link)
{
	return hx_connection_write(
		&link->connection, link->client->output.data, link->client->output.size);
}

static void greeted(struct hx_redis_link *link)
{
	link->state = HX_REDIS_LINK_READY;
	link->failures = 0;
	hx_connection_set_deadline(&link->connection, INT64_MAX);
	hx_redis_client_link_ready(link);
	hx_redis_pipeline_pump(link);
}

/* False: the connection is closed. */
static bool take_greeting(struct hx_redis_link *link, struct hapax_bytes reply)
{
	struct hapax_error err = {.status = HAPAX_OK};
	enum hx_redis_session_result result;

	hx_buf_clear(&link->client->output);
	result = hx_redis_session_reply(&link->session, reply, &link->client->output, &err);
	if (result != HX_REDIS_SESSION_REFUSED && link->client->output.size > 0 &&
	    hx_redis_link_write(link) != HAPAX_OK)
		result = HX_REDIS_SESSION_REFUSED;
	if (result == HX_REDIS_SESSION_REFUSED) {
		hx_connection_close(&link->connection, &err);
		return false;
	}
	if (result == HX_REDIS_SESSION_READY)
		greeted(link);
	return true;
}

static void close_broken(struct hx_redis_link *link, const char *why)
{
	struct hapax_error err;

	(void)hx_error_set(
		&err, HAPAX_ERR_UNAVAILABLE, 0, "the server does not answer as Redis does: %s",
		why);
	hx_connection_close(&link->connection, &err);
}

/* One message from the front of input. False: none, or the end. */
static bool take_message(struct hx_redis_link *link, struct hapax_bytes input, size_t *ret_size)
{
	enum hx_resp_result result;
	bool is_good;

	if (input.size == 0)
		return false;
	if (link->state == HX_REDIS_LINK_READY && link->unit_count == 0) {
		close_broken(link, "it says something unasked");
		return false;
	}
	result = hx_resp_scan(&link->scan, input, hx_redis_pipeline_reply_size_max(link));
	if (result == HX_RESP_MORE)
		return false;
	if (result == HX_RESP_BAD) {
		close_broken(link, link->scan.why);
		return false;
	}
	*ret_size = link->scan.size;
	memset(&link->scan, 0, sizeof(link->scan));
	input.size = *ret_size;
	if (link->state != HX_REDIS_LINK_READY)
		return take_greeting(link, input);
	is_good = hx_redis_pipeline_take(link, input);
	if (!is_good)
		close_broken(link, "a reply has another form");
	return is_good;
}

static size_t on_input(struct hx_connection *connection, struct hapax_bytes input, bool is_end)
{
	struct hx_redis_link *link = connection->context;
	size_t consumed = 0;
	size_t size = 0;

	while (connection->state == HX_CONNECTION_OPEN &&
	       take_message(
		       link,
		       (struct hapax_bytes){
			       (const char *)input.data + consumed, input.size - consumed},
		       &size))
		consumed += size;
	/* What is not sent yet must not be: nobody would answer it. */
	if (is_end)
		hx_connection_close(connection, NULL);
	if (connection->state == HX_CONNECTION_OPEN)
		hx_redis_pipeline_pump(link);
	return consumed;
}

/* ---------------------------------------------------------------- connecting */

static void fail_to_connect(struct hx_redis_link *link, const struct hapax_error *err)
{
	int64_t wait_ms;

	if (!hx_redis_client_link_failed(link, err)) {
		link->state = HX_REDIS_LINK_IDLE;
		return;
	}
	wait_ms = hx_backoff(RETRY_MS_FIRST, RETRY_MS_LAST, link->failures++, hx_random_u64());
	link->state = HX_REDIS_LINK_WAITING;
	hx_timer_set(
		&link->client->reactor.timers, &link->retry,
		hx_reactor_now_ns(&link->client->reactor) + wait_ms * MS_NS);
}

static void on_close(struct hx_connection *connection, const struct hapax_error *why)
{
	struct hx_redis_link *link = connection->context;
	bool was_ready = link->state == HX_REDIS_LINK_READY;

	hx_redis_pipeline_lose(link);
	memset(&link->scan, 0, sizeof(link->scan));
	link->needs_scripts = false;
	if (hx_redis_client_link_closed(link))
		return;
	if (was_ready)
		link->state = HX_REDIS_LINK_IDLE;
	else
		fail_to_connect(link, why);
	hx_redis_pipeline_pump(link);
}

static const struct hx_connection_ops connection_ops = {
	.on_input = on_input,
	.on_close = on_close,
};

static enum hapax_status greet(struct hx_redis_link *link, int fd, struct hapax_error *err)
{
	struct hx_connection_limits limits = {
		.input_size_max = INPUT_SIZE_MAX,
		.output_size_max = OUTPUT_SIZE_MAX,
		.stall_ms_max = link->client->options->timeout_ms,
	};
	struct hx_tls *tls = NULL;
	enum hapax_status status = HAPAX_OK;

	if (link->client->tls != NULL)
		status = hx_tls_new(link->client->tls, link->endpoint.host, &tls, err);
	if (status == HAPAX_OK) {
		link->connection.context = link;
		status = hx_connection_open(
			&link->connection, &link->client->reactor, fd, tls, &connection_ops,
			&limits, err);
		if (status != HAPAX_OK)
			hx_tls_free(tls);
	}
	if (status != HAPAX_OK) {
		link->client->net->ops->close(link->client->net->context, fd);
		return status;
	}
	if (!link->endpoint.is_unix)
		(void)link->client->net->ops->set_option(
			link->client->net->context, fd, HX_NET_KEEPALIVE, 30);
	link->connection.input.keep_size = KEPT_SIZE;
	link->connection.output.keep_size = KEPT_SIZE;
	link->state = HX_REDIS_LINK_GREETING;
	hx_connection_set_deadline(
		&link->connection,
		hx_reactor_now_ns(&link->client->reactor) +
			link->client->options->timeout_ms * MS_NS);
	hx_buf_clear(&link->client->output);
	status = hx_byte_queue_reserve(&link->connection.input, KEPT_SIZE);
	if (status == HAPAX_OK)
		status = hx_byte_queue_reserve(&link->connection.output, KEPT_SIZE);
	if (status == HAPAX_OK)
		status = hx_redis_session_begin(&link->session, &link->client->output);
	if (status == HAPAX_OK)
		status = hx_redis_link_write(link);
	if (status != HAPAX_OK) {
		struct hapax_error why;

		(void)hx_error_set(&why, status, 0, "no memory to greet the server");
		hx_connection_close(&link->connection, &why);
	}
	return HAPAX_OK;
}

static void on_dialled(struct hx_dial *dial, int fd, const struct hapax_error *err)
{
	struct hx_redis_link *link = dial->context;
	struct hapax_error why = *err;

	if (link->client->is_stopping) {
		if (fd >= 0)
			link->client->net->ops->close(link->client->net->context, fd);
		return;
	}
	if (fd >= 0 && greet(link, fd, &why) == HAPAX_OK)
		return;
	fail_to_connect(link, &why);
	hx_redis_pipeline_pump(link);
}

void hx_redis_link_connect(struct hx_redis_link *link)
{
	link->state = HX_REDIS_LINK_DIALLING;
	hx_dial_begin(
		&link->dial, &link->endpoint,
		hx_reactor_now_ns(&link->client->reactor) +
			link->client->options->timeout_ms * MS_NS);
}

static void on_retry(struct hx_timer *timer)
{
	struct hx_redis_link *link = timer->context;

	link->state = HX_REDIS_LINK_IDLE;
	hx_redis_pipeline_pump(link);
}

enum hapax_status hx_redis_link_init(
	struct hx_redis_link *link, struct hx_redis_client *client,
	const struct hx_endpoint *endpoint)
{
	struct hx_timer_heap *timers = &client->reactor.timers;
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
	status = hx_dial_init(&link->dial, &client->reactor, &client->resolver, on_dialled, link);
	if (status == HAPAX_OK)
		status = hx_timer_introduce(timers, &link->retry, on_retry, link);
	if (status == HAPAX_OK)
		status = hx_timer_introduce(
			timers, &link->deadline, hx_redis_pipeline_deadline, link);
	if (status != HAPAX_OK)
		hx_redis_link_done(link);
	return status;
}

void hx_redis_link_done(struct hx_redis_link *link)
{
	struct hx_timer_heap *timers = &link->client->reactor.timers;

	hx_dial_done(&link->dial);
	hx_timer_retire(timers, &link->retry);
	hx_timer_retire(timers, &link->deadline);
}
