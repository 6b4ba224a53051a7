/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - consume messages of a broker, each with its effect once.
 *
 * A source delivers at least once. A consumer takes its messages, derives the key of each, claims
 * it, and passes the message to a handler: an HTTP service, a command, or your functions by type of
 * event. It acknowledges a message only after its completion is durable in the store.
 *
 *	static enum hapax_run_outcome paid(struct hapax_work *work, void *context);
 *
 *	struct hapax_registration row = HAPAX_REGISTRATION_INIT;
 *	struct hapax_consumer_options options = HAPAX_CONSUMER_OPTIONS_INIT;
 *
 *	row.handler = paid;
 *	options.rows = &row;
 *	options.row_count = 1;
 *	if (hapax_source_open("kafka://localhost/orders?group=shop", &source, &err) != HAPAX_OK ||
 *	    hapax_consumer_new(source, store, &options, &consumer, &err) != HAPAX_OK)
 *		return report(err.message);
 *	status = hapax_consumer_run(consumer, &err);
 *
 * Outcome of each message
 *	its run ended ok               acknowledged
 *	done before (a duplicate)      acknowledged; on_duplicate says what else
 *	transient or ambiguous         retried with backoff; after attempts_max runs of
 *	                               its key, in any process, a dead letter
 *	the process died               retried when the claim has lapsed
 *	definitive failure             kept as the result, and a dead letter
 *	in progress elsewhere          retried; does not count as an attempt
 *	mismatch, parked, no key       a dead letter at once
 *	no ID, no place, no strategy   it goes back, and the consumer stops: INVALID
 *	done, its result unreadable    a dead letter at once
 *	larger than the source accepts a dead letter at once; if dead letters are off, it stays
 *	                               with the broker
 *	the store is unavailable       the consumer waits; does not count as an attempt
 *	the store refuses its key      it waits; the others continue
 *	the store reports damage       it waits; the others continue
 * A dead letter is acknowledged once the broker has stored it in its new place, with the reason in
 * its headers. Nothing is dropped without one.
 *
 * Tags
 * With on_duplicate tag the handler also gets duplicates, marked: a function by
 * work->duplicate, a service by the header Hapax-Duplicate (the cause) with Hapax-Original and
 * Hapax-First-Seen, a command by HAPAX_DUPLICATE, HAPAX_ORIGINAL and HAPAX_FIRST_SEEN. There is no
 * claim and no token. The handler's result is not stored, and it does not count as a run. If the
 * handler fails, it gets the duplicate again, attempts_max times; then the duplicate is
 * acknowledged. Delivery is at least once: after a crash it is repeated.
 *
 * Warm-up
 * A new or lost store does not know which messages are done. With warm_up=10m (or
 * warm_up=5000: messages) a consumer that gets a partition first rereads that much before the
 * group's committed offset. It marks these messages as done without running them; nothing is
 * delivered in the meantime. Existing records stay unchanged. A store that has forgotten a dead
 * letter marks it as done, too.
 *
 * Transactions
 * With HAPAX_CONSUMER_TRANSACTIONS and a store in PostgreSQL, these commit together or
 * not at all: the claim, a function's writes through hapax_postgres_of_work() (postgres.h), its
 * result, and the offset of the message. This is exactly once, even after a crash. Each worker has
 * its own connection to the store's URL. The table hapax_offset (`hapax store migrate` creates it)
 * holds the offset of each partition, below which all is done, by the group of the source's URL,
 * topic and partition. This offset decides where a partition begins, not the one committed at the
 * broker, so messages that a restored database has lost are read again. DELETE the row to use the
 * broker's offset. A source without offsets (RabbitMQ, Redis) has all of this except the offset. Do
 * not use one group name for two clusters.
 *
 * Caveats
 * - Threads: a consumer belongs to the thread that runs it, except hapax_consumer_stop(),
 *   hapax_consumer_pause() and hapax_consumer_stats(): any. Handlers run on the consumer's own threads.
 * - Fork: neither survives fork().
 * - After a crash, a rebalance or an offset reset, messages are delivered again. A message that is
 *   done is then a duplicate while its record lives: ttl_ms, 7 days by default.
 */
#ifndef HAPAX_SOURCE_H
#define HAPAX_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/clock.h>
#include <hapax/error.h>
#include <hapax/key.h>
#include <hapax/processor.h>
#include <hapax/store.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hapax_source;
struct hapax_consumer;

