/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox_relay.c - rows of an outbox in PostgreSQL, published to a quorum queue of RabbitMQ with confirms.
 *
 *	--mode MODE      row: as relays are usually written; the oldest pending row, publish, wait for its
 *	                 confirmation, mark it, the next
 *	                 relay: hapax_relay_run()
 *	--operations N
 *
 * Servers are those of tests/postgres/with_postgres and tests/rabbitmq/with_rabbitmq. Rows of 200 bytes with
 * 1,000 ordering keys. What was marked is counted at the end of each round.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include <hapax/outbox.h>

#include "broker/rabbit.h"
#include "contest.h"

struct outbox_contest {
	const char *mode;
	uint64_t operations;
	char db_url[512];
	char sink_url[512];
	PGconn *conn;
	struct hx_rabbit rabbit;
};

static PGresult *check(PGconn *conn, PGresult *result)
{
	if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
		contest_fail("PostgreSQL: %s", PQerrorMessage(conn));
	return result;
}

static void run(PGconn *conn, const char *sql)
{
	PQclear(check(conn, PQexec(conn, sql)));
}

static void publish(struct outbox_contest *contest, const char *id, const char *payload)
{
	struct hx_rabbit_message message = {
		.exchange = "",
		.routing_key = hapax_bytes_from_text("bench"),
		.message_id = hapax_bytes_from_text(id),
		.body = hapax_bytes_from_text(payload)};
	struct hx_rabbit_event event = {.happening = HX_RABBIT_NOTHING};
	struct hapax_error err;
	uint64_t tag;

	contest_expect_ok(
		hx_rabbit_publish(&contest->rabbit, &message, &tag, &err), &err, "publish");
	while (event.happening != HX_RABBIT_ACK)
		contest_expect_ok(
			hx_rabbit_next(&contest->rabbit, 60000, &event, &err), &err, "confirm");
}

static void relay_rows(struct outbox_contest *contest)
{
	for (uint64_t i = 0; i < contest->operations; i++) {
		PGresult *result =
			check(contest->conn,
		              PQexecPrepared(contest->conn, "next", 0, NULL, NULL, NULL, 0));
		const char *id = PQgetvalue(result, 0, 0);

		publish(contest, id, PQgetvalue(result, 0, 1));
		PQclear(
			check(contest->conn,
		              PQexecPrepared(contest->conn, "mark", 1, &id, NULL, NULL, 0)));
		PQclear(result);
	}
}

static void relay_all(struct outbox_contest *contest)
{
	struct hapax_relay_options options = HAPAX_RELAY_OPTIONS_INIT;
	struct hapax_relay *relay = NULL;
	struct hapax_error err;

	options.sink = contest->sink_url;
	options.is_finite = 1;
	contest_expect_ok(hapax_relay_open(contest->db_url, &options, &relay, &err), &err, "open");
	contest_expect_ok(hapax_relay_run(relay, &err), &err, "run");
	hapax_relay_close(relay);
}

static void round_once(uint64_t seed, void *context)
{
	struct outbox_contest *contest = context;
	struct contest_time time = {0, 0};
	char sql[512];
	PGresult *result;

	(void)seed;
	run(contest->conn, "TRUNCATE hapax_outbox");
	(void)snprintf(
		sql, sizeof(sql),
		"SELECT count(hapax_outbox_add('bench', convert_to(repeat('x', 200), 'UTF8'), 'k' || (n %% 1000)))"
		" FROM generate_series(1, %llu) n",
		(unsigned long long)contest->operations);
	run(contest->conn, sql);
	run(contest->conn, "ANALYZE hapax_outbox");
	contest_start(&time);
	if (strcmp(contest->mode, "row") == 0)
		relay_rows(contest);
	else
		relay_all(contest);
	contest_stop(&time);
	result =
		check(contest->conn,
	              PQexec(contest->conn, "SELECT count(*) FROM hapax_outbox WHERE state = 1"));
	if (strtoull(PQgetvalue(result, 0, 0), NULL, 10) != contest->operations)
		contest_fail("%s of them were sent", PQgetvalue(result, 0, 0));
	PQclear(result);
	(void)amqp_queue_purge(
		contest->rabbit.conn, HX_RABBIT_CHANNEL, amqp_cstring_bytes("bench"));
	contest_print_time("relay", &time, contest->operations);
}

static void prepare(struct outbox_contest *contest)
{
	const char *postgres = getenv("HAPAX_TEST_POSTGRES"),
		   *rabbit = getenv("HAPAX_TEST_RABBITMQ");
	struct hx_rabbit_place place;
	struct hapax_error err;

	if (postgres == NULL || rabbit == NULL)
		contest_fail("run it by with_rabbitmq and with_postgres");
	(void)snprintf(
		contest->db_url, sizeof(contest->db_url), "postgres:///postgres%s", postgres);
	(void)snprintf(
		contest->sink_url, sizeof(contest->sink_url),
		"amqp://guest:guest@%s/?declare=quorum", rabbit);
	contest_expect_ok(hapax_outbox_init(contest->db_url, NULL, &err), &err, "init");
	contest->conn = PQconnectdb(contest->db_url);
	if (PQstatus(contest->conn) != CONNECTION_OK)
		contest_fail("PostgreSQL: %s", PQerrorMessage(contest->conn));
	PQclear(check(
		contest->conn,
		PQprepare(
			contest->conn, "next",
			"SELECT id, convert_from(payload, 'UTF8') FROM hapax_outbox WHERE state = 0 ORDER BY seq LIMIT 1",
			0, NULL)));
	PQclear(check(
		contest->conn,
		PQprepare(
			contest->conn, "mark",
			"UPDATE hapax_outbox SET state = 1, sent_ms = 1 WHERE id = $1", 1, NULL)));
	contest_expect_ok(hx_rabbit_place_parse(contest->sink_url, &place, &err), &err, "url");
	contest_expect_ok(hx_rabbit_open(&contest->rabbit, &place, 60000, &err), &err, "RabbitMQ");
	contest_expect_ok(hx_rabbit_confirm(&contest->rabbit, &err), &err, "confirms");
	contest_expect_ok(
		hx_rabbit_declare_queue(&contest->rabbit, hapax_bytes_from_text("bench"), &err),
		&err, "queue");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"mode", required_argument, NULL, 'm'},
		{"operations", required_argument, NULL, 'n'},
		{NULL, 0, NULL, 0},
	};
	struct outbox_contest contest = {.mode = "relay", .operations = 1000};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'm')
			contest.mode = optarg;
		else if (option == 'n')
			contest.operations = contest_parse_count(optarg);
		else
			return 64;
	}
	prepare(&contest);
	contest_run(
		contest.mode, PQparameterStatus(contest.conn, "server_version"), round_once,
		&contest);
	hx_rabbit_close(&contest.rabbit);
	PQfinish(contest.conn);
	return 0;
}
