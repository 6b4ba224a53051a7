/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox.h - a business change and its event commit together, and the event reaches a broker.
 *
 * The event is a row of the table hapax_outbox, written in the transaction of the change: it exists
 * if and only if the change does. A relay publishes rows, waits for the broker's confirmation, then
 * marks them sent. After a crash in between, a message is published again with the same ID, and the
 * consumer (such as hapax) deduplicates it. No event is lost, none comes from a transaction that
 * was rolled back, and the effect of an event happens once.
 *
 *	struct hapax_outbox_event event = HAPAX_OUTBOX_EVENT_INIT;
 *
 *	hapax_outbox_join_postgres(conn, &outbox, &err);
 *	event.topic = hapax_bytes_from_text("orders");
 *	event.ordering_key = hapax_bytes_from_text("order-17");
 *	event.payload = hapax_bytes_from_text("{\"order\": 17}");
 *	if (hapax_outbox_execute(outbox, insert_order, conn, &event, 1, &err) != HAPAX_OK)
 *		return report(err.message);
 *
 * Order: rows of one ordering key are published in the order in which their transactions committed,
 * with any number of relays. Rows without an ordering key have no order. A row that cannot be
 * published is retried with backoff, then parked; only its own ordering key waits for it.
 *
 * Caveats
 * - hapax_outbox_init() (hapax outbox init) creates the tables; opening never does.
 * - On PostgreSQL, an add waits for other open transactions that added rows with the same ordering
 *   key: keep them short. In SQLite every writer waits for every other anyway.
 * - Publishing is at least once. The order is that of first publications: a message that is
 *   published again comes late, and is a duplicate.
 * - Threads: an outbox belongs to one thread at a time; hapax_relay_stop() and
 *   hapax_relay_stats() may be called from any.
 * - Everything here blocks.
 */
#ifndef HAPAX_OUTBOX_H
#define HAPAX_OUTBOX_H

#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>
#include <hapax/key.h>
#include <hapax/store.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hapax_outbox;
struct hapax_relay;
struct pg_conn; /* PGconn of libpq */
struct sqlite3;

enum {
	HAPAX_OUTBOX_ID_SIZE = 256, /* of an ID as text, including its NUL */
	HAPAX_OUTBOX_HEADERS_MAX = 48,
};

/* Borrowed for the length of the call. All but topic may be empty. */
struct hapax_outbox_event {
	size_t size;
	struct hapax_bytes topic; /* queue, routing key, topic, stream or path: 1 to 255 bytes */
	struct hapax_bytes ordering_key; /* up to 1,024 bytes; empty: no order */
	struct hapax_bytes id;           /* of the message, up to 255 bytes; empty: a new UUIDv7 */
	struct hapax_bytes type;         /* of the event, as in CloudEvents, like the next three */
	struct hapax_bytes source;
	struct hapax_bytes subject;
	struct hapax_bytes content_type;
	struct hapax_bytes payload; /* up to 16 MiB */
	const struct hapax_field *headers;
	size_t header_count;
};

