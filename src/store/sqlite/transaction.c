/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transaction.c - one read or one change of the ledger.
 */
#include "store/sqlite/transaction.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "store/sqlite/row.h"
#include "store/sqlite/sqlite_schema.h"

/* An older mark is renewed in a write that happens anyway: a reboot loses no more time. */
enum { MARK_AGE_MS_MAX = 10 * 1000 };

static bool boot_is_known(const struct hapax_clock *clock)
{
	unsigned char boot_id[HAPAX_BOOT_ID_SIZE];

	clock->boot_id(clock->context, boot_id);
	return hx_clock_boot_id_is_known(boot_id);
}

/*
 * If the boot is unknown, no mark is ever current. The process trusts the wall clock once, when
 * it first reads the ledger. Then it uses its own boot time, but never goes behind what others
 * have written. It leaves marks of processes that know their boot unchanged.
 */
static void read_own_clock(struct hx_sqlite_transaction *transaction)
{
	struct hx_sqlite_connection *connection = transaction->connection;
	const struct hapax_clock *clock = transaction->options->clock;
	struct hx_clock_mark *own = &connection->own_mark;
	struct hx_clock_mark *mark = &transaction->meta.mark;
	int64_t behind_ms;

	if (!connection->has_own_mark) {
		*own = *mark;
		hx_clock_mark_reboot(own, clock, transaction->options->clock_step_ms_max);
		connection->has_own_mark = true;
	}
	behind_ms = mark->store_ms - hx_clock_mark_now(own, clock);
	if (behind_ms > 0)
		own->store_ms += behind_ms;
	transaction->now_ms = hx_clock_mark_now(own, clock);
	transaction->is_mark_foreign = hx_clock_boot_id_is_known(mark->boot_id);
	if (!transaction->is_mark_foreign)
		*mark = *own;
}

/*
 * Compute the time. A mark of an earlier boot is renewed, and must be written so that others
 * compute the same time: a read transaction cannot do that.
 */
static void read_clock(struct hx_sqlite_transaction *transaction)
{
	const struct hapax_clock *clock = transaction->options->clock;
	struct hx_clock_mark *mark = &transaction->meta.mark;

	if (!boot_is_known(clock)) {
		read_own_clock(transaction);
		return;
	}
	if (!hx_clock_mark_is_current(mark, clock)) {
		hx_clock_mark_reboot(mark, clock, transaction->options->clock_step_ms_max);
		transaction->needs_write = transaction->access == HX_SQLITE_READ;
		transaction->is_dirty = transaction->access == HX_SQLITE_WRITE;
	}
	transaction->now_ms = hx_clock_mark_now(mark, clock);
}

/*
 * If a newer hapax migrates the file while it is open, we must not write it: fatal, and the next
 * open explains it.
 */
static int read_ledger(struct hx_sqlite_transaction *transaction)
{
	int code = hx_sqlite_meta_load(transaction->connection, &transaction->meta);

	if (code == SQLITE_OK && transaction->meta.version != HX_SQLITE_SCHEMA_VERSION)
		code = SQLITE_SCHEMA;
	if (code == SQLITE_OK)
		read_clock(transaction);
	return code;
}

/*
 * In write-ahead mode SQLite continues with a file that was moved or removed. Other processes
 * then create a new one under its name, where keys claimed here would run again.
 */
static int check_name(struct hx_sqlite_connection *connection)
{
	int has_moved = 0;

	if (connection->is_joined)
		return SQLITE_OK;
	(void)sqlite3_file_control(connection->db, "main", SQLITE_FCNTL_HAS_MOVED, &has_moved);
	return has_moved ? SQLITE_READONLY_DBMOVED : SQLITE_OK;
}

static int begin_once(struct hx_sqlite_transaction *transaction)
{
	enum hx_sqlite_statement which = HX_SQLITE_BEGIN_READ;
	int code;

	if (transaction->is_nested)
		which = HX_SQLITE_SAVEPOINT;
	else if (transaction->access == HX_SQLITE_WRITE)
		which = HX_SQLITE_BEGIN_WRITE;
	code = hx_sqlite_run(transaction->connection, which);
	if (code != SQLITE_OK)
		return code;
	code = check_name(transaction->connection);
	if (code == SQLITE_OK)
		code = read_ledger(transaction);
	if (code != SQLITE_OK)
		hx_sqlite_transaction_abort(transaction);
	return code;
}

