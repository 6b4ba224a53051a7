/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_store.c - "sqlite:FILE", one file for many processes.
 *
 * Submits go through a queue to the store's own thread, which answers all waiting ones in one
 * transaction (sqlite_batch.c). Blocking calls run on the caller's thread with a second
 * connection, opened on first use.
 *
 *  (1) io belongs to the thread from its start until it is joined.
 *  (2) side is used with side_mutex held.
 *  (3) Once either connection sets is_failed, nothing is done any more and every operation
 *      answers HAPAX_ERR_FAILED (I11).
 */
#include "store/sqlite/sqlite_store.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <hapax/ext/store_ops.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "store/core.h"
#include "store/request_queue.h"
#include "store/sqlite/sqlite_batch.h"
#include "store/sqlite/sqlite_connection.h"
#include "store/sqlite/sqlite_reserve.h"
#include "store/sqlite/counter.h"
#include "store/sqlite/scan.h"
#include "store/sqlite/sqlite_schema.h"
#include "store/sqlite/sqlite_stats.h"
#include "store/sqlite/sqlite_sweep.h"
#include "store/sqlite/transaction.h"

static const struct hapax_store_ops sqlite_ops;

enum {
	/* Operations in one transaction: a few milliseconds of work between two syncs. */
	BATCH_OPS_MAX = 4096,

	KEEP_CLOCK_TIMEOUT_MS = 100,

	/* SQLite takes no path longer than 512 bytes. */
	DATABASE_SIZE_MAX = 1024,

	/* STRICT tables need 3.37; the loaded library may be older than the headers. */
	SQLITE_VERSION_MIN = 3037000,
};

struct sqlite_store {
	struct hapax_store base;
	char *path;
	struct hapax_store_options options; /* complete */
	_Atomic uint32_t is_failed;
	_Atomic uint64_t swept;

	struct hx_sqlite_connection io;
	struct hx_sqlite_batch batch;
	struct hx_request_queue queue; /* of struct hx_sqlite_request */
	struct hx_thread thread;
	bool has_queue;
	bool has_thread;

	struct hx_mutex side_mutex;
	struct hx_sqlite_connection side;
};

static struct sqlite_store *downcast(struct hapax_store *store)
{
	assert(store->ops == &sqlite_ops);
	return (struct sqlite_store *)store;
}

static void complete(struct sqlite_store *store, struct hx_sqlite_request *requests)
{
	struct hx_sqlite_request *next;

	for (struct hx_sqlite_request *request = requests; request != NULL; request = next) {
		struct hx_sqlite_request done = *request;

		next = done.next;
		hx_request_queue_give_back(&store->queue, request);
		hapax_store_complete(&store->base, done.ops, done.count, done.completion);
	}
}

/* All queued requests, as a list; NULL: the store closes. */
static struct hx_sqlite_request *wait_for_requests(struct sqlite_store *store)
{
	struct hx_sqlite_request *requests = hx_request_queue_wait(&store->queue);

	for (struct hx_sqlite_request *request = requests; request != NULL; request = request->next)
		request->next = hx_request_queue_next(request);
	return requests;
}

/* Keep requests of at most BATCH_OPS_MAX operations, or a single larger one; return the rest. */
static struct hx_sqlite_request *cut_off_rest(struct hx_sqlite_request *requests)
{
	struct hx_sqlite_request *last = requests;
	struct hx_sqlite_request *rest;
	size_t ops = last->count;

	while (last->next != NULL && ops + last->next->count <= BATCH_OPS_MAX) {
		last = last->next;
		ops += last->count;
	}
	rest = last->next;
	last->next = NULL;
	return rest;
}

static void run_batch(struct sqlite_store *store, struct hx_sqlite_request *requests)
{
	while (requests != NULL) {
		struct hx_sqlite_request *rest = hx_sqlite_batch_run(&store->batch, requests);

		complete(store, requests);
		requests = rest;
	}
	hx_sqlite_connection_checkpoint(&store->io);
}

/* The I/O thread: answers first, then checkpoints. */
static void io_run(void *arg)
{
	struct sqlite_store *store = arg;
	struct hx_sqlite_request *requests;

	while ((requests = wait_for_requests(store)) != NULL) {
		while (requests != NULL) {
			struct hx_sqlite_request *rest = cut_off_rest(requests);

			run_batch(store, requests);
			requests = rest;
		}
	}
}

static void sqlite_submit(
	struct hapax_store *base, struct hapax_op *ops, size_t count,
	struct hapax_completion completion)
{
	struct sqlite_store *store = downcast(base);
	struct hx_sqlite_request request = {
		.ops = ops,
		.count = count,
		.completion = completion,
		.deadline_ns = hx_clock_mono_ns() + store->options.timeout_ms * HX_NS_PER_MS,
	};
	enum hapax_status status;

