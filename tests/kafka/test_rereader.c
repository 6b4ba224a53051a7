/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_rereader.c - the past of a partition whose log is not what it was when the group read it, on a mock
 * cluster in this process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "base/thread.h"
#include "source/kafka/rereader.h"

enum { WAIT_MS = 30000, BIG = 700 * 1024 };

static rd_kafka_t *owner;
static rd_kafka_mock_cluster_t *mock;

static void no_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
	(void)rk, (void)level, (void)facility, (void)text;
}

static rd_kafka_conf_t *conf_of(const char *group)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	const char *const settings[][2] = {
		{"group.id", group},
		{"enable.auto.commit", "false"},
		{"auto.offset.reset", "earliest"},
		{"enable.partition.eof", "true"},
		{"bootstrap.servers", rd_kafka_mock_cluster_bootstraps(mock)},
	};
	char why[256];

	rd_kafka_conf_set_log_cb(conf, no_log);
	/* A producer has no group. */
	for (size_t i = group == NULL ? 4 : 0; i < 5; i++)
		assert_int_equal(
			rd_kafka_conf_set(conf, settings[i][0], settings[i][1], why, sizeof(why)),
			RD_KAFKA_CONF_OK);
	return conf;
}

static int set_up(void **state)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char why[256];

	(void)state;
	rd_kafka_conf_set_log_cb(conf, no_log);
	owner = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
	if (owner == NULL)
		return 1;
	mock = rd_kafka_mock_cluster_new(owner, 1);
	return rd_kafka_mock_topic_create(mock, "orders", 1, 1) != RD_KAFKA_RESP_ERR_NO_ERROR;
}

static int tear_down(void **state)
{
	(void)state;
	rd_kafka_mock_cluster_destroy(mock);
	rd_kafka_destroy(owner);
	return 0;
}

static void produce(int count, size_t size)
{
	char why[256];
	rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf_of(NULL), why, sizeof(why));
	char *data = calloc(1, size);

	assert_non_null(rk);
	assert_non_null(data);
	for (int i = 0; i < count; i++)
		assert_int_equal(
			rd_kafka_producev(
				rk, RD_KAFKA_V_TOPIC("orders"), RD_KAFKA_V_PARTITION(0),
				RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
				RD_KAFKA_V_VALUE(data, size), RD_KAFKA_V_END),
			RD_KAFKA_RESP_ERR_NO_ERROR);
	assert_int_equal(rd_kafka_flush(rk, WAIT_MS), RD_KAFKA_RESP_ERR_NO_ERROR);
	rd_kafka_destroy(rk);
	free(data);
}

/* What the group has acknowledged, wherever its log ends. */
static void commit(const char *group, int64_t offset)
{
	char why[256];
	rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf_of(group), why, sizeof(why));
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);

	assert_non_null(rk);
	rd_kafka_topic_partition_list_add(list, "orders", 0)->offset = offset;
	assert_int_equal(rd_kafka_commit(rk, list, 0), RD_KAFKA_RESP_ERR_NO_ERROR);
	rd_kafka_topic_partition_list_destroy(list);
	rd_kafka_destroy(rk);
}

static void no_wake(void *context)
{
	(void)context;
}

/* What of the past was read again. */
struct past {
	int64_t first; /* -1: nothing */
	int64_t last;
	int count;
};

static struct past reread(const char *group, int64_t span_ms, int64_t span_count)
{
	struct past past = {-1, -1, 0};
	struct hx_rereader rereader;
	struct hapax_error err = {0};
	uint64_t id, found;

	hx_rereader_init(&rereader, span_ms, span_count);
	assert_int_equal(
		hx_rereader_start(&rereader, conf_of(group), no_wake, NULL, &err), HAPAX_OK);
	id = hx_rereader_ask(&rereader, "orders", 0);
	assert_true(id > 0);
	while (hx_rereader_over(&rereader) != id) {
		rd_kafka_message_t *message = hx_rereader_next(&rereader, &found);

		if (message == NULL) {
			hx_thread_yield();
			continue;
		}
		assert_int_equal(found, id);
		if (past.first < 0)
			past.first = message->offset;
		past.last = message->offset;
		past.count++;
		rd_kafka_message_destroy(message);
	}
	hx_rereader_done(&rereader);
	return past;
}

static void the_past_ends_where_the_group_stands(void **state)
{
	struct past past;

	(void)state;
	produce(10, 16);
	commit("middle", 6);
	past = reread("middle", 0, 4);
	assert_int_equal(past.first, 2);
	assert_int_equal(past.last, 5);
	past = reread("middle", 60000, 0);
	assert_int_equal(past.first, 0);
	assert_int_equal(past.last, 5);
	past = reread("nobody", 0, 4);
	assert_int_equal(past.count, 0);
}

/* The topic was created again, or its log cut: what stands there now was never acknowledged. */
static void a_log_that_ends_before_that_has_no_past(void **state)
{
	(void)state;
	produce(10, 16);
	commit("ahead", 11);
	assert_int_equal(reread("ahead", 0, 100).count, 0);
	assert_int_equal(reread("ahead", 60000, 0).count, 0);
	/* All of it, to the last one, is a past. */
	commit("level", 10);
	assert_int_equal(reread("level", 0, 100).count, 10);
}

/* The mock cluster keeps the last 5 MiB of a partition. */
static void of_a_log_whose_beginning_is_gone_the_rest_is_read(void **state)
{
	struct past past;

	(void)state;
	produce(10, BIG);
	commit("part", 8);
	past = reread("part", 0, 100);
	assert_true(past.first > 0);
	assert_int_equal(past.last, 7);
	assert_int_equal(past.count, past.last - past.first + 1);
	assert_int_equal(reread("part", 60000, 0).count, past.count);
	/* All that was acknowledged is gone. */
	commit("gone", past.first);
	assert_int_equal(reread("gone", 0, 100).count, 0);
	assert_int_equal(reread("gone", 60000, 0).count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			the_past_ends_where_the_group_stands, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_log_that_ends_before_that_has_no_past, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			of_a_log_whose_beginning_is_gone_the_rest_is_read, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