int hx_sqlite_transaction_begin(
	struct hx_sqlite_transaction *transaction, struct hx_sqlite_connection *connection,
	const struct hapax_store_options *options, enum hx_sqlite_access access)
{
	int code;

	memset(transaction, 0, sizeof(*transaction));
	transaction->connection = connection;
	transaction->options = options;
	transaction->access = access;
	transaction->is_nested = sqlite3_get_autocommit(connection->db) == 0;
	assert(!transaction->is_nested || connection->is_joined);
	/*
	 * Not every BUSY goes through the busy handler: not when another process recovers the
	 * log, and not on a joined connection. Inside the caller's transaction waiting is
	 * useless: the lock may be refused because of what the transaction has read.
	 */
	do {
		code = begin_once(transaction);
	} while (hx_sqlite_is_busy(code) && !transaction->is_nested &&
		 hx_sqlite_connection_wait(connection));
	return code;
}

void hx_sqlite_transaction_abort(struct hx_sqlite_transaction *transaction)
{
	struct hx_sqlite_connection *connection = transaction->connection;

	/* Some errors end the transaction themselves. */
	if (sqlite3_get_autocommit(connection->db) != 0)
		return;
	if (transaction->is_nested) {
		(void)hx_sqlite_run(connection, HX_SQLITE_SAVEPOINT_ROLLBACK);
		(void)hx_sqlite_run(connection, HX_SQLITE_SAVEPOINT_RELEASE);
		return;
	}
	(void)hx_sqlite_run(connection, HX_SQLITE_ROLLBACK);
	if (sqlite3_get_autocommit(connection->db) == 0)
		atomic_store(connection->is_failed, 1);
}

bool hx_sqlite_transaction_has_old_mark(const struct hx_sqlite_transaction *transaction)
{
	return !transaction->is_mark_foreign &&
		transaction->now_ms - transaction->meta.mark.store_ms > MARK_AGE_MS_MAX;
}

static int save_ledger(struct hx_sqlite_transaction *transaction)
{
	struct hx_clock_mark *mark = &transaction->meta.mark;

	if (!transaction->is_dirty)
		return SQLITE_OK;
	assert(transaction->access == HX_SQLITE_WRITE);
	if (hx_sqlite_transaction_has_old_mark(transaction))
		hx_clock_mark_advance(mark, transaction->options->clock);
	return hx_sqlite_meta_save(transaction->connection, &transaction->meta);
}

int hx_sqlite_transaction_commit(struct hx_sqlite_transaction *transaction)
{
	int code = save_ledger(transaction);

	if (code == SQLITE_OK && transaction->is_nested) {
		code = hx_sqlite_run(transaction->connection, HX_SQLITE_SAVEPOINT_RELEASE);
	} else if (code == SQLITE_OK) {
		if (transaction->is_dirty)
			transaction->stage = HX_SQLITE_IN_COMMIT;
		code = hx_sqlite_run(transaction->connection, HX_SQLITE_COMMIT);
	}
	if (code != SQLITE_OK)
		hx_sqlite_transaction_abort(transaction);
	return code;
}

static int change_scope(
	struct hx_sqlite_transaction *transaction, enum hx_sqlite_statement which,
	struct hapax_bytes tenant, struct hapax_bytes group)
{
	sqlite3_stmt *statement;
	int code = hx_sqlite_statement(transaction->connection, which, &statement);

	if (code == SQLITE_OK)
		code = hx_sqlite_bind_bytes(statement, 1, tenant);
	if (code == SQLITE_OK)
		code = hx_sqlite_bind_bytes(statement, 2, group);
	return code == SQLITE_OK ? hx_sqlite_finish(statement) : code;
}

/* A scope without parked records has no row. */
static int count_unparked(
	struct hx_sqlite_transaction *transaction, struct hapax_bytes tenant,
	struct hapax_bytes group)
{
	int code = change_scope(transaction, HX_SQLITE_SCOPE_UNPARK, tenant, group);

	return code == SQLITE_OK ? change_scope(transaction, HX_SQLITE_SCOPE_DROP, tenant, group)
				 : code;
}

