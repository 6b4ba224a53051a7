/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_rabbit.c - messages consumed from RabbitMQ: what a consumer pays for not doing it twice.
 *
 *	--mode MODE      bare: librabbitmq's own loop
 *	                 hapax: hapax_consumer_run(), claim and complete on file:
 *	--messages N     small ones, each with an id, in one quorum queue
 *	--folder DIR     for the store
 *
 * Both have the same prefetch and acknowledge many at once: the bare loop whenever it has read what there
 * was, and every 256 messages. The broker is that of tests/rabbitmq/with_rabbitmq. The clock runs from the
 * first message until the broker waits for none of them.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <hapax/hapax.h>

#include "base/thread.h"
#include "broker/rabbit.h"
#include "contest.h"
#include "folder.h"
#include "keys.h"

enum { DATA_SIZE = 64, WAIT_MS = 60000, BATCH = 256, IN_HAND = 4096 };

static const char queue[] = "bench-source";

struct rabbit_contest {
	const char *mode;
	const char *folder;
	uint64_t messages;
	struct hx_rabbit_place place;
	struct contest_time time;
	bool has_begun;
	uint64_t bytes; /* what the handler looks at */
	struct hapax_consumer *consumer;
};

static void open_rabbit(const struct rabbit_contest *contest, struct hx_rabbit *rabbit)
{
	struct hapax_error err;

	memset(rabbit, 0, sizeof(*rabbit));
	contest_expect_ok(hx_rabbit_open(rabbit, &contest->place, WAIT_MS, &err), &err, "open");
}

static void check_reply(const struct hx_rabbit *rabbit, const char *what)
{
	if (amqp_get_rpc_reply(rabbit->conn).reply_type != AMQP_RESPONSE_NORMAL)
		contest_fail("RabbitMQ refused: %s", what);
}

static void fill(const struct rabbit_contest *contest, uint64_t seed)
{
	struct hx_rabbit rabbit;
	char key[KEY_TEXT_SIZE], data[DATA_SIZE];
	uint64_t tag = 0, ready = 0;
	struct hapax_error err;

	open_rabbit(contest, &rabbit);
	(void)amqp_queue_delete(rabbit.conn, HX_RABBIT_CHANNEL, amqp_cstring_bytes(queue), 0, 0);
	check_reply(&rabbit, "delete");
	contest_expect_ok(
		hx_rabbit_declare_queue(&rabbit, hapax_bytes_from_text(queue), &err), &err, queue);
	memset(data, 'x', sizeof(data));
	for (uint64_t i = 0; i < contest->messages; i++) {
		struct hx_rabbit_message message = {
			.exchange = "",
			.routing_key = hapax_bytes_from_text(queue),
			.message_id = {key, sizeof(key)},
			.body = {data, sizeof(data)}};

		key_text(seed, i, key);
		contest_expect_ok(
			hx_rabbit_publish(&rabbit, &message, &tag, &err), &err, "publish");
	}
	while (ready < contest->messages) {
		struct timespec pause = {0, 1000000};
		const amqp_queue_declare_ok_t *declared = amqp_queue_declare(
			rabbit.conn, HX_RABBIT_CHANNEL, amqp_cstring_bytes(queue), 1, 0, 0, 0,
			amqp_empty_table);

		check_reply(&rabbit, "declare");
		ready = declared->message_count;
		(void)nanosleep(&pause, NULL);
	}
	hx_rabbit_close(&rabbit);
}

static void begin(struct rabbit_contest *contest)
{
	if (contest->has_begun)
		return;
	contest->has_begun = true;
	contest_start(&contest->time);
}

static void ack(struct hx_rabbit *rabbit, uint64_t tag)
{
	if (amqp_basic_ack(rabbit->conn, HX_RABBIT_CHANNEL, tag, 1) != AMQP_STATUS_OK)
		contest_fail("an acknowledgement was not sent");
}

