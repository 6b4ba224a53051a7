/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - the store: grants claims, keeps results, answers duplicates.
 *
 * hapax_store_submit() takes an array of operations and writes the answers into the same array. It
 * calls the completion when every operation is decided and, on a durable store, synced. The calls
 * below it are blocking wrappers for a single operation.
 *
 * Caveats
 * - Fork: a store does not survive fork(). Open it in the child.
 * - Threads: any thread may use a store, several at once. Close it from one thread, after every
 *   submit has completed.
 * - Clocks: leases and expiry use the store's clock, never the caller's.
 * - Errors: HAPAX_ERR_UNCERTAIN means the operation may have taken effect; for the others see
 *   error.h. To settle an uncertain claim, repeat it with the same attempt_id. To settle renew,
 *   complete, release or park, repeat it with the same token. A check cannot be settled: its repeat
 *   may answer REPLAY to its own mark.
 * - A check is at most once: a crash after it loses the work. Only claim and complete make the
 *   effect happen once.
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

/* A time to live without end. A ttl_ms of 0 means the default, 24 hours. */
#define HAPAX_TTL_FOREVER INT64_MAX

enum hapax_store_capability {
	HAPAX_STORE_DURABLE = 1 << 0,      /* an answer survives a power cut */
	HAPAX_STORE_TOKEN_GLOBAL = 1 << 1, /* tokens rise across the whole store, not per key */
	HAPAX_STORE_TRANSACTIONS = 1 << 2, /* operations join the caller's SQL transaction */
	HAPAX_STORE_MULTI_KEY = 1 << 3,    /* linked operations take effect together */
	HAPAX_STORE_CLOCK = 1 << 4,        /* all users of the store share its clock */
};

enum hapax_evict {
	HAPAX_EVICT_NONE = 0, /* when full, refuse with HAPAX_ERR_LIMIT */
	HAPAX_EVICT_LRU = 1,  /* when full, forget the least recently used DONE records; counted */
};

enum hapax_store_flags {
	HAPAX_STORE_NO_HOUSEKEEPING = 1 << 0, /* no thread: the caller sweeps and flushes */
	HAPAX_STORE_MUST_EXIST = 1 << 1,      /* do not create a missing store */
};

/* Reports the progress of an open, in bytes. Called from time to time, by the opening thread. */
typedef void hapax_store_progress_fn(uint64_t done, uint64_t total, void *context);

/* Reports a sweep by housekeeping: the sum of its calls. On its thread; must not use the store. */
struct hapax_sweep;
typedef void hapax_store_swept_fn(const struct hapax_sweep *sum, int64_t took_ms, void *context);

/*
 * Zero means the default in every field.
 *
 * A store that has keys_max keys or bytes_max bytes answers HAPAX_ERR_LIMIT to a claim, check or
 * set that needs more. These limits never refuse a renew, release, park or complete, since the work
 * was done. If a result does not fit, its body is left out (result.omitted_bytes is its size). If
 * the store is still too full, the headers and the error text are left out as well.
 *
 * A renew, release, park or complete may get LIMIT if it is linked (HAPAX_OP_LINKED) with a
 * refused operation, if the disk is full and the reserve of the store is used up (reserve_bytes in
 * struct hapax_stats), or if too many requests are in progress. Nothing was done; repeat it while
 * the lease lasts.
 */
