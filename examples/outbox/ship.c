/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ship.c - a consumer that ships each order once, however often it is told of.
 *
 *	example_outbox_ship BROKER [STORE]
 *
 * The id of a message is its key: hapax_process() gives one delivery the right to ship and answers the others
 * as duplicates. A message is acknowledged when that is stored, not before: a consumer that dies gets it again.
 * It ends when the queue is empty.
 */
#include <stdio.h>
#include <stdlib.h>

#include <hapax/hapax.h>

#include <amqp.h>
#include <amqp_tcp_socket.h>

enum { CHANNEL = 1 };

static void check(int is_good, const char *what)
{
	if (is_good)
		return;
	(void)fprintf(stderr, "ship: %s\n", what);
	exit(1);
}

static amqp_connection_state_t connect_broker(const char *broker)
{
	amqp_connection_state_t conn = amqp_new_connection();
	struct amqp_connection_info info;
	char url[512];

	(void)snprintf(url, sizeof(url), "%s", broker);
	amqp_default_connection_info(&info);
	check(amqp_parse_url(url, &info) == AMQP_STATUS_OK, "the broker's URL was not read");
	check(amqp_socket_open(amqp_tcp_socket_new(conn), info.host, info.port) == AMQP_STATUS_OK,
	      "the broker was not reached");
	(void)amqp_login(
		conn, info.vhost, 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, info.user, info.password);
	(void)amqp_channel_open(conn, CHANNEL);
	check(amqp_get_rpc_reply(conn).reply_type == AMQP_RESPONSE_NORMAL, "no channel");
	return conn;
}

/* The work. It knows nothing of duplicates. */
static enum hapax_run_outcome ship(struct hapax_work *work, void *context)
{
	const amqp_message_t *message = context;

	(void)work;
	(void)printf("shipped %.*s\n", (int)message->body.len, (char *)message->body.bytes);
	return HAPAX_RUN_OK;
}

/* Whether it was shipped now; 0: it had been before. */
static int ship_once(struct hapax_processor *processor, amqp_message_t *message)
{
	struct hapax_request request = HAPAX_REQUEST_INIT;
	struct hapax_answer answer = HAPAX_ANSWER_INIT;
	struct hapax_error err;

	request.key = (struct hapax_bytes){
		message->properties.message_id.bytes, message->properties.message_id.len};
	check(hapax_process(processor, &request, ship, message, &answer, NULL, &err) == HAPAX_OK,
	      err.message);
	return answer.outcome == HAPAX_OUTCOME_ACQUIRED;
}

static void consume(amqp_connection_state_t conn, struct hapax_processor *processor)
{
	int messages = 0, shipped = 0;
	amqp_message_t message;

	for (;;) {
		amqp_rpc_reply_t reply =
			amqp_basic_get(conn, CHANNEL, amqp_cstring_bytes("example-orders"), 0);
		uint64_t tag;

		if (reply.reply_type != AMQP_RESPONSE_NORMAL ||
		    reply.reply.id != AMQP_BASIC_GET_OK_METHOD)
			break;
		tag = ((amqp_basic_get_ok_t *)reply.reply.decoded)->delivery_tag;
		(void)amqp_read_message(conn, CHANNEL, &message, 0);
		messages++;
		shipped += ship_once(processor, &message);
		/* Its outcome is stored: the broker may forget it. */
		(void)amqp_basic_ack(conn, CHANNEL, tag, 0);
		amqp_destroy_message(&message);
	}
	(void)printf("%d messages, %d orders shipped\n", messages, shipped);
}

int main(int argc, char **argv)
{
	struct hapax_processor *processor = NULL;
	struct hapax_store *store = NULL;
	amqp_connection_state_t conn;
	struct hapax_error err;

	check(argc == 2 || argc == 3, "usage: example_outbox_ship BROKER [STORE]");
	check(hapax_store_open(argc > 2 ? argv[2] : "sqlite:shipped.db", NULL, &store, &err) ==
		      HAPAX_OK,
	      err.message);
	check(hapax_processor_new(store, NULL, &processor, &err) == HAPAX_OK, err.message);
	conn = connect_broker(argv[1]);
	consume(conn, processor);
	(void)amqp_connection_close(conn, AMQP_REPLY_SUCCESS);
	(void)amqp_destroy_connection(conn);
	hapax_processor_free(processor);
	hapax_store_close(store);
	return 0;
}
