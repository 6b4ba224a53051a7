/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processor.h - claim, run, complete: one caller runs, all others wait, get the
 * stored result, or are told.
 *
 * Two ways in. hapax_process() wraps a function: it blocks until the function has
 * run, or until the result of whoever ran it is there. Below it stands an
 * event-driven core for programs with a loop of their own (begin, steps, finish),
 * which starts no thread and never blocks. A table of registrations puts handlers
 * for types of events on top of the first.
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
 * What it does beyond the store: it renews the lease while the work runs, attaches
 * duplicates to the run in progress and wakes them when it ends, repeats what the
 * store did not answer for certain, and says so when a result could not be kept.
 *
 * Caveats
 * - Threads: any thread may use a processor, several at once. The steps of one run
 *   come one after the other, never two at a time; on which thread, see
 *   enum hapax_processor_flags. No lock is held while a step is told.
 * - Blocking: only hapax_process() and hapax_registry_process() block.
 * - Fork: a processor does not survive fork(), as its store does not.
 * - Clocks: the lease is counted on the processor's clock from before the claim was
 *   sent, so that the holder believes in it no longer than the store does. It is a
 *   matter of liveness; what makes a late finisher harmless is the token.
 * - A handler must return. One that jumps out of its frame leaves its claim to lapse.
 * - Transactions: on a store that is joined to the caller's connection hapax_process() is
 *   hapax_tx_process() (tx.h). Steps by themselves set no savepoint: whoever begins and
 *   finishes runs there undoes what a failed one did.
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

/* How a run ended, as the one who ran it says. */
enum hapax_run_outcome {
	HAPAX_RUN_OK = 0, /* done: the result is kept and replayed */
	HAPAX_RUN_DEFINITIVE =
		1, /* failed, and would fail again: the failure is kept and replayed */
	HAPAX_RUN_TRANSIENT = 2, /* failed without effect: the next delivery runs */
	HAPAX_RUN_AMBIGUOUS = 3, /* the effect may have happened: on_lapse decides */
};

/* What becomes of a request whose payload differs from the one the key was first seen with. */
enum hapax_on_mismatch {
	HAPAX_ON_MISMATCH_REJECT = 0,    /* it is told: outcome MISMATCH */
	HAPAX_ON_MISMATCH_DUPLICATE = 1, /* as a duplicate, but without the stored result */
};

/* In max_run_ms: a run may take as long as it likes. */
#define HAPAX_MAX_RUN_NONE INT64_MAX

/* How runs behave. Zero means the default in every field. */
struct hapax_run_options {
	size_t size;              /* set by HAPAX_RUN_OPTIONS_INIT */
	int64_t lease_ms;         /* 0: 30 s; renewed at a third of it */
	int64_t ttl_ms;           /* 0: 24 h, or 7 d on a store that joins a transaction */
	int64_t wait_ms;          /* how long a duplicate waits for the run in progress; 0: not */
	int64_t max_run_ms;       /* 0: 15 min; after that the lease is no longer renewed */
	uint64_t result_size_max; /* larger bodies become tombstones; 0: what the store keeps */
	enum hapax_on_lapse on_lapse;
	enum hapax_on_mismatch on_mismatch;
	int is_disabled; /* every request runs, unprotected; nothing is asked or kept */
};

#define HAPAX_RUN_OPTIONS_INIT                                                         \
	{                                                                              \
		sizeof(struct hapax_run_options), 0, 0, 0, 0, 0, HAPAX_ON_LAPSE_RETRY, \
			HAPAX_ON_MISMATCH_REJECT, 0                                    \
	}

/* One of the keys of a request that has several. */
struct hapax_request_key {
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key;
	const unsigned char *fingerprint; /* 32 bytes; NULL: none */
};

struct hapax_run;
struct hapax_answer;

