/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox_sqlite_relay.c - the operations of a relay on an outbox in SQLite; see
 * outbox_postgres.sql.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "outbox/sqlite/outbox_sqlite.h"

enum {
	PAYLOAD_COLUMN = 12, /* in the relay's query */
	/* The longest headers fit; a row of the largest size fits into an empty batch. */
	COLUMN_SIZE_MAX = 2 * HX_OUTBOX_HEADERS_SIZE_MAX + 1,
};

static struct hx_outbox_sqlite *outbox_sqlite_relay_of(struct hapax_outbox *outbox)
{
	struct hx_outbox_sqlite *mine = (struct hx_outbox_sqlite *)outbox;

	hx_outbox_sqlite_assert(mine);
	/* A relay has a connection of its own, and no transaction between two calls. */
	assert(!mine->is_joined);
	/* Without memory even a ROLLBACK fails. */
	if (sqlite3_get_autocommit(mine->db) == 0)
		(void)hx_outbox_sqlite_exec(mine, "ROLLBACK");
	return mine;
}

/* Take free partitions up to the relay's share, or give back those above it. */
static int level(
	struct hx_outbox_sqlite *outbox, const char *relay, int64_t now_ms, int64_t until_ms,
	int64_t *count)
{
	const void *values[] = {relay, &now_ms, &until_ms, NULL};
	int64_t relays = 1, share, change;
	int code = hx_outbox_sqlite_run(
		outbox, "SELECT count(*) FROM main.hapax_outbox_relay", "", NULL, &relays);

	if (relays < 1)
		relays = 1;
	share = (HX_OUTBOX_PARTITIONS + relays - 1) / relays;
	/* The shares of all relays together cover all partitions. */
	assert(share > 0);
	assert(share * relays >= HX_OUTBOX_PARTITIONS);
	assert(now_ms < until_ms);
	change = *count - share;
	if (change == 0 || code != SQLITE_OK)
		return code;
	if (change > 0) {
		values[1] = &change;
		code = hx_outbox_sqlite_run(
			outbox,
			"UPDATE main.hapax_outbox_part SET relay = NULL, until_ms = 0 WHERE part IN (SELECT"
			" part FROM main.hapax_outbox_part WHERE relay = ?1 ORDER BY part DESC LIMIT ?2)",
			"tn", values, NULL);
	} else {
		change = -change;
		values[3] = &change;
		code = hx_outbox_sqlite_run(
			outbox, "UPDATE main.hapax_outbox_meta SET token = token + 1", "", NULL,
			NULL);
		if (code == SQLITE_OK)
			code = hx_outbox_sqlite_run(
				outbox,
				"UPDATE main.hapax_outbox_part SET relay = ?1, until_ms = ?3, token = (SELECT"
				" token FROM main.hapax_outbox_meta) WHERE part IN (SELECT part FROM"
				" main.hapax_outbox_part WHERE until_ms < ?2 OR relay NOT IN (SELECT relay"
				" FROM main.hapax_outbox_relay) ORDER BY part LIMIT ?4)",
				"tnnn", values, NULL);
	}
	if (code == SQLITE_OK)
		code = hx_outbox_sqlite_run(
			outbox, "SELECT count(*) FROM main.hapax_outbox_part WHERE relay = ?1", "t",
			values, count);
	return code;
}

enum hapax_status hx_outbox_sqlite_renew(
	struct hapax_outbox *base, const char *relay, const char *owner, int64_t lease_ms,
	bool is_idle, unsigned *ret_partitions, struct hapax_error *err)
{
	static const char what[] = "could not lease partitions";
	struct hx_outbox_sqlite *outbox = outbox_sqlite_relay_of(base);
	int64_t now_ms = hx_outbox_sqlite_now_ms();
	int64_t until_ms = now_ms + lease_ms, count = 0;
	const void *values[] = {relay, owner, &until_ms, &lease_ms, &now_ms};
	enum hapax_status status = hx_outbox_sqlite_begin(outbox, what, err);
	int code;

	assert(lease_ms > 0);
	(void)is_idle;
	if (status != HAPAX_OK)
		return status;
	code = hx_outbox_sqlite_run(
		outbox,
		"INSERT INTO main.hapax_outbox_relay (relay, owner, until_ms, lease_ms) VALUES (?1, ?2, ?3,"
		" ?4) ON CONFLICT (relay) DO UPDATE SET until_ms = excluded.until_ms, lease_ms ="
		" excluded.lease_ms",
		"ttnn", values, NULL);
	if (code == SQLITE_OK)
		code = hx_outbox_sqlite_forget_lost(outbox);
	if (code == SQLITE_OK)
		code = hx_outbox_sqlite_run(
			outbox,
			"DELETE FROM main.hapax_outbox_relay WHERE until_ms < ?1 OR until_ms > ?1 + lease_ms"
			" + max(lease_ms, 60000)",
			"n", values + 4, NULL);
	values[1] = &until_ms;
	if (code == SQLITE_OK)
		code = hx_outbox_sqlite_run(
			outbox, "UPDATE main.hapax_outbox_part SET until_ms = ?2 WHERE relay = ?1",
			"tn", values, NULL);
	count = sqlite3_changes(outbox->db);
	if (code == SQLITE_OK)
		code = level(outbox, relay, now_ms, until_ms, &count);
	*ret_partitions = (unsigned)count;
	return hx_outbox_sqlite_end(outbox, code, what, err);
}