static void consume_bare(struct rabbit_contest *contest)
{
	struct timeval wait = {.tv_sec = WAIT_MS / 1000};
	uint64_t acked = 0, seen = 0;
	struct hx_rabbit rabbit;

	open_rabbit(contest, &rabbit);
	(void)amqp_basic_qos(rabbit.conn, HX_RABBIT_CHANNEL, 0, IN_HAND, 0);
	check_reply(&rabbit, "qos");
	(void)amqp_basic_consume(
		rabbit.conn, HX_RABBIT_CHANNEL, amqp_cstring_bytes(queue), amqp_empty_bytes, 0, 0,
		0, amqp_empty_table);
	check_reply(&rabbit, "consume");
	while (seen < contest->messages) {
		amqp_envelope_t envelope;

		amqp_maybe_release_buffers(rabbit.conn);
		if (amqp_consume_message(rabbit.conn, &envelope, &wait, 0).reply_type !=
		    AMQP_RESPONSE_NORMAL)
			contest_fail("a message was not read");
		begin(contest);
		contest->bytes += envelope.message.body.len;
		seen = envelope.delivery_tag;
		amqp_destroy_envelope(&envelope);
		if (seen - acked < BATCH &&
		    (amqp_data_in_buffer(rabbit.conn) || amqp_frames_enqueued(rabbit.conn)))
			continue;
		ack(&rabbit, seen);
		acked = seen;
	}
	if (acked < seen)
		ack(&rabbit, seen);
	(void)amqp_channel_close(rabbit.conn, HX_RABBIT_CHANNEL, AMQP_REPLY_SUCCESS);
	contest_stop(&contest->time);
	hx_rabbit_close(&rabbit);
}

static enum hapax_run_outcome handle(struct hapax_work *work, void *context)
{
	struct rabbit_contest *contest = context;

	begin(contest);
	contest->bytes += work->event->data.size;
	return HAPAX_RUN_OK;
}

static void run(void *arg)
{
	struct rabbit_contest *contest = arg;
	struct hapax_error err;

	contest_expect_ok(hapax_consumer_run(contest->consumer, &err), &err, "consume");
}

static void consume_hapax(struct rabbit_contest *contest, const char *path)
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
		url, sizeof(url), "amqp://guest:guest@%s/%s?prefetch=%d",
		getenv("HAPAX_TEST_RABBITMQ"), queue, IN_HAND);
	contest_expect_ok(hapax_source_open(url, &source, &err), &err, url);
	contest_expect_ok(
		hapax_consumer_new(source, store, &options, &contest->consumer, &err), &err, url);
	contest_expect_ok(hx_thread_start(&thread, run, contest, "consumer", &err), &err, "thread");
	do {
		struct timespec pause = {0, 200000};

		(void)nanosleep(&pause, NULL);
		hapax_consumer_stats(contest->consumer, &stats);
	} while (stats.acknowledged < contest->messages);
	/* Its end waits until the broker has read all acknowledgements, as that of the bare loop. */
	hapax_consumer_stop(contest->consumer);
	hx_thread_join(&thread);
	hapax_consumer_free(contest->consumer);
	contest_stop(&contest->time);
	if (stats.runs[HAPAX_RUN_OK] != contest->messages)
		contest_fail("some ran twice, or not");
	hapax_store_close(store);
}

static void round_of(uint64_t seed, void *context)
{
	struct rabbit_contest *contest = context;
	char path[FOLDER_PATH_SIZE];

	contest->time = (struct contest_time){0, 0};
	contest->has_begun = false;
	contest->bytes = 0;
	fill(contest, seed);
	folder_make(contest->folder, path);
	if (strcmp(contest->mode, "bare") == 0)
		consume_bare(contest);
	else
		consume_hapax(contest, path);
	if (contest->bytes != contest->messages * DATA_SIZE)
		contest_fail("not every message was seen once");
	folder_remove(path);
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
	struct rabbit_contest contest = {.mode = "bare", .folder = ".", .messages = 20000};
	const char *address = getenv("HAPAX_TEST_RABBITMQ");
	struct hapax_error err;
	char url[256];
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'm': contest.mode = optarg; break;
		case 'n': contest.messages = contest_parse_count(optarg); break;
		case 'f': contest.folder = optarg; break;
		default: return 64;
		}
	}
	if (address == NULL)
		contest_fail("there is no RabbitMQ: run it by tests/rabbitmq/with_rabbitmq");
	(void)snprintf(url, sizeof(url), "amqp://guest:guest@%s", address);
	contest_expect_ok(hx_rabbit_place_parse(url, &contest.place, &err), &err, url);
	contest_run(
		strcmp(contest.mode, "bare") == 0 ? "librabbitmq" : "hapax",
		strcmp(contest.mode, "bare") == 0 ? amqp_version() : hapax_version(), round_of,
		&contest);
	return 0;
}
