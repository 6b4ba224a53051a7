/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_postgres.c - from a broker into PostgreSQL, exactly once.
 *
 *	source_postgres kafka://HOST/TOPIC?group=G [postgres://...]
 *	source_postgres amqp://HOST/QUEUE [postgres://...]
 *	source_postgres redis://HOST/STREAM?group=G [postgres://...]
 *
 * Of each CloudEvent, claim, booking, result and, of Kafka, the offset of the message commit in
 * one transaction, or none of them does. The process may be killed at any moment: what the broker
 * delivers again is found to be done. The store and the offsets are created by `hapax store migrate`, the
 * table of bookings by
 *
 *	CREATE TABLE booking (event text PRIMARY KEY, data text);
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <libpq-fe.h>

#include <hapax/hapax.h>
#include <hapax/postgres.h>

/* The effect. It stands or falls with the claim, and so does the offset. */
static enum hapax_run_outcome book(struct hapax_work *work, void *context)
{
	PGconn *conn = hapax_postgres_of_work(work);
	struct hapax_bytes data = work->event->data;
	char event[1025], text[4096];
	const char *values[] = {event, text};
	PGresult *result;
	int is_booked;

	(void)context;
	(void)snprintf(
		event, sizeof(event), "%.*s", (int)work->key.size, (const char *)work->key.data);
	(void)snprintf(text, sizeof(text), "%.*s", (int)data.size, (const char *)data.data);
	result = PQexecParams(
		conn, "INSERT INTO booking VALUES ($1, $2)", 2, NULL, values, NULL, NULL, 0);
	is_booked = PQresultStatus(result) == PGRES_COMMAND_OK;
	PQclear(result);
	if (!is_booked)
		return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, PQerrorMessage(conn));
	(void)hapax_work_write(work, "booked", 6);
	return HAPAX_RUN_OK;
}

struct ending {
	struct hapax_consumer *consumer;
	sigset_t signals;
};

/* TERM: finish what runs, then end. */
static void *wait_for_term(void *arg)
{
	struct ending *ending = arg;
	int number;

	(void)sigwait(&ending->signals, &number);
	hapax_consumer_stop(ending->consumer);
	return NULL;
}

int main(int argc, char **argv)
{
	struct hapax_consumer_options options = HAPAX_CONSUMER_OPTIONS_INIT;
	struct hapax_registration row = HAPAX_REGISTRATION_INIT;
	struct hapax_source *source = NULL;
	struct hapax_store *store = NULL;
	struct ending ending = {NULL, {{0}}};
	struct hapax_error err = {0};
	pthread_t thread;

	if (argc < 2)
		return 64;
	/* Before there are other threads, so that none of them gets it. */
	(void)sigemptyset(&ending.signals);
	(void)sigaddset(&ending.signals, SIGTERM);
	(void)pthread_sigmask(SIG_BLOCK, &ending.signals, NULL);
	row.handler = book;
	options.flags = HAPAX_CONSUMER_TRANSACTIONS;
	options.rows = &row;
	options.row_count = 1;
	options.parallel = 4; /* connections, too */
	options.backoff_ms_max = 5000;
	if (hapax_store_open(argc > 2 ? argv[2] : "postgres:///", NULL, &store, &err) != HAPAX_OK ||
	    hapax_source_open(argv[1], &source, &err) != HAPAX_OK ||
	    hapax_consumer_new(source, store, &options, &ending.consumer, &err) != HAPAX_OK) {
		(void)fprintf(stderr, "source_postgres: %s\n", err.message);
		return 1;
	}
	if (pthread_create(&thread, NULL, wait_for_term, &ending) != 0)
		return 1;
	if (hapax_consumer_run(ending.consumer, &err) != HAPAX_OK)
		(void)fprintf(stderr, "source_postgres: %s\n", err.message);
	/* It may have ended by itself. */
	(void)kill(getpid(), SIGTERM);
	(void)pthread_join(thread, NULL);
	hapax_consumer_free(ending.consumer);
	hapax_store_close(store);
	return err.status == HAPAX_OK ? 0 : 1;
}