enum hapax_status hx_outbox_sqlite_settle(
	struct hapax_outbox *base, const char *relay, int64_t pause_ms_max, struct hapax_error *err)
{
	static const char what[] = "could not check waiting rows";
	struct hx_outbox_sqlite *outbox = outbox_sqlite_relay_of(base);
	int64_t now_ms = hx_outbox_sqlite_now_ms(), parked = 0;
	const void *values[] = {relay, &now_ms, &pause_ms_max};
	enum hapax_status status = hx_outbox_sqlite_begin(outbox, what, err);
	int code;

	if (status != HAPAX_OK)
		return status;
	code = hx_outbox_sqlite_run(
		outbox,
		"UPDATE main.hapax_outbox AS o INDEXED BY hapax_outbox_held SET next_ms = ?2 WHERE o.held ="
		" 1 AND o.next_ms > ?2 + ?3 + 60000 AND o.part IN (SELECT part FROM"
		" main.hapax_outbox_part WHERE relay = ?1)",
		"tnn", values, NULL);
	if (code == SQLITE_OK)
		code = hx_outbox_sqlite_run(
			outbox,
			"SELECT count(*) FROM main.hapax_outbox INDEXED BY hapax_outbox_held WHERE held = 1"
			" AND state = 2",
			"", NULL, &parked);
	/* Scan all pending rows only if some row is parked. */
	if (code == SQLITE_OK && parked > 0)
		code = hx_outbox_sqlite_run(
			outbox,
			"UPDATE main.hapax_outbox AS o SET state = 3, held = 1 WHERE o.state = 0 AND EXISTS ("
			" SELECT 1 FROM main.hapax_outbox b WHERE b.held = 1 AND b.state = 2"
			" AND b.ordering_key = o.ordering_key AND b.seq < o.seq) AND o.part IN ("
			" SELECT part FROM main.hapax_outbox_part WHERE relay = ?1)",
			"t", values, NULL);
	if (code == SQLITE_OK)
		code = hx_outbox_sqlite_release(outbox);
	return hx_outbox_sqlite_end(outbox, code, what, err);
}

enum hapax_status hx_outbox_sqlite_leave(
	struct hapax_outbox *base, const char *relay, struct hapax_error *err)
{
	static const char what[] = "could not give back the partitions";
	struct hx_outbox_sqlite *outbox = outbox_sqlite_relay_of(base);
	const void *values[] = {relay};
	enum hapax_status status = hx_outbox_sqlite_begin(outbox, what, err);
	int code;

	if (status != HAPAX_OK)
		return status;
	code = hx_outbox_sqlite_run(
		outbox,
		"UPDATE main.hapax_outbox_part SET relay = NULL, until_ms = 0 WHERE relay = ?1",
		"t", values, NULL);
	if (code == SQLITE_OK)
		code = hx_outbox_sqlite_run(
			outbox, "DELETE FROM main.hapax_outbox_relay WHERE relay = ?1", "t", values,
			NULL);
	return hx_outbox_sqlite_end(outbox, code, what, err);
}

void hx_outbox_sqlite_wait(struct hapax_outbox *outbox, int64_t wait_ns)
{
	assert(outbox->has_reactor);
	hx_reactor_turn(&outbox->reactor, wait_ns);
}

/* ------------------------------------------------------------------ fetch */

/*
 * Copy a column to memory. *ret gets its offset, from 1, and size; the offset becomes a pointer
 * when memory has stopped growing. Text beyond the limit is cut: the row is refused anyway.
 */
static enum hapax_status outbox_sqlite_relay_keep(
	struct hapax_buf *memory, sqlite3_stmt *statement, int column, struct hapax_bytes *ret)
{
	size_t place = memory->size + 1;
	enum hapax_status status;

