/* SPDX-License-Identifier: Apache-2.0 */
/* A client of librdkafka: the order of its settings, what is always so, and messages that go out. */
#include "broker/kafka_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static void expect(const rd_kafka_conf_t *conf, const char *name, const char *value)
{
	char text[64];
	size_t size = sizeof(text);

	assert_int_equal(rd_kafka_conf_get(conf, name, text, &size), RD_KAFKA_CONF_OK);
	assert_string_equal(text, value);
}

static void later_settings_override_earlier_ones(void **state)
{
	static const struct hx_kafka_property first[] = {
		{"client.id", "first"}, {"linger.ms", "7"}, {"group.id", NULL}, {NULL, NULL}};
	static const struct hx_kafka_property last[] = {{"client.id", "last"}, {NULL, NULL}};
	const struct hx_kafka_property *lists[] = {first, last, NULL};
	rd_kafka_conf_t *conf = hx_kafka_client_conf("127.0.0.1:1", lists, NULL);

	(void)state;
	assert_non_null(conf);
	expect(conf, "bootstrap.servers", "127.0.0.1:1");
	expect(conf, "client.id", "last");
	expect(conf, "linger.ms", "7");
	rd_kafka_conf_destroy(conf);
}

static void a_refused_value_is_not_shown(void **state)
{
	static const struct hx_kafka_property bad[] = {
		{"linger.ms", "s3cret"}, {"client.id", "not reached"}, {NULL, NULL}};
	const struct hx_kafka_property *lists[] = {bad, NULL};
	struct hapax_error err = {.message = ""};

	(void)state;
	assert_null(hx_kafka_client_conf("127.0.0.1:1", lists, &err));
	assert_int_equal(err.status, HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "'linger.ms'"));
	assert_null(strstr(err.message, "s3cret"));
}

static void a_client_that_cannot_be_takes_its_settings_with_it(void **state)
{
	/* Two properties that are fine by themselves. */
	static const struct hx_kafka_property unfit[] = {
		{"max.poll.interval.ms", "1000"}, {"session.timeout.ms", "6000"}, {NULL, NULL}};
	const struct hx_kafka_property *lists[] = {unfit, NULL};
	rd_kafka_conf_t *conf = hx_kafka_client_conf("127.0.0.1:1", lists, NULL);
	struct hapax_error err = {.message = ""};

	(void)state;
	assert_non_null(conf);
	assert_null(hx_kafka_client_new(RD_KAFKA_CONSUMER, conf, &err));
	assert_int_equal(err.status, HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "max.poll.interval.ms"));
}

struct report {
	int count;
	rd_kafka_resp_err_t code;
	bool has_value;
	size_t value_size;
};

static void on_delivered(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
	struct report *report = message->_private;

	(void)rk;
	(void)opaque;
	*report = (struct report){
		report->count + 1, message->err, message->payload != NULL, message->len};
}

/* With a cluster of librdkafka's own. */
static rd_kafka_t *open_producer(const struct hx_kafka_property *own)
{
	static const struct hx_kafka_property mock[] = {
		{"test.mock.num.brokers", "1"}, {"message.max.bytes", "1000"}, {NULL, NULL}};
	const struct hx_kafka_property *lists[] = {mock, own, NULL};
	rd_kafka_conf_t *conf = hx_kafka_client_conf(NULL, lists, NULL);
	rd_kafka_t *producer;

	assert_non_null(conf);
	rd_kafka_conf_set_dr_msg_cb(conf, on_delivered);
	producer = hx_kafka_client_new(RD_KAFKA_PRODUCER, conf, NULL);
	assert_non_null(producer);
	return producer;
}

static void every_producer_is_idempotent_and_waits_for_all_replicas(void **state)
{
	static const struct hx_kafka_property careless[] = {
		{"enable.idempotence", "false"}, {"acks", "1"}, {NULL, NULL}};
	rd_kafka_t *producer = open_producer(careless);

	(void)state;
	expect(rd_kafka_conf(producer), "enable.idempotence", "true");
	expect(rd_kafka_conf(producer), "acks", "-1");
	rd_kafka_destroy(producer);
}

static rd_kafka_headers_t *headers(void)
{
	rd_kafka_headers_t *headers = rd_kafka_headers_new(1);

	(void)rd_kafka_header_add(headers, "name", -1, "value", -1);
	return headers;
}

static void messages_are_reported_as_they_were(void **state)
{
	static const struct hx_kafka_property none[] = {{NULL, NULL}};
	rd_kafka_t *producer = open_producer(none);
	rd_kafka_topic_t *topic = rd_kafka_topic_new(producer, "topic", NULL);
	struct report full = {0}, empty = {0}, tombstone = {0}, large = {0};
	static char bytes[2000];
	struct hx_kafka_record record = {
		.topic_name = "topic",
		.key = hapax_bytes_from_text("key"),
		.value = hapax_bytes_from_text("value"),
		.opaque = &full};

	(void)state;
	assert_int_equal(hx_kafka_client_produce(producer, &record, headers()), 0);
	record.topic = topic;
	record.topic_name = NULL;
	record.key = record.value = (struct hapax_bytes){NULL, 0};
	record.opaque = &empty;
	assert_int_equal(hx_kafka_client_produce(producer, &record, headers()), 0);
	record.is_tombstone = true;
	record.opaque = &tombstone;
	assert_int_equal(hx_kafka_client_produce(producer, &record, headers()), 0);
	record.is_tombstone = false;
	record.value = (struct hapax_bytes){bytes, sizeof(bytes)};
	record.opaque = &large;
	assert_int_equal(
		hx_kafka_client_produce(producer, &record, headers()),
		RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
	assert_int_equal(rd_kafka_flush(producer, 60000), 0);
	assert_true(full.count == 1 && full.code == 0 && full.value_size == 5);
	assert_true(empty.count == 1 && empty.code == 0 && empty.has_value);
	assert_true(tombstone.count == 1 && tombstone.code == 0 && !tombstone.has_value);
	assert_int_equal(large.count, 0);
	rd_kafka_topic_destroy(topic);
	rd_kafka_destroy(producer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(later_settings_override_earlier_ones),
		cmocka_unit_test(a_refused_value_is_not_shown),
		cmocka_unit_test(a_client_that_cannot_be_takes_its_settings_with_it),
		cmocka_unit_test(every_producer_is_idempotent_and_waits_for_all_replicas),
		cmocka_unit_test(messages_are_reported_as_they_were),
	};

	return cmocka_run_group_tests_name("kafka_client", tests, NULL, NULL);
}
