/* SPDX-License-Identifier: Apache-2.0 */
/*
 * migrate.c - the ledger's tables and functions.
 */
#include "store/postgres/migrate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/postgres/postgres_fault.h"
#include "store/postgres/postgres_place.h"
#include "store/postgres/postgres_session.h"

extern const char hx_postgres_schema_sql[];
extern const char hx_postgres_schema_2_sql[];
extern const char hx_postgres_schema_4_sql[];
extern const char hx_postgres_operate_sql[];
extern const char hx_postgres_walk_sql[];
extern const char hx_postgres_functions_sql[];
extern const char hx_postgres_offset_sql[];
extern const char hx_postgres_processed_events_sql[];
extern const char hx_postgres_regrant_sql[];

/* From version i to i + 1. */
static const char *const versions[HX_POSTGRES_VERSION] = {
	hx_postgres_schema_sql, hx_postgres_schema_2_sql,
	NULL, /* a column of hapax_claim(), which version 4 replaces */
	hx_postgres_schema_4_sql};

/* Statements that may be repeated: functions, a view, and tables that only some ledgers use. */
static const char *const functions[] = {
	hx_postgres_operate_sql, hx_postgres_walk_sql, hx_postgres_functions_sql,
	hx_postgres_offset_sql, hx_postgres_processed_events_sql};

static const struct hx_postgres_migrator_words words = {
	.failed = "the store was not migrated; nothing changed",
	.uncertain = "it is unknown whether the store was migrated; run it again",
	.no_memory = "not enough memory to migrate",
};

static void ignore_notice(void *context, const PGresult *result)
{
	(void)context;
	(void)result;
}

enum hapax_status hx_postgres_migrator_open(
	struct hx_postgres_migrator *migrator, const char *url,
	const struct hx_postgres_migrator_words *migrator_words, struct hapax_error *err)
{
	enum hapax_status status;

	migrator->words = migrator_words;
	migrator->conn = NULL;
	hx_buf_init(&migrator->sql, 1 << 20);
	status = hx_postgres_place_parse(url, &migrator->place, err);
	if (status != HAPAX_OK)
		return status;
	migrator->conn = PQconnectdb(migrator->place.url);
	if (PQstatus(migrator->conn) != CONNECTION_OK)
		return hx_postgres_connect_error(migrator->conn, err);
	(void)PQsetNoticeReceiver(migrator->conn, ignore_notice, NULL);
	return HAPAX_OK;
}

void hx_postgres_migrator_close(struct hx_postgres_migrator *migrator)
{
	PQfinish(migrator->conn);
	hx_buf_done(&migrator->sql);
	explicit_bzero(&migrator->place, sizeof(migrator->place));
}

enum hapax_status hx_postgres_migrator_run(
	struct hx_postgres_migrator *migrator, const char *text, int64_t *ret_number,
	struct hapax_error *err)
{
	const struct hx_postgres_migrator_words *say = migrator->words;
	PGresult *result;
	ExecStatusType kind;
	enum hapax_status status;
	bool is_lost;

	hx_buf_clear(&migrator->sql);
	status = hx_postgres_sql_append(&migrator->sql, migrator->place.schema, text);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "%s", say->no_memory);
	result = PQexec(migrator->conn, (const char *)migrator->sql.data);
	kind = PQresultStatus(result);
	is_lost =
		strcmp(text, "COMMIT") == 0 && hx_postgres_fault(result) == HX_POSTGRES_FAULT_LOST;
	if (kind != PGRES_COMMAND_OK && kind != PGRES_TUPLES_OK)
		status = hx_postgres_result_error(
			result, is_lost ? say->uncertain : say->failed, err);
	else if (ret_number != NULL && PQntuples(result) == 1)
		*ret_number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
	PQclear(result);
	return status;
}

enum hapax_status hx_postgres_migrator_keep_grants(
	struct hx_postgres_migrator *migrator, struct hapax_error *err)
{
	return hx_postgres_migrator_run(
		migrator,
		"SELECT set_config('hapax.functions', coalesce(json_agg(k), '[]')::text, true) FROM"
		" (SELECT p.oid AS id, p.proname AS name, p.proowner AS owner,"
		" coalesce(p.proacl, acldefault('f', p.proowner)) AS grants FROM pg_proc p"
		" WHERE p.proname LIKE 'hapax%' AND p.pronamespace ="
		" to_regnamespace(quote_ident((parse_ident('@@hapax'))[1]))) k",
		NULL, err);
}

