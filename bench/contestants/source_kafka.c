/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_kafka.c - messages consumed from Kafka: what a consumer pays for not doing it twice.
 *
 *	--mode MODE      bare: librdkafka's own loop, the offset stored after each message
 *	                 hapax: hapax_consumer_run(), claim and complete on file:
 *	--messages N     small ones, each with an id, over four partitions
 *	--folder DIR     for the store
 *
 * The broker is librdkafka's mock cluster, in this process: its share is the same in both. The
 * clock runs from the assignment of the partitions, when fetching begins, to the last
 * acknowledgement, which is an offset stored for librdkafka to commit once a second; joining the
 * group is not in it.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <hapax/hapax.h>

#include "base/thread.h"
#include "contest.h"
#include "folder.h"
#include "keys.h"

enum { PARTITIONS = 4, DATA_SIZE = 64, WAIT_MS = 60000, BATCH = 256, POLL_MS = 5, IN_HAND = 1024 };

struct kafka_contest {
	const char *mode;
	const char *folder;
	uint64_t messages;
	rd_kafka_t *rk;
	rd_kafka_mock_cluster_t *mock;
	struct contest_time time;
	bool has_begun;
	uint64_t bytes; /* what the handler looks at */
	struct hapax_consumer *consumer;
};

static void no_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
	(void)rk, (void)level, (void)facility, (void)text;
}

static void begin(struct kafka_contest *contest)
{
	if (contest->has_begun)
		return;
	contest->has_begun = true;
	contest_start(&contest->time);
}

static void on_rebalance(
	rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list,
	void *opaque)
{
	bool gains = err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;

	if (gains)
		begin(opaque);
	(void)rd_kafka_assign(rk, gains ? list : NULL);
}

static rd_kafka_t *connect_as(struct kafka_contest *contest, rd_kafka_type_t type)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char why[256];
	rd_kafka_t *rk;

	rd_kafka_conf_set_log_cb(conf, no_log);
	if (contest->mock != NULL)
		(void)rd_kafka_conf_set(
			conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(contest->mock),
			why, sizeof(why));
	if (type == RD_KAFKA_CONSUMER) {
		(void)rd_kafka_conf_set(conf, "group.id", "bare", why, sizeof(why));
		(void)rd_kafka_conf_set(conf, "auto.offset.reset", "earliest", why, sizeof(why));
		(void)rd_kafka_conf_set(
			conf, "enable.auto.offset.store", "false", why, sizeof(why));
		/* As hapax has them; librdkafka's own 500 would only make the peer wait. */
		(void)rd_kafka_conf_set(conf, "fetch.wait.max.ms", "100", why, sizeof(why));
		(void)rd_kafka_conf_set(conf, "auto.commit.interval.ms", "1000", why, sizeof(why));
		(void)rd_kafka_conf_set(
			conf, "queued.max.messages.kbytes", "32768", why, sizeof(why));
		rd_kafka_conf_set_opaque(conf, contest);
		rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
	}
	rk = rd_kafka_new(type, conf, why, sizeof(why));
	if (rk == NULL)
		contest_fail("librdkafka: %s", why);
	return rk;
}

static void fill(struct kafka_contest *contest, uint64_t seed)
{
	rd_kafka_t *rk = connect_as(contest, RD_KAFKA_PRODUCER);
	char key[KEY_TEXT_SIZE], data[DATA_SIZE];

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
	if (rd_kafka_flush(rk, WAIT_MS) != RD_KAFKA_RESP_ERR_NO_ERROR)
		contest_fail("the mock cluster did not take all messages");
	rd_kafka_destroy(rk);
}

static void consume_bare(struct kafka_contest *contest)
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

static enum hapax_run_outcome handle(struct hapax_work *work, void *context)
{
	struct kafka_contest *contest = context;

	contest->bytes += work->event->data.size;
	return HAPAX_RUN_OK;
}

