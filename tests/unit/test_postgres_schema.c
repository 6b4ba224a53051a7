/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_postgres_schema.c - the tables of a ledger in PostgreSQL: their versions and migrations, the
 * search path, row security, and the partitions of results.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hapax/hapax.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/thread.h"
#include "store/postgres/postgres_place.h"
#include "store/postgres/postgres_session.h"
#include "support/postgres_case.h"
#include "support/postgres_store_case.h"
#include "support/store_case.h"

/* Version 1 of the tables; see migrate.c. */
extern const char hx_postgres_schema_sql[];
extern const char hx_postgres_schema_2_sql[];

/* ---------------------------------------------------------------- bad input */

/* No ledger, an older one, a newer one: what to do. A migration leaves a newer one alone. */
static void versions_are_checked(void **state)
{
	PGconn *conn = postgres_case_connect();
	char url[512];
	struct hapax_migration migration;
	struct hapax_error err = {0};
	struct hapax_store *store;

	(void)state;
	postgres_case_query(conn, "DROP SCHEMA IF EXISTS \"odd \"\"name\" CASCADE");
	postgres_case_url(url, sizeof(url), "&schema=odd%20%22name");
	postgres_store_must_refuse(url, HAPAX_ERR_UNAVAILABLE, "hapax store migrate");
	assert_int_equal(hapax_store_migrate(url, &migration, &err), HAPAX_OK);
	assert_int_equal(migration.from, 0);
	assert_int_equal(migration.to, HX_POSTGRES_VERSION);
	assert_int_equal(hapax_store_migrate(url, &migration, &err), HAPAX_OK);
	assert_int_equal(migration.from, HX_POSTGRES_VERSION);
	store = postgres_store_open(url, &err);
	assert_non_null(store);
	hapax_store_close(store);
	postgres_case_query(conn, "UPDATE \"odd \"\"name\".hapax_meta SET version = 99");
	postgres_store_must_refuse(url, HAPAX_ERR_UNSUPPORTED, "use a newer hapax");
	assert_int_equal(hapax_store_migrate(url, &migration, &err), HAPAX_ERR_UNSUPPORTED);
	assert_int_equal(
		postgres_case_number(conn, "SELECT version FROM \"odd \"\"name\".hapax_meta"), 99);
	/* What is not a version at all is left alone, too. */
	postgres_case_query(conn, "UPDATE \"odd \"\"name\".hapax_meta SET version = -1");
	postgres_store_must_refuse(url, HAPAX_ERR_UNSUPPORTED, "changed by another program");
	assert_int_equal(hapax_store_migrate(url, &migration, &err), HAPAX_ERR_UNSUPPORTED);
	PQfinish(conn);
}

/* A migration whose session ends in COMMIT does not say that nothing was done. */
static void a_migration_that_is_lost_is_not_judged(void **state)
{
	PGconn *conn = postgres_case_connect();
	struct hapax_migration migration;
	struct hapax_error err = {0};
	char url[512];

	(void)state;
	postgres_case_query(conn, "DROP SCHEMA IF EXISTS lost CASCADE");
	postgres_store_migrate("&schema=lost");
	postgres_case_query(
		conn,
		"CREATE FUNCTION lost.leave() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
		" PERFORM pg_terminate_backend(pg_backend_pid()), pg_sleep(60); RETURN NULL; END $$;"
		" CREATE CONSTRAINT TRIGGER leaves AFTER UPDATE ON lost.hapax_meta"
		" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION lost.leave()");
	postgres_case_url(url, sizeof(url), "&schema=lost");
	assert_int_equal(hapax_store_migrate(url, &migration, &err), HAPAX_ERR_UNCERTAIN);
	assert_non_null(strstr(err.message, "run it again"));
	postgres_case_query(conn, "DROP TRIGGER leaves ON lost.hapax_meta");
	postgres_store_migrate("&schema=lost");
	PQfinish(conn);
}