/* Where a run has come to. */
enum hapax_step {
	/*
	 * Somebody else runs, and the request waits for them: attempt, owner and
	 * lease_left_ms are theirs. At most once for a run.
	 */
	HAPAX_STEP_WAIT = 1,
	/*
	 * The right to run is ours: do the work, then call hapax_run_finish(). It is told only
	 * while the lease lives by our own count; whoever lets time pass before the work begins
	 * asks hapax_run_may_begin() first.
	 */
	HAPAX_STEP_RUN = 2,
	/*
	 * The lease could not be renewed in time: from now on somebody may take over. A
	 * finish before they do still counts. Stop if you can. At most once.
	 */
	HAPAX_STEP_LAPSED = 3,
	/* max_run_ms is over: the lease is no longer renewed; with on_lapse park the key is parked. */
	HAPAX_STEP_OVERDUE = 4,
	/* Somebody else has the key now. Stop the work; it no longer counts. Then finish. */
	HAPAX_STEP_FENCED = 5,
	/*
	 * After finish: the store has not taken the outcome yet, and is asked again until
	 * the lease ends. Whoever cannot wait that long may tell its client now. At most once.
	 */
	HAPAX_STEP_UNSTORED = 6,
	/* The last step: answer says how it ended. The run is gone when the function returns. */
	HAPAX_STEP_END = 7,
};

/*
 * Told of each step of a run. What answer points at is borrowed until it returns. It
 * must not block; it may begin and finish runs, this one too.
 */
typedef void hapax_step_fn(
	struct hapax_run *run, enum hapax_step step, const struct hapax_answer *answer,
	void *context);

/*
 * What is to happen once. Zero it with HAPAX_REQUEST_INIT, then set the key. All of
 * it is copied by begin.
 */
struct hapax_request {
	size_t size;                      /* set by HAPAX_REQUEST_INIT */
	struct hapax_bytes tenant;        /* empty: "default" */
	struct hapax_bytes group;         /* empty: "default" */
	struct hapax_bytes key;           /* 1 to 1,024 bytes */
	const unsigned char *fingerprint; /* 32 bytes; NULL: none */
	/*
	 * Several keys for one run, claimed all or nothing; then the four members above
	 * are not read. Needs HAPAX_STORE_MULTI_KEY; no key twice, at most 1,024.
	 */
	const struct hapax_request_key *keys;
	size_t key_count;
	const struct hapax_run_options *options; /* NULL: the processor's */
	struct hapax_bytes owner;                /* text for people; empty: the processor's */
	hapax_step_fn *step;                     /* begin only; hapax_process() has its own */
	void *context;
};

#define HAPAX_REQUEST_INIT                                                                    \
	{                                                                                     \
		sizeof(struct hapax_request), {NULL, 0}, {NULL, 0}, {NULL, 0}, NULL, NULL, 0, \
			NULL, {NULL, 0}, NULL, NULL                                           \
	}

enum hapax_answer_flags {
	/* The payload differed and on_mismatch is duplicate: the result is left out. */
	HAPAX_ANSWER_MISMATCH = 1 << 0,
	/* One side had no fingerprint to compare. */
	HAPAX_ANSWER_UNVERIFIED = 1 << 1,
	/* Nothing was asked of the store: options say is_disabled, or there was no key. */
	HAPAX_ANSWER_UNPROTECTED = 1 << 2,
	/* It waited for somebody else's run before this answer. */
	HAPAX_ANSWER_WAITED = 1 << 3,
	/* With CORRUPT: the key is done, and only what is stored for it cannot be read. */
	HAPAX_ANSWER_UNREADABLE = 1 << 4,
};

/*
 * How it stands, or how it ended. status is HAPAX_OK when the question was answered
 * and, after a run, what it left is stored. Any other status:
 * - outcome NONE: nothing ran. After UNCERTAIN a claim may be held until its lease
 *   ends; the same request, later, finds out.
 * - outcome ACQUIRED: the work ran and ended as run_outcome says, but that is not
 *   known to be stored: UNCERTAIN, it may be; FENCED, the claim was lost and
 *   it is not; else it is not. Do not acknowledge the delivery.
 */
struct hapax_answer {
	size_t size; /* set by HAPAX_ANSWER_INIT */
	enum hapax_status status;
	enum hapax_outcome
		outcome; /* ACQUIRED: it ran here; REPLAY, IN_PROGRESS, MISMATCH, PARKED */
	enum hapax_run_outcome run_outcome; /* ACQUIRED, at the end: as finish was told */
	unsigned flags;                     /* enum hapax_answer_flags */
	uint32_t attempt;
	uint64_t token;             /* ACQUIRED: ours. Else 0: the holder's token is not told */
	size_t key_index;           /* several keys: which of request.keys decided the outcome */
	int64_t first_seen_ms;      /* on the store's clock, as all times below */
	int64_t expires_ms;         /* or HAPAX_TIME_NEVER */
	int64_t lease_left_ms;      /* IN_PROGRESS */
	struct hapax_bytes owner;   /* IN_PROGRESS, PARKED: text for people */
	struct hapax_bytes error;   /* PARKED, and failed runs: text for people */
	struct hapax_result result; /* REPLAY; and at the end of an own run, its result */
	/* REPLAY: the token of the run that was the first, for logs; 0 if its record was not read. */
	uint64_t original_token;
	/* ACQUIRED: names our claim in its record, as hapax_op.attempt_id does. Else zeros. */
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
};

