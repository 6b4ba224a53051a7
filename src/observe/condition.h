/* SPDX-License-Identifier: Apache-2.0 */
/*
 * condition.h - what is wrong with the daemon now: one table, which log, probes, metrics and the
 * API read.
 *
 *	hx_condition_begin(conditions, HX_CONDITION_UPSTREAM_DOWN, "127.0.0.1:9000", "refused");
 *	hx_condition_end(conditions, HX_CONDITION_UPSTREAM_DOWN, "127.0.0.1:9000");
 *
 * A condition has a subject if several can have it: an upstream, a consumer, a file. Its first
 * begin() logs a line; further ones only update the reason. It has ended when it was not begun
 * again for HX_CONDITION_HOLD_MS after end(), which hx_conditions_tick() notices and logs: a
 * condition that comes and goes is one condition, with two lines.
 *
 * Threads: any.
 */
#ifndef HX_CONDITION_H
#define HX_CONDITION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/clock.h>

#include "base/thread.h"

struct hx_logger;

/* In the order of the listings. A new one needs a row in condition.c. */
enum hx_condition {
	HX_CONDITION_STORE_DOWN,
	HX_CONDITION_STORE_SLOW,
	HX_CONDITION_DISK_FULL,
	HX_CONDITION_LIMIT_REACHED,     /* subject: the limit */
	HX_CONDITION_JOURNAL_IN_USE,    /* scopes continue without the store */
	HX_CONDITION_JOURNAL_FAILED,    /* they could not */
	HX_CONDITION_CLOCK_SKEW,        /* between store and host */
	HX_CONDITION_CLOCK_FROZEN,      /* of the store */
	HX_CONDITION_CLOCK_UNSYNCED,    /* the kernel's */
	HX_CONDITION_UPSTREAM_DOWN,     /* subject: its address */
	HX_CONDITION_UPSTREAM_SLOW,     /* the same */
	HX_CONDITION_CERT_EXPIRED,      /* subject: its file */
	HX_CONDITION_CERT_EXPIRING,     /* the same */
	HX_CONDITION_BROKER_AWAY,       /* subject: the consumer */
	HX_CONDITION_CONSUMER_PAUSED,   /* subject: the consumer, which stopped by itself */
	HX_CONDITION_OUTBOX_PAUSED,     /* its database or its broker is away */
	HX_CONDITION_OUTBOX_INCOMPLETE, /* subject: the audit that found it */
	HX_CONDITION_RELOAD_REFUSED,
	HX_CONDITION_DESCRIPTORS_SHORT,
	HX_CONDITION_COUNT,
};

enum hx_severity {
	HX_SEVERITY_INFO,     /* affects what is shown */
	HX_SEVERITY_WARNING,  /* some work is affected, or will be */
	HX_SEVERITY_CRITICAL, /* the daemon's own work is affected: /healthz fails */
};

enum {
	HX_CONDITIONS_MAX = 64, /* at a time; further ones are counted */
	HX_CONDITION_HOLD_MS = 5000,
	HX_CONDITION_SUBJECT_SIZE = 160,
	HX_CONDITION_REASON_SIZE = 256,
};

/* What is known of a condition in advance. */
struct hx_condition_kind {
	const char *name; /* "store_down" */
	const char *part; /* of the daemon, as probes list it: "store" */
	enum hx_severity severity;
};

extern const struct hx_condition_kind hx_condition_kinds[HX_CONDITION_COUNT];
extern const char *const hx_severity_names[];

/* A condition that has begun. */
struct hx_condition_row {
	enum hx_condition condition;
	char subject[HX_CONDITION_SUBJECT_SIZE]; /* "": it has none */
	char reason[HX_CONDITION_REASON_SIZE];
	int64_t since_ms; /* wall clock, for display */
	uint64_t times;   /* that it began */
	int64_t began_ms; /* boot clock, as the next */
	int64_t ended_ms; /* INT64_MAX: it goes on */
};

struct hx_conditions {
	struct hx_logger *log; /* NULL: no lines */
	const struct hapax_clock *clock;
	_Atomic unsigned open[HX_CONDITION_COUNT]; /* rows of each kind */
	struct hx_lock lock;
	/* Locks: lock. */
	struct hx_condition_row rows[HX_CONDITIONS_MAX]; /* in order of their begin */
	size_t count;
	uint64_t left_off; /* begun without a row */
};

/* conditions is zeros; both outlive it. clock NULL: the system clock. There is nothing to free. */
void hx_conditions_init(
	struct hx_conditions *conditions, struct hx_logger *log, const struct hapax_clock *clock);

/* The condition holds now. subject NULL: it has none. Both texts are copied, and cut. */
void hx_condition_begin(
	struct hx_conditions *conditions, enum hx_condition condition, const char *subject,
	const char *reason);

/* It no longer does; nothing if it did not. Costs one load then. */
void hx_condition_end(
	struct hx_conditions *conditions, enum hx_condition condition, const char *subject);

/* Either, for facts that are polled. */
void hx_condition_set(
	struct hx_conditions *conditions, enum hx_condition condition, const char *subject,
	bool holds, const char *reason);

/* Ends those of all subjects: they are no longer configured. */
void hx_condition_end_all(struct hx_conditions *conditions, enum hx_condition condition);

/* Logs the conditions that have ended. Call it about every second. */
void hx_conditions_tick(struct hx_conditions *conditions);

/* Copies the open conditions, by kind, then by age. Returns how many. */
size_t hx_conditions_list(
	struct hx_conditions *conditions, struct hx_condition_row ret_rows[HX_CONDITIONS_MAX]);

#endif
