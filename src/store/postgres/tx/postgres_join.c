/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_join.c - the ledger inside the caller's own transaction.
 *
 * It calls the same functions as the URL store, on the caller's connection and thread.
 * hapax_join() in operate.sql is the savepoint: it returns an error as a row, so that a hapax
 * failure does not abort the caller's transaction.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <libpq-fe.h>

#include <hapax/ext/store_ops.h>
#include <hapax/postgres.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "store/core.h"
#include "store/postgres/tx/postgres_savepoint.h"
#include "store/postgres/postgres_fault.h"
#include "store/postgres/postgres_operation.h"
#include "store/postgres/postgres_store.h"
#include "store/postgres/postgres_walk.h"
#include "store/room.h"

static const struct hapax_store_ops join_ops;

enum {
	BATCH_OPS = 256,
	ARGUMENTS = 1 + HX_POSTGRES_ARGUMENTS,
	REPEATS_MAX = 8, /* for more room */

	ANSWER_PLACE = 0,
	ANSWER_CODE = 21,
	ANSWER_DETAIL = 22,
};

#define JOIN_STATEMENT   "hapax_join"
#define CLAIM_STATEMENT  "hapax_tx_claim"
#define FINISH_STATEMENT "hapax_tx_finish"

/* The short path for a new key; the full rules for other keys, in the same round trip. */
#define CLAIM_ARGUMENTS "($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
#define CLAIM_SQL                                                                         \
	"SELECT t.taken, CASE WHEN t.taken IS NULL THEN @@hapax_tx_claim" CLAIM_ARGUMENTS \
	" END FROM (SELECT @@hapax_tx_take" CLAIM_ARGUMENTS " AS taken OFFSET 0) t"
#define FINISH_SQL "SELECT @@hapax_tx_finish($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"

struct joined_store {
	struct hapax_store base;
	struct hapax_store_options options; /* complete */
	PGconn *conn;
	struct hx_postgres_place place; /* only the schema is known */
	struct hx_postgres_session session;
	struct hx_postgres_arguments arguments;
	struct hapax_op *ops[HX_POSTGRES_OPS_MAX];
	size_t count;
	struct hx_postgres_savepoints savepoints;
	uint64_t swept;
};

static struct joined_store *downcast(struct hapax_store *store)
{
	assert(store->ops == &join_ops);
	return (struct joined_store *)store;
}

/* ---------------------------------------------------------------- operations */

static void fail_all(struct hapax_op *const *ops, size_t count, enum hapax_status status)
{
	for (size_t i = 0; i < count; i++)
		hx_store_fail_undecided(ops[i], status);
}

static struct hx_postgres_rules rules_of(const struct joined_store *store)
{
	return (struct hx_postgres_rules){
		.now_ms = hx_postgres_session_now_ms(&store->session),
		.parked_max = store->options.parked_max,
		.result_size_max = store->options.result_size_max,
		.is_joined = true,
	};
}

/* How operations are sent. */
enum manner {
	MANNER_JOIN,  /* in a savepoint of their own */
	MANNER_CLAIM, /* one claim, the first of a savepoint: sent with the handler's savepoint */
	MANNER_END,   /* one completion, the last of a savepoint: sent with the savepoint's end */
};

static enum manner manner_of(
	const struct joined_store *store, struct hapax_op *const *ops, size_t count,
	enum hx_postgres_group kind)
{
	const struct hx_postgres_savepoints *savepoints = &store->savepoints;

	if (savepoints->depth == 0 || count != 1 || kind != HX_POSTGRES_APART)
		return MANNER_JOIN;
	if (savepoints->is_fresh && ops[0]->type == HAPAX_OP_CLAIM)
		return MANNER_CLAIM;
	if (savepoints->is_last && ops[0]->type == HAPAX_OP_COMPLETE && ops[0]->record == NULL)
		return MANNER_END;
	return MANNER_JOIN;
}

