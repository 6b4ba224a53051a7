/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox_postgres.c - an outbox in a PostgreSQL database.
 */
#include "outbox/postgres/outbox_postgres.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "store/postgres/migrate.h"
#include "store/postgres/postgres_fault.h"
#include "store/postgres/postgres_operation.h"

extern const char hx_outbox_postgres_1_sql[];
extern const char hx_outbox_postgres_2_sql[];
extern const char hx_outbox_postgres_sql[];

static struct hx_outbox_postgres *outbox_postgres_of(struct hapax_outbox *outbox)
{
	return (struct hx_outbox_postgres *)outbox;
}

static void outbox_close(struct hapax_outbox *base)
{
	struct hx_outbox_postgres *outbox = outbox_postgres_of(base);

	hx_outbox_postgres_disconnect(outbox);
	hx_buf_done(&outbox->sql);
	hx_outbox_dismantle(base);
	explicit_bzero(&outbox->place, sizeof(outbox->place));
	hx_free(outbox);
}

static struct hx_outbox_argument text_argument(struct hapax_bytes text, char *out, size_t size)
{
	if (text.size == 0)
		return (struct hx_outbox_argument){NULL, 0, false};
	/* hx_outbox_event_check() has checked it: a cut text would be another one. */
	assert(text.size < size);
	(void)snprintf(out, size, "%.*s", (int)text.size, (const char *)text.data);
	return (struct hx_outbox_argument){out, 0, false};
}

static enum hapax_status outbox_add(
	struct hapax_outbox *base, const struct hapax_outbox_event *event,
	struct hapax_bytes headers, char ret_id[HAPAX_OUTBOX_ID_SIZE], struct hapax_error *err)
{
	char topic[HX_OUTBOX_TEXT_SIZE_MAX + 1], type[HX_OUTBOX_TEXT_SIZE_MAX + 1];
	char id[HX_OUTBOX_TEXT_SIZE_MAX + 1], content_type[HX_OUTBOX_TEXT_SIZE_MAX + 1];
	char key[HX_OUTBOX_LONG_SIZE_MAX + 1], source[HX_OUTBOX_LONG_SIZE_MAX + 1];
	char subject[HX_OUTBOX_LONG_SIZE_MAX + 1];
	struct hx_outbox_argument arguments[] = {
		text_argument(event->topic, topic, sizeof(topic)),
		{event->payload.size == 0 ? "" : event->payload.data, (int)event->payload.size,
		 true},
		text_argument(event->ordering_key, key, sizeof(key)),
		text_argument(event->type, type, sizeof(type)),
		text_argument(event->source, source, sizeof(source)),
		text_argument(event->subject, subject, sizeof(subject)),
		text_argument(event->content_type, content_type, sizeof(content_type)),
		{NULL, 0, false},
		text_argument(event->id, id, sizeof(id)),
	};
	struct hapax_bytes added;
	PGresult *result = NULL;
	enum hapax_status status;

	assert(event->payload.size <= HX_OUTBOX_PAYLOAD_SIZE_MAX);
	assert(headers.size == base->headers.size);
	if (headers.size > 0) {
		status = hx_buf_append_byte(&base->headers, '\0');
		if (status != HAPAX_OK)
			return hx_error_set(err, HAPAX_ERR_INVALID, 0, "the headers are too long");
		arguments[7].data = base->headers.data;
	}
	status = hx_outbox_postgres_run(
		outbox_postgres_of(base),
		"SELECT @@hapax_outbox_add($1::text, $2::bytea, $3::text, $4::text, $5::text, $6::text,"
		" $7::text, $8::jsonb, $9::text)",
		arguments, 9, "could not add the event", &result, err);
	if (status != HAPAX_OK)
		return status;
	added = hx_postgres_get_bytes(result, 0, 0);
	(void)snprintf(
		ret_id, HAPAX_OUTBOX_ID_SIZE, "%.*s", (int)added.size,
		added.size == 0 ? "" : (const char *)added.data);
	PQclear(result);
	return HAPAX_OK;
}

/* ------------------------------------------------------------------ savepoints */