	hx_sqlite_ops_begin(ops, count);
	status = hx_request_queue_push(&store->queue, &request);
	if (status != HAPAX_OK)
		hx_store_fail_submit(base, ops, count, completion, status);
}

/* Lock the second connection, opening it on first use. On failure it is not locked. */
static enum hapax_status side_take(struct sqlite_store *store, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	hx_mutex_lock(&store->side_mutex);
	if (atomic_load(&store->is_failed) != 0)
		status = hx_error_set(
			err, HAPAX_ERR_FAILED, 0,
			"the store '%s' stopped after an error; reopen it", store->path);
	if (status == HAPAX_OK && store->side.db == NULL) {
		hx_sqlite_connection_set_timeout(&store->side, store->options.timeout_ms);
		status = hx_sqlite_connection_open(&store->side, 0, err);
		if (status == HAPAX_OK)
			status = hx_sqlite_connection_accept(&store->side, false, err);
		if (status != HAPAX_OK)
			hx_sqlite_connection_close(&store->side);
		store->side.has_reserve = status == HAPAX_OK && store->io.has_reserve;
	}
	if (status != HAPAX_OK)
		hx_mutex_unlock(&store->side_mutex);
	return status;
}

static void side_give_back(struct sqlite_store *store)
{
	hx_sqlite_connection_checkpoint(&store->side);
	hx_mutex_unlock(&store->side_mutex);
}

static enum hapax_status sqlite_scan(
	struct hapax_store *base, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	hapax_scan_fn *each, void *context, struct hapax_error *err)
{
	struct sqlite_store *store = downcast(base);
	enum hapax_status status = side_take(store, err);

	if (status != HAPAX_OK)
		return status;
	side_give_back(store);
	return hx_sqlite_scan(
		&store->side, &store->side_mutex, &store->options, scan, cursor, each, context,
		err);
}

/* Space may be back without a caller that needs it. Locks: side_mutex. */
static void measure_space(struct sqlite_store *store, struct hapax_stats *stats)
{
	const char *database = sqlite3_db_filename(store->side.db, "main");
	bool is_short;

	if (!store->side.has_reserve)
		return;
	is_short = store->io.is_short != 0 || store->side.is_short != 0 ||
		!hx_sqlite_reserve_keep(database);
	if (is_short && hx_sqlite_reserve_has_more(database))
		is_short = false;
	store->io.is_short = store->side.is_short = is_short;
	stats->disk_full = is_short;
	stats->reserve_bytes = hx_sqlite_reserve_bytes(database);
}

static enum hapax_status sqlite_stats(
	struct hapax_store *base, struct hapax_stats *stats, hapax_counters_fn *each, void *context,
	struct hapax_error *err)
{
	struct sqlite_store *store = downcast(base);
	enum hapax_status status = side_take(store, err);

	if (status != HAPAX_OK)
		return status;
	status = hx_sqlite_stats(&store->side, &store->options, stats, err);
	measure_space(store, stats);
	side_give_back(store);
	stats->swept = atomic_load_explicit(&store->swept, memory_order_relaxed);
	if (status != HAPAX_OK || each == NULL)
		return status;
	return hx_sqlite_counter_list(
		&store->side, &store->side_mutex, &store->options, each, context, err);
}

static enum hapax_status sqlite_sweep(
	struct hapax_store *base, struct hapax_sweep *sweep, struct hapax_error *err)
{
	struct sqlite_store *store = downcast(base);
	enum hapax_status status = side_take(store, err);

	if (status != HAPAX_OK)
		return status;
	/* Sweeping makes room, so it may take some. */
	do
		status = hx_sqlite_sweep(&store->side, &store->options, sweep, err);
	while (status == HAPAX_ERR_LIMIT && hx_sqlite_connection_make_space(&store->side));
	atomic_fetch_add_explicit(&store->swept, sweep->removed, memory_order_relaxed);
	side_give_back(store);
	return status;
}

static enum hapax_status sqlite_count(
	struct hapax_store *base, const struct hapax_counters *rows, size_t count,
	struct hapax_error *err)
{
	struct sqlite_store *store = downcast(base);
	enum hapax_status status = side_take(store, err);

	if (status != HAPAX_OK)
		return status;
	status = hx_sqlite_counter_add(&store->side, &store->options, rows, count, err);
	side_give_back(store);
	return status;
}