struct hapax_store_options {
	size_t size;                     /* set by HAPAX_STORE_OPTIONS_INIT */
	unsigned flags;                  /* enum hapax_store_flags */
	enum hapax_evict evict;          /* memory: only */
	const struct hapax_clock *clock; /* NULL: the system clock. Must outlive the store */
	uint64_t bytes_max;              /* 0: no limit */
	uint64_t keys_max;               /* 0: no limit */
	uint64_t parked_max;             /* per scope; 0: 10,000 */
	uint64_t result_size_max;        /* 0: 256 KiB; at most 16 MiB */
	int64_t clock_step_ms_max;       /* 0: 7 days; maximum jump ahead at a restart */
	int64_t sweep_interval_ms;       /* 0: 5 minutes */
	int64_t timeout_ms;              /* 0: 5 seconds; maximum wait for a busy store */
	uint64_t segment_bytes;          /* file: only; 0: 64 MiB; at least 16 KiB */
	/*
	 * file: only. 0: every answer is durable. Otherwise unsafe: answers are sent before they
	 * are durable, and a crash may lose this many milliseconds of them.
	 */
	int64_t unsafe_interval_ms;
	hapax_store_progress_fn *progress; /* may be NULL */
	void *progress_context;
	hapax_store_swept_fn *swept; /* may be NULL */
	void *swept_context;
};

#define HAPAX_STORE_OPTIONS_INIT                                                                 \
	{                                                                                        \
		sizeof(struct hapax_store_options), 0, HAPAX_EVICT_NONE, NULL, 0, 0, 0, 0, 0, 0, \
			0, 0, 0, NULL, NULL, NULL, NULL                                          \
	}

/*
 * Open a store by URL:
 *	memory:, file:DIR, sqlite:FILE
 *	postgres://HOST/DATABASE, postgresql://...
 *	redis://HOST, rediss://HOST (TLS), redis+unix:PATH
 *	redis+cluster://HOST,HOST..., rediss+cluster://HOST,HOST...
 *	http://HOST, https://HOST, http+unix:PATH (the API of a daemon)
 * HAPAX_ERR_UNSUPPORTED: the scheme is unknown; the message lists the known ones. options may be
 * NULL.
 *
 * Owned: *ret_store, by the caller; see hapax_store_close(). Blocks on files.
 */
HAPAX_API enum hapax_status hapax_store_open(
	const char *url, const struct hapax_store_options *options, struct hapax_store **ret_store,
	struct hapax_error *err);

/* Versions of a store's tables; both are zero if opening the store migrates it. */
struct hapax_migration {
	int64_t from; /* 0: there were no tables */
	int64_t to;
};

/*
 * Create or update the store's tables. Opening a store does not change a database that has other
 * users (postgres://). The migration happens in one step or not at all, and repeating it is
 * harmless. ret_migration may be NULL. Blocks.
 */
HAPAX_API enum hapax_status hapax_store_migrate(
	const char *url, struct hapax_migration *ret_migration, struct hapax_error *err);

/* Flush counters and free everything. NULL is allowed. No submit may be in flight. */
HAPAX_API void hapax_store_close(struct hapax_store *store);

/* The URL given to open, with its password hidden. Borrowed from store. */
HAPAX_API const char *hapax_store_url(const struct hapax_store *store);

/*
 * Call the API of the daemon behind a store of http://, https:// or http+unix:. path follows
 * /api/v1. OK: the daemon answered 200 with this reply. UNSUPPORTED: the store has no daemon, or the
 * daemon refuses the call. Blocks, for at most a minute.
 */
HAPAX_API enum hapax_status hapax_store_call(
	struct hapax_store *store, const char *method, const char *path, struct hapax_bytes body,
	struct hapax_buf *reply, struct hapax_error *err);

/* "memory", "sqlite", ... Borrowed, valid forever. */
HAPAX_API const char *hapax_store_name(const struct hapax_store *store);

/* enum hapax_store_capability, ORed. */
HAPAX_API unsigned hapax_store_capabilities(const struct hapax_store *store);

/*
 * One sentence for people about what an answer survives, cut at size. For a server it depends on
 * the server's settings, and may change with a reconnect.
 */
HAPAX_API void hapax_store_guarantee(struct hapax_store *store, char *ret_text, size_t size);

