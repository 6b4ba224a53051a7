/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_fault.c - SQLite's codes as statuses of error.h.
 */
#include "store/sqlite/sqlite_fault.h"

#include <assert.h>
#include <stddef.h>

#include <sqlite3.h>

static int primary_code(int code)
{
	return code & 0xff;
}

static bool is_no_memory(int code)
{
	return primary_code(code) == SQLITE_NOMEM || code == SQLITE_IOERR_NOMEM;
}

bool hx_sqlite_is_busy(int code)
{
	switch (primary_code(code)) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_PROTOCOL: return true; /* it lost the race for a read mark too often */
	default: return false;
	}
}

bool hx_sqlite_is_fatal(int code)
{
	if (is_no_memory(code) || hx_sqlite_is_busy(code))
		return false;
	switch (primary_code(code)) {
	case SQLITE_OK:
	case SQLITE_FULL:
	case SQLITE_TOOBIG:
	case SQLITE_INTERRUPT:
	case SQLITE_CANTOPEN: return false;
	case SQLITE_READONLY:
		/* The name now leads to a different file: no other process would see our writes. */
		return code == SQLITE_READONLY_DBMOVED;
	default:
		/* I/O errors, corruption, and codes that should not occur. */
		return true;
	}
}

/*
 * In COMMIT, BUSY comes before anything is written. FULL comes from a short write: the frame that
 * marks the commit is written last, so the transaction is not in the log. Every other code may
 * come after that frame.
 */
enum hapax_status hx_sqlite_status(int code, enum hx_sqlite_stage stage)
{
	assert(primary_code(code) != SQLITE_OK);
	if (hx_sqlite_is_busy(code))
		return HAPAX_ERR_UNAVAILABLE;
	if (primary_code(code) == SQLITE_FULL || primary_code(code) == SQLITE_TOOBIG)
		return HAPAX_ERR_LIMIT;
	if (stage == HX_SQLITE_IN_COMMIT)
		return HAPAX_ERR_UNCERTAIN;
	if (is_no_memory(code))
		return HAPAX_ERR_NO_MEMORY;
	return hx_sqlite_is_fatal(code) ? HAPAX_ERR_FAILED : HAPAX_ERR_UNAVAILABLE;
}

const char *hx_sqlite_reason(int code)
{
	if (code == SQLITE_READONLY_DBMOVED)
		return "the file was moved or removed while it was open";
	if (is_no_memory(code))
		return "not enough memory";
	if (hx_sqlite_is_busy(code))
		return "the database is locked by another process";
	switch (primary_code(code)) {
	case SQLITE_FULL: return "the disk is full";
	case SQLITE_TOOBIG: return "a value is too large for SQLite";
	case SQLITE_READONLY: return "the file or its directory is not writable";
	case SQLITE_CANTOPEN: return "the file or its directory cannot be opened for writing";
	case SQLITE_CORRUPT: return "the database is damaged";
	case SQLITE_NOTADB: return "the file is not a SQLite database";
	case SQLITE_IOERR: return "the disk reported an error";
	case SQLITE_INTERRUPT: return "the call was interrupted";
	default: return sqlite3_errstr(code);
	}
}
