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
enum hapax_status hx_outbox_sqlite_retry(
	struct hapax_outbox *base, const char *id, const char *ordering_key, uint64_t *count,
	struct hapax_error *err);
enum hapax_status hx_outbox_sqlite_park(
	struct hapax_outbox *base, const char *id, uint64_t *count, struct hapax_error *err);
enum hapax_status hx_outbox_sqlite_purge(
	struct hapax_outbox *base, int64_t age_ms, unsigned limit, uint64_t *count,
	struct hapax_error *err);
enum hapax_status hx_outbox_sqlite_query(
	struct hapax_outbox *base, const char *sql, const char *value, hapax_outbox_row_fn *row,
	void *context, struct hapax_error *err);
enum hapax_status hx_outbox_sqlite_adopt(
	struct hapax_outbox *base, const struct hapax_outbox_table *table, bool with_existing,
	uint64_t *count, struct hapax_error *err);

/* Make rows pending again that no longer wait behind a parked one. */
int hx_outbox_sqlite_release(struct hx_outbox_sqlite *outbox);

/* Stop updating adopted tables that no longer exist. */
int hx_outbox_sqlite_forget_lost(struct hx_outbox_sqlite *outbox);

/* In outbox_sqlite_relay.c. */
enum hapax_status hx_outbox_sqlite_renew(
	struct hapax_outbox *base, const char *relay, const char *owner, int64_t lease_ms,
	bool is_idle, unsigned *ret_partitions, struct hapax_error *err);
enum hapax_status hx_outbox_sqlite_settle(
	struct hapax_outbox *base, const char *relay, int64_t pause_ms_max,
	struct hapax_error *err);
enum hapax_status hx_outbox_sqlite_leave(
	struct hapax_outbox *base, const char *relay, struct hapax_error *err);
enum hapax_status hx_outbox_sqlite_fetch(
	struct hapax_outbox *base, const char *relay, unsigned limit, struct hx_outbox_batch *batch,
	struct hapax_error *err);
enum hapax_status hx_outbox_sqlite_mark(
	struct hapax_outbox *base, struct hx_outbox_batch *batch, struct hapax_error *err);
void hx_outbox_sqlite_wait(struct hapax_outbox *outbox, int64_t wait_ns);

#endif
