/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox.h - what the databases that hold an outbox have in common, and the rows of a relay.
 *
 * Threads: one at a time, but hx_outbox_wake(): any.
 */
#ifndef HX_OUTBOX_OUTBOX_H
#define HX_OUTBOX_OUTBOX_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/outbox.h>

#include "base/buf.h"
#include "net/reactor.h"

enum {
	HX_OUTBOX_PARTITIONS = 64,
	HX_OUTBOX_BATCH_MAX = 1000,
	HX_OUTBOX_TEXT_SIZE_MAX = 255,  /* topic, id, type, content type: short in AMQP */
	HX_OUTBOX_LONG_SIZE_MAX = 1024, /* ordering key, source, subject */
	HX_OUTBOX_HEADERS_SIZE_MAX = 64 * 1024,
	HX_OUTBOX_PAYLOAD_SIZE_MAX = 16 * 1024 * 1024,
	HX_OUTBOX_BATCH_BYTES = 16 * 1024 * 1024, /* of payload, and one row more */
	HX_OUTBOX_ERROR_SIZE = 240,
	HX_OUTBOX_COLUMNS_MAX = 64, /* of a caller's query */
	HX_OUTBOX_RELAY_SIZE = 40,  /* the name of a relay: a UUID */
};

/* What became of a row that was to be published. */
enum hx_outbox_outcome {
	HX_OUTBOX_UNDECIDED, /* nobody knows, or it was not tried: it stays pending */
	HX_OUTBOX_SENT,      /* the broker has it */
	HX_OUTBOX_FAILED,    /* not this time: it is tried again */
	HX_OUTBOX_REFUSED,   /* never, as it is: it is parked */
};

/* What is absent has data NULL; so has a payload that is too large. Borrowed from the batch. */
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
	struct hapax_bytes headers; /* a JSON object of texts */
	struct hapax_bytes payload;

	/* The relay's. */
	unsigned wave; /* how many rows of its key stand before it */
	enum hx_outbox_outcome outcome;
	bool is_awaited; /* the sink has handed it over, and heard nothing of it since */
	bool is_parked;
	int64_t pause_ms;                 /* until it is tried again */
	char error[HX_OUTBOX_ERROR_SIZE]; /* of FAILED and REFUSED */
};

struct hx_outbox_batch {
	struct hx_outbox_row rows[HX_OUTBOX_BATCH_MAX];
	size_t count;
	void *result; /* what the rows are borrowed from, and how it is freed; or */
	void (*result_free)(void *result);
	struct hapax_buf memory;
};

enum hx_outbox_savepoint {
	HX_OUTBOX_BEGIN,
	HX_OUTBOX_KEEP,
	HX_OUTBOX_UNDO,
};

struct hapax_outbox;

/* Contracts as of the functions below and of hapax/outbox.h. */
struct hx_outbox_ops {
	const char *name;
	int64_t poll_ms;  /* how often to look when nobody tells */
	const char *held; /* "FROM ... WHERE": rows that are held, by their index */
	void (*close)(struct hapax_outbox *outbox);
	enum hapax_status (*add)(
		struct hapax_outbox *outbox, const struct hapax_outbox_event *event,
		struct hapax_bytes headers, char ret_id[HAPAX_OUTBOX_ID_SIZE],
		struct hapax_error *err);
	enum hapax_status (*savepoint)(
		struct hapax_outbox *outbox, enum hx_outbox_savepoint savepoint,
		struct hapax_error *err);
	/* Without sent, unless it is asked for: there may be many. */
	enum hapax_status (*status)(
		struct hapax_outbox *outbox, bool with_sent, struct hapax_outbox_status *status,
		struct hapax_error *err);

	enum hapax_status (*retry)(
		struct hapax_outbox *outbox, const char *id, const char *ordering_key,
		uint64_t *count, struct hapax_error *err);
	enum hapax_status (*park)(
		struct hapax_outbox *outbox, const char *id, uint64_t *count,
		struct hapax_error *err);
	/* At most limit rows. */
	enum hapax_status (*purge)(
		struct hapax_outbox *outbox, int64_t age_ms, unsigned limit, uint64_t *count,
		struct hapax_error *err);
	/* value, unless it is NULL, is the one parameter; "@@" stands for where the outbox is then. */
	enum hapax_status (*query)(
		struct hapax_outbox *outbox, const char *sql, const char *value,
		hapax_outbox_row_fn *row, void *context, struct hapax_error *err);
	enum hapax_status (*adopt)(
		struct hapax_outbox *outbox, const struct hapax_outbox_table *table,
		bool with_existing, uint64_t *count, struct hapax_error *err);

