/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - the ledger: one caller gets the right to run, all others are told.
 *
 * hapax_store_submit() is the one primitive: an array of operations in, the
 * answers written into the same array, a completion when all of them are decided
 * and, on a durable store, synced. The calls below it are blocking wrappers for a
 * single operation.
 *
 * Caveats
 * - Fork: a store does not survive fork(); open it in the child.
 * - Threads: any thread may use a store, several at once. Closing is for one
 *   thread, after every submit has completed.
 * - Clocks: leases and expiry follow the store's clock, never the caller's.
 * - An answer other than HAPAX_OK says whether nothing was done or nobody knows:
 *   see error.h. After HAPAX_ERR_UNCERTAIN a claim is settled by repeating it with
 *   the same attempt_id, the calls with a token by repeating them; a check cannot
 *   be settled, since its repeat may answer REPLAY to its own mark.
 * - A check is at most once: a crash after it loses the work. Claim and complete
 *   is what makes the effect happen once.
 */
#ifndef HAPAX_STORE_H
#define HAPAX_STORE_H

#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/clock.h>
#include <hapax/error.h>
#include <hapax/record.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hapax_store;

/* A time to live without end. Zero in a ttl_ms means the default, 24 hours. */
#define HAPAX_TTL_FOREVER INT64_MAX

enum hapax_store_capability {
	HAPAX_STORE_DURABLE = 1 << 0,      /* an answer survives a power cut */
	HAPAX_STORE_TOKEN_GLOBAL = 1 << 1, /* tokens rise over the whole store, not per key */
	HAPAX_STORE_TRANSACTIONS = 1 << 2, /* operations join the caller's SQL transaction */
	HAPAX_STORE_MULTI_KEY = 1 << 3,    /* linked operations take effect together */
	HAPAX_STORE_CLOCK = 1 << 4,        /* all users of the store share its clock */
};

enum hapax_evict {
	HAPAX_EVICT_NONE = 0, /* when full, refuse with HAPAX_ERR_LIMIT */
	HAPAX_EVICT_LRU = 1,  /* when full, forget DONE records used least lately; counted */
};

enum hapax_store_flags {
	HAPAX_STORE_NO_HOUSEKEEPING = 1 << 0, /* no thread: the caller sweeps and flushes */
	HAPAX_STORE_MUST_EXIST = 1 << 1,      /* do not create what is not there */
};

/* How far an open has come; units are bytes. Called now and then, by the thread that opens. */
typedef void hapax_store_progress_fn(uint64_t done, uint64_t total, void *context);

/*
 * Zero means the default in every field.
 *
 * A store that has keys_max keys or bytes_max bytes answers HAPAX_ERR_LIMIT to a claim,
 * check or set that needs more. These limits do not refuse a renew, release, park or
 * complete, since the work was done: of a result that does not fit, the body is left out
 * (result.omitted_bytes tells its size), and if the store is fuller than that, the
 * headers and the text of an error, too.
 *
 * A renew, release, park or complete may be answered with LIMIT if it is linked
 * (HAPAX_OP_LINKED) with an operation that is refused, if the place itself has no room (a
 * full disk), or if too many requests are under way. Nothing was done; repeat it while
 * the lease lasts.
 */
struct hapax_store_options {
	size_t size;                     /* set by HAPAX_STORE_OPTIONS_INIT */
	unsigned flags;                  /* enum hapax_store_flags */
	enum hapax_evict evict;          /* memory: only */
	const struct hapax_clock *clock; /* NULL: the system's. Must outlive the store */
	uint64_t bytes_max;              /* 0: no limit */
	uint64_t keys_max;               /* 0: no limit */
	uint64_t parked_max;             /* per scope; 0: 10,000 */
	uint64_t result_size_max;        /* 0: 256 KiB; at most 16 MiB */
	int64_t clock_step_ms_max;       /* 0: 7 days; how far a restart may jump ahead */
	int64_t sweep_interval_ms;       /* 0: 5 minutes */
	int64_t timeout_ms;              /* 0: 5 seconds; how long a call waits for a busy store */
	uint64_t segment_bytes;          /* file: only; 0: 64 MiB; at least 16 KiB */
	/*
	 * file: only. 0: every answer is durable. Otherwise unsafe: answers are given
	 * before they are, and a crash may take back as many milliseconds of them.
	 */
	int64_t unsafe_interval_ms;
	hapax_store_progress_fn *progress; /* NULL: nobody wants to know */
	void *progress_context;
};

