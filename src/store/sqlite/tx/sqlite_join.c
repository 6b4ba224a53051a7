/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_join.c - the ledger inside the caller's own transaction.
 *
 * It runs the same code as the URL store, on the caller's connection and thread. Inside the
 * caller's transaction each submit is a savepoint; outside, a transaction of its own. The
 * connection's settings stay unchanged, and the caller's last insert rowid is restored.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <hapax/ext/store_ops.h>
#include <hapax/sqlite.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "store/core.h"
#include "store/sqlite/sqlite_batch.h"
#include "store/sqlite/tx/sqlite_savepoint.h"
#include "store/sqlite/sqlite_connection.h"
#include "store/sqlite/scan.h"
#include "store/sqlite/sqlite_schema.h"
#include "store/sqlite/sqlite_stats.h"
#include "store/sqlite/sqlite_sweep.h"

static const struct hapax_store_ops join_ops;

struct joined_store {
	struct hapax_store base;
	struct hapax_store_options options; /* complete */
	_Atomic uint32_t is_failed;
	_Atomic uint64_t swept;
	struct hx_sqlite_connection connection;
	struct hx_sqlite_batch batch;
	struct hx_sqlite_savepoints savepoints;
	const char *survives; /* the guarantee of the caller's COMMIT */
};

static struct joined_store *downcast(struct hapax_store *store)
{
	assert(store->ops == &join_ops);
	return (struct joined_store *)store;
}

static void join_submit(
	struct hapax_store *base, struct hapax_op *ops, size_t count,
	struct hapax_completion completion)
{
	struct joined_store *store = downcast(base);
	sqlite3 *db = store->connection.db;
	sqlite3_int64 last_rowid = sqlite3_last_insert_rowid(db);
	struct hx_sqlite_request request = {
		.ops = ops,
		.count = count,
		.deadline_ns = hx_clock_mono_ns() + store->options.timeout_ms * HX_NS_PER_MS,
	};

	hx_sqlite_ops_begin(ops, count);
	(void)hx_sqlite_batch_run(&store->batch, &request);
	sqlite3_set_last_insert_rowid(db, last_rowid);
	hapax_store_complete(base, ops, count, completion);
}

static enum hapax_status check_latch(struct joined_store *store, struct hapax_error *err)
{
	if (!hx_sqlite_connection_is_failed(&store->connection))
		return HAPAX_OK;
	return hx_error_set(
		err, HAPAX_ERR_FAILED, 0, "the store stopped after an error; join it again");
}

static enum hapax_status join_scan(
	struct hapax_store *base, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	hapax_scan_fn *each, void *context, struct hapax_error *err)
{
	struct joined_store *store = downcast(base);
	enum hapax_status status = check_latch(store, err);

	if (status != HAPAX_OK)
		return status;
	return hx_sqlite_scan(
		&store->connection, NULL, &store->options, scan, cursor, each, context, err);
}

static enum hapax_status join_stats(
	struct hapax_store *base, struct hapax_stats *stats, hapax_counters_fn *each, void *context,
	struct hapax_error *err)
{
	struct joined_store *store = downcast(base);
	enum hapax_status status = check_latch(store, err);

	/* store.c adds the counters of this process; those in the file belong to others. */
	(void)each;
	(void)context;
	if (status == HAPAX_OK)
		status = hx_sqlite_stats(&store->connection, &store->options, stats, err);
	if (status == HAPAX_OK) {
		memset(stats->counts, 0, sizeof(stats->counts));
		stats->swept = atomic_load_explicit(&store->swept, memory_order_relaxed);
	}
	return status;
}

static enum hapax_status join_sweep(
	struct hapax_store *base, struct hapax_sweep *sweep, struct hapax_error *err)
{
	struct joined_store *store = downcast(base);
	enum hapax_status status = check_latch(store, err);

	if (status == HAPAX_OK)
		status = hx_sqlite_sweep(&store->connection, &store->options, sweep, err);
	atomic_fetch_add_explicit(&store->swept, sweep->removed, memory_order_relaxed);
	return status;
}

static enum hapax_status join_savepoint(
	struct hapax_store *base, enum hapax_savepoint savepoint, struct hapax_error *err)
{
	return hx_sqlite_savepoint(&downcast(base)->savepoints, savepoint, err);
}

/* With the connection's settings at the time of the join. */
static void join_guarantee(struct hapax_store *base, char *ret_text, size_t size)
{
	(void)snprintf(
		ret_text, size, "after your transaction has committed: %s",
		downcast(base)->survives);
}

static void join_close(struct hapax_store *base)
{
	struct joined_store *store = downcast(base);

	hapax_store_detach(base);
	hx_sqlite_workspace_done(&store->batch.workspace);
	hx_sqlite_connection_close(&store->connection);
	hx_free(store);
}

/*
 * Create the tables only outside a transaction: a rollback would remove them while this store
 * believes that they exist.
 */
