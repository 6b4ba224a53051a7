/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox.h - a business change and its event commit together, and the event reaches a broker.
 *
 * The event is a row of the table hapax_outbox, written in the transaction of the change: it
 * exists if and only if the change does. A relay publishes rows, waits for the broker's
 * confirmation, then marks them sent. A crash in between publishes a message again, with the
 * same id, by which the consumer's side (hapax, for one) de-duplicates. So: no event is lost,
 * none comes from a transaction that was rolled back, and what an event brings about happens
 * once.
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
 * Order: rows of one ordering key are published in the order in which their transactions
 * committed, however many relays there are; rows without one in any order. A row that cannot
 * be published is tried again, later and later, then parked; only its own ordering key waits
 * for it.
 *
 * Caveats
 * - The tables are made by hapax_outbox_init() (hapax outbox init), never by opening.
 * - On PostgreSQL, who adds for a key waits for other transactions that added for it: keep
 *   them short. In SQLite everybody who writes waits for everybody else anyway.
 * - Published is at least once. Order is that of first appearances: a message that is
 *   published again comes later than it should, and is a duplicate.
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
	HAPAX_OUTBOX_ID_SIZE = 256, /* of an id as text, with its NUL */
	HAPAX_OUTBOX_HEADERS_MAX = 48,
};

