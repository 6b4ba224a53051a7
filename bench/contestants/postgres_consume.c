/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_consume.c - events consumed once, each with a business row, in one PostgreSQL transaction.
 *
 *	--mode MODE      document_b: the statements of document B, as its client sends them
 *	                 document_b_prepared: the same, prepared
 *	                 callback: hapax_tx_process(), whose handler does the INSERT
 *	                 callback_sql: BEGIN and claim | the INSERT | complete and COMMIT, by SQL functions
 *	                 callback_bare: the same three trips with a row inserted and updated in place of
 *	                 claim and completion: no tokens, fingerprints, leases, tenants; what any way costs
 *	                 one_trip: BEGIN, check, INSERT, COMMIT sent together
 *	                 batch: 64 events in a transaction, one statement
 *	--operations N
 *
 * The server is the one of tests/postgres/with_postgres, on a disk. Rows are counted at the end of
 * each round. "consume" is our side; "server" the CPU time of the session's backend.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include <hapax/hapax.h>
#include <hapax/postgres.h>

#include "contest.h"
#include "keys.h"

enum { BATCH = 64, UUID = 36 };

struct consume_contest {
	const char *mode;
	uint64_t operations;
	PGconn *conn;
	/* Of callback. */
	struct hapax_store *store;
	struct hapax_processor *processor;
	struct hapax_buf *buf;
	const char *key;
};

static void check(const PGconn *conn, PGresult *result)
{
	if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
		contest_fail("PostgreSQL: %s", PQerrorMessage(conn));
	PQclear(result);
}

static void run(PGconn *conn, const char *sql)
{
	check(conn, PQexec(conn, sql));
}

/* ------------------------------------------------------------------ document B */

static const char *const b_names[] = {"b_look", "b_lock", "b_trade", "b_mark"};
static const char *const b_statements[] = {
	"SELECT idempotency_key, result_payload FROM processed_events WHERE idempotency_key = $1"
	" AND consumer_group = 'trades' AND tenant_id = '00000000-0000-4000-8000-000000000000'",
	"SELECT 1 FROM processed_events WHERE idempotency_key = $1 AND consumer_group = 'trades'"
	" AND tenant_id = '00000000-0000-4000-8000-000000000000' FOR UPDATE SKIP LOCKED",
	"INSERT INTO trade VALUES ($1)",
	"INSERT INTO processed_events (idempotency_key, event_type, consumer_group, tenant_id, event_id,"
	" event_timestamp, result_status, result_payload) VALUES ($1, 'trade', 'trades',"
	" '00000000-0000-4000-8000-000000000000', '00000000-0000-4000-8000-000000000001', now(), 'success',"
	" '{\"ok\": true}') ON CONFLICT (idempotency_key, consumer_group, tenant_id) DO NOTHING",
};

/* Its table, as it has it. */
static const char b_tables[] =
	"CREATE TABLE tenants (id uuid PRIMARY KEY);"
	" INSERT INTO tenants VALUES ('00000000-0000-4000-8000-000000000000');"
	" CREATE TABLE processed_events (id uuid PRIMARY KEY DEFAULT gen_random_uuid(),"
	" idempotency_key varchar(255) NOT NULL, event_type varchar(100) NOT NULL,"
	" consumer_group varchar(100) NOT NULL, tenant_id uuid NOT NULL REFERENCES tenants(id),"
	" event_id uuid NOT NULL, event_timestamp timestamptz NOT NULL,"
	" processed_at timestamptz NOT NULL DEFAULT now(),"
	" result_status varchar(20) NOT NULL DEFAULT 'success', result_payload jsonb,"
	" CONSTRAINT uq_processed_event_key UNIQUE (idempotency_key, consumer_group, tenant_id));"
	" CREATE INDEX idx_processed_events_timestamp ON processed_events(processed_at);"
	" CREATE INDEX idx_processed_events_lookup"
	" ON processed_events(idempotency_key, consumer_group, tenant_id)";

static void b_statement(PGconn *conn, int number, const char *key, bool is_prepared)
{
	const char *values[1] = {key};

	check(conn,
	      is_prepared
		      ? PQexecPrepared(conn, b_names[number], 1, values, NULL, NULL, 0)
		      : PQexecParams(conn, b_statements[number], 1, NULL, values, NULL, NULL, 0));
}

static void consume_as_b(PGconn *conn, const char *key, bool is_prepared)
{
	b_statement(conn, 0, key, is_prepared);
	run(conn, "BEGIN");
	b_statement(conn, 1, key, is_prepared);
	b_statement(conn, 2, key, is_prepared);
	b_statement(conn, 3, key, is_prepared);
	run(conn, "COMMIT");
}

