/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_kafka.c - messages consumed from Apache Kafka; see source_contest.h.
 *
 * Over four partitions of a topic that each round makes. Both store offsets for librdkafka to commit once a second, the
 * bare loop after each message; closing the consumer waits until the last ones are committed. The broker is
 * that of tests/kafka/with_kafka.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <librdkafka/rdkafka.h>

#include "keys.h"
#include "source_contest.h"

enum { PARTITIONS = 4, BATCH = 256, POLL_MS = 5, IN_HAND = 1024, TOPIC_SIZE = 64 };

static void no_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
	(void)rk, (void)level, (void)facility, (void)text;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
	char why[256];

	if (rd_kafka_conf_set(conf, name, value, why, sizeof(why)) != RD_KAFKA_CONF_OK)
		contest_fail("librdkafka: %s", why);
}

static rd_kafka_t *connect_as(const struct source_contest *contest, rd_kafka_type_t type)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char why[256];
	rd_kafka_t *rk;

	rd_kafka_conf_set_log_cb(conf, no_log);
	set(conf, "bootstrap.servers", contest->context);
	if (type == RD_KAFKA_CONSUMER) {
		set(conf, "group.id", "bare");
		set(conf, "auto.offset.reset", "earliest");
		set(conf, "enable.auto.offset.store", "false");
		/* As hapax has them; librdkafka's own 500 would only make the peer wait. */
		set(conf, "fetch.wait.max.ms", "100");
		set(conf, "auto.commit.interval.ms", "1000");
		set(conf, "queued.min.messages", "10000000");
		set(conf, "queued.max.messages.kbytes", "32768");
	}
	rk = rd_kafka_new(type, conf, why, sizeof(why));
	if (rk == NULL)
		contest_fail("librdkafka: %s", why);
	return rk;
}

static void name_topic(const struct source_contest *contest, char ret_name[TOPIC_SIZE])
{
	(void)snprintf(ret_name, TOPIC_SIZE, "orders-%llu", (unsigned long long)contest->seed);
}

static void make_topic(rd_kafka_t *rk, const char *name)
{
	rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
	rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(name, PARTITIONS, 1, NULL, 0);
	rd_kafka_event_t *event;

	rd_kafka_CreateTopics(rk, &topic, 1, NULL, queue);
	event = rd_kafka_queue_poll(queue, SOURCE_WAIT_MS);
	if (event == NULL || rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR)
		contest_fail("Kafka made no topic");
	rd_kafka_event_destroy(event);
	rd_kafka_NewTopic_destroy(topic);
	rd_kafka_queue_destroy(queue);
}

static void produce(rd_kafka_t *rk, const char *topic, const char *key, uint64_t number)
{
	char data[SOURCE_DATA_SIZE];
	rd_kafka_resp_err_t err;

	memset(data, 'x', sizeof(data));
	do {
		err = rd_kafka_producev(
			rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
			RD_KAFKA_V_VALUE(data, sizeof(data)),
			RD_KAFKA_V_PARTITION((int32_t)(number % PARTITIONS)),
			RD_KAFKA_V_HEADER("eventId", key, (ssize_t)KEY_TEXT_SIZE), RD_KAFKA_V_END);
		(void)rd_kafka_poll(rk, err == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : 10);
	} while (err == RD_KAFKA_RESP_ERR__QUEUE_FULL);
	if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
		contest_fail("produce: %s", rd_kafka_err2str(err));
}

static void fill(struct source_contest *contest, char ret_url[SOURCE_URL_SIZE])
{
	rd_kafka_t *rk = connect_as(contest, RD_KAFKA_PRODUCER);
	char key[KEY_TEXT_SIZE], topic[TOPIC_SIZE];

	name_topic(contest, topic);
	make_topic(rk, topic);
	for (uint64_t i = 0; i < contest->messages; i++) {
		key_text(contest->seed, i, key);
		produce(rk, topic, key, i);
	}
	if (rd_kafka_flush(rk, SOURCE_WAIT_MS) != RD_KAFKA_RESP_ERR_NO_ERROR)
		contest_fail("Kafka did not take all messages");
	rd_kafka_destroy(rk);
	(void)snprintf(
		ret_url, SOURCE_URL_SIZE, "kafka://%s/%s?group=hapax",
		(const char *)contest->context, topic);
}

static rd_kafka_queue_t *subscribe(const struct source_contest *contest, rd_kafka_t *rk)
{
	rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
	char topic[TOPIC_SIZE];

	name_topic(contest, topic);
	(void)rd_kafka_topic_partition_list_add(topics, topic, RD_KAFKA_PARTITION_UA);
	(void)rd_kafka_poll_set_consumer(rk);
	(void)rd_kafka_subscribe(rk, topics);
	rd_kafka_topic_partition_list_destroy(topics);
	return rd_kafka_queue_get_consumer(rk);
}

static void consume_bare(struct source_contest *contest)
{
	rd_kafka_t *rk = connect_as(contest, RD_KAFKA_CONSUMER);
	rd_kafka_queue_t *queue = subscribe(contest, rk);
	rd_kafka_message_t *batch[BATCH];
	uint64_t left = contest->messages;

	while (left > 0) {
		ssize_t count = rd_kafka_consume_batch_queue(queue, POLL_MS, batch, BATCH);

		for (ssize_t i = 0; i < count; i++) {
			if (batch[i]->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
				source_contest_see(contest, batch[i]->len);
				(void)rd_kafka_offset_store(
					batch[i]->rkt, batch[i]->partition, batch[i]->offset);
				left--;
			}
			rd_kafka_message_destroy(batch[i]);
		}
	}
	rd_kafka_queue_destroy(queue);
	(void)rd_kafka_consumer_close(rk);
	contest_stop(&contest->time);
	rd_kafka_destroy(rk);
}

int main(int argc, char **argv)
{
	const struct source_contest_ops ops = {
		.name = "librdkafka",
		.version = rd_kafka_version_str(),
		.in_hand = IN_HAND,
		.fill = fill,
		.consume_bare = consume_bare,
	};
	char *servers = getenv("HAPAX_TEST_KAFKA");

	if (servers == NULL)
		contest_fail("there is no Kafka: run it by tests/kafka/with_kafka");
	return source_contest_main(&ops, servers, argc, argv);
}
