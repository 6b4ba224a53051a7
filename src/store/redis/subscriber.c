/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subscriber.c - a connection over which the server tells that records came to an end.
 */
#include "store/redis/subscriber.h"

#include <string.h>

#include "base/backoff.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/random.h"
#include "store/redis/redis_client.h"
#include "store/redis/redis_member.h"

enum {
	RETRY_MS = 500,

	/* A message: a state, a record's name, and little more. */
	MESSAGE_SIZE_MAX = 16 * 1024,
	INPUT_SIZE_MAX = 4 * 1024 * 1024,
};

#define MS_NS INT64_C(1000000)

static int64_t after_ms(const struct hx_redis_subscriber *subscriber, int64_t ms)
{
	return hx_reactor_now_ns(&subscriber->client->reactor) + ms * MS_NS;
}

static void connect_later(struct hx_redis_subscriber *subscriber)
{
	subscriber->next++;
	if (!subscriber->client->is_stopping)
		hx_timer_set(
			&subscriber->client->reactor.timers, &subscriber->retry,
			after_ms(subscriber, hx_backoff(RETRY_MS, RETRY_MS, 0, hx_random_u64())));
}

static void connect_now(struct hx_redis_subscriber *subscriber)
{
	const struct hx_redis_client *client = subscriber->client;
	const struct hx_redis_link *link = client->links[subscriber->next % client->link_count];

	hx_dial_begin(
		&subscriber->dial, &link->endpoint,
		after_ms(subscriber, client->options->timeout_ms));
}

/* ---------------------------------------------------------------- messages */

/* "done default/default:order-1" */
static void announce(struct hx_redis_subscriber *subscriber, struct hapax_bytes text)
{
	unsigned char scratch[2 * HX_SCOPE_PART_SIZE_MAX];
	struct hapax_bytes tenant, group, key;
	const char *space = text.size == 0 ? NULL : memchr(text.data, ' ', text.size);
	size_t head = space == NULL ? 0 : (size_t)(space + 1 - (const char *)text.data);

	if (head != 0 && !subscriber->is_muted &&
	    hx_redis_member_split(
		    hx_bytes(space + 1, text.size - head), scratch, &tenant, &group, &key))
		hapax_store_announce(subscriber->client->store, tenant, group, key);
}

/* ["message", channel, text] or ["pmessage", pattern, channel, text]; else nothing of interest. */
static void take(struct hx_redis_subscriber *subscriber, struct hapax_bytes message)
{
	struct hx_resp_value value;
	struct hapax_bytes text = {NULL, 0};
	int64_t count;

	if (!hx_resp_next(&message, &value) || value.type != HX_RESP_ARRAY)
		return;
	count = value.integer;
	if (count < 3 || !hx_resp_next(&message, &value) || !hx_resp_text(&value, &text))
		return;
	if (!hx_bytes_equal(text, HX_BYTES_LIT("message")) &&
	    !hx_bytes_equal(text, HX_BYTES_LIT("pmessage")))
		return;
	for (int64_t i = 1; i < count; i++) {
		if (!hx_resp_next(&message, &value) || !hx_resp_text(&value, &text))
			return;
	}
	announce(subscriber, text);
}

static size_t on_input(struct hx_connection *connection, struct hapax_bytes input, bool is_end)
{
	struct hx_redis_subscriber *subscriber = connection->context;
	size_t consumed = 0;

	while (connection->state == HX_CONNECTION_OPEN && consumed < input.size) {
		struct hapax_bytes rest = {
			(const char *)input.data + consumed, input.size - consumed};
		enum hx_resp_result result =
			hx_resp_scan(&subscriber->scan, rest, MESSAGE_SIZE_MAX);

		if (result == HX_RESP_MORE)
			break;
		if (result == HX_RESP_BAD || *(const char *)rest.data == HX_RESP_ERROR) {
			hx_connection_close(connection, NULL);
			break;
		}
		rest.size = subscriber->scan.size;
		consumed += rest.size;
		memset(&subscriber->scan, 0, sizeof(subscriber->scan));
		take(subscriber, rest);
	}
	if (is_end)
		hx_connection_close(connection, NULL);
	return consumed;
}

static void on_close(struct hx_connection *connection, const struct hapax_error *why)
{
	struct hx_redis_subscriber *subscriber = connection->context;

	(void)why;
	if (subscriber->client->is_stopping)
		hx_redis_client_stopped(subscriber->client);
	else
		connect_later(subscriber);
}

static const struct hx_connection_ops connection_ops = {
	.on_input = on_input,
	.on_close = on_close,
};

/* ---------------------------------------------------------------- connecting */

/* Of all partitions: what means something in a pattern is escaped. */
static enum hapax_status put_pattern(struct hapax_buf *buf, const char *prefix)
{
	enum hapax_status status = HAPAX_OK;

	for (; *prefix != '\0' && status == HAPAX_OK; prefix++) {
		if (strchr("*?[]^-\\", *prefix) != NULL)
			status = hx_buf_append_byte(buf, '\\');
		if (status == HAPAX_OK)
			status = hx_buf_append_byte(buf, (unsigned char)*prefix);
	}
	return status == HAPAX_OK ? hx_buf_append(buf, ":{*}:events", 11) : status;
}

static enum hapax_status put_greeting(struct hapax_buf *buf, const struct hx_redis_place *place)
{
	bool has_user = place->user[0] != '\0';
	enum hapax_status status = HAPAX_OK;
	struct hapax_buf channel;

