/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka.c - the sink kafka://: an idempotent producer with a delivery report per message.
 *
 *  (1) A row is SENT when its report says so. The producer waits for all in-sync replicas.
 *  (2) A broker that refuses a batch (too large, an invalid record) does not name the message. Its
 *      rows are therefore published again, one by one; a row that is refused alone is REFUSED.
 *  (3) The sink asks for a topic before its first message: librdkafka would hold messages to a
 *      missing topic until they time out. Rows without a topic are REFUSED.
 *  (4) A row without a report at the deadline stays undecided. The sink then drops the producer, so
 *      that no message goes out later without the relay's knowledge.
 *
 * The key of a message is the ordering key, with the partitioner of the Java clients. An empty
 * payload is an empty value, not a tombstone.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "broker/kafka_client.h"
#include "outbox/sink.h"
#include "outbox/sink/kafka_target.h"

enum {
	CONNECT_MS = 10 * 1000,
	TOPIC_MS = 5 * 1000,
	SLICE_MS = 100, /* how often to check whether to keep waiting */
	DOWN_MS = 1000, /* stop waiting after so long without a broker */
	TOPICS_MAX = 64,
	ABSENT_MS = 1000, /* how long a topic counts as missing */
	TROUBLE_SIZE = 200,
};

struct topic {
	char name[HX_KAFKA_TOPIC_SIZE];
	rd_kafka_topic_t *handle; /* NULL: missing; code says why */
	rd_kafka_resp_err_t code;
	int64_t asked_ns;
};

struct kafka_sink {
	struct hx_sink base;
	struct hx_kafka_target target;
	rd_kafka_t *producer; /* NULL: not connected */
	struct topic topics[TOPICS_MAX];
	size_t topic_count;
	size_t topic_next; /* the next to be replaced */

	size_t undecided; /* messages that librdkafka holds */
	bool is_alone;    /* one row at a time */
	bool needs_alone; /* a batch was refused */
	bool is_lost;     /* some rows will get no report */
	bool is_broken;   /* this producer is unusable */
	bool is_dropping; /* ignore reports */
	int64_t down_ns;  /* since when no broker is up; 0: one is */
	char trouble[TROUBLE_SIZE];
};

/* Properties of the URL override these. */
static const struct hx_kafka_property defaults[] = {
	{"client.id", "hapax"},
	{"linger.ms", "5"},
	/* High, so that the broker's limit decides. */
	{"message.max.bytes", "33554432"},
	{"message.timeout.ms", "60000"},
	{"allow.auto.create.topics", "false"},
	{"topic.metadata.propagation.max.ms", "5000"},
	{"reconnect.backoff.max.ms", "1000"},
	{"socket.keepalive.enable", "true"},
	{"partitioner", "murmur2_random"},
	{NULL, NULL},
};

static struct kafka_sink *kafka_of(struct hx_sink *sink)
{
	assert(sink->ops == &hx_sink_kafka_ops);
	return (struct kafka_sink *)sink;
}

/* What holds between two calls of librdkafka. */
static void kafka_assert(const struct kafka_sink *sink)
{
	assert(sink->topic_count <= TOPICS_MAX);
	/* Only a full table replaces topics. */
	assert(sink->topic_next == 0 || sink->topic_count == TOPICS_MAX);
	assert(sink->undecided <= HX_OUTBOX_BATCH_MAX);
	/* Messages and handles of topics belong to a producer. */
	assert(sink->producer != NULL || sink->undecided == 0);
	assert(sink->producer != NULL || sink->topic_count == 0);
	assert(memchr(sink->trouble, '\0', sizeof(sink->trouble)) != NULL);
}

/* ------------------------------------------------------------------ reports */

static void lose(struct kafka_sink *sink, const char *why)
{
	if (!sink->is_lost && !sink->is_broken && why != sink->trouble)
		(void)snprintf(sink->trouble, sizeof(sink->trouble), "%s", why);
	sink->is_lost = true;
}

static void kafka_refuse(struct hx_outbox_row *row, rd_kafka_resp_err_t code)
{
	hx_sink_decide(
		row, HX_OUTBOX_REFUSED, "Kafka rejected the event (%zu bytes): %.150s",
		row->payload.size, rd_kafka_err2str(code));
}

static void refuse_topic(struct hx_outbox_row *row, const char *topic, rd_kafka_resp_err_t code)
{
	hx_sink_decide(
		row, HX_OUTBOX_REFUSED, "topic '%.80s': %.80s; create it, then retry", topic,
		rd_kafka_err2str(code));
}

