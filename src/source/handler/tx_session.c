/* SPDX-License-Identifier: Apache-2.0 */
#include "source/handler/tx_session.h"

#include <stdio.h>
#include <string.h>

#include <libpq-fe.h>

#include <hapax/postgres.h>
#include <hapax/tx.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "processor/tx.h"
#include "source/consume/consumer.h"
#include "source/handler/workers.h"
#include "store/postgres/postgres_fault.h"
#include "store/postgres/tx/offset.h"
#include "store/postgres/postgres_place.h"
#include "store/postgres/postgres_store.h"

enum { TOPIC_SIZE = 256 };

/* A connection with the ledger joined to it. One worker at a time uses it. */
struct hx_tx_session {
	PGconn *conn; /* NULL: not connected */
	struct hapax_store *store;
	struct hapax_processor *processor;
	struct hx_tx_session *next;
};

/* The context of a transaction. */
struct job {
	struct hx_tx_sessions *tx_sessions;
	struct hx_tx_session *tx_session;
	struct hx_in_flight *in_flight;
	struct hapax_work *outer; /* the consumer's work */
};

static void disconnect(struct hx_tx_session *tx_session)
{
	hapax_processor_free(tx_session->processor);
	hapax_store_close(tx_session->store);
	PQfinish(tx_session->conn);
	*tx_session = (struct hx_tx_session){.conn = NULL};
}

static void ignore_notice(void *context, const PGresult *result)
{
	(void)context;
	(void)result;
}

/*
 * The settings of a store session: commits are durable; one tenant is visible, or all. The ledger's
 * schema comes after the caller's, whose tables the function writes.
 */
static enum hapax_status greet(
	struct hx_tx_session *tx_session, const struct hx_postgres_place *place,
	struct hapax_error *err)
{
	const char *values[] = {place->tenant[0] == '\0' ? "*" : place->tenant, place->schema};
	PGresult *result = PQexecParams(
		tx_session->conn,
		"SELECT set_config('hapax.tenant', $1, false), set_config('search_path',"
		" concat_ws(', ', nullif(current_setting('search_path'), ''), quote_ident($2)), false),"
		" set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') = 'off'"
		" THEN 'on' ELSE current_setting('synchronous_commit') END, false)",
		2, NULL, values, NULL, NULL, 0);
	enum hapax_status status = HAPAX_OK;

	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		status = hx_postgres_result_error(result, "PostgreSQL rejected the request", err);
	PQclear(result);
	return status;
}

static enum hapax_status join(
	const struct hx_tx_sessions *tx_sessions, struct hx_tx_session *tx_session,
	struct hapax_error *err)
{
	enum hapax_status status =
		hapax_postgres_join(tx_session->conn, NULL, &tx_session->store, err);
	const char *schema = "";

	if (status == HAPAX_OK)
		status = hapax_processor_new(tx_session->store, NULL, &tx_session->processor, err);
	if (status != HAPAX_OK)
		return status;
	(void)hx_postgres_joined(tx_session->store, &schema);
	if (strcmp(schema, tx_sessions->place->schema) != 0)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the search_path of the role finds the hapax tables of schema '%s' "
			"before those of '%s'; change search_path",
			schema, tx_sessions->place->schema);
	return tx_sessions->group == NULL
		? HAPAX_OK
		: hx_postgres_offset_prepare(tx_session->conn, schema, err);
}

/* Connect and join. On failure, neither. */
static enum hapax_status make_ready(
	const struct hx_tx_sessions *tx_sessions, struct hx_tx_session *tx_session,
	struct hapax_error *err)
{
	const char *const names[] = {
		"connect_timeout", "dbname", "fallback_application_name", "client_encoding", NULL};
	const char *const values[] = {"10", tx_sessions->place->url, "hapax", "UTF8", NULL};
	enum hapax_status status;