	assert(column <= PAYLOAD_COLUMN);
	*ret = (struct hapax_bytes){NULL, 0};
	if (sqlite3_column_type(statement, column) == SQLITE_NULL)
		return HAPAX_OK;
	ret->data = (const void *)place;
	ret->size = (size_t)sqlite3_column_bytes(statement, column);
	if (column < PAYLOAD_COLUMN && ret->size > COLUMN_SIZE_MAX)
		ret->size = COLUMN_SIZE_MAX;
	status = hx_buf_append(memory, sqlite3_column_blob(statement, column), ret->size);
	assert(status != HAPAX_OK || memory->size == place - 1 + ret->size);
	return status;
}

static void point(struct hapax_bytes *bytes, const struct hapax_buf *memory)
{
	size_t place = (size_t)bytes->data;

	/* It is still an offset, and the bytes are where outbox_sqlite_relay_keep() put them. */
	assert(place <= memory->size + 1);
	assert(place == 0 || place - 1 + bytes->size <= memory->size);
	assert(place != 0 || bytes->size == 0);
	if (bytes->data != NULL)
		bytes->data = bytes->size == 0 ? (const void *)"" : memory->data + place - 1;
}

static enum hapax_status read_row(
	struct hx_outbox_row *row, sqlite3_stmt *statement, struct hapax_buf *memory)
{
	size_t before = memory->size;
	enum hapax_status status = HAPAX_OK;

	row->seq = sqlite3_column_int64(statement, 0);
	row->token = sqlite3_column_int64(statement, 1);
	row->attempts = sqlite3_column_int64(statement, 2);
	row->created_ms = sqlite3_column_int64(statement, 3);
	for (int i = 0; i < HX_OUTBOX_TEXTS && status == HAPAX_OK; i++)
		status = outbox_sqlite_relay_keep(
			memory, statement, 4 + i, hx_outbox_row_text(row, i));
	assert(memory->size >= before);
	if (status != HAPAX_OK)
		memory->size = before;
	return status;
}

enum hapax_status hx_outbox_sqlite_fetch(
	struct hapax_outbox *base, const char *relay, unsigned limit, struct hx_outbox_batch *batch,
	struct hapax_error *err)
{
	static const char sql[] =
		"SELECT o.seq, p.token, o.attempts, o.created_ms, o.id, o.topic, o.ordering_key, o.type,"
		" o.source, o.subject, o.content_type, o.headers, CASE WHEN length(o.payload) <= 16777216"
		" THEN o.payload END"
		" FROM main.hapax_outbox o INDEXED BY hapax_outbox_pending"
		" CROSS JOIN main.hapax_outbox_part p ON p.part = o.part"
		" WHERE o.state = 0 AND p.relay = ?1 AND p.until_ms > ?2 AND o.next_ms <= ?2"
		" AND NOT EXISTS (SELECT 1 FROM main.hapax_outbox b WHERE b.held = 1"
		" AND b.ordering_key = o.ordering_key AND b.seq < o.seq"
		" AND (b.state <> 0 OR b.next_ms > ?2)) ORDER BY o.seq LIMIT ?3";
	struct hx_outbox_sqlite *outbox = outbox_sqlite_relay_of(base);
	sqlite3_stmt *statement = NULL;
	size_t payload = 0;
	int code = sqlite3_prepare_v2(outbox->db, sql, -1, &statement, NULL);

	assert(limit > 0);
	assert(limit <= HX_OUTBOX_BATCH_MAX);
	assert(code != SQLITE_OK || sqlite3_column_count(statement) == PAYLOAD_COLUMN + 1);
	batch->count = 0;
	hx_buf_clear(&batch->memory);
	if (code == SQLITE_OK)
		code = sqlite3_bind_text(statement, 1, relay, -1, SQLITE_STATIC);
	if (code == SQLITE_OK)
		code = sqlite3_bind_int64(statement, 2, hx_outbox_sqlite_now_ms());
	if (code == SQLITE_OK)
		code = sqlite3_bind_int64(statement, 3, (int64_t)limit);
	while (code == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW) {
		assert(batch->count < limit);
		/* A row that does not fit waits for the next batch. */
		if (read_row(&batch->rows[batch->count], statement, &batch->memory) != HAPAX_OK)
			break;
		payload += batch->rows[batch->count++].payload.size;
		if (payload >= HX_OUTBOX_BATCH_BYTES)
			break;
	}
	if (code == SQLITE_OK)
		code = sqlite3_reset(statement);
	(void)sqlite3_finalize(statement);
	if (code != SQLITE_OK)
		return hx_outbox_sqlite_error(
			outbox, code, false, "could not read the outbox", err);
	for (size_t i = 0; i < batch->count; i++) {
		for (int k = 0; k < HX_OUTBOX_TEXTS; k++)
			point(hx_outbox_row_text(&batch->rows[i], k), &batch->memory);
		/* In the order of the outbox: an ordering key keeps it. */
		assert(i == 0 || batch->rows[i - 1].seq < batch->rows[i].seq);
	}
	return HAPAX_OK;
}

