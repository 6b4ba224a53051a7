/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - messages of a broker, each with its effect once.
 *
 * A source delivers at least once. A consumer takes its messages, finds what makes each
 * of them the same as another, claims that, and hands it to a handler: an HTTP service, a
 * command, or functions of yours by type of event. The broker is told that a message is
 * done only when that it is done is durable in the store.
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
 * What becomes of a message
 *	its run ended ok               acknowledged
 *	done before (a duplicate)      acknowledged; on_duplicate says what else
 *	transient or ambiguous         tried again, each time later; after attempts_max runs of
 *	                               its key, wherever they were, a dead letter
 *	no end, the process ended      tried again when the claim has lapsed, at every start
 *	definitive failure             kept as the result, and a dead letter
 *	in progress elsewhere          tried again; that counts for nothing
 *	mismatch, parked, no key       a dead letter at once
 *	done, its result unreadable    the same
 *	larger than the source takes   the same; where dead letters are off it stays with the broker
 *	the store refuses              it waits, and with it the consumer; counts for nothing
 *	the store refuses its key      it waits; the others go on
 *	the store says it is damaged   the same
 * A dead letter is acknowledged when the broker has it in its new place, with the reason
 * in its headers. Nothing is dropped without one.
 *
 * Tags
 * With on_duplicate tag the handler gets a duplicate, too, and knows it as one: a function by
 * work->duplicate, a service by the header Hapax-Duplicate (the cause) with Hapax-Original and
 * Hapax-First-Seen, a command by HAPAX_DUPLICATE, HAPAX_ORIGINAL and HAPAX_FIRST_SEEN. There is no
 * claim and no token, what the handler returns is not kept, and it counts as no run. Where it
 * fails it is handed out again, attempts_max times, and is acknowledged then. It is at least
 * once: a crash brings it again.
 *
 * Warm-up
 * A store that is new, or was lost, knows nothing of what is done. With warm_up=10m (or
 * warm_up=5000: messages) a consumer that gets a partition first reads again what stands
 * that far before the group's committed offset, and marks it as done, without running it;
 * nothing is delivered meanwhile. What the store knows already stays as it is. A dead
 * letter counts as done, too, in a store that has forgotten it.
 *
 * Transactions
 * With HAPAX_CONSUMER_TRANSACTIONS, and a store in PostgreSQL, the claim, what a function writes by
 * hapax_postgres_of_work() (outbox_postgres.h), its result and the offset of the message commit together,
 * or none of them does: exactly once, whatever is killed. Each worker has a connection of its own
 * to the store's URL. The offset of a partition, below which all is done, is in the table hapax_offset
 * (`hapax store migrate` makes it), by the group of the source's URL, its topic and partition. It
 * decides where a partition begins, whatever the broker has as committed, so that what a restored
 * database has lost is read again; DELETE the row to go by the broker. A source without offsets
 * (RabbitMQ, Redis) has none, and the rest of it. One group's name is not for two clusters.
 *
 * Caveats
 * - Threads: a consumer belongs to the thread that runs it, except hapax_consumer_stop()
 *   and hapax_consumer_stats(): any. Handlers run on threads of the consumer's own.
 * - Fork: neither survives fork().
 * - A crash, a rebalance or an offset that is set back bring messages again. What is done
 *   is then a duplicate as long as its record lives: ttl_ms, 7 days unless options say else.
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
 * Open a source by URL; nothing is fetched before a consumer runs. UNSUPPORTED: no such
 * scheme is built in, and the message lists those that are.
 *
 *	kafka://HOST[:PORT][,HOST[:PORT]...]/TOPIC[,TOPIC...]?group=G
 *		a topic that begins with ^ is a pattern. instance=NAME: static membership;
 *		start=earliest|latest: where a new group begins; warm_up=SPAN: see below;
 *		held_max=BYTES: of all in hand, 128 MiB; any property of librdkafka that has a
 *		dot in its name: security.protocol=SASL_SSL
 *	amqp://[USER[:PASSWORD]@]HOST[:PORT]/[VHOST/]QUEUE, amqps://...
 *		a queue of RabbitMQ; a slash in a name is %2F. prefetch=N: sent ahead of
 *		acknowledgement, 256; declare=quorum: made if it is not there;
 *		dead_exchange=NAME: dead letters go there instead of to queues, which are
 *		made; size_max=BYTES: larger ones are dead letters, 64 MiB; held_max=BYTES: of
 *		all in hand, 128 MiB; ca=, cert=, key=FILE for TLS
 *	redis://[USER[:PASSWORD]@]HOST[:PORT]/STREAM?group=G, rediss://...,
 *	redis+unix:PATH?stream=STREAM&group=G
 *		a stream of Redis 6.2 or later. instance=NAME: of the member; start=earliest|
 *		latest; min_idle=D: then another member's entries are ours, 30s; prefetch=N,
 *		256; size_max=BYTES: larger ones are dead letters, 64 MiB; db=N; ca=, cert=,
 *		key=FILE for TLS
 *
 * Owned: *ret_source, by the caller, until a consumer is made of it.
 */
