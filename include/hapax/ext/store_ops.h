/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_ops.h - for authors of stores. Users want store.h.
 *
 * A store embeds struct hapax_store as its first member and fills a table of operations. Only
 * store.c calls through the table: it checks arguments and limits, interns the scope and counts
 * decisions, so a backend only decides and stores. This API is less stable than store.h: a minor
 * version may add to the end of the table.
 */
#ifndef HAPAX_EXT_STORE_OPS_H
#define HAPAX_EXT_STORE_OPS_H

#include <hapax/store.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HAPAX_STORE_OPS_VERSION = 1 };

/*
 * Submit count operations. Returns at once; completion runs when every result is decided and, on a
 * durable store, synced. ops and everything they point to stay valid until then. Results are
 * written into ops; nothing is allocated per operation. Operations on one key take effect in array
 * order; two submits in flight have no order. completion runs once, perhaps before submit returns,
 * on the caller's or the store's thread; it must not block and may submit.
 *
 * If the status of an operation is already not HAPAX_OK, the check refused it: leave it alone, and
 * refuse an all-or-nothing group that contains it as a whole. Zero in lease_ms and ttl_ms and empty
 * scopes are already replaced by their defaults. A backend ends a submit with
 * hapax_store_complete(), which counts the decisions and runs completion.
 */
typedef void hapax_store_submit_fn(
	struct hapax_store *store, struct hapax_op *ops, size_t count,
	struct hapax_completion completion);

/*
 * The same for a caller that waits: returns when every result is decided and synced. The backend
 * calls neither completion nor hapax_store_complete().
 */
typedef void hapax_store_run_fn(struct hapax_store *store, struct hapax_op *ops, size_t count);

/* As hapax_store_scan(); scan is complete, with count_max set. Blocks. */
typedef enum hapax_status hapax_store_scan_fn(
	struct hapax_store *store, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	hapax_scan_fn *each, void *context, struct hapax_error *err);

/*
 * Fill in the stats. counts hold what the store has kept, without rows not yet passed to count().
 * each may be NULL. Blocks.
 */
typedef enum hapax_status hapax_store_stats_fn(
	struct hapax_store *store, struct hapax_stats *stats, hapax_counters_fn *each,
	void *context, struct hapax_error *err);

/* As hapax_store_sweep(); count_max is set. Blocks. */
typedef enum hapax_status hapax_store_sweep_fn(
	struct hapax_store *store, struct hapax_sweep *sweep, struct hapax_error *err);

/*
 * Add count rows of decisions to the stored counters, under the current hour of the store's clock:
 * hour_ms is not set. Never synced for its own sake. Called about once a second if there is
 * something to add, and at close, from one thread at a time. Blocks.
 */
typedef enum hapax_status hapax_store_count_fn(
	struct hapax_store *store, const struct hapax_counters *rows, size_t count,
	struct hapax_error *err);

enum hapax_savepoint {
	HAPAX_SAVEPOINT_BEGIN = 1,
	HAPAX_SAVEPOINT_KEEP = 2,
	HAPAX_SAVEPOINT_UNDO = 3,
	HAPAX_SAVEPOINT_HANDLER = 4,
	HAPAX_SAVEPOINT_LAST = 5,
};

/*
 * A part of the caller's transaction that can be undone by itself, including its operations; for
 * stores with HAPAX_STORE_TRANSACTIONS. Savepoints nest; the store tracks the depth. Every BEGIN
 * and HANDLER that returned HAPAX_OK is ended once, by KEEP or UNDO. A BEGIN is outside of all
 * savepoints or in a HANDLER, and a HANDLER is in a BEGIN. The caller uses the connection only in a
 * HANDLER or outside. So a store may defer the requests of BEGIN and of the end of a HANDLER until
 * the next operation or savepoint.
 *
 * BEGIN creates a savepoint. If no transaction is open, it begins one with a write lock, and waits
 * for the lock as long as an operation would. KEEP releases the savepoint, or commits the
 * transaction of BEGIN. UNDO reverts everything since BEGIN; in PostgreSQL it also repairs a
 * transaction in which a statement failed. LAST says that the next submit is the last one of this
 * savepoint. The savepoint is kept if all of that submit is applied, and undone otherwise, so the
 * store may end both together. The following KEEP or UNDO reports the result.
 *
 * A KEEP that fails has ended the savepoint like UNDO, unless it is UNCERTAIN: the answer to the
 * commit was lost. INVALID: the caller left a state that cannot be kept (SQLite: a statement in
 * progress). HANDLER: the caller's changes break a constraint that is checked at the commit.
 * FAILED: the savepoint no longer exists, because other code ended the transaction. Then nothing is
 * touched, and the store is latched: after the rollback, another claim may have the same token.
 */
