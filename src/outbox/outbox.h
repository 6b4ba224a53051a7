/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox.h - the common part of all outbox databases, and the rows of a relay.
 *
 * Threads: one at a time, except hx_outbox_wake(): any.
 */
#ifndef HX_OUTBOX_OUTBOX_H
#define HX_OUTBOX_OUTBOX_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/outbox.h>

#include "base/buf.h"
#include "base/thread.h"
#include "net/reactor.h"

enum {
	HX_OUTBOX_PARTITIONS = 64,
	HX_OUTBOX_BATCH_MAX = 1000,
	HX_OUTBOX_TEXT_SIZE_MAX = 255,  /* topic, id, type, content type: AMQP short strings */
	HX_OUTBOX_LONG_SIZE_MAX = 1024, /* ordering key, source, subject */
	HX_OUTBOX_HEADERS_SIZE_MAX = 64 * 1024,
	HX_OUTBOX_PAYLOAD_SIZE_MAX = 16 * 1024 * 1024,
	HX_OUTBOX_BATCH_BYTES = 16 * 1024 * 1024, /* of payload, plus one row */
	HX_OUTBOX_ERROR_SIZE = HAPAX_ERROR_MESSAGE_SIZE,
	HX_OUTBOX_COLUMNS_MAX = 64, /* in a caller's query */
	HX_OUTBOX_RELAY_SIZE = 40,  /* the name of a relay: a UUID */
};

/* The outcome of publishing a row. */
enum hx_outbox_outcome {
	HX_OUTBOX_UNDECIDED, /* unknown, or not tried: stays pending */
	HX_OUTBOX_SENT,      /* confirmed by the broker */
	HX_OUTBOX_FAILED,    /* temporary failure: retried */
	HX_OUTBOX_REFUSED,   /* permanent failure: parked */
};

/* Absent fields have data NULL; so has a payload that is too large. Borrowed from the batch. */
struct hx_outbox_row {
	int64_t seq;
	int64_t token; /* of its partition */
	int64_t attempts;
	int64_t created_ms;
	struct hapax_bytes id;
	struct hapax_bytes topic;
	struct hapax_bytes ordering_key;
	struct hapax_bytes type;
	struct hapax_bytes source;
	struct hapax_bytes subject;
	struct hapax_bytes content_type;
	struct hapax_bytes headers; /* a JSON object of strings */
	struct hapax_bytes payload;

	/* For the relay. */
	unsigned wave; /* how many rows of its key come before it */
	enum hx_outbox_outcome outcome;
	bool is_awaited; /* handed over by the sink, without an answer yet */
	bool is_parked;
	int64_t pause_ms;                 /* until the retry */
	char error[HX_OUTBOX_ERROR_SIZE]; /* for FAILED and REFUSED */
};

/* The texts of a row, in the order of id to payload: the databases return them so. */
enum { HX_OUTBOX_TEXTS = 9 };

static inline struct hapax_bytes *hx_outbox_row_text(struct hx_outbox_row *row, int number)
{
	struct hapax_bytes *const texts[HX_OUTBOX_TEXTS] = {
		&row->id,      &row->topic,        &row->ordering_key, &row->type,    &row->source,
		&row->subject, &row->content_type, &row->headers,      &row->payload,
	};

	return texts[number];
}

/* The numbers of a status, in the order in which the databases return them. */
enum { HX_OUTBOX_NUMBERS = 9 };

void hx_outbox_status_set(
	struct hapax_outbox_status *status, const int64_t numbers[HX_OUTBOX_NUMBERS]);

struct hx_outbox_batch {
	struct hx_outbox_row rows[HX_OUTBOX_BATCH_MAX];
	size_t count;
	void *result; /* owner of the rows, and its free function; or */
	void (*result_free)(void *result);
	struct hapax_buf memory;
};

enum hx_outbox_savepoint {
	HX_OUTBOX_BEGIN,
	HX_OUTBOX_KEEP,
	HX_OUTBOX_UNDO,
};

struct hapax_outbox;