/* The next row asks for the topic again. */
static void forget_topic(struct kafka_sink *sink, const char *name)
{
	for (size_t i = 0; i < sink->topic_count; i++)
		if (strcmp(sink->topics[i].name, name) == 0) {
			if (sink->topics[i].handle != NULL)
				rd_kafka_topic_destroy(sink->topics[i].handle);
			sink->topics[i].handle = NULL;
			sink->topics[i].asked_ns = 0;
		}
}

static void judge(
	struct kafka_sink *sink, struct hx_outbox_row *row, const rd_kafka_message_t *message)
{
	/* Each message has one report. */
	assert(row->outcome == HX_OUTBOX_UNDECIDED);
	assert(!row->is_awaited);
	switch ((int)message->err) {
	case RD_KAFKA_RESP_ERR_NO_ERROR: row->outcome = HX_OUTBOX_SENT; break;

	case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
	case RD_KAFKA_RESP_ERR_INVALID_MSG:
	case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
	case RD_KAFKA_RESP_ERR_INVALID_RECORD:
	case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
	case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
	case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
	case RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT:
		if (sink->is_alone)
			kafka_refuse(row, message->err);
		sink->needs_alone = true;
		break;

	case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
	case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
	case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
	case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
		refuse_topic(row, rd_kafka_topic_name(message->rkt), message->err);
		forget_topic(sink, rd_kafka_topic_name(message->rkt));
		break;

	case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
		hx_sink_decide(row, HX_OUTBOX_FAILED, "%.150s", rd_kafka_err2str(message->err));
		break;

	/* Any other error is an outage, or a conflict between brokers and producer. */
	default: lose(sink, rd_kafka_err2str(message->err)); break;
	}
}

static void on_delivered(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
	struct kafka_sink *sink = opaque;
	struct hx_outbox_row *row = message->_private;

	(void)rk;
	if (sink->is_dropping)
		return;
	assert(sink->undecided > 0);
	assert(row->is_awaited);
	sink->undecided--;
	sink->down_ns = 0;
	row->is_awaited = false;
	judge(sink, row, message);
}

static void on_error(rd_kafka_t *rk, int code, const char *reason, void *opaque)
{
	struct kafka_sink *sink = opaque;

	if (sink->is_dropping)
		return;
	/* hx_kafka_client_new() may report before it returns the producer. */
	assert(sink->producer == NULL || sink->producer == rk);
	if (code == RD_KAFKA_RESP_ERR__FATAL) {
		sink->is_broken = true;
		(void)rd_kafka_fatal_error(rk, sink->trouble, sizeof(sink->trouble));
	} else if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
		if (sink->down_ns == 0)
			sink->down_ns = hx_clock_mono_ns();
	} else if (!sink->is_broken) {
		(void)snprintf(sink->trouble, sizeof(sink->trouble), "%s", reason);
	}
}

/* ------------------------------------------------------------------ producer */

/* NULL: err says why. Owned by the caller. */
static rd_kafka_conf_t *make_conf(struct kafka_sink *sink, struct hapax_error *err)
{
	const struct hx_kafka_property *lists[] = {defaults, sink->target.url.properties, NULL};
	rd_kafka_conf_t *conf = hx_kafka_client_conf(sink->target.url.servers, lists, err);

	if (conf == NULL)
		return NULL;
	rd_kafka_conf_set_opaque(conf, sink);
	rd_kafka_conf_set_dr_msg_cb(conf, on_delivered);
	rd_kafka_conf_set_error_cb(conf, on_error);
	return conf;
}

/* Pending reports will not come. */
static void drop_producer(struct kafka_sink *sink)
{
	kafka_assert(sink);
	if (sink->producer == NULL)
		return;
	sink->is_dropping = true;
	(void)rd_kafka_purge(sink->producer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
	(void)rd_kafka_poll(sink->producer, 0);
	for (size_t i = 0; i < sink->topic_count; i++)
		if (sink->topics[i].handle != NULL)
			rd_kafka_topic_destroy(sink->topics[i].handle);
	sink->topic_count = sink->topic_next = 0;
	rd_kafka_destroy(sink->producer);
	sink->producer = NULL;
	sink->undecided = 0;
	kafka_assert(sink);
}

/* No broker for a while, or a fatal error of the producer. */
static bool is_hopeless(const struct kafka_sink *sink)
{
	return sink->is_broken ||
		(sink->down_ns != 0 && hx_clock_mono_ns() - sink->down_ns > DOWN_MS * HX_NS_PER_MS);
}

/* Wait until a broker has answered. */
static enum hapax_status greet(
	struct kafka_sink *sink, int64_t deadline_ns, struct hapax_error *err)
{
	rd_kafka_resp_err_t code;

	assert(!sink->is_dropping);
	assert(sink->undecided == 0);
	do {
		const rd_kafka_metadata_t *metadata = NULL;

		code = rd_kafka_metadata(sink->producer, 0, NULL, &metadata, SLICE_MS);
		(void)rd_kafka_poll(sink->producer, 0);
		if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
			rd_kafka_metadata_destroy(metadata);
			return HAPAX_OK;
		}
	} while (!is_hopeless(sink) && hx_clock_mono_ns() < deadline_ns);
	return hx_error_set(
		err, HAPAX_ERR_UNAVAILABLE, 0, "no Kafka broker answered: %.180s",
		sink->trouble[0] == '\0' ? rd_kafka_err2str(code) : sink->trouble);
}