/* Functions that others made in a schema of the search_path are not called by our sessions. */
static void search_path_is_no_trap(void **state)
{
	PGconn *conn = postgres_case_connect();
	struct hapax_error err = {0};
	struct hapax_store *store;
	enum hapax_outcome outcome;
	char url[512];

	(void)state;
	/* These fit a call with a literal better than those of the server do. */
	postgres_case_query(
		conn,
		"DROP SCHEMA IF EXISTS trap CASCADE; DROP SCHEMA IF EXISTS bait CASCADE; CREATE SCHEMA trap;"
		" CREATE TABLE trap.caught (who name);"
		" CREATE FUNCTION trap.nextval(text) RETURNS bigint LANGUAGE sql AS"
		" 'INSERT INTO trap.caught VALUES (current_user) RETURNING 1::bigint';"
		" CREATE FUNCTION trap.cardinality(bytea[]) RETURNS integer LANGUAGE sql AS"
		" 'INSERT INTO trap.caught VALUES (current_user) RETURNING 1'");
	postgres_store_migrate("&schema=bait&options=-csearch_path%3Dtrap");
	postgres_case_url(url, sizeof(url), "&schema=bait&options=-csearch_path%3Dtrap");
	store = postgres_store_open(url, &err);
	assert_non_null(store);
	for (int i = 0; i < 2; i++)
		assert_int_equal(postgres_store_check(store, "t", "key", &outcome), HAPAX_OK);
	assert_int_equal(outcome, HAPAX_OUTCOME_REPLAY);
	hapax_store_close(store);
	assert_int_equal(postgres_case_number(conn, "SELECT count(*) FROM trap.caught"), 0);
	PQfinish(conn);
}

/* ---------------------------------------------------------------- what it promises */

