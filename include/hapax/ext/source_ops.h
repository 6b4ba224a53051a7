/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_ops.h - for authors of sources. Users want source.h.
 *
 * A source embeds struct hapax_source as its first member and fills a table of
 * operations. It hands out messages, and is told what became of each of them, once. It
 * decides nothing: order, repeats, dead letters and acknowledgement are the consumer's.
 * The promise of stability here is weaker than in source.h: the table may grow with a
 * minor version, at its end.
 *
 * Threads: every function is called on the consumer's thread, and none may block, but for
 * close. A source with threads of its own calls wake when there is something to do.
 */
#ifndef HAPAX_EXT_SOURCE_OPS_H
#define HAPAX_EXT_SOURCE_OPS_H

#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>
#include <hapax/key.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HAPAX_SOURCE_OPS_VERSION = 1 };

struct hapax_source;

enum hapax_message_flags {
	HAPAX_MESSAGE_REDELIVERED = 1 << 0, /* the broker says that it was delivered before */
	HAPAX_MESSAGE_TOMBSTONE = 1 << 1,   /* it has no value, which is not an empty one */
	/* Set by the source at any time: it is another consumer's now. Do not begin it. */
	HAPAX_MESSAGE_REVOKED = 1 << 2,
	/* It was acknowledged before, and is read again to be remembered: it is not to run. */
	HAPAX_MESSAGE_WARM_UP = 1 << 3,
	/*
	 * More than the source was told to take: nobody is to read it. It becomes a dead letter;
	 * where there are none it is given back, and must then take up nothing and not be
	 * delivered again before the source is opened anew.
	 */
	HAPAX_MESSAGE_TOO_LARGE = 1 << 4,
};

/* What a broker delivered. It and all that it points at live until ack or give_back. */
struct hapax_message {
	struct hapax_bytes origin; /* the servers, as in a URL: kafka://host:9092 */
	struct hapax_bytes topic;  /* of Kafka; a queue, a stream */
	int32_t partition;         /* -1: there is none */
	struct hapax_bytes place;  /* where in the topic, as text; empty: it cannot be told */
	struct hapax_bytes key;    /* what the broker orders by; empty: nothing */
	struct hapax_bytes data;
	const struct hapax_field *headers;
	size_t header_count;
	int64_t time_ms; /* when it was sent, or HAPAX_TIME_UNKNOWN */
	unsigned flags;  /* enum hapax_message_flags */
	void *private_in_flight;
};

/* A message for somebody else: a dead letter, a duplicate that is diverted. */
struct hapax_publication {
	const char *target; /* a topic, queue or stream */
	const struct hapax_message *message;
	const struct hapax_field *headers; /* in place of those of message */
	size_t header_count;
	/* Told once, on the consumer's thread, never from within publish: the broker has it. */
	void (*done)(
		struct hapax_publication *publication, enum hapax_status status, const char *why);
	void *context;
	struct hapax_publication *private_next; /* the source's own */
};

struct hapax_source_stats {
	size_t size;       /* set by HAPAX_SOURCE_STATS_INIT */
	int64_t lag;       /* messages that wait at the broker; -1: not known */
	uint64_t failures; /* of the connection, since the beginning */
	uint64_t changes;  /* of what is ours: rebalances */
	uint64_t parts;    /* partitions that are ours */
	uint64_t warming;  /* of them, those whose past is being read */
};

#define HAPAX_SOURCE_STATS_INIT                                   \
	{                                                         \
		sizeof(struct hapax_source_stats), -1, 0, 0, 0, 0 \
	}

/* The next message that has come, or NULL: there is none now, and wake will be called. */
typedef struct hapax_message *hapax_source_next_fn(struct hapax_source *source);

/*
 * It has taken effect, and that is durable: the broker may forget it. This is the only
 * call after which it may.
 */
typedef void hapax_source_ack_fn(struct hapax_source *source, struct hapax_message *message);

/* It has not: it is to be delivered again, to whomever. */
typedef void hapax_source_give_back_fn(struct hapax_source *source, struct hapax_message *message);

/* Hand a message on, and tell when the broker has it for certain. */
typedef void hapax_source_publish_fn(
	struct hapax_source *source, struct hapax_publication *publication);

/*
 * Do what is due. Returns when to call again, in milliseconds of the same clock, or
 * INT64_MAX; calling it too early does no harm. An error is told through the hooks.
 */
typedef int64_t hapax_source_tick_fn(struct hapax_source *source, int64_t now_ms);

/* Nothing new is wanted, and nothing is out: 1 when the broker knows of all acks. */
typedef int hapax_source_drain_fn(struct hapax_source *source);

/*
 * The consumer stops, and has waited as long as it may: publications that the broker has not
 * answered are told as UNAVAILABLE now, and later ones at once.
 */
typedef void hapax_source_hurry_fn(struct hapax_source *source);

/*
 * Up to where would its partition be done, everything below, if message were done, too, and
 * nothing else than what is acknowledged now? -1: nobody can tell, or it is another's.
 */
typedef int64_t hapax_source_position_fn(
	struct hapax_source *source, const struct hapax_message *message);

/* ret_stats->size is set. */
typedef void hapax_source_stats_fn(
	struct hapax_source *source, struct hapax_source_stats *ret_stats);

/* Nothing is out. Leaves the broker in good order; may block for that. */
typedef void hapax_source_close_fn(struct hapax_source *source);

struct hapax_source_ops {
	unsigned version; /* HAPAX_SOURCE_OPS_VERSION */
	const char *name; /* as in URLs, metrics and logs */
	hapax_source_next_fn *next;
	hapax_source_ack_fn *ack;
	hapax_source_give_back_fn *give_back;
	hapax_source_publish_fn *publish;
	hapax_source_tick_fn *tick;
	hapax_source_drain_fn *drain;
	hapax_source_stats_fn *stats;
	hapax_source_close_fn *close;
	hapax_source_hurry_fn *hurry;       /* NULL: it never takes long */
	hapax_source_position_fn *position; /* NULL: it has no offsets */
};

/* Set by the consumer before it calls anything else. */
struct hapax_source_hooks {
	/* tick or next has something to do. Any thread; must not call back. */
	void (*wake)(void *context);
	/* Something is wrong at the broker; is_fatal: it will not get better. Within tick. */
	void (*failed)(void *context, const char *text, int is_fatal);
	void *context;
	/*
	 * Where a partition that comes to us begins; -1: as the broker has it. NULL: so for all.
	 * Of sources with position, within tick or next; it may block.
	 */
	int64_t (*begin)(void *context, const char *topic, int32_t partition);
};

struct hapax_source {
	const struct hapax_source_ops *ops;
	struct hapax_source_hooks hooks;
	char *url;         /* with its password hidden */
	const char *group; /* those who share its messages; NULL: it has no name for them */
};

#ifdef __cplusplus
}
#endif

#endif