	if (tx_session->conn != NULL && PQstatus(tx_session->conn) == CONNECTION_OK)
		return HAPAX_OK;
	disconnect(tx_session);
	tx_session->conn = PQconnectdbParams(names, values, 1);
	if (PQstatus(tx_session->conn) != CONNECTION_OK) {
		status = hx_postgres_connect_error(tx_session->conn, err);
	} else {
		(void)PQsetNoticeReceiver(tx_session->conn, ignore_notice, NULL);
		status = greet(tx_session, tx_sessions->place, err);
	}
	if (status == HAPAX_OK)
		status = join(tx_sessions, tx_session, err);
	if (status != HAPAX_OK)
		disconnect(tx_session);
	return status;
}

/* Take a connected session. */
static enum hapax_status tx_session_take(
	struct hx_tx_sessions *tx_sessions, struct hx_tx_session **ret_session,
	struct hapax_error *err)
{
	struct hx_tx_session *tx_session;
	enum hapax_status status;

	hx_lock_acquire(&tx_sessions->lock);
	tx_session = tx_sessions->spare;
	if (tx_session != NULL)
		tx_sessions->spare = tx_session->next;
	hx_lock_release(&tx_sessions->lock);
	if (tx_session == NULL)
		tx_session = hx_alloc_zero(1, sizeof(*tx_session));
	if (tx_session == NULL) {
		(void)hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to join a database");
		return HAPAX_ERR_NO_MEMORY;
	}
	status = make_ready(tx_sessions, tx_session, err);
	if (status != HAPAX_OK) {
		hx_free(tx_session);
		return status;
	}
	*ret_session = tx_session;
	return HAPAX_OK;
}

static void put_back(struct hx_tx_sessions *tx_sessions, struct hx_tx_session *tx_session)
{
	hx_lock_acquire(&tx_sessions->lock);
	tx_session->next = tx_sessions->spare;
	tx_sessions->spare = tx_session;
	hx_lock_release(&tx_sessions->lock);
}

enum hapax_status hx_tx_sessions_open(
	struct hx_tx_sessions *tx_sessions, const struct hapax_store *store, const char *group,
	struct hapax_error *err)
{
	struct hx_tx_session *tx_session;
	enum hapax_status status;

	tx_sessions->place = hx_postgres_place_of(store);
	tx_sessions->group = group;
	hx_lock_init(&tx_sessions->lock);
	if (tx_sessions->place == NULL)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"transactions need a postgres:// store, not '%s'", hapax_store_url(store));
	status = tx_session_take(tx_sessions, &tx_session, err);
	if (status == HAPAX_OK)
		put_back(tx_sessions, tx_session);
	return status;
}

void hx_tx_sessions_close(struct hx_tx_sessions *tx_sessions)
{
	while (tx_sessions->spare != NULL) {
		struct hx_tx_session *tx_session = tx_sessions->spare;

		tx_sessions->spare = tx_session->next;
		disconnect(tx_session);
		hx_free(tx_session);
	}
	tx_sessions->place = NULL;
}

static enum hapax_status set_offset(const struct job *job, struct hapax_error *err)
{
	const struct hx_in_flight *in_flight = job->in_flight;
	struct hapax_bytes name = in_flight->message->topic;
	char topic[TOPIC_SIZE];
	const struct hx_postgres_offset offset = {
		job->tx_sessions->group, topic, in_flight->message->partition};

	if (job->tx_sessions->group == NULL || in_flight->position < 0 ||
	    name.size >= sizeof(topic))
		return HAPAX_OK;
	memcpy(topic, name.data, name.size);
	topic[name.size] = '\0';
	return hx_postgres_offset_set(job->tx_session->conn, &offset, in_flight->position, err);
}

/* Runs in the transaction, with the claim. */
static enum hapax_run_outcome handle(struct hapax_work *work, void *context)
{
	const struct job *job = context;
	struct hx_in_flight *in_flight = job->in_flight;
	struct hapax_error err = {0};
	char why[HAPAX_ERROR_MESSAGE_SIZE];
	enum hapax_run_outcome outcome;