/*
 * Open a source by URL; nothing is fetched before a consumer runs. UNSUPPORTED: the scheme is not
 * built in; the message lists the schemes that are.
 *
 *	kafka://HOST[:PORT][,HOST[:PORT]...]/TOPIC[,TOPIC...]?group=G
 *		a topic that begins with ^ is a pattern. instance=NAME: static membership;
 *		start=earliest|latest: where a new group begins; warm_up=SPAN: see Warm-up;
 *		held_max=BYTES: messages in memory, 128 MiB; properties of librdkafka that
 *		`man hapax` lists: security.protocol=SASL_SSL
 *	amqp://[USER[:PASSWORD]@]HOST[:PORT]/[VHOST/]QUEUE, amqps://...
 *		a queue of RabbitMQ; a slash in a name is %2F. prefetch=N: sent before
 *		acknowledgment, 256; declare=quorum: create it if missing;
 *		dead_exchange=NAME: dead letters go there instead of to queues, which are
 *		created; size_max=BYTES: larger ones are dead letters, 64 MiB;
 *		held_max=BYTES: messages in memory, 128 MiB; ca=, cert=, key=FILE for TLS
 *	redis://[USER[:PASSWORD]@]HOST[:PORT]/STREAM?group=G, rediss://...,
 *	redis+unix:PATH?stream=STREAM&group=G
 *		a stream of Redis 6.2 or later. instance=NAME: name of the group member;
 *		start=earliest|latest; min_idle=D: take over the entries of a member that has
 *		been silent for D, 30s; prefetch=N, 256; size_max=BYTES: larger ones are dead letters, 64 MiB; db=N; ca=, cert=,
 *		key=FILE for TLS
 *
 * Owned: *ret_source, by the caller, until a consumer takes it.
 */
HAPAX_API enum hapax_status hapax_source_open(
	const char *url, struct hapax_source **ret_source, struct hapax_error *err);

/*
 * Would hapax_source_open() accept the URL? For readers of a configuration. Nothing is contacted,
 * and the message contains no password.
 */
HAPAX_API enum hapax_status hapax_source_check(const char *url, struct hapax_error *err);

/*
 * Set the group of a source back, so that it reads its messages again: from the first one, or from
 * from_ms (milliseconds since 1970; 0: the first). Its consumers must be stopped: Kafka refuses
 * otherwise, with UNAVAILABLE. UNSUPPORTED: a queue of RabbitMQ has no past. Blocks.
 */
HAPAX_API enum hapax_status hapax_source_rewind(
	const char *url, int64_t from_ms, struct hapax_error *err);

/* NULL is allowed. Not after a consumer took the source. May block while it disconnects. */
HAPAX_API void hapax_source_close(struct hapax_source *source);

/* The URL given to open, with its password hidden. Borrowed from source. */
HAPAX_API const char *hapax_source_url(const struct hapax_source *source);

/* The schemes that are built in, by index from 0; NULL after the last. */
HAPAX_API const char *hapax_source_scheme(size_t index);

/* Messages that wait for each other. */
enum hapax_order {
	HAPAX_ORDER_KEY = 0,       /* messages with the same key at the broker */
	HAPAX_ORDER_PARTITION = 1, /* messages of one partition, queue or stream */
	HAPAX_ORDER_NONE = 2,
};

/* What happens to a duplicate of a done message. It is always counted and reported. */
enum hapax_on_duplicate {
	HAPAX_ON_DUPLICATE_DROP = 0,   /* acknowledged */
	HAPAX_ON_DUPLICATE_DIVERT = 1, /* sent to divert, then acknowledged */
	HAPAX_ON_DUPLICATE_TAG = 2,    /* passed to the handler, marked (see Tags), then
	                                  acknowledged */
};

/* The form in which an HTTP handler gets an event. */
enum hapax_event_form {
	HAPAX_FORM_BINARY = 0,     /* attributes in headers, data as the body */
	HAPAX_FORM_STRUCTURED = 1, /* one JSON object */
};