/* Borrowed for the length of the call. All but topic may be empty. */
struct hapax_outbox_event {
	size_t size;
	struct hapax_bytes topic; /* queue, routing key, topic, stream or path: 1 to 255 bytes */
	struct hapax_bytes ordering_key; /* up to 1,024 bytes; empty: in any order */
	struct hapax_bytes id;           /* of the message, up to 255 bytes; empty: a new UUIDv7 */
	struct hapax_bytes type; /* of the event, as in CloudEvents; so are the next three */
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

/* Make the tables, or bring them up to date. ret_migration may be NULL. */
HAPAX_API enum hapax_status hapax_outbox_init(
	const char *url, struct hapax_migration *ret_migration, struct hapax_error *err);

/*
 * Open by a connection of our own: sqlite:FILE, or postgres://... with schema=NAME. Every
 * add is a transaction then. UNAVAILABLE: it was not reached, or has no outbox.
 *
 * Owned: *ret_outbox, by the caller.
 */
HAPAX_API enum hapax_status hapax_outbox_open(
	const char *url, struct hapax_outbox **ret_outbox, struct hapax_error *err);

/*
 * Join the caller's connection: what is added is part of the transaction that is open on it.
 * The outbox is the first one in the search_path, or the one of the main database. UNSUPPORTED
 * where the library was built without that database.
 *
 * Owned: *ret_outbox, by the caller; close it before the connection.
 */
HAPAX_API enum hapax_status hapax_outbox_join_postgres(
	struct pg_conn *conn, struct hapax_outbox **ret_outbox, struct hapax_error *err);
HAPAX_API enum hapax_status hapax_outbox_join_sqlite(
	struct sqlite3 *db, struct hapax_outbox **ret_outbox, struct hapax_error *err);

/* NULL is allowed. A joined connection and its transaction stay as they are. */
HAPAX_API void hapax_outbox_close(struct hapax_outbox *outbox);

/*
 * Add an event; ret_id may be NULL. An id that is there already is INVALID. When it fails on
 * PostgreSQL, the transaction around it has failed, too: roll it back.
 */
HAPAX_API enum hapax_status hapax_outbox_add(
	struct hapax_outbox *outbox, const struct hapax_outbox_event *event,
	char ret_id[HAPAX_OUTBOX_ID_SIZE], struct hapax_error *err);

/* Write by the connection that was joined. Anything but HAPAX_OK undoes it, and is returned. */
typedef enum hapax_status hapax_outbox_logic_fn(void *context, struct hapax_error *err);

/*
 * Run logic and add the events behind it, in one transaction: a new one, or, where one is
 * open, in a savepoint of it, which stands or falls with the caller's COMMIT. Otherwise than
 * HAPAX_OK nothing was done, but for UNCERTAIN: the COMMIT was lost. logic must not end the
 * transaction. logic may change the events before they are added: the pointers are read later.
 */
HAPAX_API enum hapax_status hapax_outbox_execute(
	struct hapax_outbox *outbox, hapax_outbox_logic_fn *logic, void *context,
	const struct hapax_outbox_event *events, size_t count, struct hapax_error *err);

struct hapax_outbox_status {
	size_t size;
	uint64_t pending;     /* those that are to be tried again included */
	uint64_t retrying;    /* tried, and to be tried again */
	uint64_t waiting;     /* behind one that is parked */
	uint64_t parked;      /* a person decides */
	uint64_t parked_keys; /* ordering keys that are held up by these */
	uint64_t sent;        /* and not yet purged */
	int64_t oldest_ms;    /* how long the oldest that is pending has been there; 0: none is */
	uint64_t relays;      /* that live */
	uint64_t partitions;  /* of 64, which a relay holds */
};

#define HAPAX_OUTBOX_STATUS_INIT                                              \
	{                                                                     \
		sizeof(struct hapax_outbox_status), 0, 0, 0, 0, 0, 0, 0, 0, 0 \
	}

HAPAX_API enum hapax_status hapax_outbox_status(
	struct hapax_outbox *outbox, struct hapax_outbox_status *ret_status,
	struct hapax_error *err);

/* The same without sent, which is 0: what it costs does not grow with what was sent. */
HAPAX_API enum hapax_status hapax_outbox_backlog(
	struct hapax_outbox *outbox, struct hapax_outbox_status *ret_status,
	struct hapax_error *err);

/*
 * What a person does about rows; *ret_count, which may be NULL, is how many that were.
 * retry: parked rows go out again, by id or ordering key (text; NULL: any). park: a row that
 * has not gone out stays, and its ordering key waits; one that is under way may go out all the
 * same. purge: rows that were sent longer ago than that go, in small steps.
 */
HAPAX_API enum hapax_status hapax_outbox_retry(
	struct hapax_outbox *outbox, const char *id, const char *ordering_key, uint64_t *ret_count,
	struct hapax_error *err);
HAPAX_API enum hapax_status hapax_outbox_park(
	struct hapax_outbox *outbox, const char *id, uint64_t *ret_count, struct hapax_error *err);
HAPAX_API enum hapax_status hapax_outbox_purge(
	struct hapax_outbox *outbox, int64_t age_ms, uint64_t *ret_count, struct hapax_error *err);

/* One such step, and the pause behind it; until *ret_count, which is how many, is 0. */
HAPAX_API enum hapax_status hapax_outbox_purge_step(
	struct hapax_outbox *outbox, int64_t age_ms, uint64_t *ret_count, struct hapax_error *err);

/*
 * One row of a query, by the names of columns: texts, and bytes as they are; NULL has data NULL.
 * Not 0 ends it.
 */
typedef int hapax_outbox_row_fn(void *context, const struct hapax_field *fields, size_t count);

/* Run one SELECT of the caller's. row may use the outbox meanwhile. */
HAPAX_API enum hapax_status hapax_outbox_query(
	struct hapax_outbox *outbox, const char *sql, hapax_outbox_row_fn *row, void *context,
	struct hapax_error *err);

/*
 * Rows of the outbox whose column by is value: id, ordering_key, subject, or state (0 pending, 1
 * sent, 2 parked, 3 waiting). Columns id, topic, ordering_key, attempts, error.
 */
HAPAX_API enum hapax_status hapax_outbox_find(
	struct hapax_outbox *outbox, const char *by, struct hapax_bytes value,
	hapax_outbox_row_fn *row, void *context, struct hapax_error *err);

/* Relays: columns owner, partitions (how many it holds), until_ms (its lease; since 1970). */
HAPAX_API enum hapax_status hapax_outbox_relays(
	struct hapax_outbox *outbox, hapax_outbox_row_fn *row, void *context,
	struct hapax_error *err);

/*
 * A table that somebody fills already: its rows are taken into the outbox by a trigger, in the
 * transaction that inserts them. Names of columns; NULL: there is none. The presets are that of
 * Debezium's event router and a table of queue_name, payload and status.
 */
struct hapax_outbox_table {
	size_t size;
	const char *table;
	const char *id;
	const char *topic;
	const char *topic_prefix; /* stands before what topic holds */
	const char *ordering_key;
	const char *type;
	const char *payload;
	const char *status;    /* says whether it was sent; with the next two */
	const char *pending;   /* rows with another status are left alone */
	const char *processed; /* the status of rows that were sent */
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
 * From now on rows of that table are events. with_existing: so are those that are there and
 * not sent; *ret_count, which may be NULL, is how many. INVALID names the table or column that
 * is not there; nothing was done then.
 */
HAPAX_API enum hapax_status hapax_outbox_adopt(
	struct hapax_outbox *outbox, const struct hapax_outbox_table *table, int with_existing,
	uint64_t *ret_count, struct hapax_error *err);

/* What happens to a relay, for a log. text is one line. */
enum hapax_relay_event {
	HAPAX_RELAY_READY,     /* connected to both sides */
	HAPAX_RELAY_OUTAGE,    /* one side is away; nothing is counted against rows */
	HAPAX_RELAY_RESUMED,   /* it is back */
	HAPAX_RELAY_RETRY,     /* a row failed, and is tried again */
	HAPAX_RELAY_PARKED,    /* a row was parked */
	HAPAX_RELAY_CONFIRMED, /* the sink has decided about rows; they are marked next */
};

typedef void hapax_relay_report_fn(void *context, enum hapax_relay_event event, const char *text);

/* Asked between two batches, and every few seconds when there is none; not 0: drain and return. */
typedef int hapax_relay_stop_fn(void *context);

/* Zero means the default. */
struct hapax_relay_options {
	size_t size;
	const char *sink;      /* where to: see hapax_relay_open() */
	const char *source;    /* of events that have none: "/hapax/outbox" */
	const char *owner;     /* who we are, for people */
	unsigned batch_max;    /* rows under way at a time: 1,000 */
	unsigned attempts_max; /* then a row is parked: 10 */
	int64_t lease_ms;      /* of partitions: 30 s */
	int64_t retry_ms;      /* after the first failure of a row: 1 s, doubling, with jitter */
	int64_t retry_ms_max;  /* 5 min */
	int64_t poll_ms;       /* when nobody tells of new rows: 1 s; SQLite 10 ms */
	int is_finite;         /* not 0: return when nothing is pending any more */
	hapax_relay_report_fn *report;
	hapax_relay_stop_fn *stop;
	void *context; /* of both */
};

#define HAPAX_RELAY_OPTIONS_INIT                                                          \
	{                                                                                 \
		sizeof(struct hapax_relay_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
	}

struct hapax_relay_stats {
	size_t size;
	uint64_t published; /* confirmed by the broker, and marked */
	uint64_t retried;   /* attempts of rows that failed */
	uint64_t parked;
	uint64_t outages; /* of the broker or the database */
	uint64_t batches;
	uint64_t partitions; /* that it holds now */
	int64_t lag_ms;      /* of the row published last, from its commit to its confirmation */
	struct hapax_outbox_status backlog; /* as it was seen last, every other second or so */
	int64_t backlog_age_ms;             /* how long ago; -1: it was not seen yet */
};

#define HAPAX_RELAY_STATS_INIT                                                                   \
	{                                                                                        \
		sizeof(struct hapax_relay_stats), 0, 0, 0, 0, 0, 0, 0, HAPAX_OUTBOX_STATUS_INIT, \
			-1                                                                       \
	}

/*
 * A relay from the outbox at url to options->sink:
 *	amqp://user:password@host/vhost[?exchange=NAME][&declare=quorum]   topic: routing key
 *	kafka://host[:port][,...][/topic][?property=value&...]             topic: topic
 *	redis://[user:password@]host[:port][/db][/stream][?maxlen=N]       topic: stream
 *	http://host[:port]/path    CloudEvents; behind a path that ends with '/' stands the topic
 * Neither is connected to before hapax_relay_run().
 *
 * Owned: *ret_relay, by the caller.
 */
HAPAX_API enum hapax_status hapax_relay_open(
	const char *url, const struct hapax_relay_options *options, struct hapax_relay **ret_relay,
	struct hapax_error *err);

/*
 * Publish until it is stopped. An outage of either side is waited out; what was wrong from
 * the beginning (no such table, wrong password) is returned at once.
 */
HAPAX_API enum hapax_status hapax_relay_run(struct hapax_relay *relay, struct hapax_error *err);

/* Let hapax_relay_run() return when what is under way is marked. Threads: any. */
HAPAX_API void hapax_relay_stop(struct hapax_relay *relay);

/* Threads: any. */
HAPAX_API void hapax_relay_stats(struct hapax_relay *relay, struct hapax_relay_stats *ret_stats);

/* NULL is allowed. */
HAPAX_API void hapax_relay_close(struct hapax_relay *relay);

#ifdef __cplusplus
}
#endif

#endif
