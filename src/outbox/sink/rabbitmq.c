/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rabbitmq.c - the sink amqp://: persistent messages, confirmed by the broker one by one.
 *
 *  (1) A row is SENT when its ack arrives and the message was not returned before. A quorum queue
 *      sends the ack when a majority has written the message.
 *  (2) A message that no queue accepts is returned before its ack; its row is REFUSED.
 *  (3) A broker that closes the channel does not name the message. Undecided rows are therefore
 *      published again, one by one; a row that causes it alone is REFUSED.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "broker/rabbit.h"
#include "outbox/sink.h"

enum {
	CONNECT_MS = 10 * 1000,
	READ_EVERY = 64, /* messages between reads of the broker's answers */
};

_Static_assert(
	(int)HX_OUTBOX_FIELDS_MAX <= (int)HX_RABBIT_HEADERS_MAX, "a message has room for all");

struct rabbitmq_sink {
	struct hx_sink base;
	struct hx_rabbit rabbit;
	struct hx_rabbit_place place;
	/* The rows of this call, and the message of each. */
	struct hx_outbox_row **rows;
	size_t row_count;
	struct hx_rabbit_sent sent[HX_OUTBOX_BATCH_MAX];
	bool is_closed; /* the broker closed the channel, and why */
	int closed_code;
	char closed_text[HX_RABBIT_NAME_SIZE];
};

static struct rabbitmq_sink *rabbitmq_of(struct hx_sink *sink)
{
	assert(sink->ops == &hx_sink_rabbitmq_ops);
	return (struct rabbitmq_sink *)sink;
}

static void sink_close(struct hx_sink *base)
{
	struct rabbitmq_sink *sink = rabbitmq_of(base);

	hx_rabbit_close(&sink->rabbit);
	explicit_bzero(&sink->place, sizeof(sink->place));
}

static enum hapax_status sink_open(struct hx_sink *base, const char *url, struct hapax_error *err)
{
	return hx_rabbit_place_parse(url, &rabbitmq_of(base)->place, err);
}

/* Connect unless connected. */
static enum hapax_status connect_within(
	struct rabbitmq_sink *sink, int64_t wait_ms, struct hapax_error *err)
{
	enum hapax_status status;

	if (hx_rabbit_is_open(&sink->rabbit))
		return HAPAX_OK;
	if (wait_ms <= 0)
		return hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0, "could not connect to RabbitMQ in time");
	status = hx_rabbit_open(
		&sink->rabbit, &sink->place, wait_ms < CONNECT_MS ? wait_ms : CONNECT_MS, err);
	if (status == HAPAX_OK)
		status = hx_rabbit_confirm(&sink->rabbit, err);
	if (status != HAPAX_OK)
		hx_rabbit_close(&sink->rabbit);
	assert((status == HAPAX_OK) == hx_rabbit_is_open(&sink->rabbit));
	/* A new channel has no message without an answer. */
	assert(status != HAPAX_OK || sink->rabbit.sent == NULL);
	return status;
}

static enum hapax_status sink_connect(struct hx_sink *base, struct hapax_error *err)
{
	return connect_within(rabbitmq_of(base), CONNECT_MS, err);
}

/* ------------------------------------------------------------------ confirms */

static void take_confirm(struct rabbitmq_sink *sink, const struct hx_rabbit_event *event)
{
	const struct hx_rabbit_sent *sent;

	while ((sent = hx_rabbit_take_sent(&sink->rabbit, event->tag, event->is_multiple)) !=
	       NULL) {
		struct hx_outbox_row *row = sent->owner;

		assert(sent >= sink->sent);
		assert(sent < sink->sent + sink->row_count);
		assert(row == sink->rows[sent - sink->sent]);
		assert(row->is_awaited);
		/* A returned message is already refused. */
		if (row->outcome != HX_OUTBOX_UNDECIDED)
			continue;
		if (event->happening == HX_RABBIT_ACK)
			row->outcome = HX_OUTBOX_SENT;
		else
			hx_sink_decide(
				row, HX_OUTBOX_FAILED, "RabbitMQ rejected the message (nack)");
	}
}

static void take_returned(struct rabbitmq_sink *sink, const struct hx_rabbit_event *event)
{
	size_t size = strlen(event->message_id);

	assert(event->happening == HX_RABBIT_RETURNED);
	for (size_t i = 0; i < sink->row_count; i++) {
		struct hx_outbox_row *row = sink->rows[i];

		if (row->outcome != HX_OUTBOX_UNDECIDED || !row->is_awaited ||
		    row->id.size != size || memcmp(row->id.data, event->message_id, size) != 0)
			continue;
		hx_sink_decide(
			row, HX_OUTBOX_REFUSED,
			"no queue is bound: exchange '%.60s', routing key '%.*s' (%s); declare "
			"and bind a queue, then retry",
			sink->place.exchange, (int)(row->topic.size < 60 ? row->topic.size : 60),
			(const char *)row->topic.data, event->text);
	}
}