static bool send_join(
	struct joined_store *store, struct hx_postgres_trip *trip, struct hapax_op *const *ops,
	size_t count, enum hx_postgres_group kind, enum hapax_status *ret_status)
{
	struct hx_postgres_arguments *arguments = &store->arguments;
	const struct hx_postgres_rules rules = rules_of(store);
	unsigned char wait[8];
	const char *values[ARGUMENTS];
	int lengths[ARGUMENTS];
	int formats[ARGUMENTS];

	*ret_status = hx_postgres_arguments_encode(arguments, ops, count, kind, &rules);
	if (*ret_status != HAPAX_OK)
		return false;
	hx_postgres_put_i64(wait, store->options.timeout_ms);
	values[0] = (const char *)wait;
	lengths[0] = sizeof(wait);
	formats[0] = 1;
	memcpy(values + 1, arguments->values, sizeof(arguments->values));
	memcpy(lengths + 1, arguments->lengths, sizeof(arguments->lengths));
	memcpy(formats + 1, arguments->formats, sizeof(arguments->formats));
	return hx_postgres_trip_send_prepared(
		trip, JOIN_STATEMENT, ARGUMENTS, values, lengths, formats);
}

/* Send pending savepoints, the operations, and their companion; *ret_status: the failure. */
static bool send_all(
	struct joined_store *store, struct hx_postgres_trip *trip, struct hapax_op *const *ops,
	size_t count, enum hx_postgres_group kind, enum manner manner,
	enum hapax_status *ret_status)
{
	struct hx_postgres_savepoints *savepoints = &store->savepoints;
	const struct hx_postgres_rules rules = rules_of(store);
	struct hx_postgres_scalars scalars;

	*ret_status = HAPAX_ERR_NO_MEMORY;
	if (!hx_postgres_savepoints_send_pending(savepoints, trip))
		return false;
	if (manner == MANNER_JOIN)
		return send_join(store, trip, ops, count, kind, ret_status);
	if (manner == MANNER_CLAIM)
		hx_postgres_scalars_claim(&scalars, ops[0], &rules, store->options.timeout_ms);
	else
		hx_postgres_scalars_complete(&scalars, ops[0], &rules);
	if (!hx_postgres_trip_send_prepared(
		    trip, manner == MANNER_CLAIM ? CLAIM_STATEMENT : FINISH_STATEMENT,
		    scalars.count, scalars.values, scalars.lengths, scalars.formats))
		return false;
	/* A companion that was not sent is sent later. */
	if (manner == MANNER_CLAIM)
		(void)hx_postgres_savepoints_send_ahead(savepoints, trip);
	else
		(void)hx_postgres_savepoints_send_end(savepoints, trip);
	return true;
}

/* Read an error returned as a row: its code and detail. False: these are answers. */
static bool read_fault(
	const PGresult *result, enum hx_postgres_fault *ret_fault, char *detail, size_t detail_size)
{
	struct hapax_bytes code, text;
	char sqlstate[6] = "";
	int64_t place = 0;

	if (PQntuples(result) != 1 || !hx_postgres_get_number(result, 0, ANSWER_PLACE, &place) ||
	    place != -1)
		return false;
	code = hx_postgres_get_bytes(result, 0, ANSWER_CODE);
	text = hx_postgres_get_bytes(result, 0, ANSWER_DETAIL);
	(void)snprintf(
		sqlstate, sizeof(sqlstate), "%.*s", (int)code.size,
		code.size == 0 ? "" : (const char *)code.data);
	(void)snprintf(
		detail, detail_size, "%.*s", (int)text.size,
		text.size == 0 ? "" : (const char *)text.data);
	*ret_fault = hx_postgres_fault_of_code(sqlstate);
	return true;
}

enum verdict { VERDICT_DONE, VERDICT_AGAIN, VERDICT_SPLIT };

static enum verdict judge_fault(
	enum hx_postgres_fault fault, const char *detail, struct hapax_op *const *ops, size_t count,
	enum hx_postgres_group kind)
{
	if (fault == HX_POSTGRES_FAULT_ROOM && hx_postgres_op_make_room(ops, count, detail))
		return VERDICT_AGAIN;
	if (count > 1 && kind == HX_POSTGRES_APART)
		return VERDICT_SPLIT;
	/* Another transaction holds the key: it is in progress. */
	if (fault == HX_POSTGRES_FAULT_LOCKED && kind == HX_POSTGRES_APART &&
	    hx_postgres_op_answer_locked(ops[0]))
		return VERDICT_DONE;
	fail_all(
		ops, count,
		fault == HX_POSTGRES_FAULT_LOST ? HAPAX_ERR_UNAVAILABLE
						: hx_postgres_fault_status(fault));
	return VERDICT_DONE;
}

static bool decode(
	const PGresult *result, struct hapax_op *const *ops, size_t count, enum manner manner)
{
	switch (manner) {
	case MANNER_CLAIM: return hx_postgres_taken_decode(result, ops[0]);
	case MANNER_END: return hx_postgres_finished_decode(result, ops[0]);
	case MANNER_JOIN: break;
	}
	return hx_postgres_answers_decode(result, ops, count);
}

