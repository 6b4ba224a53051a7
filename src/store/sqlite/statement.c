/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statement.c - every SQL statement that runs more than once.
 */
#include "store/sqlite/statement.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "base/bytes.h"
#include "store/sqlite/sqlite_connection.h"
#include "store/sqlite/row.h"

static const char *const texts[HX_SQLITE_STATEMENT_COUNT] = {
	[HX_SQLITE_BEGIN_READ] = "BEGIN",
	[HX_SQLITE_BEGIN_WRITE] = "BEGIN IMMEDIATE",
	[HX_SQLITE_COMMIT] = "COMMIT",
	[HX_SQLITE_ROLLBACK] = "ROLLBACK",
	[HX_SQLITE_SAVEPOINT] = "SAVEPOINT hapax",
	[HX_SQLITE_SAVEPOINT_RELEASE] = "RELEASE hapax",
	[HX_SQLITE_SAVEPOINT_ROLLBACK] = "ROLLBACK TO hapax",

	[HX_SQLITE_META_LOAD] =
		"SELECT version, token, claimed, done, failed, parked, store_ms, boot_ms, owed_ms, boot_id"
		" FROM main.hapax_meta WHERE id = 1",
	[HX_SQLITE_META_SAVE] =
		"UPDATE main.hapax_meta SET token = ?1, claimed = ?2, done = ?3, failed = ?4, parked = ?5,"
		" store_ms = ?6, boot_ms = ?7, owed_ms = ?8, boot_id = ?9 WHERE id = 1",

	[HX_SQLITE_RECORD_FIND] =
		"SELECT " HX_SQLITE_ROW_WITHOUT_RESULT
		" FROM main.hapax_record WHERE tenant = ?1 AND grp = ?2 AND key = ?3",
	[HX_SQLITE_RECORD_FIND_WHOLE] =
		"SELECT " HX_SQLITE_ROW_WHOLE
		" FROM main.hapax_record WHERE tenant = ?1 AND grp = ?2 AND key = ?3",
	[HX_SQLITE_RECORD_READ_WHOLE] =
		"SELECT " HX_SQLITE_ROW_WHOLE " FROM main.hapax_record WHERE id = ?1",
	[HX_SQLITE_RECORD_INSERT] =
		"INSERT INTO main.hapax_record (state, origin, on_lapse, attempt, token, first_seen_ms,"
		" changed_ms, lease_ends_ms, due_ms, ttl_ms, fingerprint, attempt_id, owner, error,"
		" result_kind, result_class, result_status, result_omitted, result_headers, result_body,"
		" cause, tenant, grp, key) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,"
		" ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)",
	[HX_SQLITE_RECORD_UPDATE] =
		"UPDATE main.hapax_record SET state = ?1, origin = ?2, on_lapse = ?3, attempt = ?4,"
		" token = ?5, first_seen_ms = ?6, changed_ms = ?7, lease_ends_ms = ?8, due_ms = ?9,"
		" ttl_ms = ?10, fingerprint = ?11, attempt_id = ?12, owner = ?13, error = ?14,"
		" result_kind = ?15, result_class = ?16, result_status = ?17, result_omitted = ?18,"
		" result_headers = ?19, result_body = ?20, cause = ?21 WHERE id = ?22",
	[HX_SQLITE_RECORD_DELETE] = "DELETE FROM main.hapax_record WHERE id = ?1",

	[HX_SQLITE_DUE_NEXT] =
		"SELECT " HX_SQLITE_ROW_WITHOUT_RESULT ", tenant, grp, key"
		" FROM main.hapax_record WHERE due_ms <= ?1 ORDER BY due_ms LIMIT 1 OFFSET ?2",
	[HX_SQLITE_DUE_COUNT] =
		"SELECT count(*) FROM (SELECT state FROM main.hapax_record WHERE due_ms <= ?1 LIMIT ?2)"
		" WHERE state <> 1",

	[HX_SQLITE_SCOPE_PARKED] =
		"SELECT parked FROM main.hapax_scope WHERE tenant = ?1 AND grp = ?2",
	[HX_SQLITE_SCOPE_PARK] =
		"INSERT INTO main.hapax_scope (tenant, grp, parked) VALUES (?1, ?2, 1)"
		" ON CONFLICT DO UPDATE SET parked = parked + 1",
	[HX_SQLITE_SCOPE_UNPARK] =
		"UPDATE main.hapax_scope SET parked = parked - 1 WHERE tenant = ?1 AND grp = ?2",
	[HX_SQLITE_SCOPE_DROP] =
		"DELETE FROM main.hapax_scope WHERE tenant = ?1 AND grp = ?2 AND parked = 0",

	[HX_SQLITE_SCAN_ALL] =
		"SELECT id, state, due_ms, tenant, grp, key FROM main.hapax_record"
		" WHERE (tenant, grp, key) >= (?1, ?2, ?3) ORDER BY tenant, grp, key LIMIT ?4",
	[HX_SQLITE_SCAN_TENANT] =
		"SELECT id, state, due_ms, tenant, grp, key FROM main.hapax_record"
		" WHERE tenant = ?1 AND (grp, key) >= (?2, ?3) ORDER BY grp, key LIMIT ?4",
	[HX_SQLITE_SCAN_SCOPE] =
		"SELECT id, state, due_ms, tenant, grp, key FROM main.hapax_record"
		" WHERE tenant = ?1 AND grp = ?2 AND key >= ?3 ORDER BY key LIMIT ?4",

	[HX_SQLITE_COUNTER_ADD] =
		"INSERT INTO main.hapax_counter (hour_ms, tenant, grp, acquired, replay, in_progress,"
		" mismatch, parked, fenced, completed, released, unverified, limited, forgotten)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
		" ON CONFLICT DO UPDATE SET acquired = acquired + excluded.acquired,"
		" replay = replay + excluded.replay, in_progress = in_progress + excluded.in_progress,"
		" mismatch = mismatch + excluded.mismatch, parked = parked + excluded.parked,"
		" fenced = fenced + excluded.fenced, completed = completed + excluded.completed,"
		" released = released + excluded.released, unverified = unverified + excluded.unverified,"
		" limited = limited + excluded.limited, forgotten = forgotten + excluded.forgotten",
	[HX_SQLITE_COUNTER_DROP] = "DELETE FROM main.hapax_counter WHERE hour_ms < ?1",
	[HX_SQLITE_COUNTER_SUM] =
		"SELECT sum(acquired), sum(replay), sum(in_progress), sum(mismatch), sum(parked),"
		" sum(fenced), sum(completed), sum(released), sum(unverified), sum(limited),"
		" sum(forgotten) FROM main.hapax_counter",
	[HX_SQLITE_COUNTER_LIST] =
		"SELECT hour_ms, tenant, grp, acquired, replay, in_progress, mismatch, parked, fenced,"
		" completed, released, unverified, limited, forgotten FROM main.hapax_counter"
		" WHERE (hour_ms, tenant, grp) > (?1, ?2, ?3) ORDER BY hour_ms, tenant, grp LIMIT ?4",

	[HX_SQLITE_PAGE_COUNT] = "PRAGMA main.page_count",
	[HX_SQLITE_PAGE_FREE] = "PRAGMA main.freelist_count",
	[HX_SQLITE_PAGE_SIZE] = "PRAGMA main.page_size",
};