	work->event = &in_flight->envelope.event;
	outcome = in_flight->route->inner(work, in_flight->route->inner_context);
	if (outcome == HAPAX_RUN_OK || outcome == HAPAX_RUN_DEFINITIVE)
		hx_in_flight_keep_place(in_flight, &work->result);
	/* A permanently refused message is not done before its dead letter is published. */
	if (outcome == HAPAX_RUN_OK && set_offset(job, &err) != HAPAX_OK)
		outcome = hapax_work_fail(work, HAPAX_RUN_TRANSIENT, err.message);
	(void)snprintf(
		why, sizeof(why), "%.*s",
		(int)(work->error.size < sizeof(why) ? work->error.size : sizeof(why) - 1),
		work->error.size == 0 ? "" : (const char *)work->error.data);
	return hapax_work_fail(job->outer, outcome, why);
}

static enum hapax_status process(
	struct job *job, struct hapax_answer *answer, struct hapax_error *err)
{
	struct hx_in_flight *in_flight = job->in_flight;
	unsigned char cause[HAPAX_CAUSE_SIZE_MAX];
	struct hapax_request request;
	enum hapax_status status;

	hx_in_flight_request(
		in_flight,
		in_flight->key.kind == HAPAX_KEY_NONE ? &in_flight->route->unprotected
						      : &in_flight->route->inner_run,
		cause, &request);
	status = hapax_tx_process(
		job->tx_session->processor, &request, handle, job, answer, &in_flight->call.body,
		err);
	/* A lagging mark is harmless: the next one catches up. */
	if (status == HAPAX_OK && answer->outcome == HAPAX_OUTCOME_REPLAY &&
	    answer->result.result_class != HAPAX_RESULT_DEFINITIVE &&
	    in_flight->consumer->options.on_duplicate == HAPAX_ON_DUPLICATE_DROP)
		(void)set_offset(job, NULL);
	return status;
}

/* An error that is not the function's is the store's, and counts as no attempt. */
static void judge(
	struct hx_tx_session *tx_session, struct hapax_work *work, struct hapax_answer *answer,
	enum hapax_status status, const char *why)
{
	if (status == HAPAX_OK || status == HAPAX_ERR_HANDLER) {
		answer->status = HAPAX_OK;
	} else {
		answer->status = status;
		(void)hapax_work_fail(work, HAPAX_RUN_TRANSIENT, why);
	}
	/* The transaction was ended outside of the session: join again. */
	if (status == HAPAX_ERR_FAILED) {
		answer->status = HAPAX_ERR_UNAVAILABLE;
		disconnect(tx_session);
	}
	if (answer->outcome == HAPAX_OUTCOME_ACQUIRED)
		answer->error = work->error;
}

enum hapax_run_outcome hx_tx_session_run_work(struct hapax_work *work, void *context)
{
	struct hx_tx_sessions *tx_sessions = context;
	struct hx_in_flight *in_flight = hx_workers_in_flight(work);
	struct hapax_error err = {0};
	struct job job = {tx_sessions, NULL, in_flight, work};

	in_flight->answer = (struct hapax_answer)HAPAX_ANSWER_INIT;
	in_flight->has_answer = true;
	/* The answer's body is in call.body, which the consumer would take for a result. */
	work->result.body = HX_BYTES_LIT("");
	if (tx_session_take(tx_sessions, &job.tx_session, &err) != HAPAX_OK) {
		in_flight->answer.status = err.status;
		return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, err.message);
	}
	judge(job.tx_session, work, &in_flight->answer, process(&job, &in_flight->answer, &err),
	      err.message);
	put_back(tx_sessions, job.tx_session);
	return HAPAX_RUN_OK;
}

enum hapax_status hx_tx_sessions_offset(
	struct hx_tx_sessions *tx_sessions, const char *topic, int32_t partition, int64_t *ret_next,
	struct hapax_error *err)
{
	const struct hx_postgres_offset offset = {tx_sessions->group, topic, partition};
	struct hx_tx_session *tx_session;
	enum hapax_status status = tx_session_take(tx_sessions, &tx_session, err);

	if (status != HAPAX_OK)
		return status;
	status = hx_postgres_offset_get(tx_session->conn, &offset, ret_next, err);
	put_back(tx_sessions, tx_session);
	return status;
}

struct pg_conn *hapax_postgres_of_work(const struct hapax_work *work)
{
	const struct hx_tx *tx = work->private_call->tx;
	const char *schema;

	return tx == NULL || tx->store == NULL ? NULL : hx_postgres_joined(tx->store, &schema);
}
