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
	bool is_patient;  /* the current statement has no short deadline */
	int64_t limit_ns; /* of an audit, and what ends it early; 0 and NULL: none is in progress */
	const struct hx_event *stop;
	unsigned depth; /* savepoints that began inside a transaction */
	bool has_begun; /* the outermost savepoint began the transaction */
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

/* Run outbox->sql, which ends with a NUL, on our own connection. Owned: the result. */
PGresult *hx_outbox_postgres_ask(struct hx_outbox_postgres *outbox);

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
hx_outbox_retry_fn hx_outbox_postgres_retry;
hx_outbox_park_fn hx_outbox_postgres_park;
hx_outbox_purge_fn hx_outbox_postgres_purge;
hx_outbox_query_fn hx_outbox_postgres_query;
hx_outbox_audit_fn hx_outbox_postgres_audit;
hx_outbox_adopt_fn hx_outbox_postgres_adopt;

/* In outbox_postgres_relay.c. */
hx_outbox_keep_alive_fn hx_outbox_postgres_renew;
hx_outbox_settle_fn hx_outbox_postgres_settle;
hx_outbox_leave_fn hx_outbox_postgres_leave;
hx_outbox_set_idle_fn hx_outbox_postgres_set_idle;
hx_outbox_fetch_fn hx_outbox_postgres_fetch;
hx_outbox_mark_fn hx_outbox_postgres_mark;
hx_outbox_wait_fn hx_outbox_postgres_wait;

#endif