/* ------------------------------------------------------------------ hapax */

static const char *const our_statements[][2] = {
	{"begin", "BEGIN"},
	{"commit", "COMMIT"},
	{"claim", "SELECT token, outcome FROM hapax_claim($1)"},
	{"trade", "INSERT INTO trade VALUES ($1)"},
	{"complete", "SELECT hapax_complete($1, $2, '{\"ok\": true}')"},
	{"check", "SELECT hapax_check($1, p_raise => true)"},
	{"batch", "INSERT INTO trade SELECT * FROM hapax_check_all($1)"},
	{"bare_claim", "INSERT INTO bare VALUES ($1, 1) ON CONFLICT DO NOTHING RETURNING 1"},
	{"bare_complete", "UPDATE bare SET state = 2, result = '{\"ok\": true}' WHERE key = $1"},
};

static void send_prepared(PGconn *conn, const char *name, int count, const char *const *values)
{
	if (PQsendQueryPrepared(conn, name, count, values, NULL, NULL, 0) != 1)
		contest_fail("PostgreSQL: %s", PQerrorMessage(conn));
}

/* To the end of what was sent; the first column of the last row goes into last. */
static void receive(PGconn *conn, char *last, size_t last_size)
{
	bool is_end = PQpipelineSync(conn) != 1;

	while (!is_end) {
		PGresult *result = PQgetResult(conn);

		if (result == NULL)
			continue;
		is_end = PQresultStatus(result) == PGRES_PIPELINE_SYNC;
		if (PQntuples(result) > 0 && last != NULL)
			snprintf(last, last_size, "%s", PQgetvalue(result, 0, 0));
		if (is_end)
			PQclear(result);
		else
			check(conn, result);
	}
}

/* Three trips: the handler is code that runs in between. */
static void consume_by_callback(PGconn *conn, const char *key, bool is_bare)
{
	char token[24] = "";
	const char *values[2] = {key, token};

	send_prepared(conn, "begin", 0, NULL);
	send_prepared(conn, is_bare ? "bare_claim" : "claim", 1, values);
	receive(conn, token, sizeof(token));
	send_prepared(conn, "trade", 1, values);
	receive(conn, NULL, 0);
	send_prepared(conn, is_bare ? "bare_complete" : "complete", is_bare ? 1 : 2, values);
	send_prepared(conn, "commit", 0, NULL);
	receive(conn, NULL, 0);
}

static enum hapax_run_outcome trade(struct hapax_work *work, void *context)
{
	struct consume_contest *contest = context;
	const char *values[1] = {contest->key};

	check(contest->conn, PQexecPrepared(contest->conn, "trade", 1, values, NULL, NULL, 0));
	(void)hapax_work_write(work, "{\"ok\": true}", 12);
	return HAPAX_RUN_OK;
}

static void consume_by_process(struct consume_contest *contest, const char *key)
{
	struct hapax_request request = HAPAX_REQUEST_INIT;
	struct hapax_answer answer = HAPAX_ANSWER_INIT;
	struct hapax_error err;

	contest->key = key;
	request.key = hapax_bytes_from_text(key);
	contest_expect_ok(
		hapax_tx_process(
			contest->processor, &request, trade, contest, &answer, contest->buf, &err),
		&err, "process");
}

static void consume_in_one_trip(PGconn *conn, const char *key)
{
	const char *values[1] = {key};

	send_prepared(conn, "begin", 0, NULL);
	send_prepared(conn, "check", 1, values);
	send_prepared(conn, "trade", 1, values);
	send_prepared(conn, "commit", 0, NULL);
	receive(conn, NULL, 0);
}

static void consume_batch(PGconn *conn, uint64_t seed, uint64_t first, uint64_t count)
{
	char list[BATCH * (UUID + 1) + 3] = "{";
	const char *values[1] = {list};
	size_t size = 1;

	for (uint64_t i = 0; i < count; i++) {
		key_text(seed, first + i, list + size);
		size += UUID;
		list[size++] = i + 1 < count ? ',' : '}';
	}
	list[size] = '\0';
	send_prepared(conn, "batch", 1, values);
	receive(conn, NULL, 0);
}

/* ------------------------------------------------------------------ rounds */

