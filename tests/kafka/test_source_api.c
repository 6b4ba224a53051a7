/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_source_api.c - hapax/source.h from C: rows of functions, on workers and inline, on a mock cluster
 * in this process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <hapax/hapax.h>

#include "base/thread.h"

enum { PAID = 60, SHIPPED = 20, OTHER = 5, TWICE = 12, ALL = PAID + SHIPPED + OTHER + TWICE };

struct cluster {
	rd_kafka_t *rk;
	rd_kafka_mock_cluster_t *mock;
	char url[256];
};

static void no_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
	(void)rk, (void)level, (void)facility, (void)text;
}

static void cluster_open(struct cluster *cluster)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char why[256];

	rd_kafka_conf_set_log_cb(conf, no_log);
	cluster->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
	assert_non_null(cluster->rk);
	cluster->mock = rd_kafka_mock_cluster_new(cluster->rk, 1);
	assert_int_equal(rd_kafka_mock_topic_create(cluster->mock, "orders", 2, 1), 0);
	assert_int_equal(rd_kafka_mock_topic_create(cluster->mock, "orders.dead", 1, 1), 0);
	(void)snprintf(
		cluster->url, sizeof(cluster->url), "kafka://%s/orders?group=api",
		rd_kafka_mock_cluster_bootstraps(cluster->mock));
}

static void cluster_close(struct cluster *cluster)
{
	rd_kafka_mock_cluster_destroy(cluster->mock);
	rd_kafka_destroy(cluster->rk);
}

static void send_events(const struct cluster *cluster, const char *type, int first, int count)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char why[256], id[32];
	rd_kafka_t *rk;

	rd_kafka_conf_set_log_cb(conf, no_log);
	(void)rd_kafka_conf_set(
		conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(cluster->mock), why,
		sizeof(why));
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
	assert_non_null(rk);
	for (int i = 0; i < count; i++) {
		size_t size = (size_t)snprintf(id, sizeof(id), "%s-%d", type, first + i);

		assert_int_equal(
			rd_kafka_producev(
				rk, RD_KAFKA_V_TOPIC("orders"),
				RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(id, size),
				RD_KAFKA_V_VALUE(id, size), RD_KAFKA_V_HEADER("eventId", id, -1),
				RD_KAFKA_V_HEADER("eventType", type, -1), RD_KAFKA_V_END),
			0);
	}
	assert_int_equal(rd_kafka_flush(rk, 30000), 0);
	rd_kafka_destroy(rk);
}

struct counts {
	_Atomic int paid;
	_Atomic int shipped;
	_Atomic int fails; /* of the first shipped ones */
};

static enum hapax_run_outcome pay(struct hapax_work *work, void *context)
{
	struct counts *counts = context;

	assert_true(work->token > 0);
	assert_non_null(work->event);
	assert_int_equal(work->event->data.size, work->key.size);
	assert_int_equal(hapax_work_write(work, "receipt", 7), HAPAX_OK);
	atomic_fetch_add(&counts->paid, 1);
	return HAPAX_RUN_OK;
}

static enum hapax_run_outcome ship(struct hapax_work *work, void *context)
{
	struct counts *counts = context;

	if (work->attempt == 1 && atomic_fetch_add(&counts->fails, 1) < 3)
		return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, "no van");
	atomic_fetch_add(&counts->shipped, 1);
	return HAPAX_RUN_OK;
}

struct runner {
	struct hapax_consumer *consumer;
	enum hapax_status status;
	struct hx_thread thread;
};

static void run(void *arg)
{
	struct runner *runner = arg;

	runner->status = hapax_consumer_run(runner->consumer, NULL);
}

static void until_acknowledged(struct hapax_consumer *consumer, uint64_t count)
{
	struct hapax_consumer_stats stats = HAPAX_CONSUMER_STATS_INIT;

	do {
		hx_thread_yield();
		hapax_consumer_stats(consumer, &stats);
	} while (stats.acknowledged < count);
}

