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

/* A connection with the ledger. Whoever took it has it alone. */
struct hx_joint {
	PGconn *conn; /* NULL: not connected */
	struct hapax_store *store;
	struct hapax_processor *processor;
	struct hx_joint *next;
};

/* What a transaction is about. */
struct errand {
	struct hx_joints *joints;
	struct hx_joint *joint;
	struct hx_intake *intake;
	struct hapax_work *outer; /* as the consumer has it */
};

static void disconnect(struct hx_joint *joint)
{
	hapax_processor_free(joint->processor);
	hapax_store_close(joint->store);
	PQfinish(joint->conn);
	*joint = (struct hx_joint){.conn = NULL};
}

static void ignore_notice(void *context, const PGresult *result)
{
	(void)context;
	(void)result;
}

/*
 * As a session of the store has it: commits are durable, one tenant is seen or all. The ledger's
 * schema comes behind those of the caller's, whose tables the function writes.
 */
static enum hapax_status greet(
	struct hx_joint *joint, const struct hx_postgres_place *place, struct hapax_error *err)
{
	const char *values[] = {place->tenant[0] == '\0' ? "*" : place->tenant, place->schema};
	PGresult *result = PQexecParams(
		joint->conn,
		"SELECT set_config('hapax.tenant', $1, false), set_config('search_path',"
		" concat_ws(', ', nullif(current_setting('search_path'), ''), quote_ident($2)), false),"
		" set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') = 'off'"
		" THEN 'on' ELSE current_setting('synchronous_commit') END, false)",
		2, NULL, values, NULL, NULL, 0);
	enum hapax_status status = HAPAX_OK;

	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		status = hx_postgres_result_error(result, "PostgreSQL refused", err);
	PQclear(result);
	return status;
}

static enum hapax_status join(
	const struct hx_joints *joints, struct hx_joint *joint, struct hapax_error *err)
{
	enum hapax_status status = hapax_postgres_join(joint->conn, NULL, &joint->store, err);
	const char *schema = "";

	if (status == HAPAX_OK)
		status = hapax_processor_new(joint->store, NULL, &joint->processor, err);
	if (status != HAPAX_OK)
		return status;
	(void)hx_postgres_joined(joint->store, &schema);
	if (strcmp(schema, joints->place->schema) != 0)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the search_path of the role finds the ledger of schema '%s' before that of '%s'",
			schema, joints->place->schema);
	return joints->group == NULL ? HAPAX_OK
				     : hx_postgres_offset_prepare(joint->conn, schema, err);
}

/* Connected, and joined. If it cannot be, it is neither. */
static enum hapax_status make_ready(
	const struct hx_joints *joints, struct hx_joint *joint, struct hapax_error *err)
{
	const char *const names[] = {
		"connect_timeout", "dbname", "fallback_application_name", "client_encoding", NULL};
	const char *const values[] = {"10", joints->place->url, "hapax", "UTF8", NULL};
	enum hapax_status status;

	if (joint->conn != NULL && PQstatus(joint->conn) == CONNECTION_OK)
		return HAPAX_OK;
	disconnect(joint);
	joint->conn = PQconnectdbParams(names, values, 1);
	if (PQstatus(joint->conn) != CONNECTION_OK) {
		status = hx_postgres_connect_error(joint->conn, err);
	} else {
		(void)PQsetNoticeReceiver(joint->conn, ignore_notice, NULL);
		status = greet(joint, joints->place, err);
	}
	if (status == HAPAX_OK)
		status = join(joints, joint, err);
	if (status != HAPAX_OK)
		disconnect(joint);
	return status;
}

/* One that is connected. NULL: there is none, and err says why. */
static struct hx_joint *take(struct hx_joints *joints, struct hapax_error *err)
{
	struct hx_joint *joint;

	hx_lock_acquire(&joints->lock);
	joint = joints->spare;
	if (joint != NULL)
		joints->spare = joint->next;
	hx_lock_release(&joints->lock);
	if (joint == NULL)
		joint = hx_alloc_zero(1, sizeof(*joint));
	if (joint == NULL) {
		(void)hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "no memory to join a database");
		return NULL;
	}
	if (make_ready(joints, joint, err) == HAPAX_OK)
		return joint;
	hx_free(joint);
	return NULL;
}

static void put_back(struct hx_joints *joints, struct hx_joint *joint)
{
	hx_lock_acquire(&joints->lock);
	joint->next = joints->spare;
	joints->spare = joint;
	hx_lock_release(&joints->lock);
}

enum hapax_status hx_joints_open(
	struct hx_joints *joints, const struct hapax_store *store, const char *group,
	struct hapax_error *err)
{
	struct hapax_error why = {0};
	struct hx_joint *joint;

	joints->place = hx_postgres_place_of(store);
	joints->group = group;
	hx_lock_init(&joints->lock);
	if (joints->place == NULL)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"functions run in transactions where the store is postgres://, not '%s'",
			hapax_store_url(store));
	joint = take(joints, &why);
	if (joint == NULL)
		return hx_error_set(err, why.status, 0, "%s", why.message);
	put_back(joints, joint);
	return HAPAX_OK;
}

void hx_joints_close(struct hx_joints *joints)
{
	while (joints->spare != NULL) {
		struct hx_joint *joint = joints->spare;

		joints->spare = joint->next;
		disconnect(joint);
		hx_free(joint);
	}
	joints->place = NULL;
}