#define HAPAX_ANSWER_INIT                                                                         \
	{                                                                                         \
		sizeof(struct hapax_answer), HAPAX_OK, HAPAX_OUTCOME_NONE, HAPAX_RUN_OK, 0, 0, 0, \
			0, 0, HAPAX_TIME_NEVER, 0, {NULL, 0}, {NULL, 0},                          \
			{HAPAX_RESULT_NONE, HAPAX_RESULT_OK, 0, 0, {NULL, 0}, {NULL, 0}}, 0,      \
		{                                                                                 \
			0                                                                         \
		}                                                                                 \
	}

/* Was the result of an earlier or simultaneous run handed out? */
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
	/* By a registration that has a shadow strategy: what that would have made. Else NULL. */
	const struct hapax_key *shadow;
	const struct hapax_event *event; /* by a registration, else NULL */
};

/* Called when a request is decided: ACQUIRED or any final answer. Must not block. */
typedef void hapax_decided_fn(const struct hapax_decided *decided, void *context);

enum hapax_processor_flags {
	/*
	 * Steps are told only within hapax_processor_tick(), on its thread; wake says when
	 * to call it. Without it they are told at once, on the thread that brought them
	 * about: the caller's, the store's, or the ticker's, perhaps before begin returns.
	 */
	HAPAX_PROCESSOR_STEPS_IN_TICK = 1 << 0,
};

/* Zero means the default in every field. */
struct hapax_processor_options {
	size_t size;    /* set by HAPAX_PROCESSOR_OPTIONS_INIT */
	unsigned flags; /* enum hapax_processor_flags */
	unsigned needs; /* enum hapax_store_capability that the store must have */
	struct hapax_run_options run;
	const struct hapax_clock *clock; /* NULL: the system's; its boot_ms is read */
	const char *owner;               /* text for people in every claim; NULL: "pid N" */
	/* How often a duplicate that waits for another process asks the store; 0: 100 ms. */
	int64_t poll_ms;
	/* How long a claim that the store did not take is repeated; 0: 5 s. */
	int64_t timeout_ms;
	/* Asked by new for what attempt ids and jitter are made from; NULL: the kernel's. */
	void (*random_bytes)(void *out, size_t size, void *context);
	void *random_context;
	/*
	 * Called when tick must be called sooner than it last said. From any thread, must
	 * not block, must not call back. NULL: hapax_process() keeps a thread for it.
	 */
	void (*wake)(void *context);
	void *wake_context;
	hapax_decided_fn *decided; /* NULL: nobody wants to know */
	void *decided_context;
};

#define HAPAX_PROCESSOR_OPTIONS_INIT                                                              \
	{                                                                                         \
		sizeof(struct hapax_processor_options), 0, 0, HAPAX_RUN_OPTIONS_INIT, NULL, NULL, \
			0, 0, NULL, NULL, NULL, NULL, NULL, NULL                                  \
	}

/*
 * A processor on store, which must outlive it. options may be NULL. UNSUPPORTED: the
 * store lacks what options->needs. Owned: *ret_processor, by the caller.
 */
HAPAX_API enum hapax_status hapax_processor_new(
	struct hapax_store *store, const struct hapax_processor_options *options,
	struct hapax_processor **ret_processor, struct hapax_error *err);

/* NULL is allowed. Every run has ended: see hapax_processor_stats(). Not within a step. */
HAPAX_API void hapax_processor_free(struct hapax_processor *processor);

/*
 * Begin count requests, their claims in one submit. Every one of them that was begun
 * gets its steps, the last of them END; the run itself comes with the first step. On
 * an error no request was begun. INVALID: a request is not well formed, and the
 * message says which and why; UNSUPPORTED: several keys, and the store has not
 * HAPAX_STORE_MULTI_KEY.
 */
