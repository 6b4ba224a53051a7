/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox_sqlite.h - a connection to the SQLite database of an outbox.
 *
 * Functions return SQLite's codes; hx_outbox_sqlite_error() translates them for the caller at the
 * end of a transaction.
 *
 * Threads: one at a time.
 */
#ifndef HX_OUTBOX_SQLITE_OUTBOX_SQLITE_H
#define HX_OUTBOX_SQLITE_OUTBOX_SQLITE_H

#include <sqlite3.h>

#include "base/uuid7.h"
#include "outbox/outbox.h"

enum { HX_OUTBOX_SQLITE_VERSION = 2 };

struct hx_outbox_sqlite {
	struct hapax_outbox base;
	sqlite3 *db;
	bool is_joined;
	unsigned depth; /* of nested savepoints */
	struct hx_uuid7 ids;
	sqlite3_stmt *add; /* prepared on first use */
};

/* The partition of a text, in SQL. Every user of a database must use the same one. */
#define HX_OUTBOX_SQLITE_PART(key)                                 \
	"((unicode(substr(" key ", -1)) * 7 + unicode(substr(" key \
	", -2)) * 3 + unicode(substr(" key ", -3)) + length(" key ")) & 63)"

int64_t hx_outbox_sqlite_now_ms(void);

/* Assert what holds for an open outbox between two calls. */
void hx_outbox_sqlite_assert(const struct hx_outbox_sqlite *outbox);

int hx_outbox_sqlite_exec(struct hx_outbox_sqlite *outbox, const char *sql);

/* Run a statement with numbers and texts; *ret_number gets the first column of the first row. */
int hx_outbox_sqlite_run(
	struct hx_outbox_sqlite *outbox, const char *sql, const char *types,
	const void *const *values, int64_t *ret_number);

/* Describe a failure; what is in the past tense. in_commit: the outcome may be unknown. */
enum hapax_status hx_outbox_sqlite_error(
	struct hx_outbox_sqlite *outbox, int code, bool in_commit, const char *what,
	struct hapax_error *err);

/* BEGIN IMMEDIATE, COMMIT, and ROLLBACK of any open transaction. */
enum hapax_status hx_outbox_sqlite_begin(
	struct hx_outbox_sqlite *outbox, const char *what, struct hapax_error *err);
enum hapax_status hx_outbox_sqlite_end(
	struct hx_outbox_sqlite *outbox, int code, const char *what, struct hapax_error *err);

/* In outbox_sqlite_manage.c. */
hx_outbox_retry_fn hx_outbox_sqlite_retry;
hx_outbox_park_fn hx_outbox_sqlite_park;
hx_outbox_purge_fn hx_outbox_sqlite_purge;
hx_outbox_query_fn hx_outbox_sqlite_query;
hx_outbox_audit_fn hx_outbox_sqlite_audit;
hx_outbox_adopt_fn hx_outbox_sqlite_adopt;

/* Make rows pending again that no longer wait behind a parked one. */
int hx_outbox_sqlite_release(struct hx_outbox_sqlite *outbox);

/* Stop updating adopted tables that no longer exist. */
int hx_outbox_sqlite_forget_lost(struct hx_outbox_sqlite *outbox);

/* In outbox_sqlite_relay.c. */
hx_outbox_keep_alive_fn hx_outbox_sqlite_renew;
hx_outbox_settle_fn hx_outbox_sqlite_settle;
hx_outbox_leave_fn hx_outbox_sqlite_leave;
hx_outbox_fetch_fn hx_outbox_sqlite_fetch;
hx_outbox_mark_fn hx_outbox_sqlite_mark;
hx_outbox_wait_fn hx_outbox_sqlite_wait;

#endif