static enum hapax_status begin(struct hx_outbox_postgres *outbox, struct hapax_error *err)
{
	char sql[64];
	enum hapax_status status;

	hx_outbox_postgres_assert(outbox);
	if (!outbox->is_joined) {
		status = hx_outbox_postgres_connect(outbox, err);
		if (status != HAPAX_OK)
			return status;
	}
	switch (PQtransactionStatus(outbox->conn)) {
	case PQTRANS_IDLE:
		(void)snprintf(sql, sizeof(sql), "BEGIN");
		outbox->has_begun = true;
		outbox->depth = 0;
		break;
	case PQTRANS_INTRANS:
		(void)snprintf(sql, sizeof(sql), "SAVEPOINT hapax_outbox_%u", ++outbox->depth);
		break;
	case PQTRANS_ACTIVE:
	case PQTRANS_INERROR:
	case PQTRANS_UNKNOWN:
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "%s", hx_postgres_busy_text(outbox->conn));
	}
	return hx_outbox_postgres_run(
		outbox, sql, NULL, 0, "could not begin the transaction", NULL, err);
}

static enum hapax_status undo(struct hx_outbox_postgres *outbox, struct hapax_error *err)
{
	char sql[96];

	hx_outbox_postgres_assert(outbox);
	if (outbox->depth == 0) {
		outbox->has_begun = false;
		(void)snprintf(sql, sizeof(sql), "ROLLBACK");
	} else {
		(void)snprintf(
			sql, sizeof(sql), "ROLLBACK TO SAVEPOINT hapax_outbox_%u", outbox->depth);
		outbox->depth--;
	}
	if (outbox->conn == NULL)
		return HAPAX_OK;
	return hx_outbox_postgres_run(outbox, sql, NULL, 0, "could not roll back", NULL, err);
}

static enum hapax_status outbox_postgres_keep(
	struct hx_outbox_postgres *outbox, struct hapax_error *err)
{
	char sql[64];
	PGresult *result = NULL;
	enum hapax_status status;
	bool is_committed;

	/* COMMIT of a failed transaction rolls back and reports success. */
	if (PQtransactionStatus(outbox->conn) != PQTRANS_INTRANS) {
		(void)undo(outbox, NULL);
		return hx_error_set(
			err, HAPAX_ERR_HANDLER, 0,
			"a statement of the function failed, or it ended the transaction; "
			"nothing was stored");
	}
	if (outbox->depth > 0) {
		(void)snprintf(
			sql, sizeof(sql), "RELEASE SAVEPOINT hapax_outbox_%u", outbox->depth);
		outbox->depth--;
		return hx_outbox_postgres_run(
			outbox, sql, NULL, 0, "could not release the savepoint", NULL, err);
	}
	outbox->has_begun = false;
	status = hx_outbox_postgres_run(
		outbox, "COMMIT", NULL, 0, "could not commit the transaction", &result, err);
	if (status != HAPAX_OK)
		return status;
	is_committed = strcmp(PQcmdStatus(result), "COMMIT") == 0;
	PQclear(result);
	if (is_committed)
		return HAPAX_OK;
	return hx_error_set(err, HAPAX_ERR_HANDLER, 0, "PostgreSQL rolled back the transaction");
}

static enum hapax_status outbox_savepoint(
	struct hapax_outbox *outbox, enum hx_outbox_savepoint savepoint, struct hapax_error *err)
{
	switch (savepoint) {
	case HX_OUTBOX_BEGIN: return begin(outbox_postgres_of(outbox), err);
	case HX_OUTBOX_KEEP: return outbox_postgres_keep(outbox_postgres_of(outbox), err);
	case HX_OUTBOX_UNDO: return undo(outbox_postgres_of(outbox), err);
	}
	return HAPAX_ERR_INVALID;
}

static enum hapax_status outbox_status(
	struct hapax_outbox *base, bool with_sent, struct hapax_outbox_status *status,
	struct hapax_error *err)
{
	struct hx_outbox_postgres *outbox = outbox_postgres_of(base);
	int64_t numbers[HX_OUTBOX_NUMBERS];
	PGresult *result = NULL;
	enum hapax_status code =
		with_sent ? hx_outbox_postgres_be_patient(outbox, true, err) : HAPAX_OK;

