/* SPDX-License-Identifier: Apache-2.0 */
/*
 * producer.c - publishes dead letters and diverted duplicates to another topic.
 *
 * The first of them creates the producer. It is idempotent: a retry of librdkafka after a lost
 * answer creates no duplicate. A message keeps its key and its time.
 */
#include "broker/kafka_client.h"
#include "source/kafka/kafka_private.h"

enum { CLOSE_MS = 5000 };

static void on_delivered(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
	struct hapax_publication *publication = message->_private;

	(void)rk;
	(void)opaque;
	if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR)
		publication->done(publication, HAPAX_OK, "");
	else
		publication->done(
			publication, HAPAX_ERR_UNAVAILABLE, rd_kafka_err2str(message->err));
}

static bool connect_producer(struct hx_kafka_source *source)
{
	struct hapax_error err;
	rd_kafka_conf_t *conf;

	if (source->producer != NULL)
		return true;
	conf = hx_kafka_conf(source, HX_KAFKA_PRODUCER, &err);
	if (conf == NULL)
		return false;
	rd_kafka_conf_set_dr_msg_cb(conf, on_delivered);
	source->producer = hx_kafka_client_new(RD_KAFKA_PRODUCER, conf, &err);
	if (source->producer == NULL)
		return false;
	source->producer_queue = rd_kafka_queue_get_main(source->producer);
	rd_kafka_queue_cb_event_enable(source->producer_queue, hx_kafka_on_event, source);
	return true;
}

static rd_kafka_headers_t *headers_of(const struct hapax_publication *publication)
{
	rd_kafka_headers_t *headers = rd_kafka_headers_new(publication->header_count + 1);

	for (size_t i = 0; i < publication->header_count; i++) {
		const struct hapax_field *field = &publication->headers[i];

		(void)rd_kafka_header_add(
			headers, field->name.data, (ssize_t)field->name.size, field->value.data,
			field->value.data == NULL ? 0 : (ssize_t)field->value.size);
	}
	return headers;
}

static bool produce(struct hx_kafka_source *source, struct hapax_publication *publication)
{
	const struct hapax_message *message = publication->message;
	const struct hx_kafka_record record = {
		.topic_name = publication->target,
		.key = message->key,
		.value = message->data,
		.is_tombstone = (message->flags & HAPAX_MESSAGE_TOMBSTONE) != 0,
		.time_ms = message->time_ms == HAPAX_TIME_UNKNOWN ? 0 : message->time_ms,
		.opaque = publication,
	};

	return hx_kafka_client_produce(source->producer, &record, headers_of(publication)) ==
		RD_KAFKA_RESP_ERR_NO_ERROR;
}

void hx_kafka_publish(struct hapax_source *base, struct hapax_publication *publication)
{
	struct hx_kafka_source *source = (struct hx_kafka_source *)base;

	if (!source->is_hurried && connect_producer(source) && produce(source, publication))
		return;
	publication->private_next = source->refused;
	source->refused = publication;
	base->hooks.wake(base->hooks.context);
}

void hx_kafka_hurry(struct hapax_source *base)
{
	struct hx_kafka_source *source = (struct hx_kafka_source *)base;

	source->is_hurried = true;
	/* Each is reported as not arrived, whether it arrived or not. */
	if (source->producer != NULL)
		(void)rd_kafka_purge(
			source->producer,
			RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
				RD_KAFKA_PURGE_F_NON_BLOCKING);
}

void hx_kafka_producer_tick(struct hx_kafka_source *source)
{
	struct hapax_publication *refused = source->refused;

	source->refused = NULL;
	while (refused != NULL) {
		struct hapax_publication *publication = refused;

		refused = refused->private_next;
		publication->done(
			publication, HAPAX_ERR_LIMIT, "the queue of dead letters is full");
	}
	if (source->producer != NULL)
		(void)rd_kafka_poll(source->producer, 0);
}

void hx_kafka_producer_close(struct hx_kafka_source *source)
{
	if (source->producer == NULL)
		return;
	rd_kafka_queue_cb_event_enable(source->producer_queue, NULL, NULL);
	rd_kafka_queue_destroy(source->producer_queue);
	(void)rd_kafka_flush(source->producer, CLOSE_MS);
	rd_kafka_destroy(source->producer);
	source->producer = NULL;
}