/* The functions of a database. Contracts: see the functions below and hapax/outbox.h. */
typedef void hx_outbox_close_fn(struct hapax_outbox *outbox);
typedef enum hapax_status hx_outbox_add_fn(
	struct hapax_outbox *outbox, const struct hapax_outbox_event *event,
	struct hapax_bytes headers, char ret_id[HAPAX_OUTBOX_ID_SIZE], struct hapax_error *err);
typedef enum hapax_status hx_outbox_savepoint_fn(
	struct hapax_outbox *outbox, enum hx_outbox_savepoint savepoint, struct hapax_error *err);
/* Counts sent rows only on request: there may be many. */
typedef enum hapax_status hx_outbox_status_fn(
	struct hapax_outbox *outbox, bool with_sent, struct hapax_outbox_status *status,
	struct hapax_error *err);
typedef enum hapax_status hx_outbox_retry_fn(
	struct hapax_outbox *outbox, const char *id, const char *ordering_key, uint64_t *count,
	struct hapax_error *err);
typedef enum hapax_status hx_outbox_park_fn(
	struct hapax_outbox *outbox, const char *id, uint64_t *count, struct hapax_error *err);
/* At most limit sent rows. relay, if not NULL, must hold partition 0: otherwise it deletes none. */
typedef enum hapax_status hx_outbox_purge_fn(
	struct hapax_outbox *outbox, const char *relay, int64_t age_ms, unsigned limit,
	uint64_t *count, struct hapax_error *err);
/* value, if not NULL, is the only parameter; "@@" then stands for the outbox's schema. */
typedef enum hapax_status hx_outbox_query_fn(
	struct hapax_outbox *outbox, const char *sql, const char *value, hapax_outbox_row_fn *row,
	void *context, struct hapax_error *err);

/* Whether the rows of a query have events. */
struct hx_outbox_audit {
	const char *query; /* a SELECT; its first column holds */
	const char *by;    /* id, ordering_key or subject of an event */
	int64_t timeout_ms;
	const struct hx_event *stop; /* ends it early; or NULL */
	/* The answer. */
	uint64_t checked;
	uint64_t missing;
	char example[HAPAX_OUTBOX_ID_SIZE]; /* a value without an event, perhaps cut */
};

/* In a read-only transaction. */
typedef enum hapax_status hx_outbox_audit_fn(
	struct hapax_outbox *outbox, struct hx_outbox_audit *audit, struct hapax_error *err);
typedef enum hapax_status hx_outbox_adopt_fn(
	struct hapax_outbox *outbox, const struct hapax_outbox_table *table, bool with_existing,
	uint64_t *count, struct hapax_error *err);

/* For relays; never on joined connections. */

/* Renew the relay's leases and balance its share of partitions; no row is in progress. */
typedef enum hapax_status hx_outbox_keep_alive_fn(
	struct hapax_outbox *outbox, const char *relay, const char *owner, int64_t lease_ms,
	bool is_idle, unsigned *ret_partitions, struct hapax_error *err);
/* Set rows behind parked ones aside, or make them pending again; limits pauses, too. */
typedef enum hapax_status hx_outbox_settle_fn(
	struct hapax_outbox *outbox, const char *relay, int64_t pause_ms_max,
	struct hapax_error *err);
typedef enum hapax_status hx_outbox_leave_fn(
	struct hapax_outbox *outbox, const char *relay, struct hapax_error *err);
/* Turn notifications of new rows on or off. NULL: not supported. */
typedef enum hapax_status hx_outbox_set_idle_fn(
	struct hapax_outbox *outbox, const char *relay, bool is_idle, struct hapax_error *err);
typedef enum hapax_status hx_outbox_fetch_fn(
	struct hapax_outbox *outbox, const char *relay, unsigned limit,
	struct hx_outbox_batch *batch, struct hapax_error *err);
/* Store the outcome of all decided rows. */
typedef enum hapax_status hx_outbox_mark_fn(
	struct hapax_outbox *outbox, struct hx_outbox_batch *batch, struct hapax_error *err);