enum hapax_op_type {
	HAPAX_OP_CLAIM = 1,    /* claim the key: may this caller run? */
	HAPAX_OP_RENEW = 2,    /* token: restart the lease */
	HAPAX_OP_COMPLETE = 3, /* token: the run succeeded or failed permanently; store its
	                          result */
	HAPAX_OP_RELEASE = 4,  /* token: the run failed; the next claim runs */
	HAPAX_OP_PARK = 5,     /* token: the outcome is unknown; wait for a decision */
	HAPAX_OP_CHECK = 6,    /* claim and complete in one step, without result: at most once */
	HAPAX_OP_LOOKUP = 7,   /* read the record */
	HAPAX_OP_FORGET = 8,   /* remove a DONE or FAILED record */
	HAPAX_OP_SET = 9,      /* write a DONE record with a value, as Redis SET does */
	HAPAX_OP_EXPIRE = 10,  /* change the expiry of a record created by set */
	HAPAX_OP_LOAD = 11,    /* write a record unchanged; for copies (copy.h), decides nothing */
};

enum hapax_op_flags {
	/*
	 * This operation and the next one take effect in one step: they become visible and durable
	 * together. A run of linked operations is a group of at most 1,024 without duplicate keys.
	 * Needs HAPAX_STORE_MULTI_KEY.
	 */
	HAPAX_OP_LINKED = 1 << 0,
	/*
	 * On the first operation of a group: nothing is done unless every claim in it is ACQUIRED
	 * and every other operation APPLIED. Otherwise, operations that would have succeeded answer
	 * SKIPPED, and the others say why they did not. Claims of such a group share one token and
	 * must share one attempt_id.
	 */
	HAPAX_OP_ALL_OR_NOTHING = 1 << 1,
	/* forget: also remove CLAIMED and PARKED records; a holder is FENCED from then on. */
	HAPAX_OP_FORCE = 1 << 2,
	/*
	 * forget: BUSY unless set created the record; with IF_EQUAL, NOT_MET unless the value
	 * matches.
	 */
	HAPAX_OP_SET_ONLY = 1 << 3,
	/* set: keep the expiry of an existing record. */
	HAPAX_OP_KEEP_TTL = 1 << 4,
	/*
	 * set, expire: ttl_ms is the time at which the record expires, by the store's clock, up to
	 * the year 9999; expires_ms is then that number. A time in the past, by the store's clock,
	 * means a millisecond from now. A time more than a hundred years ahead means a hundred
	 * years.
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
	HAPAX_OUTCOME_ACQUIRED = 1,    /* claim: run now. check: first time */
	HAPAX_OUTCOME_REPLAY = 2,      /* claim, check: already done; the result is stored */
	HAPAX_OUTCOME_IN_PROGRESS = 3, /* claim, check: another caller holds the claim */
	HAPAX_OUTCOME_MISMATCH = 4,    /* claim, check: same key, different payload */
	HAPAX_OUTCOME_PARKED = 5,      /* claim, check: waits for a decision */
	HAPAX_OUTCOME_APPLIED = 6,     /* done as requested; also for a repeat */
	HAPAX_OUTCOME_FOUND = 7,       /* lookup */
	HAPAX_OUTCOME_ABSENT = 8,      /* lookup, forget, expire: no such record */
	HAPAX_OUTCOME_BUSY = 9,        /* forget, set, expire: the record is claimed or parked,
	                                  or was not created by set */
	HAPAX_OUTCOME_NOT_MET = 10,    /* set, forget: the condition did not hold */
	HAPAX_OUTCOME_SKIPPED = 11,    /* another operation of the group failed */
};

/*
 * One operation. Zero it, then set the fields that its type needs. Zero means none or the default,
 * and is replaced by the default. Everything it points at must stay valid until completion.
 */
struct hapax_op {
	/* In, every type. */
	enum hapax_op_type type;
	unsigned flags;            /* enum hapax_op_flags */
	struct hapax_bytes tenant; /* empty: "default"; at most 128 bytes, no slash, not "*" */
	struct hapax_bytes group;  /* the same */
	struct hapax_bytes key;    /* 1 to 1,024 bytes */