/* A ledger of version 1, as it was made then: its records are there after the migration. */
static void version_1_is_migrated(void **state)
{
	PGconn *conn = postgres_case_connect();
	struct hapax_migration migration;
	struct hapax_error err = {0};
	struct hapax_store *store;
	enum hapax_outcome outcome;
	struct hapax_buf sql;
	char url[512];

	(void)state;
	postgres_case_query(conn, "DROP SCHEMA IF EXISTS old CASCADE; CREATE SCHEMA old");
	hx_buf_init(&sql, 1 << 20);
	assert_int_equal(hx_postgres_sql_append(&sql, "old", hx_postgres_schema_sql), HAPAX_OK);
	PGresult *result = PQexec(conn, (const char *)sql.data);
	assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
	PQclear(result);
	hx_buf_done(&sql);
	postgres_case_query(
		conn,
		"INSERT INTO old.hapax_record VALUES ('t', 'default', 'kept', 2, 1, 0, 0, 0, false, 1, 7, 1, 1, 0,"
		" NULL, NULL, NULL, 0, 0)");
	postgres_case_url(url, sizeof(url), "&schema=old");
	postgres_store_must_refuse(url, HAPAX_ERR_UNSUPPORTED, "run 'hapax store migrate URL'");
	assert_int_equal(hapax_store_migrate(url, &migration, &err), HAPAX_OK);
	assert_int_equal(migration.from, 1);
	assert_int_equal(migration.to, HX_POSTGRES_VERSION);
	store = postgres_store_open(url, &err);
	assert_non_null(store);
	assert_int_equal(postgres_store_check(store, "t", "kept", &outcome), HAPAX_OK);
	assert_int_equal(outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(postgres_store_check(store, "t", "new", &outcome), HAPAX_OK);
	assert_int_equal(outcome, HAPAX_OUTCOME_ACQUIRED);
	hapax_store_close(store);
	PQfinish(conn);
}

/* hapax_claim() as version 2 had it, but for what it did. */
#define CLAIM_2_HEAD                                                                              \
	"CREATE FUNCTION old.hapax_claim(p_key text, p_fingerprint bytea DEFAULT NULL,"           \
	" p_ttl interval DEFAULT '24 hours', p_lease interval DEFAULT NULL,"                      \
	" p_on_lapse text DEFAULT 'retry', p_group text DEFAULT 'default',"                       \
	" p_tenant text DEFAULT NULL, p_attempt_id uuid DEFAULT NULL, p_owner text DEFAULT NULL," \
	" OUT outcome text, OUT token bigint, OUT attempt bigint, OUT first_seen timestamptz,"    \
	" OUT expires_at timestamptz, OUT lease_left interval, OUT result_class text,"            \
	" OUT result_status integer, OUT headers bytea, OUT body bytea"
#define CLAIM_2 CLAIM_2_HEAD ") LANGUAGE plpgsql AS 'BEGIN token := 1; END'"
#define CLAIM_2_NAME \
	"old.hapax_claim(text, bytea, interval, interval, text, text, text, uuid, text)"
#define CLAIM_NAME                                                                      \
	"old.hapax_claim(text, bytea, interval, interval, text, text, text, uuid, text" \
	", text, text, text, timestamptz)"

/* The same with the column that version 3 added. */
#define CLAIM_3                                         \
	"DROP FUNCTION " CLAIM_2_NAME "; " CLAIM_2_HEAD \
	", OUT holder_token bigint) LANGUAGE plpgsql AS 'BEGIN token := 1; END'"

/* A ledger of version 2 with that claim, as the role that owns the schema has made it. */
static void make_version_2(PGconn *conn)
{
	const char *const parts[] = {hx_postgres_schema_sql, hx_postgres_schema_2_sql};
	struct hapax_buf sql;

	postgres_case_query(conn, "DROP SCHEMA IF EXISTS old CASCADE; CREATE SCHEMA old");
	hx_buf_init(&sql, 1 << 20);
	for (size_t i = 0; i < 2; i++) {
		hx_buf_clear(&sql);
		assert_int_equal(hx_postgres_sql_append(&sql, "old", parts[i]), HAPAX_OK);
		PGresult *result = PQexec(conn, (const char *)sql.data);
		assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
		PQclear(result);
	}
	hx_buf_done(&sql);
	postgres_case_query(conn, "UPDATE old.hapax_meta SET version = 2");
	postgres_case_query(conn, CLAIM_2);
}

/*
 * Functions with other parameters since version 4 are dropped and created again. The roles that
 * could call them still can, and no others, whatever new functions are given by default.
 */
static void grants_survive_a_migration(void **state)
{
	static const char owner_sql[] =
		"SELECT proowner::regrole FROM pg_proc WHERE oid = to_regprocedure('" CLAIM_NAME
		"')";
	static const char grants_sql[] =
		"SELECT string_agg(proacl_item::text, ' ' ORDER BY proacl_item::text) FROM"
		" (SELECT unnest(proacl) AS proacl_item FROM pg_proc p JOIN pg_namespace n"
		" ON n.oid = pronamespace WHERE nspname = 'old' AND proname = 'hapax_claim') a";
	PGconn *conn = postgres_case_connect();
	struct hapax_migration migration;
	struct hapax_error err = {0};
	char url[512], grants[512];

	(void)state;
	make_version_2(conn);
	postgres_case_query(
		conn,
		"DROP ROLE IF EXISTS ledger_owner, \"odd caller\", stranger; CREATE ROLE ledger_owner;"
		" CREATE ROLE \"odd caller\"; CREATE ROLE stranger;"
		" GRANT USAGE, CREATE ON SCHEMA old TO ledger_owner");
	postgres_case_query(conn, "ALTER FUNCTION " CLAIM_2_NAME " OWNER TO ledger_owner");
	postgres_case_query(
		conn,
		"CREATE FUNCTION old.hapax_operate(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 1';"
		" REVOKE ALL ON FUNCTION old.hapax_operate(bigint) FROM PUBLIC;"
		" GRANT EXECUTE ON FUNCTION old.hapax_operate(bigint) TO app");
	postgres_case_query(
		conn,
		"REVOKE ALL ON FUNCTION " CLAIM_2_NAME " FROM PUBLIC;"
		" GRANT EXECUTE ON FUNCTION " CLAIM_2_NAME " TO app;"
		" GRANT EXECUTE ON FUNCTION " CLAIM_2_NAME " TO \"odd caller\" WITH GRANT OPTION;"
		" ALTER DEFAULT PRIVILEGES IN SCHEMA old GRANT EXECUTE ON FUNCTIONS TO stranger");
	snprintf(grants, sizeof(grants), "%s", postgres_case_query(conn, grants_sql));
	assert_non_null(strstr(grants, "app=X/ledger_owner"));
	assert_non_null(strstr(grants, "\"odd caller\"=X*/ledger_owner"));
	postgres_case_url(url, sizeof(url), "&schema=old");

	/* What others have made of the old form is not dropped with it. */
	postgres_case_query(
		conn, "CREATE VIEW old.theirs AS SELECT token FROM old.hapax_claim('k')");
	assert_int_equal(hapax_store_migrate(url, &migration, &err), HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "depend"));
	assert_string_equal(postgres_case_query(conn, grants_sql), grants);
	postgres_case_query(conn, "DROP VIEW old.theirs");

	assert_int_equal(hapax_store_migrate(url, &migration, &err), HAPAX_OK);
	assert_int_equal(migration.from, 2);
	assert_string_equal(postgres_case_query(conn, grants_sql), grants);
	assert_string_equal(postgres_case_query(conn, owner_sql), "ledger_owner");
	assert_string_equal(
		postgres_case_query(
			conn,
			"SELECT string_agg(e.grantee::regrole::text, ' ' ORDER BY e.grantee::regrole::text)"
			" FROM pg_proc p, aclexplode(p.proacl) e WHERE p.proname = 'hapax_operate'"
			" AND p.pronamespace = 'old'::regnamespace"
			" AND e.grantee::regrole::text <> current_user"),
		"app");
	assert_string_equal(
		postgres_case_query(
			conn, "SELECT outcome || (holder_token IS NULL) FROM old.hapax_claim('k')"),
		"acquiredtrue");
	postgres_case_query(
		conn, "DROP SCHEMA old CASCADE; DROP ROLE ledger_owner, \"odd caller\", stranger");
	PQfinish(conn);
}

