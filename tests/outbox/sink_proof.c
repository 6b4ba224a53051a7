/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_proof.c - I6 and T12: writers whose transactions commit out of order or not at all, two
 * relays of which one is killed between publishing and marking, again and again, a broker and a
 * database that die. What is committed arrives, in order, and what it brings about happens once.
 *
 * SQLite has no server that could die; there writers are killed within their transactions.
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

#include <libpq-fe.h>

#include <hapax/hapax.h>

#include "base/random.h"
#include "support/scale.h"

enum { WRITERS = 32, KEYS = 64 };

/* Of this proof; forked processes have it, too. */
static struct sink_case proof;

/* ------------------------------------------------------------------ writers */

/* Everybody is a process of his own: relays are forked again while writers write. */
struct writer {
	pid_t pid;
	unsigned number;
	unsigned count;
	uint64_t seed;
	const char *topic;
};

/* A transaction of one event; what is lost with the server is asked for afterwards. */
static bool write_one(
	PGconn *conn, const struct writer *writer, struct hx_prng *prng, const char *id)
{
	bool is_kept = hx_prng_below(prng, 4) != 0;
	unsigned key = (unsigned)hx_prng_below(prng, KEYS);
	char sql[512];
	PGresult *result;
	bool is_good;

	(void)snprintf(
		sql, sizeof(sql),
		"BEGIN; SELECT hapax_outbox_add('%s', convert_to('k%u', 'UTF8'), 'k%u', p_id => '%s');"
		" SELECT pg_sleep(%u / 1000.0); INSERT INTO orders VALUES ('%s'); %s",
		writer->topic, key, key, id,
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
	PGconn *conn = PQconnectdb("options='-c search_path=outbox_case'");

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
		if (!write_one(conn, writer, &prng, id)) {
			PQfinish(conn);
			conn = connect_patiently();
		}
	}
	PQfinish(conn);
}

/* A transaction in SQLite, on a connection that is the process's own. */
static void write_one_locally(
	struct outbox_case *c, const struct writer *writer, struct hx_prng *prng, const char *id,
	bool is_killed)
{
	bool is_kept = hx_prng_below(prng, 4) != 0;
	char key[16], sql[96];

	(void)snprintf(key, sizeof(key), "k%u", (unsigned)hx_prng_below(prng, KEYS));
	(void)snprintf(sql, sizeof(sql), "INSERT INTO {}orders VALUES ('%s')", id);
	outbox_case_run(c, "BEGIN IMMEDIATE");
	outbox_case_add(c, writer->topic, key, id, key);
	outbox_case_run(c, sql);
	if (is_killed)
		(void)raise(SIGKILL);
	outbox_case_run(c, is_kept ? "COMMIT" : "ROLLBACK");
}

/* A relay begins, and dies. */
static void die_in_a_transaction(const struct writer *writer, const char *id)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		struct outbox_case own;
		struct hx_prng prng;

		hx_prng_seed(&prng, writer->seed);
		outbox_case_join(&proof.outbox, &own);
		write_one_locally(&own, writer, &prng, id, true);
		_exit(1);
	}
	/* Only the parent's own wait would hear of an assertion here. */
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) ||
	    WTERMSIG(status) != SIGKILL)
		_exit(1);
}

static void write_rows_locally(const struct writer *writer)
{
	struct outbox_case own;
	struct hx_prng prng;

	hx_prng_seed(&prng, writer->seed + writer->number);
	/* Before there is a connection that a child would take along. */
	for (unsigned i = 0; i < 2; i++) {
		char id[32];

		(void)snprintf(id, sizeof(id), "dead%u-%u", writer->number, i);
		die_in_a_transaction(writer, id);
	}
	outbox_case_join(&proof.outbox, &own);
	for (unsigned i = 0; i < writer->count; i++) {
		char id[32];

		(void)snprintf(id, sizeof(id), "w%u-%u", writer->number, i);
		write_one_locally(&own, writer, &prng, id, false);
	}
	outbox_case_leave(&own);
}