static enum hapax_status set_offset(const struct errand *errand, struct hapax_error *err)
{
	const struct hx_intake *intake = errand->intake;
	struct hapax_bytes name = intake->message->topic;
	char topic[TOPIC_SIZE];
	const struct hx_postgres_offset offset = {
		errand->joints->group, topic, intake->message->partition};

	if (errand->joints->group == NULL || intake->position < 0 || name.size >= sizeof(topic))
		return HAPAX_OK;
	memcpy(topic, name.data, name.size);
	topic[name.size] = '\0';
	return hx_postgres_offset_set(errand->joint->conn, &offset, intake->position, err);
}

/* In the transaction, with the claim. */
static enum hapax_run_outcome handle(struct hapax_work *work, void *context)
{
	const struct errand *errand = context;
	struct hx_intake *intake = errand->intake;
	struct hapax_error err = {0};
	char why[HAPAX_ERROR_MESSAGE_SIZE];
	enum hapax_run_outcome outcome;

	work->event = &intake->envelope.event;
	outcome = intake->route->inner(work, intake->route->inner_context);
	if (outcome == HAPAX_RUN_OK || outcome == HAPAX_RUN_DEFINITIVE)
		hx_intake_keep_place(intake, &work->result);
	/* What was refused for good is not done before its letter is out. */
	if (outcome == HAPAX_RUN_OK && set_offset(errand, &err) != HAPAX_OK)
		outcome = hapax_work_fail(work, HAPAX_RUN_TRANSIENT, err.message);
	(void)snprintf(
		why, sizeof(why), "%.*s",
		(int)(work->error.size < sizeof(why) ? work->error.size : sizeof(why) - 1),
		work->error.size == 0 ? "" : (const char *)work->error.data);
	return hapax_work_fail(errand->outer, outcome, why);
}

static enum hapax_status process(
	struct errand *errand, struct hapax_answer *answer, struct hapax_error *err)
{
	struct hx_intake *intake = errand->intake;
	struct hapax_request request;
	enum hapax_status status;

	hx_intake_request(
		intake,
		intake->key.kind == HAPAX_KEY_NONE ? &intake->route->unprotected
						   : &intake->route->inner_run,
		&request);
	status = hapax_tx_process(
		errand->joint->processor, &request, handle, errand, answer, &intake->call.body,
		err);
	/* A mark that lags does no harm: the next one makes up for it. */
	if (status == HAPAX_OK && answer->outcome == HAPAX_OUTCOME_REPLAY &&
	    answer->result.result_class != HAPAX_RESULT_DEFINITIVE &&
	    intake->consumer->options.on_duplicate == HAPAX_ON_DUPLICATE_DROP)
		(void)set_offset(errand, NULL);
	return status;
}

/* What is not the function's doing is the store's, and counts for nothing. */
static void judge(
	struct hx_joint *joint, struct hapax_work *work, struct hapax_answer *answer,
	enum hapax_status status, const char *why)
{
	if (status == HAPAX_OK || status == HAPAX_ERR_HANDLER) {
		answer->status = HAPAX_OK;
	} else {
		answer->status = status;
		(void)hapax_work_fail(work, HAPAX_RUN_TRANSIENT, why);
	}
	/* Somebody else ended its transaction: it is joined anew. */
	if (status == HAPAX_ERR_FAILED) {
		answer->status = HAPAX_ERR_UNAVAILABLE;
		disconnect(joint);
	}
	if (answer->outcome == HAPAX_OUTCOME_ACQUIRED)
		answer->error = work->error;
}

enum hapax_run_outcome hx_joint_run_work(struct hapax_work *work, void *context)
{
	struct hx_joints *joints = context;
	struct hx_intake *intake = hx_intake_of_work(work);
	struct hapax_error err = {0};
	struct hx_joint *joint = take(joints, &err);
	struct errand errand = {joints, joint, intake, work};

	intake->answer = (struct hapax_answer)HAPAX_ANSWER_INIT;
	intake->has_answer = true;
	/* The body of the answer lies where the consumer would look for one. */
	work->result.body = HX_BYTES_LIT("");
	if (joint == NULL) {
		intake->answer.status = err.status;
		return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, err.message);
	}
	judge(joint, work, &intake->answer, process(&errand, &intake->answer, &err), err.message);
	put_back(joints, joint);
	return HAPAX_RUN_OK;
}

enum hapax_status hx_joints_offset(
	struct hx_joints *joints, const char *topic, int32_t partition, int64_t *ret_next,
	struct hapax_error *err)
{
	const struct hx_postgres_offset offset = {joints->group, topic, partition};
	struct hapax_error why = {0};
	struct hx_joint *joint = take(joints, &why);
	enum hapax_status status;

	if (joint == NULL)
		return hx_error_set(err, why.status, 0, "%s", why.message);
	status = hx_postgres_offset_get(joint->conn, &offset, ret_next, err);
	put_back(joints, joint);
	return status;
}

struct pg_conn *hapax_postgres_of_work(const struct hapax_work *work)
{
	const struct hx_tx *tx = work->private_call->tx;
	const char *schema;

	return tx == NULL || tx->store == NULL ? NULL : hx_postgres_joined(tx->store, &schema);
}