	if (code != HAPAX_OK)
		return code;
	code = hx_outbox_postgres_run(
		outbox,
		with_sent ? "SELECT * FROM @@hapax_outbox_backlog(),"
			    " (SELECT count(*) FROM @@hapax_outbox WHERE state = 1) s"
			  : "SELECT *, 0::bigint FROM @@hapax_outbox_backlog()",
		NULL, 0, "could not read the outbox", &result, err);
	if (with_sent)
		(void)hx_outbox_postgres_be_patient(outbox, false, NULL);
	if (code != HAPAX_OK)
		return code;
	for (int i = 0; i < HX_OUTBOX_NUMBERS; i++)
		numbers[i] = hx_postgres_number(result, 0, i);
	hx_outbox_status_set(status, numbers);
	PQclear(result);
	return HAPAX_OK;
}

static const struct hx_outbox_ops postgres_ops = {
	.name = "postgres",
	.poll_ms = 1000,
	.held = "@@hapax_outbox WHERE held AND",
	.close = outbox_close,
	.add = outbox_add,
	.savepoint = outbox_savepoint,
	.status = outbox_status,
	.retry = hx_outbox_postgres_retry,
	.park = hx_outbox_postgres_park,
	.purge = hx_outbox_postgres_purge,
	.query = hx_outbox_postgres_query,
	.audit = hx_outbox_postgres_audit,
	.adopt = hx_outbox_postgres_adopt,
	.keep_alive = hx_outbox_postgres_renew,
	.settle = hx_outbox_postgres_settle,
	.leave = hx_outbox_postgres_leave,
	.set_idle = hx_outbox_postgres_set_idle,
	.fetch = hx_outbox_postgres_fetch,
	.mark = hx_outbox_postgres_mark,
	.wait = hx_outbox_postgres_wait,
};

static struct hx_outbox_postgres *outbox_new(bool with_reactor, struct hapax_error *err)
{
	struct hx_outbox_postgres *outbox = hx_alloc_zero(1, sizeof(*outbox));

	if (outbox == NULL) {
		(void)hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for an outbox");
		return NULL;
	}
	hx_buf_init(&outbox->sql, 64 * 1024);
	if (hx_outbox_prepare(&outbox->base, &postgres_ops, with_reactor, err) != HAPAX_OK) {
		hx_outbox_dismantle(&outbox->base);
		hx_free(outbox);
		return NULL;
	}
	return outbox;
}

enum hapax_status hx_outbox_postgres_open(
	const char *url, struct hapax_outbox **ret_outbox, struct hapax_error *err)
{
	struct hx_outbox_postgres *outbox = outbox_new(true, err);
	enum hapax_status status;

	if (outbox == NULL)
		return HAPAX_ERR_NO_MEMORY;
	status = hx_postgres_place_parse(url, &outbox->place, err);
	if (status == HAPAX_OK)
		status = hx_outbox_postgres_connect(outbox, err);
	if (status != HAPAX_OK) {
		outbox_close(&outbox->base);
		return status;
	}
	assert(outbox->conn != NULL);
	assert(!outbox->is_joined);
	*ret_outbox = &outbox->base;
	return HAPAX_OK;
}

enum hapax_status hapax_outbox_join_postgres(
	struct pg_conn *conn, struct hapax_outbox **ret_outbox, struct hapax_error *err)
{
	struct hx_outbox_postgres *outbox;
	PGresult *result;
	enum hapax_status status = HAPAX_OK;
	bool is_good;

