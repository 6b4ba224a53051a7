/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox_postgres.h - a connection to the PostgreSQL database of an outbox.
 *
 * Our own connection has deadlines; a joined one keeps its owner's settings.
 *
 * Threads: one at a time.
 */
#ifndef HX_OUTBOX_POSTGRES_OUTBOX_POSTGRES_H
#define HX_OUTBOX_POSTGRES_OUTBOX_POSTGRES_H

#include <libpq-fe.h>

#include "outbox/outbox.h"
#include "store/postgres/postgres_place.h"

/* The version of the tables that this program reads and writes. */
enum { HX_OUTBOX_POSTGRES_VERSION = 2 };

struct hx_outbox_postgres {
	struct hapax_outbox base;
	struct hx_postgres_place place;
	PGconn *conn;
	bool is_joined;
	bool is_listening;
	bool is_patient; /* the current statement has no short deadline */
	unsigned depth;  /* savepoints that began inside a transaction */
	bool has_begun;  /* the outermost savepoint began the transaction */
	struct hx_watch watch;
	bool is_watched;
	struct hapax_buf sql; /* scratch */
};

/* Connect unless connected, and check that there is an outbox. */
enum hapax_status hx_outbox_postgres_connect(
	struct hx_outbox_postgres *outbox, struct hapax_error *err);
void hx_outbox_postgres_disconnect(struct hx_outbox_postgres *outbox);

/* Assert what holds for an open outbox between two calls. */
void hx_outbox_postgres_assert(const struct hx_outbox_postgres *outbox);

enum { HX_OUTBOX_POSTGRES_ARGUMENTS_MAX = 16 };

/* One argument of a statement: text, or binary data; data NULL is SQL's NULL. */
struct hx_outbox_argument {
	const void *data;
	int size;
	bool is_binary;
};

/*
 * Run a statement ("@@" as in postgres_place.h); its rows come in binary form. Owned: *ret_result,
 * by the caller. what is in the past tense. UNCERTAIN: it was sent, and its outcome is unknown; the
 * connection is closed, and the next call connects again.
 */
enum hapax_status hx_outbox_postgres_run(
	struct hx_outbox_postgres *outbox, const char *sql,
	const struct hx_outbox_argument *arguments, int count, const char *what,
	PGresult **ret_result, struct hapax_error *err);

/* Lift or restore the deadline, for scans of large tables. Does not change a joined connection. */
enum hapax_status hx_outbox_postgres_be_patient(
	struct hx_outbox_postgres *outbox, bool is_patient, struct hapax_error *err);

/*
 * The same for the functions of outbox_postgres.sql that return a number or nothing: types has a
 * 't' for each text (NULL is SQL's) and an 'n' for each int64_t in values. *ret_number is the
 * number, unless it is NULL.
 */
enum hapax_status hx_outbox_postgres_call(
	struct hx_outbox_postgres *outbox, const char *sql, const char *types,
	const void *const *values, const char *what, int64_t *ret_number, struct hapax_error *err);

/* In outbox_postgres_manage.c. */
enum hapax_status hx_outbox_postgres_retry(
	struct hapax_outbox *outbox, const char *id, const char *ordering_key, uint64_t *count,
	struct hapax_error *err);
enum hapax_status hx_outbox_postgres_park(
	struct hapax_outbox *outbox, const char *id, uint64_t *count, struct hapax_error *err);
enum hapax_status hx_outbox_postgres_purge(
	struct hapax_outbox *outbox, int64_t age_ms, unsigned limit, uint64_t *count,
	struct hapax_error *err);
enum hapax_status hx_outbox_postgres_query(
	struct hapax_outbox *base, const char *sql, const char *value, hapax_outbox_row_fn *row,
	void *context, struct hapax_error *err);
enum hapax_status hx_outbox_postgres_adopt(
	struct hapax_outbox *base, const struct hapax_outbox_table *table, bool with_existing,
	uint64_t *count, struct hapax_error *err);

/* In outbox_postgres_relay.c. */
enum hapax_status hx_outbox_postgres_renew(
	struct hapax_outbox *outbox, const char *relay, const char *owner, int64_t lease_ms,
	bool is_idle, unsigned *ret_partitions, struct hapax_error *err);
enum hapax_status hx_outbox_postgres_settle(
	struct hapax_outbox *outbox, const char *relay, int64_t pause_ms_max,
	struct hapax_error *err);
enum hapax_status hx_outbox_postgres_leave(
	struct hapax_outbox *outbox, const char *relay, struct hapax_error *err);
enum hapax_status hx_outbox_postgres_set_idle(
	struct hapax_outbox *outbox, const char *relay, bool is_idle, struct hapax_error *err);
enum hapax_status hx_outbox_postgres_fetch(
	struct hapax_outbox *outbox, const char *relay, unsigned limit,
	struct hx_outbox_batch *batch, struct hapax_error *err);
enum hapax_status hx_outbox_postgres_mark(
	struct hapax_outbox *outbox, struct hx_outbox_batch *batch, struct hapax_error *err);
void hx_outbox_postgres_wait(struct hapax_outbox *base, int64_t wait_ns);

#endif