/* The connection was lost during the trip. */
static void judge_lost(
	struct joined_store *store, const struct hx_postgres_trip *trip, int place,
	struct hapax_op *const *ops, size_t count, enum manner manner, bool was_nested)
{
	enum hapax_status status = was_nested ? HAPAX_ERR_UNAVAILABLE : HAPAX_ERR_UNCERTAIN;

	/* An uncommitted transaction is gone; but here the COMMIT was sent. */
	if (manner == MANNER_END && trip->count > place + 1)
		status = hx_postgres_savepoints_take_end(
			&store->savepoints, trip->results[place + 1]);
	if (status != HAPAX_OK || !hx_postgres_trip_is_good(trip, place) ||
	    !decode(trip->results[place], ops, count, manner))
		fail_all(ops, count, status == HAPAX_OK ? HAPAX_ERR_UNCERTAIN : status);
}

/* The statement itself failed. */
static enum verdict judge_error(
	struct joined_store *store, const PGresult *result, struct hapax_op *const *ops,
	size_t count, enum hx_postgres_group kind, enum manner manner)
{
	enum hx_postgres_fault fault = hx_postgres_fault(result);
	const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);

	if (manner == MANNER_CLAIM) {
		if (hx_postgres_savepoints_mend(&store->savepoints))
			return judge_fault(fault, detail == NULL ? "" : detail, ops, count, kind);
		fault = HX_POSTGRES_FAULT_OTHER;
	}
	if (fault == HX_POSTGRES_FAULT_ENDED)
		hx_postgres_savepoints_lose(&store->savepoints);
	fail_all(ops, count, hx_postgres_fault_status(fault));
	return VERDICT_DONE;
}

static enum verdict judge(
	struct joined_store *store, const struct hx_postgres_trip *trip, int place,
	struct hapax_op *const *ops, size_t count, enum hx_postgres_group kind, enum manner manner)
{
	struct hx_postgres_savepoints *savepoints = &store->savepoints;
	const PGresult *result = trip->results[place];
	bool goes_along = trip->count > place + 1;
	enum hx_postgres_fault fault;
	enum hapax_status status = hx_postgres_savepoints_take_pending(savepoints, trip);
	char detail[64];

	if (status != HAPAX_OK) {
		fail_all(ops, count, status);
		return VERDICT_DONE;
	}
	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		return judge_error(store, result, ops, count, kind, manner);
	if (manner == MANNER_JOIN && read_fault(result, &fault, detail, sizeof(detail)))
		return judge_fault(fault, detail, ops, count, kind);
	if (!decode(result, ops, count, manner))
		fail_all(ops, count, HAPAX_ERR_UNCERTAIN);
	savepoints->is_fresh = false;
	if (manner == MANNER_CLAIM)
		savepoints->is_ahead = goes_along && hx_postgres_trip_is_good(trip, place + 1);
	if (manner == MANNER_END && goes_along)
		(void)hx_postgres_savepoints_take_end(savepoints, trip->results[place + 1]);
	return VERDICT_DONE;
}

static enum verdict operate_once(
	struct joined_store *store, struct hapax_op *const *ops, size_t count,
	enum hx_postgres_group kind)
{
	bool was_nested = hx_postgres_savepoints_are_open(&store->savepoints);
	enum manner manner = manner_of(store, ops, count, kind);
	enum verdict verdict = VERDICT_DONE;
	struct hx_postgres_trip trip;
	enum hapax_status status = HAPAX_ERR_UNAVAILABLE;
	bool is_sent = false;
	int place;

	if (manner == MANNER_JOIN)
		hx_postgres_savepoints_release_handlers(&store->savepoints);
	place = (int)store->savepoints.pending_count;
	if (hx_postgres_trip_begin(&trip, store->conn)) {
		is_sent = send_all(store, &trip, ops, count, kind, manner, &status);
		hx_postgres_trip_end(&trip);
	}
	if (PQstatus(store->conn) == CONNECTION_BAD) {
		judge_lost(store, &trip, place, ops, count, manner, was_nested);
	} else if (is_sent) {
		verdict = judge(store, &trip, place, ops, count, kind, manner);
	} else {
		(void)hx_postgres_savepoints_take_pending(&store->savepoints, &trip);
		fail_all(ops, count, status);
	}
	hx_postgres_trip_clear(&trip);
	return verdict;
}