#define HAPAX_STORE_OPTIONS_INIT                                                                 \
	{                                                                                        \
		sizeof(struct hapax_store_options), 0, HAPAX_EVICT_NONE, NULL, 0, 0, 0, 0, 0, 0, \
			0, 0, 0, NULL, NULL                                                      \
	}

/*
 * Open a store by URL: "memory:", "sqlite:FILE", "file:DIR", "redis://HOST",
 * "redis+cluster://HOST", "postgres://HOST/DATABASE", "http://HOST" (the API of a
 * daemon). An unknown scheme is HAPAX_ERR_UNSUPPORTED, and the message lists the
 * known ones. options may be NULL.
 *
 * Owned: *ret_store, by the caller; see hapax_store_close(). Blocks on files.
 */
HAPAX_API enum hapax_status hapax_store_open(
	const char *url, const struct hapax_store_options *options, struct hapax_store **ret_store,
	struct hapax_error *err);

/* Versions of a ledger's tables; both zero where opening takes care of it. */
struct hapax_migration {
	int64_t from; /* 0: there was none */
	int64_t to;
};

/*
 * Make the ledger's tables, or bring them up to date: where a database belongs to others
 * too (postgres://), opening a store does not change it. In one step: it is done, or the
 * ledger is as before. Repeating it does no harm. ret_migration may be NULL. Blocks.
 */
HAPAX_API enum hapax_status hapax_store_migrate(
	const char *url, struct hapax_migration *ret_migration, struct hapax_error *err);

/* Flush counters, release everything. NULL is allowed. No submit may be in flight. */
HAPAX_API void hapax_store_close(struct hapax_store *store);

/* As given to open, with a password hidden. Borrowed from store. */
HAPAX_API const char *hapax_store_url(const struct hapax_store *store);

/* "memory", "sqlite", ... Borrowed, lives for ever. */
HAPAX_API const char *hapax_store_name(const struct hapax_store *store);

/* enum hapax_store_capability, or-ed. */
HAPAX_API unsigned hapax_store_capabilities(const struct hapax_store *store);

/*
 * What an answer survives, in a sentence for people, cut at size. On a server it
 * follows from its settings, and may be another after a reconnect.
 */
HAPAX_API void hapax_store_guarantee(struct hapax_store *store, char *ret_text, size_t size);

enum hapax_op_type {
	HAPAX_OP_CLAIM = 1,    /* ask for the right to run */
	HAPAX_OP_RENEW = 2,    /* token: restart the lease */
	HAPAX_OP_COMPLETE = 3, /* token: the run succeeded, or failed for good; keep its result */
	HAPAX_OP_RELEASE = 4,  /* token: the run failed; the next claim runs */
	HAPAX_OP_PARK = 5,     /* token: nobody knows; wait for a decision */
	HAPAX_OP_CHECK = 6,    /* claim and complete in one step, without result: at most once */
	HAPAX_OP_LOOKUP = 7,   /* read the record */
	HAPAX_OP_FORGET = 8,   /* remove a DONE or FAILED record */
	HAPAX_OP_SET = 9,      /* write a DONE record with a value, as Redis SET does */
	HAPAX_OP_EXPIRE = 10,  /* change the expiry of a record made by set */
	HAPAX_OP_LOAD =
		11, /* write a record as it is; for copies (store_copy.h), decides nothing */
};