/* The origin of a duplicate, as far as known. */
enum hapax_duplicate_cause {
	HAPAX_CAUSE_REREAD = 0,      /* the same position at the broker, read again */
	HAPAX_CAUSE_REDELIVERED = 1, /* the broker says that it was delivered before */
	HAPAX_CAUSE_PRODUCER = 2,    /* another message of the same event: the sender repeated it */
	HAPAX_CAUSE_DEAD_LETTER = 3, /* it was a dead letter and came back */
	HAPAX_CAUSE_OTHER_DOOR = 4,  /* the original did not come from a source, or its
	                                place is unknown */
};
enum { HAPAX_CAUSE_COUNT = 5 };

/* "reread", "redelivered", "producer", "dead_letter", "other_door". */
HAPAX_API const char *hapax_duplicate_cause_name(enum hapax_duplicate_cause cause);

/* The original of a duplicate, for handlers with on_duplicate tag. */
struct hapax_duplicate {
	enum hapax_duplicate_cause cause;
	struct hapax_bytes original; /* topic and place of the original; may be empty */
	int64_t first_seen_ms;       /* on the store's clock */
	uint64_t token;              /* of the first run; not permission to run */
};

enum hapax_consumer_fact {
	HAPAX_FACT_DUPLICATE = 1,   /* cause, original and first_seen_ms describe the original */
	HAPAX_FACT_RETRY = 2,       /* a run failed: why; retried after delay_ms */
	HAPAX_FACT_DEAD_LETTER = 3, /* the message is in target now: why */
	/*
	 * A dead letter, or a diverted or tagged duplicate, was not accepted: why. delay_ms -1: no
	 * retry.
	 */
	HAPAX_FACT_UNDELIVERED = 4,
	HAPAX_FACT_STORE_AWAY = 5,    /* the store refuses: why. Nothing begins until it accepts
	                              again */
	HAPAX_FACT_STORE_BACK = 6,    /* the store accepts again */
	HAPAX_FACT_SOURCE_FAILED = 7, /* why; the source recovers by itself */
	HAPAX_FACT_UNPROTECTED = 8,   /* no key, and on_missing is pass: it ran unprotected */
	HAPAX_FACT_WARM_UP = 9,       /* a warm-up is in progress, or ended: why */
	/*
	 * The store decided something else than DUPLICATE: answer. ACQUIRED: the handler starts.
	 * With another status than HAPAX_OK it did not decide. IN_PROGRESS is told once.
	 */
	HAPAX_FACT_DECIDED = 10,
	HAPAX_FACT_ENDED = 11,       /* the handler's run ended: answer, took_ns */
	HAPAX_FACT_KEYS_DIFFER = 12, /* its old and new key (hapax_key.also) disagree: why */
	/*
	 * The message has no ID and no place, and no strategy is configured: nothing begins.
	 * strategy fits. With HAPAX_CONSUMER_HALTS the consumer is then paused, until
	 * hapax_consumer_pause() pauses and resumes it; else it stops.
	 */
	HAPAX_FACT_NO_KEY = 13,
	/*
	 * The message has no ID, so its place is its key, which recognizes redeliveries only; the
	 * first one is told, stats count all. strategy fits.
	 */
	HAPAX_FACT_PLACE_KEY = 14,
	/* The broker accepted the connection and credentials: at first, and after SOURCE_FAILED. */
	HAPAX_FACT_SOURCE_REACHED = 15,
};

/* An event for logs. Everything it points at is borrowed for the call. */
struct hapax_consumer_event {
	size_t size;
	enum hapax_consumer_fact fact;
	struct hapax_bytes topic; /* of the message, like the next five; empty if there is none */
	struct hapax_bytes place;
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key;
	uint32_t attempt;
	const char *why;             /* never NULL */
	const char *target;          /* DEAD_LETTER, UNDELIVERED, a diverted DUPLICATE; else NULL */
	struct hapax_bytes original; /* DUPLICATE: topic and place of the original; may be empty */
	enum hapax_duplicate_cause cause;
	int64_t first_seen_ms;
	int64_t delay_ms; /* RETRY, UNDELIVERED: until the next attempt; 0: none */
	struct hapax_bytes
		id; /* of the event, else of the message; may be empty, like the next 2 */
	struct hapax_bytes type;
	struct hapax_bytes source;
	uint64_t token;     /* DUPLICATE: of the first run */
	int64_t expires_ms; /* DUPLICATE: when the record expires, by the store's clock */
	/* DUPLICATE, DECIDED, ENDED: what the processor answered; else NULL. */
	const struct hapax_answer *answer;
	int64_t took_ns; /* DUPLICATE, DECIDED: of the claim; ENDED: of the handler; -1: unknown */
	int64_t time_ms; /* of the event, else of the message; 0: unknown */
	/* Why a message is handed on, as in hapax-dead-reason: "malformed"; else NULL. */
	const char *reason;
	const char *strategy; /* NO_KEY, PLACE_KEY: a key strategy that fits; else NULL */
	/* With options.trace: of the message; may be empty. */
	struct hapax_bytes traceparent;
	const struct hapax_trace *trace; /* ENDED: if it is traced; else NULL */
	int64_t claim_ns;                /* ENDED: how long its claim took */
	unsigned http_status;            /* ENDED: of the service; 0: no response, or a command */
};

