/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox_sqlite.c - an outbox in a SQLite database.
 */
#include "outbox/sqlite/outbox_sqlite.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <hapax/clock.h>

#include "base/alloc.h"
#include "base/error.h"
#include "store/sqlite/sqlite_fault.h"
#include "store/sqlite/file.h"

enum { BUSY_MS = 5000 };

extern const char hx_outbox_sqlite_1_sql[];
extern const char hx_outbox_sqlite_2_sql[];

static struct hx_outbox_sqlite *outbox_sqlite_of(struct hapax_outbox *outbox)
{
	return (struct hx_outbox_sqlite *)outbox;
}

void hx_outbox_sqlite_assert(const struct hx_outbox_sqlite *outbox)
{
	/* Only our own connection waits, and a relay never uses the caller's. */
	assert(outbox->base.has_reactor == !outbox->is_joined);
	assert(outbox->db != NULL);
	assert(outbox->add == NULL || sqlite3_db_handle(outbox->add) == outbox->db);
	assert(outbox->add == NULL || !sqlite3_stmt_busy(outbox->add));
}

int64_t hx_outbox_sqlite_now_ms(void)
{
	const struct hapax_clock *clock = hapax_clock_system();

	return clock->wall_ms(clock->context);
}

int hx_outbox_sqlite_exec(struct hx_outbox_sqlite *outbox, const char *sql)
{
	return sqlite3_exec(outbox->db, sql, NULL, NULL, NULL);
}

int hx_outbox_sqlite_run(
	struct hx_outbox_sqlite *outbox, const char *sql, const char *types,
	const void *const *values, int64_t *ret_number)
{
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v2(outbox->db, sql, -1, &statement, NULL);

	/* One type for each parameter: an unbound one would be NULL, and match no row. */
	assert(code != SQLITE_OK ||
	       (size_t)sqlite3_bind_parameter_count(statement) == strlen(types));
	for (int i = 0; types[i] != '\0' && code == SQLITE_OK; i++)
		code = types[i] == 'n'
			? sqlite3_bind_int64(statement, i + 1, *(const int64_t *)values[i])
			: values[i] == NULL
			? sqlite3_bind_null(statement, i + 1)
			: sqlite3_bind_text(statement, i + 1, values[i], -1, SQLITE_STATIC);
	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	if (code == SQLITE_ROW && ret_number != NULL)
		*ret_number = sqlite3_column_int64(statement, 0);
	while (code == SQLITE_ROW)
		code = sqlite3_step(statement);
	if (code == SQLITE_DONE)
		code = SQLITE_OK;
	(void)sqlite3_finalize(statement);
	return code;
}

enum hapax_status hx_outbox_sqlite_error(
	struct hx_outbox_sqlite *outbox, int code, bool in_commit, const char *what,
	struct hapax_error *err)
{
	assert(code != SQLITE_OK);
	if ((code & 0xff) == SQLITE_CONSTRAINT &&
	    sqlite3_extended_errcode(outbox->db) == SQLITE_CONSTRAINT_UNIQUE)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"%s: the outbox already has an event with this id", what);
	if ((code & 0xff) == SQLITE_ERROR || (code & 0xff) == SQLITE_CONSTRAINT)
		return hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0, "%s: %s", what, sqlite3_errmsg(outbox->db));
	return hx_error_set(
		err,
		hx_sqlite_status(code, in_commit ? HX_SQLITE_IN_COMMIT : HX_SQLITE_BEFORE_COMMIT),
		0, "%s: %s", what, hx_sqlite_reason(code));
}

enum hapax_status hx_outbox_sqlite_begin(
	struct hx_outbox_sqlite *outbox, const char *what, struct hapax_error *err)
{
	int code = hx_outbox_sqlite_exec(outbox, "BEGIN IMMEDIATE");

	assert(code != SQLITE_OK || sqlite3_get_autocommit(outbox->db) == 0);
	return code == SQLITE_OK ? HAPAX_OK
				 : hx_outbox_sqlite_error(outbox, code, false, what, err);
}

enum hapax_status hx_outbox_sqlite_end(
	struct hx_outbox_sqlite *outbox, int code, const char *what, struct hapax_error *err)
{
	bool in_commit = code == SQLITE_OK;
	enum hapax_status status;