static enum hapax_status make_tables(struct joined_store *store, struct hapax_error *err)
{
	struct hx_sqlite_connection *connection = &store->connection;
	struct hx_sqlite_migrations migrations = hx_sqlite_schema_migrations();
	struct hx_sqlite_schema schema;
	enum hapax_status status;

	hx_sqlite_connection_set_timeout(connection, store->options.timeout_ms);
	status = hx_sqlite_schema_inspect(connection, migrations, &schema, err);
	if (status != HAPAX_OK || schema.version == (int64_t)migrations.count)
		return status;
	if (schema.version == 0 && (store->options.flags & HAPAX_STORE_MUST_EXIST))
		return hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0, "the joined database has no store");
	if (sqlite3_get_autocommit(connection->db) == 0)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the tables of the store must be created or migrated; join outside of a "
			"transaction");
	return hx_sqlite_schema_migrate(connection, migrations, false, store->options.clock, err);
}

/*
 * The guarantee of the owner's journal_mode and synchronous. A rollback journal removed by a
 * commit is permanently gone only after a sync of its directory, which EXTRA does.
 */
static enum hapax_status read_settings(struct joined_store *store, struct hapax_error *err)
{
	enum { OFF, NORMAL, FULL, EXTRA };
	struct hx_sqlite_connection *connection = &store->connection;
	const char *name = sqlite3_db_filename(connection->db, "main");
	int64_t synchronous = OFF;
	bool is_removed = false;
	int code = hx_sqlite_query_number(connection, "PRAGMA main.synchronous", &synchronous);

	if (code == SQLITE_OK)
		code = hx_sqlite_connection_ask_journal(connection, &is_removed);
	if (code != SQLITE_OK)
		return hx_sqlite_connection_fail(
			connection, code, HX_SQLITE_BEFORE_COMMIT,
			"could not read the settings of the connection", err);
	if (name == NULL || name[0] == '\0')
		store->survives = "nothing survives the connection: the database is in memory";
	else if (synchronous == OFF)
		store->survives = "a power cut may damage the database (synchronous = OFF)";
	else if (synchronous == NORMAL && connection->is_wal)
		store->survives = "a power cut may lose the latest answers (synchronous = NORMAL)";
	else if (synchronous == NORMAL)
		store->survives =
			"a power cut may damage the database (synchronous = NORMAL without a"
			" write-ahead log)";
	else if (synchronous == FULL && is_removed)
		store->survives = "answers survive a power cut, unless it happens immediately "
				  "(synchronous = FULL without a write-ahead log: use EXTRA)";
	else
		store->survives = "answers survive a power cut";
	return HAPAX_OK;
}

/*
 * Not DURABLE: the caller's COMMIT decides. count is missing, because a close must not write into
 * a transaction that the caller has not ended: decisions are counted in this process only.
 */
static const struct hapax_store_ops join_ops = {
	.version = HAPAX_STORE_OPS_VERSION,
	.name = "sqlite",
	.capabilities = HAPAX_STORE_TRANSACTIONS | HAPAX_STORE_TOKEN_GLOBAL |
		HAPAX_STORE_MULTI_KEY | HAPAX_STORE_CLOCK,
	.submit = join_submit,
	.scan = join_scan,
	.stats = join_stats,
	.sweep = join_sweep,
	.close = join_close,
	.savepoint = join_savepoint,
	.guarantee = join_guarantee,
};

enum hapax_status hapax_sqlite_join(
	sqlite3 *db, const struct hapax_store_options *options, struct hapax_store **ret_store,
	struct hapax_error *err)
{
	struct hapax_store_options complete;
	struct joined_store *store;
	enum hapax_status status;

	if (db == NULL || ret_store == NULL)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "an open database is required");
	status = hx_store_options_complete(options, &complete, err);
	if (status != HAPAX_OK)
		return status;
	if (complete.evict != HAPAX_EVICT_NONE)
		return hx_error_set(err, HAPAX_ERR_UNSUPPORTED, 0, "a SQLite store cannot evict");
	complete.flags |= HAPAX_STORE_NO_HOUSEKEEPING;
	store = hx_alloc_zero(1, sizeof(*store));
	if (store == NULL)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to join a database");
	store->options = complete;
	hx_sqlite_connection_init(&store->connection, "the joined database", &store->is_failed);
	hx_sqlite_connection_join(&store->connection, db);
	store->batch = (struct hx_sqlite_batch){
		.connection = &store->connection,
		.workspace = {.options = &store->options, .without_lease = true},
		.swept = &store->swept,
	};
	store->savepoints.connection = &store->connection;
	store->savepoints.timeout_ms = complete.timeout_ms;
	status = make_tables(store, err);
	if (status == HAPAX_OK)
		status = read_settings(store, err);
	if (status == HAPAX_OK)
		status = hapax_store_attach(
			&store->base, &join_ops, "sqlite:(joined)", &complete, err);
	if (status != HAPAX_OK) {
		hx_sqlite_connection_close(&store->connection);
		hx_free(store);
		return status;
	}
	*ret_store = &store->base;
	return HAPAX_OK;
}