	/* In, by type. */
	const unsigned char *fingerprint;  /* claim, check: 32 bytes; NULL: none */
	const unsigned char *attempt_id;   /* claim: 16 random bytes, new for each new call; all
	                                      zeros (a missing hapax_attempt_id()) are refused */
	const struct hapax_result *result; /* complete, set: NULL is kind none */
	struct hapax_bytes owner;          /* claim: text for people, at most 128 bytes */
	struct hapax_bytes cause;          /* claim: its event, by hapax_cause_write(); or empty */
	struct hapax_bytes error;          /* release, park: text for people, at most 1,024 bytes */
	struct hapax_bytes expected;       /* set, forget: for HAPAX_SET_IF_EQUAL */
	/*
	 * load: the record that replaces the key's record, with its token and times; its own names
	 * are not read. Later tokens are above its token.
	 */
	const struct hapax_record *load;
	int64_t lease_ms;             /* claim, renew: 0 is 30 s; at most 7 d */
	int64_t ttl_ms;               /* claim, check, set, expire: 0 is 24 h; see TTL_IS_TIME */
	enum hapax_on_lapse on_lapse; /* claim */
	enum hapax_set_if set_if;     /* set; for forget see SET_ONLY */

	/*
	 * In for renew, complete, release, park. Out for all others: the token of the claim if
	 * ACQUIRED, of the record if FOUND or APPLIED, else 0. IN_PROGRESS does not reveal the
	 * holder's token, since any caller could end the claim with it. A lookup, or record below,
	 * shows the token of a record.
	 */
	uint64_t token;

	/*
	 * Receives the record; may be NULL. set and forget write its state before the operation,
	 * all others its state after it; MISMATCH leaves out result, owner, error and cause. Its
	 * bytes go into buf, which is required with record and is cleared first. Not written if no
	 * record exists.
	 */
	struct hapax_record *record;
	struct hapax_buf *buf;

	/* Out. */
	enum hapax_status status;
	enum hapax_outcome outcome;
	uint32_t attempt; /* of the record, if there is one */
	int unverified;   /* claim, check: one side had no fingerprint to compare */
	int repeated;     /* complete, release, park: it had ended so already; nothing changed */
	int continued;    /* claim, check: the store did not answer, its journal did; outage.h */
	int64_t first_seen_ms; /* of the record, if there is one */
	int64_t expires_ms;    /* of the record, or HAPAX_TIME_NEVER */
	int64_t lease_left_ms; /* CLAIMED: time left in the lease, 0 if it lapsed */

	void *context;          /* the caller's own; never read */
	uint32_t private_scope; /* private to the store */
	uint32_t private_state;
};

/* Runs once for each submit, perhaps before submit returns. Must not block; may submit. */
typedef void hapax_completion_fn(struct hapax_op *ops, size_t count, void *context);

struct hapax_completion {
	hapax_completion_fn *fn;
	void *context;
};

/*
 * Submit count operations, at most 65,536. Never blocks. Operations on one key take effect in array
 * order; two submits in flight have no order. Every operation gets its own ops[i].status.
 * Completion runs on the caller's or on the store's thread.
 */
HAPAX_API void hapax_store_submit(
	struct hapax_store *store, struct hapax_op *ops, size_t count,
	struct hapax_completion completion);

/*
 * Submit and wait. Returns the first status that is not HAPAX_OK, and describes it in err. Must not
 * be called from a completion.
 */
HAPAX_API enum hapax_status hapax_store_run(
	struct hapax_store *store, struct hapax_op *ops, size_t count, struct hapax_error *err);

