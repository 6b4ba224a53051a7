/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sink kafka:// on its own, with librdkafka's mock cluster in this process: what the answers of
 * brokers mean, and what happens when there are none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "outbox/sink/kafka_target.h"
#include "outbox/sink_rows.h"

enum { WAIT_MS = 60 * 1000, PRODUCE = 0 /* the number of the request */ };

static rd_kafka_t *rk;
static rd_kafka_mock_cluster_t *mock;
static struct sink_rows rows;

static void no_log(const rd_kafka_t *r, int level, const char *facility, const char *text)
{
	(void)r, (void)level, (void)facility, (void)text;
}

static int set_up(void **state)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char why[200];

	(void)state;
	rd_kafka_conf_set_log_cb(conf, no_log);
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
	assert_non_null(rk);
	mock = rd_kafka_mock_cluster_new(rk, 1);
	assert_int_equal(rd_kafka_mock_topic_create(mock, "topic", 1, 1), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	rd_kafka_mock_cluster_destroy(mock);
	rd_kafka_destroy(rk);
	return 0;
}

static struct hx_sink *open_sink(const char *rest)
{
	char url[256];

	(void)snprintf(
		url, sizeof(url), "kafka://%s%s", rd_kafka_mock_cluster_bootstraps(mock), rest);
	return sink_rows_open(url);
}

/* ------------------------------------------------------------------ URLs */

static void urls_are_taken_apart(void **state)
{
	static const char *const bad[] = {
		"kafka://",
		"kafka:///topic",
		"kafka://u:p@h/topic",
		"kafka://h/%zz",
		"kafka://h?acks=0",
		"kafka://h?enable.idempotence=false",
		"kafka://h?bootstrap.servers=x",
		"kafka://h?plugin.library.paths=x",
		"kafka://h?delivery.report.only.error=true",
		"kafka://h?linger.ms",
	};
	struct hx_kafka_target target;
	struct hapax_error err;

	(void)state;
	if (hx_kafka_target_parse(
		    "kafka://h:1,g:2/to%2Epic?linger.ms=7&sasl.password=a%26b&", &target, &err) !=
	    HAPAX_OK)
		fail_msg("%s", err.message);
	assert_string_equal(target.url.servers, "h:1,g:2");
	assert_string_equal(target.topic, "to.pic");
	assert_int_equal(target.url.property_count, 2);
	assert_string_equal(target.url.properties[0].name, "linger.ms");
	assert_string_equal(target.url.properties[0].value, "7");
	assert_string_equal(target.url.properties[1].value, "a&b");
	assert_int_equal(
		hx_kafka_target_parse("kafka://h?partitioner=random", &target, &err), HAPAX_OK);
	assert_string_equal(target.topic, "");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (hx_kafka_target_parse(bad[i], &target, &err) != HAPAX_ERR_INVALID)
			fail_msg("%s was taken", bad[i]);
		assert_true(err.message[0] != '\0');
	}
}

static void properties_that_are_none_are_told_at_once(void **state)
{
	struct hx_sink *sink = NULL;
	struct hapax_error err = {0};

	(void)state;
	assert_int_equal(
		hx_sink_open("kafka://h?ssl.key.password=secret&no.such=secret", "", &sink, &err),
		HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "'no.such'"));
	assert_null(strstr(err.message, "secret"));
}

/* ------------------------------------------------------------------ answers */

static void all_are_sent_and_a_topic_can_be_the_urls(void **state)
{
	struct hx_sink *sink = open_sink("/topic");

	(void)state;
	sink_rows_make(&rows, "another", 600);
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, NULL), HAPAX_OK);
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_SENT), 600);
	hx_sink_close(sink);
}

/* It is the batch that is too large, and no message of it. */
static void a_batch_that_is_refused_goes_one_by_one(void **state)
{
	struct hx_sink *sink = open_sink("");

	(void)state;
	sink_rows_make(&rows, "topic", 10);
	rd_kafka_mock_push_request_errors(mock, PRODUCE, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, NULL), HAPAX_OK);
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_SENT), 10);
	hx_sink_close(sink);
}

static void who_is_refused_alone_is_parked(void **state)
{
	struct hx_sink *sink = open_sink("");

	(void)state;
	sink_rows_make(&rows, "topic", 10);
	rd_kafka_mock_push_request_errors(
		mock, PRODUCE, 2, RD_KAFKA_RESP_ERR_INVALID_RECORD,
		RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, NULL), HAPAX_OK);
	assert_int_equal(rows.rows[0].outcome, HX_OUTBOX_REFUSED);
	assert_non_null(strstr(rows.rows[0].error, "Message size too large"));
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_SENT), 9);
	/* The producer goes on. */
	sink_rows_make(&rows, "topic", 10);
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, NULL), HAPAX_OK);
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_SENT), 10);
	hx_sink_close(sink);
}

static void what_one_topic_forbids_is_tried_again(void **state)
{
	struct hx_sink *sink = open_sink("");

	(void)state;
	sink_rows_make(&rows, "topic", 2);
	rd_kafka_mock_push_request_errors(
		mock, PRODUCE, 1, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, NULL), HAPAX_OK);
	assert_true(sink_rows_with(&rows, HX_OUTBOX_FAILED) > 0);
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_UNDECIDED), 0);
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_REFUSED), 0);
	hx_sink_close(sink);
}

