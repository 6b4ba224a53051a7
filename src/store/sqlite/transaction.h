/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transaction.h - one look at the ledger, or one change to it.
 *
 * It begins with the lock it needs, reads the ledger's row and, from the clock mark
 * there, what time it is; so everything decided within it is decided at one moment,
 * after the records are held. It ends with the row written back and a commit, or
 * with everything as it was.
 *
 * On a joined connection that is in a transaction already, it is a savepoint of
 * that one: an abort undoes what hapax wrote and leaves the caller's changes.
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
	bool needs_write;     /* reading is not enough: the clock mark is of an earlier boot */
	bool is_mark_foreign; /* of processes that know their boot, which this one does not */
	int64_t now_ms;
	uint64_t removed; /* expired records removed on the way */
	struct hx_sqlite_meta meta;
};

/*
 * Begin, waiting for locks until the connection's deadline. On failure nothing is
 * open. options must be complete.
 */
int hx_sqlite_transaction_begin(
	struct hx_sqlite_transaction *transaction, struct hx_sqlite_connection *connection,
	const struct hapax_store_options *options, enum hx_sqlite_access access);

/* End it; on failure it is rolled back, and stage says how far it came. */
int hx_sqlite_transaction_commit(struct hx_sqlite_transaction *transaction);

/* End it as if it had not been. Harmless after a failure that ended it already. */
void hx_sqlite_transaction_abort(struct hx_sqlite_transaction *transaction);

/*
 * Is the clock mark so old that it should be written, if not for anything else? Time
 * that was only read is lost with a reboot otherwise, where the wall clock is no help.
 */
bool hx_sqlite_transaction_has_old_mark(const struct hx_sqlite_transaction *transaction);

/*
 * Note that a record changed its state; HAPAX_STATE_ABSENT is for no record. Keeps
 * the numbers in meta and in hapax_scope.
 */
int hx_sqlite_transaction_count(
	struct hx_sqlite_transaction *transaction, struct hapax_bytes tenant,
	struct hapax_bytes group, enum hapax_state before, enum hapax_state after);

/* Remove a record by its row. */
int hx_sqlite_transaction_remove(
	struct hx_sqlite_transaction *transaction, int64_t id, const struct hapax_record *old);

/* Write a record in place of a row. */
int hx_sqlite_transaction_replace(
	struct hx_sqlite_transaction *transaction, int64_t id, enum hapax_state before,
	const struct hapax_record *next);

/* Write a record whose key has no row. */
int hx_sqlite_transaction_insert(
	struct hx_sqlite_transaction *transaction, const struct hapax_record *next);

/* Bytes of the file that are in use. */
int hx_sqlite_transaction_bytes(struct hx_sqlite_transaction *transaction, uint64_t *ret_bytes);

#endif