/*
 * Claim several keys, at most 1,024, for one execution: all or nothing. It reads tenant, group, key
 * and fingerprint from each ops[i], and sorts the array by key. The rest of the claim comes from
 * ops[0]. *ret_index is the operation that decided the outcome: the first MISMATCH, else the first
 * that is not ACQUIRED. HAPAX_ERR_UNSUPPORTED without HAPAX_STORE_MULTI_KEY.
 */
HAPAX_API enum hapax_status hapax_store_claim_all(
	struct hapax_store *store, struct hapax_op *ops, size_t count,
	enum hapax_outcome *ret_outcome, size_t *ret_index, struct hapax_error *err);

/*
 * Ask "is this the first time?" for one key in default/default, without a fingerprint. ttl_ms is as
 * in struct hapax_op. At most once: see above.
 */
HAPAX_API enum hapax_status hapax_store_check(
	struct hapax_store *store, struct hapax_bytes key, int64_t ttl_ms,
	enum hapax_outcome *ret_outcome, struct hapax_error *err);

/*
 * Forget every key of a scope, whatever its state; holders are FENCED. Keys that are added meanwhile
 * may stay. told, which may be NULL, is called after each thousand; if it does not return 0, the call
 * ends there. After a failure *ret_forgotten counts those that are gone. Blocks.
 */
HAPAX_API enum hapax_status hapax_store_forget_scope(
	struct hapax_store *store, struct hapax_bytes tenant, struct hapax_bytes group,
	int (*told)(void *context, uint64_t forgotten), void *context, uint64_t *ret_forgotten,
	struct hapax_error *err);

/* Create an attempt_id for a new claim. Threads: any. */
HAPAX_API void hapax_attempt_id(unsigned char ret_attempt_id[HAPAX_ATTEMPT_ID_SIZE]);

/* The position of a scan. Zero it to begin; it is valid only in this process. */
struct hapax_cursor {
	uint32_t size; /* bytes of place in use */
	uint32_t done; /* 1 when the scan is complete */
	unsigned char place[1408];
};

enum hapax_scan_flags {
	HAPAX_SCAN_EXPIRED = 1 << 0, /* also records past their expiry */
};

struct hapax_scan {
	size_t size;               /* set by HAPAX_SCAN_INIT */
	unsigned flags;            /* enum hapax_scan_flags */
	struct hapax_bytes tenant; /* empty: all */
	struct hapax_bytes group;  /* empty: all */
	struct hapax_bytes prefix; /* of the key; empty: all */
	enum hapax_state state;    /* HAPAX_STATE_ABSENT: all */
	size_t count_max;          /* 0: 1,000; maximum number of records in this call */
};

#define HAPAX_SCAN_INIT                                                                            \
	{                                                                                          \
		sizeof(struct hapax_scan), 0, {NULL, 0}, {NULL, 0}, {NULL, 0}, HAPAX_STATE_ABSENT, \
			0                                                                          \
	}

/* Called for each record, which is borrowed. Must not use the store. Nonzero stops. */
typedef int hapax_scan_fn(const struct hapax_record *record, void *context);

/*
 * Walk the records, in no particular order. A record that exists from the first call to the last is
 * returned at least once; one that changes in the meantime may be returned twice. Loop until
 * cursor->done. Blocks.
 */
HAPAX_API enum hapax_status hapax_store_scan(
	struct hapax_store *store, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	hapax_scan_fn *each, void *context, struct hapax_error *err);

/* The store's decisions, counted per scope and hour. */
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
	int64_t hour_ms; /* start of the hour */
	uint64_t counts[HAPAX_DECISION_COUNT];
};

/* Called for each row, which is borrowed. Must not use the store. Nonzero stops. */
typedef int hapax_counters_fn(const struct hapax_counters *counters, void *context);

