/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink.c - opens the sink of a URL. A new sink adds a line here.
 */
#include "outbox/sink.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/utf8.h"

#if HX_HAVE_KAFKA
#define KAFKA &hx_sink_kafka_ops
#else
#define KAFKA NULL
#endif
#if HX_HAVE_RABBITMQ
#define RABBITMQ &hx_sink_rabbitmq_ops
#else
#define RABBITMQ NULL
#endif

static const struct {
	const char *begin;             /* of the URL */
	const struct hx_sink_ops *ops; /* NULL: not in this build */
	const char *feature;
} sinks[] = {
	{"amqp://", RABBITMQ, "RabbitMQ (librabbitmq)"},
	{"amqps://", RABBITMQ, "RabbitMQ (librabbitmq)"},
	{"http://", &hx_sink_http_ops, NULL},
	{"https://", &hx_sink_http_ops, NULL},
	{"kafka://", KAFKA, "Kafka (librdkafka)"},
	{"redis://", &hx_sink_redis_ops, NULL},
	{"rediss://", &hx_sink_redis_ops, NULL},
	{"redis+cluster://", &hx_sink_redis_ops, NULL},
	{"rediss+cluster://", &hx_sink_redis_ops, NULL},
	{"redis+unix:", &hx_sink_redis_ops, NULL},
};

static enum hapax_status open_with(
	const struct hx_sink_ops *ops, const char *url, const char *source,
	struct hx_sink **ret_sink, struct hapax_error *err)
{
	struct hx_sink *sink = hx_alloc_zero(1, ops->size);
	enum hapax_status status;

	if (sink == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for a sink");
	sink->ops = ops;
	hx_outbox_message_init(&sink->message, ops->prefix, source);
	status = ops->open(sink, url, err);
	if (status != HAPAX_OK)
		hx_sink_close(sink);
	else
		*ret_sink = sink;
	return status;
}

void hx_sink_close(struct hx_sink *sink)
{
	sink->ops->close(sink);
	hx_outbox_message_done(&sink->message);
	hx_free(sink);
}

enum hapax_status hx_sink_open(
	const char *url, const char *source, struct hx_sink **ret_sink, struct hapax_error *err)
{
	size_t size = strcspn(url, ":");

	for (size_t i = 0; i < HX_COUNT(sinks); i++) {
		/* A sink that a build may lack has a name for the message about it. */
		assert(sinks[i].ops != NULL || sinks[i].feature != NULL);
		if (strncmp(url, sinks[i].begin, strlen(sinks[i].begin)) != 0)
			continue;
		if (sinks[i].ops != NULL)
			return open_with(sinks[i].ops, url, source, ret_sink, err);
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0, "%s is not built in", sinks[i].feature);
	}
	return hx_error_set(
		err, HAPAX_ERR_UNSUPPORTED, 0,
		"unknown sink '%.*s'; use amqp://HOST/VHOST, kafka://HOST, redis://HOST or "
		"http://HOST/PATH",
		(int)(size < 32 ? size : 32), url);
}

/*
 * A broker's message may contain any bytes, and a cut may split a character. A database that
 * refused such text would never mark the row or the rest of its batch.
 */
static void make_text(char *text)
{
	size_t left = strlen(text);

	while (left > 0) {
		uint32_t code = 0;
		size_t size = hx_utf8_size((struct hapax_bytes){text, left}, &code);

		if (size == 0 || hx_utf8_is_control(code)) {
			size = size == 0 ? 1 : size;
			memset(text, '?', size);
		}
		assert(size <= left);
		text += size;
		left -= size;
	}
	assert(*text == '\0');
}

void hx_sink_decide(
	struct hx_outbox_row *row, enum hx_outbox_outcome outcome, const char *format, ...)
{
	va_list arguments;

	assert(outcome != HX_OUTBOX_SENT);
	assert(outcome <= HX_OUTBOX_REFUSED);
	/* A row that the broker confirmed stays sent. */
	assert(row->outcome != HX_OUTBOX_SENT);
	row->outcome = outcome;
	va_start(arguments, format);
	(void)vsnprintf(row->error, sizeof(row->error), format, arguments);
	va_end(arguments);
	make_text(row->error);
}

bool hx_sink_read(struct hx_sink *sink, struct hx_outbox_row *row)
{
	assert(row->outcome == HX_OUTBOX_UNDECIDED);
	/* The relay has refused what no sink can publish. */
	assert(row->payload.size <= HX_OUTBOX_PAYLOAD_SIZE_MAX);
	if (hx_outbox_message_read(&sink->message, row))
		return true;
	hx_sink_decide(
		row, HX_OUTBOX_REFUSED, "its headers must be a JSON object with at most %d strings",
		HAPAX_OUTBOX_HEADERS_MAX);
	return false;
}
