/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox_relay.c - rows of an outbox in PostgreSQL, published to a quorum queue of RabbitMQ with confirms.
 *
 *	--mode MODE      row: as relays are usually written; the oldest pending row, publish, wait for its
 *	                 confirmation, mark it, the next
 *	                 relay: hapax_relay_run()
 *	                 delay: rows one by one while it has nothing else to do; from the return of each
 *	                 commit to the broker's confirmation
 *	--operations N
 *	--poison N       and so many rows of one ordering key, before the others, for a queue that is not there;
 *	                 relay: until the others are sent
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

#include "base/clock.h"
#include "base/thread.h"
#include "broker/rabbit.h"
#include "contest.h"

#define MS_NS INT64_C(1000000)

enum {
	/* Between two rows of the mode delay: the relay has nothing to do any more. */
	PAUSE_MS = 20,
	/* How often it is asked how far it is. */
	LOOK_US = 500,
	DELAYS_MAX = 100000,
};

struct outbox_contest {
	const char *mode;
	uint64_t operations;
	uint64_t poison;
	struct hapax_relay *relay; /* in a thread of its own */
	struct hx_thread thread;
	struct hx_mutex mutex;
	struct hx_cond changed;
	uint64_t confirmations; /* Locks: mutex, and the next one */
	int64_t confirmed_ns;
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

