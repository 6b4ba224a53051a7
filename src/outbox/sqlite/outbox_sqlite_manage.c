/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox_sqlite_manage.c - administration of an outbox in SQLite; see outbox_postgres.sql.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "outbox/sqlite/outbox_sqlite.h"

enum { AUDIT_STEPS = 10000 }; /* instructions of SQLite between two looks at the clock */

static struct hx_outbox_sqlite *outbox_sqlite_manage_of(struct hapax_outbox *outbox)
{
	struct hx_outbox_sqlite *mine = (struct hx_outbox_sqlite *)outbox;

	hx_outbox_sqlite_assert(mine);
	return mine;
}

int hx_outbox_sqlite_release(struct hx_outbox_sqlite *outbox)
{
	int64_t now_ms = hx_outbox_sqlite_now_ms();
	const void *values[] = {&now_ms};

	return hx_outbox_sqlite_run(
		outbox,
		"UPDATE main.hapax_outbox AS o INDEXED BY hapax_outbox_held SET state = 0, held = o.next_ms >"
		" ?1 WHERE o.held = 1 AND o.state = 3 AND NOT EXISTS (SELECT 1 FROM main.hapax_outbox b WHERE b.held = 1 AND"
		" b.state = 2 AND b.ordering_key = o.ordering_key)",
		"n", values, NULL);
}

enum hapax_status hx_outbox_sqlite_retry(
	struct hapax_outbox *base, const char *id, const char *ordering_key, uint64_t *count,
	struct hapax_error *err)
{
	static const char what[] = "could not retry events";
	struct hx_outbox_sqlite *outbox = outbox_sqlite_manage_of(base);
	const void *values[] = {id, ordering_key};
	enum hapax_status status = base->ops->savepoint(base, HX_OUTBOX_BEGIN, err);
	int code;

	if (status != HAPAX_OK)
		return status;
	assert(sqlite3_get_autocommit(outbox->db) == 0);
	code = hx_outbox_sqlite_run(
		outbox,
		"UPDATE main.hapax_outbox SET state = 0, held = 0, attempts = 0, next_ms = 0 WHERE held = 1"
		" AND state = 2 AND (?1 IS NULL OR id = ?1) AND (?2 IS NULL OR ordering_key = ?2)",
		"tt", values, NULL);
	*count = (uint64_t)sqlite3_changes(outbox->db);
	if (code == SQLITE_OK)
		code = hx_outbox_sqlite_release(outbox);
	if (code == SQLITE_OK)
		return base->ops->savepoint(base, HX_OUTBOX_KEEP, err);
	status = hx_outbox_sqlite_error(outbox, code, false, what, err);
	(void)base->ops->savepoint(base, HX_OUTBOX_UNDO, NULL);
	return status;
}

enum hapax_status hx_outbox_sqlite_park(
	struct hapax_outbox *base, const char *id, uint64_t *count, struct hapax_error *err)
{
	struct hx_outbox_sqlite *outbox = outbox_sqlite_manage_of(base);
	const void *values[] = {id};
	int code = hx_outbox_sqlite_run(
		outbox,
		"UPDATE main.hapax_outbox SET state = 2, held = 1, error = 'parked by hand' WHERE id = ?1"
		" AND state IN (0, 3)",
		"t", values, NULL);

	*count = (uint64_t)sqlite3_changes(outbox->db);
	return code == SQLITE_OK
		? HAPAX_OK
		: hx_outbox_sqlite_error(outbox, code, true, "could not park the event", err);
}

enum hapax_status hx_outbox_sqlite_purge(
	struct hapax_outbox *base, const char *relay, int64_t age_ms, unsigned limit,
	uint64_t *count, struct hapax_error *err)
{
	struct hx_outbox_sqlite *outbox = outbox_sqlite_manage_of(base);
	int64_t now_ms = hx_outbox_sqlite_now_ms(), before_ms = now_ms - age_ms, rows = limit;
	const void *values[] = {&before_ms, &rows, relay, &now_ms};
	int code = hx_outbox_sqlite_run(
		outbox,
		"DELETE FROM main.hapax_outbox WHERE seq IN (SELECT seq FROM main.hapax_outbox WHERE state ="
		" 1 AND sent_ms < ?1 AND (?3 IS NULL OR EXISTS (SELECT 1 FROM main.hapax_outbox_part WHERE part"
		" = 0 AND relay = ?3 AND until_ms > ?4)) ORDER BY sent_ms LIMIT ?2)",
		"nntn", values, NULL);

	*count = (uint64_t)sqlite3_changes(outbox->db);
	assert(limit > 0);
	assert(code != SQLITE_OK || *count <= limit);
	return code == SQLITE_OK
		? HAPAX_OK
		: hx_outbox_sqlite_error(outbox, code, true, "could not purge events", err);
}