static void run(void *arg)
{
	struct kafka_contest *contest = arg;
	struct hapax_error err;

	contest_expect_ok(hapax_consumer_run(contest->consumer, &err), &err, "consume");
}

static void consume_hapax(struct kafka_contest *contest, const char *path)
{
	struct hapax_registration row = HAPAX_REGISTRATION_INIT;
	struct hapax_consumer_options options = HAPAX_CONSUMER_OPTIONS_INIT;
	struct hapax_consumer_stats stats = HAPAX_CONSUMER_STATS_INIT;
	char url[FOLDER_PATH_SIZE + 64];
	struct hapax_source *source = NULL;
	struct hapax_store *store = NULL;
	struct hx_thread thread;
	struct hapax_error err;

	row.handler = handle;
	row.context = contest;
	options.flags = HAPAX_CONSUMER_INLINE;
	options.rows = &row;
	options.row_count = 1;
	options.prefetch = IN_HAND;
	options.parallel = IN_HAND;
	(void)snprintf(url, sizeof(url), "file:%s/store", path);
	contest_expect_ok(hapax_store_open(url, NULL, &store, &err), &err, url);
	(void)snprintf(
		url, sizeof(url), "kafka://%s/orders?group=hapax",
		rd_kafka_mock_cluster_bootstraps(contest->mock));
	contest_expect_ok(hapax_source_open(url, &source, &err), &err, url);
	contest_expect_ok(
		hapax_consumer_new(source, store, &options, &contest->consumer, &err), &err, url);
	contest_expect_ok(hx_thread_start(&thread, run, contest, "consumer", &err), &err, "thread");
	do {
		struct timespec pause = {0, 1000000};

		(void)nanosleep(&pause, NULL);
		hapax_consumer_stats(contest->consumer, &stats);
		if (stats.rebalances > 0)
			begin(contest);
	} while (stats.acknowledged < contest->messages);
	contest_stop(&contest->time);
	hapax_consumer_stop(contest->consumer);
	hx_thread_join(&thread);
	if (stats.runs[HAPAX_RUN_OK] != contest->messages)
		contest_fail("some ran twice, or not");
	hapax_consumer_free(contest->consumer);
	hapax_store_close(store);
}

static void round_of(uint64_t seed, void *context)
{
	struct kafka_contest *contest = context;
	char path[FOLDER_PATH_SIZE];

	contest->time = (struct contest_time){0, 0};
	contest->has_begun = false;
	contest->bytes = 0;
	contest->mock = NULL;
	contest->rk = connect_as(contest, RD_KAFKA_PRODUCER);
	contest->mock = rd_kafka_mock_cluster_new(contest->rk, 1);
	(void)rd_kafka_mock_topic_create(contest->mock, "orders", PARTITIONS, 1);
	fill(contest, seed);
	folder_make(contest->folder, path);
	if (strcmp(contest->mode, "bare") == 0)
		consume_bare(contest);
	else
		consume_hapax(contest, path);
	if (contest->bytes != contest->messages * DATA_SIZE)
		contest_fail("not every message was seen once");
	folder_remove(path);
	rd_kafka_mock_cluster_destroy(contest->mock);
	rd_kafka_destroy(contest->rk);
	contest_print_time("consume", &contest->time, contest->messages);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"mode", required_argument, NULL, 'm'},
		{"messages", required_argument, NULL, 'n'},
		{"folder", required_argument, NULL, 'f'},
		{NULL, 0, NULL, 0},
	};
	struct kafka_contest contest = {.mode = "bare", .folder = ".", .messages = 20000};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'm': contest.mode = optarg; break;
		case 'n': contest.messages = contest_parse_count(optarg); break;
		case 'f': contest.folder = optarg; break;
		default: return 64;
		}
	}
	contest_run(
		strcmp(contest.mode, "bare") == 0 ? "librdkafka" : "hapax",
		strcmp(contest.mode, "bare") == 0 ? rd_kafka_version_str() : hapax_version(),
		round_of, &contest);
	return 0;
}
