/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_kafka_source.c - the table of operations of a Kafka source, called by hand, on a mock cluster in this process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <hapax/source.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "source/kafka/kafka_private.h"

enum { WAIT_MS = 30000, COUNT = 20, SIZE = 100 * 1000, STARVED_MS = 1000 };

/* The mock cluster waits for a session less a second before it gives partitions to others. */
#define SOON "&session.timeout.ms=4000&heartbeat.interval.ms=100"

static rd_kafka_t *owner;
static rd_kafka_mock_cluster_t *mock;
static struct hapax_source *source;
/* It stands still unless a test says so: a source without a taker does not pause then. */
static int64_t now_ms;

static void no_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
	(void)rk, (void)level, (void)facility, (void)text;
}

static rd_kafka_t *producer(bool is_client)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char why[256];
	rd_kafka_t *rk;

	rd_kafka_conf_set_log_cb(conf, no_log);
	if (is_client)
		assert_int_equal(
			rd_kafka_conf_set(
				conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(mock),
				why, sizeof(why)),
			RD_KAFKA_CONF_OK);
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
	assert_non_null(rk);
	return rk;
}

static void produce_to(const char *topic, int32_t partition, int count, size_t size)
{
	rd_kafka_t *rk = producer(true);
	char *data = calloc(1, size);

	assert_non_null(data);
	for (int i = 0; i < count; i++)
		assert_int_equal(
			rd_kafka_producev(
				rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition),
				RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
				RD_KAFKA_V_VALUE(data, size), RD_KAFKA_V_END),
			RD_KAFKA_RESP_ERR_NO_ERROR);
	assert_int_equal(rd_kafka_flush(rk, WAIT_MS), RD_KAFKA_RESP_ERR_NO_ERROR);
	rd_kafka_destroy(rk);
	free(data);
}

static void produce(int count, size_t size)
{
	produce_to("orders", 0, count, size);
}

static void no_wake(void *context)
{
	(void)context;
}

static void count_fatal(void *context, const char *text, int is_fatal)
{
	(void)text;
	*(int *)context += is_fatal;
}

static void no_failure(void *context, const char *text, int is_fatal)
{
	(void)context, (void)text;
	assert_false(is_fatal);
}

static int set_up(void **state)
{
	(void)state;
	now_ms = 1;
	owner = producer(false);
	mock = rd_kafka_mock_cluster_new(owner, 1);
	return rd_kafka_mock_topic_create(mock, "orders", 1, 1) != RD_KAFKA_RESP_ERR_NO_ERROR ||
		rd_kafka_mock_topic_create(mock, "pair", 2, 1) != RD_KAFKA_RESP_ERR_NO_ERROR;
}

static struct hapax_source *open_member(const char *topic, const char *more)
{
	struct hapax_error err = {0};
	struct hapax_source *member;
	char url[256];

	(void)snprintf(
		url, sizeof(url), "kafka://%s/%s?group=g%s", rd_kafka_mock_cluster_bootstraps(mock),
		topic, more);
	assert_int_equal(hapax_source_open(url, &member, &err), HAPAX_OK);
	member->hooks = (struct hapax_source_hooks){.wake = no_wake, .failed = no_failure};
	return member;
}

static void open_source(const char *more)
{
	source = open_member("orders", more);
}

static int tear_down(void **state)
{
	(void)state;
	hapax_source_close(source);
	rd_kafka_mock_cluster_destroy(mock);
	rd_kafka_destroy(owner);
	return 0;
}

/* The next message, waited for. */
static struct hapax_message *take(void)
{
	int64_t end_ns = hx_clock_mono_ns() + WAIT_MS * INT64_C(1000000);
	struct hapax_message *message = NULL;

	while (message == NULL) {
		assert_true(hx_clock_mono_ns() < end_ns);
		(void)source->ops->tick(source, now_ms);
		message = source->ops->next(source);
		if (message == NULL)
			hx_thread_yield();
	}
	return message;
}

static void expect_place(const struct hapax_message *message, int64_t offset)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%lld", (long long)offset);
	assert_int_equal(message->place.size, strlen(text));
	assert_memory_equal(message->place.data, text, message->place.size);
}

static struct hx_kafka_source *kafka(void)
{
	return (struct hx_kafka_source *)source;
}