int hx_sqlite_statement(
	struct hx_sqlite_connection *connection, enum hx_sqlite_statement which,
	sqlite3_stmt **ret_statement)
{
	sqlite3_stmt **slot = &connection->statements[which];

	if (*slot == NULL) {
		const char *text = texts[which];
		int code;

		assert(text != NULL);
		code = sqlite3_prepare_v3(
			connection->db, text, (int)strlen(text) + 1, SQLITE_PREPARE_PERSISTENT,
			slot, NULL);
		if (code != SQLITE_OK)
			return code;
	}
	*ret_statement = *slot;
	return SQLITE_OK;
}

int hx_sqlite_finish(sqlite3_stmt *statement)
{
	int code = sqlite3_step(statement);

	assert(code != SQLITE_ROW);
	(void)sqlite3_reset(statement);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

int hx_sqlite_run(struct hx_sqlite_connection *connection, enum hx_sqlite_statement which)
{
	sqlite3_stmt *statement;
	int code = hx_sqlite_statement(connection, which, &statement);

	return code == SQLITE_OK ? hx_sqlite_finish(statement) : code;
}

int hx_sqlite_run_number(
	struct hx_sqlite_connection *connection, enum hx_sqlite_statement which,
	int64_t *ret_number)
{
	sqlite3_stmt *statement;
	int code = hx_sqlite_statement(connection, which, &statement);

	if (code != SQLITE_OK)
		return code;
	code = sqlite3_step(statement);
	if (code == SQLITE_ROW) {
		*ret_number = sqlite3_column_int64(statement, 0);
		code = SQLITE_OK;
	} else if (code == SQLITE_DONE) {
		code = SQLITE_CORRUPT;
	}
	(void)sqlite3_reset(statement);
	return code;
}

int hx_sqlite_bind_bytes(sqlite3_stmt *statement, int index, struct hapax_bytes bytes)
{
	assert(bytes.size <= INT_MAX);
	if (bytes.size == 0)
		return sqlite3_bind_zeroblob(statement, index, 0);
	return sqlite3_bind_blob(statement, index, bytes.data, (int)bytes.size, SQLITE_STATIC);
}

int hx_sqlite_column_bytes(sqlite3_stmt *statement, int index, struct hapax_bytes *ret_bytes)
{
	/* In this order: reading the blob first fixes its form. */
	const void *data = sqlite3_column_blob(statement, index);
	int size = sqlite3_column_bytes(statement, index);

	if (size > 0 && data == NULL)
		return SQLITE_NOMEM;
	if (data == NULL && sqlite3_errcode(sqlite3_db_handle(statement)) == SQLITE_NOMEM)
		return SQLITE_NOMEM;
	*ret_bytes = hx_bytes(data, (size_t)size);
	return SQLITE_OK;
}

void hx_sqlite_statements_done(struct hx_sqlite_connection *connection)
{
	for (size_t i = 0; i < HX_SQLITE_STATEMENT_COUNT; i++) {
		(void)sqlite3_finalize(connection->statements[i]);
		connection->statements[i] = NULL;
	}
}
