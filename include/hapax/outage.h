/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outage.h - continue, or fail fast, while a shared store is unavailable.
 *
 * A guarded store wraps another store. While that one does not answer, calls fail at once instead
 * of waiting one after the other (a circuit breaker). For scopes that prefer to run twice rather
 * than not at all, claims and checks use a journal: a store on this machine. The journal
 * deduplicates on this machine, but cannot know what other machines run. When the store is
 * available again, the journal's records are first written to it as done. Keys that also ran
 * elsewhere are counted and reported. Only then do claims use the store again.
 *
 * Caveats
 * - If a claim was made before the outage, the journal keeps its result and completes the claim
 *   later.
 * - A claim in the journal whose holder died is settled when its lease has lapsed. A late holder's
 *   result is still kept, unless another run has started since.
 * - Marks become records of claims in the store, since only those can be repeated after a crash.
 * - If the journal cannot be written, the answer is HAPAX_ERR_UNAVAILABLE.
 * - A check that returned HAPAX_ERR_UNCERTAIN cannot be settled.
 * - A journal on "sqlite:" keeps whole fingerprints, and can be listed while it is in use; on
 *   "file:" it gives the store none.
 */
#ifndef HAPAX_OUTAGE_H
#define HAPAX_OUTAGE_H

#include <stddef.h>
#include <stdint.h>

#include <hapax/error.h>
#include <hapax/record.h>
#include <hapax/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The verdict on a record of a journal. */
enum hapax_reconciled {
	HAPAX_RECONCILED_KEPT = 0,     /* it is now done in the store, too */
	HAPAX_RECONCILED_TWICE = 1,    /* it also ran elsewhere */
	HAPAX_RECONCILED_MISMATCH = 2, /* the store has it with a different payload */
	HAPAX_RECONCILED_FAILED = 3,   /* it failed or lapsed: nothing to write */
	HAPAX_RECONCILED_LATER = 4,    /* it is running or parked, or the store is full: it stays */
};
enum { HAPAX_RECONCILED_COUNT = 5 };

/* "kept", "twice", ... Never NULL. */
HAPAX_API const char *hapax_reconciled_name(enum hapax_reconciled verdict);

/* Called for each record, which is borrowed. Must not use the stores. */
typedef void hapax_reconciled_fn(
	const struct hapax_record *record, enum hapax_reconciled verdict, void *context);

struct hapax_reconcile {
	size_t size;                             /* set by HAPAX_RECONCILE_INIT */
	hapax_reconciled_fn *each;               /* in: may be NULL */
	void *context;                           /* in: for each */
	uint64_t counts[HAPAX_RECONCILED_COUNT]; /* out: added to */
};

#define HAPAX_RECONCILE_INIT                                \
	{                                                   \
		sizeof(struct hapax_reconcile), NULL, NULL, \
		{                                           \
			0                                   \
		}                                           \
	}

/*
 * Write the journal's records into store as done, and remove them from the journal, a few hundred
 * at a time. A record counts when it is removed. It may be repeated, even after a crash; the repeat
 * counts nothing as run twice. An error names its record; records counted by then are settled.
 * CORRUPT: a record of the journal cannot be read; it counts as later, and the others are settled.
 * Blocks.
 */
HAPAX_API enum hapax_status hapax_journal_reconcile(
	struct hapax_store *journal, struct hapax_store *store, struct hapax_reconcile *reconcile,
	struct hapax_error *err);

/* Does the scope continue without the store? Called often; must not block or use a store. */
typedef int hapax_outage_policy_fn(
	struct hapax_bytes tenant, struct hapax_bytes group, void *context);

/* Zero means the default. */
struct hapax_outage_options {
	size_t size;                       /* set by HAPAX_OUTAGE_OPTIONS_INIT */
	unsigned flags;                    /* HAPAX_STORE_NO_HOUSEKEEPING: the caller ticks */
	const struct hapax_clock *clock;   /* NULL: the system clock */
	struct hapax_store *journal;       /* NULL: no scope continues. The caller closes it
	                                      after the guarded store */
	hapax_outage_policy_fn *continues; /* NULL: every scope, if there is a journal */
	void *continues_context;
	unsigned failures_max;  /* 0: 3 submits in a row, then the store counts as down */
	int64_t backoff_ms_min; /* 0: 100 ms until the next try, doubled each time */
	int64_t backoff_ms_max; /* 0: 10 s */
	/*
	 * Called for each reconciled record; may be NULL. For a run that overlapped its
	 * duplicate, it is called on the thread that completed the run.
	 */
	hapax_reconciled_fn *each;
	void *each_context;
};

#define HAPAX_OUTAGE_OPTIONS_INIT                                                              \
	{                                                                                      \
		sizeof(struct hapax_outage_options), 0, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, \
			NULL                                                                   \
	}

/*
 * Guard store, which must outlive the guarded one. INVALID: the journal was used as an ordinary
 * store. Owned: *ret_store, by the caller; see hapax_store_close().
 */
HAPAX_API enum hapax_status hapax_outage_guard(
	struct hapax_store *store, const struct hapax_outage_options *options,
	struct hapax_store **ret_store, struct hapax_error *err);

struct hapax_outage {
	size_t size;           /* set by HAPAX_OUTAGE_INIT */
	int is_away;           /* the store counts as down and is not asked */
	int uses_journal;      /* the journal is not empty */
	uint64_t outages;      /* how often the store went down */
	uint64_t refused;      /* operations that failed at once because it is down */
	uint64_t continued;    /* claims and checks that the journal let through */
	uint64_t kept_results; /* results of earlier claims that the journal keeps, or kept */
	uint64_t reconciled[HAPAX_RECONCILED_COUNT];
};

#define HAPAX_OUTAGE_INIT                                      \
	{                                                      \
		sizeof(struct hapax_outage), 0, 0, 0, 0, 0, 0, \
		{                                              \
			0                                      \
		}                                              \
	}

/* INVALID: store is not guarded. Threads: any. */
HAPAX_API enum hapax_status hapax_outage_tell(
	struct hapax_store *store, struct hapax_outage *ret_outage, struct hapax_error *err);

/*
 * Do all due work: try the store again, reconcile. Returns the time of the next call, by the
 * clock's boot_ms, or HAPAX_TIME_NEVER. Only with HAPAX_STORE_NO_HOUSEKEEPING. Blocks.
 */
HAPAX_API int64_t hapax_outage_tick(struct hapax_store *store);

#ifdef __cplusplus
}
#endif

#endif