/* Called on the consumer's thread. Must not block, nor call the consumer, except stop and pause. */
typedef void hapax_consumer_told_fn(const struct hapax_consumer_event *event, void *context);

/* The trace of a run, as W3C traceparents without a NUL. */
enum { HAPAX_TRACEPARENT_SIZE = 55 };
struct hapax_trace {
	char run[HAPAX_TRACEPARENT_SIZE];     /* stored with its result, for links of duplicates */
	char handler[HAPAX_TRACEPARENT_SIZE]; /* that the handler gets */
	int is_sampled;                       /* zero: run is not stored */
};

/*
 * Begin the trace of a run, whose message has traceparent (may be empty). 0: it is not traced, and
 * its handler gets the message's own. Called like told, with its context.
 */
typedef int hapax_consumer_trace_fn(
	struct hapax_bytes traceparent, struct hapax_trace *ret_trace, void *context);

enum hapax_consumer_flags {
	/* Functions of rows run on the consumer's own thread; they must never block. */
	HAPAX_CONSUMER_INLINE = 1 << 0,
	/*
	 * Functions of rows run in a transaction of the store's database; the store must be
	 * postgres://. See Transactions.
	 */
	HAPAX_CONSUMER_TRANSACTIONS = 1 << 1,
	/* After HAPAX_FACT_NO_KEY, wait for hapax_consumer_pause() instead of stopping. */
	HAPAX_CONSUMER_HALTS = 1 << 2,
};

/* Zero means the default in every field. Set exactly one of rows, to and exec. */
struct hapax_consumer_options {
	size_t size;    /* set by HAPAX_CONSUMER_OPTIONS_INIT */
	unsigned flags; /* enum hapax_consumer_flags */

	/*
	 * Functions by type of event. A row's strategy may be NULL, which means the default below;
	 * its shadow is not read. A type without a row is a dead letter.
	 */
	const struct hapax_registration *rows;
	size_t row_count;
	const char *to; /* http:// or https:// */
	enum hapax_event_form form;
	const char *const *exec; /* a command and its arguments; ends with NULL */

	/*
	 * The key strategy for to and exec; see key.h. NULL: source and id of a CloudEvent; else
	 * the first of the headers Idempotency-Key, Nats-Msg-Id, x-deduplication-header, message-id
	 * (of AMQP, the property), eventId, id; else its place at the broker, which recognizes
	 * redeliveries only. A message of RabbitMQ has no place: see HAPAX_FACT_NO_KEY.
	 */
	const char *strategy;
	const struct hapax_key_options *key_options; /* also for rows without their own */
	struct hapax_run_options run;                /* ttl_ms 0: 7 d */

	size_t prefetch;        /* 0: 256; messages held at a time */
	size_t parallel;        /* 0: 16; of them, number processed at once */
	enum hapax_order order; /* within these limits */
	uint32_t attempts_max;  /* 0: 10; failed runs before a key becomes a dead letter */
	int64_t backoff_ms;     /* 0: 200 ms; before the second attempt, then doubled */
	int64_t backoff_ms_max; /* 0: 60 s */
	int64_t drain_ms;       /* 0: 30 s; how long stop waits for runs in progress */
	/* Target of dead letters; NULL: the topic and ".dead". "off": none, retry forever. */
	const char *dead_letter;
	enum hapax_on_duplicate on_duplicate;
	const char *divert; /* NULL: the topic and ".duplicate" */

