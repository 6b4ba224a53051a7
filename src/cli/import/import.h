/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import.h - take over the keys that another system has processed (hapax store import).
 *
 *	source (CSV, PostgreSQL, Redis) ── row ──▶ import.c ── batch ──▶ import_write.c ──▶ store
 *
 * A source reads everything once and passes each row to hx_import_take(). A row without result and
 * event becomes a mark (check). Any other becomes a claim and its completion. Neither changes a key
 * that is done, claimed or parked, so that an import may be repeated and may run beside a daemon.
 *
 * The attempt id of such a claim is derived from its row. An import that was killed between claim
 * and completion acquires the same claim again and completes it.
 *
 * Functions that return an exit code have reported the failure.
 *
 * Threads: the main thread.
 */
#ifndef HX_CLI_IMPORT_IMPORT_H
#define HX_CLI_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/store.h>

#include "base/buf.h"
#include "base/sha256.h"
#include "cli/frame/command.h"
#include "cli/frame/progress.h"
#include "cli/input/digest_table.h"

enum hx_import_option {
	HX_IMPORT_FROM = 200,
	HX_IMPORT_QUERY,
	HX_IMPORT_COLUMN,
	HX_IMPORT_MATCH,
	HX_IMPORT_NAME,
	HX_IMPORT_RESULT_NAME,
	HX_IMPORT_WRITE,
	HX_IMPORT_DRY_RUN,
	HX_IMPORT_SKIP_BAD,
};

/* Their rows in the options of `hapax store`. */
/* clang-format off */
#define HX_IMPORT_OPTION_ROWS \
	{HX_IMPORT_FROM, "from", 0, HX_OPTION_TEXT, "SOURCE", \
	 "import: FILE.csv (- is standard input),\npostgres://HOST/DB or redis://HOST", NULL}, \
	{HX_IMPORT_QUERY, "query", 0, HX_OPTION_TEXT, "SELECT", \
	 "import: the rows of a PostgreSQL source", NULL}, \
	{HX_IMPORT_COLUMN, "column", 0, HX_OPTION_TEXT, "FIELD=NAME", \
	 "import: take FIELD from column NAME; may be repeated", NULL}, \
	{HX_IMPORT_NAME, "name", 0, HX_OPTION_TEXT, "PATTERN", \
	 "import: form of Redis names that mark a key:\n'idempotent:{group}:{tenant}:{key}'", NULL}, \
	{HX_IMPORT_RESULT_NAME, "result-name", 0, HX_OPTION_TEXT, "PATTERN", \
	 "import: form of Redis names whose value is the result", NULL}, \
	{HX_IMPORT_MATCH, "match", 0, HX_OPTION_TEXT, "GLOB", \
	 "import: Redis names to read (default: by the names' prefix);\n" \
	 "PREFIX* alone means --name PREFIX{key}", NULL}, \
	{HX_IMPORT_WRITE, "write", 0, HX_OPTION_FLAG, NULL, \
	 "import: write to the store, after a dry run", NULL}, \
	{HX_IMPORT_DRY_RUN, "dry-run", 0, HX_OPTION_FLAG, NULL, \
	 "import: write nothing (the default)", NULL}, \
	{HX_IMPORT_SKIP_BAD, "skip-bad", 0, HX_OPTION_FLAG, NULL, \
	 "import: skip rows that cannot be imported", NULL}
/* clang-format on */

/* What a row may have; columns have these names. */
enum hx_import_column {
	HX_IMPORT_KEY,
	HX_IMPORT_TENANT,
	HX_IMPORT_GROUP,
	HX_IMPORT_RESULT,
	HX_IMPORT_STATUS,
	HX_IMPORT_EXPIRES_AT,
	HX_IMPORT_PROCESSED_AT,
	HX_IMPORT_EVENT_ID,
	HX_IMPORT_EVENT_TYPE,
	HX_IMPORT_EVENT_SOURCE,
	HX_IMPORT_EVENT_TIME,
	HX_IMPORT_COLUMNS,
};

enum {
	HX_IMPORT_BATCH_MAX = 512,
	HX_IMPORT_SAMPLES_MAX = 5,
	HX_IMPORT_NOTES_MAX = 10,
	HX_IMPORT_PLACE_SIZE = 192,
	HX_IMPORT_WHY_SIZE = 192,
	/* Columns of a source, including those that are not used. */
	HX_IMPORT_SOURCE_COLUMNS_MAX = 128,
};

/* A row as the source has it, borrowed for the call. NULL data: the source has no such value. */
struct hx_import_row {
	struct hapax_bytes values[HX_IMPORT_COLUMNS];
	/* The time left by the source's own clock, or HAPAX_TTL_FOREVER; 0: see the values. */
	int64_t left_ms;
	bool has_left; /* left_ms is the source's, not that of --ttl */
};

