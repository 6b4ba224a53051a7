/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h - counters that each thread writes for itself, added up by a scrape.
 *
 * Every loop, and every other thread that counts, has its own cells: counting is a plain load and
 * store in memory that no other thread writes. A scrape adds up all cells. Families, their labels
 * and buckets are the data of family.c.
 *
 * Labels are bounded. Some have a fixed set of values (door, decision, reason). Others (scope,
 * event type, route) are numbered as they appear, up to a limit; later ones are number 0, "other".
 * Numbers are valid in the whole process:
 *
 *	uint32_t scope = hx_metrics_scope(cells, tenant, group);
 *
 *	hx_metrics_decision(cells, HX_DOOR_GATEWAY, scope, HAPAX_DECISION_REPLAY);
 *	hx_metrics_observe_ns(cells, HX_METRIC_CHECK_DURATION, 0, HX_DOOR_GATEWAY, took_ns);
 *
 * Counting never fails: without memory for a new label's cells the event is not counted, and
 * hapax_metrics_lost_total is.
 *
 * Threads: struct hx_metrics any; struct hx_cells its own thread only.
 */
#ifndef HX_METRICS_H
#define HX_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>
#include <hapax/outage.h>
#include <hapax/outbox.h>
#include <hapax/processor.h>
#include <hapax/store.h>

#include "wire/promtext.h"

struct hx_condition_row;
struct hx_consumer_facts;
struct hx_io;
struct hx_metrics;
struct hx_cells;

/* Label door. */
enum hx_door {
	HX_DOOR_GATEWAY,
	HX_DOOR_ADMIN,
	HX_DOOR_RESP,
	HX_DOOR_PROXY,
	HX_DOOR_COUNT,

	/* A consumer of the daemon decides like a door, but has no clients. */
	HX_DOOR_CONSUMER = HX_DOOR_COUNT,
	HX_DECIDER_COUNT,
};

/* "gateway", ...; "consumer". */
const char *hx_door_name(enum hx_door door);

/* Label outcome of HX_METRIC_EVENTS. */
enum hx_event_outcome {
	HX_EVENT_PROCESSED, /* its run ended well, and this is stored */
	HX_EVENT_DUPLICATE, /* it was done, or in progress */
	HX_EVENT_FAILED,    /* its run failed, or its key is parked or has another payload */
	HX_EVENT_OUTCOME_COUNT,
};

/* Label reason of HX_METRIC_CHECK_ERRORS: the store's error. */
enum hx_check_error {
	HX_CHECK_ERROR_CHECK_FAILED, /* unavailable: nothing was done */
	HX_CHECK_ERROR_UNCERTAIN,
	HX_CHECK_ERROR_LIMIT,
	HX_CHECK_ERROR_OTHER,
	HX_CHECK_ERROR_COUNT,
};

/* Label reason of HX_METRIC_UNPROTECTED: why it ran without a claim. */
enum hx_unprotected {
	HX_UNPROTECTED_NO_KEY,   /* on_missing is pass (E21) */
	HX_UNPROTECTED_DISABLED, /* enabled is false (D7) */
	HX_UNPROTECTED_COUNT,
};

/* Label reason of HX_METRIC_INVALID_EVENTS: what was wrong with a delivery. */
enum hx_invalid {
	HX_INVALID_OTHER,
	HX_INVALID_MALFORMED,  /* not a CloudEvent */
	HX_INVALID_MEDIA_TYPE, /* of a format that is not known */
	HX_INVALID_TOO_LARGE,
	HX_INVALID_NO_KEY,     /* a part of its key is missing */
	HX_INVALID_KEY,        /* its Idempotency-Key is not well formed */
	HX_INVALID_CREDENTIAL, /* its client is missing or ambiguous */
	HX_INVALID_SIGNATURE,  /* of a webhook: missing or wrong */
	HX_INVALID_NO_ROUTE,
	HX_INVALID_PATH, /* two services would read it in two ways */
	HX_INVALID_METHOD,
	HX_INVALID_COUNT,
};

/* Label outcome of HX_METRIC_RUNS: enum hapax_run_outcome, or never stored. */
enum { HX_RUN_UNSTORED = HAPAX_RUN_AMBIGUOUS + 1, HX_RUN_COUNT };