static void consume(struct consume_contest *contest, uint64_t seed)
{
	bool is_batch = strcmp(contest->mode, "batch") == 0;
	uint64_t width = is_batch ? BATCH : 1;

	for (uint64_t i = 0; i < contest->operations; i += width) {
		char key[UUID + 1] = "";
		uint64_t left = contest->operations - i;

		key_text(seed, i, key);
		if (is_batch)
			consume_batch(contest->conn, seed, i, left < BATCH ? left : BATCH);
		else if (strcmp(contest->mode, "callback") == 0)
			consume_by_process(contest, key);
		else if (strncmp(contest->mode, "callback_", 9) == 0)
			consume_by_callback(
				contest->conn, key, strcmp(contest->mode, "callback_bare") == 0);
		else if (strcmp(contest->mode, "one_trip") == 0)
			consume_in_one_trip(contest->conn, key);
		else
			consume_as_b(
				contest->conn, key,
				strcmp(contest->mode, "document_b_prepared") == 0);
	}
}

/* Those that send several statements together by themselves. */
static bool is_pipelined(const struct consume_contest *contest)
{
	return strncmp(contest->mode, "document_b", 10) != 0 &&
		strcmp(contest->mode, "callback") != 0;
}

static int64_t server_cpu_ns(const struct consume_contest *contest)
{
	char path[64];
	char line[128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", PQbackendPID(contest->conn));
	file = fopen(path, "r");
	if (file == NULL || fgets(line, sizeof(line), file) == NULL)
		contest_fail("%s cannot be read", path);
	fclose(file);
	return strtoll(line, NULL, 10);
}

static void round_once(uint64_t seed, void *context)
{
	struct consume_contest *contest = context;
	struct contest_time time = {0, 0};
	struct contest_time server = {0, 0};
	bool is_b = !is_pipelined(contest);
	PGresult *result;

	server.cpu_ns = -server_cpu_ns(contest);
	contest_start(&time);
	consume(contest, seed);
	contest_stop(&time);
	server.cpu_ns += server_cpu_ns(contest);
	server.wall_ns = time.wall_ns;
	if (!is_b)
		(void)PQexitPipelineMode(contest->conn);
	result = PQexec(contest->conn, "SELECT count(*) FROM trade");
	if (strtoull(PQgetvalue(result, 0, 0), NULL, 10) != contest->operations)
		contest_fail("%s rows", PQgetvalue(result, 0, 0));
	PQclear(result);
	run(contest->conn, "TRUNCATE trade");
	if (!is_b)
		(void)PQenterPipelineMode(contest->conn);
	contest_print_time("consume", &time, contest->operations);
	contest_print_time("server", &server, contest->operations);
}

static void prepare(struct consume_contest *contest)
{
	PGconn *conn = contest->conn;
	bool is_b = strncmp(contest->mode, "document_b", 10) == 0;
	struct hapax_error err;

	run(conn, "CREATE TABLE trade (key text NOT NULL)");
	run(conn, "CREATE TABLE bare (key text PRIMARY KEY, state integer, result text)");
	if (is_b) {
		run(conn, b_tables);
		for (int i = 0; i < 4; i++)
			check(conn, PQprepare(conn, b_names[i], b_statements[i], 1, NULL));
		return;
	}
	for (size_t i = 0; i < sizeof(our_statements) / sizeof(our_statements[0]); i++)
		check(conn, PQprepare(conn, our_statements[i][0], our_statements[i][1], 0, NULL));
	if (is_pipelined(contest)) {
		(void)PQenterPipelineMode(conn);
		return;
	}
	contest_expect_ok(hapax_postgres_join(conn, NULL, &contest->store, &err), &err, "join");
	contest_expect_ok(
		hapax_processor_new(contest->store, NULL, &contest->processor, &err), &err,
		"processor");
	contest->buf = hapax_buf_new(65536);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"mode", required_argument, NULL, 'm'},
		{"operations", required_argument, NULL, 'n'},
		{NULL, 0, NULL, 0},
	};
	struct consume_contest contest = {.mode = "callback", .operations = 1000};
	const char *place = getenv("HAPAX_TEST_POSTGRES");
	struct hapax_error err;
	char url[512];
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'm')
			contest.mode = optarg;
		else if (option == 'n')
			contest.operations = contest_parse_count(optarg);
		else
			return 64;
	}
	snprintf(url, sizeof(url), "postgres:///postgres%s", place == NULL ? "" : place);
	contest_expect_ok(hapax_store_migrate(url, NULL, &err), &err, "migrate");
	contest.conn = PQconnectdb(url);
	if (PQstatus(contest.conn) != CONNECTION_OK)
		contest_fail("PostgreSQL: %s", PQerrorMessage(contest.conn));
	prepare(&contest);
	contest_run(
		contest.mode, PQparameterStatus(contest.conn, "server_version"), round_once,
		&contest);
	hapax_processor_free(contest.processor);
	hapax_store_close(contest.store);
	hapax_buf_free(contest.buf);
	PQfinish(contest.conn);
	return 0;
}
