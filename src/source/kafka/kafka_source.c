/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_source.c - Kafka topics as a source.
 *
 * Messages are taken from librdkafka's queue in batches, and only as many as the consumer has room
 * for. A member that does not poll holds up the rebalance of its whole group. If the consumer takes
 * nothing for a while, the partitions are therefore paused, and the queue is polled for other
 * events.
 */
#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/decimal.h"
#include "base/error.h"
#include "source/kafka/kafka_private.h"
#include "source/source.h"

enum {
	/* Longest time without a poll of the queue. */
	STARVED_MS = 500,
	HEADERS_MIN = 8,
	HEADERS_LIMIT = 1024,

	/* 2.3.0, in the format of rd_kafka_version(); see destroy(). */
	FIXED_VERSION = 0x02030000,
	LEFT_MAX = 16,
};

static hapax_source_close_fn kafka_close;

static struct hx_kafka_source *downcast(struct hapax_source *source)
{
	assert(source->ops->close == kafka_close);
	return (struct hx_kafka_source *)source;
}

static struct hx_kafka_message *message_of(struct hapax_message *base)
{
	return HX_CONTAINER(base, struct hx_kafka_message, base);
}

/* Includes room for its headers. NULL: no memory. */
static struct hx_kafka_message *take_spare(struct hx_kafka_source *source, size_t header_count)
{
	struct hx_kafka_message *message = source->spare;

	if (message != NULL)
		source->spare = message->spare_next;
	else
		message = hx_alloc_zero(1, sizeof(*message));
	if (message == NULL)
		return NULL;
	if (header_count > message->header_max) {
		size_t max = header_count < HEADERS_MIN ? HEADERS_MIN : header_count;
		struct hapax_field *headers = hx_realloc(message->headers, max * sizeof(*headers));

		if (headers == NULL) {
			hx_kafka_message_free(source, message);
			return NULL;
		}
		message->headers = headers;
		message->header_max = max;
	}
	return message;
}

void hx_kafka_message_free(struct hx_kafka_source *source, struct hx_kafka_message *message)
{
	message->spare_next = source->spare;
	source->spare = message;
}

static size_t take_headers(struct hx_kafka_message *message, rd_kafka_headers_t *headers)
{
	const char *name;
	const void *value;
	size_t count = 0;
	size_t size;

	while (count < message->header_max &&
	       rd_kafka_header_get_all(headers, count, &name, &value, &size) ==
		       RD_KAFKA_RESP_ERR_NO_ERROR) {
		message->headers[count] = (struct hapax_field){
			hapax_bytes_from_text(name), hx_bytes(value, value == NULL ? 0 : size)};
		message->size +=
			message->headers[count].name.size + message->headers[count].value.size;
		count++;
	}
	return count;
}

static void fill(
	struct hx_kafka_source *source, struct hx_kafka_message *message, rd_kafka_message_t *from,
	rd_kafka_headers_t *headers)
{
	struct hx_kafka_partition *partition = message->partition;
	struct hapax_message *base = &message->base;
	rd_kafka_timestamp_type_t type;
	int64_t time_ms = rd_kafka_message_timestamp(from, &type);
	size_t size = hx_decimal_write(message->place, from->offset);

	message->message = from;
	message->size = from->len + from->key_len;
	memset(base, 0, sizeof(*base));
	base->origin = hapax_bytes_from_text(source->place.origin);
	base->topic = hapax_bytes_from_text(partition->name);
	base->partition = partition->number;
	base->place = hx_bytes(message->place, size);
	base->key = hx_bytes(from->key, from->key_len);
	base->data = hx_bytes(from->payload, from->len);
	base->flags = from->payload == NULL ? HAPAX_MESSAGE_TOMBSTONE : 0;
	base->time_ms = type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? HAPAX_TIME_UNKNOWN : time_ms;
	base->headers = message->headers;
	base->header_count = headers == NULL ? 0 : take_headers(message, headers);
}