/* Label reason of HX_METRIC_REFUSED: why a connection or request was refused. */
enum hx_refused {
	HX_REFUSED_ADDRESS,
	HX_REFUSED_TENANT,
	HX_REFUSED_REQUESTS, /* max_requests */
	HX_REFUSED_MEMORY,   /* memory.listeners, or out of memory */
	HX_REFUSED_FILE,     /* a large body could not be written to a file */
	HX_REFUSED_HEAD_TIMEOUT,
	HX_REFUSED_BODY_TIMEOUT,
	HX_REFUSED_SEND_TIMEOUT,
	HX_REFUSED_HANDSHAKE,
	HX_REFUSED_CREDENTIAL, /* AUTH of the Redis door, API tokens of the admin door */
	HX_REFUSED_LOCKED,     /* the same, not checked: auth.max_failures */
	HX_REFUSED_IDLE,       /* at the admin door, closed to make room for another client */
	HX_REFUSED_COUNT,
};

/*
 * Counters, gauges and histograms. "by" is the meaning of the argument numbered, "of" the meaning
 * of the argument fixed; 0 if there is none.
 */
enum hx_metric {
	HX_METRIC_DECISIONS,      /* counter by scope; see hx_metrics_decision() */
	HX_METRIC_EVENTS,         /* counter by hx_metrics_event() of enum hx_event_outcome (B11) */
	HX_METRIC_DUPLICATES,     /* counter by event type: skipped (A9) */
	HX_METRIC_CHECK_DURATION, /* histogram of the door: from request to answer */
	HX_METRIC_CHECK_ERRORS,   /* counter, by hx_metrics_check_errors() */
	HX_METRIC_UNPROTECTED,    /* counter by scope of enum hx_unprotected */
	HX_METRIC_UNVERIFIED,     /* counter by scope: nothing to compare the payload with */
	HX_METRIC_KEY_DIVERGENCE, /* counter by scope of enum hx_divergence, less one */
	HX_METRIC_RUNS,           /* counter by scope of enum hapax_run_outcome, HX_RUN_UNSTORED */
	HX_METRIC_OPERATIONS,     /* counter; see hx_metrics_operation() */
	HX_METRIC_KEY_DURATION,   /* histogram: time to make a key */
	HX_METRIC_KEY_TTL,        /* histogram: of claimed keys */
	HX_METRIC_UPSTREAM_DURATION, /* histogram by route: until the reply is complete */
	HX_METRIC_HANDLER_DURATION,  /* histogram by consumer: time of its handler (D11) */
	HX_METRIC_UPSTREAM_FAILURES, /* counter by route of hx_metrics_code() */
	HX_METRIC_INVALID_EVENTS,    /* counter by hx_metrics_invalid(): no claim */
	HX_METRIC_REQUESTS,          /* counter of hx_metrics_request(): door and code */
	HX_METRIC_REQUEST_DURATION,  /* histogram of enum hx_door */
	HX_METRIC_CONNECTIONS,       /* gauge of enum hx_door: open now */
	HX_METRIC_REFUSED,           /* counter of enum hx_refused */
	HX_METRIC_IN_PROGRESS,       /* gauge of enum hx_door: requests now */
	HX_METRIC_COUNT,
};

/* Zero means the default in every field. */
struct hx_metrics_options {
	size_t writers;      /* 1; number of struct hx_cells */
	uint64_t scopes_max; /* 1,000 */
	uint64_t types_max;  /* 100 */
	uint64_t routes_max; /* 1,000 */
	bool no_aliases;     /* leave out the documents' own names */
};

/* Owned: *ret_metrics, by the caller. */
enum hapax_status hx_metrics_new(
	const struct hx_metrics_options *options, struct hx_metrics **ret_metrics,
	struct hapax_error *err);

/* No cells may be in use. NULL is allowed. */
void hx_metrics_free(struct hx_metrics *metrics);

/* The cells of one writer, below options.writers. Borrowed. */
struct hx_cells *hx_metrics_cells(struct hx_metrics *metrics, size_t writer);

/* The number of a label's value; 0: other. The same for all writers, forever. */
uint32_t hx_metrics_scope(
	struct hx_cells *cells, struct hapax_bytes tenant, struct hapax_bytes group);
uint32_t hx_metrics_type(struct hx_cells *cells, struct hapax_bytes type);
uint32_t hx_metrics_event(
	struct hx_cells *cells, struct hapax_bytes type, struct hapax_bytes group);
uint32_t hx_metrics_route(struct hx_cells *cells, const char *name);
uint32_t hx_metrics_consumer(struct hx_cells *cells, const char *name);

/* The index of an upstream's status code; status 0: no reply. */
unsigned hx_metrics_code(unsigned status);

/* The index of a request that was answered with this status. */
unsigned hx_metrics_request(enum hx_door door, unsigned status);