/* As if the topic was created again: the offset goes back, within what is ours. */
static void go_back(void)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	rd_kafka_error_t *error;

	rd_kafka_topic_partition_list_add(list, "orders", 0)->offset = 0;
	error = rd_kafka_seek_partitions(kafka()->consumer, list, WAIT_MS);
	assert_null(error);
	rd_kafka_topic_partition_list_destroy(list);
}

/* The broker has that offset as the group's, waited for. */
static void wait_for_commit(int64_t offset)
{
	int64_t end_ns = hx_clock_mono_ns() + WAIT_MS * INT64_C(1000000);
	int64_t committed = RD_KAFKA_OFFSET_INVALID;

	while (committed != offset) {
		rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);

		assert_true(hx_clock_mono_ns() < end_ns);
		(void)source->ops->tick(source, now_ms);
		(void)rd_kafka_topic_partition_list_add(list, "orders", 0);
		assert_int_equal(
			rd_kafka_committed(kafka()->consumer, list, WAIT_MS),
			RD_KAFKA_RESP_ERR_NO_ERROR);
		committed = list->elems[0].offset;
		rd_kafka_topic_partition_list_destroy(list);
	}
}

/* What was fetched with the first message of a log that was created again is new, too. */
static void a_log_that_begins_anew_is_read_whole(void **state)
{
	struct hapax_message *old = NULL;

	(void)state;
	produce(COUNT, 16);
	open_source("");
	for (int i = 0; i < COUNT; i++) {
		struct hapax_message *message = take();

		expect_place(message, i);
		if (i == COUNT / 2)
			old = message;
		else
			source->ops->ack(source, message);
	}
	go_back();
	for (int i = 0; i < COUNT; i++) {
		struct hapax_message *message = take();

		expect_place(message, i);
		/* What is out is of the log that is gone. */
		assert_true(old->flags & HAPAX_MESSAGE_REVOKED);
		assert_int_equal(source->ops->position(source, message), i + 1);
		source->ops->ack(source, message);
	}
	source->ops->give_back(source, old);
	assert_int_equal(hx_kafka_partition_find(kafka(), "orders", 0)->water.next, COUNT);
}

/* Or who starts after a crash would begin with an offset that is gone, and pass over what is new below it. */
static void a_log_that_begins_anew_is_committed_from_there(void **state)
{
	(void)state;
	produce(COUNT, 16);
	open_source("&auto.commit.interval.ms=10");
	for (int i = 0; i < COUNT; i++)
		source->ops->ack(source, take());
	wait_for_commit(COUNT);
	go_back();
	for (int i = 0; i < COUNT / 2; i++) {
		struct hapax_message *message = take();

		expect_place(message, i);
		wait_for_commit(i);
		source->ops->ack(source, message);
	}
	wait_for_commit(COUNT / 2);
}

/* Whatever their number: what is in hand has so many bytes, and one message more. */
static void messages_in_hand_are_bounded_in_bytes(void **state)
{
	struct hapax_message *messages[COUNT];
	int count = 0;

	(void)state;
	produce(COUNT, SIZE);
	open_source("&held_max=250000");
	while (count < 3)
		messages[count++] = take();
	/* There are more, and they wait. */
	while (kafka()->batch_next == kafka()->batch_count &&
	       rd_kafka_queue_length(kafka()->queue) == 0) {
		(void)source->ops->tick(source, now_ms);
		assert_null(source->ops->next(source));
		hx_thread_yield();
	}
	assert_null(source->ops->next(source));
	/* With one that goes there is room. */
	while (count < COUNT) {
		source->ops->ack(source, messages[count - 3]);
		messages[count++] = take();
		assert_null(source->ops->next(source));
	}
	source->ops->ack(source, messages[COUNT - 3]);
	source->ops->give_back(source, messages[COUNT - 2]);
	source->ops->give_back(source, messages[COUNT - 1]);
	assert_int_equal(kafka()->held_bytes, 0);
}

