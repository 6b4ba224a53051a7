/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shop.c - orders, each with an event that commits with it.
 *
 *	example_outbox_shop DATABASE place      five orders, of which the third is rolled back
 *	example_outbox_shop DATABASE rewind     as if a relay had died before it marked what it had published
 *
 * DATABASE is sqlite:FILE or postgres://... with an outbox (hapax outbox init).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hapax/hapax.h>
#include <hapax/outbox.h>

#include <libpq-fe.h>
#include <sqlite3.h>

enum { ORDERS = 5 };

/* Either kind of database; the outbox is joined to the connection. */
struct shop {
	PGconn *postgres;
	sqlite3 *sqlite;
	struct hapax_outbox *outbox;
	int order; /* that is being placed */
};

static void check(int is_good, const char *what)
{
	if (is_good)
		return;
	(void)fprintf(stderr, "shop: %s\n", what);
	exit(1);
}

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

	if (strncmp(url, "sqlite:", 7) == 0) {
		check(sqlite3_open(url + 7, &shop->sqlite) == SQLITE_OK, "no database");
		status = hapax_outbox_join_sqlite(shop->sqlite, &shop->outbox, &err);
	} else {
		shop->postgres = PQconnectdb(url);
		check(PQstatus(shop->postgres) == CONNECTION_OK, "no database");
		status = hapax_outbox_join_postgres(shop->postgres, &shop->outbox, &err);
	}
	check(status == HAPAX_OK, err.message);
}

static void close_shop(struct shop *shop)
{
	hapax_outbox_close(shop->outbox);
	PQfinish(shop->postgres);
	(void)sqlite3_close(shop->sqlite);
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
	check(execute(shop, "CREATE TABLE orders (id INTEGER PRIMARY KEY)"), "no table");
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

int main(int argc, char **argv)
{
	struct shop shop = {0};

	check(argc == 3, "usage: example_outbox_shop DATABASE place|rewind");
	open_shop(&shop, argv[1]);
	if (strcmp(argv[2], "place") == 0)
		place_orders(&shop);
	else
		check(execute(&shop, "UPDATE hapax_outbox SET state = 0"), "not rewound");
	close_shop(&shop);
	return 0;
}
