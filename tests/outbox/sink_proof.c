/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_proof.c - I6 and T12: writers whose transactions commit out of order or not at all, two
 * relays of which one is killed between publishing and marking, again and again, a broker and a
 * database that die. What is committed arrives, in order, and what it brings about happens once.
 */
#include "outbox/sink_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hapax/hapax.h>

#include "base/random.h"
#include "support/postgres_case.h"
#include "support/scale.h"

enum { WRITERS = 32, KEYS = 64 };

/* ------------------------------------------------------------------ writers */

/* Everybody is a process of his own: relays are forked again while writers write. */
struct writer {
	pid_t pid;
	unsigned number;
	unsigned count;
	uint64_t seed;
};

/* A transaction of one event; what is lost with the server is asked for afterwards. */
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

/* While the server is down there is nothing to wait for but time. */
static PGconn *connect_patiently(void)
{
	PGconn *conn = PQconnectdb("options='-c search_path=relayed'");

	while (PQstatus(conn) != CONNECTION_OK) {
		(void)usleep(5000);
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

static void start_writers(struct writer *writers, uint64_t count, uint64_t seed)
{
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
}

/* ------------------------------------------------------------------ relays */

/* Dies when so many batches were confirmed, before the last one is marked. */
struct victim {
	unsigned batches_left;
};

static void die_before_mark(void *context, enum hapax_relay_event event, const char *text)
{
	struct victim *victim = context;

	(void)text;
	if (event == HAPAX_RELAY_CONFIRMED && --victim->batches_left == 0)
		(void)raise(SIGKILL);
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
static pid_t start_relay(unsigned batches, bool is_finite)
{
	struct hapax_relay_options options = sink_case_options();
	struct victim victim = {batches};
	struct hapax_relay *relay = NULL;
	pid_t pid;

	/* Before there is a process that could be told. */
	(void)signal(SIGTERM, on_term);
	pid = fork();
	assert_true(pid >= 0);
	if (pid != 0) {
		(void)signal(SIGTERM, SIG_DFL);
		return pid;
	}
	options.lease_ms = scale_is_proof() ? 1000 : 400;
	options.attempts_max = 1000;
	options.is_finite = is_finite;
	options.stop = is_told;
	options.report = batches == 0 ? NULL : die_before_mark;
	options.context = &victim;
	if (hapax_relay_open(sink_case_db(), &options, &relay, NULL) != HAPAX_OK)
		_exit(1);
	/* Where one side is down at the beginning, it begins again. */
	while (hapax_relay_run(relay, NULL) != HAPAX_OK && !is_over)
		(void)usleep(5000);
	hapax_relay_close(relay);
	_exit(0);
}

static bool was_killed(int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static bool is_writer(const struct writer *writers, pid_t pid)
{
	for (unsigned i = 0; i < WRITERS; i++)
		if (writers[i].pid == pid)
			return true;
	return false;
}

/* The broker and the database, in turn. */
static void restart_something(const struct sink_broker *broker, unsigned number)
{
	/* Where it takes seconds of CPU time, not in every run. */
	bool is_thorough = scale_is_proof() || getenv("HAPAX_TEST_RESTARTS") != NULL;

	if (number % 16 == 4 && (is_thorough || broker->restarts_fast))
		broker->restart();
	else if (number % 16 == 12 && is_thorough)
		assert_int_equal(system(getenv("HAPAX_TEST_POSTGRES_RESTART")), 0);
}

/* One relay that lives and one that dies again and again, until nobody writes any more. */
static unsigned relay_while_they_write(
	const struct sink_broker *broker, const struct writer *writers, struct hx_prng *prng)
{
	pid_t steady, victim = start_relay(1, false);
	unsigned deaths = 0, ended = 0;
	int status = 0;

	/* The first one is alone, so it is sure to die of its first batch. */
	for (bool is_dead = false; !is_dead;) {
		pid_t pid = waitpid(-1, &status, 0);

		is_dead = pid == victim;
		if (is_writer(writers, pid)) {
			assert_int_equal(status, 0);
			ended++;
		}
	}
	assert_true(was_killed(status));
	deaths++;
	steady = start_relay(0, false);
	victim = start_relay(1, false);
	while (ended < WRITERS) {
		pid_t pid = waitpid(-1, &status, 0);

		assert_int_not_equal(pid, steady);
		if (pid == victim) {
			deaths += was_killed(status);
			victim = start_relay(1 + (unsigned)hx_prng_below(prng, 4), false);
		} else if (is_writer(writers, pid)) {
			assert_int_equal(status, 0);
			restart_something(broker, ended++);
		}
	}
	(void)kill(victim, SIGKILL);
	(void)kill(steady, SIGTERM);
	assert_int_equal(waitpid(victim, &status, 0), victim);
	assert_int_equal(waitpid(steady, &status, 0), steady);
	assert_int_equal(status, 0);
	return deaths;
}

/* Two relays at a time, which end when nothing is pending, or die before. */
static unsigned relay_the_rest(void)
{
	unsigned deaths = 0, deadly = scale_is_proof() ? 3 : 1;

	for (unsigned round = 0; round <= deadly; round++) {
		/* One of the first batch, one later; in the last round nobody. */
		pid_t pids[2] = {
			start_relay(round < deadly ? 1 : 0, true),
			start_relay(round < deadly ? 2 + round : 0, true)};
		int status = 0;

		for (int i = 0; i < 2; i++) {
			assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
			deaths += was_killed(status);
			assert_true(status == 0 || (round < deadly && was_killed(status)));
		}
	}
	return deaths;
}

/* ------------------------------------------------------------------ the consumer */

struct consumer {
	const struct sink_broker *broker;
	PGconn *conn;
	struct hapax_store *store;
	uint64_t messages;
	uint64_t effects;
	long long last[KEYS]; /* place of the last event of a key */
};

/* "k17": a body has no NUL at its end. */
static long long key_of(const struct sink_message *message)
{
	char text[32];

	(void)snprintf(
		text, sizeof(text), "%.*s", (int)message->body.size,
		(const char *)message->body.data);
	assert_int_equal(text[0], 'k');
	return strtoll(text + 1, NULL, 10);
}

/* What a message brings about happens once, and in the order of commits. */
static void consume(void *context, const struct sink_message *message)
{
	struct consumer *consumer = context;
	enum hapax_outcome outcome;
	char name[64], id[64];
	long long key, seq;

	(void)snprintf(name, sizeof(name), "%sid", consumer->broker->prefix);
	(void)snprintf(id, sizeof(id), "%s", sink_message_field(message, name));
	assert_string_not_equal(id, "");
	consumer->messages++;
	assert_int_equal(
		hapax_store_check(consumer->store, hapax_bytes_from_text(id), 0, &outcome, NULL),
		HAPAX_OK);
	if (outcome != HAPAX_OUTCOME_ACQUIRED)
		return;
	consumer->effects++;
	key = key_of(message);
	assert_true(key >= 0 && key < KEYS);
	seq = strtoll(
		postgres_case_query(
			consumer->conn,
			"INSERT INTO relayed.effects VALUES ('%s'); SELECT coalesce((SELECT seq FROM"
			" relayed.hapax_outbox WHERE id = '%s'), -1)",
			id, id),
		NULL, 10);
	assert_true(seq > consumer->last[key]);
	consumer->last[key] = seq;
}

void committed_is_published_and_happens_once(void **state)
{
	static struct writer writers[WRITERS];
	const struct sink_broker *broker = *state;
	uint64_t count = scale_count(100000, 320), seed = 0;
	double began = scale_seconds();
	struct consumer consumer = {.broker = broker, .conn = postgres_case_connect()};
	struct hx_prng prng;
	unsigned deaths;
	char what[64];

	if (!scale_seed(&seed))
		hx_random_bytes(&seed, sizeof(seed));
	print_message("# seed %llu\n", (unsigned long long)seed);
	hx_prng_seed(&prng, seed);
	sink_case_outbox(broker, SINK_OPEN);
	(void)postgres_case_query(
		consumer.conn,
		"CREATE TABLE relayed.business (id text PRIMARY KEY); CREATE TABLE relayed.effects (id text)");
	PQfinish(consumer.conn);
	start_writers(writers, count, seed);
	deaths = relay_while_they_write(broker, writers, &prng) + relay_the_rest();
	consumer.conn = postgres_case_connect();
	assert_int_equal(hapax_store_open("memory:", NULL, &consumer.store, NULL), HAPAX_OK);
	broker->read("t12", consume, &consumer);
	print_message(
		"# %llu messages, %llu effects, %u deaths between publish and mark\n",
		(unsigned long long)consumer.messages, (unsigned long long)consumer.effects,
		deaths);
	/* Committed = published, and none of those that were rolled back. */
	assert_int_equal(
		postgres_case_number(
			consumer.conn,
			"SELECT count(*) FROM relayed.business b FULL JOIN relayed.effects e USING (id)"
			" WHERE b.id IS NULL OR e.id IS NULL"),
		0);
	assert_int_equal(
		postgres_case_number(consumer.conn, "SELECT count(*) FROM relayed.business"),
		consumer.effects);
	/* The batches of those who died came again. */
	assert_true(consumer.messages > consumer.effects);
	assert_true(deaths > 0);
	(void)snprintf(what, sizeof(what), "outbox to %s (T12)", broker->name);
	scale_report(what, count, scale_seconds() - began, true);
	hapax_store_close(consumer.store);
	PQfinish(consumer.conn);
}