/* A header is a part of a message: without it, who sends large ones would not be bounded. */
static void headers_in_hand_are_counted(void **state)
{
	rd_kafka_t *rk;
	char header[1000];
	struct hapax_message *message;

	(void)state;
	memset(header, 'x', sizeof(header));
	rk = producer(true);
	assert_int_equal(
		rd_kafka_producev(
			rk, RD_KAFKA_V_TOPIC("orders"), RD_KAFKA_V_PARTITION(0),
			RD_KAFKA_V_KEY(header, 3), RD_KAFKA_V_VALUE(header, 5),
			RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
			RD_KAFKA_V_HEADER("header", header, sizeof(header)),
			RD_KAFKA_V_HEADER("null", NULL, 0), RD_KAFKA_V_END),
		RD_KAFKA_RESP_ERR_NO_ERROR);
	assert_int_equal(rd_kafka_flush(rk, WAIT_MS), RD_KAFKA_RESP_ERR_NO_ERROR);
	rd_kafka_destroy(rk);
	open_source("");
	message = take();
	assert_int_equal(message->header_count, 2);
	assert_int_equal(kafka()->held_bytes, 3 + 5 + 6 + sizeof(header) + 4);
	source->ops->ack(source, message);
	assert_int_equal(kafka()->held_bytes, 0);
}

static void on_told(
	struct hapax_publication *publication, enum hapax_status status, const char *why)
{
	(void)why;
	*(enum hapax_status *)publication->context = status;
}