enum hapax_status hx_postgres_migrator_regrant(
	struct hx_postgres_migrator *migrator, struct hapax_error *err)
{
	return hx_postgres_migrator_run(migrator, hx_postgres_regrant_sql, NULL, err);
}

/* 0: there is no ledger. */
static enum hapax_status read_version(
	struct hx_postgres_migrator *migrator, int64_t *ret_version, struct hapax_error *err)
{
	int64_t has_ledger = 0;
	enum hapax_status status = hx_postgres_migrator_run(
		migrator, "SELECT (to_regclass('@@hapax_meta') IS NOT NULL)::int", &has_ledger,
		err);

	*ret_version = 0;
	if (status == HAPAX_OK && has_ledger != 0)
		status = hx_postgres_migrator_run(
			migrator, "SELECT version FROM @@hapax_meta", ret_version, err);
	return status;
}

/* Runs within a transaction that holds the migration lock of this database. */
static enum hapax_status bring_up(
	struct hx_postgres_migrator *migrator, struct hapax_migration *migration,
	struct hapax_error *err)
{
	char text[80];
	int64_t version = 0;
	enum hapax_status status = read_version(migrator, &version, err);

	if (status == HAPAX_OK && (version < 0 || version > HX_POSTGRES_VERSION))
		return hx_postgres_version_error(version, migrator->place.schema, err);
	migration->from = version;
	migration->to = HX_POSTGRES_VERSION;
	if (status == HAPAX_OK)
		status = hx_postgres_migrator_keep_grants(migrator, err);
	for (int64_t i = version; i < HX_POSTGRES_VERSION && status == HAPAX_OK; i++)
		if (versions[i] != NULL)
			status = hx_postgres_migrator_run(migrator, versions[i], NULL, err);
	for (size_t i = 0; i < HX_COUNT(functions) && status == HAPAX_OK; i++)
		status = hx_postgres_migrator_run(migrator, functions[i], NULL, err);
	if (status == HAPAX_OK)
		status = hx_postgres_migrator_regrant(migrator, err);
	(void)snprintf(
		text, sizeof(text), "UPDATE @@hapax_meta SET version = %d", HX_POSTGRES_VERSION);
	if (status == HAPAX_OK)
		status = hx_postgres_migrator_run(migrator, text, NULL, err);
	if (status == HAPAX_OK)
		status = hx_postgres_migrator_run(
			migrator, "SELECT @@hapax_months(@@hapax_now())", NULL, err);
	return status;
}

static enum hapax_status make_schema(struct hx_postgres_migrator *migrator, struct hapax_error *err)
{
	/* A role that may not create schemas may have been given one. */
	return hx_postgres_migrator_run(
		migrator,
		"DO $do$ DECLARE v_name text := (parse_ident('@@hapax_meta'))[1]; BEGIN"
		" IF to_regnamespace(quote_ident(v_name)) IS NULL THEN"
		" EXECUTE format('CREATE SCHEMA %I', v_name); END IF; END $do$",
		NULL, err);
}

static enum hapax_status migrate(
	struct hx_postgres_migrator *migrator, struct hapax_migration *migration,
	struct hapax_error *err)
{
	/* Sees migrations that ended while this one waited; uses no function of a search_path. */
	enum hapax_status status = hx_postgres_migrator_run(
		migrator,
		"BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL search_path = pg_catalog;"
		" SELECT pg_advisory_xact_lock(7522537949364842850)",
		NULL, err);

	if (status == HAPAX_OK)
		status = make_schema(migrator, err);
	if (status == HAPAX_OK)
		status = bring_up(migrator, migration, err);
	if (status == HAPAX_OK)
		return hx_postgres_migrator_run(migrator, "COMMIT", NULL, err);
	(void)hx_postgres_migrator_run(migrator, "ROLLBACK", NULL, NULL);
	return status;
}

enum hapax_status hx_postgres_migrate(
	const char *url, struct hapax_migration *ret_migration, struct hapax_error *err)
{
	struct hapax_migration migration = {0, 0};
	struct hx_postgres_migrator migrator;
	enum hapax_status status = hx_postgres_migrator_open(&migrator, url, &words, err);

	if (status == HAPAX_OK)
		status = migrate(&migrator, &migration, err);
	hx_postgres_migrator_close(&migrator);
	if (status == HAPAX_OK && ret_migration != NULL)
		*ret_migration = migration;
	return status;
}