struct hapax_stats {
	size_t size;     /* set by HAPAX_STATS_INIT */
	int64_t now_ms;  /* the store's clock */
	int64_t skew_ms; /* the store's clock minus this machine's */
	uint64_t keys;   /* records, including expired ones not yet swept */
	uint64_t claimed;
	uint64_t done;
	uint64_t failed;
	uint64_t parked;
	uint64_t expired;   /* of keys: expired and not yet swept, as far as known */
	uint64_t bytes;     /* used by records and index, in memory; sqlite: in the file */
	uint64_t bytes_max; /* 0: no limit */
	uint64_t keys_max;  /* 0: no limit */
	uint64_t evicted;   /* unexpired records forgotten because the store was full */
	uint64_t swept;     /* expired records removed since open */
	uint64_t token;     /* no higher token was issued */
	uint64_t counts[HAPAX_DECISION_COUNT]; /* all scopes, all hours that are kept */
	/*
	 * Failed attempts to tidy the store's files since the last success, and results that could
	 * not be read from them since open; sweep reports the cause.
	 */
	uint64_t tidy_failures;
	/* Housekeeping of this process since open: sweeps of expired records. */
	uint64_t sweeps;
	uint64_t sweep_ns; /* time taken by them */
	uint64_t sweep_failures;
	/*
	 * Disk space held for live claims to end when the disk is full (file:, sqlite:), and whether
	 * the disk had none left for new records when the store last needed some.
	 */
	uint64_t reserve_bytes;
	uint64_t disk_full; /* 0 or 1 */
};

#define HAPAX_STATS_INIT                                                                         \
	{                                                                                        \
		sizeof(struct hapax_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}, 0, 0, \
			0, 0, 0, 0                                                               \
	}

/* ret_stats->size must be set. each may be NULL; it gets a row per scope and hour. Blocks. */
HAPAX_API enum hapax_status hapax_store_stats(
	struct hapax_store *store, struct hapax_stats *ret_stats, hapax_counters_fn *each,
	void *context, struct hapax_error *err);

/* The files of a store that consists of segments. */
struct hapax_files {
	size_t size;             /* set by HAPAX_FILES_INIT */
	uint64_t log_segments;   /* of the log, including those prepared ahead */
	uint64_t log_bytes;      /* file sizes, including space prepared ahead */
	uint64_t class_segments; /* dense segments, by expiry */
	uint64_t class_bytes;
	uint64_t live_bytes;  /* approximate share of unexpired records in these */
	uint64_t lsn;         /* of the next entry of the log */
	uint64_t durable_lsn; /* every entry below it is synced */
	int64_t owed_ms;      /* how far its clock is still behind the wall clock after a reboot */
	int was_closed;       /* closed cleanly before this open, or new; 0: it recovered */
};

#define HAPAX_FILES_INIT                                              \
	{                                                             \
		sizeof(struct hapax_files), 0, 0, 0, 0, 0, 0, 0, 0, 0 \
	}

/*
 * ret_files->size must be set. UNSUPPORTED: the store has no segments. Reads every record. Blocks.
 */
HAPAX_API enum hapax_status hapax_store_files(
	struct hapax_store *store, struct hapax_files *ret_files, struct hapax_error *err);

struct hapax_sweep {
	size_t size;        /* set by HAPAX_SWEEP_INIT */
	size_t count_max;   /* in: records to examine in this call; 0: 10,000 */
	uint64_t looked;    /* out: records examined */
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
 * Remove expired records and settle lapsed claims, in bounded steps: call until done. Housekeeping
 * does this by itself. The last call also reports why the store's files could not be tidied (stats
 * count it), or that a result could not be read from them. No other record is affected. Blocks.
 */
HAPAX_API enum hapax_status hapax_store_sweep(
	struct hapax_store *store, struct hapax_sweep *sweep, struct hapax_error *err);

/* The names in the glossary: "claim", "acquired". Never NULL. */
HAPAX_API const char *hapax_op_type_name(enum hapax_op_type type);
HAPAX_API const char *hapax_outcome_name(enum hapax_outcome outcome);

#ifdef __cplusplus
}
#endif

#endif