/* Stop the I/O thread; io then belongs to the caller. */
static void stop(struct sqlite_store *store)
{
	if (store->has_queue)
		hx_request_queue_stop(&store->queue);
	if (store->has_thread)
		hx_thread_join(&store->thread);
	store->has_thread = false;
}

/* Also frees a store that was only half opened. */
static void store_free(struct sqlite_store *store)
{
	char database[DATABASE_SIZE_MAX] = "";

	stop(store);
	if (store->io.has_reserve)
		(void)snprintf(
			database, sizeof(database), "%s",
			sqlite3_db_filename(store->io.db, "main"));
	if (store->has_queue)
		hx_request_queue_done(&store->queue);
	hx_sqlite_workspace_done(&store->batch.workspace);
	hx_sqlite_connection_close(&store->side);
	hx_sqlite_connection_close(&store->io);
	/* SQLite has removed its log: the space goes back to the reserve. */
	if (database[0] != '\0')
		(void)hx_sqlite_reserve_keep(database);
	hx_mutex_done(&store->side_mutex);
	hx_free(store->path);
	hx_free(store);
}

/*
 * An orderly close keeps the clock, so that it never goes back behind a time that was read,
 * whatever the wall clock says after a reboot (I8). Not synced, and not worth waiting for. Locks:
 * none; no other thread is left.
 */
static void keep_clock(struct sqlite_store *store)
{
	struct hx_sqlite_transaction transaction;
	bool is_old;

	hx_sqlite_connection_set_timeout(&store->io, KEEP_CLOCK_TIMEOUT_MS);
	if (hx_sqlite_connection_is_failed(&store->io) ||
	    hx_sqlite_transaction_begin(
		    &transaction, &store->io, &store->options, HX_SQLITE_READ) != SQLITE_OK)
		return;
	is_old = !transaction.needs_write && hx_sqlite_transaction_has_old_mark(&transaction);
	hx_sqlite_transaction_abort(&transaction);
	if (!is_old || hx_sqlite_connection_relax(&store->io, true) != SQLITE_OK ||
	    hx_sqlite_transaction_begin(
		    &transaction, &store->io, &store->options, HX_SQLITE_WRITE) != SQLITE_OK)
		return;
	transaction.is_dirty = true;
	(void)hx_sqlite_transaction_commit(&transaction);
}

static void sqlite_close(struct hapax_store *base)
{
	struct sqlite_store *store = downcast(base);

	hapax_store_detach(base);
	stop(store);
	keep_clock(store);
	store_free(store);
}

static struct sqlite_store *store_new(const char *path, const struct hapax_store_options *options)
{
	struct sqlite_store *store = hx_alloc_zero(1, sizeof(*store));
	size_t path_size = strlen(path) + 1;

	if (store == NULL)
		return NULL;
	store->path = hx_alloc(path_size);
	if (store->path == NULL) {
		hx_free(store);
		return NULL;
	}
	memcpy(store->path, path, path_size);
	store->options = *options;
	hx_mutex_init(&store->side_mutex);
	hx_sqlite_connection_init(&store->io, store->path, &store->is_failed);
	store->batch = (struct hx_sqlite_batch){
		.connection = &store->io,
		.workspace = {.options = &store->options},
		.swept = &store->swept,
	};
	return store;
}

/* Renew a mark of an earlier boot now, so that readers need not write. */
static enum hapax_status renew_clock_mark(struct sqlite_store *store, struct hapax_error *err)
{
	struct hx_sqlite_transaction transaction;
	int code = hx_sqlite_transaction_begin(
		&transaction, &store->io, &store->options, HX_SQLITE_READ);
	bool is_stale = code == SQLITE_OK && transaction.needs_write;

	if (code == SQLITE_OK)
		hx_sqlite_transaction_abort(&transaction);
	if (is_stale) {
		code = hx_sqlite_transaction_begin(
			&transaction, &store->io, &store->options, HX_SQLITE_WRITE);
		if (code == SQLITE_OK)
			code = hx_sqlite_transaction_commit(&transaction);
	}
	if (code == SQLITE_OK)
		return HAPAX_OK;
	if (transaction.stage == HX_SQLITE_BEFORE_COMMIT)
		return hx_sqlite_schema_fail(&store->io, code, err);
	return hx_sqlite_connection_fail(
		&store->io, code, transaction.stage, "could not store the clock", err);
}

/* Inspect the file before anything is changed, then migrate it to this version. */
static enum hapax_status open_ledger(struct sqlite_store *store, struct hapax_error *err)
{
	struct hx_sqlite_migrations migrations = hx_sqlite_schema_migrations();
	bool must_exist = (store->options.flags & HAPAX_STORE_MUST_EXIST) != 0;
	struct hx_sqlite_schema schema;
	enum hapax_status status;