/* Replace each "@@" with the outbox's database. */
static char *in_main(const char *sql)
{
	sqlite3_str *text = sqlite3_str_new(NULL);
	const char *place;

	while ((place = strstr(sql, "@@")) != NULL) {
		sqlite3_str_append(text, sql, (int)(place - sql));
		sqlite3_str_appendall(text, "main.");
		sql = place + 2;
	}
	sqlite3_str_appendall(text, sql);
	return sqlite3_str_finish(text);
}

enum hapax_status hx_outbox_sqlite_query(
	struct hapax_outbox *base, const char *sql, const char *value, hapax_outbox_row_fn *row,
	void *context, struct hapax_error *err)
{
	struct hx_outbox_sqlite *outbox = outbox_sqlite_manage_of(base);
	struct hapax_field fields[HX_OUTBOX_COLUMNS_MAX];
	char *text = value == NULL ? sqlite3_mprintf("%s", sql) : in_main(sql);
	sqlite3_stmt *statement = NULL;
	int code = text == NULL ? SQLITE_NOMEM
				: sqlite3_prepare_v2(outbox->db, text, -1, &statement, NULL);
	int columns = sqlite3_column_count(statement);

	sqlite3_free(text);
	if (code == SQLITE_OK && value != NULL)
		code = sqlite3_bind_text(statement, 1, value, -1, SQLITE_STATIC);

	if (code == SQLITE_OK && value == NULL && !sqlite3_stmt_readonly(statement)) {
		(void)sqlite3_finalize(statement);
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the query must be a SELECT: it would write");
	}
	if (code == SQLITE_OK && (columns < 1 || columns > HX_OUTBOX_COLUMNS_MAX)) {
		(void)sqlite3_finalize(statement);
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the query has %d columns; it must have 1 to %d",
			columns, HX_OUTBOX_COLUMNS_MAX);
	}
	while (code == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		assert(columns <= HX_OUTBOX_COLUMNS_MAX);
		assert(columns == sqlite3_column_count(statement));
		for (int i = 0; i < columns; i++) {
			const unsigned char *held = sqlite3_column_text(statement, i);

			fields[i].name = hapax_bytes_from_text(sqlite3_column_name(statement, i));
			fields[i].value = (struct hapax_bytes){
				held, (size_t)sqlite3_column_bytes(statement, i)};
		}
		code = row(context, fields, (size_t)columns) == 0 ? SQLITE_OK : SQLITE_DONE;
	}
	(void)sqlite3_finalize(statement);
	if (code == SQLITE_DONE)
		return HAPAX_OK;
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0, "the query failed: %s", sqlite3_errmsg(outbox->db));
}

/* ------------------------------------------------------------------ adopt */

static enum hapax_status check_columns(
	struct hx_outbox_sqlite *outbox, const struct hapax_outbox_table *table,
	struct hapax_error *err)
{
	const char *const columns[] = {table->id,   table->topic,   table->ordering_key,
				       table->type, table->payload, table->status};
	const void *values[] = {table->table, NULL};
	int64_t count = 0;
	int code;

