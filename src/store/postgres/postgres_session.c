/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_session.c - the greeting: statements before the first operation.
 */
#include "store/postgres/postgres_session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/postgres/postgres_fault.h"
#include "store/postgres/postgres_operation.h"

enum { SERVER_VERSION_MIN = 140000 };

enum step {
	STEP_SERVER, /* session settings; server properties; is there a ledger? */
	STEP_LEDGER, /* its version, and the test clock */
	STEP_PREPARE,
};

/* Columns of STEP_SERVER. */
enum server {
	SERVER_VERSION,
	SERVER_IS_STANDBY,
	SERVER_SYNCS,
	SERVER_WRITES_WHOLE_PAGES,
	SERVER_IS_LOGGED,
	SERVER_HAS_SYNC_STANDBYS,
	SERVER_COMMIT,
	SERVER_HAS_LEDGER,
	SERVER_SEES_ALL,
	SERVER_ROLE,
	SERVER_COLUMNS = SERVER_ROLE + 7, /* each setting returns a column, too */
};

/* From SERVER_SYNCS to SERVER_HAS_SYNC_STANDBYS; $1 is a table of the ledger. */
#define SURVIVAL_COLUMNS                                                                \
	" current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on'," \
	" NOT EXISTS (SELECT FROM pg_class c WHERE c.relname LIKE 'hapax\\_re%' AND"    \
	" c.relpersistence <> 'p' AND c.relnamespace ="                                 \
	" (SELECT m.relnamespace FROM pg_class m WHERE m.oid = to_regclass($1))),"      \
	" current_setting('synchronous_standby_names') <> '',"

/*
 * Our sessions commit durably whatever the default is, read committed data, and wait no longer
 * than their caller. The planner does not see that a generic plan prunes partitions when it runs,
 * and would plan again for every call, so generic plans are forced. A quarter of the timeout is
 * enough to detect that another transaction holds a record. Only the server's own functions are
 * visible: otherwise a role that can create functions in a schema of the search_path could have
 * us run them.
 */
static const char server_sql[] =
	"SELECT current_setting('server_version_num')::int, pg_is_in_recovery()," SURVIVAL_COLUMNS
	" CASE WHEN current_setting('synchronous_commit') = 'off'"
	" THEN set_config('synchronous_commit', 'on', false)"
	" ELSE current_setting('synchronous_commit') END,"
	" to_regclass($1) IS NOT NULL,"
	" coalesce((SELECT pg_has_role(c.relowner, 'USAGE') FROM pg_class c WHERE c.oid = to_regclass($1)), false)"
	" OR (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user),"
	" current_user::text,"
	" set_config('hapax.tenant', $2, false), set_config('lock_timeout', $3, false),"
	" set_config('statement_timeout', $4, false),"
	" set_config('default_transaction_isolation', 'read committed', false),"
	" set_config('plan_cache_mode', 'force_generic_plan', false),"
	" set_config('search_path', 'pg_catalog', false)";

void hx_postgres_session_init(
	struct hx_postgres_session *session, const struct hx_postgres_place *place,
	int64_t timeout_ms, const struct hapax_clock *clock)
{
	memset(session, 0, sizeof(*session));
	session->place = place;
	session->timeout_ms = timeout_ms;
	session->must_be_durable = place->requires_durable;
	session->clock = clock == hapax_clock_system() ? NULL : clock;
	hx_buf_init(&session->sql, 64 * 1024);
}

void hx_postgres_session_done(struct hx_postgres_session *session)
{
	hx_buf_done(&session->sql);
}

int64_t hx_postgres_session_now_ms(const struct hx_postgres_session *session)
{
	const struct hapax_clock *clock = session->clock;

	return clock == NULL ? -1 : session->epoch_ms + clock->boot_ms(clock->context);
}

static enum hapax_status no_memory(struct hapax_error *err)
{
	return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to greet PostgreSQL");
}

static bool say_server(struct hx_postgres_session *session, PGconn *conn)
{
	const struct hx_postgres_place *place = session->place;
	char lock_ms[24], statement_ms[24];
	const char *values[4] = {NULL, place->tenant, lock_ms, statement_ms};
	int64_t wait_ms = session->timeout_ms / 4;

	if (hx_postgres_sql_append(&session->sql, place->schema, "@@hapax_meta") != HAPAX_OK)
		return false;
	values[0] = (const char *)session->sql.data;
	if (place->tenant[0] == '\0')
		values[1] = "*";
	(void)snprintf(lock_ms, sizeof(lock_ms), "%" PRId64, wait_ms < 1 ? 1 : wait_ms);
	(void)snprintf(statement_ms, sizeof(statement_ms), "%" PRId64, session->timeout_ms);
	return PQsendQueryParams(conn, server_sql, 4, NULL, values, NULL, NULL, 0) == 1;
}