	if (has_user || place->password[0] != '\0') {
		status = hx_resp_put_array(buf, has_user ? 3 : 2);
		if (status == HAPAX_OK)
			status = hx_resp_put_text(buf, "AUTH");
		if (status == HAPAX_OK && has_user)
			status = hx_resp_put_text(buf, place->user);
		if (status == HAPAX_OK)
			status = hx_resp_put_text(buf, place->password);
	}
	hx_buf_init(&channel, 1024);
	if (status == HAPAX_OK && place->is_cluster)
		status = put_pattern(&channel, place->prefix);
	else if (status == HAPAX_OK)
		status = hx_buf_printf(&channel, "%s:events", place->prefix);
	if (status == HAPAX_OK)
		status = hx_resp_put_array(buf, 2);
	if (status == HAPAX_OK)
		status = hx_resp_put_text(buf, place->is_cluster ? "PSUBSCRIBE" : "SUBSCRIBE");
	if (status == HAPAX_OK)
		status = hx_resp_put_bulk(buf, hx_bytes(channel.data, channel.size));
	hx_buf_done(&channel);
	return status;
}

/* The socket is the connection's, or closed. */
static enum hapax_status open_connection(struct hx_redis_subscriber *subscriber, int fd)
{
	struct hx_redis_client *client = subscriber->client;
	const struct hx_connection_limits limits = {
		.input_size_max = INPUT_SIZE_MAX,
		.output_size_max = MESSAGE_SIZE_MAX,
		.stall_ms_max = client->options->timeout_ms,
	};
	struct hapax_error err;
	struct hx_tls *tls = NULL;
	enum hapax_status status = HAPAX_OK;

	if (client->tls != NULL)
		status = hx_tls_new(client->tls, subscriber->dial.endpoint.host, &tls, &err);
	if (status == HAPAX_OK) {
		subscriber->connection.context = subscriber;
		status = hx_connection_open(
			&subscriber->connection, &client->reactor, fd, tls, &connection_ops,
			&limits, &err);
		if (status != HAPAX_OK)
			hx_tls_free(tls);
	}
	if (status != HAPAX_OK)
		client->net->ops->close(client->net->context, fd);
	return status;
}

static void on_dialled(struct hx_dial *dial, int fd, const struct hapax_error *err)
{
	struct hx_redis_subscriber *subscriber = dial->context;
	struct hx_redis_client *client = subscriber->client;

	(void)err;
	if (fd >= 0 && client->is_stopping) {
		client->net->ops->close(client->net->context, fd);
		return;
	}
	if (fd < 0 || open_connection(subscriber, fd) != HAPAX_OK) {
		connect_later(subscriber);
		return;
	}
	if (!dial->endpoint.is_unix)
		(void)client->net->ops->set_option(client->net->context, fd, HX_NET_KEEPALIVE, 30);
	memset(&subscriber->scan, 0, sizeof(subscriber->scan));
	hx_buf_clear(&client->output);
	if (put_greeting(&client->output, client->place) != HAPAX_OK ||
	    hx_connection_write(
		    &subscriber->connection, client->output.data, client->output.size) != HAPAX_OK)
		hx_connection_close(&subscriber->connection, NULL);
}

static void on_retry(struct hx_timer *timer)
{
	connect_now(timer->context);
}

static void on_want(struct hx_task *task)
{
	struct hx_redis_subscriber *subscriber = task->context;

	if (!subscriber->is_wanted && !subscriber->client->is_stopping) {
		subscriber->is_wanted = true;
		connect_now(subscriber);
	}
}

void hx_redis_subscriber_want(struct hx_redis_subscriber *subscriber)
{
	hx_reactor_post(&subscriber->client->reactor, &subscriber->want);
}

static void on_mute(struct hx_task *task)
{
	struct hx_redis_subscriber *subscriber = task->context;

	subscriber->is_muted = true;
	hx_event_set(&subscriber->muted);
}

void hx_redis_subscriber_mute(struct hx_redis_subscriber *subscriber)
{
	hx_event_init(&subscriber->muted);
	hx_reactor_post(&subscriber->client->reactor, &subscriber->mute);
	hx_event_wait(&subscriber->muted);
}

bool hx_redis_subscriber_stop(struct hx_redis_subscriber *subscriber)
{
	hx_timer_clear(&subscriber->client->reactor.timers, &subscriber->retry);
	if (subscriber->connection.state == HX_CONNECTION_NONE)
		return false;
	hx_connection_close(&subscriber->connection, NULL);
	return true;
}

enum hapax_status hx_redis_subscriber_init(
	struct hx_redis_subscriber *subscriber, struct hx_redis_client *client)
{
	enum hapax_status status;

	subscriber->client = client;
	subscriber->want = (struct hx_task){.fn = on_want, .context = subscriber};
	subscriber->mute = (struct hx_task){.fn = on_mute, .context = subscriber};
	status = hx_dial_init(
		&subscriber->dial, &client->reactor, &client->resolver, on_dialled, subscriber);
	if (status == HAPAX_OK)
		status = hx_timer_introduce(
			&client->reactor.timers, &subscriber->retry, on_retry, subscriber);
	return status;
}

void hx_redis_subscriber_done(struct hx_redis_subscriber *subscriber)
{
	if (subscriber->client == NULL)
		return;
	hx_dial_done(&subscriber->dial);
	hx_timer_retire(&subscriber->client->reactor.timers, &subscriber->retry);
}