/*
 * A ledger of version 3: its records have no event, and new claims have one. Functions with the old
 * parameters are gone.
 */
static void version_3_is_migrated(void **state)
{
	PGconn *conn = postgres_case_connect();
	struct hapax_migration migration;
	struct hapax_error err = {0};
	char url[512];

	(void)state;
	make_version_2(conn);
	postgres_case_query(conn, CLAIM_3 "; UPDATE old.hapax_meta SET version = 3");
	postgres_case_query(
		conn,
		"CREATE FUNCTION old.hapax_operate(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';"
		" INSERT INTO old.hapax_record VALUES ('t', 'default', 'kept', 2, 0, 0, 1, 0, false, 1, 7, 1, 1,"
		" 0, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, '{\"id\": 1}');"
		" INSERT INTO old.hapax_record VALUES"
		" ('t', 'default', 'lapsed', 1, 0, 0, 0, 0, false, 1, 8, 1, 1, 2, NULL, 1000, 0, 0, 0, NULL,"
		" '0123456789012345')");
	postgres_case_url(url, sizeof(url), "&schema=old");
	postgres_store_must_refuse(url, HAPAX_ERR_UNSUPPORTED, "run 'hapax store migrate URL'");
	assert_int_equal(hapax_store_migrate(url, &migration, &err), HAPAX_OK);
	assert_int_equal(migration.from, 3);
	assert_int_equal(migration.to, HX_POSTGRES_VERSION);
	assert_int_equal(
		postgres_case_number(
			conn,
			"SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace"
			" WHERE nspname = 'old' AND proname IN ('hapax_claim', 'hapax_operate')"),
		2);
	assert_string_equal(
		postgres_case_query(
			conn,
			"SELECT event_id IS NULL AND result_payload = '{\"id\": 1}'"
			" FROM old.hapax_processed_events WHERE idempotency_key = 'kept'"),
		"t");
	assert_string_equal(
		postgres_case_query(
			conn,
			"SELECT outcome FROM old.hapax_claim('lapsed', p_tenant => 't',"
			" p_event_id => 'e')"),
		"acquired");
	assert_string_equal(
		postgres_case_query(
			conn,
			"SELECT old.hapax_cause_part(cause, 0) FROM old.hapax_record"
			" WHERE key = 'lapsed'"),
		"e");
	PQfinish(conn);
}

/* ---------------------------------------------------------------- tenants */

