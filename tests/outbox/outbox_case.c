/* SPDX-License-Identifier: Apache-2.0 */
#include "outbox/outbox_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if HX_HAVE_SQLITE
#include <sqlite3.h>
#endif
#if HX_HAVE_POSTGRES
#include <libpq-fe.h>

#include "support/postgres_case.h"
#endif

static void give_up(const char *what, const char *why)
{
	(void)fprintf(stderr, "# %s: %s\n", what, why);
	abort();
}

static void join(struct outbox_case *c)
{
	struct hapax_error err = {0};
	enum hapax_status status = HAPAX_ERR_UNSUPPORTED;

#if HX_HAVE_POSTGRES
	if (c->is_postgres) {
		c->db = postgres_case_connect();
		PQclear(PQexec(c->db, "SET search_path = outbox_case"));
		status = hapax_outbox_join_postgres(c->db, &c->joined, &err);
	}
#endif
#if HX_HAVE_SQLITE
	if (!c->is_postgres) {
		sqlite3 *db = NULL;

		if (sqlite3_open(c->url + strlen("sqlite:"), &db) != SQLITE_OK)
			give_up("open", "sqlite");
		(void)sqlite3_busy_timeout(db, 60000);
		c->db = db;
		status = hapax_outbox_join_sqlite(db, &c->joined, &err);
	}
#endif
	if (status != HAPAX_OK)
		give_up("join", err.message);
}

void outbox_case_init(struct outbox_case *c, const char *kind)
{
	struct hapax_error err;

	memset(c, 0, sizeof(*c));
	c->is_postgres = strcmp(kind, "postgres:") == 0;
	temp_dir_init(&c->dir);
	(void)snprintf(c->url, sizeof(c->url), "sqlite:%s/shop.db", c->dir.path);
#if HX_HAVE_POSTGRES
	if (c->is_postgres) {
		PGconn *conn = postgres_case_connect();

		(void)postgres_case_query(conn, "DROP SCHEMA IF EXISTS outbox_case CASCADE");
		PQfinish(conn);
		postgres_case_url(c->url, sizeof(c->url), "&schema=outbox_case");
	}
#endif
	if (hapax_outbox_init(c->url, NULL, &err) != HAPAX_OK)
		give_up("init", err.message);
	join(c);
	/* As a business would have it; without a sync, since these tests cut no power. */
	if (!c->is_postgres)
		outbox_case_run(c, "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF");
	outbox_case_run(c, "CREATE TABLE {}orders (id TEXT PRIMARY KEY)");
}

void outbox_case_join(const struct outbox_case *c, struct outbox_case *other)
{
	*other = *c;
	join(other);
	if (!c->is_postgres)
		outbox_case_run(other, "PRAGMA synchronous = OFF");
}

void outbox_case_leave(struct outbox_case *c)
{
	hapax_outbox_close(c->joined);
#if HX_HAVE_POSTGRES
	if (c->is_postgres)
		PQfinish(c->db);
#endif
#if HX_HAVE_SQLITE
	if (!c->is_postgres)
		(void)sqlite3_close(c->db);
#endif
}

void outbox_case_done(struct outbox_case *c)
{
	outbox_case_leave(c);
	temp_dir_done(&c->dir);
}

/* "{}" becomes the schema. */
static void expand(const struct outbox_case *c, const char *sql, char *out, size_t size)
{
	const char *schema = c->is_postgres ? "outbox_case." : "main.";
	size_t held = 0;

	while (*sql != '\0' && held + strlen(schema) + 1 < size) {
		if (strncmp(sql, "{}", 2) == 0) {
			held += (size_t)snprintf(out + held, size - held, "%s", schema);
			sql += 2;
		} else {
			out[held++] = *sql++;
		}
	}
	out[held] = '\0';
}

/* The first value into out, unless that is NULL. */
static bool ask(struct outbox_case *c, const char *sql, char *out, size_t size)
{
	char text[4096];
	bool is_good = false;

	expand(c, sql, text, sizeof(text));
	if (out != NULL)
		out[0] = '\0';
#if HX_HAVE_POSTGRES
	if (c->is_postgres) {
		PGresult *result = PQexec(c->db, text);
		ExecStatusType kind = PQresultStatus(result);

		is_good = kind == PGRES_TUPLES_OK || kind == PGRES_COMMAND_OK;
		if (is_good && out != NULL && PQntuples(result) > 0)
			(void)snprintf(out, size, "%s", PQgetvalue(result, 0, 0));
		PQclear(result);
	}
#endif
#if HX_HAVE_SQLITE
	if (!c->is_postgres && out == NULL)
		is_good = sqlite3_exec(c->db, text, NULL, NULL, NULL) == SQLITE_OK;
	if (!c->is_postgres && out != NULL) {
		sqlite3_stmt *statement = NULL;
		int code = sqlite3_prepare_v2(c->db, text, -1, &statement, NULL);

		if (code == SQLITE_OK)
			code = sqlite3_step(statement);
		is_good = code == SQLITE_ROW || code == SQLITE_DONE;
		if (code == SQLITE_ROW && sqlite3_column_text(statement, 0) != NULL)
			(void)snprintf(
				out, size, "%s", (const char *)sqlite3_column_text(statement, 0));
		(void)sqlite3_finalize(statement);
	}
#endif
	return is_good;
}

bool outbox_case_try(struct outbox_case *c, const char *sql)
{
	return ask(c, sql, NULL, 0);
}

void outbox_case_run(struct outbox_case *c, const char *sql)
{
	if (!outbox_case_try(c, sql))
		give_up("SQL", sql);
}

void outbox_case_text(struct outbox_case *c, const char *sql, char *out, size_t size)
{
	if (!ask(c, sql, out, size))
		give_up("SQL", sql);
}

int64_t outbox_case_number(struct outbox_case *c, const char *sql)
{
	char text[64];

	outbox_case_text(c, sql, text, sizeof(text));
	return strtoll(text, NULL, 10);
}

void outbox_case_add(
	struct outbox_case *c, const char *topic, const char *key, const char *id,
	const char *payload)
{
	struct hapax_outbox_event event = HAPAX_OUTBOX_EVENT_INIT;
	struct hapax_error err;

	event.topic = hapax_bytes_from_text(topic);
	event.ordering_key = hapax_bytes_from_text(key);
	event.id = hapax_bytes_from_text(id);
	event.payload = hapax_bytes_from_text(payload);
	if (hapax_outbox_add(c->joined, &event, NULL, &err) != HAPAX_OK)
		give_up("add", err.message);
}
