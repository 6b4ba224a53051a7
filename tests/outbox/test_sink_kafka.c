/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From PostgreSQL to Kafka: the cases of all sinks, with librdkafka's mock cluster in a process of
 * its own (tests/kafka/mock_cluster.c), whose only broker goes away and comes back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <librdkafka/rdkafka.h>

#include "outbox/sink_case.h"

/* A partition of the mock cluster holds 5 MiB, and throws the oldest away beyond. */
#define PARTITIONS     128
#define TEXT_OF(value) #value
#define TEXT(value)    TEXT_OF(value)

enum { WAIT_MS = 60 * 1000 };

static struct {
	pid_t pid;
	FILE *in;
	FILE *out;
	char servers[256];
} cluster;

static void start_cluster(const char *program)
{
	int in[2], out[2];

	/* A database that is started later must not keep it from ending. */
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	cluster.pid = fork();
	assert_true(cluster.pid >= 0);
	if (cluster.pid == 0) {
		(void)dup2(in[0], 0);
		(void)dup2(out[1], 1);
		(void)execl(
			program, program, "1", "t12:" TEXT(PARTITIONS), "carried:1",
			"carried-sqlite:1", "parking:4", (char *)NULL);
		_exit(127);
	}
	(void)close(in[0]);
	(void)close(out[1]);
	cluster.in = fdopen(in[1], "w");
	cluster.out = fdopen(out[0], "r");
	assert_non_null(fgets(cluster.servers, sizeof(cluster.servers), cluster.out));
	cluster.servers[strcspn(cluster.servers, "\n")] = '\0';
}

static void tell(const char *line)
{
	char answer[16];

	(void)fprintf(cluster.in, "%s\n", line);
	(void)fflush(cluster.in);
	assert_non_null(fgets(answer, sizeof(answer), cluster.out));
	assert_string_equal(answer, "ok\n");
}

static void broker_url(enum sink_mode mode, char *out, size_t size)
{
	(void)snprintf(
		out, size, "kafka://%s%s", cluster.servers,
		mode == SINK_STRICT ? "?message.max.bytes=2000000" : "");
}

static void broker_restart(void)
{
	tell("down 1");
	tell("up 1");
}

static void no_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
	(void)rk, (void)level, (void)facility, (void)text;
}

/* All partitions from their beginning; *ret_count is how many there are. */
static rd_kafka_t *open_reader(const char *topic, int *ret_count)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(PARTITIONS);
	const rd_kafka_metadata_t *metadata = NULL;
	rd_kafka_topic_t *handle;
	rd_kafka_t *reader;
	char why[200];

	rd_kafka_conf_set_log_cb(conf, no_log);
	(void)rd_kafka_conf_set(conf, "bootstrap.servers", cluster.servers, why, sizeof(why));
	(void)rd_kafka_conf_set(conf, "group.id", "reader", why, sizeof(why));
	(void)rd_kafka_conf_set(conf, "enable.auto.commit", "false", why, sizeof(why));
	(void)rd_kafka_conf_set(conf, "enable.partition.eof", "true", why, sizeof(why));
	(void)rd_kafka_conf_set(conf, "fetch.wait.max.ms", "10", why, sizeof(why));
	reader = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof(why));
	assert_non_null(reader);
	handle = rd_kafka_topic_new(reader, topic, NULL);
	assert_int_equal(rd_kafka_metadata(reader, 0, handle, &metadata, WAIT_MS), 0);
	assert_int_equal(metadata->topic_cnt, 1);
	*ret_count = metadata->topics[0].partition_cnt;
	for (int i = 0; i < *ret_count; i++)
		rd_kafka_topic_partition_list_add(list, topic, i)->offset =
			RD_KAFKA_OFFSET_BEGINNING;
	assert_int_equal(rd_kafka_assign(reader, list), 0);
	rd_kafka_metadata_destroy(metadata);
	rd_kafka_topic_destroy(handle);
	rd_kafka_topic_partition_list_destroy(list);
	return reader;
}

static void take(const rd_kafka_message_t *message, sink_message_fn *each, void *context)
{
	struct sink_message taken = {.body = {message->payload, message->len}};
	rd_kafka_headers_t *headers = NULL;
	const char *name;
	const void *value;
	size_t size;

	assert_int_equal(rd_kafka_message_headers(message, &headers), 0);
	while (taken.count < HAPAX_OUTBOX_HEADERS_MAX &&
	       rd_kafka_header_get_all(headers, taken.count, &name, &value, &size) == 0) {
		taken.fields[taken.count].name = hapax_bytes_from_text(name);
		taken.fields[taken.count++].value = (struct hapax_bytes){value, size};
	}
	/* What keeps the order is the key of the message. */
	assert_int_equal(message->key_len, strlen(sink_message_field(&taken, "ce_partitionkey")));
	assert_memory_equal(
		message->key, sink_message_field(&taken, "ce_partitionkey"), message->key_len);
	each(context, &taken);
}

static void broker_read(const char *topic, sink_message_fn *each, void *context)
{
	int left = 0;
	rd_kafka_t *reader = open_reader(topic, &left);

	while (left > 0) {
		rd_kafka_message_t *message = rd_kafka_consumer_poll(reader, WAIT_MS);

		assert_non_null(message);
		if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
			left--;
		else if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR)
			take(message, each, context);
		rd_kafka_message_destroy(message);
	}
	(void)rd_kafka_consumer_close(reader);
	rd_kafka_destroy(reader);
}

int main(int argc, char **argv)
{
	static const struct sink_bad bad[] = {
		{"unroutable", "nowhere", 1, "topic 'nowhere': Broker: Unknown topic or partition"},
		{"large", "parking", 3000000, "(3000000 bytes): Broker: Message size too large"},
		{"name", "no/topic", 1, "invalid topic 'no/topic'"},
	};
	static const struct sink_broker broker = {
		.name = "Kafka",
		.prefix = "ce_",
		.absent = "kafka://127.0.0.1:1",
		.bad = bad,
		.bad_count = sizeof(bad) / sizeof(bad[0]),
		.restarts_fast = true,
		.url = broker_url,
		.restart = broker_restart,
		.read = broker_read,
	};
	const char *program = argc > 1 ? argv[1] : getenv("HAPAX_KAFKA_MOCK");
	int failed;

	if (program == NULL)
		return 64;
	start_cluster(program);
	/* As of brokers that make no topics; by itself this one would. */
	tell("error nowhere 3");
	failed = sink_cases_run(&broker, NULL, 0);
	(void)fclose(cluster.in);
	(void)fclose(cluster.out);
	(void)waitpid(cluster.pid, NULL, 0);
	return failed;
}