/* Count: a gauge up or down, a counter up only. */
void hx_metrics_add(
	struct hx_cells *cells, enum hx_metric metric, uint32_t numbered, unsigned fixed,
	int64_t amount);

/* A door decided: decisions beyond FENCED are not counted here. */
void hx_metrics_decision(
	struct hx_cells *cells, enum hx_door door, uint32_t scope, enum hapax_decision decision);

/* The same for several equal ones. */
void hx_metrics_decisions(
	struct hx_cells *cells, enum hx_door door, uint32_t scope, enum hapax_decision decision,
	int64_t count);

/* A door asked count times whether to run, and got this status, which is not HAPAX_OK. */
void hx_metrics_check_errors(
	struct hx_cells *cells, enum hx_door door, enum hapax_status status, int64_t count);

/* A delivery was refused before its claim. */
void hx_metrics_invalid(struct hx_cells *cells, enum hx_door door, enum hx_invalid reason);

/* The reason that a consumer names: "malformed"; OTHER if it is none of these. */
enum hx_invalid hx_invalid_of(const char *name);

/* The store answered an operation with status. */
void hx_metrics_operation(
	struct hx_cells *cells, enum hapax_op_type type, enum hapax_status status);

/* The same for several equal ones. */
void hx_metrics_operations(
	struct hx_cells *cells, enum hapax_op_type type, enum hapax_status status, uint64_t count);

/* A histogram: one observation in nanoseconds; for KEY_TTL, HAPAX_TTL_FOREVER is +Inf. */
void hx_metrics_observe_ns(
	struct hx_cells *cells, enum hx_metric metric, uint32_t numbered, unsigned fixed,
	int64_t value_ns);

/* Memory and files held for clients, in bytes; a limit of 0 means none. */
struct hx_memory_facts {
	uint64_t limit;     /* the others are derived from it; 0: unknown */
	uint64_t listeners; /* in memory */
	uint64_t listeners_max;
	uint64_t files; /* in temporary files */
	uint64_t files_max;
};

/* An audit of the outbox. */
struct hx_audit_facts {
	char name[129];
	uint64_t checked; /* rows of its query in the last run that succeeded, like the next two */
	uint64_t missing; /* of them without an event */
	int64_t age_ms;   /* since then; -1: no run has succeeded */
	uint64_t failures;
};

/* The keys of a scope, as far as known. */
struct hx_scope_keys {
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	uint64_t keys;
};

/* Facts from elsewhere, collected at a scrape. Zero and NULL: left out. */
struct hx_metrics_facts {
	const char *version;
	const char *revision;
	const char *store;               /* hapax_store_name() */
	bool is_store_up;                /* it answered the last request */
	const struct hapax_stats *stats; /* of the store, recent */
	double stats_age_seconds;
	const struct hx_scope_keys *scope_keys;
	size_t scope_key_count;
	struct hx_memory_facts memory;
	const struct hapax_outage *outage; /* of a guarded store */
	uint64_t journal_records;          /* of the same */
	const struct hapax_processor_stats *processor;
	const struct hx_consumer_facts *consumers;
	size_t consumer_count;
	uint64_t reloads; /* of the configuration */
	uint64_t reload_failures;
	int64_t reloaded_ms;     /* the last successful one; since 1970 */
	uint64_t log_suppressed; /* hx_logger_suppressed() */
	uint64_t log_lost;
	bool has_traces;
	uint64_t spans_exported; /* with has_traces, like those below */
	uint64_t spans_dropped;
	uint64_t spans_failed;
	const struct hapax_relay_stats *outbox; /* of the relay in the daemon */
	bool is_outbox_up;                      /* with outbox: both sides are connected */
	const struct hx_audit_facts *audits;    /* of the outbox */
	size_t audit_count;
	bool is_ready;
	const struct hx_condition_row *conditions; /* the open ones; NULL: left out */
	size_t condition_count;
	const struct hx_io *process_io; /* to read /proc/self for process_*; NULL: leave it out */
};

/*
 * Append all metrics to out. LIMIT or NO_MEMORY: out is unchanged. INVALID is an error in family.c.
 * Blocks on /proc only.
 */
enum hapax_status hx_metrics_render(
	struct hx_metrics *metrics, const struct hx_metrics_facts *facts,
	enum hx_promtext_format format, struct hapax_buf *out, struct hapax_error *err);

/* The sum over all writers of a counter or gauge. For tests and health. */
int64_t hx_metrics_sum(
	struct hx_metrics *metrics, enum hx_metric metric, uint32_t numbered, unsigned fixed);

#endif
