/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_postgres.c - from a broker into PostgreSQL, exactly once.
 *
 *	source_postgres kafka://HOST/TOPIC?group=G [CONNECTION]
 *	source_postgres amqp://HOST/QUEUE [CONNECTION]
 *	source_postgres redis://HOST/STREAM?group=G [CONNECTION]
 *
 * Of each CloudEvent, claim, booking, result and, of Kafka, the offset of the message commit in
 * one transaction, or none of them does. The process may be killed at any moment: what the broker
 * delivers again is found to be done. The ledger is made by `hapax store migrate`, the tables by
 *
 *	CREATE TABLE booking (event text PRIMARY KEY, data text);
 *	CREATE TABLE progress (topic text, part int, next bigint, PRIMARY KEY (topic, part));
 *
 * The consumer itself protects nothing here (HAPAX_REGISTRATION_UNPROTECTED): what it would know
 * is in another place than the effect.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libpq-fe.h>

#include <hapax/hapax.h>
#include <hapax/postgres.h>

struct app {
	PGconn *conn; /* of the one thread that handles */
	struct hapax_store *store;
	struct hapax_processor *processor;
	struct hapax_registry *registry;
	struct hapax_consumer *consumer;
};

static struct app app;

/* A fact about the message: topic, partition, offset. */
static char *meta(const struct hapax_event *event, const char *name, char *out, size_t size)
{
	out[0] = '\0';
	for (size_t i = 0; i < event->meta_count; i++) {
		const struct hapax_field *field = &event->meta[i];

		if (field->name.size == strlen(name) &&
		    memcmp(field->name.data, name, field->name.size) == 0)
			(void)snprintf(
				out, size, "%.*s", (int)field->value.size,
				(const char *)field->value.data);
	}
	return out;
}

static int execute(const char *sql, int count, const char *const *values, const int *sizes)
{
	PGresult *result = PQexecParams(app.conn, sql, count, NULL, values, sizes, NULL, 0);
	int is_ok = PQresultStatus(result) == PGRES_COMMAND_OK;

	PQclear(result);
	return is_ok;
}

/* The effect. It stands or falls with the claim, and so does the offset. */
static enum hapax_run_outcome book(struct hapax_work *work, void *context)
{
	char event[1025], data[4096], topic[256], part[24], offset[24];
	const char *booking[] = {event, data};
	const char *progress[] = {topic, part, offset};

	(void)context;
	(void)snprintf(
		event, sizeof(event), "%.*s", (int)work->key.size, (const char *)work->key.data);
	(void)snprintf(
		data, sizeof(data), "%.*s", (int)work->event->data.size,
		(const char *)work->event->data.data);
	(void)meta(work->event, "topic", topic, sizeof(topic));
	(void)meta(work->event, "partition", part, sizeof(part));
	(void)meta(work->event, "offset", offset, sizeof(offset));
	if (!execute("INSERT INTO booking VALUES ($1, $2)", 2, booking, NULL))
		return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, PQerrorMessage(app.conn));
	/* A queue has no offsets, and those of a stream are no numbers. */
	if (part[0] != '\0' &&
	    !execute(
		    "INSERT INTO progress VALUES ($1, $2::int, $3::bigint + 1) ON CONFLICT (topic, part)"
		    " DO UPDATE SET next = greatest(progress.next, excluded.next)",
		    3, progress, NULL))
		return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, PQerrorMessage(app.conn));
	(void)hapax_work_write(work, "booked", 6);
	return HAPAX_RUN_OK;
}

static void leave(void)
{
	hapax_registry_free(app.registry);
	hapax_processor_free(app.processor);
	hapax_store_close(app.store);
	app.registry = NULL;
	app.processor = NULL;
	app.store = NULL;
}

static enum hapax_status join(struct hapax_error *err)
{
	struct hapax_registration row = HAPAX_REGISTRATION_INIT;
	enum hapax_status status = hapax_postgres_join(app.conn, NULL, &app.store, err);

