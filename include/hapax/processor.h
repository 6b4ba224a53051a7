/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processor.h - claim, run, complete: one caller runs, the others wait or get the stored result.
 *
 * There are two interfaces. hapax_process() wraps a function: it blocks until the function has run,
 * or until another caller's result is available. The event-driven core below it (begin, steps,
 * finish) is for programs with their own loop; it starts no thread and never blocks. A table of
 * registrations adds handlers per event type to hapax_process().
 *
 *	static enum hapax_run_outcome charge(struct hapax_work *work, void *order)
 *	{
 *		if (!payment_send(order, work->token))
 *			return HAPAX_RUN_TRANSIENT;
 *		hapax_work_write(work, "receipt 4711", 12);
 *		return HAPAX_RUN_OK;
 *	}
 *
 *	struct hapax_request request = HAPAX_REQUEST_INIT;
 *	struct hapax_answer answer = HAPAX_ANSWER_INIT;
 *
 *	request.key = hapax_bytes_from_text("order-17");
 *	if (hapax_process(processor, &request, charge, order, &answer, buf, &err) != HAPAX_OK)
 *		return try_later(err.message);
 *	if (answer.outcome == HAPAX_OUTCOME_ACQUIRED || answer.outcome == HAPAX_OUTCOME_REPLAY)
 *		return reply(answer.result.body);
 *
 * Beyond the store, the processor renews the lease during the work, and attaches duplicates to the
 * run in progress and wakes them when it ends. It repeats uncertain operations, and reports a
 * result that could not be stored.
 *
 * Caveats
 * - Threads: any thread may use a processor, several at once. The steps of one run come one after
 *   the other, never two at a time; enum hapax_processor_flags decides on which thread. No lock is
 *   held during a step.
 * - Blocking: only hapax_process() and hapax_registry_process() block.
 * - Fork: a processor does not survive fork(), as its store does not.
 * - Clocks: the lease counts on the processor's clock from before the claim was sent, so the holder
 *   never trusts it longer than the store does. The lease is for liveness; the token makes a late
 *   finish harmless.
 * - A handler must return. If it jumps out of its frame, its claim stays until it lapses.
 * - Transactions: on a store that is joined to the caller's connection, hapax_process() is
 *   hapax_tx_process() (tx.h). Steps set no savepoint: a caller of begin and finish must undo the
 *   changes of a failed run itself.
 */
#ifndef HAPAX_PROCESSOR_H
#define HAPAX_PROCESSOR_H

#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/clock.h>
#include <hapax/error.h>
#include <hapax/key.h>
#include <hapax/record.h>
#include <hapax/store.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hapax_processor;

/* How a run ended, as reported by its handler. */
enum hapax_run_outcome {
	HAPAX_RUN_OK = 0,         /* done: the result is stored and replayed */
	HAPAX_RUN_DEFINITIVE = 1, /* permanent failure: it is stored and replayed */
	HAPAX_RUN_TRANSIENT = 2,  /* failed without effect: the next delivery runs */
	HAPAX_RUN_AMBIGUOUS = 3,  /* the effect may have happened: on_lapse decides */
};

/* What happens to a request whose payload differs from the first one for its key. */
enum hapax_on_mismatch {
	HAPAX_ON_MISMATCH_REJECT = 0,    /* outcome MISMATCH */
	HAPAX_ON_MISMATCH_DUPLICATE = 1, /* treat as a duplicate, without the stored result */
};

/* In max_run_ms: no time limit for a run. */
#define HAPAX_MAX_RUN_NONE INT64_MAX

/* How runs behave. Zero means the default in every field. */
struct hapax_run_options {
	size_t size;              /* set by HAPAX_RUN_OPTIONS_INIT */
	int64_t lease_ms;         /* 0: 30 s; renewed at a third of it */
	int64_t ttl_ms;           /* 0: 24 h, or 7 d on a store that joins a transaction */
	int64_t wait_ms;          /* maximum wait of a duplicate for the run in progress; 0: none */
	int64_t max_run_ms;       /* 0: 15 min; then the lease is no longer renewed */
	uint64_t result_size_max; /* larger bodies become tombstones; 0: the store's limit */
	enum hapax_on_lapse on_lapse;
	enum hapax_on_mismatch on_mismatch;
	int is_disabled; /* every request runs unprotected; the store is not used */
	int omits_cause; /* the record does not keep the event of the request */
};

