/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.c - a producer and a reader for tests, with bare librdkafka.
 *
 *	client SERVERS produce TOPIC     each line of standard input is a message:
 *	    KEY <tab> DATA [<tab> NAME=VALUE]...       "\N" for no key, no data
 *	client SERVERS read TOPIC COUNT  as many messages of all partitions, a line each:
 *	    PARTITION <tab> OFFSET <tab> KEY <tab> DATA [<tab> NAME=VALUE]...
 *	client SERVERS committed GROUP TOPIC PARTITIONS    the sum of what is committed
 *	client SERVERS reset GROUP TOPIC PARTITIONS        to offset 0
 *	client SERVERS topic NAME PARTITIONS               make a topic
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <librdkafka/rdkafka.h>

enum { WAIT_MS = 30000, LINE_SIZE = 12 * 1024 * 1024 };

static void no_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
	(void)rk, (void)level, (void)facility, (void)text;
}

static long undelivered;

static void on_delivered(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
	(void)rk, (void)opaque;
	undelivered += message->err != RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_t *connect_as(rd_kafka_type_t type, const char *servers, const char *group)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char why[256];
	rd_kafka_t *rk;

	rd_kafka_conf_set_log_cb(conf, no_log);
	(void)rd_kafka_conf_set(conf, "bootstrap.servers", servers, why, sizeof(why));
	(void)rd_kafka_conf_set(conf, "message.max.bytes", "104857600", why, sizeof(why));
	(void)rd_kafka_conf_set(conf, "allow.auto.create.topics", "true", why, sizeof(why));
	if (type == RD_KAFKA_PRODUCER) {
		rd_kafka_conf_set_dr_msg_cb(conf, on_delivered);
		(void)rd_kafka_conf_set(conf, "linger.ms", "5", why, sizeof(why));
	} else {
		(void)rd_kafka_conf_set(conf, "group.id", group, why, sizeof(why));
		(void)rd_kafka_conf_set(conf, "auto.offset.reset", "earliest", why, sizeof(why));
		(void)rd_kafka_conf_set(conf, "enable.auto.commit", "false", why, sizeof(why));
	}
	rk = rd_kafka_new(type, conf, why, sizeof(why));
	if (rk == NULL) {
		(void)fprintf(stderr, "client: %s\n", why);
		exit(1);
	}
	return rk;
}

static char *none_or(char *text)
{
	return strcmp(text, "\\N") == 0 ? NULL : text;
}

static void produce_line(rd_kafka_t *rk, const char *topic, char *line)
{
	char *rest = line;
	char *key = none_or(strsep(&rest, "\t"));
	char *data = rest == NULL ? NULL : none_or(strsep(&rest, "\t"));
	rd_kafka_headers_t *headers = rd_kafka_headers_new(8);
	size_t key_size = key == NULL ? 0 : strlen(key);
	size_t data_size = data == NULL ? 0 : strlen(data);
	rd_kafka_resp_err_t err;
	char *header;

	while ((header = strsep(&rest, "\t")) != NULL) {
		char *value = strchr(header, '=');

		if (value == NULL) {
			(void)rd_kafka_header_add(headers, header, -1, NULL, 0);
			continue;
		}
		*value++ = '\0';
		(void)rd_kafka_header_add(headers, header, -1, value, -1);
	}
	do {
		err = rd_kafka_producev(
			rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
			RD_KAFKA_V_KEY(key, key_size), RD_KAFKA_V_VALUE(data, data_size),
			RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END);
		(void)rd_kafka_poll(rk, err == RD_KAFKA_RESP_ERR__QUEUE_FULL ? 100 : 0);
	} while (err == RD_KAFKA_RESP_ERR__QUEUE_FULL);
	if (err != RD_KAFKA_RESP_ERR_NO_ERROR) {
		(void)fprintf(stderr, "client: %s\n", rd_kafka_err2str(err));
		exit(1);
	}
}

static int produce(const char *servers, const char *topic)
{
	rd_kafka_t *rk = connect_as(RD_KAFKA_PRODUCER, servers, NULL);
	char *line = malloc(LINE_SIZE);

	while (line != NULL && fgets(line, LINE_SIZE, stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		produce_line(rk, topic, line);
	}
	if (rd_kafka_flush(rk, WAIT_MS) != RD_KAFKA_RESP_ERR_NO_ERROR)
		undelivered++;
	rd_kafka_destroy(rk);
	free(line);
	return undelivered > 0;
}

static void print_message(const rd_kafka_message_t *message)
{
	rd_kafka_headers_t *headers;
	const char *name;
	const void *value;
	size_t size;

	(void)printf(
		"%" PRId32 "\t%" PRId64 "\t%.*s\t%.*s", message->partition, message->offset,
		message->key == NULL ? 2 : (int)message->key_len,
		message->key == NULL ? "\\N" : (const char *)message->key,
		message->payload == NULL ? 2 : (int)message->len,
		message->payload == NULL ? "\\N" : (const char *)message->payload);
	if (rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR) {
		for (size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &size) ==
		     RD_KAFKA_RESP_ERR_NO_ERROR;
		     i++)
			(void)printf("\t%s=%.*s", name, (int)size, (const char *)value);
	}
	(void)printf("\n");
}