static void operate(
	struct joined_store *store, struct hapax_op *const *ops, size_t count,
	enum hx_postgres_group kind)
{
	enum verdict verdict = VERDICT_AGAIN;

	for (unsigned i = 0; i < REPEATS_MAX * count && verdict == VERDICT_AGAIN; i++)
		verdict = operate_once(store, ops, count, kind);
	if (verdict == VERDICT_AGAIN)
		fail_all(ops, count, HAPAX_ERR_UNAVAILABLE);
	for (size_t i = 0; i < count && verdict == VERDICT_SPLIT; i++)
		operate(store, ops + i, 1, kind);
}

/* Run one group, or the operations between two; returns where it ends. */
static size_t run_segment(
	struct joined_store *store, struct hapax_op *ops, size_t count, size_t first)
{
	enum hx_postgres_group kind;
	enum hapax_status refused = HAPAX_OK;
	size_t end = hx_postgres_segment_end(ops, count, first, BATCH_OPS, &kind);

	store->count = 0;
	for (size_t i = first; i < end; i++) {
		enum hapax_status status;

		ops[i].private_state = 0;
		if (ops[i].status != HAPAX_OK)
			continue;
		status = hx_room_reserve(&ops[i]);
		if (status == HAPAX_OK)
			store->ops[store->count++] = &ops[i];
		else
			refused = status;
	}
	if (refused != HAPAX_OK && kind == HX_POSTGRES_ALL_OR_NOTHING) {
		fail_all(store->ops, store->count, refused);
		store->count = 0;
	}
	hx_postgres_ops_sort(store->ops, store->count);
	if (store->count > 0)
		operate(store, store->ops, store->count, kind);
	return end;
}

static bool is_usable(const struct joined_store *store)
{
	PGTransactionStatusType status = PQtransactionStatus(store->conn);

	return (status == PQTRANS_IDLE || status == PQTRANS_INTRANS) &&
		PQpipelineStatus(store->conn) == PQ_PIPELINE_OFF;
}

static void join_submit(
	struct hapax_store *base, struct hapax_op *ops, size_t count,
	struct hapax_completion completion)
{
	struct joined_store *store = downcast(base);

	/* After a rollback, another claim may have the token. */
	if (store->savepoints.is_lost)
		hx_store_fail(ops, count, HAPAX_ERR_FAILED);
	/* A failed transaction accepts no more statements. */
	else if (!is_usable(store))
		hx_store_fail(ops, count, HAPAX_ERR_UNAVAILABLE);
	else
		for (size_t first = 0; first < count;)
			first = run_segment(store, ops, count, first);
	hapax_store_complete(base, ops, count, completion);
}

/* ---------------------------------------------------------------- the ledger as a whole */

static enum hapax_status run_call(
	void *context, struct hx_postgres_call *call, struct hapax_error *err)
{
	static const int formats[HX_POSTGRES_CALL_ARGUMENTS_MAX] = {1, 1, 1, 1, 1, 1, 1, 1};
	struct joined_store *store = context;
	enum hapax_status status;

	if (!is_usable(store))
		return hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0, "%s", hx_postgres_busy_text(store->conn));
	call->result = PQexecParams(
		store->conn, call->sql, call->argument_count, call->types, call->values,
		call->lengths, formats, 1);
	if (PQresultStatus(call->result) == PGRES_TUPLES_OK)
		return HAPAX_OK;
	status = hx_postgres_result_error(call->result, "PostgreSQL rejected the request", err);
	PQclear(call->result);
	call->result = NULL;
	return status;
}

static struct hx_postgres_walk walk_of(struct joined_store *store)
{
	return (struct hx_postgres_walk){
		.run = run_call,
		.context = store,
		.session = &store->session,
		.options = &store->options,
		.schema = store->place.schema,
	};
}

static enum hapax_status join_scan(
	struct hapax_store *base, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	hapax_scan_fn *each, void *context, struct hapax_error *err)
{
	struct hx_postgres_walk walk = walk_of(downcast(base));

	return hx_postgres_scan(&walk, scan, cursor, each, context, err);
}

static enum hapax_status join_stats(
	struct hapax_store *base, struct hapax_stats *stats, hapax_counters_fn *each, void *context,
	struct hapax_error *err)
{
	struct joined_store *store = downcast(base);
	struct hx_postgres_walk walk = walk_of(store);
	enum hapax_status status = hx_postgres_stats(&walk, stats, NULL, NULL, err);