	/* Of relays; on connections of our own alone. */

	/* It lives, and gets its share of the partitions, while nothing is under way. */
	enum hapax_status (*keep_alive)(
		struct hapax_outbox *outbox, const char *relay, const char *owner, int64_t lease_ms,
		bool is_idle, unsigned *ret_partitions, struct hapax_error *err);
	/* Rows behind parked ones leave the pending ones, or come back; none waits longer than that. */
	enum hapax_status (*settle)(
		struct hapax_outbox *outbox, const char *relay, int64_t pause_ms_max,
		struct hapax_error *err);
	enum hapax_status (*leave)(
		struct hapax_outbox *outbox, const char *relay, struct hapax_error *err);
	/* From now on it wants to be told of new rows, or not. NULL: it never is. */
	enum hapax_status (*set_idle)(
		struct hapax_outbox *outbox, const char *relay, bool is_idle,
		struct hapax_error *err);
	enum hapax_status (*fetch)(
		struct hapax_outbox *outbox, const char *relay, unsigned limit,
		struct hx_outbox_batch *batch, struct hapax_error *err);
	/* Write down what became of the rows that are decided. */
	enum hapax_status (*mark)(
		struct hapax_outbox *outbox, struct hx_outbox_batch *batch,
		struct hapax_error *err);
	/* Until something may be new, or it is woken, or the time is up. */
	void (*wait)(struct hapax_outbox *outbox, int64_t wait_ns);
};

struct hapax_outbox {
	const struct hx_outbox_ops *ops;
	struct hapax_buf headers; /* scratch */
	bool has_reactor;         /* not where a connection was joined */
	struct hx_reactor reactor;
	struct hx_task wake;
};

/* Whether an outbox may lie there: by its scheme. UNSUPPORTED names what there is. */
enum hapax_status hx_outbox_check_url(const char *url, struct hapax_error *err);

/* Made by an earlier hapax: its version, and ours. */
#define HX_OUTBOX_TOO_OLD                                                              \
	"the outbox has version %d, and this hapax needs %d; bring it up to date with" \
	" 'hapax outbox init --db URL', which keeps its rows"

/* For backends: make what is common. */
enum hapax_status hx_outbox_prepare(
	struct hapax_outbox *outbox, const struct hx_outbox_ops *ops, bool with_reactor,
	struct hapax_error *err);
void hx_outbox_dismantle(struct hapax_outbox *outbox);

/* Let wait return. Threads: any. */
void hx_outbox_wake(struct hapax_outbox *outbox);

void hx_outbox_batch_init(struct hx_outbox_batch *batch);
void hx_outbox_batch_done(struct hx_outbox_batch *batch);

/* Check an event. INVALID says what is wrong with it. */
enum hapax_status hx_outbox_event_check(
	const struct hapax_outbox_event *event, struct hapax_error *err);

/* Why a row cannot be published, whatever the sink, as hx_sink_decide() takes it; NULL: it can. */
const char *hx_outbox_row_fault(const struct hx_outbox_row *row);

/* The headers as a JSON object, into buf; nothing when there are none. */
enum hapax_status hx_outbox_headers_write(
	const struct hapax_outbox_event *event, struct hapax_buf *buf, struct hapax_error *err);

/*
 * Names and values of a row's headers; strings are decoded into scratch, which is not
 * emptied. -1: they are no object of texts.
 */
int hx_outbox_headers_read(
	struct hapax_bytes text, struct hapax_buf *scratch, struct hapax_field *ret_fields,
	size_t count_max);

/* The backends. url is theirs. */
enum hapax_status hx_outbox_postgres_init(
	const char *url, struct hapax_migration *migration, struct hapax_error *err);
enum hapax_status hx_outbox_postgres_open(
	const char *url, struct hapax_outbox **ret_outbox, struct hapax_error *err);
enum hapax_status hx_outbox_sqlite_init(
	const char *url, struct hapax_migration *migration, struct hapax_error *err);
enum hapax_status hx_outbox_sqlite_open(
	const char *url, struct hapax_outbox **ret_outbox, struct hapax_error *err);

#endif