enum hapax_op_flags {
	/*
	 * This operation and the next one take effect in one step: visible and
	 * durable together. A run of linked operations is a group of at most 1,024; no
	 * key may occur twice in it. Needs HAPAX_STORE_MULTI_KEY.
	 */
	HAPAX_OP_LINKED = 1 << 0,
	/*
	 * On the first operation of a group: nothing is done unless every claim in it
	 * is ACQUIRED and every other operation APPLIED. Those that would have been
	 * answer SKIPPED then, the others what stood in the way. Claims of such a
	 * group share one token and must share one attempt_id.
	 */
	HAPAX_OP_ALL_OR_NOTHING = 1 << 1,
	/* forget: remove CLAIMED and PARKED too; a holder is FENCED from then on. */
	HAPAX_OP_FORCE = 1 << 2,
	/* forget: only one made by set, else BUSY; with set_if IF_EQUAL, of this value, else NOT_MET. */
	HAPAX_OP_SET_ONLY = 1 << 3,
	/* set: keep the expiry that the record has, if there is one. */
	HAPAX_OP_KEEP_TTL = 1 << 4,
	/*
	 * set, expire: ttl_ms is the point in time at which the record expires, by the
	 * store's clock, up to the year 9999; expires_ms is then that very number. One
	 * that has passed, by the store's clock, means a millisecond from now, one more
	 * than a hundred years ahead a hundred years.
	 */
	HAPAX_OP_TTL_IS_TIME = 1 << 5,
};

enum hapax_set_if {
	HAPAX_SET_ALWAYS = 0,
	HAPAX_SET_IF_ABSENT = 1,
	HAPAX_SET_IF_PRESENT = 2,
	HAPAX_SET_IF_EQUAL = 3, /* the value is op.expected */
};

enum hapax_outcome {
	HAPAX_OUTCOME_NONE = 0,        /* not decided: see status */
	HAPAX_OUTCOME_ACQUIRED = 1,    /* claim: run now. check: this is the first */
	HAPAX_OUTCOME_REPLAY = 2,      /* claim, check: already done; the result is kept */
	HAPAX_OUTCOME_IN_PROGRESS = 3, /* claim, check: somebody runs */
	HAPAX_OUTCOME_MISMATCH = 4,    /* claim, check: same key, other payload */
	HAPAX_OUTCOME_PARKED = 5,      /* claim, check: waits for a decision */
	HAPAX_OUTCOME_APPLIED = 6,     /* done as asked; also when repeated */
	HAPAX_OUTCOME_FOUND = 7,       /* lookup */
	HAPAX_OUTCOME_ABSENT = 8,      /* lookup, forget, expire: no such record */
	HAPAX_OUTCOME_BUSY = 9,        /* forget, set, expire: not while it is claimed or parked,
	                                  or not a record made by set */
	HAPAX_OUTCOME_NOT_MET = 10,    /* set, forget: the condition did not hold */
	HAPAX_OUTCOME_SKIPPED = 11,    /* another operation of the group stood in the way */
};

/*
 * One operation. Zero it, then set what its type needs; zero means the default
 * or none, and is replaced by the default. Everything it points at stays valid
 * until completion.
 */
struct hapax_op {
	/* In, every type. */
	enum hapax_op_type type;
	unsigned flags;            /* enum hapax_op_flags */
	struct hapax_bytes tenant; /* empty: "default"; at most 128 bytes */
	struct hapax_bytes group;  /* empty: "default"; at most 128 bytes */
	struct hapax_bytes key;    /* 1 to 1,024 bytes */