/* B12: a role that is not the owner sees the rows of its tenant, however it asks. */
static void tenants_are_apart(void **state)
{
	PGconn *conn = postgres_case_connect();
	const char *port = getenv("HAPAX_TEST_POSTGRES_PORT");
	char url[512];
	struct hapax_error err = {0};
	struct hapax_store *all, *acme;
	enum hapax_outcome outcome;
	PGresult *result;

	(void)state;
	postgres_case_query(conn, "DROP SCHEMA IF EXISTS rls CASCADE");
	postgres_store_migrate("&schema=rls");
	postgres_case_query(conn, "SELECT rls.hapax_grant('app')");
	postgres_case_url(url, sizeof(url), "&schema=rls");
	all = postgres_store_open(url, &err);
	assert_non_null(all);
	assert_int_equal(postgres_store_check(all, "other", "key", &outcome), HAPAX_OK);

	snprintf(url, sizeof(url), "postgres://app:right@127.0.0.1:%s/postgres?schema=rls", port);
	postgres_store_must_refuse(url, HAPAX_ERR_INVALID, "?tenant=NAME");
	snprintf(
		url, sizeof(url),
		"postgres://app:right@127.0.0.1:%s/postgres?schema=rls&tenant=acme", port);
	acme = postgres_store_open(url, &err);
	if (acme == NULL)
		printf("# %s\n", err.message);
	assert_non_null(acme);
	assert_int_equal(postgres_store_check(acme, "other", "key", &outcome), HAPAX_ERR_INVALID);
	struct hapax_op look = {
		.type = HAPAX_OP_LOOKUP,
		.tenant = hapax_bytes_from_text("other"),
		.key = hapax_bytes_from_text("key"),
	};
	assert_int_equal(hapax_store_run(acme, &look, 1, NULL), HAPAX_OK);
	assert_int_equal(look.outcome, HAPAX_OUTCOME_ABSENT);
	look.type = HAPAX_OP_CHECK;
	assert_int_equal(hapax_store_run(acme, &look, 1, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "?tenant="));
	assert_int_equal(postgres_store_check(acme, "acme", "key", &outcome), HAPAX_OK);
	assert_int_equal(outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(postgres_store_check(acme, "acme", "key", &outcome), HAPAX_OK);
	assert_int_equal(outcome, HAPAX_OUTCOME_REPLAY);
	struct hapax_stats stats = HAPAX_STATS_INIT;
	assert_int_equal(hapax_store_stats(acme, &stats, NULL, NULL, &err), HAPAX_OK);
	assert_int_equal(stats.keys, 1);
	assert_int_equal(hapax_store_stats(all, &stats, NULL, NULL, &err), HAPAX_OK);
	assert_int_equal(stats.keys, 2);

	/* The same by SQL; and no tenant at all is said, not guessed. */
	postgres_case_query(conn, "SET ROLE app; SET search_path = rls; SET hapax.tenant = 'acme'");
	assert_int_equal(postgres_case_number(conn, "SELECT count(*) FROM hapax_record"), 1);
	assert_string_equal(postgres_case_query(conn, "SELECT hapax_check('key')"), "replay");
	/* '*' is the owner's. */
	postgres_case_query(conn, "SET hapax.tenant = '*'");
	assert_int_equal(postgres_case_number(conn, "SELECT count(*) FROM hapax_record"), 0);
	postgres_case_query(conn, "RESET hapax.tenant");
	result = PQexec(conn, "SELECT hapax_check('key')");
	assert_string_equal(PQresultErrorField(result, PG_DIAG_SQLSTATE), "HX005");
	assert_non_null(
		strstr(PQresultErrorField(result, PG_DIAG_MESSAGE_HINT), "SET hapax.tenant"));
	PQclear(result);
	result = PQexec(conn, "SELECT hapax_check('key', p_tenant => 'other')");
	assert_int_equal(PQresultStatus(result), PGRES_FATAL_ERROR);
	PQclear(result);
	hapax_store_close(acme);
	hapax_store_close(all);
	PQfinish(conn);
}

/* ---------------------------------------------------------------- months */

/* Large results lie in the month of their expiry, and go with it. */
static void results_go_with_their_month(void **state)
{
	static char body[4000];
	PGconn *conn = postgres_case_connect();
	struct store_case c;
	struct hapax_result result = {.kind = HAPAX_RESULT_BYTES, .body = {body, sizeof(body)}};
	char sql[256];

	(void)state;
	memset(body, 'x', sizeof(body));
	store_case_begin(&c, "postgres:");
	case_sweep(&c); /* makes the months of the virtual clock */
	snprintf(
		sql, sizeof(sql), "SELECT count(*) FROM \"%s\".hapax_result_202601",
		strstr(c.url, "schema=") + 7);
	struct hapax_op op = case_op(&c, HAPAX_OP_SET, "large");
	op.result = &result;
	assert_int_equal(case_run(&c, &op), HAPAX_OK);
	assert_int_equal(postgres_case_number(conn, sql), 1);
	assert_int_equal(case_state(&c, "large"), HAPAX_STATE_DONE);
	assert_int_equal(c.record.result.body.size, sizeof(body));
	assert_memory_equal(c.record.result.body.data, body, sizeof(body));
	store_case_advance(&c, INT64_C(40) * 86400 * 1000);
	assert_int_equal(case_sweep(&c).removed, 1);
	snprintf(
		sql, sizeof(sql), "SELECT to_regclass('\"%s\".hapax_result_202601') IS NULL",
		strstr(c.url, "schema=") + 7);
	assert_string_equal(postgres_case_query(conn, "%s", sql), "t");
	store_case_done(&c);
	PQfinish(conn);
}

static int create_role(void **state)
{
	PGconn *conn = postgres_case_connect();

	(void)state;
	postgres_case_query(
		conn, "DROP ROLE IF EXISTS app; CREATE ROLE app LOGIN PASSWORD 'right'");
	PQfinish(conn);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_are_checked),
		cmocka_unit_test(a_migration_that_is_lost_is_not_judged),
		cmocka_unit_test(search_path_is_no_trap),
		cmocka_unit_test(version_1_is_migrated),
		cmocka_unit_test(grants_survive_a_migration),
		cmocka_unit_test(version_3_is_migrated),
		cmocka_unit_test(tenants_are_apart),
		cmocka_unit_test(results_go_with_their_month),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests(tests, create_role, NULL);
}
