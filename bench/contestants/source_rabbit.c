/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_rabbit.c - messages consumed from RabbitMQ; see source_contest.h.
 *
 * From one quorum queue. Both have the same prefetch and acknowledge many at once: the bare loop whenever it
 * has read what there was, and every 256 messages. The broker is that of tests/rabbitmq/with_rabbitmq. It
 * answers to the close of the channel when it has read all acknowledgements.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "broker/rabbit.h"
#include "keys.h"
#include "source_contest.h"

enum { BATCH = 256, IN_HAND = 4096 };

static const char queue[] = "bench-source";

static void open_rabbit(const struct source_contest *contest, struct hx_rabbit *rabbit)
{
	struct hapax_error err;

	memset(rabbit, 0, sizeof(*rabbit));
	contest_expect_ok(
		hx_rabbit_open(rabbit, contest->context, SOURCE_WAIT_MS, &err), &err, "open");
}

static void check_reply(const struct hx_rabbit *rabbit, const char *what)
{
	if (amqp_get_rpc_reply(rabbit->conn).reply_type != AMQP_RESPONSE_NORMAL)
		contest_fail("RabbitMQ refused: %s", what);
}

static void fill(struct source_contest *contest, char ret_url[SOURCE_URL_SIZE])
{
	struct hx_rabbit rabbit;
	char key[KEY_TEXT_SIZE], data[SOURCE_DATA_SIZE];
	uint64_t ready = 0;
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

		key_text(contest->seed, i, key);
		contest_expect_ok(
			hx_rabbit_publish(&rabbit, &message, NULL, &err), &err, "publish");
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
	(void)snprintf(
		ret_url, SOURCE_URL_SIZE, "amqp://guest:guest@%s/%s?prefetch=%d",
		getenv("HAPAX_TEST_RABBITMQ"), queue, IN_HAND);
}

static void ack(struct hx_rabbit *rabbit, uint64_t tag)
{
	if (amqp_basic_ack(rabbit->conn, HX_RABBIT_CHANNEL, tag, 1) != AMQP_STATUS_OK)
		contest_fail("an acknowledgement was not sent");
}

static void consume_bare(struct source_contest *contest)
{
	struct timeval wait = {.tv_sec = SOURCE_WAIT_MS / 1000};
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
		source_contest_see(contest, envelope.message.body.len);
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

int main(int argc, char **argv)
{
	const struct source_contest_ops ops = {
		.name = "librabbitmq",
		.version = amqp_version(),
		.in_hand = IN_HAND,
		.fill = fill,
		.consume_bare = consume_bare,
	};
	const char *address = getenv("HAPAX_TEST_RABBITMQ");
	struct hx_rabbit_place place;
	struct hapax_error err;
	char url[SOURCE_URL_SIZE];

	if (address == NULL)
		contest_fail("there is no RabbitMQ: run it by tests/rabbitmq/with_rabbitmq");
	(void)snprintf(url, sizeof(url), "amqp://guest:guest@%s", address);
	contest_expect_ok(hx_rabbit_place_parse(url, &place, &err), &err, url);
	return source_contest_main(&ops, &place, argc, argv);
}