	hapax_consumer_told_fn *told; /* may be NULL */
	void *told_context;
	const struct hapax_clock *clock; /* NULL: the system clock; its boot_ms is used */
	hapax_consumer_trace_fn *trace;  /* may be NULL */
};

#define HAPAX_CONSUMER_OPTIONS_INIT                                                               \
	{                                                                                         \
		sizeof(struct hapax_consumer_options), 0, NULL, 0, NULL, HAPAX_FORM_BINARY, NULL, \
			NULL, NULL, HAPAX_RUN_OPTIONS_INIT, 0, 0, HAPAX_ORDER_KEY, 0, 0, 0, 0,    \
			NULL, HAPAX_ON_DUPLICATE_DROP, NULL, NULL, NULL, NULL, NULL               \
	}

/*
 * Create a consumer of source on store, which must outlive it. INVALID: the options are wrong; the
 * message says how. Owned: *ret_consumer, by the caller; on success the consumer owns source.
 */
HAPAX_API enum hapax_status hapax_consumer_new(
	struct hapax_source *source, struct hapax_store *store,
	const struct hapax_consumer_options *options, struct hapax_consumer **ret_consumer,
	struct hapax_error *err);

/* NULL is allowed. The consumer must not be running. Closes the source. */
HAPAX_API void hapax_consumer_free(struct hapax_consumer *consumer);

/*
 * Consume until stopped; call it once per consumer. HAPAX_OK: stopped, and every held message is
 * acknowledged or given back. LIMIT: the same, but drain_ms passed before all runs ended. INVALID:
 * a message has no key (HAPAX_FACT_NO_KEY). FAILED: the store has failed permanently. UNAVAILABLE: the source has. In every case, unacknowledged
 * messages will be delivered again. Blocks.
 */
HAPAX_API enum hapax_status hapax_consumer_run(
	struct hapax_consumer *consumer, struct hapax_error *err);

/* Take no more messages, finish current runs, give back the rest. Idempotent. */
HAPAX_API void hapax_consumer_stop(struct hapax_consumer *consumer);

/*
 * Begin nothing new while is_paused is nonzero; zero resumes. Runs in progress finish. Messages that
 * were fetched and have not begun, or wait for a retry, stay in memory. The connection to the broker
 * and the membership in its group stay. Threads: any, before run and during it.
 */
HAPAX_API void hapax_consumer_pause(struct hapax_consumer *consumer, int is_paused);

struct hapax_consumer_stats {
	size_t size;           /* set by HAPAX_CONSUMER_STATS_INIT */
	uint64_t received;     /* messages */
	uint64_t acknowledged; /* for any reason */
	uint64_t given_back;
	uint64_t runs[4]; /* by enum hapax_run_outcome, stored ones only */
	uint64_t duplicates[HAPAX_CAUSE_COUNT];
	uint64_t in_progress; /* times that another caller held the claim */
	uint64_t mismatches;
	uint64_t parked;
	uint64_t retries;
	uint64_t refused;  /* times that the store accepted nothing */
	uint64_t unstored; /* runs whose outcome was not known to be stored */
	uint64_t dead_letters;
	uint64_t diverted;
	uint64_t in_hand; /* now, like the next three */
	uint64_t running;
	uint64_t waiting;    /* for a retry */
	int64_t lag;         /* messages waiting at the broker; -1: unknown */
	uint64_t failures;   /* of the source */
	uint64_t rebalances; /* of the source */
	uint64_t warmed;     /* past messages marked as done by a warm-up */
	uint64_t warming;    /* partitions in warm-up, now */
	uint64_t tagged;     /* duplicates that a handler accepted as such */
	uint64_t unreadable; /* done, but the stored result cannot be read */
	uint64_t diverged;   /* duplicates whose old and new key disagree */
	uint64_t placed;     /* messages without an ID, whose key is their place */
};

#define HAPAX_CONSUMER_STATS_INIT                                                                  \
	{                                                                                          \
		sizeof(struct hapax_consumer_stats), 0, 0, 0, {0}, {0}, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
			0, 0, -1, 0, 0, 0, 0, 0, 0, 0, 0                                           \
	}

/* The figures of the last iteration of its loop. ret_stats->size must be set. */
HAPAX_API void hapax_consumer_stats(
	struct hapax_consumer *consumer, struct hapax_consumer_stats *ret_stats);

#ifdef __cplusplus
}
#endif

#endif
