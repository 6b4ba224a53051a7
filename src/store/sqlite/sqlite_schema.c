/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_schema.c - makes and checks the ledger's tables; sqlite_schema_*.sql has them.
 */
#include "store/sqlite/sqlite_schema.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "store/clock_mark.h"
#include "store/sqlite/meta.h"

extern const char hx_sqlite_schema_1_sql[];
extern const char hx_sqlite_schema_2_sql[];

/* From version i to i + 1. */
static const char *const migration_texts[] = {
	hx_sqlite_schema_1_sql,
	hx_sqlite_schema_2_sql,
};
_Static_assert(
	HX_COUNT(migration_texts) == HX_SQLITE_SCHEMA_VERSION, "a migration for each version");

struct hx_sqlite_migrations hx_sqlite_schema_migrations(void)
{
	return (struct hx_sqlite_migrations){migration_texts, HX_SQLITE_SCHEMA_VERSION};
}

/* Inside a transaction, so that the four answers are consistent. */
static int read_schema(struct hx_sqlite_connection *connection, struct hx_sqlite_schema *schema)
{
	int64_t objects = 0, has_meta = 0, application_id = 0, version = 0;
	int code = hx_sqlite_query_number(
		connection, "SELECT count(*) FROM main.sqlite_schema", &objects);

	if (code == SQLITE_OK)
		code = hx_sqlite_query_number(
			connection, "PRAGMA main.application_id", &application_id);
	if (code == SQLITE_OK)
		code = hx_sqlite_query_number(
			connection,
			"SELECT count(*) FROM main.sqlite_schema WHERE type = 'table' AND name = 'hapax_meta'",
			&has_meta);
	if (code == SQLITE_OK && has_meta != 0) {
		code = hx_sqlite_query_number(
			connection, "SELECT version FROM main.hapax_meta WHERE id = 1", &version);
		/* A table of that name without that column or row is not ours. */
		if (code == SQLITE_ERROR || code == SQLITE_DONE ||
		    (code == SQLITE_OK && version < 1))
			code = SQLITE_CORRUPT;
	}
	schema->version = version;
	schema->is_ours = application_id == HX_SQLITE_APPLICATION_ID;
	schema->is_empty = objects == 0 && (application_id == 0 || schema->is_ours);
	return code;
}

static int read_schema_in_transaction(
	struct hx_sqlite_connection *connection, struct hx_sqlite_schema *schema)
{
	bool is_nested = sqlite3_get_autocommit(connection->db) == 0;
	int code;

	do {
		code = is_nested ? SQLITE_OK : hx_sqlite_run(connection, HX_SQLITE_BEGIN_READ);
		if (code == SQLITE_OK)
			code = read_schema(connection, schema);
		if (!is_nested && sqlite3_get_autocommit(connection->db) == 0)
			(void)hx_sqlite_run(connection, HX_SQLITE_ROLLBACK);
	} while (hx_sqlite_is_busy(code) && !is_nested && hx_sqlite_connection_wait(connection));
	return code;
}

static enum hapax_status refuse_newer(
	const struct hx_sqlite_connection *connection, int64_t version, size_t known,
	struct hapax_error *err)
{
	return hx_error_set(
		err, HAPAX_ERR_UNSUPPORTED, 0,
		"'%s' has store version %lld, and this hapax supports up to %zu; use a newer "
		"hapax, or another file",
		connection->name, (long long)version, known);
}

enum hapax_status hx_sqlite_schema_fail(
	struct hx_sqlite_connection *connection, int code, struct hapax_error *err)
{
	if ((code & 0xff) == SQLITE_NOTADB)
		return hx_error_set(
			err, HAPAX_ERR_CORRUPT, 0,
			"'%s' is not a SQLite database; use another file", connection->name);
	if ((code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_ERROR)
		return hx_error_set(
			err, HAPAX_ERR_CORRUPT, 0,
			"'%s' is damaged, or its tables are not those of hapax", connection->name);
	return hx_sqlite_connection_fail(
		connection, code, HX_SQLITE_BEFORE_COMMIT, "could not read the tables of the store",
		err);
}

enum hapax_status hx_sqlite_schema_inspect(
	struct hx_sqlite_connection *connection, struct hx_sqlite_migrations migrations,
	struct hx_sqlite_schema *ret_schema, struct hapax_error *err)
{
	struct hx_sqlite_schema schema = {0};
	int code = read_schema_in_transaction(connection, &schema);