HAPAX_API enum hapax_status hapax_source_open(
	const char *url, struct hapax_source **ret_source, struct hapax_error *err);

/*
 * Whether hapax_source_open() would take the URL: for those who read a configuration. Nobody is
 * asked, and what it says holds no password.
 */
HAPAX_API enum hapax_status hapax_source_check(const char *url, struct hapax_error *err);

/* NULL is allowed. Not after a consumer was made of it. May block while it says goodbye. */
HAPAX_API void hapax_source_close(struct hapax_source *source);

/* As given to open, with a password hidden. Borrowed from source. */
HAPAX_API const char *hapax_source_url(const struct hapax_source *source);

/* The schemes that were built in, by index from 0 on; NULL after the last. */
HAPAX_API const char *hapax_source_scheme(size_t index);

/* Which messages wait for each other. */
enum hapax_order {
	HAPAX_ORDER_KEY = 0,       /* those with the same key at the broker */
	HAPAX_ORDER_PARTITION = 1, /* those of one partition, or queue, or stream */
	HAPAX_ORDER_NONE = 2,
};

/* What becomes of a duplicate of something done. Always counted and told. */
enum hapax_on_duplicate {
	HAPAX_ON_DUPLICATE_DROP = 0,   /* acknowledged */
	HAPAX_ON_DUPLICATE_DIVERT = 1, /* and sent to divert first */
	HAPAX_ON_DUPLICATE_TAG = 2,    /* and handed to the handler first, marked: see Tags */
};

/* How an HTTP handler gets an event. */
enum hapax_event_form {
	HAPAX_FORM_BINARY = 0,     /* attributes in headers, data as the body */
	HAPAX_FORM_STRUCTURED = 1, /* one JSON object */
};

/* Where a duplicate came from, as far as can be told. */
enum hapax_duplicate_cause {
	HAPAX_CAUSE_REREAD = 0,      /* the same place of the broker, read again */
	HAPAX_CAUSE_REDELIVERED = 1, /* the broker says that it delivered it before */
	HAPAX_CAUSE_PRODUCER = 2,    /* another message of the same event: its sender repeated it */
	HAPAX_CAUSE_DEAD_LETTER = 3, /* it was a dead letter and came back */
	HAPAX_CAUSE_OTHER_DOOR = 4,  /* the original did not come by a source, or said not where */
};
enum { HAPAX_CAUSE_COUNT = 5 };

/* "reread", "redelivered", "producer", "dead_letter", "other_door". */
HAPAX_API const char *hapax_duplicate_cause_name(enum hapax_duplicate_cause cause);

/* What a message is a duplicate of, for a handler that wants to know (on_duplicate tag). */
struct hapax_duplicate {
	enum hapax_duplicate_cause cause;
	struct hapax_bytes original; /* topic and place of what was done; may be empty */
	int64_t first_seen_ms;       /* on the store's clock */
	uint64_t token;              /* of the run that was the first; not a right to run */
};