enum hapax_status hx_postgres_session_ledger_sql(struct hx_postgres_session *session)
{
	const struct hapax_clock *clock = session->clock;
	char text[160] = "SELECT version, epoch_ms FROM @@hapax_meta";

	if (clock != NULL)
		(void)snprintf(
			text, sizeof(text),
			"UPDATE @@hapax_meta SET epoch_ms = coalesce(epoch_ms, %" PRId64
			") RETURNING version, epoch_ms",
			clock->wall_ms(clock->context) - clock->boot_ms(clock->context));
	hx_buf_clear(&session->sql);
	return hx_postgres_sql_append(&session->sql, session->place->schema, text);
}

static bool say_ledger(struct hx_postgres_session *session, PGconn *conn)
{
	return hx_postgres_session_ledger_sql(session) == HAPAX_OK &&
		PQsendQueryParams(
			conn, (const char *)session->sql.data, 0, NULL, NULL, NULL, NULL, 0) == 1;
}

static bool say_prepare(struct hx_postgres_session *session, PGconn *conn)
{
	if (hx_postgres_call_append(
		    &session->sql, session->place->schema, "hapax_operate",
		    HX_POSTGRES_ARGUMENTS) != HAPAX_OK)
		return false;
	return PQsendPrepare(
		       conn, HX_POSTGRES_OPERATE, (const char *)session->sql.data,
		       HX_POSTGRES_ARGUMENTS, hx_postgres_argument_types) == 1;
}

enum hapax_status hx_postgres_session_say(
	struct hx_postgres_session *session, PGconn *conn, unsigned step, struct hapax_error *err)
{
	bool is_said = false;

	hx_buf_clear(&session->sql);
	switch ((enum step)step) {
	case STEP_SERVER: is_said = say_server(session, conn); break;
	case STEP_LEDGER: is_said = say_ledger(session, conn); break;
	case STEP_PREPARE: is_said = say_prepare(session, conn); break;
	}
	return is_said ? HAPAX_OK : no_memory(err);
}

static bool is_true(const PGresult *result, int column)
{
	return strcmp(PQgetvalue(result, 0, column), "t") == 0;
}

enum hapax_status hx_postgres_version_error(
	int64_t version, const char *schema, struct hapax_error *err)
{
	if (version == 0)
		return hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0,
			"schema '%s' has no hapax tables; run 'hapax store migrate URL'", schema);
	if (version < 0)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"hapax_meta in schema '%s' has no version: it was changed by another "
			"program; restore it, or choose another schema in the URL",
			schema);
	if (version < HX_POSTGRES_VERSION)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"the store has version %" PRId64 ", and this hapax needs %d; run 'hapax "
			"store migrate URL'",
			version, HX_POSTGRES_VERSION);
	return hx_error_set(
		err, HAPAX_ERR_UNSUPPORTED, 0,
		"the store has version %" PRId64 ", and this hapax supports up to %d; use a "
		"newer hapax",
		version, HX_POSTGRES_VERSION);
}

bool hx_postgres_guarantee(
	const struct hx_postgres_server *server, char guarantee[HX_POSTGRES_GUARANTEE_SIZE])
{
	bool is_relaxed = strcmp(server->commit, "off") == 0;
	bool is_durable =
		server->syncs && server->writes_whole_pages && server->is_logged && !is_relaxed;
	const char *text;

	if (!server->syncs)
		text = "a power cut may lose or damage everything (fsync = off)";
	else if (!server->writes_whole_pages)
		text = "a power cut may damage the store (full_page_writes = off)";
	else if (!server->is_logged)
		text = "a crash of the server empties the store (one of its tables is UNLOGGED)";
	else if (is_relaxed)
		text = "a power cut or a crash of the server may lose the latest answers "
		       "(synchronous_commit = off)";
	else if (!server->has_sync_standbys)
		text = "answers survive a power cut; a failover may lose answers that no "
		       "standby has yet";
	else if (strcmp(server->commit, "local") == 0)
		text = "answers survive a power cut; a failover may lose answers that no "
		       "standby has yet (synchronous_commit = local)";
	else if (strcmp(server->commit, "remote_write") == 0)
		text = "answers survive a power cut, and the loss of the primary unless the "
		       "host of the standby fails with it";
	else
		text = "answers survive a power cut, and the loss of the primary: a standby has"
		       " synced them";
	(void)snprintf(guarantee, HX_POSTGRES_GUARANTEE_SIZE, "%s", text);
	return is_durable;
}