	if (code != SQLITE_OK)
		return hx_sqlite_schema_fail(connection, code, err);
	if (schema.version > (int64_t)migrations.count)
		return refuse_newer(connection, schema.version, migrations.count, err);
	*ret_schema = schema;
	return HAPAX_OK;
}

enum hapax_status hx_sqlite_schema_refuse_foreign(
	const struct hx_sqlite_connection *connection, const struct hx_sqlite_schema *schema,
	struct hapax_error *err)
{
	if (schema->version != 0 || schema->is_empty)
		return HAPAX_OK;
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"'%s' is the database of another program; use another file, or join it from "
		"that program",
		connection->name);
}

/* Create the row that every later transaction reads and writes. */
static int make_meta(struct hx_sqlite_connection *connection, const struct hapax_clock *clock)
{
	struct hx_sqlite_meta meta = {.version = 1};
	char sql[160];
	int code;

	hx_clock_mark_init(&meta.mark, clock);
	(void)snprintf(
		sql, sizeof(sql),
		"INSERT INTO main.hapax_meta VALUES (1, 1, %lld, 0, 0, 0, 0, 0, 0, 0, 0, zeroblob(16))",
		(long long)meta.mark.store_ms);
	code = hx_sqlite_exec(connection, sql);
	return code == SQLITE_OK ? hx_sqlite_meta_save(connection, &meta) : code;
}

/* Run the steps from schema->version on. Inside a write transaction. */
static int run_migrations(
	struct hx_sqlite_connection *connection, struct hx_sqlite_migrations migrations,
	const struct hx_sqlite_schema *schema, bool as_own, const struct hapax_clock *clock)
{
	char sql[80];
	int code = SQLITE_OK;

	for (size_t i = (size_t)schema->version; i < migrations.count && code == SQLITE_OK; i++) {
		code = hx_sqlite_exec(connection, migrations.texts[i]);
		if (code == SQLITE_OK && i == 0)
			code = make_meta(connection, clock);
	}
	if (code != SQLITE_OK)
		return code;
	(void)snprintf(
		sql, sizeof(sql), "UPDATE main.hapax_meta SET version = %zu", migrations.count);
	code = hx_sqlite_exec(connection, sql);
	if (code == SQLITE_OK && as_own && schema->is_empty) {
		(void)snprintf(
			sql, sizeof(sql), "PRAGMA main.application_id = %d",
			HX_SQLITE_APPLICATION_ID);
		code = hx_sqlite_exec(connection, sql);
	}
	return code;
}

/* BEGIN IMMEDIATE, with patience: fifty processes may be creating the same file. */
static int begin_write(struct hx_sqlite_connection *connection)
{
	int code;

	do {
		code = hx_sqlite_run(connection, HX_SQLITE_BEGIN_WRITE);
	} while (hx_sqlite_is_busy(code) && hx_sqlite_connection_wait(connection));
	return code;
}

enum hapax_status hx_sqlite_schema_migrate(
	struct hx_sqlite_connection *connection, struct hx_sqlite_migrations migrations,
	bool as_own, const struct hapax_clock *clock, struct hapax_error *err)
{
	static const char *const what = "could not create the tables of the store";
	enum hx_sqlite_stage stage = HX_SQLITE_BEFORE_COMMIT;
	struct hx_sqlite_schema schema = {0};
	enum hapax_status status = HAPAX_OK;
	int code;

	assert(sqlite3_get_autocommit(connection->db) != 0);
	code = begin_write(connection);
	if (code != SQLITE_OK)
		return hx_sqlite_connection_fail(connection, code, stage, what, err);
	/* Read again under the lock: another process may have been first. */
	code = read_schema(connection, &schema);
	if (code != SQLITE_OK)
		status = hx_sqlite_schema_fail(connection, code, err);
	else if (schema.version > (int64_t)migrations.count)
		status = refuse_newer(connection, schema.version, migrations.count, err);
	else if (as_own)
		status = hx_sqlite_schema_refuse_foreign(connection, &schema, err);
	if (status == HAPAX_OK && schema.version < (int64_t)migrations.count)
		code = run_migrations(connection, migrations, &schema, as_own, clock);
	if (status == HAPAX_OK && code == SQLITE_OK) {
		stage = HX_SQLITE_IN_COMMIT;
		code = hx_sqlite_run(connection, HX_SQLITE_COMMIT);
	}
	if (sqlite3_get_autocommit(connection->db) == 0)
		(void)hx_sqlite_run(connection, HX_SQLITE_ROLLBACK);
	/* A step that does not fit its tables: they are not ours, or damaged. */
	if (status == HAPAX_OK && (code & 0xff) == SQLITE_ERROR)
		return hx_sqlite_schema_fail(connection, code, err);
	if (status == HAPAX_OK && code != SQLITE_OK)
		status = hx_sqlite_connection_fail(connection, code, stage, what, err);
	return status;
}
