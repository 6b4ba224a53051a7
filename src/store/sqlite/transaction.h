/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transaction.h - one read or one change of the ledger.
 *
 * It begins with the lock it needs, reads the ledger's row, and computes the time from the clock
 * mark there. All its decisions are thus made at one moment, after the records are locked. It
 * ends with the row written back and a commit, or with no change.
 *
 * If a joined connection is already in a transaction, it is a savepoint there: an abort undoes
 * hapax's writes and keeps the caller's changes.
 */
#ifndef HX_STORE_SQLITE_TRANSACTION_H
#define HX_STORE_SQLITE_TRANSACTION_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/store.h>

#include "store/sqlite/sqlite_connection.h"
#include "store/sqlite/meta.h"

enum hx_sqlite_access {
	HX_SQLITE_READ,
	HX_SQLITE_WRITE,
};

struct hx_sqlite_transaction {
	struct hx_sqlite_connection *connection;
	const struct hapax_store_options *options;
	enum hx_sqlite_access access;
	enum hx_sqlite_stage stage;
	bool is_nested;       /* a savepoint in the caller's transaction */
	bool is_dirty;        /* meta must be written back */
	bool needs_write;     /* the clock mark of an earlier boot must be renewed */
	bool is_mark_foreign; /* written by processes that know their boot; this one does not */
	int64_t now_ms;
	uint64_t removed; /* expired records removed by it */
	struct hx_sqlite_meta meta;
};

/*
 * Begin, waiting for locks until the connection's deadline. On failure nothing is open. options
 * must be complete.
 */
int hx_sqlite_transaction_begin(
	struct hx_sqlite_transaction *transaction, struct hx_sqlite_connection *connection,
	const struct hapax_store_options *options, enum hx_sqlite_access access);

/* On failure it is rolled back, and stage tells how far it got. */
int hx_sqlite_transaction_commit(struct hx_sqlite_transaction *transaction);

/* Undo it. Harmless after a failure that ended it already. */
void hx_sqlite_transaction_abort(struct hx_sqlite_transaction *transaction);

/*
 * Is the clock mark old enough to be written on its own? Otherwise a reboot loses the time that
 * was only read, if the wall clock is wrong.
 */
bool hx_sqlite_transaction_has_old_mark(const struct hx_sqlite_transaction *transaction);

int hx_sqlite_transaction_remove(
	struct hx_sqlite_transaction *transaction, int64_t id, const struct hapax_record *old);

int hx_sqlite_transaction_replace(
	struct hx_sqlite_transaction *transaction, int64_t id, enum hapax_state before,
	const struct hapax_record *next);

/* Write a record whose key has no row. */
int hx_sqlite_transaction_insert(
	struct hx_sqlite_transaction *transaction, const struct hapax_record *next);

/* Bytes of the file that are in use. */
int hx_sqlite_transaction_bytes(struct hx_sqlite_transaction *transaction, uint64_t *ret_bytes);

#endif