/* Connect unless connected. */
static enum hapax_status connect_until(
	struct kafka_sink *sink, int64_t deadline_ns, struct hapax_error *err)
{
	int64_t late_ns = hx_clock_mono_ns() + CONNECT_MS * HX_NS_PER_MS;
	rd_kafka_conf_t *conf;
	enum hapax_status status;

	if (sink->is_broken)
		drop_producer(sink);
	if (sink->producer != NULL)
		return HAPAX_OK;
	assert(sink->topic_count == 0);
	assert(sink->undecided == 0);
	sink->is_dropping = sink->is_broken = false;
	sink->down_ns = 0;
	sink->trouble[0] = '\0';
	conf = make_conf(sink, err);
	if (conf != NULL)
		sink->producer = hx_kafka_client_new(RD_KAFKA_PRODUCER, conf, err);
	if (sink->producer == NULL)
		return HAPAX_ERR_INVALID;
	status = greet(sink, deadline_ns < late_ns ? deadline_ns : late_ns, err);
	if (status != HAPAX_OK)
		drop_producer(sink);
	assert((status == HAPAX_OK) == (sink->producer != NULL));
	return status;
}

static enum hapax_status sink_connect(struct hx_sink *base, struct hapax_error *err)
{
	return connect_until(kafka_of(base), INT64_MAX, err);
}

/* ------------------------------------------------------------------ topics */

static bool is_topic(struct hapax_bytes name)
{
	const char *data = name.data;

	for (size_t i = 0; i < name.size; i++)
		if (!((data[i] >= 'a' && data[i] <= 'z') || (data[i] >= 'A' && data[i] <= 'Z') ||
		      (data[i] >= '0' && data[i] <= '9') || data[i] == '.' || data[i] == '_' ||
		      data[i] == '-'))
			return false;
	return name.size > 0 && name.size < HX_KAFKA_TOPIC_SIZE &&
		!hx_bytes_equal(name, HX_BYTES_LIT(".")) &&
		!hx_bytes_equal(name, HX_BYTES_LIT(".."));
}

/* Find the topic, or make an entry for it. */
static struct topic *find_topic(struct kafka_sink *sink, struct hapax_bytes name)
{
	struct topic *topic;

	assert(name.size < sizeof(topic->name));
	for (size_t i = 0; i < sink->topic_count; i++)
		if (hx_bytes_equal(hapax_bytes_from_text(sink->topics[i].name), name))
			return &sink->topics[i];
	if (sink->topic_count < TOPICS_MAX) {
		topic = &sink->topics[sink->topic_count++];
	} else {
		topic = &sink->topics[sink->topic_next++ % TOPICS_MAX];
		if (topic->handle != NULL)
			rd_kafka_topic_destroy(topic->handle);
	}
	memset(topic, 0, sizeof(*topic));
	(void)snprintf(
		topic->name, sizeof(topic->name), "%.*s", (int)name.size, (const char *)name.data);
	/* A cut name would be asked for in every batch. */
	assert(strlen(topic->name) == name.size);
	kafka_assert(sink);
	return topic;
}