#define HAPAX_RUN_OPTIONS_INIT                                                         \
	{                                                                              \
		sizeof(struct hapax_run_options), 0, 0, 0, 0, 0, HAPAX_ON_LAPSE_RETRY, \
			HAPAX_ON_MISMATCH_REJECT, 0, 0                                 \
	}

/* One key of a request that has several. */
struct hapax_request_key {
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key;
	const unsigned char *fingerprint; /* 32 bytes; NULL: none */
};

struct hapax_run;
struct hapax_answer;

/* The steps of a run. */
enum hapax_step {
	/*
	 * Another caller runs, and the request waits: attempt, owner and lease_left_ms are those of
	 * the holder. At most once per run.
	 */
	HAPAX_STEP_WAIT = 1,
	/*
	 * The claim is acquired: do the work, then call hapax_run_finish(). The step is sent only
	 * while the lease is valid by this process's clock. Before starting work late, call
	 * hapax_run_may_begin().
	 */
	HAPAX_STEP_RUN = 2,
	/*
	 * The lease could not be renewed in time: another caller may now take over. A finish before
	 * that still counts. Stop if you can. At most once.
	 */
	HAPAX_STEP_LAPSED = 3,
	/*
	 * max_run_ms has passed: the lease is no longer renewed. With on_lapse park, the key is
	 * parked.
	 */
	HAPAX_STEP_OVERDUE = 4,
	/* Another caller has the key now. Stop the work; it no longer counts. Then finish. */
	HAPAX_STEP_FENCED = 5,
	/*
	 * After finish: the store has not accepted the outcome yet; retries continue until the
	 * lease ends. A caller that cannot wait that long may answer its client now. At most once.
	 */
	HAPAX_STEP_UNSTORED = 6,
	/* The last step: answer has the outcome. The run is freed when the function returns. */
	HAPAX_STEP_END = 7,
};

/*
 * Called for each step of a run. The data in answer is borrowed until it returns. It must not
 * block; it may begin and finish runs, including this one.
 */
typedef void hapax_step_fn(
	struct hapax_run *run, enum hapax_step step, const struct hapax_answer *answer,
	void *context);

/* One request. Zero it with HAPAX_REQUEST_INIT, then set the key. begin copies all of it. */
struct hapax_request {
	size_t size;                      /* set by HAPAX_REQUEST_INIT */
	struct hapax_bytes tenant;        /* empty: "default" */
	struct hapax_bytes group;         /* empty: "default" */
	struct hapax_bytes key;           /* 1 to 1,024 bytes */
	const unsigned char *fingerprint; /* 32 bytes; NULL: none */
	/*
	 * Several keys for one run, claimed all or nothing; the four members above are then
	 * ignored. Needs HAPAX_STORE_MULTI_KEY; at most 1,024 keys, no duplicates. MISMATCH of any
	 * key decides, then REPLAY, then IN_PROGRESS or PARKED; of equals the first in this order.
	 */
	const struct hapax_request_key *keys;
	size_t key_count;
	const struct hapax_run_options *options; /* NULL: the processor's */
	struct hapax_bytes owner;                /* text for people; empty: the processor's */
	hapax_step_fn *step;                     /* begin only; hapax_process() has its own */
	void *context;
	struct hapax_bytes cause; /* the event of this request, by hapax_cause_write(); or empty */
};

#define HAPAX_REQUEST_INIT                                                                    \
	{                                                                                     \
		sizeof(struct hapax_request), {NULL, 0}, {NULL, 0}, {NULL, 0}, NULL, NULL, 0, \
			NULL, {NULL, 0}, NULL, NULL,                                          \
		{                                                                             \
			NULL, 0                                                               \
		}                                                                             \
	}

