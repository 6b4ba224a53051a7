/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox_sqlite.h - a connection to the SQLite database in which an outbox lies.
 *
 * Functions return SQLite's codes; what they mean to a caller is said where a transaction
 * ends (hx_outbox_sqlite_error()).
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
	sqlite3_stmt *add; /* prepared when it is first needed */
};

/* The partition of a text, in SQL. Every user of a database has to use the same one. */
#define HX_OUTBOX_SQLITE_PART(key)                                 \
	"((unicode(substr(" key ", -1)) * 7 + unicode(substr(" key \
	", -2)) * 3 + unicode(substr(" key ", -3)) + length(" key ")) & 63)"

int64_t hx_outbox_sqlite_now_ms(void);

int hx_outbox_sqlite_exec(struct hx_outbox_sqlite *outbox, const char *sql);

/* A statement with numbers and texts; the first column of its first row is *ret_number. */
int hx_outbox_sqlite_run(
	struct hx_outbox_sqlite *outbox, const char *sql, const char *types,
	const void *const *values, int64_t *ret_number);

/* Describe a failure; what is past tense. in_commit: nobody may know whether it counts. */
enum hapax_status hx_outbox_sqlite_error(
	struct hx_outbox_sqlite *outbox, int code, bool in_commit, const char *what,
	struct hapax_error *err);

/* BEGIN IMMEDIATE, COMMIT, and ROLLBACK of whatever is open. */
enum hapax_status hx_outbox_sqlite_begin(
	struct hx_outbox_sqlite *outbox, const char *what, struct hapax_error *err);
enum hapax_status hx_outbox_sqlite_end(
	struct hx_outbox_sqlite *outbox, int code, const char *what, struct hapax_error *err);

/* Of sqlite_manage.c. */
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

/* Rows that waited behind a parked one, and now behind none, are pending again. */
int hx_outbox_sqlite_release(struct hx_outbox_sqlite *outbox);

/* Tables that were taken over and are gone are told nothing any more. */
int hx_outbox_sqlite_forget_lost(struct hx_outbox_sqlite *outbox);

/* Of sqlite_relay.c. */
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