/* Ask the brokers whether the topic exists. False: no answer. */
static bool ask_for_topic(struct kafka_sink *sink, struct topic *topic, int64_t deadline_ns)
{
	int64_t left_ms = (deadline_ns - hx_clock_mono_ns()) / HX_NS_PER_MS;
	const rd_kafka_metadata_t *metadata = NULL;
	rd_kafka_topic_t *handle = rd_kafka_topic_new(sink->producer, topic->name, NULL);
	rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR__TIMED_OUT;

	/* An older handle would leak. */
	assert(topic->handle == NULL);
	if (handle == NULL) {
		topic->code = rd_kafka_last_error();
		return true;
	}
	if (left_ms > 0)
		code = rd_kafka_metadata(
			sink->producer, 0, handle, &metadata,
			(int)(left_ms < TOPIC_MS ? left_ms : TOPIC_MS));
	if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
		rd_kafka_topic_destroy(handle);
		lose(sink, rd_kafka_err2str(code));
		return false;
	}
	topic->code = metadata->topic_cnt == 1 ? metadata->topics[0].err
					       : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
	topic->asked_ns = hx_clock_mono_ns();
	rd_kafka_metadata_destroy(metadata);
	/* The topic exists, and will have a leader soon. */
	if (topic->code == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE)
		topic->code = RD_KAFKA_RESP_ERR_NO_ERROR;
	if (topic->code == RD_KAFKA_RESP_ERR_NO_ERROR)
		topic->handle = handle;
	else
		rd_kafka_topic_destroy(handle);
	assert((topic->handle != NULL) == (topic->code == RD_KAFKA_RESP_ERR_NO_ERROR));
	return true;
}

/* The topic of a row. NULL: missing, and the row is decided; or no broker answered. */
static rd_kafka_topic_t *topic_of(
	struct kafka_sink *sink, struct hx_outbox_row *row, int64_t deadline_ns)
{
	struct hapax_bytes name = sink->target.topic[0] == '\0'
		? row->topic
		: hapax_bytes_from_text(sink->target.topic);
	struct topic *topic;

	if (!is_topic(name)) {
		hx_sink_decide(
			row, HX_OUTBOX_REFUSED,
			"invalid topic '%.*s': use letters, digits, '.', '_' and '-', at most %d",
			(int)(name.size < 80 ? name.size : 80), (const char *)name.data,
			HX_KAFKA_TOPIC_SIZE - 1);
		return NULL;
	}
	topic = find_topic(sink, name);
	if (topic->handle == NULL &&
	    (topic->asked_ns == 0 ||
	     hx_clock_mono_ns() - topic->asked_ns > ABSENT_MS * HX_NS_PER_MS) &&
	    !ask_for_topic(sink, topic, deadline_ns))
		return NULL;
	if (topic->handle == NULL && topic->code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)
		hx_sink_decide(
			row, HX_OUTBOX_FAILED, "topic '%.80s': %.80s", topic->name,
			rd_kafka_err2str(topic->code));
	else if (topic->handle == NULL)
		refuse_topic(row, topic->name, topic->code);
	assert((topic->handle != NULL) == (row->outcome == HX_OUTBOX_UNDECIDED));
	return topic->handle;
}

/* ------------------------------------------------------------------ publish */

/* The row's content type wins over a header. NULL: invalid headers, and the row is refused. */
static rd_kafka_headers_t *headers_of(struct kafka_sink *sink, struct hx_outbox_row *row)
{
	static const char content_type[] = "content-type";
	struct hx_outbox_message *message = &sink->base.message;
	rd_kafka_headers_t *headers;

	if (!hx_sink_read(&sink->base, row))
		return NULL;
	headers = rd_kafka_headers_new(message->count + 1);
	for (size_t i = 0; i < message->count; i++) {
		const struct hapax_field *field = &message->fields[i];

		if (row->content_type.size > 0 && field->name.size == sizeof(content_type) - 1 &&
		    strncasecmp(field->name.data, content_type, field->name.size) == 0)
			continue;
		(void)rd_kafka_header_add(
			headers, field->name.data, (ssize_t)field->name.size,
			field->value.size == 0 ? "" : field->value.data,
			(ssize_t)field->value.size);
	}
	if (row->content_type.size > 0)
		(void)rd_kafka_header_add(
			headers, content_type, -1, row->content_type.data,
			(ssize_t)row->content_type.size);
	return headers;
}

static void produce(struct kafka_sink *sink, struct hx_outbox_row *row, rd_kafka_topic_t *topic)
{
	rd_kafka_headers_t *headers = headers_of(sink, row);
	const struct hx_kafka_record record = {
		.topic = topic,
		.key = row->ordering_key.size > 0 ? row->ordering_key
						  : (struct hapax_bytes){NULL, 0},
		.value = row->payload,
		.time_ms = row->created_ms,
		.opaque = row,
	};
	rd_kafka_resp_err_t code;

	if (headers == NULL) {
		assert(row->outcome == HX_OUTBOX_REFUSED);
		return;
	}
	assert(!row->is_awaited);
	code = hx_kafka_client_produce(sink->producer, &record, headers);
	if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
		row->is_awaited = true;
		sink->undecided++;
		return;
	}
	if (code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
		kafka_refuse(row, code);
	else
		lose(sink, rd_kafka_err2str(code));
}

