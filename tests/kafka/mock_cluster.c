/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mock_cluster.c - librdkafka's mock cluster in a process of its own: a Kafka for tests.
 *
 *	mock_cluster BROKERS TOPIC:PARTITIONS...
 *
 * Prints where it listens, then reads commands, a line each, and answers "ok":
 *
 *	down N, up N     broker N goes away and comes back, with all that it has
 *	topic NAME N     make a topic
 *	error NAME N     a client that asks for that topic gets this error; it need not exist
 *	refuse N         the next N who ask for committed offsets are told to come later
 *
 * It ends with its standard input. What it is not: durable, and larger than 5 MiB for each
 * partition.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

static void no_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
	(void)rk, (void)level, (void)facility, (void)text;
}

static int make_topic(rd_kafka_mock_cluster_t *cluster, const char *name, int partitions)
{
	return rd_kafka_mock_topic_create(cluster, name, partitions, 1) !=
		RD_KAFKA_RESP_ERR_NO_ERROR;
}

static void refuse_offsets(rd_kafka_mock_cluster_t *cluster, int count)
{
	enum { OFFSET_FETCH = 9 };

	for (int i = 0; i < count; i++)
		rd_kafka_mock_push_request_errors(
			cluster, OFFSET_FETCH, 1, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS);
}

static void obey(rd_kafka_mock_cluster_t *cluster, char *line)
{
	char *name = strchr(line, ' ');
	char *last = strrchr(line, ' ');
	int number;

	if (last == NULL)
		exit(64);
	number = (int)strtol(last, NULL, 10);
	if (strncmp(line, "down ", 5) == 0) {
		(void)rd_kafka_mock_broker_set_down(cluster, number);
	} else if (strncmp(line, "up ", 3) == 0) {
		(void)rd_kafka_mock_broker_set_up(cluster, number);
	} else if (strncmp(line, "refuse ", 7) == 0) {
		refuse_offsets(cluster, number);
	} else if (strncmp(line, "topic ", 6) == 0 && name != last) {
		*last = '\0';
		(void)make_topic(cluster, name + 1, number);
	} else if (strncmp(line, "error ", 6) == 0 && name != last) {
		*last = '\0';
		rd_kafka_mock_topic_set_error(cluster, name + 1, (rd_kafka_resp_err_t)number);
	} else {
		exit(64);
	}
}

int main(int argc, char **argv)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_mock_cluster_t *cluster;
	char line[256];
	rd_kafka_t *rk;

	if (argc < 2)
		return 64;
	rd_kafka_conf_set_log_cb(conf, no_log);
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, line, sizeof(line));
	if (rk == NULL)
		return 71;
	cluster = rd_kafka_mock_cluster_new(rk, (int)strtol(argv[1], NULL, 10));
	for (int i = 2; i < argc; i++) {
		char *colon = strrchr(argv[i], ':');

		if (colon == NULL)
			return 64;
		*colon = '\0';
		if (make_topic(cluster, argv[i], (int)strtol(colon + 1, NULL, 10)))
			return 70;
	}
	(void)printf("%s\n", rd_kafka_mock_cluster_bootstraps(cluster));
	(void)fflush(stdout);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		obey(cluster, line);
		(void)printf("ok\n");
		(void)fflush(stdout);
	}
	rd_kafka_mock_cluster_destroy(cluster);
	rd_kafka_destroy(rk);
	return 0;
}
