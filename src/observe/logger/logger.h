/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logger.h - the log: one line per event, as JSON or logfmt.
 *
 *	{"ts":"2026-11-15T20:22:15.123Z","level":"info","msg":"duplicate skipped",
 *	 "idempotency_key":"order-17","event_type":"order.paid","ttl_remaining":"23h"}
 *
 *	const struct hx_logger_field fields[] = {
 *		HX_LOGGER_KEY("idempotency_key", key),
 *		HX_LOGGER_BYTES("event_type", type),
 *		HX_LOGGER_DURATION("ttl_remaining", left_ms),
 *	};
 *	hx_logger(log, HX_LOGGER_INFO, "duplicate skipped", fields, 3);
 *
 * The caller's thread formats a line in memory; the log's own thread writes it, so that a stopped
 * terminal or an unread pipe does not block callers. When memory is full, lines are lost and
 * counted.
 *
 * msg is a constant: each msg has a limit of lines per second, and the next line reports the
 * omitted ones as "suppressed". Details belong in fields.
 *
 * Values come from outside: controls are escaped, invalid UTF-8 is replaced, and long values are
 * cut. Keys may be secrets: HX_LOGGER_KEY fields are written in full, as a hash, or not at all, as
 * configured.
 *
 * Threads: any.
 */
#ifndef HX_LOGGER_H
#define HX_LOGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/clock.h>
#include <hapax/error.h>

struct hx_logger;

enum hx_logger_level { HX_LOGGER_DEBUG, HX_LOGGER_INFO, HX_LOGGER_WARN, HX_LOGGER_ERROR };

enum hx_logger_format { HX_LOGGER_JSON, HX_LOGGER_LOGFMT };

enum hx_logger_keys {
	HX_LOGGER_KEYS_FULL,
	HX_LOGGER_KEYS_HASH, /* "sha256:" and 16 digits: equal keys can still be found */
	HX_LOGGER_KEYS_NONE,
	HX_LOGGER_KEYS_HMAC, /* "hmac:" and 32 digits: only who has the key can look for one */
};

enum {
	/* For one line; more is cut. */
	HX_LOGGER_LINE_MAX = 4096,

	/* For one value. */
	HX_LOGGER_VALUE_MAX = 1024,

	/* For waiting lines: minutes of a busy log, at little cost. */
	HX_LOGGER_WAITING_MAX = 1024 * 1024,

	/* The same for a file of its own: of each decision, for about a second. */
	HX_LOGGER_FILE_WAITING_MAX = 32 * 1024 * 1024,
};

/* Zero means the default in every field. */
struct hx_logger_options {
	enum hx_logger_level level; /* lines below it are dropped; 0 is debug */
	enum hx_logger_format format;
	enum hx_logger_keys keys;
	uint64_t rate;     /* lines per second for each msg, and as many at once; 0: no limit */
	bool has_priority; /* begin lines with "<6>", for the journal of systemd */
	struct hapax_bytes hmac_key;     /* for HX_LOGGER_KEYS_HMAC; copied at the start */
	const struct hapax_clock *clock; /* NULL: the system clock */
};

enum hx_logger_field_kind {
	HX_LOGGER_FIELD_BYTES,
	HX_LOGGER_FIELD_KEY,
	HX_LOGGER_FIELD_SIGNED,
	HX_LOGGER_FIELD_UNSIGNED,
	HX_LOGGER_FIELD_DURATION, /* milliseconds, as "23h" */
	HX_LOGGER_FIELD_TIME,     /* milliseconds since 1970, as RFC 3339 */
	HX_LOGGER_FIELD_SHARE,    /* a number from 0 to 1 */
	HX_LOGGER_FIELD_BOOLEAN,
};

/* Made by the macros below. */
struct hx_logger_field {
	const char *name; /* snake_case; NULL: left out, for fields that may be unknown */
	enum hx_logger_field_kind kind;
	struct hapax_bytes bytes;
	int64_t number;
	double share;
};

#define HX_LOGGER_BYTES(name, value)                         \
	{                                                    \
		(name), HX_LOGGER_FIELD_BYTES, (value), 0, 0 \
	}
#define HX_LOGGER_TEXT(name, value)                                               \
	{                                                                         \
		(name), HX_LOGGER_FIELD_BYTES, hapax_bytes_from_text(value), 0, 0 \
	}
#define HX_LOGGER_KEY(name, value)                         \
	{                                                  \
		(name), HX_LOGGER_FIELD_KEY, (value), 0, 0 \
	}