enum hapax_answer_flags {
	/* The payload differed and on_mismatch is duplicate: the result is left out. */
	HAPAX_ANSWER_MISMATCH = 1 << 0,
	/* One side had no fingerprint to compare. */
	HAPAX_ANSWER_UNVERIFIED = 1 << 1,
	/* The store was not asked: options say is_disabled, or there was no key. */
	HAPAX_ANSWER_UNPROTECTED = 1 << 2,
	/* The request waited for another caller's run before this answer. */
	HAPAX_ANSWER_WAITED = 1 << 3,
	/* With CORRUPT: the key is done, but its stored result cannot be read. */
	HAPAX_ANSWER_UNREADABLE = 1 << 4,
	/* The store was unavailable, and the journal of the outage decided (outage.h). */
	HAPAX_ANSWER_CONTINUED = 1 << 5,
	/* Several keys, not ACQUIRED: at least one of them was free. */
	HAPAX_ANSWER_PARTLY = 1 << 6,
	/* Several keys, not ACQUIRED: two of them belong to different runs. */
	HAPAX_ANSWER_SPLIT = 1 << 7,
};

/*
 * The state or the outcome of a request. status is HAPAX_OK if the request was answered and, after
 * a run, its outcome is stored. With any other status:
 * - outcome NONE: nothing ran. After UNCERTAIN, a claim may be held until its lease ends; repeat
 *   the same request later to find out.
 * - outcome ACQUIRED: the work ran and ended as run_outcome says, but it is not known to be stored.
 *   UNCERTAIN: it may be. FENCED: the claim was lost and it is not. Any other: it is not. Do not
 *   acknowledge the delivery.
 */
struct hapax_answer {
	size_t size; /* set by HAPAX_ANSWER_INIT */
	enum hapax_status status;
	enum hapax_outcome
		outcome; /* ACQUIRED: it ran here; REPLAY, IN_PROGRESS, MISMATCH, PARKED */
	enum hapax_run_outcome run_outcome; /* ACQUIRED, at the end: as passed to finish */
	unsigned flags;                     /* enum hapax_answer_flags */
	uint32_t attempt;
	uint64_t token;             /* ACQUIRED: this claim's. Else 0: the holder's token is not
	                               revealed */
	size_t key_index;           /* several keys: index of the one that decided the outcome */
	int64_t first_seen_ms;      /* on the store's clock, like all times below */
	int64_t expires_ms;         /* or HAPAX_TIME_NEVER */
	int64_t lease_left_ms;      /* IN_PROGRESS */
	struct hapax_bytes owner;   /* IN_PROGRESS, PARKED: text for people */
	struct hapax_bytes error;   /* PARKED, and failed runs: text for people */
	struct hapax_result result; /* REPLAY; at the end of this caller's run, its result */
	/* REPLAY: the token of the first run, for logs; 0 if its record was not read. */
	uint64_t original_token;
	/* ACQUIRED: identifies this claim in its record, like hapax_op.attempt_id. Else zeros. */
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	/*
	 * REPLAY, IN_PROGRESS, PARKED: the event that the key was claimed for, for
	 * hapax_cause_read(); empty: the record has none, or was not read.
	 */
	struct hapax_bytes original_cause;
};

#define HAPAX_ANSWER_INIT                                                                         \
	{                                                                                         \
		sizeof(struct hapax_answer), HAPAX_OK, HAPAX_OUTCOME_NONE, HAPAX_RUN_OK, 0, 0, 0, \
			0, 0, HAPAX_TIME_NEVER, 0, {NULL, 0}, {NULL, 0},                          \
			{HAPAX_RESULT_NONE, HAPAX_RESULT_OK, 0, 0, {NULL, 0}, {NULL, 0}}, 0, {0}, \
		{                                                                                 \
			NULL, 0                                                                   \
		}                                                                                 \
	}

/* Is this the result of an earlier or simultaneous run? */
static inline int hapax_answer_was_replay(const struct hapax_answer *answer)
{
	return answer->outcome == HAPAX_OUTCOME_REPLAY;
}

/* A decision, for metrics, logs and the comparison of key strategies. */
struct hapax_decided {
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key; /* the first of several */
	const struct hapax_answer *answer;
	/*
	 * The key that the registration's shadow strategy would have made. NULL: no such strategy.
	 */
	const struct hapax_key *shadow;
	const struct hapax_event *event; /* from a registration, else NULL */
};