enum hapax_consumer_fact {
	HAPAX_FACT_DUPLICATE = 1, /* cause, original and first_seen_ms say of what */
	HAPAX_FACT_RETRY = 2,     /* a run failed; why says how, delay_ms when it is tried again */
	HAPAX_FACT_DEAD_LETTER = 3, /* it is in target now; why says why */
	/* A dead letter, or a duplicate that is diverted or tagged, was not taken: why. delay_ms -1: it is not
	   tried again. */
	HAPAX_FACT_UNDELIVERED = 4,
	HAPAX_FACT_STORE_AWAY = 5, /* the store refuses: why. Nothing is begun meanwhile */
	HAPAX_FACT_STORE_BACK = 6,
	HAPAX_FACT_SOURCE_FAILED = 7, /* why; it goes on by itself */
	HAPAX_FACT_UNPROTECTED = 8,   /* no key, and on_missing is pass: it ran without one */
	HAPAX_FACT_WARM_UP = 9,       /* the past of partitions is being read, or was: why */
};

/* Something that people want to know. What it points at is borrowed for the call. */
struct hapax_consumer_event {
	size_t size;
	enum hapax_consumer_fact fact;
	struct hapax_bytes topic; /* of the message, as the next five; empty where there is none */
	struct hapax_bytes place;
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key;
	uint32_t attempt;
	const char *why;             /* never NULL */
	const char *target;          /* DEAD_LETTER, UNDELIVERED, a diverted DUPLICATE; else NULL */
	struct hapax_bytes original; /* DUPLICATE: topic and place of what was done; may be empty */
	enum hapax_duplicate_cause cause;
	int64_t first_seen_ms;
	int64_t delay_ms;      /* RETRY, UNDELIVERED: until the next time; 0: there is none */
	struct hapax_bytes id; /* of the message as an event, as the next two; may be empty */
	struct hapax_bytes type;
	struct hapax_bytes source;
	uint64_t token;     /* DUPLICATE: of the run that was the first */
	int64_t expires_ms; /* DUPLICATE: until when it is known, by the store's clock */
};

/* Called on the consumer's thread. Must not block, nor call the consumer, except stop. */
typedef void hapax_consumer_told_fn(const struct hapax_consumer_event *event, void *context);

enum hapax_consumer_flags {
	/* Functions of rows run on the consumer's own thread: for those that never block. */
	HAPAX_CONSUMER_INLINE = 1 << 0,
	/*
	 * Functions of rows run in a transaction of the database that has the ledger, too: the store
	 * is postgres://. See Transactions.
	 */
	HAPAX_CONSUMER_TRANSACTIONS = 1 << 1,
};

/* Zero means the default in every field. Exactly one of rows, to and exec is given. */
struct hapax_consumer_options {
	size_t size;    /* set by HAPAX_CONSUMER_OPTIONS_INIT */
	unsigned flags; /* enum hapax_consumer_flags */

	/*
	 * Functions by type of event. A row's strategy may be NULL here, which is as below;
	 * its shadow is not read. A type without a row is a dead letter.
	 */
	const struct hapax_registration *rows;
	size_t row_count;
	const char *to; /* http:// or https:// */
	enum hapax_event_form form;
	const char *const *exec; /* a command and its arguments; ends with NULL */

	/*
	 * What makes two messages the same, with to and exec; see key.h. NULL: source and id of
	 * a CloudEvent; else the first of the headers Idempotency-Key, Nats-Msg-Id,
	 * x-deduplication-header, message-id (of AMQP, the property), eventId, id; else its
	 * place at the broker, which recognises redeliveries only; a message of RabbitMQ has none.
	 */
	const char *strategy;
	const struct hapax_key_options *key_options; /* of rows without their own, too */
	struct hapax_run_options run;                /* ttl_ms 0: 7 d */

	size_t prefetch;        /* 0: 256; messages in hand */
	size_t parallel;        /* 0: 16; of them, how many are worked on at once */
	enum hapax_order order; /* within these limits */
	uint32_t attempts_max;  /* 0: 10; runs of a key that fail before it is a dead letter */
	int64_t backoff_ms;     /* 0: 200 ms; before the second attempt, then doubled */
	int64_t backoff_ms_max; /* 0: 60 s */
	int64_t drain_ms;       /* 0: 30 s; how long stop waits for what runs */
	/* Where dead letters go; NULL: the topic and ".dead". "off": none, it is tried for ever. */
	const char *dead_letter;
	enum hapax_on_duplicate on_duplicate;
	const char *divert; /* NULL: the topic and ".duplicate" */

