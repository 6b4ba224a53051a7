/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subscriber.c - a connection on which the server reports the ends of records.
 */
#include "store/redis/subscriber.h"

#include <string.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/time.h"
#include "store/redis/redis_client.h"
#include "store/redis/redis_member.h"

enum {
	RETRY_MS = 500,

	/* A state, a record's name, and little more. */
	MESSAGE_SIZE_MAX = 16 * 1024,
	INPUT_SIZE_MAX = 4 * 1024 * 1024,
};

static void connect_now(struct hx_redis_subscriber *subscriber)
{
	struct hx_redis_client *client = subscriber->client;
	const struct hx_redis_link *link = client->links[subscriber->next % client->link_count];

	hx_redis_connection_open(
		&subscriber->connection, &link->endpoint,
		hx_reactor_now_ns(&client->reactor) + client->options->timeout_ms * HX_NS_PER_MS);
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

/* ["message", channel, text] or ["pmessage", pattern, channel, text]; others are ignored. */
static void subscriber_take(struct hx_redis_subscriber *subscriber, struct hapax_bytes message)
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

static size_t reply_size_max(struct hx_redis_connection *connection)
{
	(void)connection;
	return MESSAGE_SIZE_MAX;
}

static bool on_message(struct hx_redis_connection *connection, struct hapax_bytes message)
{
	if (*(const char *)message.data == HX_RESP_ERROR)
		return false;
	if (connection->state == HX_REDIS_CONNECTION_GREETING)
		hx_redis_connection_ready(connection);
	connection->failures = 0;
	subscriber_take(connection->context, message);
	return true;
}

/* ---------------------------------------------------------------- connecting */

static bool on_closed(struct hx_redis_connection *connection, const struct hapax_error *why)
{
	struct hx_redis_subscriber *subscriber = connection->context;

	(void)why;
	subscriber->next++;
	if (connection->is_closing)
		hx_redis_client_stopped(subscriber->client);
	return true;
}

static void on_idle(struct hx_redis_connection *connection)
{
	connect_now(connection->context);
}

/* The pattern of all partitions, with special characters escaped. */
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

static enum hapax_status put_subscribe(struct hapax_buf *buf, const struct hx_redis_place *place)
{
	struct hx_resp_words command;
	enum hapax_status status;
	struct hapax_buf channel;

	hx_buf_init(&channel, 1024);
	if (place->is_cluster)
		status = put_pattern(&channel, place->prefix);
	else
		status = hx_buf_printf(&channel, "%s:events", place->prefix);
	hx_resp_words_begin(&command, buf, 2);
	hx_resp_word_text(&command, place->is_cluster ? "PSUBSCRIBE" : "SUBSCRIBE");
	hx_resp_word(&command, hx_bytes(channel.data, channel.size));
	hx_buf_done(&channel);
	return status == HAPAX_OK ? command.status : status;
}

static enum hapax_status greet(struct hx_redis_connection *connection)
{
	struct hx_redis_subscriber *subscriber = connection->context;
	struct hapax_buf *output = &subscriber->client->output;
	enum hapax_status status;

	hx_buf_clear(output);
	status = put_subscribe(output, subscriber->client->place);
	if (status != HAPAX_OK)
		return status;
	return hx_connection_write(&connection->stream, output->data, output->size);
}

static const struct hx_redis_connection_ops connection_ops = {
	.greet = greet,
	.reply_size_max = reply_size_max,
	.reply = on_message,
	.closed = on_closed,
	.idle = on_idle,
};

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

enum hapax_status hx_redis_subscriber_init(
	struct hx_redis_subscriber *subscriber, struct hx_redis_client *client)
{
	const struct hx_redis_connection_options options = {
		.ops = &connection_ops,
		.reactor = &client->reactor,
		.resolver = &client->resolver,
		.tls = client->tls,
		.place = client->place,
		.limits.input_size_max = INPUT_SIZE_MAX,
		.limits.output_size_max = MESSAGE_SIZE_MAX,
		.limits.stall_ms_max = client->options->timeout_ms,
		.retry_ms_first = RETRY_MS,
		.retry_ms_last = RETRY_MS,
	};

	subscriber->client = client;
	subscriber->want = (struct hx_task){.fn = on_want, .context = subscriber};
	subscriber->mute = (struct hx_task){.fn = on_mute, .context = subscriber};
	return hx_redis_connection_init(&subscriber->connection, &options, subscriber);
}

void hx_redis_subscriber_done(struct hx_redis_subscriber *subscriber)
{
	hx_redis_connection_done(&subscriber->connection);
}