/* Wait until there may be new rows, a wake-up, or the timeout. */
typedef void hx_outbox_wait_fn(struct hapax_outbox *outbox, int64_t wait_ns);

struct hx_outbox_ops {
	const char *name;
	int64_t poll_ms;  /* how often to poll without notifications */
	const char *held; /* "FROM ... WHERE": held rows, by their index */
	hx_outbox_close_fn *close;
	hx_outbox_add_fn *add;
	hx_outbox_savepoint_fn *savepoint;
	hx_outbox_status_fn *status;
	hx_outbox_retry_fn *retry;
	hx_outbox_park_fn *park;
	hx_outbox_purge_fn *purge;
	hx_outbox_query_fn *query;
	hx_outbox_audit_fn *audit;
	hx_outbox_adopt_fn *adopt;
	hx_outbox_keep_alive_fn *keep_alive;
	hx_outbox_settle_fn *settle;
	hx_outbox_leave_fn *leave;
	hx_outbox_set_idle_fn *set_idle;
	hx_outbox_fetch_fn *fetch;
	hx_outbox_mark_fn *mark;
	hx_outbox_wait_fn *wait;
};

struct hapax_outbox {
	const struct hx_outbox_ops *ops;
	struct hapax_buf headers; /* scratch */
	bool has_reactor;         /* false: the connection was joined */
	struct hx_reactor reactor;
	struct hx_task wake;
};

/* Check the scheme of url. UNSUPPORTED names the supported schemes. */
enum hapax_status hx_outbox_check_url(const char *url, struct hapax_error *err);

/* For an outbox of an earlier hapax: its version, and ours. */
#define HX_OUTBOX_TOO_OLD                                         \
	"the outbox has version %d, and this hapax needs %d; run" \
	" 'hapax outbox init --db URL', which keeps the rows"

/* For backends: initialize the common part. */
enum hapax_status hx_outbox_prepare(
	struct hapax_outbox *outbox, const struct hx_outbox_ops *ops, bool with_reactor,
	struct hapax_error *err);
void hx_outbox_dismantle(struct hapax_outbox *outbox);

/*
 * Count the rows of a query that have no event, on a connection of its own. INVALID: the query is
 * wrong, or took too long. UNAVAILABLE: the database is, or it was stopped.
 */
enum hapax_status hx_outbox_audit_run(
	struct hapax_outbox *outbox, struct hx_outbox_audit *audit, struct hapax_error *err);

/* Make wait return. Threads: any. */
void hx_outbox_wake(struct hapax_outbox *outbox);

void hx_outbox_batch_init(struct hx_outbox_batch *batch);
void hx_outbox_batch_done(struct hx_outbox_batch *batch);

/* Check an event. INVALID says what is wrong with it. */
enum hapax_status hx_outbox_event_check(
	const struct hapax_outbox_event *event, struct hapax_error *err);

/* Why no sink can publish the row, as text for hx_sink_decide(); NULL: it can be published. */
const char *hx_outbox_row_fault(const struct hx_outbox_row *row);

/* Write the headers to buf as a JSON object; nothing if there are none. */
enum hapax_status hx_outbox_headers_write(
	const struct hapax_outbox_event *event, struct hapax_buf *buf, struct hapax_error *err);

/*
 * Names and values of a row's headers. Decodes strings into scratch, after its contents. -1: not an
 * object of strings.
 */
int hx_outbox_headers_read(
	struct hapax_bytes text, struct hapax_buf *scratch, struct hapax_field *ret_fields,
	size_t count_max);

/* The backends. They parse url. */
enum hapax_status hx_outbox_postgres_init(
	const char *url, struct hapax_migration *migration, struct hapax_error *err);
enum hapax_status hx_outbox_postgres_open(
	const char *url, struct hapax_outbox **ret_outbox, struct hapax_error *err);
enum hapax_status hx_outbox_sqlite_init(
	const char *url, struct hapax_migration *migration, struct hapax_error *err);
enum hapax_status hx_outbox_sqlite_open(
	const char *url, struct hapax_outbox **ret_outbox, struct hapax_error *err);

#endif
