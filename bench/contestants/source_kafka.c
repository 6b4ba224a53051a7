/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_kafka.c - messages consumed from Kafka; see source_contest.h.
 *
 * Over four partitions. The bare loop stores the offset after each message. The broker is librdkafka's
 * mock cluster, in this process: its share is the same in both. The clock runs from the
 * assignment of the partitions, when fetching begins, to the last acknowledgement, which is an offset
 * stored for librdkafka to commit once a second; joining the group is not in it.
 */
#include <stdio.h>
#include <string.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "keys.h"
#include "source_contest.h"

enum { PARTITIONS = 4, BATCH = 256, POLL_MS = 5, IN_HAND = 4096 };

struct cluster {
	rd_kafka_t *rk;
	rd_kafka_mock_cluster_t *mock;
};

static void no_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
	(void)rk, (void)level, (void)facility, (void)text;
}

static void on_rebalance(
	rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list,
	void *opaque)
{
	bool gains = err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;

	if (gains)
		source_contest_begin(opaque);
	(void)rd_kafka_assign(rk, gains ? list : NULL);
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
	char why[256];

	if (rd_kafka_conf_set(conf, name, value, why, sizeof(why)) != RD_KAFKA_CONF_OK)
		contest_fail("librdkafka: %s", why);
}

static rd_kafka_t *connect_as(struct source_contest *contest, rd_kafka_type_t type)
{
	const struct cluster *cluster = contest->context;
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char why[256];
	rd_kafka_t *rk;

	rd_kafka_conf_set_log_cb(conf, no_log);
	if (cluster->mock != NULL)
		set(conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(cluster->mock));
	if (type == RD_KAFKA_CONSUMER) {
		set(conf, "group.id", "bare");
		set(conf, "auto.offset.reset", "earliest");
		set(conf, "enable.auto.offset.store", "false");
		/* As hapax has them; librdkafka's own 500 would only make the peer wait. */
		set(conf, "fetch.wait.max.ms", "100");
		set(conf, "auto.commit.interval.ms", "1000");
		set(conf, "queued.max.messages.kbytes", "32768");
		rd_kafka_conf_set_opaque(conf, contest);
		rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
	}
	rk = rd_kafka_new(type, conf, why, sizeof(why));
	if (rk == NULL)
		contest_fail("librdkafka: %s", why);
	return rk;
}

static void fill(struct source_contest *contest, uint64_t seed)
{
	rd_kafka_t *rk = connect_as(contest, RD_KAFKA_PRODUCER);
	char key[KEY_TEXT_SIZE], data[SOURCE_DATA_SIZE];

	memset(data, 'x', sizeof(data));
	for (uint64_t i = 0; i < contest->messages; i++) {
		rd_kafka_resp_err_t err;

		key_text(seed, i, key);
		do {
			err = rd_kafka_producev(
				rk, RD_KAFKA_V_TOPIC("orders"),
				RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
				RD_KAFKA_V_VALUE(data, sizeof(data)),
				RD_KAFKA_V_PARTITION((int32_t)(i % PARTITIONS)),
				RD_KAFKA_V_HEADER("eventId", key, (ssize_t)sizeof(key)),
				RD_KAFKA_V_END);
			(void)rd_kafka_poll(rk, err == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : 10);
		} while (err == RD_KAFKA_RESP_ERR__QUEUE_FULL);
		if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
			contest_fail("produce: %s", rd_kafka_err2str(err));
	}
	if (rd_kafka_flush(rk, SOURCE_WAIT_MS) != RD_KAFKA_RESP_ERR_NO_ERROR)
		contest_fail("the mock cluster did not take all messages");
	rd_kafka_destroy(rk);
}

static void open_cluster(
	struct source_contest *contest, uint64_t seed, char ret_url[SOURCE_URL_SIZE])
{
	struct cluster *cluster = contest->context;

	cluster->mock = NULL;
	cluster->rk = connect_as(contest, RD_KAFKA_PRODUCER);
	cluster->mock = rd_kafka_mock_cluster_new(cluster->rk, 1);
	(void)rd_kafka_mock_topic_create(cluster->mock, "orders", PARTITIONS, 1);
	fill(contest, seed);
	(void)snprintf(
		ret_url, SOURCE_URL_SIZE, "kafka://%s/orders?group=hapax",
		rd_kafka_mock_cluster_bootstraps(cluster->mock));
}

static void close_cluster(struct source_contest *contest)
{
	const struct cluster *cluster = contest->context;

	rd_kafka_mock_cluster_destroy(cluster->mock);
	rd_kafka_destroy(cluster->rk);
}

static void consume_bare(struct source_contest *contest)
{
	rd_kafka_t *rk = connect_as(contest, RD_KAFKA_CONSUMER);
	rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
	rd_kafka_message_t *batch[BATCH];
	rd_kafka_queue_t *queue;
	uint64_t left = contest->messages;

	(void)rd_kafka_topic_partition_list_add(topics, "orders", RD_KAFKA_PARTITION_UA);
	(void)rd_kafka_poll_set_consumer(rk);
	queue = rd_kafka_queue_get_consumer(rk);
	(void)rd_kafka_subscribe(rk, topics);
	rd_kafka_topic_partition_list_destroy(topics);
	while (left > 0) {
		ssize_t count = rd_kafka_consume_batch_queue(queue, POLL_MS, batch, BATCH);

		for (ssize_t i = 0; i < count; i++) {
			if (batch[i]->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
				contest->bytes += batch[i]->len;
				(void)rd_kafka_offset_store(
					batch[i]->rkt, batch[i]->partition, batch[i]->offset);
				left--;
			}
			rd_kafka_message_destroy(batch[i]);
		}
	}
	contest_stop(&contest->time);
	rd_kafka_queue_destroy(queue);
	(void)rd_kafka_consumer_close(rk);
	rd_kafka_destroy(rk);
}

int main(int argc, char **argv)
{
	struct cluster cluster = {NULL, NULL};
	const struct source_contest_ops ops = {
		.name = "librdkafka",
		.version = rd_kafka_version_str(),
		.in_hand = IN_HAND,
		.begins_with_share = true,
		.open = open_cluster,
		.close = close_cluster,
		.consume_bare = consume_bare,
	};

	return source_contest_main(&ops, &cluster, argc, argv);
}
