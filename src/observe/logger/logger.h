/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logger.h - one line for each thing that people want to read later: JSON, or logfmt.
 *
 *	{"ts":"2026-11-15T20:22:15.123Z","level":"info","msg":"duplicate skipped",
 *	 "idempotency_key":"order-17","event_type":"order.paid","ttl_remaining":"23h"}
 *
 *	const struct hx_log_field fields[] = {
 *		HX_LOG_KEY("idempotency_key", key),
 *		HX_LOG_BYTES("event_type", type),
 *		HX_LOG_DURATION("ttl_remaining", left_ms),
 *	};
 *	hx_log(log, HX_LOG_INFO, "duplicate skipped", fields, 3);
 *
 * A line is made on the caller's thread and put into memory; a thread of the log's own
 * writes it, so that a terminal that was stopped, or a pipe that nobody reads, holds
 * nobody up. When memory is full lines are lost, and counted.
 *
 * msg is a constant: lines of one msg are limited to so many a second, and those that
 * were left out are told by the next one as "suppressed". Details belong into fields.
 *
 * Values come from outside: controls are escaped, what is not UTF-8 is replaced, and what
 * is long is cut. Keys may be secrets: HX_LOG_KEY fields go out as they are, as a hash, or
 * not at all, as the log was told.
 *
 * Threads: any.
 */
#ifndef HX_LOG_H
#define HX_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/clock.h>
#include <hapax/error.h>

struct hx_log;

enum hx_log_level { HX_LOG_DEBUG, HX_LOG_INFO, HX_LOG_WARN, HX_LOG_ERROR };

enum hx_log_format { HX_LOG_JSON, HX_LOG_LOGFMT };

enum hx_log_keys {
	HX_LOG_KEYS_FULL,
	HX_LOG_KEYS_HASH, /* "sha256:" and 16 digits: equal keys can still be found */
	HX_LOG_KEYS_NONE,
};

enum {
	/* Of one line; more is cut. */
	HX_LOG_LINE_MAX = 4096,

	/* Of one value. */
	HX_LOG_VALUE_MAX = 1024,

	/* Of what waits to be written; minutes of a busy log, and nobody misses the memory. */
	HX_LOG_WAITING_MAX = 1024 * 1024,
};

/* Zero means the default in every field. */
struct hx_log_options {
	enum hx_log_level level; /* lines below it are not made; 0 is debug */
	enum hx_log_format format;
	enum hx_log_keys keys;
	uint64_t rate;     /* lines a second for each msg, and as many at once; 0: no limit */
	bool has_priority; /* begin lines with "<6>", for the journal of systemd */
	const struct hapax_clock *clock; /* NULL: the system's */
};

enum hx_log_field_kind {
	HX_LOG_FIELD_BYTES,
	HX_LOG_FIELD_KEY,
	HX_LOG_FIELD_SIGNED,
	HX_LOG_FIELD_UNSIGNED,
	HX_LOG_FIELD_DURATION, /* milliseconds, as "23h" */
	HX_LOG_FIELD_TIME,     /* milliseconds since 1970, as RFC 3339 */
	HX_LOG_FIELD_SHARE,    /* a number from 0 to 1 */
	HX_LOG_FIELD_BOOLEAN,
};

/* Made by the macros below. */
struct hx_log_field {
	const char *name; /* snake_case; NULL: left out, for fields that are not always known */
	enum hx_log_field_kind kind;
	struct hapax_bytes bytes;
	int64_t number;
	double share;
};

#define HX_LOG_BYTES(name, value)                         \
	{                                                 \
		(name), HX_LOG_FIELD_BYTES, (value), 0, 0 \
	}
#define HX_LOG_TEXT(name, value)                                               \
	{                                                                      \
		(name), HX_LOG_FIELD_BYTES, hapax_bytes_from_text(value), 0, 0 \
	}
#define HX_LOG_KEY(name, value)                         \
	{                                               \
		(name), HX_LOG_FIELD_KEY, (value), 0, 0 \
	}
#define HX_LOG_SIGNED(name, value)                                 \
	{                                                          \
		(name), HX_LOG_FIELD_SIGNED, {NULL, 0}, (value), 0 \
	}
#define HX_LOG_UNSIGNED(name, value)                                          \
	{                                                                     \
		(name), HX_LOG_FIELD_UNSIGNED, {NULL, 0}, (int64_t)(value), 0 \
	}
#define HX_LOG_DURATION(name, ms)                                 \
	{                                                         \
		(name), HX_LOG_FIELD_DURATION, {NULL, 0}, (ms), 0 \
	}
#define HX_LOG_TIME(name, ms)                                 \
	{                                                     \
		(name), HX_LOG_FIELD_TIME, {NULL, 0}, (ms), 0 \
	}
#define HX_LOG_SHARE(name, value)                                 \
	{                                                         \
		(name), HX_LOG_FIELD_SHARE, {NULL, 0}, 0, (value) \
	}
#define HX_LOG_BOOLEAN(name, value)                                 \
	{                                                           \
		(name), HX_LOG_FIELD_BOOLEAN, {NULL, 0}, (value), 0 \
	}

/* A log that writes to file, which stays the caller's. Starts the thread that writes. */
enum hapax_status hx_log_new(
	int file, const struct hx_log_options *options, struct hx_log **ret_log,
	struct hapax_error *err);

/* Write what waits, for at most wait_ms, then end. NULL is allowed. */
void hx_log_close(struct hx_log *log, int64_t wait_ms);

/* From now on; of lines that wait nothing changes. The clock stays as it was. */
void hx_log_configure(struct hx_log *log, const struct hx_log_options *options);

/* Whether a line of this level would be made: for fields that cost something. */
bool hx_log_takes(const struct hx_log *log, enum hx_log_level level);

/*
 * Make a line; log may be NULL: nobody wants to know. Never blocks for longer than
 * another line is copied.
 */
void hx_log(
	struct hx_log *log, enum hx_log_level level, const char *msg,
	const struct hx_log_field *fields, size_t field_count);

/* A line that somebody has to see, each one of them: whatever rate and level of the log are. */
void hx_log_always(
	struct hx_log *log, enum hx_log_level level, const char *msg,
	const struct hx_log_field *fields, size_t field_count);

/* Tell what was suppressed and not told since. Call it every second or so. */
void hx_log_tick(struct hx_log *log);

/* Wait until everything before this call is written; false when deadline_ns passed. */
bool hx_log_flush(struct hx_log *log, int64_t deadline_ns);

/* Lines that were over the rate, and lines that there was no memory for. */
uint64_t hx_log_suppressed(const struct hx_log *log);
uint64_t hx_log_lost(const struct hx_log *log);

/* Whether file is what $JOURNAL_STREAM names ("DEVICE:INODE"); the value may be NULL. */
bool hx_log_is_journal(int file, const char *journal_stream);

/* "debug", ...; "json", ...; "full", ...: the words of the configuration, in order. */
extern const char *const hx_log_level_names[];
extern const char *const hx_log_keys_names[];

#endif