	/* A trigger of the user may have undone the transaction: then this fails. */
	if (in_commit)
		code = hx_outbox_sqlite_exec(outbox, "COMMIT");
	if (code == SQLITE_OK) {
		assert(sqlite3_get_autocommit(outbox->db) != 0);
		return HAPAX_OK;
	}
	status = hx_outbox_sqlite_error(outbox, code, in_commit, what, err);
	if (sqlite3_get_autocommit(outbox->db) == 0)
		(void)hx_outbox_sqlite_exec(outbox, "ROLLBACK");
	return status;
}

static void outbox_close(struct hapax_outbox *base)
{
	struct hx_outbox_sqlite *outbox = outbox_sqlite_of(base);

	(void)sqlite3_finalize(outbox->add);
	if (!outbox->is_joined)
		(void)sqlite3_close(outbox->db);
	hx_outbox_dismantle(base);
	hx_free(outbox);
}

/* ------------------------------------------------------------------ add */

static int bind_text(sqlite3_stmt *statement, int index, struct hapax_bytes text)
{
	assert(index > 0);
	assert(index <= sqlite3_bind_parameter_count(statement));
	assert(text.size <= HX_OUTBOX_HEADERS_SIZE_MAX);
	if (text.size == 0)
		return sqlite3_bind_null(statement, index);
	return sqlite3_bind_text(statement, index, text.data, (int)text.size, SQLITE_STATIC);
}

static int insert(
	struct hx_outbox_sqlite *outbox, const struct hapax_outbox_event *event,
	struct hapax_bytes headers, struct hapax_bytes id)
{
	static const char sql[] =
		"INSERT INTO main.hapax_outbox (id, part, created_ms, topic, ordering_key, type, source,"
		" subject, content_type, headers, payload) VALUES (?1, " HX_OUTBOX_SQLITE_PART(
			"coalesce(?4, ?1)") ", ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
	const struct hapax_bytes texts[] = {event->topic,  event->ordering_key, event->type,
					    event->source, event->subject,      event->content_type,
					    headers};
	int code = SQLITE_OK;

	if (outbox->add == NULL)
		code = sqlite3_prepare_v3(
			outbox->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &outbox->add, NULL);
	/* id, time, the texts, and the payload. */
	assert(code != SQLITE_OK ||
	       (size_t)sqlite3_bind_parameter_count(outbox->add) == HX_COUNT(texts) + 3);
	assert(id.size > 0);
	assert(event->payload.size <= HX_OUTBOX_PAYLOAD_SIZE_MAX);
	if (code == SQLITE_OK)
		code = bind_text(outbox->add, 1, id);
	if (code == SQLITE_OK)
		code = sqlite3_bind_int64(outbox->add, 2, hx_outbox_sqlite_now_ms());
	for (int i = 0; i < 7 && code == SQLITE_OK; i++)
		code = bind_text(outbox->add, 3 + i, texts[i]);
	if (code == SQLITE_OK && event->payload.size == 0)
		code = sqlite3_bind_zeroblob(outbox->add, 10, 0);
	else if (code == SQLITE_OK)
		code = sqlite3_bind_blob(
			outbox->add, 10, event->payload.data, (int)event->payload.size,
			SQLITE_STATIC);
	if (code == SQLITE_OK)
		code = sqlite3_step(outbox->add);
	(void)sqlite3_reset(outbox->add);
	(void)sqlite3_clear_bindings(outbox->add);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

static enum hapax_status outbox_add(
	struct hapax_outbox *base, const struct hapax_outbox_event *event,
	struct hapax_bytes headers, char ret_id[HAPAX_OUTBOX_ID_SIZE], struct hapax_error *err)
{
	struct hx_outbox_sqlite *outbox = outbox_sqlite_of(base);
	unsigned char uuid[HX_UUID_SIZE];
	bool is_alone = sqlite3_get_autocommit(outbox->db) != 0;
	int code;

	if (event->id.size > 0) {
		memcpy(ret_id, event->id.data, event->id.size);
		ret_id[event->id.size] = '\0';
	} else {
		hx_uuid7_next(&outbox->ids, hx_outbox_sqlite_now_ms(), uuid);
		hx_uuid7_format(uuid, ret_id);
	}
	assert(strlen(ret_id) < HAPAX_OUTBOX_ID_SIZE);
	assert(event->id.size == 0 || strlen(ret_id) == event->id.size);
	code = insert(outbox, event, headers, hapax_bytes_from_text(ret_id));
	if (code == SQLITE_OK)
		return HAPAX_OK;
	return hx_outbox_sqlite_error(outbox, code, is_alone, "could not add the event", err);
}

/* ------------------------------------------------------------------ savepoints */

static enum hapax_status begin(struct hx_outbox_sqlite *outbox, struct hapax_error *err)
{
	char sql[64];
	int code;