static void consume(unsigned flags)
{
	struct counts counts = {0};
	const struct hapax_registration rows[] = {
		{.size = sizeof(rows[0]), .type = "paid", .handler = pay, .context = &counts},
		{.size = sizeof(rows[0]),
		 .type = "shipped",
		 .strategy = "header:eventId",
		 .handler = ship,
		 .context = &counts},
	};
	struct hapax_consumer_options options = HAPAX_CONSUMER_OPTIONS_INIT;
	struct hapax_consumer_stats stats = HAPAX_CONSUMER_STATS_INIT;
	struct hapax_source *source = NULL;
	struct hapax_store *store = NULL;
	struct runner runner = {.status = HAPAX_ERR_INVALID};
	struct cluster cluster;
	struct hapax_error err = {0};

	cluster_open(&cluster);
	send_events(&cluster, "paid", 0, PAID);
	send_events(&cluster, "shipped", 0, SHIPPED);
	send_events(&cluster, "other", 0, OTHER);
	send_events(&cluster, "paid", 3, TWICE);
	options.flags = flags;
	options.rows = rows;
	options.row_count = 2;
	options.backoff_ms = 5;
	assert_int_equal(hapax_store_open("memory:", NULL, &store, &err), HAPAX_OK);
	assert_int_equal(hapax_source_open(cluster.url, &source, &err), HAPAX_OK);
	assert_int_equal(
		hapax_consumer_new(source, store, &options, &runner.consumer, &err), HAPAX_OK);
	assert_int_equal(hx_thread_start(&runner.thread, run, &runner, "runner", &err), HAPAX_OK);
	until_acknowledged(runner.consumer, ALL);
	hapax_consumer_stop(runner.consumer);
	hx_thread_join(&runner.thread);
	assert_int_equal(runner.status, HAPAX_OK);
	hapax_consumer_stats(runner.consumer, &stats);
	assert_int_equal(stats.in_hand, 0);
	assert_int_equal(stats.runs[HAPAX_RUN_OK], PAID + SHIPPED);
	assert_int_equal(stats.runs[HAPAX_RUN_TRANSIENT], 3);
	assert_int_equal(stats.duplicates[HAPAX_CAUSE_PRODUCER], TWICE);
	assert_int_equal(stats.dead_letters, OTHER);
	assert_int_equal(atomic_load(&counts.paid), PAID);
	assert_int_equal(atomic_load(&counts.shipped), SHIPPED);
	/* Once in its life. */
	assert_int_equal(hapax_consumer_run(runner.consumer, &err), HAPAX_ERR_INVALID);
	hapax_consumer_free(runner.consumer);
	hapax_store_close(store);
	cluster_close(&cluster);
}

static void functions_run_on_workers(void **state)
{
	(void)state;
	consume(0);
}

static void functions_run_inline(void **state)
{
	(void)state;
	consume(HAPAX_CONSUMER_INLINE);
}

static void wrong_options_are_refused_and_leave_the_source(void **state)
{
	struct hapax_registration row = HAPAX_REGISTRATION_INIT;
	struct hapax_consumer_options options = HAPAX_CONSUMER_OPTIONS_INIT;
	struct hapax_consumer *consumer = NULL;
	struct hapax_source *source = NULL;
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};

	(void)state;
	assert_int_equal(hapax_store_open("memory:", NULL, &store, &err), HAPAX_OK);
	assert_int_equal(
		hapax_source_open(
			"kafka://127.0.0.1:1/t?group=g&sasl.password=hush", &source, &err),
		HAPAX_OK);
	assert_string_equal(hapax_source_url(source), "kafka://127.0.0.1:1/t?group=g");
	assert_int_equal(
		hapax_consumer_new(source, store, NULL, &consumer, &err), HAPAX_ERR_INVALID);
	assert_int_equal(
		hapax_consumer_new(source, store, &options, &consumer, &err), HAPAX_ERR_INVALID);
	options.rows = &row;
	options.row_count = 1;
	assert_int_equal(
		hapax_consumer_new(source, store, &options, &consumer, &err), HAPAX_ERR_INVALID);
	row.handler = pay;
	row.strategy = "uuid7";
	assert_int_equal(
		hapax_consumer_new(source, store, &options, &consumer, &err), HAPAX_ERR_INVALID);
	row.strategy = NULL;
	options.to = "http://127.0.0.1:1/";
	assert_int_equal(
		hapax_consumer_new(source, store, &options, &consumer, &err), HAPAX_ERR_INVALID);
	options.row_count = 0;
	assert_int_equal(hapax_consumer_new(source, store, &options, &consumer, &err), HAPAX_OK);
	/* One that never ran. */
	hapax_consumer_free(consumer);
	hapax_consumer_free(NULL);
	hapax_source_close(NULL);
	hapax_store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_run_on_workers),
		cmocka_unit_test(functions_run_inline),
		cmocka_unit_test(wrong_options_are_refused_and_leave_the_source),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