/*
 * librdkafka commits stored offsets only if they are above the committed one. Until then, a crash
 * would restart at the old offset, which no longer exists. So commit the lower one, once. Store it
 * first, or the stored offset would undo it.
 */
static void commit_back(
	struct hx_kafka_source *source, const struct hx_kafka_partition *partition, int64_t offset)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	rd_kafka_resp_err_t err;

	rd_kafka_topic_partition_list_add(list, partition->name, partition->number)->offset =
		offset;
	(void)rd_kafka_offsets_store(source->consumer, list);
	err = rd_kafka_commit(source->consumer, list, 1);
	rd_kafka_topic_partition_list_destroy(list);
	if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
		hx_kafka_say(source, rd_kafka_err2str(err), false);
}

/*
 * The offset went back: the topic was deleted and created again, or truncated. All messages at the
 * consumer are old; new ones, and those fetched after this one, are not.
 */
static struct hx_kafka_partition *begin_anew(
	struct hx_kafka_source *source, struct hx_kafka_partition *partition, int64_t offset)
{
	const char *topic = partition->name;
	int32_t number = partition->number;

	commit_back(source, partition, offset);
	/* Its handle, and so the name, lives until tidy. */
	hx_kafka_partition_rest(source, partition, false);
	hx_kafka_partition_lose(source, topic, number);
	hx_kafka_partition_gain(source, topic, number);
	return hx_kafka_partition_find(source, topic, number);
}