/* Count a record's change of state in meta and hapax_scope; HAPAX_STATE_ABSENT: no record. */
static int count_change(
	struct hx_sqlite_transaction *transaction, struct hapax_bytes tenant,
	struct hapax_bytes group, enum hapax_state before, enum hapax_state after)
{
	struct hx_sqlite_meta *meta = &transaction->meta;

	assert(transaction->access == HX_SQLITE_WRITE);
	transaction->is_dirty = true;
	if (before == after)
		return SQLITE_OK;
	if (before != HAPAX_STATE_ABSENT) {
		if (meta->counts[before] == 0)
			return SQLITE_CORRUPT;
		meta->counts[before]--;
	}
	if (after != HAPAX_STATE_ABSENT)
		meta->counts[after]++;
	if (before == HAPAX_STATE_PARKED)
		return count_unparked(transaction, tenant, group);
	if (after == HAPAX_STATE_PARKED)
		return change_scope(transaction, HX_SQLITE_SCOPE_PARK, tenant, group);
	return SQLITE_OK;
}

int hx_sqlite_transaction_remove(
	struct hx_sqlite_transaction *transaction, int64_t id, const struct hapax_record *old)
{
	sqlite3_stmt *statement;
	int code =
		hx_sqlite_statement(transaction->connection, HX_SQLITE_RECORD_DELETE, &statement);

	if (code == SQLITE_OK)
		code = sqlite3_bind_int64(statement, 1, id);
	if (code == SQLITE_OK)
		code = hx_sqlite_finish(statement);
	if (code != SQLITE_OK)
		return code;
	return count_change(transaction, old->tenant, old->group, old->state, HAPAX_STATE_ABSENT);
}

/* Parameters after those of the row. */
enum { ROW_ID = 22, ROW_TENANT = 22, ROW_GROUP = 23, ROW_KEY = 24 };

int hx_sqlite_transaction_replace(
	struct hx_sqlite_transaction *transaction, int64_t id, enum hapax_state before,
	const struct hapax_record *next)
{
	sqlite3_stmt *statement;
	int code =
		hx_sqlite_statement(transaction->connection, HX_SQLITE_RECORD_UPDATE, &statement);

	if (code == SQLITE_OK)
		code = hx_sqlite_row_bind(statement, next);
	if (code == SQLITE_OK)
		code = sqlite3_bind_int64(statement, ROW_ID, id);
	if (code == SQLITE_OK)
		code = hx_sqlite_finish(statement);
	if (code != SQLITE_OK)
		return code;
	return count_change(transaction, next->tenant, next->group, before, next->state);
}

int hx_sqlite_transaction_insert(
	struct hx_sqlite_transaction *transaction, const struct hapax_record *next)
{
	sqlite3_stmt *statement;
	int code =
		hx_sqlite_statement(transaction->connection, HX_SQLITE_RECORD_INSERT, &statement);

	if (code == SQLITE_OK)
		code = hx_sqlite_row_bind(statement, next);
	if (code == SQLITE_OK)
		code = hx_sqlite_bind_bytes(statement, ROW_TENANT, next->tenant);
	if (code == SQLITE_OK)
		code = hx_sqlite_bind_bytes(statement, ROW_GROUP, next->group);
	if (code == SQLITE_OK)
		code = hx_sqlite_bind_bytes(statement, ROW_KEY, next->key);
	if (code == SQLITE_OK)
		code = hx_sqlite_finish(statement);
	if (code != SQLITE_OK)
		return code;
	return count_change(
		transaction, next->tenant, next->group, HAPAX_STATE_ABSENT, next->state);
}

int hx_sqlite_transaction_bytes(struct hx_sqlite_transaction *transaction, uint64_t *ret_bytes)
{
	struct hx_sqlite_connection *connection = transaction->connection;
	int64_t pages = 0, free_pages = 0, page_size = 0;
	int code = hx_sqlite_run_number(connection, HX_SQLITE_PAGE_COUNT, &pages);

	if (code == SQLITE_OK)
		code = hx_sqlite_run_number(connection, HX_SQLITE_PAGE_FREE, &free_pages);
	if (code == SQLITE_OK)
		code = hx_sqlite_run_number(connection, HX_SQLITE_PAGE_SIZE, &page_size);
	if (code == SQLITE_OK)
		*ret_bytes = (uint64_t)(pages - free_pages) * (uint64_t)page_size;
	return code;
}