#define HX_LOGGER_SIGNED(name, value)                                 \
	{                                                             \
		(name), HX_LOGGER_FIELD_SIGNED, {NULL, 0}, (value), 0 \
	}
#define HX_LOGGER_UNSIGNED(name, value)                                          \
	{                                                                        \
		(name), HX_LOGGER_FIELD_UNSIGNED, {NULL, 0}, (int64_t)(value), 0 \
	}
#define HX_LOGGER_DURATION(name, ms)                                 \
	{                                                            \
		(name), HX_LOGGER_FIELD_DURATION, {NULL, 0}, (ms), 0 \
	}
#define HX_LOGGER_TIME(name, ms)                                 \
	{                                                        \
		(name), HX_LOGGER_FIELD_TIME, {NULL, 0}, (ms), 0 \
	}
#define HX_LOGGER_SHARE(name, value)                                 \
	{                                                            \
		(name), HX_LOGGER_FIELD_SHARE, {NULL, 0}, 0, (value) \
	}
#define HX_LOGGER_BOOLEAN(name, value)                                 \
	{                                                              \
		(name), HX_LOGGER_FIELD_BOOLEAN, {NULL, 0}, (value), 0 \
	}

/* Create a log that writes to file, which the caller keeps. Starts the writer thread. */
enum hapax_status hx_logger_new(
	int file, const struct hx_logger_options *options, struct hx_logger **ret_log,
	struct hapax_error *err);

/* The same for a file at path, which the log opens, locks, appends to and closes. */
enum hapax_status hx_logger_open(
	const char *path, const struct hx_logger_options *options, struct hx_logger **ret_log,
	struct hapax_error *err);

/*
 * Of such a log: go on with the file that is at path now, unless it is the same one. Lines that
 * wait may go into either. On failure it goes on with the old one. Threads: one at a time.
 */
enum hapax_status hx_logger_reopen(
	struct hx_logger *log, const char *path, struct hapax_error *err);

/* Write waiting lines, for at most wait_ms, then end. NULL is allowed. */
void hx_logger_close(struct hx_logger *log, int64_t wait_ms);

/* Takes effect now; waiting lines do not change. The clock and the HMAC's key stay. */
void hx_logger_configure(struct hx_logger *log, const struct hx_logger_options *options);

/* Would a line of this level be written? For fields that are costly to make. */
bool hx_logger_takes(const struct hx_logger *log, enum hx_logger_level level);

/*
 * Log a line; log may be NULL, which does nothing. Never blocks for longer than another line is
 * copied. False: it was suppressed by the rate.
 */
bool hx_logger(
	struct hx_logger *log, enum hx_logger_level level, const char *msg,
	const struct hx_logger_field *fields, size_t field_count);

/*
 * The same in two steps, for fields that are costly to make: if the rate admits a line that the log
 * takes, log it with the number of suppressed ones.
 */
bool hx_logger_admits(struct hx_logger *log, const char *msg, uint64_t *ret_suppressed);
void hx_logger_admitted(
	struct hx_logger *log, enum hx_logger_level level, const char *msg,
	const struct hx_logger_field *fields, size_t field_count, uint64_t suppressed);

/* Log a line that must not be lost, regardless of rate and level. */
void hx_logger_always(
	struct hx_logger *log, enum hx_logger_level level, const char *msg,
	const struct hx_logger_field *fields, size_t field_count);

/* Count lines of msg that the caller left out, because one of them was just suppressed. */
void hx_logger_suppress(struct hx_logger *log, const char *msg, uint64_t count);

/* Report suppressed lines that are not reported yet. Call it about every second. */
void hx_logger_tick(struct hx_logger *log);

/* Wait until everything before this call is written; false when deadline_ns passed. */
bool hx_logger_flush(struct hx_logger *log, int64_t deadline_ns);

/* Lines above the rate, and lines lost for lack of memory. */
uint64_t hx_logger_suppressed(const struct hx_logger *log);
uint64_t hx_logger_lost(const struct hx_logger *log);

/* Is file the one that $JOURNAL_STREAM names ("DEVICE:INODE")? The value may be NULL. */
bool hx_logger_is_journal(int file, const char *journal_stream);

/* "debug", ...; "json", ...; "full", ...: the words of the configuration, in order. */
extern const char *const hx_logger_level_names[];
extern const char *const hx_logger_keys_names[];

#endif