static void rabbitmq_take(struct rabbitmq_sink *sink, const struct hx_rabbit_event *event)
{
	switch (event->happening) {
	case HX_RABBIT_NOTHING:
	case HX_RABBIT_BLOCKED:
	case HX_RABBIT_UNBLOCKED: break;
	case HX_RABBIT_ACK:
	case HX_RABBIT_NACK: take_confirm(sink, event); break;
	case HX_RABBIT_RETURNED: take_returned(sink, event); break;
	case HX_RABBIT_REFUSED:
		assert(!sink->is_closed);
		sink->is_closed = true;
		sink->closed_code = event->code;
		(void)snprintf(sink->closed_text, sizeof(sink->closed_text), "%s", event->text);
		break;
	}
}

/*
 * Read the answers that have arrived. With a deadline, wait until all rows are decided and the
 * broker accepts messages again.
 */
static enum hapax_status read_confirms(
	struct rabbitmq_sink *sink, int64_t deadline_ns, struct hapax_error *err)
{
	while (!sink->is_closed) {
		int64_t left_ms = 0;
		struct hx_rabbit_event event;
		enum hapax_status status;

		if (deadline_ns > 0) {
			if (sink->rabbit.sent == NULL && !sink->rabbit.is_blocked)
				return HAPAX_OK;
			left_ms = (deadline_ns - hx_clock_mono_ns()) / HX_NS_PER_MS;
			if (left_ms <= 0)
				return hx_error_set(
					err, HAPAX_ERR_UNAVAILABLE, 0, "%s",
					sink->rabbit.is_blocked
						? "RabbitMQ accepts no messages: it is "
						  "low on memory or disk"
						: "RabbitMQ did not confirm in time");
		}
		status = hx_rabbit_next(&sink->rabbit, left_ms, &event, err);
		if (status != HAPAX_OK)
			return status;
		if (event.happening == HX_RABBIT_NOTHING && deadline_ns == 0)
			return HAPAX_OK;
		rabbitmq_take(sink, &event);
	}
	return HAPAX_OK;
}

/* ------------------------------------------------------------------ publish */

/* Send a row. INVALID: it is refused; continue with the next. */
static enum hapax_status send_row(struct rabbitmq_sink *sink, size_t index, struct hapax_error *err)
{
	struct hx_outbox_row *row = sink->rows[index];
	struct hx_outbox_message *fields = &sink->base.message;
	struct hx_rabbit_message message = {
		.exchange = sink->place.exchange,
		.routing_key = row->topic,
		.message_id = row->id,
		.content_type = row->content_type,
		.type = row->type,
		.time_ms = row->created_ms,
		.body = row->payload,
	};
	struct hapax_error why;
	enum hapax_status status;

	assert(index < sink->row_count);
	assert(row->outcome == HX_OUTBOX_UNDECIDED);
	assert(!row->is_awaited);
	if (!hx_sink_read(&sink->base, row))
		return HAPAX_ERR_INVALID;
	sink->sent[index].owner = row;
	message.headers = fields->fields;
	message.header_count = fields->count;
	status = hx_rabbit_publish(&sink->rabbit, &message, &sink->sent[index], &why);
	if (status == HAPAX_ERR_INVALID)
		hx_sink_decide(row, HX_OUTBOX_REFUSED, "%s", why.message);
	else if (status != HAPAX_OK && err != NULL)
		*err = why;
	assert((status == HAPAX_ERR_INVALID) == (row->outcome == HX_OUTBOX_REFUSED));
	return status;
}

/* Declare queues before the first message: a call in between would swallow confirms. */
static enum hapax_status declare_all(
	struct rabbitmq_sink *sink, struct hx_outbox_row **rows, size_t count,
	struct hapax_error *err)
{
	const struct hx_outbox_row *refused = NULL;

	/* A message of this call would lose its confirm. */
	assert(sink->rabbit.sent == NULL);
	if (!sink->place.declares || sink->place.exchange[0] != '\0')
		return HAPAX_OK;
	for (size_t i = 0; i < count; i++) {
		struct hapax_error why;
		enum hapax_status status;

		/* A refusal costs a connection: do not ask again for the same topic. */
		if (refused != NULL && hx_bytes_equal(refused->topic, rows[i]->topic)) {
			hx_sink_decide(rows[i], HX_OUTBOX_REFUSED, "%s", refused->error);
			continue;
		}
		status = hx_rabbit_declare_queue(&sink->rabbit, rows[i]->topic, &why);
		if (status == HAPAX_ERR_INVALID) {
			/* This queue is unusable; the others need a new channel. */
			refused = rows[i];
			hx_sink_decide(rows[i], HX_OUTBOX_REFUSED, "%.*s", 200, why.message);
			hx_rabbit_close(&sink->rabbit);
			status = sink_connect(&sink->base, err);
		} else if (status != HAPAX_OK && err != NULL) {
			*err = why;
		}
		if (status != HAPAX_OK)
			return status;
	}
	return HAPAX_OK;
}