	/* In, by type. */
	const unsigned char *fingerprint;  /* claim, check: 32 bytes; NULL: none */
	const unsigned char *attempt_id;   /* claim: 16 random bytes, new for each new call; all
	                                      zeros, a forgotten hapax_attempt_id(), is refused */
	const struct hapax_result *result; /* complete, set: NULL is kind none */
	struct hapax_bytes owner;          /* claim: text for people, at most 128 bytes */
	struct hapax_bytes error;          /* release, park: text for people, at most 1,024 bytes */
	struct hapax_bytes expected;       /* set, forget: for HAPAX_SET_IF_EQUAL */
	/*
	 * load: the record to write in place of what the key has, with its token and
	 * times; its own names are not read. Tokens go on above its token.
	 */
	const struct hapax_record *load;
	int64_t lease_ms;             /* claim, renew: 0 is 30 s; at most 7 d */
	int64_t ttl_ms;               /* claim, check, set, expire: 0 is 24 h; see TTL_IS_TIME */
	enum hapax_on_lapse on_lapse; /* claim */
	enum hapax_set_if set_if;     /* set; of forget see SET_ONLY */

	/*
	 * In for renew, complete, release, park. Out for every other: the token of the claim
	 * when ACQUIRED, of the record when FOUND or APPLIED, else 0. IN_PROGRESS in particular
	 * does not tell the holder's token: whoever uses it ends the holder's claim. A lookup, or
	 * record below, shows the token of a record.
	 */
	uint64_t token;

	/*
	 * Where the record is to be written, or NULL: as it stood before set and
	 * forget, as it stands after all others; without its result for a MISMATCH. Its
	 * bytes go into buf, which must be there if record is; it is cleared first. Not
	 * written when no record exists.
	 */
	struct hapax_record *record;
	struct hapax_buf *buf;

	/* Out. */
	enum hapax_status status;
	enum hapax_outcome outcome;
	uint32_t attempt;      /* of the record, when there is one */
	int unverified;        /* claim, check: one side had no fingerprint to compare */
	int64_t first_seen_ms; /* of the record, when there is one */
	int64_t expires_ms;    /* of the record, or HAPAX_TIME_NEVER */
	int64_t lease_left_ms; /* CLAIMED: what is left of the lease, 0 when it lapsed */

	void *context;          /* the caller's own; never read */
	uint32_t private_scope; /* the store's own; leave it alone */
	uint32_t private_state;
};

/* Runs once for each submit, perhaps before submit returns. Must not block; may submit. */
typedef void hapax_completion_fn(struct hapax_op *ops, size_t count, void *context);

struct hapax_completion {
	hapax_completion_fn *fn;
	void *context;
};

/*
 * Submit count operations, at most 65,536. Never blocks. Operations on one key
 * take effect in array order; between two submits in flight there is no order.
 * Every operation ends with a status of its own in ops[i].status. Completion runs
 * on the caller's or on the store's thread.
 */
HAPAX_API void hapax_store_submit(
	struct hapax_store *store, struct hapax_op *ops, size_t count,
	struct hapax_completion completion);

/*
 * Submit and wait. Returns the first status that is not HAPAX_OK, and describes
 * that one in err. Must not be called from a completion.
 */
HAPAX_API enum hapax_status hapax_store_run(
	struct hapax_store *store, struct hapax_op *ops, size_t count, struct hapax_error *err);

/*
 * Claim several keys, at most 1,024, for one execution: all or nothing.
 * ops[i].tenant, group, key and fingerprint are read from the array, which is
 * sorted by key; the rest of the claim comes from ops[0]. *ret_index is the
 * operation that decided the outcome: the first MISMATCH, else the first that is
 * not ACQUIRED.
 * HAPAX_ERR_UNSUPPORTED without HAPAX_STORE_MULTI_KEY.
 */
HAPAX_API enum hapax_status hapax_store_claim_all(
	struct hapax_store *store, struct hapax_op *ops, size_t count,
	enum hapax_outcome *ret_outcome, size_t *ret_index, struct hapax_error *err);

