/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_ops.h - for authors of stores. Users want store.h.
 *
 * A store embeds struct hapax_store as its first member and fills a table of
 * operations. Only store.c calls through the table: it has checked arguments and
 * limits, interned the scope, and it counts what was decided, so a backend does
 * nothing but decide and keep. The promise of stability here is weaker than in
 * store.h: the table may grow with a minor version, at its end.
 */
#ifndef HAPAX_EXT_STORE_OPS_H
#define HAPAX_EXT_STORE_OPS_H

#include <hapax/store.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HAPAX_STORE_OPS_VERSION = 1 };

/*
 * Submit count operations. Returns at once; completion runs when every result is
 * decided and, on a durable store, synced. ops and what they point to stay valid
 * until then. Results are written into ops; nothing is allocated per operation.
 * Operations on one key take effect in array order; two submits in flight have no
 * order. completion runs once, perhaps before submit returns, on the caller's or
 * the store's thread; it must not block and may submit.
 *
 * An operation whose status is already not HAPAX_OK was refused by the check and
 * is to be left alone; an all-or-nothing group that holds one is refused whole.
 * Zero in lease_ms and ttl_ms and empty scopes have been replaced by what they
 * stand for. A backend ends a submit by hapax_store_complete(), which counts the
 * decisions and runs completion.
 */
typedef void hapax_store_submit_fn(
	struct hapax_store *store, struct hapax_op *ops, size_t count,
	struct hapax_completion completion);

/*
 * The same for a caller that waits: returns when every result is decided and
 * synced. A backend does no more than that: no completion, no hapax_store_complete().
 */
typedef void hapax_store_run_fn(struct hapax_store *store, struct hapax_op *ops, size_t count);

/* As hapax_store_scan(); scan is complete, with count_max set. Blocks. */
typedef enum hapax_status hapax_store_scan_fn(
	struct hapax_store *store, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	hapax_scan_fn *each, void *context, struct hapax_error *err);

/*
 * Fill what the store knows; counts hold what the store keeps, without what has
 * not been given to count() yet. each may be NULL. Blocks.
 */
typedef enum hapax_status hapax_store_stats_fn(
	struct hapax_store *store, struct hapax_stats *stats, hapax_counters_fn *each,
	void *context, struct hapax_error *err);

/* As hapax_store_sweep(); count_max is set. Blocks. */
typedef enum hapax_status hapax_store_sweep_fn(
	struct hapax_store *store, struct hapax_sweep *sweep, struct hapax_error *err);

/*
 * Add count rows of decisions to what the store keeps, under the current hour of
 * the store's clock: hour_ms is not set. Never synced for its own
 * sake. Called about once a second while there is something to add, and at close,
 * from one thread at a time. Blocks.
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
 * A part of the caller's transaction that can be undone by itself, the operations in it
 * included; for stores with HAPAX_STORE_TRANSACTIONS. Savepoints nest; the store knows how
 * deep it is. Every BEGIN and HANDLER that returned HAPAX_OK is ended once, by KEEP or UNDO.
 * A BEGIN stands outside or in a HANDLER, and a HANDLER in a BEGIN: only in a HANDLER, or
 * outside, does the caller use the connection. So a store may put off what BEGIN and the end of a
 * HANDLER ask of its server until the next operation, or the next savepoint.
 *
 * BEGIN makes a savepoint; where no transaction is open it begins one, with the lock
 * that writing needs, and waits for that as long as an operation would. KEEP releases
 * the savepoint, or commits what BEGIN began. UNDO takes everything since BEGIN back; in
 * PostgreSQL that also mends a transaction in which a statement failed. LAST says that the
 * next submit is the last one of this savepoint, which is to be kept if all of it is applied,
 * and undone otherwise; so the store may end the savepoint along with it. The KEEP or
 * UNDO that follows tells how that went.
 *
 * A KEEP that fails has ended the savepoint as UNDO does, unless it is UNCERTAIN: the
 * answer to the commit was lost. INVALID: the caller left it in a state that cannot be
 * kept (SQLite: a statement in progress). HANDLER: the caller's changes break a
 * constraint that is checked at the commit. FAILED: the savepoint is not there any more,
 * because somebody else ended the transaction. Then nothing is touched, and the store is
 * latched: a token of what was rolled back may be another's by now.
 */
typedef enum hapax_status hapax_store_savepoint_fn(
	struct hapax_store *store, enum hapax_savepoint savepoint, struct hapax_error *err);

/* As hapax_store_guarantee(). Does not block. Threads: any. */
typedef void hapax_store_guarantee_fn(struct hapax_store *store, char *ret_text, size_t size);

/* As hapax_store_files(); *files is zero but for its size. Blocks. */
typedef enum hapax_status hapax_store_files_fn(
	struct hapax_store *store, struct hapax_files *files, struct hapax_error *err);

/*
 * From now on somebody wants to be told when a record becomes DONE, FAILED or PARKED, by
 * whomever: call hapax_store_announce() then, as far as it is known. Does not block.
 */
typedef void hapax_store_watch_fn(struct hapax_store *store);

/* Free everything, the store itself included. No submit is in flight. */
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
	hapax_store_savepoint_fn *savepoint; /* NULL: hapax_tx_process() is not for it */
	hapax_store_guarantee_fn *guarantee; /* NULL: as the capabilities say */
	hapax_store_files_fn *files;         /* NULL: it has no segments */
	hapax_store_watch_fn *watch;         /* NULL: nothing is ever announced */
};

/*
 * Somebody who wants to be told that records came to an end; on most stores nobody is ever
 * told, on others not always. fn runs on the store's thread; it must not block, use the
 * store or call unwatch.
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
	struct hx_store_core *core; /* what store.c keeps for it */
};

/*
 * Make store usable: checks the table and the options, builds what store.c keeps
 * and, unless flagged off, starts housekeeping; so it comes last in an open. On
 * failure nothing is left behind. Undo it with hapax_store_detach() as the first
 * thing in close (hapax_store_close() has then flushed the counters).
 */
HAPAX_API enum hapax_status hapax_store_attach(
	struct hapax_store *store, const struct hapax_store_ops *ops, const char *url,
	const struct hapax_store_options *options, struct hapax_error *err);

/* NULL core is allowed. */
HAPAX_API void hapax_store_detach(struct hapax_store *store);

/* The watcher is the caller's; after unwatch its function does not run any more. Threads: any. */
HAPAX_API void hapax_store_watch(struct hapax_store *store, struct hapax_watcher *watcher);
HAPAX_API void hapax_store_unwatch(struct hapax_store *store, struct hapax_watcher *watcher);

/* A record became DONE, FAILED or PARKED. Threads: any, but with no lock that a watcher may want. */
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