	contest_expect_ok(
		hx_rabbit_publish(&contest->rabbit, &message, NULL, &err), &err, "publish");
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

/* ------------------------------------------------------------------ the relay */

static void on_report(void *context, enum hapax_relay_event event, const char *text)
{
	struct outbox_contest *contest = context;

	(void)text;
	if (event != HAPAX_RELAY_CONFIRMED)
		return;
	hx_mutex_lock(&contest->mutex);
	contest->confirmations++;
	contest->confirmed_ns = hx_clock_mono_ns();
	hx_cond_signal(&contest->changed);
	hx_mutex_unlock(&contest->mutex);
}

static void run_relay(void *context)
{
	struct outbox_contest *contest = context;
	struct hapax_error err;

	contest_expect_ok(hapax_relay_run(contest->relay, &err), &err, "run");
}

static void start_relay(struct outbox_contest *contest)
{
	struct hapax_relay_options options = HAPAX_RELAY_OPTIONS_INIT;
	struct hapax_error err;

	options.sink = contest->sink_url;
	options.report = on_report;
	options.context = contest;
	contest_expect_ok(
		hapax_relay_open(contest->db_url, &options, &contest->relay, &err), &err, "open");
	contest_expect_ok(
		hx_thread_start(&contest->thread, run_relay, contest, "relay", &err), &err,
		"thread");
}

static void stop_relay(struct outbox_contest *contest)
{
	hapax_relay_stop(contest->relay);
	hx_thread_join(&contest->thread);
	hapax_relay_close(contest->relay);
}

static void pause_us(int64_t us)
{
	struct hx_event never = {0};

	(void)hx_event_wait_until_ns(&never, hx_clock_mono_ns() + us * 1000);
}

/* Until all that can be sent is. */
static void relay_all(struct outbox_contest *contest)
{
	struct hapax_relay_stats stats = HAPAX_RELAY_STATS_INIT;

	start_relay(contest);
	while (stats.published < contest->operations) {
		pause_us(LOOK_US);
		hapax_relay_stats(contest->relay, &stats);
	}
}

/* ------------------------------------------------------------------ delay */

static int compare(const void *a, const void *b)
{
	const int64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* One row, and how long after its commit the broker has it. */
static int64_t delay_once(struct outbox_contest *contest)
{
	uint64_t before;
	int64_t committed_ns, delay_ns;

	pause_us(PAUSE_MS * 1000);
	hx_mutex_lock(&contest->mutex);
	before = contest->confirmations;
	hx_mutex_unlock(&contest->mutex);
	run(contest->conn,
	    "SELECT hapax_outbox_add('bench', convert_to(repeat('x', 200), 'UTF8'), 'k')");
	committed_ns = hx_clock_mono_ns();
	hx_mutex_lock(&contest->mutex);
	while (contest->confirmations == before)
		hx_cond_wait(&contest->changed, &contest->mutex);
	delay_ns = contest->confirmed_ns - committed_ns;
	hx_mutex_unlock(&contest->mutex);
	return delay_ns > 0 ? delay_ns : 0;
}

static void round_delay(struct outbox_contest *contest)
{
	static int64_t delays[DELAYS_MAX];
	size_t count = (size_t)contest->operations;
	size_t median = count / 2, late = count * 99 / 100;

	run(contest->conn, "TRUNCATE hapax_outbox");
	start_relay(contest);
	/* The first ones find connections and plans that are new. */
	for (int i = 0; i < 10; i++)
		(void)delay_once(contest);
	for (size_t i = 0; i < count; i++)
		delays[i] = delay_once(contest);
	stop_relay(contest);
	qsort(delays, count, sizeof(delays[0]), compare);
	contest_print_value("p50", (double)delays[median] / 1e6);
	contest_print_value("p99", (double)delays[late] / 1e6);
}

/* ------------------------------------------------------------------ rounds */

static uint64_t count_state(struct outbox_contest *contest, const char *where)
{
	char sql[128];
	PGresult *result;
	uint64_t count;

	(void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM hapax_outbox WHERE %s", where);
	result = check(contest->conn, PQexec(contest->conn, sql));
	count = strtoull(PQgetvalue(result, 0, 0), NULL, 10);
	PQclear(result);
	return count;
}

static void fill(struct outbox_contest *contest)
{
	char sql[512];

	run(contest->conn, "TRUNCATE hapax_outbox");
	(void)snprintf(
		sql, sizeof(sql),
		"SELECT count(hapax_outbox_add('nowhere', convert_to(repeat('x', 200), 'UTF8'), 'poison'))"
		" FROM generate_series(1, %llu) n",
		(unsigned long long)contest->poison);
	run(contest->conn, sql);
	(void)snprintf(
		sql, sizeof(sql),
		"SELECT count(hapax_outbox_add('bench', convert_to(repeat('x', 200), 'UTF8'), 'k' || (n %% 1000)))"
		" FROM generate_series(1, %llu) n",
		(unsigned long long)contest->operations);
	run(contest->conn, sql);
	run(contest->conn, "ANALYZE hapax_outbox");
}

static void round_once(uint64_t seed, void *context)
{
	struct outbox_contest *contest = context;
	struct contest_time time = {0, 0};
	uint64_t sent, left;

	(void)seed;
	if (strcmp(contest->mode, "delay") == 0) {
		round_delay(contest);
		return;
	}
	fill(contest);
	contest_start(&time);
	if (strcmp(contest->mode, "row") == 0)
		relay_rows(contest);
	else
		relay_all(contest);
	contest_stop(&time);
	if (strcmp(contest->mode, "row") != 0)
		stop_relay(contest);
	sent = count_state(contest, "state = 1");
	left = count_state(contest, "state <> 1 AND ordering_key = 'poison'");
	if (sent != contest->operations || left != contest->poison)
		contest_fail(
			"%llu were sent, %llu poisoned ones were not", (unsigned long long)sent,
			(unsigned long long)left);
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
		contest->sink_url, sizeof(contest->sink_url), "amqp://guest:guest@%s/", rabbit);
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
		{"poison", required_argument, NULL, 'p'},
		{NULL, 0, NULL, 0},
	};
	struct outbox_contest contest = {.mode = "relay", .operations = 1000};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'm')
			contest.mode = optarg;
		else if (option == 'n')
			contest.operations = contest_parse_count(optarg);
		else if (option == 'p')
			contest.poison = contest_parse_count(optarg);
		else
			return 64;
	}
	if (contest.operations > DELAYS_MAX && strcmp(contest.mode, "delay") == 0)
		return 64;
	hx_mutex_init(&contest.mutex);
	hx_cond_init(&contest.changed);
	prepare(&contest);
	contest_run(
		contest.mode, PQparameterStatus(contest.conn, "server_version"), round_once,
		&contest);
	hx_rabbit_close(&contest.rabbit);
	PQfinish(contest.conn);
	return 0;
}