HAPAX_API enum hapax_status hapax_processor_begin(
	struct hapax_processor *processor, const struct hapax_request *requests, size_t count,
	struct hapax_error *err);

/* How a run ended. */
struct hapax_finish {
	struct hapax_run *run;
	enum hapax_run_outcome outcome;
	/* ok and definitive: NULL is kind none. Stays valid until END. Its class is set from outcome. */
	const struct hapax_result *result;
	struct hapax_bytes error; /* transient and ambiguous: text for people; copied */
};

/*
 * Was told RUN, and has waited since: does its lease still live, by this process's own count?
 * 0: somebody else may run by now. Do not begin; finish it as transient.
 */
HAPAX_API int hapax_run_may_begin(struct hapax_run *run);

/*
 * The work of runs that were told RUN has ended: complete, release or park, in one
 * submit. Once for each run; END follows when it is stored, or when it is certain
 * that it will not be. A complete that the store does not take is repeated until the
 * lease ends, and never turned into a release. INVALID: a run is not running; nothing
 * was done.
 */
HAPAX_API enum hapax_status hapax_run_finish_all(
	struct hapax_processor *processor, const struct hapax_finish *finishes, size_t count,
	struct hapax_error *err);

/* The same for one run. */
HAPAX_API enum hapax_status hapax_run_finish(
	struct hapax_run *run, enum hapax_run_outcome outcome, const struct hapax_result *result,
	struct hapax_bytes error, struct hapax_error *err);

/*
 * A run that was told WAIT need not wait any longer: END follows, IN_PROGRESS, or what
 * is known by then. Never ACQUIRED: a claim that comes too late is given back, and the
 * next in line gets it. Does nothing for a run that was told RUN. As for finish, the
 * caller sees to it that END is not being told meanwhile: after END there is no run.
 */
HAPAX_API void hapax_run_leave(struct hapax_run *run);

/*
 * The same for a caller who cannot see to that, because steps are told on other threads:
 * the request of this one key and this context leaves, if it was told WAIT and was not told
 * RUN or END since; else nothing happens. Empty names: "default".
 */
HAPAX_API void hapax_processor_leave(
	struct hapax_processor *processor, struct hapax_bytes tenant, struct hapax_bytes group,
	struct hapax_bytes key, const void *context);

/* Borrowed from run. */
HAPAX_API struct hapax_bytes hapax_run_key(const struct hapax_run *run);
HAPAX_API uint64_t hapax_run_token(const struct hapax_run *run);
HAPAX_API uint32_t hapax_run_attempt(const struct hapax_run *run);

/*
 * Do what is due: renew, wake, repeat, give up, and tell steps that wait for it.
 * Returns when it must be called again, as boot_ms of the processor's clock; the
 * present, or a time that has passed: at once; HAPAX_TIME_NEVER: when wake says so.
 * One thread at a time; calling it too early does no harm.
 */
HAPAX_API int64_t hapax_processor_tick(struct hapax_processor *processor);

struct hapax_processor_stats {
	size_t size;       /* set by HAPAX_PROCESSOR_STATS_INIT */
	uint64_t open;     /* runs that have not ended */
	uint64_t running;  /* of them: told RUN and not finished */
	uint64_t waiting;  /* of them: waiting for somebody else's run */
	uint64_t attached; /* since the beginning: waited for somebody's run */
	uint64_t woken;    /* waiters that asked again because a run in this process ended */
	uint64_t polled;   /* times that a waiter asked because time had passed */
	uint64_t renewed;  /* leases */
	uint64_t repeated; /* operations that the store had not taken */
	uint64_t lapsed;   /* leases that could not be renewed in time */
	uint64_t overdue;  /* runs that took longer than max_run_ms */
	uint64_t fenced;   /* runs that lost their key */
	uint64_t unstored; /* runs whose outcome was not known to be stored */
	uint64_t late; /* claims that were over before anybody was told RUN, and asked for again */
};