struct hx_kafka_message *hx_kafka_message_new(
	struct hx_kafka_source *source, struct hx_kafka_partition *partition,
	rd_kafka_message_t *from)
{
	rd_kafka_headers_t *headers = NULL;
	struct hx_kafka_message *message;
	size_t count = 0;

	if (rd_kafka_message_headers(from, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR)
		count = rd_kafka_header_cnt(headers);
	message = take_spare(source, count < HEADERS_LIMIT ? count : HEADERS_LIMIT);
	if (message == NULL) {
		/* A skipped message would be lost: the next one's mark would cover it, too. */
		hx_kafka_say(source, "not enough memory for a message", true);
		return NULL;
	}
	message->is_past = false;
	message->partition = partition;
	fill(source, message, from, headers);
	partition->out++;
	source->held_bytes += message->size;
	return message;
}

/* Drops errors and messages of other partitions: NULL. */
static struct hx_kafka_message *read_message(
	struct hx_kafka_source *source, rd_kafka_message_t *from)
{
	struct hx_kafka_partition *partition;
	struct hx_kafka_message *message;

	if (from->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
		hx_kafka_say(source, rd_kafka_message_errstr(from), false);
		return NULL;
	}
	partition =
		hx_kafka_partition_find(source, rd_kafka_topic_name(from->rkt), from->partition);
	if (partition != NULL && from->offset <= partition->seen)
		partition = begin_anew(source, partition, from->offset);
	/* The partition was revoked: its new owner gets the message. */
	if (partition == NULL)
		return NULL;
	message = hx_kafka_message_new(source, partition, from);
	if (message == NULL)
		return NULL;
	partition->seen = from->offset;
	hx_low_water_add(&partition->water, &message->mark, from->offset);
	if (partition->water.count >= HX_KAFKA_MARKS_MAX)
		hx_kafka_partition_rest(source, partition, true);
	return message;
}

/*
 * Append to the batch, one message per call, so that the batch has every fetched message when a
 * partition is revoked during a call. Also, before librdkafka 2.1.0, a call for more discards
 * messages of partitions that are paused meanwhile, as all are before each rebalance, and the next
 * call continues after them.
 */
static void poll(struct hx_kafka_source *source)
{
	size_t left = source->batch_count - source->batch_next;

	assert(left <= HX_KAFKA_BATCH);
	for (size_t i = 0; i < left; i++)
		source->batch[i] = source->batch[source->batch_next + i];
	source->polled_ms = source->now_ms;
	source->batch_next = 0;
	source->batch_count = left;
	while (source->batch_count < left + HX_KAFKA_BATCH &&
	       rd_kafka_consume_batch_queue(
		       source->queue, 0, source->batch + source->batch_count, 1) == 1)
		source->batch_count++;
}

/* A single message fits, whatever its size. */
static bool is_full(const struct hx_kafka_source *source)
{
	return source->held_bytes >= source->place.held_max;
}

static struct hapax_message *kafka_next(struct hapax_source *base)
{
	struct hx_kafka_source *source = downcast(base);

	if (is_full(source))
		return NULL;
	if (source->warming > 0) {
		struct hx_kafka_message *past = hx_kafka_past_next(source);

		hx_kafka_pause_all(source, true);
		return past == NULL ? NULL : &past->base;
	}
	hx_kafka_pause_all(source, false);
	if (source->batch_next == source->batch_count)
		poll(source);
	while (source->batch_next < source->batch_count) {
		rd_kafka_message_t *from = source->batch[source->batch_next++];
		struct hx_kafka_message *message;

		/* Its partition was revoked. */
		if (from == NULL)
			continue;
		message = read_message(source, from);
		if (message != NULL)
			return &message->base;
		rd_kafka_message_destroy(from);
	}
	return NULL;
}

/* The consumer has settled the message. NULL: it has no mark, and is gone. */
static struct hx_kafka_partition *settle(
	struct hx_kafka_source *source, struct hx_kafka_message *message)
{
	struct hx_kafka_partition *partition = message->partition;
	bool was_full = is_full(source);

	source->held_bytes -= message->size;
	if (was_full && !is_full(source))
		hx_kafka_on_event(NULL, source);
	rd_kafka_message_destroy(message->message);
	message->message = NULL;
	partition->out--;
	if (!partition->is_lost && !message->is_past)
		return partition;
	hx_kafka_past_settled(source, message);
	hx_kafka_message_free(source, message);
	return NULL;
}

static void kafka_ack(struct hapax_source *base, struct hapax_message *acked)
{
	struct hx_kafka_source *source = downcast(base);
	struct hx_kafka_message *message = message_of(acked);
	struct hx_kafka_partition *partition = settle(source, message);
	struct hx_mark *over;

	if (partition == NULL)
		return;
	over = hx_low_water_done(&partition->water, &message->mark);
	partition->is_dirty = partition->is_dirty || over != NULL;
	while (over != NULL) {
		struct hx_mark *mark = over;

		over = over->next;
		hx_kafka_message_free(source, (struct hx_kafka_message *)(void *)mark);
	}
	if (partition->is_resting && partition->water.count < HX_KAFKA_MARKS_MAX / 2)
		hx_kafka_partition_rest(source, partition, false);
}

/*
 * Kafka has no way to give back a message. Its mark stays, so that nothing from here on is
 * committed, and the next owner of the partition starts with it.
 */
static void kafka_give_back(struct hapax_source *base, struct hapax_message *given)
{
	(void)settle(downcast(base), message_of(given));
}

/*
 * The consumer took nothing for a while: pause, which removes messages from the queue, and poll for
 * other events. Messages in the batch stay. A member that does not poll because its handlers are
 * slow is removed from its group.
 */
static void keep_alive(struct hx_kafka_source *source)
{
	if (source->now_ms - source->polled_ms < STARVED_MS)
		return;
	hx_kafka_pause_all(source, true);
	if (source->batch_count - source->batch_next <= HX_KAFKA_BATCH)
		poll(source);
	else
		source->polled_ms = source->now_ms;
}

static int64_t kafka_tick(struct hapax_source *base, int64_t now_ms)
{
	struct hx_kafka_source *source = downcast(base);

	source->now_ms = now_ms;
	if (!source->is_subscribed) {
		source->is_subscribed = true;
		source->polled_ms = now_ms;
		hx_kafka_subscribe(source);
	}
	hx_kafka_producer_tick(source);
	hx_kafka_store_offsets(source);
	hx_kafka_past_tick(source);
	keep_alive(source);
	hx_kafka_partition_tidy(source);
	return source->polled_ms + STARVED_MS;
}

static int kafka_drain(struct hapax_source *base)
{
	/* close commits the stored offsets, and waits for that. */
	hx_kafka_store_offsets(downcast(base));
	return 1;
}

static int64_t kafka_position(struct hapax_source *base, const struct hapax_message *of)
{
	const struct hx_kafka_message *message =
		(const struct hx_kafka_message
			 *)(const void
				    *)((const char *)of - offsetof(struct hx_kafka_message, base));
	const struct hx_kafka_partition *partition = message->partition;

	assert(base->ops->close == kafka_close);
	if (partition->is_lost || message->is_past)
		return -1;
	return hx_low_water_with(&partition->water, &message->mark);
}

/*
 * -1: unknown. The start of a partition is unknown before its first delivery. But if it is being
 * fetched, it has no messages, or they arrive at once.
 */
static int64_t lag_of(const struct hx_kafka_source *source)
{
	bool is_asked = !source->is_paused && source->warming == 0;
	int64_t lag = source->partition_count > 0 ? 0 : -1;

	for (struct hx_kafka_partition *at = source->partitions; at != NULL; at = at->next) {
		int64_t low = -1, high = -1;

		if (at->is_lost || (at->water.next < 0 && is_asked))
			continue;
		if (at->water.next < 0)
			return -1;
		if (rd_kafka_get_watermark_offsets(
			    source->consumer, at->name, at->number, &low, &high) ==
			    RD_KAFKA_RESP_ERR_NO_ERROR &&
		    high > at->water.next)
			lag += high - at->water.next;
	}
	return lag;
}

static void kafka_stats(struct hapax_source *base, struct hapax_source_stats *ret_stats)
{
	struct hx_kafka_source *source = downcast(base);

	ret_stats->lag = lag_of(source);
	ret_stats->failures = source->failures;
	ret_stats->changes = source->changes;
	ret_stats->parts = source->partition_count;
	ret_stats->warming = source->warming;
}

static void free_all(struct hx_kafka_source *source)
{
	for (; source->batch_next < source->batch_count; source->batch_next++) {
		if (source->batch[source->batch_next] != NULL)
			rd_kafka_message_destroy(source->batch[source->batch_next]);
	}
	for (struct hx_kafka_partition *at = source->partitions; at != NULL; at = at->next) {
		struct hx_mark *mark;

		while ((mark = hx_low_water_take(&at->water)) != NULL)
			hx_kafka_message_free(source, (struct hx_kafka_message *)(void *)mark);
		at->is_lost = true;
		at->out = 0;
	}
	hx_kafka_partition_tidy(source);
	while (source->spare != NULL) {
		struct hx_kafka_message *message = source->spare;

		source->spare = message->spare_next;
		hx_free(message->headers);
		hx_free(message);
	}
}

/*
 * Before 2.3.0, destroying a group member that was never leader aborts the process, by an assertion
 * in the cooperative-sticky assignor (librdkafka issue 4312). The member is closed, and its offsets
 * are committed. A leaked handle costs some sleeping threads until the process ends. A reader of dead
 * letters never was a member.
 */
static void destroy(struct hx_kafka_source *source)
{
	/* Keeps the handles reachable for leak checkers. */
	static _Atomic(rd_kafka_t *) left[LEFT_MAX];
	static _Atomic unsigned count;

	if (!source->is_subscribed || source->place.is_letters ||
	    rd_kafka_version() >= FIXED_VERSION)
		rd_kafka_destroy(source->consumer);
	else
		atomic_store(&left[atomic_fetch_add(&count, 1) % LEFT_MAX], source->consumer);
}

static void kafka_close(struct hapax_source *base)
{
	struct hx_kafka_source *source = downcast(base);

	hx_kafka_producer_close(source);
	hx_kafka_past_close(source);
	if (source->consumer != NULL) {
		rd_kafka_queue_cb_event_enable(source->queue, NULL, NULL);
		source->base.hooks = (struct hapax_source_hooks){.wake = NULL};
		if (source->is_subscribed) {
			hx_kafka_store_offsets(source);
			(void)rd_kafka_consumer_close(source->consumer);
		}
		free_all(source);
		rd_kafka_queue_destroy(source->queue);
		destroy(source);
	}
	hx_source_done(base);
	explicit_bzero(&source->place, sizeof(source->place));
	hx_free(source);
}

static const struct hapax_source_ops kafka_ops = {
	.version = HAPAX_SOURCE_OPS_VERSION,
	.name = "kafka",
	.next = kafka_next,
	.ack = kafka_ack,
	.give_back = kafka_give_back,
	.publish = hx_kafka_publish,
	.tick = kafka_tick,
	.drain = kafka_drain,
	.stats = kafka_stats,
	.close = kafka_close,
	.hurry = hx_kafka_hurry,
	.position = kafka_position,
};

/* place is parsed. */
static enum hapax_status open_source(struct hx_kafka_source *source, struct hapax_error *err)
{
	enum hapax_status status;

	if (hx_source_init(&source->base, &kafka_ops, source->place.shown) != HAPAX_OK)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory");
	source->base.group = source->place.group;
	status = hx_kafka_connect(source, err);
	return status == HAPAX_OK ? hx_kafka_past_open(source, err) : status;
}

/* Zeroed, and its place parsed. */
static enum hapax_status parse_source(
	const char *url, struct hx_kafka_source **ret_source, struct hapax_error *err)
{
	struct hx_kafka_source *source = hx_alloc_zero(1, sizeof(*source));

	if (source == NULL) {
		(void)hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory");
		return HAPAX_ERR_NO_MEMORY;
	}
	source->base.ops = &kafka_ops;
	*ret_source = source;
	return hx_kafka_place_parse(url, &source->place, err);
}

enum hapax_status hx_kafka_open(
	const char *url, struct hapax_source **ret_source, struct hapax_error *err)
{
	struct hx_kafka_source *source = NULL;
	enum hapax_status status = parse_source(url, &source, err);

	if (status == HAPAX_OK)
		status = open_source(source, err);
	if (status == HAPAX_OK)
		*ret_source = &source->base;
	else if (source != NULL)
		kafka_close(&source->base);
	return status;
}

enum hapax_status hx_kafka_open_letters(
	const char *url, const char *target, size_t count_max, struct hapax_buf *ret_topics,
	struct hapax_source **ret_source, struct hapax_error *err)
{
	struct hx_kafka_source *source = NULL;
	enum hapax_status status = parse_source(url, &source, err);

	(void)count_max; /* held_max limits what is in memory */
	if (status == HAPAX_OK)
		status = hx_kafka_place_letters(&source->place, target, ret_topics, err);
	if (status == HAPAX_OK)
		status = open_source(source, err);
	if (status == HAPAX_OK)
		*ret_source = &source->base;
	else if (source != NULL)
		kafka_close(&source->base);
	return status;
}

enum hapax_status hx_kafka_check(const char *url, struct hapax_error *err)
{
	struct hx_kafka_source *source = hx_alloc_zero(1, sizeof(*source));
	enum hapax_status status;
	rd_kafka_conf_t *conf;

	if (source == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory");
	status = hx_kafka_place_parse(url, &source->place, err);
	if (status == HAPAX_OK) {
		/* librdkafka checks each property when it is set. */
		conf = hx_kafka_conf(source, HX_KAFKA_MEMBER, err);
		if (conf == NULL)
			status = HAPAX_ERR_INVALID;
		else
			rd_kafka_conf_destroy(conf);
	}
	explicit_bzero(&source->place, sizeof(source->place));
	hx_free(source);
	return status;
}