/* Called when a request is decided: ACQUIRED or any final answer. Must not block. */
typedef void hapax_decided_fn(const struct hapax_decided *decided, void *context);

enum hapax_processor_flags {
	/*
	 * Send steps only within hapax_processor_tick(), on its thread; wake says when to call it.
	 * Without this flag, steps are sent at once on the thread that caused them (the caller's,
	 * the store's or the ticker's), perhaps before begin returns.
	 */
	HAPAX_PROCESSOR_STEPS_IN_TICK = 1 << 0,
};

/* Zero means the default in every field. */
struct hapax_processor_options {
	size_t size;    /* set by HAPAX_PROCESSOR_OPTIONS_INIT */
	unsigned flags; /* enum hapax_processor_flags */
	unsigned needs; /* enum hapax_store_capability; required of the store */
	struct hapax_run_options run;
	const struct hapax_clock *clock; /* NULL: the system clock; its boot_ms is used */
	const char *owner;               /* text for people in every claim; NULL: "pid N" */
	/* How often a duplicate that waits for another process asks the store; 0: 100 ms. */
	int64_t poll_ms;
	/* How long to repeat a claim that the store did not accept; 0: 5 s. */
	int64_t timeout_ms;
	/* Called by new to seed attempt IDs and jitter; NULL: the kernel's random source. */
	void (*random_bytes)(void *out, size_t size, void *context);
	void *random_context;
	/*
	 * Called when tick is due sooner than it last returned. Any thread; must not block or call
	 * back. NULL: hapax_process() runs a thread for it.
	 */
	void (*wake)(void *context);
	void *wake_context;
	hapax_decided_fn *decided; /* may be NULL */
	void *decided_context;
};

#define HAPAX_PROCESSOR_OPTIONS_INIT                                                              \
	{                                                                                         \
		sizeof(struct hapax_processor_options), 0, 0, HAPAX_RUN_OPTIONS_INIT, NULL, NULL, \
			0, 0, NULL, NULL, NULL, NULL, NULL, NULL                                  \
	}

/*
 * Create a processor on store, which must outlive it. options may be NULL. UNSUPPORTED: the store
 * lacks a capability in options->needs. Owned: *ret_processor, by the caller.
 */
HAPAX_API enum hapax_status hapax_processor_new(
	struct hapax_store *store, const struct hapax_processor_options *options,
	struct hapax_processor **ret_processor, struct hapax_error *err);

/* NULL is allowed. Every run must have ended: see hapax_processor_stats(). Not within a step. */
HAPAX_API void hapax_processor_free(struct hapax_processor *processor);

/*
 * Begin count requests, with all claims in one submit. Each request gets its steps, the last of
 * them END; the first step passes the run. On an error no request was begun. INVALID: a request is
 * not well formed; the message says which and why. UNSUPPORTED: a request has several keys, and the
 * store lacks HAPAX_STORE_MULTI_KEY.
 */
HAPAX_API enum hapax_status hapax_processor_begin(
	struct hapax_processor *processor, const struct hapax_request *requests, size_t count,
	struct hapax_error *err);

/* How a run ended. */
struct hapax_finish {
	struct hapax_run *run;
	enum hapax_run_outcome outcome;
	/* ok, definitive: NULL is kind none. Must stay valid until END. outcome sets its class. */
	const struct hapax_result *result;
	struct hapax_bytes error; /* transient and ambiguous: text for people; copied */
};

/*
 * Does the lease of a run that got RUN and then waited still last, by this process's clock? 0:
 * another caller may be running. Do not begin; finish the run as transient.
 */
HAPAX_API int hapax_run_may_begin(struct hapax_run *run);

/*
 * Finish runs that got RUN: complete, release or park, in one submit. Call it once for each run.
 * END follows when the outcome is stored, or certainly will not be. A complete that the store does
 * not accept is repeated until the lease ends, and never becomes a release. INVALID: a run is not
 * running; nothing was done.
 */
HAPAX_API enum hapax_status hapax_run_finish_all(
	struct hapax_processor *processor, const struct hapax_finish *finishes, size_t count,
	struct hapax_error *err);