/* A row that is ready to be written. */
struct hx_import_entry {
	struct hapax_buf bytes; /* tenant, group, key and result point into it */
	struct hapax_bytes tenant, group, key;
	struct hapax_result result;
	bool is_mark;
	int64_t ends_ms; /* by this machine's clock; or HAPAX_TIME_NEVER */
	bool has_end;    /* the source says when it ends; else --ttl counts from now */
	unsigned char cause_bytes[HAPAX_CAUSE_SIZE_MAX];
	struct hapax_bytes cause;
	unsigned char digest[HX_SHA256_SIZE]; /* of all this but ends_ms: its attempt id */
	struct hx_digest name;                /* of scope and key */
	struct hapax_record record;           /* what the store has */
	struct hapax_buf record_bytes;
};

/* A row that needs a person, with its reason. */
struct hx_import_note {
	char place[HX_IMPORT_PLACE_SIZE];
	char why[HX_IMPORT_WHY_SIZE];
};

struct hx_import_notes {
	struct hx_import_note notes[HX_IMPORT_NOTES_MAX]; /* the first ones */
	uint64_t count;
};

struct hx_import_sample {
	struct hapax_buf name; /* tenant/group, a NUL, key */
	size_t key_at;
	bool is_mark;
	int64_t ends_ms;
};

struct hx_import {
	struct hx_invocation *inv;
	struct hapax_store *store; /* NULL: a dry run, and there is no such store yet */
	bool is_written;           /* not a dry run */
	bool skips_bad;
	bool has_begun; /* the source's rows can be read */
	int64_t ttl_ms; /* of rows without an end of their own; 0: there is none */
	/* For the columns of the source. */
	enum hx_import_column meanings[HX_IMPORT_SOURCE_COLUMNS_MAX]; /* COLUMNS: not used */
	size_t source_columns;
	struct hapax_buf ignored;         /* names of columns that are not used: "a, b" */
	struct hapax_buf name;            /* form of Redis names that --match gave, or empty */
	char place[HX_IMPORT_PLACE_SIZE]; /* of the row: "line 7" */
	double share;                     /* of the source that was read, 0 to 1 */
	/* What was found. */
	uint64_t rows;
	uint64_t marks; /* written, or to be written */
	uint64_t results;
	uint64_t existing;
	uint64_t repeated;
	uint64_t expired;
	uint64_t forever; /* of marks and results */
	int64_t first_end_ms;
	int64_t last_end_ms;
	struct hx_import_notes conflicts;
	struct hx_import_notes bad;
	struct hx_import_sample samples[HX_IMPORT_SAMPLES_MAX];
	size_t sample_count;
	/* The rest is private. */
	struct hx_import_entry *batch;
	size_t batch_count;
	size_t batch_bytes;
	struct hapax_op *ops;
	struct hx_digest_table seen;
	bool has_forgotten; /* seen is full */
	struct hx_sha256 sha;
	struct hx_progress progress;
	int64_t begin_ns;
};

/* The action: read options, import, report. */
int hx_import_action(struct hx_invocation *inv);

/* Sources. */
int hx_import_csv(struct hx_import *import, const char *path);
int hx_import_postgres(struct hx_import *import, const char *url);
int hx_import_redis(struct hx_import *import, const char *url);

/*
 * Open the store, once the source can be read: a wrong option leaves no store behind. A dry run
 * creates none.
 */
int hx_import_open(struct hx_import *import);

/* Name the columns of the source, once, in their order. Then the store is open. */
int hx_import_columns(struct hx_import *import, const struct hapax_bytes *names, size_t count);

/* Take a row. Not HX_EXIT_OK: the source must stop. */
int hx_import_take(struct hx_import *import, const struct hx_import_row *row);

/* The same for the fields of a row in the order of the columns. */
int hx_import_take_fields(struct hx_import *import, const struct hapax_bytes *fields, size_t count);

/* The row at import->place cannot be imported. */
__attribute__((format(printf, 2, 3))) int hx_import_bad(
	struct hx_import *import, const char *format, ...);

/* Keep the place and the reason if there are few. place may be any bytes. */
void hx_import_note(struct hx_import_notes *notes, struct hapax_bytes place, const char *why);

/* Does the source keep the key longer than until ends_ms, by more than clocks and reading differ? */
bool hx_import_is_longer(const struct hx_import_entry *entry, int64_t ends_ms);

/* Check a row and copy it to entry. False: why says what is wrong. */
bool hx_import_row_read(
	struct hx_import *import, const struct hx_import_row *row, struct hx_import_entry *entry,
	char why[HX_IMPORT_WHY_SIZE]);

/* Decide about the batch and write it, unless this is a dry run. The batch is then empty. */
int hx_import_flush(struct hx_import *import);

/* Print what was found. is_complete: the source was read to its end. */
void hx_import_print(struct hx_import *import, bool is_complete);

#endif
