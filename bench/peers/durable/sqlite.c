/* SPDX-License-Identifier: Apache-2.0 */
/* outbox_sqlite.c - SQLite: WAL, synchronous = FULL, INSERT OR IGNORE; a connection for each thread. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "contest.h"
#include "durable.h"

struct connection {
	sqlite3 *db;
	sqlite3_stmt *insert;
};

static struct connection *connections;
static uint64_t connection_count;

static void must(sqlite3 *db, int code, int expected, const char *what)
{
	if (code != expected)
		contest_fail("%s: %s", what, sqlite3_errmsg(db));
}

static void run(sqlite3 *db, const char *sql)
{
	must(db, sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK, sql);
}

static void engine_open(const char *folder, uint64_t threads)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/keys.db", folder);
	connection_count = threads;
	connections = calloc(threads, sizeof(*connections));
	if (connections == NULL)
		contest_fail("no memory");
	for (uint64_t i = 0; i < threads; i++) {
		struct connection *c = &connections[i];

		must(c->db, sqlite3_open(path, &c->db), SQLITE_OK, "open");
		sqlite3_busy_timeout(c->db, 600000);
		run(c->db, "PRAGMA journal_mode = WAL");
		run(c->db, "PRAGMA synchronous = FULL");
		run(c->db,
		    "CREATE TABLE IF NOT EXISTS keys (key BLOB PRIMARY KEY, expires INTEGER)"
		    " WITHOUT ROWID");
		must(c->db,
		     sqlite3_prepare_v2(
			     c->db, "INSERT OR IGNORE INTO keys VALUES (?, 86400)", -1, &c->insert,
			     NULL),
		     SQLITE_OK, "prepare");
	}
}

static uint64_t engine_mark(uint64_t thread, const char (*keys)[KEY_TEXT_SIZE], uint64_t count)
{
	struct connection *c = &connections[thread];
	uint64_t firsts = 0;

	run(c->db, "BEGIN IMMEDIATE");
	for (uint64_t i = 0; i < count; i++) {
		sqlite3_bind_blob(c->insert, 1, keys[i], KEY_TEXT_SIZE, SQLITE_STATIC);
		must(c->db, sqlite3_step(c->insert), SQLITE_DONE, "insert");
		firsts += sqlite3_changes(c->db) == 1;
		sqlite3_reset(c->insert);
	}
	run(c->db, "COMMIT");
	return firsts;
}

static void engine_close(void)
{
	for (uint64_t i = 0; i < connection_count; i++) {
		sqlite3_finalize(connections[i].insert);
		sqlite3_close(connections[i].db);
	}
	free(connections);
}

int main(int argc, char **argv)
{
	const struct durable_engine engine = {
		.name = "SQLite",
		.version = sqlite3_libversion(),
		.open = engine_open,
		.mark = engine_mark,
		.close = engine_close,
	};

	return durable_main(argc, argv, &engine);
}