static enum hapax_status send_all(
	struct rabbitmq_sink *sink, int64_t deadline_ns, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	for (size_t i = 0; i < sink->row_count && status == HAPAX_OK && !sink->is_closed; i++) {
		if (sink->rows[i]->outcome != HX_OUTBOX_UNDECIDED)
			continue;
		status = send_row(sink, i, err);
		if (status == HAPAX_ERR_INVALID) {
			status = HAPAX_OK;
			continue;
		}
		if (status != HAPAX_OK)
			break;
		assert(hx_rabbit_is_open(&sink->rabbit));
		sink->rows[i]->is_awaited = true;
		if (sink->rabbit.published % READ_EVERY == 0)
			status = read_confirms(sink, 0, err);
		if (status == HAPAX_OK && sink->rabbit.is_blocked)
			status = read_confirms(sink, deadline_ns, err);
	}
	return status;
}

/* Publish rows together. Also OK if the broker closed the channel: is_closed is then set. */
static enum hapax_status publish_window(
	struct rabbitmq_sink *sink, struct hx_outbox_row **rows, size_t count, int64_t deadline_ns,
	struct hapax_error *err)
{
	enum hapax_status status =
		connect_within(sink, (deadline_ns - hx_clock_mono_ns()) / HX_NS_PER_MS, err);

	assert(count > 0);
	assert(count <= HX_OUTBOX_BATCH_MAX);
	sink->is_closed = false;
	sink->rows = rows;
	sink->row_count = count;
	if (status == HAPAX_OK)
		status = declare_all(sink, rows, count, err);
	if (status == HAPAX_OK)
		status = send_all(sink, deadline_ns, err);
	if (status == HAPAX_OK)
		status = read_confirms(sink, deadline_ns, err);
	if (status != HAPAX_OK || sink->is_closed)
		hx_rabbit_close(&sink->rabbit);
	/* The rows of this call go away: no open channel may point to them. */
	assert(!hx_rabbit_is_open(&sink->rabbit) || sink->rabbit.sent == NULL);
	return status;
}

static enum hapax_status publish_alone(
	struct rabbitmq_sink *sink, struct hx_outbox_row *row, int64_t deadline_ns,
	struct hapax_error *err)
{
	enum hapax_status status = publish_window(sink, &row, 1, deadline_ns, err);

	/* The broker may close the channel after it has confirmed the message. */
	if (status == HAPAX_OK && sink->is_closed && row->outcome == HX_OUTBOX_UNDECIDED)
		hx_sink_decide(
			row, HX_OUTBOX_REFUSED, "RabbitMQ rejected the event: %s (%d)",
			sink->closed_text, sink->closed_code);
	assert(status != HAPAX_OK || row->outcome != HX_OUTBOX_UNDECIDED);
	return status;
}

static enum hapax_status sink_publish(
	struct hx_sink *base, struct hx_outbox_row **rows, size_t count, int64_t deadline_ns,
	struct hapax_error *err)
{
	struct rabbitmq_sink *sink = rabbitmq_of(base);
	enum hapax_status status = publish_window(sink, rows, count, deadline_ns, err);

	if (status != HAPAX_OK || !sink->is_closed)
		return status;
	for (size_t i = 0; i < count; i++)
		rows[i]->is_awaited = false;
	for (size_t i = 0; i < count && status == HAPAX_OK; i++)
		if (rows[i]->outcome == HX_OUTBOX_UNDECIDED)
			status = publish_alone(sink, rows[i], deadline_ns, err);
	return status;
}

static enum hapax_status sink_keep_alive(struct hx_sink *base, struct hapax_error *err)
{
	struct rabbitmq_sink *sink = rabbitmq_of(base);
	struct hx_rabbit_event event;
	enum hapax_status status = sink_connect(base, err);

	if (status == HAPAX_OK)
		status = hx_rabbit_next(&sink->rabbit, 0, &event, err);
	if (status != HAPAX_OK || event.happening == HX_RABBIT_REFUSED)
		hx_rabbit_close(&sink->rabbit);
	return status;
}

const struct hx_sink_ops hx_sink_rabbitmq_ops = {
	.size = sizeof(struct rabbitmq_sink),
	.prefix = "cloudEvents_",
	.open = sink_open,
	.connect = sink_connect,
	.publish = sink_publish,
	.keep_alive = sink_keep_alive,
	.close = sink_close,
};