/* Wait until every message has its report, or waiting is hopeless. */
static void wait_for_reports(struct kafka_sink *sink, int64_t deadline_ns)
{
	assert(sink->undecided == 0 || sink->producer != NULL);
	while (sink->undecided > 0 && !is_hopeless(sink)) {
		int64_t left_ms = (deadline_ns - hx_clock_mono_ns()) / HX_NS_PER_MS;

		if (left_ms <= 0) {
			lose(sink,
			     sink->trouble[0] == '\0' ? "Kafka did not confirm in time"
						      : sink->trouble);
			return;
		}
		/* linger.ms does not apply during a flush. */
		(void)rd_kafka_flush(
			sink->producer, (int)(left_ms < SLICE_MS ? left_ms : SLICE_MS));
	}
	if (sink->undecided > 0)
		lose(sink, sink->trouble);
	assert(sink->undecided == 0 || sink->is_lost);
}

/* Publish all undecided rows together. */
static void publish_window(
	struct kafka_sink *sink, struct hx_outbox_row **rows, size_t count, int64_t deadline_ns)
{
	assert(sink->undecided == 0);
	assert(!sink->is_alone || count == 1);
	sink->needs_alone = false;
	for (size_t i = 0; i < count && !sink->is_lost; i++) {
		rd_kafka_topic_t *topic = NULL;

		if (rows[i]->outcome == HX_OUTBOX_UNDECIDED)
			topic = topic_of(sink, rows[i], deadline_ns);
		if (topic != NULL)
			produce(sink, rows[i], topic);
	}
	wait_for_reports(sink, deadline_ns);
}

static enum hapax_status sink_publish(
	struct hx_sink *base, struct hx_outbox_row **rows, size_t count, int64_t deadline_ns,
	struct hapax_error *err)
{
	struct kafka_sink *sink = kafka_of(base);
	enum hapax_status status = connect_until(sink, deadline_ns, err);

	assert(count > 0);
	assert(count <= HX_OUTBOX_BATCH_MAX);
	if (status != HAPAX_OK)
		return status;
	/* Errors from before this call are over, or will occur again. */
	sink->down_ns = 0;
	sink->trouble[0] = '\0';
	sink->is_lost = sink->is_alone = false;
	publish_window(sink, rows, count, deadline_ns);
	if (sink->needs_alone && !sink->is_lost) {
		sink->is_alone = true;
		for (size_t i = 0; i < count && !sink->is_lost; i++)
			publish_window(sink, &rows[i], 1, deadline_ns);
	}
	kafka_assert(sink);
	if (!sink->is_lost && !sink->is_broken) {
		assert(sink->undecided == 0);
		return HAPAX_OK;
	}
	status = hx_error_set(
		err, HAPAX_ERR_UNAVAILABLE, 0, "Kafka did not accept every event: %.180s",
		sink->trouble);
	drop_producer(sink);
	return status;
}

/* ------------------------------------------------------------------ open */

static void sink_close(struct hx_sink *base)
{
	struct kafka_sink *sink = kafka_of(base);

	drop_producer(sink);
	explicit_bzero(&sink->target, sizeof(sink->target));
}

static enum hapax_status sink_open(struct hx_sink *base, const char *url, struct hapax_error *err)
{
	struct kafka_sink *sink = kafka_of(base);
	enum hapax_status status = hx_kafka_target_parse(url, &sink->target, err);
	rd_kafka_conf_t *conf;

	if (status != HAPAX_OK)
		return status;
	/* Report an invalid property at once. */
	conf = make_conf(sink, err);
	if (conf == NULL)
		return HAPAX_ERR_INVALID;
	rd_kafka_conf_destroy(conf);
	return HAPAX_OK;
}

static enum hapax_status sink_keep_alive(struct hx_sink *base, struct hapax_error *err)
{
	struct kafka_sink *sink = kafka_of(base);

	if (sink->producer != NULL)
		(void)rd_kafka_poll(sink->producer, 0);
	return sink_connect(base, err);
}

const struct hx_sink_ops hx_sink_kafka_ops = {
	.size = sizeof(struct kafka_sink),
	.prefix = "ce_",
	.open = sink_open,
	.connect = sink_connect,
	.publish = sink_publish,
	.keep_alive = sink_keep_alive,
	.close = sink_close,
};
