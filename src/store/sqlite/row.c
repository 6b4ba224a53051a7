/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row.c - a row of hapax_record as struct hapax_record, and back.
 */
#include "store/sqlite/row.h"

#include <assert.h>
#include <string.h>

#include <hapax/store.h>

#include "base/bytes.h"
#include "record/record.h"
#include "store/sqlite/statement.h"

/* Positions in HX_SQLITE_ROW_WHOLE. A parameter's number is the same. */
enum column {
	COLUMN_ID = 0,
	COLUMN_STATE,
	COLUMN_ORIGIN,
	COLUMN_ON_LAPSE,
	COLUMN_ATTEMPT,
	COLUMN_TOKEN,
	COLUMN_FIRST_SEEN_MS,
	COLUMN_CHANGED_MS,
	COLUMN_LEASE_ENDS_MS,
	COLUMN_DUE_MS,
	COLUMN_TTL_MS,
	COLUMN_FINGERPRINT,
	COLUMN_ATTEMPT_ID,
	COLUMN_OWNER,
	COLUMN_ERROR,
	COLUMN_RESULT_KIND,
	COLUMN_RESULT_CLASS,
	COLUMN_RESULT_STATUS,
	COLUMN_RESULT_OMITTED,
	COLUMN_RESULT_HEADERS,
	COLUMN_RESULT_BODY,
	COLUMN_CAUSE,
	COLUMN_COUNT,
};
_Static_assert((int)COLUMN_COUNT == HX_SQLITE_ROW_COUNT, "other columns follow the row");
_Static_assert(HAPAX_STATE_DONE == 2, "HX_SQLITE_ROW_WITHOUT_RESULT has this number");

/* A number in 0 .. max; otherwise *valid becomes false. */
static unsigned read_small(sqlite3_stmt *statement, enum column column, unsigned max, bool *valid)
{
	int64_t number = sqlite3_column_int64(statement, (int)column);

	if (number < 0 || number > (int64_t)max) {
		*valid = false;
		return 0;
	}
	return (unsigned)number;
}

static int64_t read_time_or_never(sqlite3_stmt *statement, enum column column)
{
	if (sqlite3_column_type(statement, (int)column) == SQLITE_NULL)
		return HAPAX_TIME_NEVER;
	return sqlite3_column_int64(statement, (int)column);
}

/* Copy at most size_max bytes, or none for NULL; *ret_size is their number. */
static int read_into(
	sqlite3_stmt *statement, enum column column, unsigned char *target, size_t size_max,
	size_t *ret_size, bool *valid)
{
	struct hapax_bytes bytes;
	int code = hx_sqlite_column_bytes(statement, (int)column, &bytes);

	*ret_size = 0;
	if (code != SQLITE_OK || bytes.size == 0)
		return code;
	if (bytes.size > size_max) {
		*valid = false;
		return SQLITE_OK;
	}
	memcpy(target, bytes.data, bytes.size);
	*ret_size = bytes.size;
	return SQLITE_OK;
}

static void read_numbers(sqlite3_stmt *statement, struct hapax_record *record, bool *valid)
{
	int64_t due_ms = read_time_or_never(statement, COLUMN_DUE_MS);

	record->state =
		(enum hapax_state)read_small(statement, COLUMN_STATE, HAPAX_STATE_PARKED, valid);
	record->origin =
		(enum hapax_origin)read_small(statement, COLUMN_ORIGIN, HAPAX_ORIGIN_SET, valid);
	record->on_lapse = (enum hapax_on_lapse)read_small(
		statement, COLUMN_ON_LAPSE, HAPAX_ON_LAPSE_PARK, valid);
	record->attempt = read_small(statement, COLUMN_ATTEMPT, UINT32_MAX, valid);
	record->token = (uint64_t)sqlite3_column_int64(statement, COLUMN_TOKEN);
	record->first_seen_ms = sqlite3_column_int64(statement, COLUMN_FIRST_SEEN_MS);
	record->changed_ms = sqlite3_column_int64(statement, COLUMN_CHANGED_MS);
	record->lease_ends_ms = sqlite3_column_int64(statement, COLUMN_LEASE_ENDS_MS);
	record->ttl_ms = read_time_or_never(statement, COLUMN_TTL_MS);
	record->expires_ms = HAPAX_TIME_NEVER;
	if (record->state == HAPAX_STATE_DONE || record->state == HAPAX_STATE_FAILED)
		record->expires_ms = due_ms;
	record->result.kind = (enum hapax_result_kind)read_small(
		statement, COLUMN_RESULT_KIND, HAPAX_RESULT_EXEC, valid);
	record->result.result_class = (enum hapax_result_class)read_small(
		statement, COLUMN_RESULT_CLASS, HAPAX_RESULT_DEFINITIVE, valid);
	record->result.status = sqlite3_column_int(statement, COLUMN_RESULT_STATUS);
	record->result.omitted_bytes =
		(uint64_t)sqlite3_column_int64(statement, COLUMN_RESULT_OMITTED);
}