	if (sqlite3_get_autocommit(outbox->db) != 0) {
		outbox->depth = 0;
		return hx_outbox_sqlite_begin(outbox, "could not begin the transaction", err);
	}
	(void)snprintf(sql, sizeof(sql), "SAVEPOINT hapax_outbox_%u", outbox->depth + 1);
	code = hx_outbox_sqlite_exec(outbox, sql);
	if (code != SQLITE_OK)
		return hx_outbox_sqlite_error(
			outbox, code, false, "could not begin the transaction", err);
	outbox->depth++;
	hx_outbox_sqlite_assert(outbox);
	return HAPAX_OK;
}

static enum hapax_status outbox_sqlite_keep(
	struct hx_outbox_sqlite *outbox, struct hapax_error *err)
{
	char sql[64];
	int code;

	if (sqlite3_get_autocommit(outbox->db) != 0)
		return hx_error_set(
			err, HAPAX_ERR_HANDLER, 0, "the function ended the transaction");
	if (outbox->depth == 0)
		return hx_outbox_sqlite_end(
			outbox, SQLITE_OK, "could not commit the transaction", err);
	(void)snprintf(sql, sizeof(sql), "RELEASE hapax_outbox_%u", outbox->depth--);
	code = hx_outbox_sqlite_exec(outbox, sql);
	return code == SQLITE_OK
		? HAPAX_OK
		: hx_outbox_sqlite_error(
			  outbox, code, false, "could not release the savepoint", err);
}

static enum hapax_status undo(struct hx_outbox_sqlite *outbox)
{
	char sql[96];

	/* SQLite may have ended the transaction by itself. */
	if (sqlite3_get_autocommit(outbox->db) != 0)
		return HAPAX_OK;
	if (outbox->depth == 0) {
		(void)hx_outbox_sqlite_exec(outbox, "ROLLBACK");
		return HAPAX_OK;
	}
	(void)snprintf(
		sql, sizeof(sql), "ROLLBACK TO hapax_outbox_%u; RELEASE hapax_outbox_%u",
		outbox->depth, outbox->depth);
	assert(outbox->depth > 0);
	outbox->depth--;
	(void)hx_outbox_sqlite_exec(outbox, sql);
	return HAPAX_OK;
}

static enum hapax_status outbox_savepoint(
	struct hapax_outbox *outbox, enum hx_outbox_savepoint savepoint, struct hapax_error *err)
{
	switch (savepoint) {
	case HX_OUTBOX_BEGIN: return begin(outbox_sqlite_of(outbox), err);
	case HX_OUTBOX_KEEP: return outbox_sqlite_keep(outbox_sqlite_of(outbox), err);
	case HX_OUTBOX_UNDO: return undo(outbox_sqlite_of(outbox));
	}
	return HAPAX_ERR_INVALID;
}

/* Like hapax_outbox_backlog() in outbox_postgres.sql, plus the sent rows. */
static enum hapax_status outbox_status(
	struct hapax_outbox *base, bool with_sent, struct hapax_outbox_status *status,
	struct hapax_error *err)
{
	static const char sql[] =
		"SELECT (SELECT count(*) FROM main.hapax_outbox WHERE state = 0),"
		" count(*) FILTER (WHERE state = 0), count(*) FILTER (WHERE state = 3),"
		" count(*) FILTER (WHERE state = 2),"
		" count(DISTINCT CASE WHEN state = 2 THEN coalesce(ordering_key, id) END),"
		" coalesce((SELECT max(?1 - created_ms, 0) FROM main.hapax_outbox INDEXED BY"
		" hapax_outbox_pending WHERE state = 0 ORDER BY seq LIMIT 1), 0),"
		" (SELECT count(*) FROM main.hapax_outbox_relay WHERE until_ms >= ?1),"
		" (SELECT count(*) FROM main.hapax_outbox_part WHERE until_ms >= ?1),"
		" CASE WHEN ?2 THEN (SELECT count(*) FROM main.hapax_outbox WHERE state = 1) END"
		" FROM main.hapax_outbox WHERE held = 1";
	struct hx_outbox_sqlite *outbox = outbox_sqlite_of(base);
	int64_t numbers[HX_OUTBOX_NUMBERS];
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v2(outbox->db, sql, -1, &statement, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_bind_int64(statement, 1, hx_outbox_sqlite_now_ms());
	if (code == SQLITE_OK)
		code = sqlite3_bind_int(statement, 2, with_sent);
	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	if (code == SQLITE_ROW) {
		assert(sqlite3_column_count(statement) == HX_OUTBOX_NUMBERS);
		for (int i = 0; i < HX_OUTBOX_NUMBERS; i++)
			numbers[i] = sqlite3_column_int64(statement, i);
		hx_outbox_status_set(status, numbers);
		/* One statement, one state of the database: our own, not the word of a server. */
		assert(status->retrying <= status->pending);
		assert(status->parked_keys <= status->parked);
		assert(status->oldest_ms >= 0);
		assert(with_sent || status->sent == 0);
	}
	(void)sqlite3_finalize(statement);
	if (code == SQLITE_ROW)
		return HAPAX_OK;
	return hx_outbox_sqlite_error(outbox, code, false, "could not read the outbox", err);
}

static const struct hx_outbox_ops sqlite_ops = {
	.name = "sqlite",
	.poll_ms = 10,
	.held = "@@hapax_outbox INDEXED BY hapax_outbox_held WHERE held = 1 AND",
	.close = outbox_close,
	.add = outbox_add,
	.savepoint = outbox_savepoint,
	.status = outbox_status,
	.retry = hx_outbox_sqlite_retry,
	.park = hx_outbox_sqlite_park,
	.purge = hx_outbox_sqlite_purge,
	.query = hx_outbox_sqlite_query,
	.audit = hx_outbox_sqlite_audit,
	.adopt = hx_outbox_sqlite_adopt,
	.keep_alive = hx_outbox_sqlite_renew,
	.settle = hx_outbox_sqlite_settle,
	.leave = hx_outbox_sqlite_leave,
	.fetch = hx_outbox_sqlite_fetch,
	.mark = hx_outbox_sqlite_mark,
	.wait = hx_outbox_sqlite_wait,
};

/* ------------------------------------------------------------------ open */

static struct hx_outbox_sqlite *outbox_new(bool with_reactor, struct hapax_error *err)
{
	struct hx_outbox_sqlite *outbox = hx_alloc_zero(1, sizeof(*outbox));