static int read_some(const char *servers, const char *topic, long count)
{
	rd_kafka_t *rk = connect_as(RD_KAFKA_CONSUMER, servers, "client-reader");
	const rd_kafka_metadata_t *metadata;
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(8);
	rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
	rd_kafka_resp_err_t err = rd_kafka_metadata(rk, 0, rkt, &metadata, WAIT_MS);

	if (err != RD_KAFKA_RESP_ERR_NO_ERROR) {
		(void)fprintf(stderr, "client: %s\n", rd_kafka_err2str(err));
		return 1;
	}
	for (int i = 0; i < metadata->topics[0].partition_cnt; i++)
		rd_kafka_topic_partition_list_add(list, topic, metadata->topics[0].partitions[i].id)
			->offset = RD_KAFKA_OFFSET_BEGINNING;
	rd_kafka_metadata_destroy(metadata);
	rd_kafka_topic_destroy(rkt);
	(void)rd_kafka_assign(rk, list);
	rd_kafka_topic_partition_list_destroy(list);
	while (count > 0) {
		rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, WAIT_MS);

		if (message == NULL)
			return 1;
		if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
			print_message(message);
			count--;
		}
		rd_kafka_message_destroy(message);
	}
	(void)rd_kafka_consumer_close(rk);
	rd_kafka_destroy(rk);
	return 0;
}

static int offsets(
	const char *servers, const char *group, const char *topic, int partitions, int resets)
{
	rd_kafka_t *rk = connect_as(RD_KAFKA_CONSUMER, servers, group);
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(partitions);
	rd_kafka_resp_err_t err;
	int64_t sum = 0;

	for (int i = 0; i < partitions; i++)
		rd_kafka_topic_partition_list_add(list, topic, i)->offset = 0;
	err = resets ? rd_kafka_commit(rk, list, 0) : rd_kafka_committed(rk, list, WAIT_MS);
	for (int i = 0; i < partitions; i++)
		sum += list->elems[i].offset > 0 ? list->elems[i].offset : 0;
	if (!resets)
		(void)printf("%" PRId64 "\n", sum);
	rd_kafka_topic_partition_list_destroy(list);
	rd_kafka_destroy(rk);
	if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
		(void)fprintf(stderr, "client: %s\n", rd_kafka_err2str(err));
	return err != RD_KAFKA_RESP_ERR_NO_ERROR;
}

static int make_topic(const char *servers, const char *name, int partitions)
{
	rd_kafka_t *rk = connect_as(RD_KAFKA_PRODUCER, servers, NULL);
	rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
	rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(name, partitions, 1, NULL, 0);
	rd_kafka_event_t *event = NULL;
	const rd_kafka_topic_result_t **results;
	size_t count = 0;
	int failed = 1;

	rd_kafka_CreateTopics(rk, &topic, 1, NULL, queue);
	event = rd_kafka_queue_poll(queue, WAIT_MS);
	if (event != NULL && rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR_NO_ERROR) {
		results = rd_kafka_CreateTopics_result_topics(
			rd_kafka_event_CreateTopics_result(event), &count);
		failed = count != 1 ||
			rd_kafka_topic_result_error(results[0]) != RD_KAFKA_RESP_ERR_NO_ERROR;
	}
	if (event != NULL)
		rd_kafka_event_destroy(event);
	rd_kafka_NewTopic_destroy(topic);
	rd_kafka_queue_destroy(queue);
	rd_kafka_destroy(rk);
	return failed;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[2], "produce") == 0)
		return produce(argv[1], argv[3]);
	if (argc == 5 && strcmp(argv[2], "read") == 0)
		return read_some(argv[1], argv[3], strtol(argv[4], NULL, 10));
	if (argc == 5 && strcmp(argv[2], "topic") == 0)
		return make_topic(argv[1], argv[3], (int)strtol(argv[4], NULL, 10));
	if (argc == 6)
		return offsets(
			argv[1], argv[3], argv[4], (int)strtol(argv[5], NULL, 10),
			strcmp(argv[2], "reset") == 0);
	return 64;
}