	hapax_consumer_told_fn *told; /* NULL: nobody wants to know */
	void *told_context;
	const struct hapax_clock *clock; /* NULL: the system's; its boot_ms is read */
};

#define HAPAX_CONSUMER_OPTIONS_INIT                                                               \
	{                                                                                         \
		sizeof(struct hapax_consumer_options), 0, NULL, 0, NULL, HAPAX_FORM_BINARY, NULL, \
			NULL, NULL, HAPAX_RUN_OPTIONS_INIT, 0, 0, HAPAX_ORDER_KEY, 0, 0, 0, 0,    \
			NULL, HAPAX_ON_DUPLICATE_DROP, NULL, NULL, NULL, NULL                     \
	}

/*
 * A consumer of source on store, which must outlive it. INVALID: the options are wrong,
 * and the message says how. Owned: *ret_consumer, by the caller; on success source is the
 * consumer's.
 */
HAPAX_API enum hapax_status hapax_consumer_new(
	struct hapax_source *source, struct hapax_store *store,
	const struct hapax_consumer_options *options, struct hapax_consumer **ret_consumer,
	struct hapax_error *err);

/* NULL is allowed. It does not run. Closes the source. */
HAPAX_API void hapax_consumer_free(struct hapax_consumer *consumer);

/*
 * Consume until stopped; once in a consumer's life. HAPAX_OK: it was stopped, and all that was in hand is
 * acknowledged or given back. LIMIT: the same, but drain_ms was over before all of it had
 * ended. FAILED: the store has failed for good. UNAVAILABLE: the source has. What was not
 * acknowledged will be delivered again, in every case. Blocks.
 */
HAPAX_API enum hapax_status hapax_consumer_run(
	struct hapax_consumer *consumer, struct hapax_error *err);

/* Take no more, finish what runs, give back the rest. Idempotent. */
HAPAX_API void hapax_consumer_stop(struct hapax_consumer *consumer);

struct hapax_consumer_stats {
	size_t size;           /* set by HAPAX_CONSUMER_STATS_INIT */
	uint64_t received;     /* messages */
	uint64_t acknowledged; /* for whatever reason */
	uint64_t given_back;
	uint64_t runs[4]; /* by enum hapax_run_outcome, those that are stored */
	uint64_t duplicates[HAPAX_CAUSE_COUNT];
	uint64_t in_progress; /* times that somebody else was at it */
	uint64_t mismatches;
	uint64_t parked;
	uint64_t retries;
	uint64_t refused;  /* times that the store took nothing */
	uint64_t unstored; /* runs whose outcome was not known to be stored */
	uint64_t dead_letters;
	uint64_t diverted;
	uint64_t in_hand; /* now, as the next three */
	uint64_t running;
	uint64_t waiting;    /* to be tried again */
	int64_t lag;         /* messages that wait at the broker; -1: not known */
	uint64_t failures;   /* of the source */
	uint64_t rebalances; /* of the source */
	uint64_t warmed;     /* messages of the past that were marked as done */
	uint64_t warming;    /* partitions whose past is being read, now */
	uint64_t tagged;     /* duplicates that a handler took as such */
	uint64_t unreadable; /* done, but what is stored for it cannot be read */
};

#define HAPAX_CONSUMER_STATS_INIT                                                                  \
	{                                                                                          \
		sizeof(struct hapax_consumer_stats), 0, 0, 0, {0}, {0}, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
			0, 0, -1, 0, 0, 0, 0, 0, 0                                                 \
	}

/* As of the last turn of its loop. ret_stats->size must be set. */
HAPAX_API void hapax_consumer_stats(
	struct hapax_consumer *consumer, struct hapax_consumer_stats *ret_stats);

#ifdef __cplusplus
}
#endif

#endif