	hx_sqlite_connection_set_timeout(&store->io, store->options.timeout_ms);
	status = hx_sqlite_connection_open(&store->io, must_exist ? 0 : HX_SQLITE_CREATE, err);
	if (status != HAPAX_OK)
		return status;
	/* SQLite made the name absolute: the working directory may change before it is used. */
	hx_sqlite_connection_init(
		&store->side, sqlite3_db_filename(store->io.db, "main"), &store->is_failed);
	status = hx_sqlite_schema_inspect(&store->io, migrations, &schema, err);
	if (status == HAPAX_OK && must_exist && schema.version == 0)
		status = hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0, "'%s' has no store", store->path);
	if (status == HAPAX_OK)
		status = hx_sqlite_schema_refuse_foreign(&store->io, &schema, err);
	/* In an application's joined database, the application chooses the journal. */
	if (status == HAPAX_OK)
		status = hx_sqlite_connection_accept(
			&store->io, schema.is_empty || schema.is_ours, err);
	if (status == HAPAX_OK && schema.version != (int64_t)migrations.count)
		status = hx_sqlite_schema_migrate(
			&store->io, migrations, true, store->options.clock, err);
	if (status == HAPAX_OK)
		status = renew_clock_mark(store, err);
	/* Both connections use one clock. */
	store->side.has_own_mark = store->io.has_own_mark;
	store->side.own_mark = store->io.own_mark;
	return status;
}

/* An open that failed on a full disk: give it space of the reserve. False: there is none. */
static bool make_space_to_open(struct sqlite_store *store)
{
	const char *database =
		store->io.db != NULL ? sqlite3_db_filename(store->io.db, "main") : NULL;
	bool is_released = database != NULL && hx_sqlite_reserve_release(database);

	hx_sqlite_connection_close(&store->io);
	hx_sqlite_connection_init(&store->io, store->path, &store->is_failed);
	return is_released;
}

static enum hapax_status start(struct sqlite_store *store, struct hapax_error *err)
{
	enum hapax_status status =
		hx_request_queue_init(&store->queue, sizeof(struct hx_sqlite_request));

	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "not enough memory to open a store");
	store->has_queue = true;
	status = hx_thread_start(&store->thread, io_run, store, "hapax-sqlite", err);
	store->has_thread = status == HAPAX_OK;
	return status;
}

static enum hapax_status check_request(
	const char *path, const struct hapax_store_options *options, struct hapax_error *err)
{
	if (path[0] == '\0')
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "missing file, as in 'sqlite:hapax.db'");
	if (strcmp(path, ":memory:") == 0)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"cannot use 'sqlite::memory:'; use 'memory:', or a file");
	if (options->evict != HAPAX_EVICT_NONE)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"a SQLite store cannot evict; use memory:, or no eviction");
	if (sqlite3_libversion_number() < SQLITE_VERSION_MIN || sqlite3_threadsafe() == 0)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"SQLite %s is too old or built without threads: version 3.37 or later "
			"is required",
			sqlite3_libversion());
	return HAPAX_OK;
}

static const struct hapax_store_ops sqlite_ops = {
	.version = HAPAX_STORE_OPS_VERSION,
	.name = "sqlite",
	.capabilities = HAPAX_STORE_DURABLE | HAPAX_STORE_TOKEN_GLOBAL | HAPAX_STORE_MULTI_KEY |
		HAPAX_STORE_CLOCK,
	.submit = sqlite_submit,
	.scan = sqlite_scan,
	.stats = sqlite_stats,
	.sweep = sqlite_sweep,
	.count = sqlite_count,
	.close = sqlite_close,
};

enum hapax_status hx_sqlite_open(
	const char *url, const char *path, const struct hapax_store_options *options,
	struct hapax_store **ret_store, struct hapax_error *err)
{
	struct hapax_store_options complete;
	struct sqlite_store *store;
	enum hapax_status status = hx_store_options_complete(options, &complete, err);

	if (status == HAPAX_OK)
		status = check_request(path, &complete, err);
	if (status != HAPAX_OK)
		return status;
	store = store_new(path, &complete);
	if (store == NULL)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to open a store");
	do
		status = open_ledger(store, err);
	while (status == HAPAX_ERR_LIMIT && make_space_to_open(store));
	if (status == HAPAX_OK)
		status = start(store, err);
	if (status == HAPAX_OK)
		status = hapax_store_attach(&store->base, &sqlite_ops, url, &complete, err);
	if (status != HAPAX_OK) {
		store_free(store);
		return status;
	}
	*ret_store = &store->base;
	return HAPAX_OK;
}