	row.strategy = "event-id";
	row.handler = book;
	if (status == HAPAX_OK)
		status = hapax_processor_new(app.store, NULL, &app.processor, err);
	if (status == HAPAX_OK)
		status = hapax_registry_new(app.processor, &row, 1, &app.registry, err);
	return status;
}

/* A message: done, or tried again. What cannot be told is asked again, which tells. */
static enum hapax_run_outcome deliver(struct hapax_work *work, void *context)
{
	struct hapax_answer answer = HAPAX_ANSWER_INIT;
	struct hapax_error err = {0};
	enum hapax_status status;

	(void)context;
	if (app.registry == NULL || PQstatus(app.conn) != CONNECTION_OK) {
		leave();
		PQreset(app.conn);
		if (join(&err) != HAPAX_OK)
			return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, err.message);
	}
	status = hapax_registry_process(
		app.registry, (struct hapax_bytes){NULL, 0}, work->event, &answer, NULL, &err);
	if (status == HAPAX_ERR_FAILED)
		leave();
	if (status == HAPAX_ERR_INVALID)
		return hapax_work_fail(work, HAPAX_RUN_DEFINITIVE, err.message);
	if (status != HAPAX_OK)
		return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, err.message);
	switch (answer.outcome) {
	case HAPAX_OUTCOME_ACQUIRED:
	case HAPAX_OUTCOME_REPLAY: return HAPAX_RUN_OK;
	case HAPAX_OUTCOME_MISMATCH:
	case HAPAX_OUTCOME_PARKED:
		return hapax_work_fail(
			work, HAPAX_RUN_DEFINITIVE, hapax_outcome_name(answer.outcome));
	default: return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, "somebody else is at it");
	}
}

/* TERM: finish what runs, then end. */
static void *wait_for_term(void *signals)
{
	int number;

	(void)sigwait(signals, &number);
	hapax_consumer_stop(app.consumer);
	return NULL;
}

int main(int argc, char **argv)
{
	struct hapax_consumer_options options = HAPAX_CONSUMER_OPTIONS_INIT;
	struct hapax_registration row = HAPAX_REGISTRATION_INIT;
	struct hapax_source *source = NULL;
	struct hapax_store *none = NULL;
	struct hapax_error err = {0};
	pthread_t thread;
	sigset_t signals;

	if (argc < 2)
		return 64;
	/* Before there are other threads, so that none of them gets it. */
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGTERM);
	(void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
	app.conn = PQconnectdb(argc > 2 ? argv[2] : "");
	row.flags = HAPAX_REGISTRATION_UNPROTECTED;
	row.handler = deliver;
	options.rows = &row;
	options.row_count = 1;
	options.parallel = 1;              /* one thread, one connection */
	options.attempts_max = UINT32_MAX; /* an outage of the database is nobody's fault */
	options.backoff_ms_max = 5000;
	if (join(&err) != HAPAX_OK || hapax_store_open("memory:", NULL, &none, &err) != HAPAX_OK ||
	    hapax_source_open(argv[1], &source, &err) != HAPAX_OK ||
	    hapax_consumer_new(source, none, &options, &app.consumer, &err) != HAPAX_OK) {
		(void)fprintf(stderr, "source_postgres: %s\n", err.message);
		return 1;
	}
	if (pthread_create(&thread, NULL, wait_for_term, &signals) != 0)
		return 1;
	if (hapax_consumer_run(app.consumer, &err) != HAPAX_OK)
		(void)fprintf(stderr, "source_postgres: %s\n", err.message);
	/* It may have ended by itself. */
	(void)kill(getpid(), SIGTERM);
	(void)pthread_join(thread, NULL);
	hapax_consumer_free(app.consumer);
	hapax_store_close(none);
	leave();
	PQfinish(app.conn);
	return err.status == HAPAX_OK ? 0 : 1;
}
