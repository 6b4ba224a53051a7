/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_ops.h - for authors of sources. Users want source.h.
 *
 * A source embeds struct hapax_source as its first member and fills a table of operations. It
 * delivers messages, and learns the outcome of each of them, once. It decides nothing: the consumer
 * handles order, retries, dead letters and acknowledgments. This API is less stable than source.h:
 * a minor version may add to the end of the table.
 *
 * Threads: the consumer's thread calls every function, and only close may block. A source with
 * threads of its own calls wake when there is something to do.
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
	HAPAX_MESSAGE_TOMBSTONE = 1 << 1,   /* it has no value, as opposed to an empty one */
	/*
	 * Set by the source at any time: the message now belongs to another consumer. Do not begin
	 * it.
	 */
	HAPAX_MESSAGE_REVOKED = 1 << 2,
	/* Already acknowledged, and read again only to mark it as done: do not run it. */
	HAPAX_MESSAGE_WARM_UP = 1 << 3,
	/*
	 * Larger than the source's limit: it must not be read. It becomes a dead letter. If dead
	 * letters are off, it is given back. It must then use no memory, and must not be delivered
	 * again until the source is reopened.
	 */
	HAPAX_MESSAGE_TOO_LARGE = 1 << 4,
};

/* A message of a broker. It and everything it points at live until ack or give_back. */
struct hapax_message {
	struct hapax_bytes origin; /* the servers, as in a URL: kafka://host:9092 */
	struct hapax_bytes topic;  /* a topic of Kafka, a queue, a stream */
	int32_t partition;         /* -1: none */
	struct hapax_bytes place;  /* position in the topic, as text; empty: unknown */
	struct hapax_bytes key;    /* the broker's ordering key; empty: none */
	struct hapax_bytes data;
	const struct hapax_field *headers;
	size_t header_count;
	int64_t time_ms; /* time of sending, or HAPAX_TIME_UNKNOWN */
	unsigned flags;  /* enum hapax_message_flags */
	void *private_in_flight;
};

/* A message to publish: a dead letter or a diverted duplicate. */
struct hapax_publication {
	const char *target; /* a topic, queue or stream */
	const struct hapax_message *message;
	const struct hapax_field *headers; /* replace those of message */
	size_t header_count;
	/*
	 * Called once, on the consumer's thread, never from within publish: the broker has stored
	 * it.
	 */
	void (*done)(
		struct hapax_publication *publication, enum hapax_status status, const char *why);
	void *context;
	struct hapax_publication *private_next; /* private to the source */
};

struct hapax_source_stats {
	size_t size;       /* set by HAPAX_SOURCE_STATS_INIT */
	int64_t lag;       /* messages waiting at the broker; -1: unknown */
	uint64_t failures; /* of the connection, since the start */
	uint64_t changes;  /* of the assignment: rebalances */
	uint64_t parts;    /* assigned partitions */
	uint64_t warming;  /* of them, those in warm-up */
};

#define HAPAX_SOURCE_STATS_INIT                                   \
	{                                                         \
		sizeof(struct hapax_source_stats), -1, 0, 0, 0, 0 \
	}

/* The next message, or NULL: there is none now, and wake will be called. */
typedef struct hapax_message *hapax_source_next_fn(struct hapax_source *source);

/* The message has taken effect, durably: the broker may forget it. Only this call allows that. */
typedef void hapax_source_ack_fn(struct hapax_source *source, struct hapax_message *message);

/* The message has not taken effect: it must be delivered again, to any consumer. */
typedef void hapax_source_give_back_fn(struct hapax_source *source, struct hapax_message *message);

/* Publish a message, and report when the broker has certainly stored it. */
typedef void hapax_source_publish_fn(
	struct hapax_source *source, struct hapax_publication *publication);

/*
 * Do all due work. Returns the time of the next call, in milliseconds of the same clock, or
 * INT64_MAX; an early call is harmless. Errors are reported through the hooks.
 */
typedef int64_t hapax_source_tick_fn(struct hapax_source *source, int64_t now_ms);

/* Take nothing new; no message is held. Returns 1 when the broker has received all acks. */
typedef int hapax_source_drain_fn(struct hapax_source *source);

/*
 * The consumer is stopping and its waiting time is over: report unanswered publications as
 * UNAVAILABLE now, and later ones at once.
 */
typedef void hapax_source_hurry_fn(struct hapax_source *source);

/*
 * The offset below which the partition would be done, if message and everything acknowledged now
 * were done. -1: unknown, or the partition belongs to another consumer.
 */
typedef int64_t hapax_source_position_fn(
	struct hapax_source *source, const struct hapax_message *message);

/* Fetch nothing, and stay connected; zero: fetch again. What was fetched may still be taken. */
typedef void hapax_source_pause_fn(struct hapax_source *source, int is_paused);

/* ret_stats->size is set. */
typedef void hapax_source_stats_fn(
	struct hapax_source *source, struct hapax_source_stats *ret_stats);

/* No message is held. Disconnects cleanly, and may block for that. */
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
	hapax_source_hurry_fn *hurry;       /* NULL: nothing takes long */
	hapax_source_position_fn *position; /* NULL: the source has no offsets */
	hapax_source_pause_fn *pause;       /* NULL: it fetches nothing while next is not called */
};

/* The consumer sets them before any other call. */
struct hapax_source_hooks {
	/* tick or next has work to do. Any thread; must not call back. */
	void (*wake)(void *context);
	/* The broker reports a failure; is_fatal: it is permanent. Within tick. */
	void (*failed)(void *context, const char *text, int is_fatal);
	void *context;
	/*
	 * The first offset of a newly assigned partition; -1: the broker's. NULL: the broker's for
	 * all. For sources with position, within tick or next; it may block.
	 */
	int64_t (*begin)(void *context, const char *topic, int32_t partition);
};

struct hapax_source {
	const struct hapax_source_ops *ops;
	struct hapax_source_hooks hooks;
	char *url;         /* with its password hidden */
	const char *group; /* consumers that share its messages; NULL: unnamed */
};

#ifdef __cplusplus
}
#endif

#endif