#define HAPAX_PROCESSOR_STATS_INIT                                                          \
	{                                                                                   \
		sizeof(struct hapax_processor_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
	}

/* ret_stats->size must be set. */
HAPAX_API void hapax_processor_stats(
	struct hapax_processor *processor, struct hapax_processor_stats *ret_stats);

struct hapax_duplicate;

/* What a handler gets, and what it leaves. Made by the library; may grow at its end. */
struct hapax_work {
	/* In. */
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key;          /* empty: unprotected, there was none */
	uint64_t token;                  /* hand it to whatever can check it; 0: unprotected */
	uint32_t attempt;                /* 1 for the first run of the key */
	const struct hapax_event *event; /* by a registration, else NULL */
	/* Out. Borrowed bytes must live until hapax_process() returns; see hapax_work_write(). */
	struct hapax_result result;
	struct hapax_bytes error; /* transient and ambiguous: why */

	struct hapax_call *private_call;
	/*
	 * In, of a consumer that tags duplicates (source.h): what this is a duplicate of. It was
	 * done; what is left here is not kept. NULL: it is none, and this is the run.
	 */
	const struct hapax_duplicate *duplicate;
};

/* The work itself. Its class of result follows from what it returns. */
typedef enum hapax_run_outcome hapax_handler_fn(struct hapax_work *work, void *context);

/* Append to the body of the result; makes it kind bytes if it has none. LIMIT above 16 MiB. */
HAPAX_API enum hapax_status hapax_work_write(
	struct hapax_work *work, const void *data, size_t size);

/* Say why it failed; the text is copied and cut at 255 bytes. Returns outcome. */
HAPAX_API enum hapax_run_outcome hapax_work_fail(
	struct hapax_work *work, enum hapax_run_outcome outcome, const char *text);

/* Has somebody else the key by now? Then the work no longer counts, and should stop. */
HAPAX_API int hapax_work_is_fenced(const struct hapax_work *work);

/*
 * Run handler once for the request's key, on this thread, or find out how it ended:
 * a duplicate gets the result, and waits for it up to options->wait_ms. The bytes of
 * answer lie in buf, which is cleared first; without buf, or where they do not fit, they
 * are left out, and result.omitted_bytes says how many.
 *
 * HAPAX_OK: answered. answer->outcome says what happened: ACQUIRED, the handler ran
 * in this call and its outcome is stored; REPLAY, here is the result of the run that
 * did; IN_PROGRESS, MISMATCH, PARKED. A definitive failure is a result like another,
 * of class definitive. HAPAX_ERR_HANDLER: the handler ran here and failed, transient
 * or ambiguous; err has its text, and the next request runs. Any other status: as
 * struct hapax_answer says; answer is filled in then, too.
 *
 * Unless options name a wake, the first call that runs or waits starts a thread for
 * timers, which ends with the processor; with a wake, another thread must tick. Blocks;
 * not to be called from a step or a completion.
 */
HAPAX_API enum hapax_status hapax_process(
	struct hapax_processor *processor, const struct hapax_request *request,
	hapax_handler_fn *handler, void *context, struct hapax_answer *answer,
	struct hapax_buf *buf, struct hapax_error *err);

enum hapax_registration_flags {
	HAPAX_REGISTRATION_UNPROTECTED = 1 << 0, /* skip the check: every delivery runs */
};

/* Which handler, for which type of events, and what makes two of them the same. */
struct hapax_registration {
	size_t size;          /* set by HAPAX_REGISTRATION_INIT */
	unsigned flags;       /* enum hapax_registration_flags */
	const char *type;     /* of the event; NULL: every type that has no row of its own */
	const char *strategy; /* as in key.h */
	const char *shadow;   /* a second strategy, compared by options.decided; or NULL */
	const struct hapax_key_options *key_options; /* of both; or NULL */
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
 * Register handlers, once. INVALID: a row is wrong or a type has two; the message
 * says which. Everything is copied except context. Owned: *ret_registry, by the
 * caller; the processor must outlive it.
 */
HAPAX_API enum hapax_status hapax_registry_new(
	struct hapax_processor *processor, const struct hapax_registration *rows, size_t count,
	struct hapax_registry **ret_registry, struct hapax_error *err);

/* NULL is allowed. */
HAPAX_API void hapax_registry_free(struct hapax_registry *registry);

/*
 * Hand an event to the handler of its type, once: hapax_process() with the key that
 * the row's strategy makes. type is what the transport says; empty: the event's own
 * attribute "type". UNSUPPORTED: no row has that type. INVALID: no key could be made,
 * and the strategy's on_missing is reject; nothing ran.
 *
 * Threads: any, several at once; each works in a scratch buffer of its own.
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