/* The settings begin at column first. */
static void take_guarantee(struct hx_postgres_session *session, const PGresult *result, int first)
{
	const char *commit = PQgetvalue(result, 0, first + SERVER_COMMIT - SERVER_SYNCS);
	struct hx_postgres_server server = {
		.syncs = is_true(result, first),
		.writes_whole_pages =
			is_true(result, first + SERVER_WRITES_WHOLE_PAGES - SERVER_SYNCS),
		.is_logged = is_true(result, first + SERVER_IS_LOGGED - SERVER_SYNCS),
		.has_sync_standbys =
			is_true(result, first + SERVER_HAS_SYNC_STANDBYS - SERVER_SYNCS),
	};

	(void)snprintf(server.commit, sizeof(server.commit), "%s", commit);
	session->is_durable = hx_postgres_guarantee(&server, session->guarantee);
}

/* Check the form of any server's reply: one row with that many columns. */
static bool has_form(const PGresult *result, int columns)
{
	return PQntuples(result) == 1 && PQnfields(result) == columns;
}

static enum hapax_status refuse_form(struct hapax_error *err)
{
	return hx_error_set(
		err, HAPAX_ERR_UNAVAILABLE, 0,
		"unexpected answer from the server; check that it is PostgreSQL");
}

enum hapax_status hx_postgres_session_look(
	struct hx_postgres_session *session, PGconn *conn, struct hapax_error *err)
{
	const char *values[1];
	enum hapax_status status = HAPAX_OK;
	PGresult *result;

	hx_buf_clear(&session->sql);
	if (hx_postgres_sql_append(&session->sql, session->place->schema, "@@hapax_meta") !=
	    HAPAX_OK)
		return no_memory(err);
	values[0] = (const char *)session->sql.data;
	result = PQexecParams(
		conn, "SELECT" SURVIVAL_COLUMNS " current_setting('synchronous_commit')", 1, NULL,
		values, NULL, NULL, 0);
	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		status = hx_postgres_result_error(
			result, "could not read the settings of the server", err);
	else if (!has_form(result, SERVER_COMMIT - SERVER_SYNCS + 1))
		status = refuse_form(err);
	else
		take_guarantee(session, result, 0);
	PQclear(result);
	return status;
}

static enum hapax_status take_server(
	struct hx_postgres_session *session, const PGresult *result, struct hapax_error *err)
{
	if (!has_form(result, SERVER_COLUMNS))
		return refuse_form(err);
	if (strtol(PQgetvalue(result, 0, SERVER_VERSION), NULL, 10) < SERVER_VERSION_MIN)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"PostgreSQL is too old: version 14 or later is required");
	if (is_true(result, SERVER_IS_STANDBY))
		return hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0,
			"the server is a standby; use the primary, or add "
			"?target_session_attrs=read-write");
	take_guarantee(session, result, SERVER_SYNCS);
	if (session->must_be_durable && !session->is_durable)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"the store must be durable, but on this server %s; change that, or "
			"remove ?require=durable",
			session->guarantee);
	if (!is_true(result, SERVER_HAS_LEDGER))
		return hx_postgres_version_error(0, session->place->schema, err);
	if (session->place->tenant[0] == '\0' && !is_true(result, SERVER_SEES_ALL))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"role '%.63s' does not own the store and sees one tenant at a time; add "
			"?tenant=NAME to the URL, or GRANT it the owner's role",
			PQgetvalue(result, 0, SERVER_ROLE));
	return HAPAX_OK;
}

enum hapax_status hx_postgres_session_take_ledger(
	struct hx_postgres_session *session, const PGresult *result, struct hapax_error *err)
{
	int64_t version = -1;

	if (PQnfields(result) != 2)
		return refuse_form(err);
	if (PQntuples(result) == 1)
		version = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
	if (version != HX_POSTGRES_VERSION)
		return hx_postgres_version_error(version, session->place->schema, err);
	if (session->clock != NULL)
		session->epoch_ms = strtoll(PQgetvalue(result, 0, 1), NULL, 10);
	return HAPAX_OK;
}

enum hapax_status hx_postgres_session_reply(
	struct hx_postgres_session *session, const PGresult *result, unsigned step,
	struct hapax_error *err)
{
	ExecStatusType kind = PQresultStatus(result);

	if (kind != PGRES_TUPLES_OK && kind != PGRES_COMMAND_OK)
		return hx_postgres_result_error(result, "could not open the store", err);
	switch ((enum step)step) {
	case STEP_SERVER: return take_server(session, result, err);
	case STEP_LEDGER: return hx_postgres_session_take_ledger(session, result, err);
	case STEP_PREPARE: break;
	}
	return HAPAX_OK;
}