static void topics_that_are_not_there_park_their_rows_only(void **state)
{
	struct hx_sink *sink = open_sink("");

	(void)state;
	/* As of brokers that make no topics; by itself this one would. */
	rd_kafka_mock_topic_set_error(mock, "nowhere", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	sink_rows_make(&rows, "topic", 9);
	rows.rows[2].topic = hapax_bytes_from_text("nowhere");
	rows.rows[4].topic = hapax_bytes_from_text("nowhere");
	rows.rows[6].topic = hapax_bytes_from_text("..");
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, NULL), HAPAX_OK);
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_SENT), 6);
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_REFUSED), 3);
	assert_non_null(strstr(rows.rows[2].error, "'nowhere'"));
	assert_non_null(strstr(rows.rows[6].error, "invalid topic"));
	hx_sink_close(sink);
}

/* More than are remembered, and back to the first. */
static void topics_come_and_go(void **state)
{
	static char names[100][16];
	struct hx_sink *sink = open_sink("?allow.auto.create.topics=true");

	(void)state;
	sink_rows_make(&rows, "topic", 200);
	for (size_t i = 0; i < 200; i++) {
		(void)snprintf(names[i % 100], sizeof(names[0]), "made-%zu", i % 100);
		rows.rows[i].topic = hapax_bytes_from_text(names[i % 100]);
	}
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, NULL), HAPAX_OK);
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_SENT), 200);
	hx_sink_close(sink);
}

/* ------------------------------------------------------------------ outages */

static void brokers_that_are_away_are_nobodys_fault(void **state)
{
	struct hx_sink *sink = open_sink("");
	struct hapax_error err = {0};

	(void)state;
	sink_rows_make(&rows, "topic", 10);
	assert_int_equal(sink->ops->connect(sink, &err), HAPAX_OK);
	(void)rd_kafka_mock_broker_set_down(mock, 1);
	assert_int_equal(sink_rows_publish(&rows, sink, 500, &err), HAPAX_ERR_UNAVAILABLE);
	assert_true(strlen(err.message) > 30);
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_UNDECIDED), 10);
	assert_int_equal(sink->ops->keep_alive(sink, &err), HAPAX_ERR_UNAVAILABLE);
	(void)rd_kafka_mock_broker_set_up(mock, 1);
	/* While it comes up again it may still be away. */
	while (sink_rows_publish(&rows, sink, 2000, &err) == HAPAX_ERR_UNAVAILABLE)
		continue;
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_SENT), 10);
	hx_sink_close(sink);
}

static void what_is_not_confirmed_in_time_is_not_decided(void **state)
{
	struct hx_sink *sink = open_sink("");
	struct hapax_error err = {0};

	(void)state;
	sink_rows_make(&rows, "topic", 10);
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, &err), HAPAX_OK);
	sink_rows_make(&rows, "topic", 10);
	assert_int_equal(rd_kafka_mock_broker_set_rtt(mock, 1, 1000), 0);
	assert_int_equal(sink_rows_publish(&rows, sink, 100, &err), HAPAX_ERR_UNAVAILABLE);
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_UNDECIDED), 10);
	assert_int_equal(sink_rows_awaited(&rows), 10);
	assert_int_equal(rd_kafka_mock_broker_set_rtt(mock, 1, 0), 0);
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, &err), HAPAX_OK);
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_SENT), 10);
	assert_int_equal(sink_rows_awaited(&rows), 0);
	hx_sink_close(sink);
}

/* The broker disagrees with the producer's numbers: another producer begins. */
static void a_producer_that_gave_up_is_replaced(void **state)
{
	struct hx_sink *sink = open_sink("");
	struct hapax_error err = {0};

	(void)state;
	sink_rows_make(&rows, "topic", 10);
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, &err), HAPAX_OK);
	sink_rows_make(&rows, "topic", 10);
	rd_kafka_mock_push_request_errors(
		mock, PRODUCE, 1, RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED);
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, &err), HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "Cluster authorization failed"));
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_SENT), 0);
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, &err), HAPAX_OK);
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_SENT), 10);
	hx_sink_close(sink);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(urls_are_taken_apart),
		cmocka_unit_test(properties_that_are_none_are_told_at_once),
		CASE(all_are_sent_and_a_topic_can_be_the_urls),
		CASE(a_batch_that_is_refused_goes_one_by_one),
		CASE(who_is_refused_alone_is_parked),
		CASE(what_one_topic_forbids_is_tried_again),
		CASE(topics_that_are_not_there_park_their_rows_only),
		CASE(topics_come_and_go),
		CASE(brokers_that_are_away_are_nobodys_fault),
		CASE(what_is_not_confirmed_in_time_is_not_decided),
		CASE(a_producer_that_gave_up_is_replaced),
	};

	return cmocka_run_group_tests_name("kafka_sink", tests, NULL, NULL);
}