	if (sqlite3_stricmp(table->table, "hapax_outbox") == 0)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "cannot adopt table %s: it is the outbox itself",
			table->table);
	code = hx_outbox_sqlite_run(
		outbox,
		"SELECT count(*) FROM main.sqlite_schema WHERE type = 'table' AND name = ?1", "t",
		values, &count);
	if (code == SQLITE_OK && count == 0)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "table %s does not exist; choose another preset",
			table->table);
	for (size_t i = 0; i < 6 && code == SQLITE_OK; i++) {
		values[1] = columns[i];
		if (columns[i] == NULL)
			continue;
		code = hx_outbox_sqlite_run(
			outbox, "SELECT count(*) FROM pragma_table_info(?1) WHERE name = ?2", "tt",
			values, &count);
		if (code == SQLITE_OK && count == 0)
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"table %s has no column %s; choose another preset, or name the "
				"column with --column FIELD=NAME",
				table->table, columns[i]);
	}
	return code == SQLITE_OK
		? HAPAX_OK
		: hx_outbox_sqlite_error(outbox, code, false, "could not read the table", err);
}

/* The event's id: the row's id as text; a number gets the table's name as prefix. */
static char *id_sql(const struct hapax_outbox_table *table, const char *from)
{
	return sqlite3_mprintf(
		"CASE typeof(%s.\"%w\") WHEN 'integer' THEN %Q || ':' || %s.\"%w\" ELSE"
		" CAST(%s.\"%w\" AS TEXT) END",
		from, table->id, table->table, from, table->id, from, table->id);
}

/* The INSERT that turns a row of the table into an event; from names the source of its columns. */
static char *insert_sql(const struct hapax_outbox_table *table, const char *from)
{
	char *key = table->ordering_key == NULL
		? sqlite3_mprintf("NULL")
		: sqlite3_mprintf("nullif(CAST(%s.\"%w\" AS TEXT), '')", from, table->ordering_key);
	char *type = table->type == NULL
		? sqlite3_mprintf("NULL")
		: sqlite3_mprintf("CAST(%s.\"%w\" AS TEXT)", from, table->type);
	char *id = id_sql(table, from);
	char *hash = sqlite3_mprintf("coalesce(%s, %s)", key, id);
	char *sql = sqlite3_mprintf(
		"INSERT INTO hapax_outbox (id, part, created_ms, topic, ordering_key, type, content_type,"
		" payload, origin, origin_id) SELECT %s, coalesce((unicode(substr(%s, -1)) * 7 +"
		" unicode(substr(%s, -2)) * 3 + unicode(substr(%s, -3)) + length(%s)) & 63, 0),"
		" CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), %Q || %s.\"%w\", %s, %s,"
		" CASE WHEN typeof(%s.\"%w\") = 'text' AND json_valid(%s.\"%w\") THEN 'application/json' END,"
		" coalesce(CAST(%s.\"%w\" AS BLOB), x''), %Q, CAST(%s.\"%w\" AS TEXT)",
		id, hash, hash, hash, hash, table->topic_prefix == NULL ? "" : table->topic_prefix,
		from, table->topic, key, type, from, table->payload, from, table->payload, from,
		table->payload, table->table, from, table->id);

	sqlite3_free(key);
	sqlite3_free(type);
	sqlite3_free(id);
	sqlite3_free(hash);
	return sql;
}

/* Frees sql. */
static int exec_made(struct hx_outbox_sqlite *outbox, char *sql)
{
	int code = sql == NULL ? SQLITE_NOMEM : hx_outbox_sqlite_exec(outbox, sql);

	sqlite3_free(sql);
	return code;
}