/* The same for one run. */
HAPAX_API enum hapax_status hapax_run_finish(
	struct hapax_run *run, enum hapax_run_outcome outcome, const struct hapax_result *result,
	struct hapax_bytes error, struct hapax_error *err);

/*
 * Stop a run that got WAIT from waiting: END follows, with IN_PROGRESS or a later state. It is
 * never ACQUIRED: a claim that arrives too late is released, and the next waiter gets it. Does
 * nothing for a run that got RUN. As for finish, the caller must ensure that END is not being sent
 * at the same time: after END the run no longer exists.
 */
HAPAX_API void hapax_run_leave(struct hapax_run *run);

/*
 * The same for a caller that cannot ensure this, because other threads send the steps. The request
 * with this one key and this context leaves if it got WAIT, and neither RUN nor END since.
 * Otherwise nothing happens. Empty names: "default".
 */
HAPAX_API void hapax_processor_leave(
	struct hapax_processor *processor, struct hapax_bytes tenant, struct hapax_bytes group,
	struct hapax_bytes key, const void *context);

/* Borrowed from run. */
HAPAX_API struct hapax_bytes hapax_run_key(const struct hapax_run *run);
HAPAX_API uint64_t hapax_run_token(const struct hapax_run *run);
HAPAX_API uint32_t hapax_run_attempt(const struct hapax_run *run);

/*
 * Do all due work: renew, wake, repeat, give up, and send waiting steps. Returns the time of the
 * next call, as boot_ms of the processor's clock. The present or a past time: at once.
 * HAPAX_TIME_NEVER: when wake is called. One thread at a time; an early call is harmless.
 */
HAPAX_API int64_t hapax_processor_tick(struct hapax_processor *processor);

struct hapax_processor_stats {
	size_t size;       /* set by HAPAX_PROCESSOR_STATS_INIT */
	uint64_t open;     /* runs that have not ended */
	uint64_t running;  /* of them: got RUN and not finished */
	uint64_t waiting;  /* of them: waiting for another caller's run */
	uint64_t attached; /* total: waited for another caller's run */
	uint64_t woken;    /* waiters that claimed again because a run in this process ended */
	uint64_t polled;   /* times that a waiter claimed again on a timer */
	uint64_t renewed;  /* leases */
	uint64_t repeated; /* operations that the store had not accepted */
	uint64_t lapsed;   /* leases that could not be renewed in time */
	uint64_t overdue;  /* runs that took longer than max_run_ms */
	uint64_t fenced;   /* runs that lost their key */
	uint64_t unstored; /* runs whose outcome was not known to be stored */
	uint64_t late;     /* claims that lapsed before RUN was sent, and were claimed again */
};