	if (conn == NULL || ret_outbox == NULL || PQstatus(conn) != CONNECTION_OK)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "an open connection is required");
	outbox = outbox_new(false, err);
	if (outbox == NULL)
		return HAPAX_ERR_NO_MEMORY;
	outbox->conn = conn;
	outbox->is_joined = true;
	hx_outbox_postgres_assert(outbox);
	result = PQexec(
		conn,
		"SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
		" WHERE c.oid = to_regclass('hapax_outbox_meta')");
	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		status = hx_postgres_result_error(result, "could not find the outbox", err);
	else if (PQntuples(result) != 1 || PQgetisnull(result, 0, 0))
		status = hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0,
			"the search_path of this connection has no outbox; run 'hapax outbox "
			"init --db URL', or set search_path");
	else
		(void)snprintf(
			outbox->place.schema, sizeof(outbox->place.schema), "%s",
			PQgetvalue(result, 0, 0));
	is_good = hx_postgres_schema_is_good(outbox->place.schema);
	PQclear(result);
	if (status == HAPAX_OK && !is_good)
		status = hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the name of the outbox schema has a quote, '%%', '$' or '\\'; use "
			"another schema");
	if (status != HAPAX_OK) {
		outbox_close(&outbox->base);
		return status;
	}
	*ret_outbox = &outbox->base;
	return HAPAX_OK;
}

/* ------------------------------------------------------------------ init */

static const struct hx_postgres_migrator_words words = {
	.failed = "could not create the outbox",
	.uncertain = "could not create the outbox",
	.no_memory = "not enough memory to make the outbox",
};

static enum hapax_status bring_up(
	struct hx_postgres_migrator *migrator, struct hapax_migration *migration,
	struct hapax_error *err)
{
	int64_t has_outbox = 0, version = 0;
	enum hapax_status status = hx_postgres_migrator_run(
		migrator,
		"BEGIN; SELECT pg_advisory_xact_lock(7522537949364842851);"
		/* A statement that waits for a table lock makes all writers wait behind it. */
		"SET LOCAL lock_timeout = '3s';"
		"DO $do$ DECLARE v_name text := (parse_ident('@@hapax_outbox'))[1]; BEGIN"
		" IF to_regnamespace(quote_ident(v_name)) IS NULL THEN"
		" EXECUTE format('CREATE SCHEMA %I', v_name); END IF; END $do$;"
		"SELECT (to_regclass('@@hapax_outbox_meta') IS NOT NULL)::int",
		&has_outbox, err);

	if (status == HAPAX_OK && has_outbox != 0)
		status = hx_postgres_migrator_run(
			migrator, "SELECT version FROM @@hapax_outbox_meta", &version, err);
	if (status == HAPAX_OK && version > HX_OUTBOX_POSTGRES_VERSION)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"the outbox has version %d, and this hapax supports up to %d; use a "
			"newer hapax",
			(int)version, HX_OUTBOX_POSTGRES_VERSION);
	if (status == HAPAX_OK)
		status = hx_postgres_migrator_keep_grants(migrator, err);
	if (status == HAPAX_OK && version < 1)
		status = hx_postgres_migrator_run(migrator, hx_outbox_postgres_1_sql, NULL, err);
	if (status == HAPAX_OK && version < 2)
		status = hx_postgres_migrator_run(migrator, hx_outbox_postgres_2_sql, NULL, err);
	if (status == HAPAX_OK)
		status = hx_postgres_migrator_run(migrator, hx_outbox_postgres_sql, NULL, err);
	if (status == HAPAX_OK)
		status = hx_postgres_migrator_regrant(migrator, err);
	if (status == HAPAX_OK)
		status = hx_postgres_migrator_run(migrator, "COMMIT", NULL, err);
	assert(status != HAPAX_OK || version <= HX_OUTBOX_POSTGRES_VERSION);
	assert(status != HAPAX_OK || has_outbox != 0 || version == 0);
	/* The migration is whole, or not there at all. The server says whether it has committed. */
	if (status == HAPAX_OK && PQtransactionStatus(migrator->conn) != PQTRANS_IDLE)
		status = hx_error_set(
			err, HAPAX_ERR_UNCERTAIN, 0,
			"PostgreSQL did not end the transaction that makes the outbox");
	migration->from = version;
	migration->to = HX_OUTBOX_POSTGRES_VERSION;
	return status;
}

enum hapax_status hx_outbox_postgres_init(
	const char *url, struct hapax_migration *migration, struct hapax_error *err)
{
	struct hx_postgres_migrator migrator;
	enum hapax_status status = hx_postgres_migrator_open(&migrator, url, &words, err);

	if (status == HAPAX_OK)
		status = bring_up(&migrator, migration, err);
	hx_postgres_migrator_close(&migrator);
	return status;
}