/*
 * The plain way to ask "is this the first time?" for one key in default/default.
 * Without a fingerprint; ttl_ms as in struct hapax_op. At most once: see above.
 */
HAPAX_API enum hapax_status hapax_store_check(
	struct hapax_store *store, struct hapax_bytes key, int64_t ttl_ms,
	enum hapax_outcome *ret_outcome, struct hapax_error *err);

/* Fill in a new attempt_id, for a new claim. Threads: any. */
HAPAX_API void hapax_attempt_id(unsigned char ret_attempt_id[HAPAX_ATTEMPT_ID_SIZE]);

/* Where a scan stands. Zero it to begin; it is of use only in this process. */
struct hapax_cursor {
	uint32_t size; /* bytes of place in use */
	uint32_t done; /* 1 when the scan has come to its end */
	unsigned char place[1408];
};

enum hapax_scan_flags {
	HAPAX_SCAN_EXPIRED = 1 << 0, /* records past their expiry too */
};

struct hapax_scan {
	size_t size;               /* set by HAPAX_SCAN_INIT */
	unsigned flags;            /* enum hapax_scan_flags */
	struct hapax_bytes tenant; /* empty: all */
	struct hapax_bytes group;  /* empty: all */
	struct hapax_bytes prefix; /* of the key; empty: all */
	enum hapax_state state;    /* HAPAX_STATE_ABSENT: all */
	size_t count_max;          /* 0: 1,000; how many records to hand out in this call */
};

#define HAPAX_SCAN_INIT                                                                            \
	{                                                                                          \
		sizeof(struct hapax_scan), 0, {NULL, 0}, {NULL, 0}, {NULL, 0}, HAPAX_STATE_ABSENT, \
			0                                                                          \
	}

/* Called for each record, which is borrowed. Must not use the store. Non-zero stops. */
typedef int hapax_scan_fn(const struct hapax_record *record, void *context);

/*
 * Walk the records, in no order that means anything. A record that is there from
 * the first call to the last is handed out at least once; one that is changed in
 * the meantime may be handed out twice. Loop until cursor->done. Blocks.
 */
HAPAX_API enum hapax_status hapax_store_scan(
	struct hapax_store *store, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	hapax_scan_fn *each, void *context, struct hapax_error *err);

/* What the store decided, counted per scope and hour. */
enum hapax_decision {
	HAPAX_DECISION_ACQUIRED = 0,
	HAPAX_DECISION_REPLAY = 1,
	HAPAX_DECISION_IN_PROGRESS = 2,
	HAPAX_DECISION_MISMATCH = 3,
	HAPAX_DECISION_PARKED = 4,
	HAPAX_DECISION_FENCED = 5,
	HAPAX_DECISION_COMPLETED = 6,
	HAPAX_DECISION_RELEASED = 7,
	HAPAX_DECISION_UNVERIFIED = 8, /* answered without comparing fingerprints */
	HAPAX_DECISION_LIMIT = 9,
	HAPAX_DECISION_FORGOTTEN = 10,
};
enum { HAPAX_DECISION_COUNT = 11 };

HAPAX_API const char *hapax_decision_name(enum hapax_decision decision);

struct hapax_counters {
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	int64_t hour_ms; /* the hour's beginning */
	uint64_t counts[HAPAX_DECISION_COUNT];
};

/* Called for each row, which is borrowed. Must not use the store. Non-zero stops. */
typedef int hapax_counters_fn(const struct hapax_counters *counters, void *context);