/* ------------------------------------------------------------------ mark */

/*
 * The trigger that reports a sent row to its adopted table (hx_outbox_sqlite_adopt()) may fail, or
 * the table may be gone. The outbox must still mark the row: it clears origin and says so in error.
 * If the table is gone, its trigger is dropped, because SQLite cannot bypass it.
 */
static int mark_untold(
	struct hx_outbox_sqlite *outbox, const struct hx_outbox_row *row, int64_t now_ms)
{
	static const char sql[] =
		"UPDATE main.hapax_outbox SET state = 1, sent_ms = ?2, held = 0, attempts = attempts + 1,"
		" error = 'sent, but could not update its row in ' || coalesce(origin, '?') || ': ' || ?3,"
		" origin = NULL WHERE seq = ?1 AND state <> 1";
	char why[128];
	const void *values[] = {&row->seq, &now_ms, why};
	int code;

	assert(row->outcome == HX_OUTBOX_SENT);
	(void)snprintf(why, sizeof(why), "%s", sqlite3_errmsg(outbox->db));
	code = hx_outbox_sqlite_run(outbox, sql, "nnt", values, NULL);
	if ((code & 0xff) != SQLITE_ERROR)
		return code;
	code = hx_outbox_sqlite_forget_lost(outbox);
	return code == SQLITE_OK ? hx_outbox_sqlite_run(outbox, sql, "nnt", values, NULL) : code;
}

static int mark_sent(
	struct hx_outbox_sqlite *outbox, const struct hx_outbox_row *row, int64_t now_ms)
{
	const void *values[] = {&row->seq, &now_ms};
	int code = hx_outbox_sqlite_run(
		outbox,
		"UPDATE main.hapax_outbox SET state = 1, sent_ms = ?2, held = 0, attempts = attempts"
		" + 1 WHERE seq = ?1 AND state <> 1",
		"nn", values, NULL);

	assert(!row->is_parked);
	if ((code & 0xff) == SQLITE_ERROR || (code & 0xff) == SQLITE_CONSTRAINT)
		code = mark_untold(outbox, row, now_ms);
	return code;
}

static int mark_row(
	struct hx_outbox_sqlite *outbox, const struct hx_outbox_row *row, int64_t now_ms)
{
	int64_t state = row->is_parked ? 2 : 0, next_ms = now_ms + row->pause_ms;
	const void *failure[] = {
		&row->seq, &row->token, &state, &next_ms, &row->attempts, row->error};

	/* Only rows that failed are parked or paused, and never both. */
	assert(row->pause_ms >= 0);
	assert(!row->is_parked || row->pause_ms == 0);
	assert(row->outcome == HX_OUTBOX_FAILED || row->outcome == HX_OUTBOX_REFUSED ||
	       next_ms == now_ms);
	assert(row->outcome != HX_OUTBOX_REFUSED || row->is_parked);
	switch (row->outcome) {
	case HX_OUTBOX_UNDECIDED: return SQLITE_OK;
	case HX_OUTBOX_SENT: return mark_sent(outbox, row, now_ms);
	case HX_OUTBOX_FAILED:
	case HX_OUTBOX_REFUSED:
		return hx_outbox_sqlite_run(
			outbox,
			"UPDATE main.hapax_outbox AS o SET attempts = o.attempts + 1, error = ?6, held = 1,"
			" state = ?3, next_ms = ?4 WHERE o.seq = ?1 AND o.state = 0 AND o.attempts = ?5 AND"
			" EXISTS (SELECT 1 FROM main.hapax_outbox_part p WHERE p.part = o.part AND p.token ="
			" ?2)",
			"nnnnnt", failure, NULL);
	}
	return SQLITE_OK;
}

enum hapax_status hx_outbox_sqlite_mark(
	struct hapax_outbox *base, struct hx_outbox_batch *batch, struct hapax_error *err)
{
	static const char what[] = "could not mark rows";
	struct hx_outbox_sqlite *outbox = outbox_sqlite_relay_of(base);
	int64_t now_ms = hx_outbox_sqlite_now_ms();
	enum hapax_status status = hx_outbox_sqlite_begin(outbox, what, err);
	int code = SQLITE_OK;

	assert(batch->count <= HX_OUTBOX_BATCH_MAX);
	if (status != HAPAX_OK)
		return status;
	for (size_t i = 0; i < batch->count && code == SQLITE_OK; i++)
		code = mark_row(outbox, &batch->rows[i], now_ms);
	return hx_outbox_sqlite_end(outbox, code, what, err);
}