int hx_outbox_sqlite_forget_lost(struct hx_outbox_sqlite *outbox)
{
	static const char probe[] = "UPDATE main.hapax_outbox SET state = 1 WHERE false";
	static const char sql[] =
		"SELECT name FROM main.sqlite_schema WHERE type = 'trigger' AND tbl_name = 'hapax_outbox' AND"
		" name LIKE 'hapax!_outbox!_sent!_%' ESCAPE '!' AND substr(name, 19) NOT IN (SELECT name FROM"
		" main.sqlite_schema WHERE type = 'table') LIMIT 1";

	for (;;) {
		sqlite3_stmt *statement = NULL;
		char *drop = NULL;
		/* An invalid trigger shows only when a statement that fires it is prepared. */
		int code = sqlite3_prepare_v2(outbox->db, probe, -1, &statement, NULL);

		(void)sqlite3_finalize(statement);
		if ((code & 0xff) != SQLITE_ERROR)
			return code;
		code = sqlite3_prepare_v2(outbox->db, sql, -1, &statement, NULL);
		if (code == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
			drop = sqlite3_mprintf(
				"DROP TRIGGER main.\"%w\"", sqlite3_column_text(statement, 0));
		(void)sqlite3_finalize(statement);
		if (code != SQLITE_OK || drop == NULL)
			return code;
		code = exec_made(outbox, drop);
		if (code != SQLITE_OK)
			return code;
	}
}

/* How to compare the id with text: by its index, unless the column has no type affinity. */
static char *compare_id(struct hx_outbox_sqlite *outbox, const struct hapax_outbox_table *table)
{
	const void *values[] = {table->table, table->id};
	int64_t is_typed = 0;

	(void)hx_outbox_sqlite_run(
		outbox,
		"SELECT type <> '' AND type NOT LIKE '%BLOB%' FROM pragma_table_info(?1) WHERE name = ?2",
		"tt", values, &is_typed);
	return is_typed ? sqlite3_mprintf("\"%w\"", table->id)
			: sqlite3_mprintf("CAST(\"%w\" AS TEXT)", table->id);
}

static int make_triggers(struct hx_outbox_sqlite *outbox, const struct hapax_outbox_table *table)
{
	char *insert = insert_sql(table, "NEW");
	char *compared = compare_id(outbox, table);
	char *when = table->status == NULL
		? sqlite3_mprintf("")
		: sqlite3_mprintf("WHEN NEW.\"%w\" = %Q", table->status, table->pending);
	int code = exec_made(
		outbox,
		sqlite3_mprintf(
			"DROP TRIGGER IF EXISTS main.\"hapax_outbox_take_%w\";"
			"CREATE TRIGGER main.\"hapax_outbox_take_%w\" AFTER INSERT ON \"%w\" %s BEGIN %s; END;"
			"DROP TRIGGER IF EXISTS main.\"hapax_outbox_sent_%w\"",
			table->table, table->table, table->table, when, insert, table->table));

	if (code == SQLITE_OK && table->status != NULL)
		code = exec_made(
			outbox,
			sqlite3_mprintf(
				"CREATE TRIGGER main.\"hapax_outbox_sent_%w\" AFTER UPDATE OF state ON hapax_outbox"
				" WHEN NEW.state = 1 AND OLD.state <> 1 AND NEW.origin = %Q BEGIN UPDATE \"%w\" SET"
				" \"%w\" = %Q WHERE %s = NEW.origin_id; END",
				table->table, table->table, table->table, table->status,
				table->processed, compared));
	sqlite3_free(insert);
	sqlite3_free(compared);
	sqlite3_free(when);
	return code;
}

static int take_existing(
	struct hx_outbox_sqlite *outbox, const struct hapax_outbox_table *table, uint64_t *count)
{
	char *insert = insert_sql(table, "t");
	char *id = id_sql(table, "t");
	char *when = table->status == NULL
		? sqlite3_mprintf("true")
		: sqlite3_mprintf("t.\"%w\" = %Q", table->status, table->pending);
	/* An earlier version gave numeric ids the second form. */
	int code = exec_made(
		outbox,
		sqlite3_mprintf(
			"%s FROM main.\"%w\" t WHERE %s AND NOT EXISTS (SELECT 1 FROM main.hapax_outbox o WHERE"
			" o.id = %s) AND NOT EXISTS (SELECT 1 FROM main.hapax_outbox o WHERE o.id ="
			" CAST(t.\"%w\" AS TEXT) AND o.origin = %Q) ORDER BY t.rowid",
			insert, table->table, when, id, table->id, table->table));

	*count = (uint64_t)sqlite3_changes(outbox->db);
	sqlite3_free(insert);
	sqlite3_free(id);
	sqlite3_free(when);
	return code;
}

enum hapax_status hx_outbox_sqlite_adopt(
	struct hapax_outbox *base, const struct hapax_outbox_table *table, bool with_existing,
	uint64_t *count, struct hapax_error *err)
{
	struct hx_outbox_sqlite *outbox = outbox_sqlite_manage_of(base);
	enum hapax_status status = check_columns(outbox, table, err);
	int code;

	if (status == HAPAX_OK)
		status = base->ops->savepoint(base, HX_OUTBOX_BEGIN, err);
	if (status != HAPAX_OK)
		return status;
	/* Triggers and rows come together, or not at all. */
	assert(sqlite3_get_autocommit(outbox->db) == 0);
	code = make_triggers(outbox, table);
	if (code == SQLITE_OK && with_existing)
		code = take_existing(outbox, table, count);
	if (code == SQLITE_OK)
		return base->ops->savepoint(base, HX_OUTBOX_KEEP, err);
	status = hx_outbox_sqlite_error(outbox, code, false, "could not adopt the table", err);
	(void)base->ops->savepoint(base, HX_OUTBOX_UNDO, NULL);
	return status;
}

/* ------------------------------------------------------------------ audit */

/* When the statements of an audit must end. */
struct audit_limit {
	const struct hx_event *stop;
	int64_t deadline_ns;
};

/* Nonzero interrupts the statement. */
static int is_over(void *context)
{
	const struct audit_limit *limit = context;

	return (limit->stop != NULL && hx_event_is_set(limit->stop)) ||
		hx_clock_mono_ns() >= limit->deadline_ns;
}

/* Look for the event of the query's row. Returns SQLite's code of the look-up. */
static int check_row(sqlite3_stmt *query, sqlite3_stmt *find, struct hx_outbox_audit *audit)
{
	const char *value = (const char *)sqlite3_column_text(query, 0);
	int code = sqlite3_bind_text(find, 1, value, sqlite3_column_bytes(query, 0), SQLITE_STATIC);

	if (code == SQLITE_OK)
		code = sqlite3_step(find);
	(void)sqlite3_reset(find);
	if (code != SQLITE_ROW && code != SQLITE_DONE)
		return code;
	audit->checked++;
	if (code == SQLITE_DONE && audit->missing++ == 0)
		(void)snprintf(
			audit->example, sizeof(audit->example), "%s", value == NULL ? "" : value);
	return SQLITE_OK;
}

static enum hapax_status audit_error(
	struct hx_outbox_sqlite *outbox, int code, const struct audit_limit *limit,
	struct hapax_error *err)
{
	if ((code & 0xff) != SQLITE_INTERRUPT)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the query failed: %s",
			sqlite3_errmsg(outbox->db));
	if (hx_clock_mono_ns() >= limit->deadline_ns)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "the query took too long");
	return hx_error_set(err, HAPAX_ERR_UNAVAILABLE, 0, "the query was stopped");
}