struct hapax_stats {
	size_t size;     /* set by HAPAX_STATS_INIT */
	int64_t now_ms;  /* the store's clock */
	int64_t skew_ms; /* the store's clock minus this machine's */
	uint64_t keys;   /* records, expired ones that were not yet swept included */
	uint64_t claimed;
	uint64_t done;
	uint64_t failed;
	uint64_t parked;
	uint64_t expired;   /* of keys: past their expiry and not yet swept, as far as known */
	uint64_t bytes;     /* used by records and index: in memory, of sqlite: in the file */
	uint64_t bytes_max; /* 0: no limit */
	uint64_t keys_max;  /* 0: no limit */
	uint64_t evicted;   /* unexpired records forgotten because the store was full */
	uint64_t swept;     /* expired records removed since open */
	uint64_t token;     /* none above it was given out */
	uint64_t counts[HAPAX_DECISION_COUNT]; /* all scopes, all hours that are kept */
	/*
	 * Attempts to tidy the store's files that failed since the last that did not, and results that
	 * could not be read from them since open; sweep says why.
	 */
	uint64_t tidy_failures;
	/* Housekeeping of this process since open: passes over what has expired. */
	uint64_t sweeps;
	uint64_t sweep_ns; /* the time that they took */
	uint64_t sweep_failures;
};

#define HAPAX_STATS_INIT                                                                         \
	{                                                                                        \
		sizeof(struct hapax_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}, 0, 0, \
			0, 0                                                                     \
	}

/* ret_stats->size must be set. each may be NULL; it gets a row per scope and hour. Blocks. */
HAPAX_API enum hapax_status hapax_store_stats(
	struct hapax_store *store, struct hapax_stats *ret_stats, hapax_counters_fn *each,
	void *context, struct hapax_error *err);

/* What a store of segments has on disk. */
struct hapax_files {
	size_t size;             /* set by HAPAX_FILES_INIT */
	uint64_t log_segments;   /* of the log, those prepared ahead included */
	uint64_t log_bytes;      /* as large as they are, room ahead included */
	uint64_t class_segments; /* dense ones, by expiry */
	uint64_t class_bytes;
	uint64_t live_bytes;  /* about what the records that have not expired take of these */
	uint64_t lsn;         /* of the next entry of the log */
	uint64_t durable_lsn; /* all below it is synced */
	int64_t owed_ms;      /* by which its clock is still behind the wall clock after a reboot */
	int was_closed;       /* it was closed before it was opened, or is new; 0: it recovered */
};

#define HAPAX_FILES_INIT                                              \
	{                                                             \
		sizeof(struct hapax_files), 0, 0, 0, 0, 0, 0, 0, 0, 0 \
	}

/*
 * ret_files->size must be set. UNSUPPORTED: the store has no segments. Looks at every record.
 * Blocks.
 */
HAPAX_API enum hapax_status hapax_store_files(
	struct hapax_store *store, struct hapax_files *ret_files, struct hapax_error *err);

struct hapax_sweep {
	size_t size;        /* set by HAPAX_SWEEP_INIT */
	size_t count_max;   /* in: records to look at in this call; 0: 10,000 */
	uint64_t looked;    /* out: records looked at */
	uint64_t removed;   /* out: expired records removed */
	uint64_t lapsed;    /* out: lapsed claims that became FAILED or PARKED */
	uint64_t remaining; /* out: records left in the store */
	int done;           /* out: nothing more to do now */
};

#define HAPAX_SWEEP_INIT                                     \
	{                                                    \
		sizeof(struct hapax_sweep), 0, 0, 0, 0, 0, 0 \
	}

/*
 * Remove what has expired and settle claims that nobody took up, a bounded piece
 * of work at a time: call until done. Housekeeping does this by itself. The last
 * call also tells what the store's files could not be tidied for (stats count it), or
 * that a result could not be read from them; no other record is concerned by that. Blocks.
 */
HAPAX_API enum hapax_status hapax_store_sweep(
	struct hapax_store *store, struct hapax_sweep *sweep, struct hapax_error *err);

/* "claim", "acquired": the words of the glossary. Never NULL. */
HAPAX_API const char *hapax_op_type_name(enum hapax_op_type type);
HAPAX_API const char *hapax_outcome_name(enum hapax_outcome outcome);

#ifdef __cplusplus
}
#endif

#endif