#define HAPAX_OUTBOX_EVENT_INIT                                                                    \
	{                                                                                          \
		sizeof(struct hapax_outbox_event), {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, \
			{0, 0}, {0, 0}, 0, 0                                                       \
	}

/* Create or update the tables. ret_migration may be NULL. */
HAPAX_API enum hapax_status hapax_outbox_init(
	const char *url, struct hapax_migration *ret_migration, struct hapax_error *err);

/*
 * Open with a new connection: sqlite:FILE, or postgres://... with schema=NAME. Every add is then a
 * transaction. UNAVAILABLE: the database could not be reached, or has no outbox.
 *
 * Owned: *ret_outbox, by the caller.
 */
HAPAX_API enum hapax_status hapax_outbox_open(
	const char *url, struct hapax_outbox **ret_outbox, struct hapax_error *err);

/*
 * Join the caller's connection: added events are part of its open transaction. The outbox is the
 * first one in the search_path, or the one of the main database. UNSUPPORTED: the library was built
 * without that database.
 *
 * Owned: *ret_outbox, by the caller; close it before the connection.
 */
HAPAX_API enum hapax_status hapax_outbox_join_postgres(
	struct pg_conn *conn, struct hapax_outbox **ret_outbox, struct hapax_error *err);
HAPAX_API enum hapax_status hapax_outbox_join_sqlite(
	struct sqlite3 *db, struct hapax_outbox **ret_outbox, struct hapax_error *err);

/* NULL is allowed. A joined connection and its transaction stay unchanged. */
HAPAX_API void hapax_outbox_close(struct hapax_outbox *outbox);

/*
 * Add an event; ret_id may be NULL. INVALID: the ID already exists. If it fails on PostgreSQL, the
 * transaction around it has failed as well: roll it back.
 */
HAPAX_API enum hapax_status hapax_outbox_add(
	struct hapax_outbox *outbox, const struct hapax_outbox_event *event,
	char ret_id[HAPAX_OUTBOX_ID_SIZE], struct hapax_error *err);

/*
 * Writes through the joined connection. Any return other than HAPAX_OK undoes it, and is returned.
 */
typedef enum hapax_status hapax_outbox_logic_fn(void *context, struct hapax_error *err);

/*
 * Run logic and then add the events, in one transaction: a new one, or, if one is open, a savepoint
 * of it, which depends on the caller's COMMIT. On failure nothing was done, except for UNCERTAIN:
 * the answer to the COMMIT was lost. logic must not end the transaction. It may change the events:
 * they are read after it returns.
 */
HAPAX_API enum hapax_status hapax_outbox_execute(
	struct hapax_outbox *outbox, hapax_outbox_logic_fn *logic, void *context,
	const struct hapax_outbox_event *events, size_t count, struct hapax_error *err);

struct hapax_outbox_status {
	size_t size;
	uint64_t pending;     /* including rows to be retried */
	uint64_t retrying;    /* tried, and to be retried */
	uint64_t waiting;     /* behind a parked row */
	uint64_t parked;      /* a person decides */
	uint64_t parked_keys; /* ordering keys blocked by parked rows */
	uint64_t sent;        /* sent and not yet purged */
	int64_t oldest_ms;    /* age of the oldest pending row; 0: none */
	uint64_t relays;      /* alive */
	uint64_t partitions;  /* of 64, held by a relay */
};

#define HAPAX_OUTBOX_STATUS_INIT                                              \
	{                                                                     \
		sizeof(struct hapax_outbox_status), 0, 0, 0, 0, 0, 0, 0, 0, 0 \
	}

HAPAX_API enum hapax_status hapax_outbox_status(
	struct hapax_outbox *outbox, struct hapax_outbox_status *ret_status,
	struct hapax_error *err);

/* The same without sent, which is 0. Its cost does not grow with the number of sent rows. */
HAPAX_API enum hapax_status hapax_outbox_backlog(
	struct hapax_outbox *outbox, struct hapax_outbox_status *ret_status,
	struct hapax_error *err);

/*
 * Manual changes of rows; *ret_count is the number of changed rows, and ret_count may be NULL.
 * retry: publish parked rows again, by ID or ordering key (text; NULL: any). park: hold back an
 * unsent row, and its ordering key waits; a row that is being published may still go out. purge:
 * delete rows that were sent longer ago than that, in small steps.
 */
HAPAX_API enum hapax_status hapax_outbox_retry(
	struct hapax_outbox *outbox, const char *id, const char *ordering_key, uint64_t *ret_count,
	struct hapax_error *err);
HAPAX_API enum hapax_status hapax_outbox_park(
	struct hapax_outbox *outbox, const char *id, uint64_t *ret_count, struct hapax_error *err);
HAPAX_API enum hapax_status hapax_outbox_purge(
	struct hapax_outbox *outbox, int64_t age_ms, uint64_t *ret_count, struct hapax_error *err);

/* One step of purge, and the pause after it. Repeat until *ret_count, the number of rows, is 0. */
HAPAX_API enum hapax_status hapax_outbox_purge_step(
	struct hapax_outbox *outbox, int64_t age_ms, uint64_t *ret_count, struct hapax_error *err);

/*
 * One row of a query, by column name: texts, and bytes unchanged; NULL has data NULL. Nonzero
 * stops.
 */
typedef int hapax_outbox_row_fn(void *context, const struct hapax_field *fields, size_t count);

/* Run one SELECT of the caller. row may use the outbox. */
HAPAX_API enum hapax_status hapax_outbox_query(
	struct hapax_outbox *outbox, const char *sql, hapax_outbox_row_fn *row, void *context,
	struct hapax_error *err);

/*
 * Rows of the outbox in which the column named by has this value: id, ordering_key, subject, or
 * state (0 pending, 1 sent, 2 parked, 3 waiting). Columns id, topic, ordering_key, attempts, error.
 */
HAPAX_API enum hapax_status hapax_outbox_find(
	struct hapax_outbox *outbox, const char *by, struct hapax_bytes value,
	hapax_outbox_row_fn *row, void *context, struct hapax_error *err);

/* Relays: columns owner, partitions (number held), until_ms (its lease; since 1970). */
HAPAX_API enum hapax_status hapax_outbox_relays(
	struct hapax_outbox *outbox, hapax_outbox_row_fn *row, void *context,
	struct hapax_error *err);

/*
 * An existing table of the application: a trigger copies its rows into the outbox, in the
 * transaction that inserts them. Members are column names; NULL: no such column. The presets are
 * the table of Debezium's event router and a table of queue_name, payload and status.
 */
struct hapax_outbox_table {
	size_t size;
	const char *table;
	const char *id;
	const char *topic;
	const char *topic_prefix; /* precedes the value of topic */
	const char *ordering_key;
	const char *type;
	const char *payload;
	const char *status;    /* tells whether the row was sent; with the next two */
	const char *pending;   /* rows with a different status are ignored */
	const char *processed; /* the status of sent rows */
};

#define HAPAX_OUTBOX_TABLE_DEBEZIUM                                                 \
	{                                                                           \
		sizeof(struct hapax_outbox_table), "outbox", "id", "aggregatetype", \
			"outbox.event.", "aggregateid", "type", "payload", 0, 0, 0  \
	}
#define HAPAX_OUTBOX_TABLE_EVENTS                                                                 \
	{                                                                                         \
		sizeof(struct hapax_outbox_table), "outbox_events", "id", "queue_name", "", 0, 0, \
			"payload", "status", "pending", "processed"                               \
	}

/*
 * Treat rows of that table as events from now on. with_existing: include unsent rows that exist
 * already; *ret_count is their number, and ret_count may be NULL. INVALID: a table or column is
 * missing; the message names it, and nothing was done.
 */
HAPAX_API enum hapax_status hapax_outbox_adopt(
	struct hapax_outbox *outbox, const struct hapax_outbox_table *table, int with_existing,
	uint64_t *ret_count, struct hapax_error *err);

/* Events of a relay, for a log. text is one line. */
enum hapax_relay_event {
	HAPAX_RELAY_READY,     /* connected to both sides */
	HAPAX_RELAY_OUTAGE,    /* one side is down; rows are not charged an attempt */
	HAPAX_RELAY_RESUMED,   /* it is available again */
	HAPAX_RELAY_RETRY,     /* a row failed and will be retried */
	HAPAX_RELAY_PARKED,    /* a row was parked */
	HAPAX_RELAY_PURGED,    /* sent rows were deleted: options.retention_ms */
	HAPAX_RELAY_UNPURGED,  /* they could not be deleted; retried */
	HAPAX_RELAY_CONFIRMED, /* the sink has decided about rows; they are marked next */
};

typedef void hapax_relay_report_fn(void *context, enum hapax_relay_event event, const char *text);

/* Called between two batches, and every few seconds when idle. Nonzero: drain and return. */
typedef int hapax_relay_stop_fn(void *context);

/* Zero means the default. */
struct hapax_relay_options {
	size_t size;
	const char *sink;   /* target: see hapax_relay_open() */
	const char *source; /* of events without one: "/hapax/outbox" */
	/*
	 * More headers of all messages, as NAME=COLUMN: "eventId=id,aggregateId=ordering_key".
	 * Columns: id, topic, ordering_key, type, source, subject. An empty one gives no header.
	 */
	const char *headers;
	const char *owner;     /* name of this relay, for people */
	unsigned batch_max;    /* rows in progress at a time: 1,000 */
	unsigned attempts_max; /* attempts before a row is parked: 10 */
	int64_t lease_ms;      /* of partitions: 30 s */
	int64_t retry_ms;      /* after the first failure of a row: 1 s, doubling, with jitter */
	int64_t retry_ms_max;  /* 5 min */
	int64_t poll_ms;       /* without notification of new rows: 1 s; SQLite 10 ms */
	int64_t retention_ms;  /* then sent rows are deleted: 7 days; or HAPAX_TTL_FOREVER */
	int is_finite;         /* nonzero: return when nothing is pending */
	hapax_relay_report_fn *report;
	hapax_relay_stop_fn *stop;
	void *context; /* for both */
};

#define HAPAX_RELAY_OPTIONS_INIT                                                                \
	{                                                                                       \
		sizeof(struct hapax_relay_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
	}

struct hapax_relay_stats {
	size_t size;
	uint64_t published; /* confirmed by the broker, and marked */
	uint64_t retried;   /* failed attempts of rows */
	uint64_t parked;
	uint64_t outages; /* of the broker or the database */
	uint64_t batches;
	uint64_t purged;     /* sent rows deleted */
	uint64_t partitions; /* held now */
	int64_t lag_ms;      /* of the last published row, from commit to confirmation */
	struct hapax_outbox_status backlog; /* as last read, about every other second */
	int64_t backlog_age_ms;             /* time since then; -1: not read yet */
};

#define HAPAX_RELAY_STATS_INIT                                            \
	{                                                                 \
		sizeof(struct hapax_relay_stats), 0, 0, 0, 0, 0, 0, 0, 0, \
			HAPAX_OUTBOX_STATUS_INIT, -1                      \
	}

/*
 * A relay from the outbox at url to options->sink:
 *	amqp://user:password@host/vhost[?exchange=NAME][&declare=quorum]   topic: routing key
 *	kafka://host[:port][,...][/topic][?property=value&...]             topic: topic
 *	redis://[user:password@]host[:port][/db][/stream][?maxlen=N]       topic: stream
 *	http://host[:port]/path    CloudEvents; the topic is appended to a path that ends with '/'
 * hapax_relay_run() connects to both.
 *
 * Owned: *ret_relay, by the caller.
 */
HAPAX_API enum hapax_status hapax_relay_open(
	const char *url, const struct hapax_relay_options *options, struct hapax_relay **ret_relay,
	struct hapax_error *err);

/*
 * Publish until stopped. It waits out an outage of either side. An error at the start (missing
 * table, wrong password) is returned at once.
 */
HAPAX_API enum hapax_status hapax_relay_run(struct hapax_relay *relay, struct hapax_error *err);

/* Make hapax_relay_run() return once the rows in progress are marked. Threads: any. */
HAPAX_API void hapax_relay_stop(struct hapax_relay *relay);

/* Threads: any. */
HAPAX_API void hapax_relay_stats(struct hapax_relay *relay, struct hapax_relay_stats *ret_stats);

/* NULL is allowed. */
HAPAX_API void hapax_relay_close(struct hapax_relay *relay);

#ifdef __cplusplus
}
#endif

#endif