	if (outbox == NULL) {
		(void)hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for an outbox");
		return NULL;
	}
	hx_uuid7_init(&outbox->ids);
	if (hx_outbox_prepare(&outbox->base, &sqlite_ops, with_reactor, err) != HAPAX_OK) {
		outbox_close(&outbox->base);
		return NULL;
	}
	return outbox;
}

/* 0: no outbox. */
static enum hapax_status read_version(
	struct hx_outbox_sqlite *outbox, int64_t *ret_version, struct hapax_error *err)
{
	int64_t has_outbox = 0;
	int code = hx_outbox_sqlite_run(
		outbox,
		"SELECT count(*) FROM main.sqlite_schema WHERE type = 'table' AND name = 'hapax_outbox_meta'",
		"", NULL, &has_outbox);

	*ret_version = 0;
	if (code == SQLITE_OK && has_outbox != 0)
		code = hx_outbox_sqlite_run(
			outbox, "SELECT version FROM main.hapax_outbox_meta", "", NULL,
			ret_version);
	if (code != SQLITE_OK)
		return hx_outbox_sqlite_error(
			outbox, code, false, "could not open the outbox", err);
	if (*ret_version > HX_OUTBOX_SQLITE_VERSION)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"the outbox has version %d, and this hapax supports up to %d; use a "
			"newer hapax",
			(int)*ret_version, HX_OUTBOX_SQLITE_VERSION);
	assert(has_outbox != 0 || *ret_version == 0);
	return HAPAX_OK;
}

/* Adding works on older versions, too: applications need not wait for the migration. */
static enum hapax_status see_outbox(struct hx_outbox_sqlite *outbox, struct hapax_error *err)
{
	int64_t version = 0;
	enum hapax_status status = read_version(outbox, &version, err);

	if (status != HAPAX_OK || version == HX_OUTBOX_SQLITE_VERSION ||
	    (version > 0 && outbox->is_joined))
		return status;
	if (version > 0)
		return hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0, HX_OUTBOX_TOO_OLD, (int)version,
			HX_OUTBOX_SQLITE_VERSION);
	return hx_error_set(
		err, HAPAX_ERR_UNAVAILABLE, 0,
		"this database has no outbox; run 'hapax outbox init --db URL'");
}