#define HAPAX_PROCESSOR_STATS_INIT                                                          \
	{                                                                                   \
		sizeof(struct hapax_processor_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
	}

/* ret_stats->size must be set. */
HAPAX_API void hapax_processor_stats(
	struct hapax_processor *processor, struct hapax_processor_stats *ret_stats);

struct hapax_duplicate;

/* Input and output of a handler. Created by the library; may grow at its end. */
struct hapax_work {
	/* In. */
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key;          /* empty: unprotected, no key */
	uint64_t token;                  /* pass it to any system that can check it; 0:
	                                    unprotected */
	uint32_t attempt;                /* 1 for the first run of the key */
	const struct hapax_event *event; /* from a registration, else NULL */
	/*
	 * Out. Borrowed bytes must stay valid until hapax_process() returns; see
	 * hapax_work_write().
	 */
	struct hapax_result result;
	struct hapax_bytes error; /* transient and ambiguous: why */

	struct hapax_call *private_call;
	/*
	 * In, for a consumer that tags duplicates (source.h): describes the original, which is
	 * done; this handler's result is not stored. NULL: this is not a duplicate but the run.
	 */
	const struct hapax_duplicate *duplicate;
};

/* The work itself. Its return value sets the class of the result. */
typedef enum hapax_run_outcome hapax_handler_fn(struct hapax_work *work, void *context);

/* Append to the body of the result; sets kind bytes if it has none. LIMIT: above 16 MiB. */
HAPAX_API enum hapax_status hapax_work_write(
	struct hapax_work *work, const void *data, size_t size);

/* Set the reason of a failure; the text is copied and cut at 255 bytes. Returns outcome. */
HAPAX_API enum hapax_run_outcome hapax_work_fail(
	struct hapax_work *work, enum hapax_run_outcome outcome, const char *text);

/* Does another caller have the key now? Then the work no longer counts and should stop. */
HAPAX_API int hapax_work_is_fenced(const struct hapax_work *work);

/*
 * Run handler once for the request's key, on this thread, or return the result of the run that did.
 * A duplicate waits for the result up to options->wait_ms. The bytes of answer lie in buf, which is
 * cleared first. Without buf, or if they do not fit, they are left out; result.omitted_bytes says
 * how many.
 *
 * HAPAX_OK: answered. answer->outcome is ACQUIRED (the handler ran in this call and its outcome is
 * stored), REPLAY (the result of the run that did), IN_PROGRESS, MISMATCH or PARKED. A permanent
 * failure is a result of class definitive. HAPAX_ERR_HANDLER: the handler ran here and failed,
 * transient or ambiguous; err has its text, and the next request runs. Any other status: see struct
 * hapax_answer, which is filled in then as well.
 *
 * Unless options name a wake, the first call that runs or waits starts a timer thread, which ends
 * with the processor. With a wake, another thread must tick. Blocks; must not be called from a step
 * or a completion.
 */
HAPAX_API enum hapax_status hapax_process(
	struct hapax_processor *processor, const struct hapax_request *request,
	hapax_handler_fn *handler, void *context, struct hapax_answer *answer,
	struct hapax_buf *buf, struct hapax_error *err);

enum hapax_registration_flags {
	HAPAX_REGISTRATION_UNPROTECTED = 1 << 0, /* no claim: every delivery runs */
};

/* A handler, its type of events, and the strategy that makes their keys. */
struct hapax_registration {
	size_t size;          /* set by HAPAX_REGISTRATION_INIT */
	unsigned flags;       /* enum hapax_registration_flags */
	const char *type;     /* of the event; NULL: every type without its own row */
	const char *strategy; /* as in key.h */
	const char *shadow;   /* a second strategy, compared by options.decided; or NULL */
	const struct hapax_key_options *key_options; /* for both; may be NULL */
	const struct hapax_run_options *options;     /* NULL: the processor's */
	hapax_handler_fn *handler;
	void *context;
};

#define HAPAX_REGISTRATION_INIT                                                                \
	{                                                                                      \
		sizeof(struct hapax_registration), 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL \
	}

struct hapax_registry;

/*
 * Register handlers, once. INVALID: a row is wrong or a type has two; the message says which.
 * Everything except context is copied. Owned: *ret_registry, by the caller; the processor must
 * outlive it.
 */
HAPAX_API enum hapax_status hapax_registry_new(
	struct hapax_processor *processor, const struct hapax_registration *rows, size_t count,
	struct hapax_registry **ret_registry, struct hapax_error *err);

/* NULL is allowed. */
HAPAX_API void hapax_registry_free(struct hapax_registry *registry);

/*
 * Pass an event to the handler of its type, once: hapax_process() with the key from the row's
 * strategy. type comes from the transport; empty: the event's own attribute "type". UNSUPPORTED: no
 * row has that type. INVALID: no key could be made and on_missing is reject; nothing ran.
 *
 * Threads: any, several at once; each uses its own scratch buffer.
 */
HAPAX_API enum hapax_status hapax_registry_process(
	struct hapax_registry *registry, struct hapax_bytes type, const struct hapax_event *event,
	struct hapax_answer *answer, struct hapax_buf *buf, struct hapax_error *err);

/* "ok", "definitive", "transient", "ambiguous"; "reject", "duplicate"; "wait", "run", ... */
HAPAX_API const char *hapax_run_outcome_name(enum hapax_run_outcome outcome);
HAPAX_API const char *hapax_on_mismatch_name(enum hapax_on_mismatch on_mismatch);
HAPAX_API const char *hapax_step_name(enum hapax_step step);

#ifdef __cplusplus
}
#endif

#endif
