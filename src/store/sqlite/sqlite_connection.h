/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_connection.h - one SQLite connection to a ledger: opening, waiting, running.
 *
 * A connection is our own, opened for one file and closed with the store, or the caller's, joined
 * for a while. Our connections wait for other processes' locks with a busy handler that ends at
 * deadline_ns; a joined one keeps the caller's handler.
 *
 * All SQL is in statement.c, apart from the schema.
 *
 * Threads: one at a time; SQLite's own mutexes are off.
 */
#ifndef HX_STORE_SQLITE_SQLITE_CONNECTION_H
#define HX_STORE_SQLITE_SQLITE_CONNECTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <sqlite3.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

#include "base/random.h"
#include "store/clock_mark.h"
#include "store/sqlite/sqlite_fault.h"
#include "store/sqlite/statement.h"

struct hx_sqlite_connection {
	sqlite3 *db;
	const char *name;            /* of the file, for messages; borrowed from the store */
	_Atomic uint32_t *is_failed; /* the store's latch: 1 after a fatal error */
	int64_t deadline_ns;         /* of the current call: no wait exceeds it */
	uint32_t waits;              /* waits for this lock so far */
	int wal_frames;              /* length of the write-ahead log after our last commit */
	int checkpoint_frames;       /* the same at our last checkpoint; 0 after a restart */
	bool is_joined;              /* the caller's connection */
	bool has_reserve;            /* the file is ours alone, and write-ahead logged */
	_Atomic uint32_t is_short;   /* the disk was full when space was last needed */
	bool is_wal;                 /* after accept: write-ahead logged */
	bool is_relaxed;             /* commits are not synced */
	bool has_own_mark;
	struct hx_clock_mark own_mark; /* this process's time, if the boot is unknown */
	struct hx_prng jitter;
	sqlite3_stmt *statements[HX_SQLITE_STATEMENT_COUNT];
};

enum hx_sqlite_open_flags {
	HX_SQLITE_CREATE = 1 << 0, /* create the file if it is absent */
};

/* Clear it, so that close is safe. */
void hx_sqlite_connection_init(
	struct hx_sqlite_connection *connection, const char *name, _Atomic uint32_t *is_failed);

/*
 * Open the file called name, without reading it. Until hx_sqlite_connection_accept() nothing is
 * changed, not even by close.
 */
enum hapax_status hx_sqlite_connection_open(
	struct hx_sqlite_connection *connection, unsigned flags, struct hapax_error *err);

/*
 * The file is a ledger, or will be one. switch_mode turns on write-ahead logging; otherwise the
 * owner's journal mode stays. Either way a commit is durable before it is visible.
 */
enum hapax_status hx_sqlite_connection_accept(
	struct hx_sqlite_connection *connection, bool switch_mode, struct hapax_error *err);

/*
 * Stop or resume the syncing of commits, for data that a power cut may lose. Only in write-ahead
 * mode; with a rollback journal an unsynced commit may cost the database. A joined connection
 * keeps its owner's setting.
 */
int hx_sqlite_connection_relax(struct hx_sqlite_connection *connection, bool is_relaxed);

/* Update is_wal; *ret_is_removed: a commit removes its rollback journal. */
int hx_sqlite_connection_ask_journal(struct hx_sqlite_connection *connection, bool *ret_is_removed);

/* Use the caller's connection. */
void hx_sqlite_connection_join(struct hx_sqlite_connection *connection, sqlite3 *db);

/* Finalize the statements; close the database unless it is joined. */
void hx_sqlite_connection_close(struct hx_sqlite_connection *connection);

/* Later calls wait for locks until then. */
void hx_sqlite_connection_set_deadline(
	struct hx_sqlite_connection *connection, int64_t deadline_ns);

/* The same, counted from now. */
void hx_sqlite_connection_set_timeout(struct hx_sqlite_connection *connection, int64_t timeout_ms);

/*
 * After a busy code: wait a little, longer each time. False: the deadline has passed, and the
 * code is final.
 */
bool hx_sqlite_connection_wait(struct hx_sqlite_connection *connection);

/* Let others take the lock for a while. */
void hx_sqlite_pause(int64_t pause_ns);

/* Run one SQL text that returns nothing. */
int hx_sqlite_exec(struct hx_sqlite_connection *connection, const char *sql);

/* Run one SQL text that returns one number. */
int hx_sqlite_query_number(
	struct hx_sqlite_connection *connection, const char *sql, int64_t *ret_number);

/*
 * Copy a long log into the database. Call it when no request waits. A fatal error here latches
 * like any other.
 */
void hx_sqlite_connection_checkpoint(struct hx_sqlite_connection *connection);

/* May new records be stored? The reserve must be whole, and is rebuilt if it can be. */
bool hx_sqlite_connection_has_space(struct hx_sqlite_connection *connection);

/*
 * The disk is full: let the write-ahead log start over, with space of the reserve. False: there is
 * none.
 */
bool hx_sqlite_connection_make_space(struct hx_sqlite_connection *connection);

/*
 * Describe a failed transaction in err and return its status; latch the store if the code is
 * fatal. err may be NULL. what is past tense: "the ledger was not read".
 */
enum hapax_status hx_sqlite_connection_fail(
	struct hx_sqlite_connection *connection, int code, enum hx_sqlite_stage stage,
	const char *what, struct hapax_error *err);

/* Is the store latched? */
bool hx_sqlite_connection_is_failed(const struct hx_sqlite_connection *connection);

#endif
