/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meta.c - the one row of the ledger that every transaction reads first.
 */
#include "store/sqlite/meta.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/limits.h"

/* The columns of HX_SQLITE_META_LOAD. */
enum {
	LOAD_VERSION,
	LOAD_TOKEN,
	LOAD_CLAIMED, /* and the states after it, in the order of enum hapax_state */
	LOAD_STORE_MS = LOAD_CLAIMED + HAPAX_STATE_PARKED,
	LOAD_BOOT_MS,
	LOAD_OWED_MS,
	LOAD_BOOT_ID,
};

static int read_row(sqlite3_stmt *statement, struct hx_sqlite_meta *meta)
{
	struct hapax_bytes boot_id;
	int64_t token = sqlite3_column_int64(statement, LOAD_TOKEN);
	int code = hx_sqlite_column_bytes(statement, LOAD_BOOT_ID, &boot_id);

	if (code != SQLITE_OK)
		return code;
	meta->version = sqlite3_column_int64(statement, LOAD_VERSION);
	meta->token = (uint64_t)token;
	meta->counts[HAPAX_STATE_ABSENT] = 0;
	for (int i = HAPAX_STATE_CLAIMED; i <= HAPAX_STATE_PARKED; i++)
		meta->counts[i] = (uint64_t)sqlite3_column_int64(
			statement, LOAD_CLAIMED + i - HAPAX_STATE_CLAIMED);
	meta->mark.store_ms = sqlite3_column_int64(statement, LOAD_STORE_MS);
	meta->mark.boot_ms = sqlite3_column_int64(statement, LOAD_BOOT_MS);
	meta->mark.owed_ms = sqlite3_column_int64(statement, LOAD_OWED_MS);
	if (boot_id.size != sizeof(meta->mark.boot_id) || token < 0 ||
	    (uint64_t)token > HX_TOKEN_MAX || meta->mark.owed_ms < 0)
		return SQLITE_CORRUPT;
	memcpy(meta->mark.boot_id, boot_id.data, boot_id.size);
	return SQLITE_OK;
}

int hx_sqlite_meta_load(struct hx_sqlite_connection *connection, struct hx_sqlite_meta *ret_meta)
{
	sqlite3_stmt *statement;
	int code = hx_sqlite_statement(connection, HX_SQLITE_META_LOAD, &statement);

	if (code != SQLITE_OK)
		return code;
	code = sqlite3_step(statement);
	if (code == SQLITE_ROW)
		code = read_row(statement, ret_meta);
	else if (code == SQLITE_DONE)
		code = SQLITE_CORRUPT;
	(void)sqlite3_reset(statement);
	return code;
}

int hx_sqlite_meta_save(struct hx_sqlite_connection *connection, const struct hx_sqlite_meta *meta)
{
	sqlite3_stmt *statement;
	int code = hx_sqlite_statement(connection, HX_SQLITE_META_SAVE, &statement);

	if (code != SQLITE_OK)
		return code;
	assert(meta->token <= HX_TOKEN_MAX);
	code |= sqlite3_bind_int64(statement, 1, (int64_t)meta->token);
	for (int i = HAPAX_STATE_CLAIMED; i <= HAPAX_STATE_PARKED; i++)
		code |= sqlite3_bind_int64(statement, 1 + i, (int64_t)meta->counts[i]);
	code |= sqlite3_bind_int64(statement, 6, meta->mark.store_ms);
	code |= sqlite3_bind_int64(statement, 7, meta->mark.boot_ms);
	code |= sqlite3_bind_int64(statement, 8, meta->mark.owed_ms);
	code |= hx_sqlite_bind_bytes(
		statement, 9, hx_bytes(meta->mark.boot_id, sizeof(meta->mark.boot_id)));
	return code == SQLITE_OK ? hx_sqlite_finish(statement) : SQLITE_NOMEM;
}

uint64_t hx_sqlite_meta_records(const struct hx_sqlite_meta *meta)
{
	return meta->counts[HAPAX_STATE_CLAIMED] + meta->counts[HAPAX_STATE_DONE] +
		meta->counts[HAPAX_STATE_FAILED] + meta->counts[HAPAX_STATE_PARKED];
}