	/* store.c adds the counters of this process; those in the database belong to others. */
	(void)each;
	(void)context;
	memset(stats->counts, 0, sizeof(stats->counts));
	stats->swept = store->swept;
	return status;
}

static enum hapax_status join_sweep(
	struct hapax_store *base, struct hapax_sweep *sweep, struct hapax_error *err)
{
	struct joined_store *store = downcast(base);
	struct hx_postgres_walk walk = walk_of(store);
	enum hapax_status status = hx_postgres_sweep(&walk, sweep, err);

	store->swept += sweep->removed;
	return status;
}

static enum hapax_status join_savepoint(
	struct hapax_store *base, enum hapax_savepoint savepoint, struct hapax_error *err)
{
	return hx_postgres_savepoint(&downcast(base)->savepoints, savepoint, err);
}

/* With the connection's settings at the time of the join. */
static void join_guarantee(struct hapax_store *base, char *ret_text, size_t size)
{
	(void)snprintf(
		ret_text, size, "after your transaction has committed: %s",
		downcast(base)->session.guarantee);
}

/* ---------------------------------------------------------------- life */

static void store_free(struct joined_store *store)
{
	hx_postgres_arguments_done(&store->arguments);
	hx_postgres_session_done(&store->session);
	hx_free(store);
}

static void join_close(struct hapax_store *base)
{
	hapax_store_detach(base);
	store_free(downcast(base));
}

/* The schema of the ledger that the connection's search_path finds first. */
static enum hapax_status find_ledger(struct joined_store *store, struct hapax_error *err)
{
	PGresult *result = PQexec(
		store->conn,
		"SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
		" WHERE c.oid = to_regclass('hapax_meta')");
	enum hapax_status status = HAPAX_OK;

	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		status = hx_postgres_result_error(result, "could not find the store", err);
	else if (PQntuples(result) != 1)
		status = hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0,
			"the search_path of this connection has no hapax tables; run 'hapax "
			"store migrate URL', or set search_path");
	else
		(void)snprintf(
			store->place.schema, sizeof(store->place.schema), "%s",
			PQgetvalue(result, 0, 0));
	PQclear(result);
	return status;
}

/* Read its version and the test clock. */
static enum hapax_status read_ledger(struct joined_store *store, struct hapax_error *err)
{
	enum hapax_status status = hx_postgres_session_ledger_sql(&store->session);
	PGresult *result;

	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "not enough memory to join a database");
	result = PQexec(store->conn, (const char *)store->session.sql.data);
	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		status = hx_postgres_result_error(result, "could not read the store", err);
	else
		status = hx_postgres_session_take_ledger(&store->session, result, err);
	PQclear(result);
	return status;
}

static bool is_ours(const char *name)
{
	const struct hx_postgres_savepoint_statement *savepoint = hx_postgres_savepoint_statements;

	while (savepoint->name != NULL && strcmp(savepoint->name, name) != 0)
		savepoint++;
	return savepoint->name != NULL || strcmp(name, JOIN_STATEMENT) == 0 ||
		strcmp(name, CLAIM_STATEMENT) == 0 || strcmp(name, FINISH_STATEMENT) == 0;
}

/* Remove the statements that an earlier join left on this connection. */
static enum hapax_status remove_prepared(struct joined_store *store, struct hapax_error *err)
{
	PGresult *names = PQexec(
		store->conn, "SELECT name FROM pg_prepared_statements WHERE name LIKE 'hapax%'");
	enum hapax_status status = HAPAX_OK;

	if (PQresultStatus(names) != PGRES_TUPLES_OK)
		status = hx_postgres_result_error(names, "could not join the store", err);
	for (int i = 0; i < PQntuples(names) && status == HAPAX_OK; i++) {
		const char *name = PQgetvalue(names, i, 0);
		char text[64];

		(void)snprintf(text, sizeof(text), "DEALLOCATE %.40s", name);
		if (is_ours(name))
			PQclear(PQexec(store->conn, text));
	}
	PQclear(names);
	return status;
}

static enum hapax_status prepare(
	struct joined_store *store, const char *name, const char *sql, int count, const Oid *types,
	struct hapax_error *err)
{
	PGresult *result = PQprepare(store->conn, name, sql, types == NULL ? 0 : count, types);
	enum hapax_status status = HAPAX_OK;

	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		status = hx_postgres_result_error(result, "could not join the store", err);
	PQclear(result);
	return status;
}

/* Prepare text with the ledger's schema in place of "@@". */
static enum hapax_status prepare_text(
	struct joined_store *store, const char *name, const char *text, struct hapax_error *err)
{
	struct hapax_buf *sql = &store->session.sql;

