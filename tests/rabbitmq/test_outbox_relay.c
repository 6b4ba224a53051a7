/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From PostgreSQL to RabbitMQ (I6, T12): writers whose transactions commit out of order or not
 * at all, two relays of which one dies between publishing and marking, again and again; in
 * proofs also a broker and a database that die. What is committed arrives, in order, and what
 * it brings about happens once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hapax/hapax.h>
#include <hapax/outbox.h>

#include "base/random.h"
#include "broker/rabbit.h"
#include "support/postgres_case.h"
#include "support/scale.h"
#include "support/temp_dir.h"

enum { WRITERS = 32, KEYS = 64, WAIT_MS = 60 * 1000 };

static char db_url[512];
static char sink_url[512];

/* ------------------------------------------------------------------ the outbox */

static void make_outbox(const char *options)
{
	PGconn *conn = postgres_case_connect();
	struct hapax_error err;

	(void)postgres_case_query(conn, "DROP SCHEMA IF EXISTS relayed CASCADE");
	PQfinish(conn);
	postgres_case_url(db_url, sizeof(db_url), "&schema=relayed");
	if (hapax_outbox_init(db_url, NULL, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	(void)snprintf(
		sink_url, sizeof(sink_url), "amqp://guest:guest@%s/%s",
		getenv("HAPAX_TEST_RABBITMQ"), options);
}

static int on_deadline(void *context)
{
	(void)context;
	return 0;
}

static struct hapax_relay_options relay_options(void)
{
	struct hapax_relay_options options = HAPAX_RELAY_OPTIONS_INIT;

	options.sink = sink_url;
	options.is_finite = 1;
	options.lease_ms = 1000;
	options.retry_ms = 1;
	options.retry_ms_max = 10;
	options.poll_ms = 20;
	options.stop = on_deadline;
	return options;
}

static void relay_all(const struct hapax_relay_options *options)
{
	struct hapax_relay *relay = NULL;
	struct hapax_error err;

	if (hapax_relay_open(db_url, options, &relay, &err) != HAPAX_OK ||
	    hapax_relay_run(relay, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	hapax_relay_close(relay);
}

/* ------------------------------------------------------------------ the broker */

static void open_broker(struct hx_rabbit *rabbit, const char *queue)
{
	struct hx_rabbit_place place;
	struct hapax_error err;
	char url[512];

	(void)snprintf(url, sizeof(url), "amqp://guest:guest@%s", getenv("HAPAX_TEST_RABBITMQ"));
	if (hx_rabbit_place_parse(url, &place, &err) != HAPAX_OK ||
	    hx_rabbit_open(rabbit, &place, WAIT_MS, &err) != HAPAX_OK ||
	    hx_rabbit_declare_queue(rabbit, hapax_bytes_from_text(queue), &err) != HAPAX_OK)
		fail_msg("%s", err.message);
}

/* The next message of a queue; false: there is none. */
static bool get_message(struct hx_rabbit *rabbit, const char *queue, amqp_message_t *ret_message)
{
	amqp_rpc_reply_t reply =
		amqp_basic_get(rabbit->conn, HX_RABBIT_CHANNEL, amqp_cstring_bytes(queue), 1);

	assert_int_equal(reply.reply_type, AMQP_RESPONSE_NORMAL);
	if (reply.reply.id != AMQP_BASIC_GET_OK_METHOD)
		return false;
	reply = amqp_read_message(rabbit->conn, HX_RABBIT_CHANNEL, ret_message, 0);
	assert_int_equal(reply.reply_type, AMQP_RESPONSE_NORMAL);
	return true;
}

/* A header of a message as text; "" when it is not there. */
static void header_of(const amqp_message_t *message, const char *name, char *out, size_t size)
{
	const amqp_table_t *headers = &message->properties.headers;

	out[0] = '\0';
	for (int i = 0; i < headers->num_entries; i++) {
		amqp_bytes_t key = headers->entries[i].key;
		amqp_bytes_t value = headers->entries[i].value.value.bytes;

		if (key.len == strlen(name) && memcmp(key.bytes, name, key.len) == 0)
			(void)snprintf(out, size, "%.*s", (int)value.len, (char *)value.bytes);
	}
}

/* ------------------------------------------------------------------ cases */

static void messages_carry_what_the_row_has(void **state)
{
	struct hapax_relay_options options = relay_options();
	PGconn *conn = postgres_case_connect();
	struct hx_rabbit rabbit = {0};
	amqp_message_t message;
	char text[300];

	(void)state;
	make_outbox("?declare=quorum");
	(void)postgres_case_query(
		conn,
		"SELECT relayed.hapax_outbox_add_json('carried', '{\"n\": 1}', 'key-1', 'order.made', '/shop',"
		" p_headers => '{\"trace\": \"abc\"}', p_id => 'id-1')");
	relay_all(&options);
	open_broker(&rabbit, "carried");
	assert_true(get_message(&rabbit, "carried", &message));
	assert_memory_equal(message.body.bytes, "{\"n\": 1}", message.body.len);
	assert_memory_equal(message.properties.message_id.bytes, "id-1", 4);
	assert_int_equal(message.properties.delivery_mode, 2);
	assert_memory_equal(message.properties.content_type.bytes, "application/json", 16);
	header_of(&message, "cloudEvents_id", text, sizeof(text));
	assert_string_equal(text, "id-1");
	header_of(&message, "cloudEvents_type", text, sizeof(text));
	assert_string_equal(text, "order.made");
	header_of(&message, "cloudEvents_source", text, sizeof(text));
	assert_string_equal(text, "/shop");
	header_of(&message, "cloudEvents_partitionkey", text, sizeof(text));
	assert_string_equal(text, "key-1");
	header_of(&message, "id", text, sizeof(text));
	assert_string_equal(text, "id-1");
	header_of(&message, "trace", text, sizeof(text));
	assert_string_equal(text, "abc");
	amqp_destroy_message(&message);
	hx_rabbit_close(&rabbit);
	PQfinish(conn);
}

/* Among good ones: a queue that is not there, an exchange that is not, one that is too large. */
static void what_cannot_be_published_is_parked_with_the_reason(void **state)
{
	struct hapax_relay_options options = relay_options();
	PGconn *conn = postgres_case_connect();
	struct hx_rabbit rabbit = {0};

	(void)state;
	make_outbox("");
	open_broker(&rabbit, "parking");
	(void)postgres_case_query(
		conn,
		"SELECT relayed.hapax_outbox_add('nowhere', 'x', 'k1', p_id => 'unroutable')");
	(void)postgres_case_query(
		conn,
		"SELECT relayed.hapax_outbox_add('parking', convert_to(repeat('x', 13000000), 'UTF8'), 'k2',"
		" p_id => 'large')");
	(void)postgres_case_query(
		conn,
		"SELECT count(relayed.hapax_outbox_add('parking', 'x', 'good-' || n)) FROM generate_series(1, 50) n");
	(void)postgres_case_query(
		conn, "SELECT relayed.hapax_outbox_add('parking', 'x', 'k2', p_id => 'behind')");
	relay_all(&options);
	assert_int_equal(
		postgres_case_number(
			conn, "SELECT count(*) FROM relayed.hapax_outbox WHERE state = 1"),
		50);
	assert_non_null(strstr(
		postgres_case_query(
			conn,
			"SELECT state || error FROM relayed.hapax_outbox WHERE id = 'unroutable'"),
		"2no queue wanted it"));
	assert_non_null(strstr(
		postgres_case_query(
			conn, "SELECT state || error FROM relayed.hapax_outbox WHERE id = 'large'"),
		"2RabbitMQ refused it: PRECONDITION_FAILED"));
	assert_int_equal(
		postgres_case_number(
			conn, "SELECT state FROM relayed.hapax_outbox WHERE id = 'behind'"),
		3);

	make_outbox("?exchange=absent");
	(void)postgres_case_query(
		conn, "SELECT relayed.hapax_outbox_add('parking', 'x', p_id => 'exchange')");
	relay_all(&options);
	assert_non_null(
		strstr(postgres_case_query(conn, "SELECT state || error FROM relayed.hapax_outbox"),
	               "2RabbitMQ refused it: NOT_FOUND - no exchange 'absent'"));
	hx_rabbit_close(&rabbit);
	PQfinish(conn);
}

static void a_wrong_sink_is_told_at_once(void **state)
{
	struct hapax_relay_options options = relay_options();
	struct hapax_relay *relay = NULL;
	struct hapax_error err = {0};

	(void)state;
	make_outbox("");
	options.sink = "ftp://h";
	assert_int_equal(hapax_relay_open(db_url, &options, &relay, &err), HAPAX_ERR_UNSUPPORTED);
	options.sink = "amqp://127.0.0.1:1";
	assert_int_equal(hapax_relay_open(db_url, &options, &relay, &err), HAPAX_OK);
	assert_int_equal(hapax_relay_run(relay, &err), HAPAX_ERR_UNAVAILABLE);
	hapax_relay_close(relay);
}

/* ------------------------------------------------------------------ T12 */

/* Everybody is a process of his own: relays are forked again while writers write. */
struct writer {
	pid_t pid;
	unsigned number;
	unsigned count;
	uint64_t seed;
};

/* A transaction of one or two events; what is lost with the server is asked for afterwards. */
static bool write_one(PGconn *conn, struct hx_prng *prng, const char *id)
{
	bool is_kept = hx_prng_below(prng, 4) != 0;
	unsigned key = (unsigned)hx_prng_below(prng, KEYS);
	char sql[512];
	PGresult *result;
	bool is_good;

	(void)snprintf(
		sql, sizeof(sql),
		"BEGIN; SELECT hapax_outbox_add('t12', convert_to('k%u', 'UTF8'), 'k%u', p_id => '%s');"
		" SELECT pg_sleep(%u / 1000.0); INSERT INTO business VALUES ('%s'); %s",
		key, key, id,
		(unsigned)(hx_prng_below(prng, 20) == 0 ? hx_prng_below(prng, 30) : 0), id,
		is_kept ? "COMMIT" : "ROLLBACK");
	result = PQexec(conn, sql);
	is_good = PQresultStatus(result) == PGRES_COMMAND_OK;
	PQclear(result);
	return is_good;
}

static PGconn *connect_patiently(void)
{
	PGconn *conn = PQconnectdb(db_url[0] == '\0' ? "" : "options='-c search_path=relayed'");

	while (PQstatus(conn) != CONNECTION_OK) {
		(void)usleep(1000);
		PQreset(conn);
	}
	return conn;
}

static void write_rows(const struct writer *writer)
{
	PGconn *conn = connect_patiently();
	struct hx_prng prng;

	hx_prng_seed(&prng, writer->seed + writer->number);
	for (unsigned i = 0; i < writer->count; i++) {
		char id[32];

		(void)snprintf(id, sizeof(id), "w%u-%u", writer->number, i);
		if (!write_one(conn, &prng, id)) {
			PQfinish(conn);
			conn = connect_patiently();
		}
	}
	PQfinish(conn);
}

/* Dies when so many batches were confirmed, before the last one is marked. */
struct victim {
	unsigned batches_left;
};

static void die_before_mark(void *context, enum hapax_relay_event event, const char *text)
{
	struct victim *victim = context;

	(void)text;
	if (event == HAPAX_RELAY_CONFIRMED && --victim->batches_left == 0)
		_exit(42);
}

static volatile sig_atomic_t is_over;

static void on_term(int number)
{
	(void)number;
	is_over = 1;
}

static int is_told(void *context)
{
	(void)context;
	return is_over;
}

/* A relay in a process of its own. batches: 0, or after how many it dies. */
static pid_t start_relay(unsigned batches)
{
	struct hapax_relay_options options = relay_options();
	struct victim victim = {batches};
	struct hapax_relay *relay = NULL;
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	(void)signal(SIGTERM, on_term);
	options.is_finite = 0;
	options.stop = is_told;
	options.report = batches == 0 ? NULL : die_before_mark;
	options.context = &victim;
	if (hapax_relay_open(db_url, &options, &relay, NULL) != HAPAX_OK)
		_exit(1);
	while (hapax_relay_run(relay, NULL) != HAPAX_OK)
		(void)usleep(1000);
	_exit(0);
}

static long long pending(PGconn **conn)
{
	for (;;) {
		PGresult *result =
			PQexec(*conn, "SELECT count(*) FROM relayed.hapax_outbox WHERE state <> 1");
		long long count = -1;

		if (PQresultStatus(result) == PGRES_TUPLES_OK)
			count = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
		PQclear(result);
		if (count >= 0)
			return count;
		PQfinish(*conn);
		*conn = connect_patiently();
	}
}

/* Keep one relay that lives and one that dies again and again, until all is sent. */
static unsigned relay_with_deaths(struct writer *writers, uint64_t seed)
{
	PGconn *conn = connect_patiently();
	pid_t steady, victim = start_relay(1);
	unsigned deaths = 1, rounds = 0;
	/* Seconds of CPU time each, so not in every run. */
	bool with_restarts = scale_is_proof() || getenv("HAPAX_TEST_RESTARTS") != NULL;
	struct hx_prng prng;
	int status;

	hx_prng_seed(&prng, seed);
	/* The first one is alone, so it is sure to die of its first batch. */
	assert_int_equal(waitpid(victim, &status, 0), victim);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
	steady = start_relay(0);
	victim = start_relay(1);
	for (unsigned i = 0; i < WRITERS; i++) {
		assert_int_equal(waitpid(writers[i].pid, &status, 0), writers[i].pid);
		assert_int_equal(status, 0);
		if (waitpid(victim, &status, WNOHANG) == victim) {
			deaths += WIFEXITED(status) && WEXITSTATUS(status) == 42;
			victim = start_relay(1 + (unsigned)hx_prng_below(&prng, 4));
		}
		if (with_restarts && i % 8 == 4)
			assert_int_equal(
				system(
					getenv(i % 16 == 4 ? "HAPAX_TEST_RABBITMQ_RESTART"
			                                   : "HAPAX_TEST_POSTGRES_RESTART")),
				0);
	}
	while (pending(&conn) > 0) {
		if (waitpid(victim, &status, WNOHANG) == victim) {
			deaths += WIFEXITED(status) && WEXITSTATUS(status) == 42;
			victim = start_relay(++rounds > 3 ? 0 : 1);
		}
		(void)usleep(5000);
	}
	(void)kill(steady, SIGTERM);
	(void)kill(victim, SIGTERM);
	(void)waitpid(steady, &status, 0);
	(void)waitpid(victim, &status, 0);
	PQfinish(conn);
	return deaths;
}

/* "k17": a body has no NUL at its end. */
static long long key_of(const amqp_message_t *message)
{
	char text[32];

	(void)snprintf(
		text, sizeof(text), "%.*s", (int)message->body.len, (char *)message->body.bytes);
	return strtoll(text + 1, NULL, 10);
}

/* Read all messages as a consumer would: what they bring about happens once, in order. */
static void consume(PGconn *conn, uint64_t *ret_messages, uint64_t *ret_effects)
{
	struct hapax_store *store = NULL;
	struct hx_rabbit rabbit = {0};
	long long last[KEYS] = {0};
	amqp_message_t message;

	assert_int_equal(hapax_store_open("memory:", NULL, &store, NULL), HAPAX_OK);
	open_broker(&rabbit, "t12");
	while (get_message(&rabbit, "t12", &message)) {
		enum hapax_outcome outcome;
		struct hapax_bytes id = {
			message.properties.message_id.bytes, message.properties.message_id.len};

		++*ret_messages;
		assert_int_equal(hapax_store_check(store, id, 0, &outcome, NULL), HAPAX_OK);
		if (outcome == HAPAX_OUTCOME_ACQUIRED) {
			long long key = key_of(&message);
			long long seq = strtoll(
				postgres_case_query(
					conn,
					"INSERT INTO relayed.effects VALUES ('%.*s'); SELECT coalesce((SELECT"
					" seq FROM relayed.hapax_outbox WHERE id = '%.*s'), -1)",
					(int)id.size, (const char *)id.data, (int)id.size,
					(const char *)id.data),
				NULL, 10);

			++*ret_effects;
			assert_true(key >= 0 && key < KEYS);
			/* Of one key in the order of commits. */
			assert_true(seq > last[key]);
			last[key] = seq;
		}
		amqp_destroy_message(&message);
		amqp_maybe_release_buffers(rabbit.conn);
	}
	hx_rabbit_close(&rabbit);
	hapax_store_close(store);
}

static void committed_is_published_and_happens_once(void **state)
{
	static struct writer writers[WRITERS];
	uint64_t count = scale_count(100000, 640), seed = 0, messages = 0, effects = 0;
	double began = scale_seconds();
	PGconn *conn = postgres_case_connect();
	unsigned deaths;

	(void)state;
	if (!scale_seed(&seed))
		hx_random_bytes(&seed, sizeof(seed));
	print_message("# seed %llu\n", (unsigned long long)seed);
	make_outbox("?declare=quorum");
	(void)postgres_case_query(
		conn,
		"CREATE TABLE relayed.business (id text PRIMARY KEY); CREATE TABLE relayed.effects (id text)");
	PQfinish(conn);
	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){
			.number = i, .count = (unsigned)(count / WRITERS), .seed = seed};
		writers[i].pid = fork();
		assert_true(writers[i].pid >= 0);
		if (writers[i].pid == 0) {
			write_rows(&writers[i]);
			_exit(0);
		}
	}
	deaths = relay_with_deaths(writers, seed);
	conn = postgres_case_connect();
	consume(conn, &messages, &effects);
	print_message(
		"# %llu messages, %llu effects, %u deaths between publish and mark\n",
		(unsigned long long)messages, (unsigned long long)effects, deaths);
	/* Committed = published, and none of those that were rolled back. */
	assert_int_equal(
		postgres_case_number(
			conn,
			"SELECT count(*) FROM relayed.business b FULL JOIN relayed.effects e USING (id)"
			" WHERE b.id IS NULL OR e.id IS NULL"),
		0);
	assert_int_equal(
		postgres_case_number(conn, "SELECT count(*) FROM relayed.business"), effects);
	assert_true(messages > effects);
	scale_report("outbox to RabbitMQ (T12)", count, scale_seconds() - began, true);
	PQfinish(conn);
}

/* The example, as its readers will run it: once with SQLite, once with PostgreSQL. */
static void the_example_ships_each_order_once(void **state)
{
	const char *example = getenv("HAPAX_TEST_EXAMPLE_OUTBOX");
	struct temp_dir dir;
	char command[2048], output[4096] = "", postgres[512];
	const char *const databases[] = {"sqlite:shop.db", postgres};
	PGconn *conn = postgres_case_connect();

	(void)state;
	(void)snprintf(
		postgres, sizeof(postgres), "postgres:///example%s", getenv("HAPAX_TEST_POSTGRES"));
	(void)postgres_case_query(conn, "DROP DATABASE IF EXISTS example");
	(void)postgres_case_query(conn, "CREATE DATABASE example");
	PQfinish(conn);
	if (example == NULL)
		skip();
	temp_dir_init(&dir);
	for (int i = 0; i < 2; i++) {
		FILE *pipe;
		size_t size;

		(void)snprintf(
			command, sizeof(command),
			"cd '%s' && rm -f shipped.db && '%s' 'amqp://guest:guest@%s' '%s'",
			dir.path, example, getenv("HAPAX_TEST_RABBITMQ"), databases[i]);
		pipe = popen(command, "r");
		assert_non_null(pipe);
		size = fread(output, 1, sizeof(output) - 1, pipe);
		output[size] = '\0';
		assert_int_equal(pclose(pipe), 0);
		assert_non_null(strstr(output, "order 3 was not placed"));
		assert_null(strstr(output, "shipped {\"order\":3}"));
		assert_non_null(strstr(output, "8 messages, 4 orders shipped"));
	}
	temp_dir_done(&dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_carry_what_the_row_has),
		cmocka_unit_test(what_cannot_be_published_is_parked_with_the_reason),
		cmocka_unit_test(a_wrong_sink_is_told_at_once),
		cmocka_unit_test(the_example_ships_each_order_once),
		cmocka_unit_test(committed_is_published_and_happens_once),
	};

	return cmocka_run_group_tests_name("outbox_relay", tests, NULL, NULL);
}
