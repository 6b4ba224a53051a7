/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox.c - orders that are told of exactly once: database → relay → RabbitMQ → a consumer that
 * de-duplicates.
 *
 *	example_outbox BROKER [DATABASE]
 *	example_outbox amqp://guest:guest@localhost
 *	example_outbox amqp://guest:guest@localhost postgres://localhost/shop
 *
 * Without DATABASE the shop is shop.db, in SQLite. Five orders are placed, of which the third is
 * rolled back; everything is relayed twice, as if a relay had died before it marked what it
 * had published; and each order that exists is shipped once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hapax/hapax.h>
#include <hapax/outbox.h>

#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <libpq-fe.h>
#include <sqlite3.h>

enum { ORDERS = 5, CHANNEL = 1 };

static void check(int is_good, const char *what)
{
	if (is_good)
		return;
	(void)fprintf(stderr, "%s\n", what);
	exit(1);
}

/* ------------------------------------------------------------------ the shop */

/* Either kind of database; the outbox is joined to the connection. */
struct shop {
	PGconn *postgres;
	sqlite3 *sqlite;
	struct hapax_outbox *outbox;
	int order; /* that is being placed */
};

static int execute(struct shop *shop, const char *sql)
{
	PGresult *result;
	int is_good;

	if (shop->sqlite != NULL)
		return sqlite3_exec(shop->sqlite, sql, NULL, NULL, NULL) == SQLITE_OK;
	result = PQexec(shop->postgres, sql);
	is_good = PQresultStatus(result) == PGRES_COMMAND_OK;
	PQclear(result);
	return is_good;
}

static void open_shop(struct shop *shop, const char *url)
{
	struct hapax_error err;
	enum hapax_status status;

	check(hapax_outbox_init(url, NULL, &err) == HAPAX_OK, err.message);
	if (strncmp(url, "sqlite:", 7) == 0) {
		check(sqlite3_open(url + 7, &shop->sqlite) == SQLITE_OK, "no database");
		status = hapax_outbox_join_sqlite(shop->sqlite, &shop->outbox, &err);
	} else {
		shop->postgres = PQconnectdb(url);
		check(PQstatus(shop->postgres) == CONNECTION_OK, "no database");
		status = hapax_outbox_join_postgres(shop->postgres, &shop->outbox, &err);
	}
	check(status == HAPAX_OK, err.message);
	check(execute(shop, "CREATE TABLE orders (id INTEGER PRIMARY KEY)"), "no table");
}

/* What the business does. The third customer's card is refused. */
static enum hapax_status place(void *context, struct hapax_error *err)
{
	struct shop *shop = context;
	char sql[64];

	(void)err;
	(void)snprintf(sql, sizeof(sql), "INSERT INTO orders VALUES (%d)", shop->order);
	if (!execute(shop, sql) || shop->order == 3)
		return HAPAX_ERR_HANDLER;
	return HAPAX_OK;
}

static void place_orders(struct shop *shop)
{
	for (shop->order = 1; shop->order <= ORDERS; shop->order++) {
		struct hapax_outbox_event event = HAPAX_OUTBOX_EVENT_INIT;
		char key[32], payload[32];

		(void)snprintf(key, sizeof(key), "order-%d", shop->order);
		(void)snprintf(payload, sizeof(payload), "{\"order\":%d}", shop->order);
		event.topic = hapax_bytes_from_text("example-orders");
		event.ordering_key = hapax_bytes_from_text(key);
		event.type = hapax_bytes_from_text("order.made");
		event.content_type = hapax_bytes_from_text("application/json");
		event.payload = hapax_bytes_from_text(payload);
		/* The order and its event, or neither. */
		if (hapax_outbox_execute(shop->outbox, place, shop, &event, 1, NULL) == HAPAX_OK)
			(void)printf("placed order %d\n", shop->order);
		else
			(void)printf("order %d was not placed\n", shop->order);
	}
}

/* ------------------------------------------------------------------ the relay */

static void relay(const char *database, const char *broker)
{
	struct hapax_relay_options options = HAPAX_RELAY_OPTIONS_INIT;
	struct hapax_relay_stats stats = HAPAX_RELAY_STATS_INIT;
	struct hapax_relay *relay = NULL;
	struct hapax_error err;
	char sink[512];

	(void)snprintf(sink, sizeof(sink), "%s/?declare=quorum", broker);
	options.sink = sink;
	options.is_finite = 1;
	check(hapax_relay_open(database, &options, &relay, &err) == HAPAX_OK, err.message);
	check(hapax_relay_run(relay, &err) == HAPAX_OK, err.message);
	hapax_relay_stats(relay, &stats);
	(void)printf("published %llu\n", (unsigned long long)stats.published);
	hapax_relay_close(relay);
}

/* ------------------------------------------------------------------ the consumer */

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

/* Ship each order once, however often it is told of. */
static void consume(const char *broker)
{
	amqp_connection_state_t conn = connect_broker(broker);
	struct hapax_store *store = NULL;
	int messages = 0, shipped = 0;
	amqp_message_t message;

	check(hapax_store_open("sqlite:shipped.db", NULL, &store, NULL) == HAPAX_OK, "no store");
	for (;;) {
		enum hapax_outcome outcome = HAPAX_OUTCOME_REPLAY;
		amqp_rpc_reply_t reply =
			amqp_basic_get(conn, CHANNEL, amqp_cstring_bytes("example-orders"), 1);

		if (reply.reply_type != AMQP_RESPONSE_NORMAL ||
		    reply.reply.id != AMQP_BASIC_GET_OK_METHOD)
			break;
		(void)amqp_read_message(conn, CHANNEL, &message, 0);
		check(hapax_store_check(
			      store,
			      (struct hapax_bytes){
				      message.properties.message_id.bytes,
				      message.properties.message_id.len},
			      0, &outcome, NULL) == HAPAX_OK,
		      "nothing was decided");
		messages++;
		if (outcome == HAPAX_OUTCOME_ACQUIRED) {
			shipped++;
			(void)printf(
				"shipped %.*s\n", (int)message.body.len,
				(char *)message.body.bytes);
		}
		amqp_destroy_message(&message);
	}
	(void)printf("%d messages, %d orders shipped\n", messages, shipped);
	hapax_store_close(store);
	(void)amqp_destroy_connection(conn);
}

int main(int argc, char **argv)
{
	const char *database = argc > 2 ? argv[2] : "sqlite:shop.db";
	struct shop shop = {0};

	check(argc > 1, "usage: example_outbox BROKER [DATABASE]");
	open_shop(&shop, database);
	place_orders(&shop);
	relay(database, argv[1]);
	/* A relay that died before it marked them would publish them again. */
	check(execute(&shop, "UPDATE hapax_outbox SET state = 0"), "not rewound");
	relay(database, argv[1]);
	consume(argv[1]);
	hapax_outbox_close(shop.outbox);
	PQfinish(shop.postgres);
	(void)sqlite3_close(shop.sqlite);
	return 0;
}