static int read_blobs(sqlite3_stmt *statement, struct hapax_record *record, bool *valid)
{
	size_t size;
	int code = read_into(
		statement, COLUMN_FINGERPRINT, record->fingerprint, sizeof(record->fingerprint),
		&size, valid);

	record->fingerprint_size = (uint32_t)size;
	if (code == SQLITE_OK)
		code = read_into(
			statement, COLUMN_ATTEMPT_ID, record->attempt_id,
			sizeof(record->attempt_id), &size, valid);
	if (code == SQLITE_OK)
		code = hx_sqlite_column_bytes(statement, COLUMN_OWNER, &record->owner);
	if (code == SQLITE_OK)
		code = hx_sqlite_column_bytes(statement, COLUMN_ERROR, &record->error);
	if (code == SQLITE_OK)
		code = hx_sqlite_column_bytes(statement, COLUMN_CAUSE, &record->cause);
	if (code == SQLITE_OK)
		code = hx_sqlite_column_bytes(
			statement, COLUMN_RESULT_HEADERS, &record->result.headers);
	if (code == SQLITE_OK)
		code = hx_sqlite_column_bytes(statement, COLUMN_RESULT_BODY, &record->result.body);
	return code;
}

int hx_sqlite_row_read(
	sqlite3_stmt *statement, int64_t *ret_id, struct hapax_record *ret_record, bool *ret_valid)
{
	struct hapax_record record = {
		.tenant = ret_record->tenant,
		.group = ret_record->group,
		.key = ret_record->key,
	};
	bool valid = true;
	int code;

	read_numbers(statement, &record, &valid);
	code = read_blobs(statement, &record, &valid);
	if (code != SQLITE_OK)
		return code;
	*ret_valid = valid && hx_record_is_valid(&record);
	*ret_id = sqlite3_column_int64(statement, COLUMN_ID);
	*ret_record = record;
	return SQLITE_OK;
}

/* When the sweep must check the record. */
static int64_t due_ms_of(const struct hapax_record *record)
{
	int64_t due_ms;

	switch (record->state) {
	case HAPAX_STATE_DONE:
	case HAPAX_STATE_FAILED: return record->expires_ms;
	case HAPAX_STATE_CLAIMED:
		if (record->ttl_ms == HAPAX_TTL_FOREVER ||
		    __builtin_add_overflow(record->lease_ends_ms, record->ttl_ms, &due_ms))
			return HAPAX_TIME_NEVER;
		return due_ms;
	case HAPAX_STATE_PARKED:
	case HAPAX_STATE_ABSENT: break;
	}
	return HAPAX_TIME_NEVER;
}

static int bind_number(sqlite3_stmt *statement, enum column column, int64_t number)
{
	return sqlite3_bind_int64(statement, (int)column, number);
}

static int bind_time_or_never(sqlite3_stmt *statement, enum column column, int64_t time_ms)
{
	if (time_ms == HAPAX_TIME_NEVER)
		return sqlite3_bind_null(statement, (int)column);
	return sqlite3_bind_int64(statement, (int)column, time_ms);
}

static int bind_or_null(sqlite3_stmt *statement, enum column column, struct hapax_bytes bytes)
{
	if (bytes.size == 0)
		return sqlite3_bind_null(statement, (int)column);
	return hx_sqlite_bind_bytes(statement, (int)column, bytes);
}

static bool has_attempt_id(const struct hapax_record *record)
{
	return record->state == HAPAX_STATE_CLAIMED || record->state == HAPAX_STATE_PARKED;
}

static int bind_blobs(sqlite3_stmt *statement, const struct hapax_record *record)
{
	struct hapax_bytes fingerprint = hx_bytes(record->fingerprint, record->fingerprint_size);
	struct hapax_bytes attempt_id = hx_bytes(record->attempt_id, sizeof(record->attempt_id));
	int code = 0;

	if (!has_attempt_id(record))
		attempt_id.size = 0;
	code |= bind_or_null(statement, COLUMN_FINGERPRINT, fingerprint);
	code |= bind_or_null(statement, COLUMN_ATTEMPT_ID, attempt_id);
	code |= bind_or_null(statement, COLUMN_OWNER, record->owner);
	code |= bind_or_null(statement, COLUMN_ERROR, record->error);
	code |= bind_or_null(statement, COLUMN_RESULT_HEADERS, record->result.headers);
	code |= bind_or_null(statement, COLUMN_RESULT_BODY, record->result.body);
	code |= bind_or_null(statement, COLUMN_CAUSE, record->cause);
	return code;
}

/* OR-ing the codes is enough: binding fails only for lack of memory. */
int hx_sqlite_row_bind(sqlite3_stmt *statement, const struct hapax_record *record)
{
	int code = 0;

	hx_record_assert(record);
	code |= bind_number(statement, COLUMN_STATE, record->state);
	code |= bind_number(statement, COLUMN_ORIGIN, record->origin);
	code |= bind_number(statement, COLUMN_ON_LAPSE, record->on_lapse);
	code |= bind_number(statement, COLUMN_ATTEMPT, record->attempt);
	code |= bind_number(statement, COLUMN_TOKEN, (int64_t)record->token);
	code |= bind_number(statement, COLUMN_FIRST_SEEN_MS, record->first_seen_ms);
	code |= bind_number(statement, COLUMN_CHANGED_MS, record->changed_ms);
	code |= bind_number(statement, COLUMN_LEASE_ENDS_MS, record->lease_ends_ms);
	code |= bind_time_or_never(statement, COLUMN_DUE_MS, due_ms_of(record));
	code |= bind_time_or_never(statement, COLUMN_TTL_MS, record->ttl_ms);
	code |= bind_number(statement, COLUMN_RESULT_KIND, record->result.kind);
	code |= bind_number(statement, COLUMN_RESULT_CLASS, record->result.result_class);
	code |= bind_number(statement, COLUMN_RESULT_STATUS, record->result.status);
	code |= bind_number(
		statement, COLUMN_RESULT_OMITTED, (int64_t)record->result.omitted_bytes);
	code |= bind_blobs(statement, record);
	return code == SQLITE_OK ? SQLITE_OK : SQLITE_NOMEM;
}