static void start_writers(struct writer *writers, const char *topic, uint64_t count, uint64_t seed)
{
	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){
			.number = i,
			.count = (unsigned)(count / WRITERS),
			.seed = seed,
			.topic = topic};
		writers[i].pid = fork();
		assert_true(writers[i].pid >= 0);
		if (writers[i].pid == 0) {
			if (proof.outbox.is_postgres)
				write_rows(&writers[i]);
			else
				write_rows_locally(&writers[i]);
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
	struct hapax_relay_options options = sink_case_options(&proof);
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
	options.lease_ms = scale_is_proof() ? 2000 : 400;
	options.attempts_max = 1000;
	options.is_finite = is_finite;
	options.stop = is_told;
	options.report = batches == 0 ? NULL : die_before_mark;
	options.context = &victim;
	if (hapax_relay_open(proof.outbox.url, &options, &relay, NULL) != HAPAX_OK)
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
	else if (number % 16 == 12 && is_thorough && proof.outbox.is_postgres)
		assert_int_equal(system(getenv("HAPAX_TEST_POSTGRES_RESTART")), 0);
}

/* One relay that lives and one that dies again and again, until no thread writes any more. */
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
			/* In the middle of it all; later on when writers end. */
			if (was_killed(status) && deaths <= 16)
				restart_something(broker, deaths);
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
		/* One of the first batch, one later; in the last round none. */
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
	struct outbox_case outbox;
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
	char name[64], id[64], sql[256];
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
	(void)snprintf(sql, sizeof(sql), "INSERT INTO {}effects VALUES ('%s')", id);
	outbox_case_run(&consumer->outbox, sql);
	(void)snprintf(
		sql, sizeof(sql),
		"SELECT coalesce((SELECT seq FROM {}hapax_outbox WHERE id = '%s'), -1)", id);
	seq = outbox_case_number(&consumer->outbox, sql);
	assert_true(seq > consumer->last[key]);
	consumer->last[key] = seq;
}

/* Committed = published, and none of those that were rolled back. */
static void compare(struct consumer *consumer)
{
	assert_int_equal(
		outbox_case_number(
			&consumer->outbox,
			"SELECT count(*) FROM {}orders WHERE id NOT IN (SELECT id FROM {}effects)"),
		0);
	assert_int_equal(
		outbox_case_number(
			&consumer->outbox,
			"SELECT count(*) FROM {}effects WHERE id NOT IN (SELECT id FROM {}orders)"),
		0);
	assert_int_equal(
		outbox_case_number(&consumer->outbox, "SELECT count(*) FROM {}orders"),
		consumer->effects);
}

static void prove(const struct sink_broker *broker, const char *kind, const char *topic)
{
	static struct writer writers[WRITERS];
	/* A quarter is rolled back: 100,000 are left. */
	uint64_t count = scale_count(140000, 320), seed = 0;
	double began = scale_seconds();
	struct consumer consumer = {.broker = broker};
	struct hx_prng prng;
	unsigned deaths;
	char what[64];

	if (!scale_seed(&seed))
		hx_random_bytes(&seed, sizeof(seed));
	print_message("# seed %llu\n", (unsigned long long)seed);
	hx_prng_seed(&prng, seed);
	sink_case_begin(&proof, broker, kind, SINK_OPEN);
	outbox_case_run(&proof.outbox, "CREATE TABLE {}effects (id TEXT)");
	/* Processes that are forked take no connection along. */
	outbox_case_leave(&proof.outbox);
	start_writers(writers, topic, count, seed);
	deaths = relay_while_they_write(broker, writers, &prng) + relay_the_rest();
	outbox_case_join(&proof.outbox, &consumer.outbox);
	assert_int_equal(hapax_store_open("memory:", NULL, &consumer.store, NULL), HAPAX_OK);
	broker->read(topic, consume, &consumer);
	print_message(
		"# %s to %s: %llu messages, %llu effects, %u deaths between publish and mark\n",
		kind, broker->name, (unsigned long long)consumer.messages,
		(unsigned long long)consumer.effects, deaths);
	compare(&consumer);
	assert_true(!scale_is_proof() || consumer.effects >= 100000);
	/* The batches of relays that died were published again. */
	assert_true(consumer.messages > consumer.effects);
	assert_true(deaths > 0);
	(void)snprintf(what, sizeof(what), "outbox in %s to %s (T12)", kind, broker->name);
	scale_report(what, consumer.effects, scale_seconds() - began, true);
	hapax_store_close(consumer.store);
	/* The last connection; its folder goes with it. */
	outbox_case_done(&consumer.outbox);
}

void committed_is_published_and_happens_once(void **state)
{
	prove(*state, "postgres:", "t12");
}

void committed_in_sqlite_is_published_and_happens_once(void **state)
{
	prove(*state, "sqlite:", "t12-sqlite");
}