static enum hapax_status open_file(
	const char *name, int flags, struct hx_outbox_sqlite **ret_outbox, struct hapax_error *err)
{
	struct hx_outbox_sqlite *outbox = outbox_new(true, err);
	char *path;
	int code;

	if (outbox == NULL)
		return HAPAX_ERR_NO_MEMORY;
	path = hx_sqlite_plain_path(name);
	if (path == NULL) {
		outbox_close(&outbox->base);
		(void)hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "could not open '%s': not enough memory",
			name);
		return HAPAX_ERR_NO_MEMORY;
	}
	if (flags & SQLITE_OPEN_CREATE)
		hx_sqlite_make_private(path);
	code = sqlite3_open_v2(path, &outbox->db, flags | SQLITE_OPEN_NOMUTEX, NULL);
	hx_free(path);
	if (code != SQLITE_OK) {
		bool is_absent = outbox->db != NULL && sqlite3_system_errno(outbox->db) == ENOENT;

		(void)hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0, "could not open '%s': %s", name,
			is_absent ? "the file or its directory does not exist"
				  : hx_sqlite_reason(code));
		outbox_close(&outbox->base);
		return HAPAX_ERR_UNAVAILABLE;
	}
	(void)sqlite3_busy_timeout(outbox->db, BUSY_MS);
	hx_outbox_sqlite_assert(outbox);
	*ret_outbox = outbox;
	return HAPAX_OK;
}

enum hapax_status hx_outbox_sqlite_open(
	const char *url, struct hapax_outbox **ret_outbox, struct hapax_error *err)
{
	struct hx_outbox_sqlite *outbox = NULL;
	enum hapax_status status =
		open_file(strchr(url, ':') + 1, SQLITE_OPEN_READWRITE, &outbox, err);

	if (status == HAPAX_OK) {
		status = see_outbox(outbox, err);
		if (status != HAPAX_OK)
			outbox_close(&outbox->base);
	}
	if (status == HAPAX_OK)
		*ret_outbox = &outbox->base;
	return status;
}

enum hapax_status hapax_outbox_join_sqlite(
	struct sqlite3 *db, struct hapax_outbox **ret_outbox, struct hapax_error *err)
{
	struct hx_outbox_sqlite *outbox;
	enum hapax_status status;

	if (db == NULL || ret_outbox == NULL)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "an open connection is required");
	outbox = outbox_new(false, err);
	if (outbox == NULL)
		return HAPAX_ERR_NO_MEMORY;
	outbox->db = db;
	outbox->is_joined = true;
	hx_outbox_sqlite_assert(outbox);
	status = see_outbox(outbox, err);
	if (status != HAPAX_OK)
		outbox_close(&outbox->base);
	else
		*ret_outbox = &outbox->base;
	return status;
}

enum hapax_status hx_outbox_sqlite_init(
	const char *url, struct hapax_migration *migration, struct hapax_error *err)
{
	static const char what[] = "could not create the outbox";
	struct hx_outbox_sqlite *outbox = NULL;
	enum hapax_status status = open_file(
		strchr(url, ':') + 1, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &outbox, err);
	int code = SQLITE_OK;

	if (status != HAPAX_OK)
		return status;
	migration->to = HX_OUTBOX_SQLITE_VERSION;
	status = hx_outbox_sqlite_begin(outbox, what, err);
	if (status == HAPAX_OK) {
		status = read_version(outbox, &migration->from, err);
		if (status != HAPAX_OK)
			(void)hx_outbox_sqlite_exec(outbox, "ROLLBACK");
	}
	if (status == HAPAX_OK && migration->from < 1)
		code = hx_outbox_sqlite_exec(outbox, hx_outbox_sqlite_1_sql);
	if (status == HAPAX_OK && code == SQLITE_OK && migration->from < 2)
		code = hx_outbox_sqlite_exec(outbox, hx_outbox_sqlite_2_sql);
	assert(status != HAPAX_OK || migration->from <= migration->to);
	if (status == HAPAX_OK)
		status = hx_outbox_sqlite_end(outbox, code, what, err);
	/* The connection is closed next: an open transaction would be undone without a word. */
	assert(status != HAPAX_OK || sqlite3_get_autocommit(outbox->db) != 0);
	outbox_close(&outbox->base);
	return status;
}