/* Both statements read one state: the query is active until the last look-up. */
enum hapax_status hx_outbox_sqlite_audit(
	struct hapax_outbox *base, struct hx_outbox_audit *audit, struct hapax_error *err)
{
	struct hx_outbox_sqlite *outbox = outbox_sqlite_manage_of(base);
	struct audit_limit limit = {
		audit->stop, hx_clock_mono_ns() + audit->timeout_ms * HX_NS_PER_MS};
	sqlite3_stmt *query = NULL, *find = NULL;
	enum hapax_status status = HAPAX_OK;
	char sql[128];
	int code;

	(void)snprintf(
		sql, sizeof(sql), "SELECT 1 FROM main.hapax_outbox WHERE %s = ?1 LIMIT 1",
		audit->by);
	sqlite3_progress_handler(outbox->db, AUDIT_STEPS, is_over, &limit);
	code = sqlite3_prepare_v2(outbox->db, audit->query, -1, &query, NULL);
	if (code == SQLITE_OK && (!sqlite3_stmt_readonly(query) || sqlite3_column_count(query) < 1))
		status = hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the query must be a SELECT with a column");
	if (code == SQLITE_OK && status == HAPAX_OK)
		code = sqlite3_prepare_v2(outbox->db, sql, -1, &find, NULL);
	while (code == SQLITE_OK && status == HAPAX_OK &&
	       (code = sqlite3_step(query)) == SQLITE_ROW)
		code = check_row(query, find, audit);
	if (code != SQLITE_OK && code != SQLITE_DONE)
		status = audit_error(outbox, code, &limit, err);
	(void)sqlite3_finalize(query);
	(void)sqlite3_finalize(find);
	sqlite3_progress_handler(outbox->db, 0, NULL, NULL);
	return status;
}
