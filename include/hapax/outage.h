/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outage.h - what happens while a shared store cannot be reached.
 *
 * A guarded store stands before another one. When that one does not answer, calls end
 * at once instead of waiting one after the other (a circuit breaker), and for scopes
 * that rather run twice than not at all, claims and checks go on by a journal: a store
 * on this machine. The journal de-duplicates what it let through on this machine; what
 * other machines let through meanwhile it cannot know. When the store is back, what the
 * journal holds is first written there as done, and whatever had run elsewhere as well
 * is counted and reported; only then do claims go to the store again.
 *
 * Caveats
 * - A result whose claim was made before the outage is kept in the journal, too, and
 *   completes its claim later.
 * - A claim in the journal whose holder died is settled when its lease has lapsed; a holder
 *   that comes late still has its result kept, unless somebody ran since.
 * - Marks become records of claims in the store: only those can be repeated after a crash.
 * - If the journal cannot be written, the answer is HAPAX_ERR_UNAVAILABLE.
 * - A check that ended HAPAX_ERR_UNCERTAIN stays so: it cannot be settled.
 * - A journal on "sqlite:" keeps whole fingerprints, and can be listed while it is in
 *   use; on "file:" it keeps none for the store that is back.
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

/* What became of a record of a journal. */
enum hapax_reconciled {
	HAPAX_RECONCILED_KEPT = 0,     /* it is done in the store, too, now */
	HAPAX_RECONCILED_TWICE = 1,    /* it had run elsewhere as well */
	HAPAX_RECONCILED_MISMATCH = 2, /* the store has it with another payload */
	HAPAX_RECONCILED_FAILED = 3,   /* it did not succeed, or lapsed: nothing to write */
	HAPAX_RECONCILED_LATER = 4,    /* somebody runs it now, it is parked, or the store has no
	                                  room: it stays */
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
 * Write what journal holds into store as done, and take it out of the journal, some hundred
 * records at a time. A record counts when it is taken out. May be repeated, also after a
 * crash: nothing is counted as run twice because of it. Blocks. An error says which record it
 * met; what is counted by then is settled. CORRUPT: a record of the journal cannot be read; it
 * counts as one for later, and the others are settled.
 */
HAPAX_API enum hapax_status hapax_journal_reconcile(
	struct hapax_store *journal, struct hapax_store *store, struct hapax_reconcile *reconcile,
	struct hapax_error *err);

/* Does the scope go on without the store? Called often; must not block or use a store. */
typedef int hapax_outage_policy_fn(
	struct hapax_bytes tenant, struct hapax_bytes group, void *context);

/* Zero means the default. */
struct hapax_outage_options {
	size_t size;                       /* set by HAPAX_OUTAGE_OPTIONS_INIT */
	unsigned flags;                    /* HAPAX_STORE_NO_HOUSEKEEPING: the caller ticks */
	const struct hapax_clock *clock;   /* NULL: the system's */
	struct hapax_store *journal;       /* NULL: no scope goes on. The caller's: it is closed
	                                      after the guarded store */
	hapax_outage_policy_fn *continues; /* NULL: every scope, if there is a journal */
	void *continues_context;
	unsigned failures_max;  /* 0: 3 submits in a row, then the store counts as away */
	int64_t backoff_ms_min; /* 0: 100 ms until it is tried again, doubled each time */
	int64_t backoff_ms_max; /* 0: 10 s */
	/*
	 * For each record that is reconciled; may be NULL. For a run that ended beside its
	 * duplicate it is called on the thread that completed it.
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
 * Guard store, which must outlive the guarded one. INVALID: the journal has been used as
 * a store of its own. Owned: *ret_store, by the caller; see hapax_store_close().
 */
HAPAX_API enum hapax_status hapax_outage_guard(
	struct hapax_store *store, const struct hapax_outage_options *options,
	struct hapax_store **ret_store, struct hapax_error *err);

struct hapax_outage {
	size_t size;           /* set by HAPAX_OUTAGE_INIT */
	int is_away;           /* the store counts as away: it is not asked */
	int uses_journal;      /* the journal holds something */
	uint64_t outages;      /* how often it went away */
	uint64_t refused;      /* operations that ended at once because it is away */
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

/* INVALID when store is not a guarded one. Threads: any. */
HAPAX_API enum hapax_status hapax_outage_tell(
	struct hapax_store *store, struct hapax_outage *ret_outage, struct hapax_error *err);

/*
 * Do what is due: try the store again, reconcile. Returns when to call again, by the
 * clock's boot_ms, or HAPAX_TIME_NEVER. Only with HAPAX_STORE_NO_HOUSEKEEPING. Blocks.
 */
HAPAX_API int64_t hapax_outage_tick(struct hapax_store *store);

#ifdef __cplusplus
}
#endif

#endif