	hx_buf_clear(sql);
	if (hx_postgres_sql_append(sql, store->place.schema, text) != HAPAX_OK)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to join a database");
	return prepare(store, name, (const char *)sql->data, 0, NULL, err);
}

static enum hapax_status prepare_join(struct joined_store *store, struct hapax_error *err)
{
	struct hapax_buf *sql = &store->session.sql;
	Oid types[ARGUMENTS] = {HX_POSTGRES_INT8};

	memcpy(types + 1, hx_postgres_argument_types, sizeof(hx_postgres_argument_types));
	hx_buf_clear(sql);
	if (hx_postgres_call_append(sql, store->place.schema, JOIN_STATEMENT, ARGUMENTS) !=
	    HAPAX_OK)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to join a database");
	return prepare(store, JOIN_STATEMENT, (const char *)sql->data, ARGUMENTS, types, err);
}

static enum hapax_status prepare_all(struct joined_store *store, struct hapax_error *err)
{
	const struct hx_postgres_savepoint_statement *savepoint = hx_postgres_savepoint_statements;
	enum hapax_status status = remove_prepared(store, err);

	if (status == HAPAX_OK)
		status = prepare_join(store, err);
	if (status == HAPAX_OK)
		status = prepare_text(store, CLAIM_STATEMENT, CLAIM_SQL, err);
	if (status == HAPAX_OK)
		status = prepare_text(store, FINISH_STATEMENT, FINISH_SQL, err);
	for (; savepoint->name != NULL && status == HAPAX_OK; savepoint++)
		status = prepare(store, savepoint->name, savepoint->sql, 0, NULL, err);
	return status;
}

/*
 * Not DURABLE: the caller's COMMIT decides. count is missing, because a close must not write into
 * a transaction that the caller has not ended.
 */
static const struct hapax_store_ops join_ops = {
	.version = HAPAX_STORE_OPS_VERSION,
	.name = "postgres",
	.capabilities = HAPAX_STORE_TRANSACTIONS | HAPAX_STORE_TOKEN_GLOBAL |
		HAPAX_STORE_MULTI_KEY | HAPAX_STORE_CLOCK,
	.submit = join_submit,
	.scan = join_scan,
	.stats = join_stats,
	.sweep = join_sweep,
	.close = join_close,
	.is_synchronous = 1,
	.savepoint = join_savepoint,
	.guarantee = join_guarantee,
};

PGconn *hx_postgres_joined(const struct hapax_store *store, const char **ret_schema)
{
	const struct joined_store *joined = (const struct joined_store *)store;

	if (store->ops != &join_ops)
		return NULL;
	*ret_schema = joined->place.schema;
	return joined->conn;
}

enum hapax_status hapax_postgres_join(
	struct pg_conn *conn, const struct hapax_store_options *options,
	struct hapax_store **ret_store, struct hapax_error *err)
{
	struct hapax_store_options complete;
	struct joined_store *store;
	enum hapax_status status;

	if (conn == NULL || ret_store == NULL || PQstatus(conn) != CONNECTION_OK)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "an open connection is required");
	status = hx_store_options_complete(options, &complete, err);
	if (status == HAPAX_OK)
		status = hx_postgres_refuse_options(&complete, err);
	if (status != HAPAX_OK)
		return status;
	complete.flags |= HAPAX_STORE_NO_HOUSEKEEPING;
	store = hx_alloc_zero(1, sizeof(*store));
	if (store == NULL)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to join a database");
	store->options = complete;
	store->conn = conn;
	store->savepoints.conn = conn;
	hx_postgres_arguments_init(&store->arguments);
	hx_postgres_session_init(
		&store->session, &store->place, complete.timeout_ms, complete.clock);
	status = is_usable(store)
		? find_ledger(store, err)
		: hx_error_set(err, HAPAX_ERR_INVALID, 0, "%s", hx_postgres_busy_text(conn));
	if (status == HAPAX_OK)
		status = read_ledger(store, err);
	if (status == HAPAX_OK)
		status = hx_postgres_session_look(&store->session, conn, err);
	if (status == HAPAX_OK)
		status = prepare_all(store, err);
	if (status == HAPAX_OK)
		status = hapax_store_attach(
			&store->base, &join_ops, "postgres:(joined)", &complete, err);
	if (status != HAPAX_OK) {
		store_free(store);
		return status;
	}
	*ret_store = &store->base;
	return HAPAX_OK;
}