typedef enum hapax_status hapax_store_savepoint_fn(
	struct hapax_store *store, enum hapax_savepoint savepoint, struct hapax_error *err);

/* As hapax_store_guarantee(). Does not block. Threads: any. */
typedef void hapax_store_guarantee_fn(struct hapax_store *store, char *ret_text, size_t size);

/* As hapax_store_files(); *files is zero except for its size. Blocks. */
typedef enum hapax_status hapax_store_files_fn(
	struct hapax_store *store, struct hapax_files *files, struct hapax_error *err);

/*
 * A watcher exists: from now on, call hapax_store_announce() when any caller makes a record DONE,
 * FAILED or PARKED, as far as the store knows. Does not block.
 */
typedef void hapax_store_watch_fn(struct hapax_store *store);

/* Free everything, including the store itself. No submit is in flight. */
typedef void hapax_store_close_fn(struct hapax_store *store);

struct hapax_store_ops {
	unsigned version;              /* HAPAX_STORE_OPS_VERSION; new operations go at the end */
	const char *name;              /* as in store URLs, metrics and logs */
	unsigned capabilities;         /* enum hapax_store_capability */
	hapax_store_submit_fn *submit; /* required */
	hapax_store_scan_fn *scan;     /* required */
	hapax_store_stats_fn *stats;   /* required */
	hapax_store_sweep_fn *sweep;   /* required */
	hapax_store_close_fn *close;   /* required */
	hapax_store_count_fn *count;   /* NULL: counters live in this process only */
	int is_synchronous;            /* every submit completes before it returns */
	hapax_store_run_fn *run;       /* NULL: submit and wait */
	hapax_store_savepoint_fn *savepoint; /* NULL: no hapax_tx_process() */
	hapax_store_guarantee_fn *guarantee; /* NULL: as the capabilities say */
	hapax_store_files_fn *files;         /* NULL: the store has no segments */
	hapax_store_watch_fn *watch;         /* NULL: nothing is ever announced */
};

/*
 * Called when a record becomes DONE, FAILED or PARKED; most stores never call it, others not
 * always. fn runs on the store's thread; it must not block, use the store or call unwatch.
 */
typedef void hapax_store_event_fn(
	struct hapax_bytes tenant, struct hapax_bytes group, struct hapax_bytes key, void *context);

struct hapax_watcher {
	hapax_store_event_fn *fn;
	void *context;
	struct hapax_watcher *next; /* the store's */
};

struct hx_store_core;

/* First member of every store. */
struct hapax_store {
	const struct hapax_store_ops *ops;
	struct hx_store_core *core; /* private to store.c */
};

/*
 * Make store usable: checks the table and the options, creates the core and, unless disabled,
 * starts housekeeping. Call it last in an open. On failure nothing is left behind. Call
 * hapax_store_detach() first in close; hapax_store_close() has then flushed the counters.
 */
HAPAX_API enum hapax_status hapax_store_attach(
	struct hapax_store *store, const struct hapax_store_ops *ops, const char *url,
	const struct hapax_store_options *options, struct hapax_error *err);

/* NULL core is allowed. */
HAPAX_API void hapax_store_detach(struct hapax_store *store);

/* The caller owns the watcher; after unwatch its function no longer runs. Threads: any. */
HAPAX_API void hapax_store_watch(struct hapax_store *store, struct hapax_watcher *watcher);
HAPAX_API void hapax_store_unwatch(struct hapax_store *store, struct hapax_watcher *watcher);

/* A record became DONE, FAILED or PARKED. Threads: any, without locks that a watcher may take. */
HAPAX_API void hapax_store_announce(
	struct hapax_store *store, struct hapax_bytes tenant, struct hapax_bytes group,
	struct hapax_bytes key);

/* End a submit: every status and outcome is written. Threads: any. */
HAPAX_API void hapax_store_complete(
	struct hapax_store *store, struct hapax_op *ops, size_t count,
	struct hapax_completion completion);

#ifdef __cplusplus
}
#endif

#endif