/* No broker accepts dead letters, and the consumer has waited to its limit: it gets the error. */
static void a_stop_does_not_wait_for_letters(void **state)
{
	enum hapax_status told[2] = {HAPAX_OK, HAPAX_OK};
	struct hapax_publication letters[2];
	struct hapax_message *message;

	(void)state;
	produce(1, 16);
	/* Left alone, a letter would be given up behind all that this test may take. */
	open_source("&message.timeout.ms=3600000");
	message = take();
	assert_int_equal(rd_kafka_mock_broker_set_down(mock, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
	for (size_t i = 0; i < 2; i++) {
		letters[i] = (struct hapax_publication){
			.target = "orders",
			.message = message,
			.done = on_told,
			.context = &told[i]};
		source->ops->publish(source, &letters[i]);
		if (i == 0)
			source->ops->hurry(source);
	}
	while (told[0] == HAPAX_OK || told[1] == HAPAX_OK) {
		(void)source->ops->tick(source, now_ms);
		hx_thread_yield();
	}
	source->ops->give_back(source, message);
	assert_int_equal(rd_kafka_mock_broker_set_up(mock, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
}

static int64_t lag(void)
{
	struct hapax_source_stats stats = HAPAX_SOURCE_STATS_INIT;

	source->ops->stats(source, &stats);
	return stats.lag;
}

static uint64_t parts_of(struct hapax_source *member)
{
	struct hapax_source_stats stats = HAPAX_SOURCE_STATS_INIT;

	member->ops->stats(member, &stats);
	return stats.parts;
}

/* Until the source has so many, and asks for more, but nothing has come. */
static void wait_for_parts(uint64_t count)
{
	int64_t end_ns = hx_clock_mono_ns() + WAIT_MS * INT64_C(1000000);

	while (parts_of(source) != count) {
		assert_true(hx_clock_mono_ns() < end_ns);
		(void)source->ops->tick(source, now_ms);
		assert_null(source->ops->next(source));
		hx_thread_yield();
	}
}

/* Another one joins the group while the source has no taker; the source gives it one of two. */
static struct hapax_source *join_while_starved(void)
{
	int64_t end_ns = hx_clock_mono_ns() + WAIT_MS * INT64_C(1000000);
	struct hapax_source *other = open_member("pair", SOON);

	while (parts_of(source) != 1 || parts_of(other) != 1) {
		assert_true(hx_clock_mono_ns() < end_ns);
		now_ms += STARVED_MS;
		(void)source->ops->tick(source, now_ms);
		(void)other->ops->tick(other, now_ms);
		assert_null(other->ops->next(other));
		hx_thread_yield();
	}
	assert_true(kafka()->is_paused);
	return other;
}

/* librdkafka remembers that it was paused, and would never resume. */
static void a_partition_that_was_lost_while_paused_comes_back(void **state)
{
	struct hapax_source *other;
	struct hapax_message *message;
	int32_t number;

	(void)state;
	source = open_member("pair", SOON);
	wait_for_parts(2);
	other = join_while_starved();
	number = hx_kafka_partition_find(kafka(), "pair", 0) == NULL ? 0 : 1;
	assert_null(source->ops->next(source));
	assert_false(kafka()->is_paused);
	hapax_source_close(other);
	wait_for_parts(2);
	produce_to("pair", number, 1, 16);
	message = take();
	assert_int_equal(message->partition, number);
	source->ops->ack(source, message);
}

/* What librdkafka does with all partitions before a rebalance, while something is told. */
static void pause_and_resume(void *context, const char *text, int is_fatal)
{
	rd_kafka_topic_partition_list_t *list;

	(void)text;
	assert_false(is_fatal);
	if (*(size_t *)context > 0)
		return;
	*(size_t *)context = kafka()->batch_count - kafka()->batch_next;
	list = rd_kafka_topic_partition_list_new(1);
	(void)rd_kafka_topic_partition_list_add(list, "orders", 0);
	assert_int_equal(
		rd_kafka_pause_partitions(kafka()->consumer, list), RD_KAFKA_RESP_ERR_NO_ERROR);
	assert_int_equal(
		rd_kafka_resume_partitions(kafka()->consumer, list), RD_KAFKA_RESP_ERR_NO_ERROR);
	rd_kafka_topic_partition_list_destroy(list);
}

static void wait_for_queue(size_t length)
{
	int64_t end_ns = hx_clock_mono_ns() + WAIT_MS * INT64_C(1000000);

	while (rd_kafka_queue_length(kafka()->queue) < length) {
		assert_true(hx_clock_mono_ns() < end_ns);
		hx_thread_yield();
	}
}

/* It is in the batch, where a partition that is taken away has it dropped, and else it is not lost. */
static void what_came_before_a_pause_is_there(void **state)
{
	size_t seen = 0;

	(void)state;
	open_source("");
	wait_for_parts(1);
	source->hooks.failed = pause_and_resume;
	source->hooks.context = &seen;
	produce(COUNT, 16);
	wait_for_queue(COUNT);
	/* Something to tell, behind the messages. */
	assert_int_equal(rd_kafka_mock_broker_set_down(mock, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
	wait_for_queue(COUNT + 1);
	assert_int_equal(rd_kafka_mock_broker_set_up(mock, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
	for (int i = 0; i < COUNT; i++) {
		struct hapax_message *message = take();

		expect_place(message, i);
		source->ops->ack(source, message);
	}
	assert_int_equal(seen, COUNT);
}

/* A backlog that was not read yet is not none. */
static void a_lag_that_is_not_known_is_not_zero(void **state)
{
	(void)state;
	open_source("");
	assert_int_equal(lag(), -1);
	wait_for_parts(1);
	produce(COUNT, 16);
	now_ms += STARVED_MS;
	(void)source->ops->tick(source, now_ms);
	assert_true(kafka()->is_paused);
	assert_int_equal(lag(), -1);
	for (int i = 0; i < COUNT; i++) {
		struct hapax_message *message = take();

		assert_int_equal(lag(), COUNT - i);
		source->ops->ack(source, message);
	}
	assert_int_equal(lag(), 0);
	/* Where it stands is known now. */
	now_ms += STARVED_MS;
	(void)source->ops->tick(source, now_ms);
	assert_true(kafka()->is_paused);
	assert_int_equal(lag(), 0);
}

/* The broker would take it for ours, and no consumer would get its messages. */
static void a_partition_without_memory_is_fatal(void **state)
{
	int fatal = 0;

	(void)state;
	open_source("");
	source->hooks.failed = count_fatal;
	source->hooks.context = &fatal;
	hx_alloc_fail_at(1, 0);
	hx_kafka_partition_gain(kafka(), "orders", 0);
	hx_alloc_fail_at(0, 0);
	assert_int_equal(fatal, 1);
	assert_int_equal(kafka()->partition_count, 0);
	hx_kafka_partition_gain(kafka(), "orders", 0);
	assert_int_equal(fatal, 1);
	assert_int_equal(kafka()->partition_count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_log_that_begins_anew_is_read_whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_log_that_begins_anew_is_committed_from_there, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			messages_in_hand_are_bounded_in_bytes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(headers_in_hand_are_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_stop_does_not_wait_for_letters, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_partition_that_was_lost_while_paused_comes_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_came_before_a_pause_is_there, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_lag_that_is_not_known_is_not_zero, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_partition_without_memory_is_fatal, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("kafka_source", tests, NULL, NULL);
}
