/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_private.h - declarations that the files of the Kafka source share.
 *
 * librdkafka has its own threads; everything here runs on the consumer's, except the wake-up of a
 * queue that gets its first event.
 *
 *  (1) Offsets are stored for librdkafka to commit (enable.auto.offset.store=false) only up to the
 *      low-water mark of acknowledged messages, or at the start that the consumer sets for a
 *      partition.
 *  (2) While the past of any of our partitions is being read, nothing else is delivered.
 *  (3) A revoked partition takes no more marks: acks of its messages free them and store nothing.
 *  (4) Nothing is delivered while the consumer holds held_max bytes of keys, values and headers. In
 *      addition, librdkafka fetches ahead until its queue has queued.max.messages.kbytes of values
 *      or queued.min.messages, for all partitions, plus at most one response of each broker. Not
 *      counted: about 300 bytes of overhead for each of these, and that a message in flight keeps
 *      the whole response that it came in.
 */
#ifndef HX_SOURCE_KAFKA_PRIVATE_H
#define HX_SOURCE_KAFKA_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>

#include <hapax/ext/source_ops.h>

#include "source/kafka/kafka_place.h"
#include "source/kafka/rereader.h"
#include "source/consume/low_water.h"

enum {
	/* Messages taken from librdkafka's queue in one call. */
	HX_KAFKA_BATCH = 256,

	/* Marks of one partition: above this, it pauses until the oldest message is done. */
	HX_KAFKA_MARKS_MAX = 20000,

	HX_KAFKA_PLACE_SIZE = 24,
};

struct hx_kafka_source;

struct hx_kafka_partition {
	rd_kafka_topic_t *topic; /* keeps its name */
	const char *name;
	int32_t number;
	bool is_lost;
	bool is_dirty; /* the low-water mark moved and is not stored yet */
	bool is_resting;
	size_t out;       /* messages that the consumer holds */
	uint64_t past_id; /* while its past is being read; 0: not */
	bool is_past_read;
	size_t past_out; /* messages of the past that the consumer holds */
	int64_t seen;    /* the largest delivered offset; -1: none */
	struct hx_low_water water;
	struct hx_kafka_partition *next;
};

/* A message, and its mark, which may outlive it. */
struct hx_kafka_message {
	struct hx_mark mark; /* first, so that a mark can be cast */
	struct hapax_message base;
	struct hx_kafka_partition *partition;
	bool is_past;                /* from the rereader: has no mark */
	rd_kafka_message_t *message; /* NULL: done */
	size_t size;                 /* its part of held_bytes */
	struct hapax_field *headers;
	size_t header_max;
	char place[HX_KAFKA_PLACE_SIZE];
	struct hx_kafka_message *spare_next;
};

struct hx_kafka_source {
	struct hapax_source base;
	struct hx_kafka_place place;
	rd_kafka_t *consumer;
	rd_kafka_queue_t *queue;
	rd_kafka_t *producer; /* NULL: no message handed on yet */
	rd_kafka_queue_t *producer_queue;
	bool is_subscribed;
	bool is_hurried; /* hand on no more messages */

	struct hx_kafka_partition *partitions; /* ours, and revoked ones still in use */
	size_t partition_count;                /* ours */
	struct hx_kafka_message *spare;
	size_t held_bytes; /* of messages that the consumer holds */

	struct hx_rereader *rereader; /* NULL: no warm-up */
	size_t warming;               /* partitions whose past is not done */

	/*
	 * The second half is for messages that arrive while the first one waits; see keep_alive().
	 * NULL: its partition was revoked.
	 */
	rd_kafka_message_t *batch[2 * HX_KAFKA_BATCH];
	size_t batch_next;
	size_t batch_count;
	int64_t polled_ms; /* when the queue was last polled */
	int64_t now_ms;
	bool is_paused;

	struct hapax_publication *refused; /* to be reported in the next tick */
	uint64_t failures;
	uint64_t changes;
};

/* kafka_session.c */
enum hapax_status hx_kafka_connect(struct hx_kafka_source *source, struct hapax_error *err);
void hx_kafka_subscribe(struct hx_kafka_source *source);
void hx_kafka_say(struct hx_kafka_source *source, const char *text, bool is_fatal);
enum hx_kafka_role { HX_KAFKA_MEMBER, HX_KAFKA_PRODUCER, HX_KAFKA_REREADER };
rd_kafka_conf_t *hx_kafka_conf(
	struct hx_kafka_source *source, enum hx_kafka_role role, struct hapax_error *err);
void hx_kafka_on_event(rd_kafka_t *rk, void *opaque);
/* Add the partitions of a topic, from the group's offsets on. Blocks. */
rd_kafka_resp_err_t hx_kafka_add_partitions(
	rd_kafka_t *rk, const char *topic, rd_kafka_topic_partition_list_t *list);

/* partition.c */
struct hx_kafka_partition *hx_kafka_partition_find(
	struct hx_kafka_source *source, const char *topic, int32_t number);
void hx_kafka_partition_gain(struct hx_kafka_source *source, const char *topic, int32_t number);
void hx_kafka_partition_lose(struct hx_kafka_source *source, const char *topic, int32_t number);
/*
 * Drop fetched messages of a revoked partition that are not delivered yet. If the partition comes
 * back, it restarts at the first message that is not done; these would be acknowledged ahead of it.
 */
void hx_kafka_partition_drop_fetched(
	struct hx_kafka_source *source, const char *topic, int32_t number);
void hx_kafka_partition_tidy(struct hx_kafka_source *source);
void hx_kafka_partition_rest(
	struct hx_kafka_source *source, struct hx_kafka_partition *partition, bool rests);
void hx_kafka_store_offsets(struct hx_kafka_source *source);
void hx_kafka_pause_all(struct hx_kafka_source *source, bool pauses);

/* past.c */
enum hapax_status hx_kafka_past_open(struct hx_kafka_source *source, struct hapax_error *err);
void hx_kafka_past_close(struct hx_kafka_source *source);
void hx_kafka_past_begin(struct hx_kafka_source *source, struct hx_kafka_partition *partition);
void hx_kafka_past_cancel(struct hx_kafka_source *source, struct hx_kafka_partition *partition);
void hx_kafka_past_settled(struct hx_kafka_source *source, struct hx_kafka_message *message);
void hx_kafka_past_tick(struct hx_kafka_source *source);
struct hx_kafka_message *hx_kafka_past_next(struct hx_kafka_source *source);

/* kafka_source.c */
struct hx_kafka_message *hx_kafka_message_new(
	struct hx_kafka_source *source, struct hx_kafka_partition *partition,
	rd_kafka_message_t *from);
void hx_kafka_message_free(struct hx_kafka_source *source, struct hx_kafka_message *message);

/* producer.c */
void hx_kafka_publish(struct hapax_source *base, struct hapax_publication *publication);
void hx_kafka_hurry(struct hapax_source *base);
void hx_kafka_producer_tick(struct hx_kafka_source *source);
void hx_kafka_producer_close(struct hx_kafka_source *source);

#endif
