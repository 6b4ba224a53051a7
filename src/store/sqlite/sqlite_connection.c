/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_connection.c - one SQLite connection to a ledger.
 */
#include "store/sqlite/sqlite_connection.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/io.h"
#include "base/thread.h"
#include "store/sqlite/file.h"
#include "store/sqlite/sqlite_reserve.h"

enum {
	/*
	 * 4,000 pages are 16 MB. A page that several commits change is copied once per
	 * checkpoint, so a longer log means less to copy. It also means more to read after a
	 * crash, which takes milliseconds at 16 MB.
	 */
	CHECKPOINT_FRAMES = 4000,

	/* So long a log means that readers never let it restart: insist, a little. */
	RESTART_FRAMES = 16 * CHECKPOINT_FRAMES,

	/* On a full disk the log must stay within the reserve. */
	SHORT_FRAMES = 32,

	/* SQLite takes no path longer than 512 bytes. */
	DIRECTORY_SIZE_MAX = 1024,
};

#define RESTART_WAIT_MS 100

/* First waits are shorter than a commit; later ones fit the gaps of a sweep. */
#define WAIT_NS_FIRST (HX_NS_PER_MS / 10)
#define WAIT_NS_LAST  (5 * HX_NS_PER_MS)

void hx_sqlite_connection_init(
	struct hx_sqlite_connection *connection, const char *name, _Atomic uint32_t *is_failed)
{
	memset(connection, 0, sizeof(*connection));
	connection->name = name;
	connection->is_failed = is_failed;
	hx_prng_seed(&connection->jitter, hx_random_u64());
}

void hx_sqlite_connection_set_deadline(struct hx_sqlite_connection *connection, int64_t deadline_ns)
{
	connection->deadline_ns = deadline_ns;
	connection->waits = 0;
}

void hx_sqlite_connection_set_timeout(struct hx_sqlite_connection *connection, int64_t timeout_ms)
{
	hx_sqlite_connection_set_deadline(
		connection, hx_clock_mono_ns() + timeout_ms * HX_NS_PER_MS);
}

void hx_sqlite_pause(int64_t pause_ns)
{
	struct hx_event never;

	hx_event_init(&never);
	(void)hx_event_wait_until_ns(&never, hx_clock_mono_ns() + pause_ns);
}

bool hx_sqlite_connection_wait(struct hx_sqlite_connection *connection)
{
	int64_t now_ns = hx_clock_mono_ns();
	int64_t wait_ns;

	if (now_ns >= connection->deadline_ns)
		return false;
	wait_ns = hx_backoff(
		WAIT_NS_FIRST, WAIT_NS_LAST, connection->waits++,
		hx_prng_next(&connection->jitter));
	if (wait_ns > connection->deadline_ns - now_ns)
		wait_ns = connection->deadline_ns - now_ns;
	hx_sqlite_pause(wait_ns);
	return true;
}

static int on_busy(void *context, int count)
{
	struct hx_sqlite_connection *connection = context;

	if (count == 0)
		connection->waits = 0;
	return hx_sqlite_connection_wait(connection);
}

static int on_commit_to_wal(void *context, sqlite3 *db, const char *name, int frames)
{
	struct hx_sqlite_connection *connection = context;

	(void)db;
	(void)name;
	connection->wal_frames = frames;
	if (frames < connection->checkpoint_frames)
		connection->checkpoint_frames = 0;
	return SQLITE_OK;
}

/* Does the directory of the new file exist? */
static bool has_directory(const char *name)
{
	const struct hx_io *io = hx_io_system();
	const char *slash = strrchr(name, '/');
	struct hx_io_stat stat = {0};
	char directory[DIRECTORY_SIZE_MAX];
	size_t size = slash == NULL ? 0 : (size_t)(slash - name) + 1;

	if (size == 0)
		return true;
	if (size >= sizeof(directory))
		return false;
	memcpy(directory, name, size);
	directory[size] = '\0';
	return io->ops->stat_path(io->context, directory, &stat) == 0 &&
		stat.kind == HX_IO_DIRECTORY;
}

/*
 * errno describes SQLite's last try, which is read only: a file that could not be created is
 * reported as missing.
 */
static enum hapax_status fail_to_open(
	const struct hx_sqlite_connection *connection, int code, bool was_to_be_made,
	struct hapax_error *err)
{
	int os_errno = connection->db == NULL ? 0 : sqlite3_system_errno(connection->db);
	const char *name = connection->name;

	if (connection->db == NULL || (code & 0xff) == SQLITE_NOMEM)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "could not open '%s': not enough memory",
			name);
	if (os_errno == ENOENT && was_to_be_made)
		return hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0, "could not create '%s': its directory %s",
			name, has_directory(name) ? "is not writable" : "does not exist");
	switch (os_errno) {
	case ENOENT:
		return hx_error_set(err, HAPAX_ERR_UNAVAILABLE, 0, "'%s' does not exist", name);
	case ENOTDIR:
		return hx_error_set(err, HAPAX_ERR_INVALID, os_errno, "could not open '%s'", name);
	case EISDIR:
		return hx_error_set(err, HAPAX_ERR_INVALID, os_errno, "'%s' is not a file", name);
	case EACCES:
	case EPERM:
	case EROFS:
		return hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, os_errno,
			"'%s' or its directory is not writable", name);
	case 0:
		return hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0, "could not open '%s': %s", name,
			hx_sqlite_reason(code));
	default:
		return hx_error_set(
			err, hx_error_status_of(os_errno), os_errno, "could not open '%s'", name);
	}
}

/* Before anything is read: the file may be hostile, or foreign. */
static int configure(sqlite3 *db)
{
	int code = sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	return code == SQLITE_OK ? sqlite3_extended_result_codes(db, 1) : code;
}

enum hapax_status hx_sqlite_connection_open(
	struct hx_sqlite_connection *connection, unsigned flags, struct hapax_error *err)
{
	int open_flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
	char *path = hx_sqlite_plain_path(connection->name);
	int code;

	assert(connection->db == NULL);
	if (path == NULL)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "could not open '%s': not enough memory",
			connection->name);
	if (flags & HX_SQLITE_CREATE) {
		hx_sqlite_make_private(path);
		open_flags |= SQLITE_OPEN_CREATE;
	}
	code = sqlite3_open_v2(path, &connection->db, open_flags, NULL);
	hx_free(path);
	if (code == SQLITE_OK)
		code = configure(connection->db);
	if (code == SQLITE_OK)
		code = sqlite3_busy_handler(connection->db, on_busy, connection);
	if (code != SQLITE_OK)
		return fail_to_open(connection, code, (flags & HX_SQLITE_CREATE) != 0, err);
	if (sqlite3_db_readonly(connection->db, "main") != 0)
		return hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0, "'%s' is not writable", connection->name);
	(void)sqlite3_wal_hook(connection->db, on_commit_to_wal, connection);
	return HAPAX_OK;
}

/*
 * Query or switch the journal mode, and set is_wal to the result. *ret_is_removed: a commit
 * removes the journal.
 */
static int journal_mode(
	struct hx_sqlite_connection *connection, const char *sql, bool *ret_is_removed)
{
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v2(connection->db, sql, -1, &statement, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	if (code == SQLITE_ROW) {
		const unsigned char *mode = sqlite3_column_text(statement, 0);

		connection->is_wal = mode != NULL && strcmp((const char *)mode, "wal") == 0;
		*ret_is_removed = mode != NULL && strcmp((const char *)mode, "delete") == 0;
		code = SQLITE_OK;
	}
	(void)sqlite3_finalize(statement);
	return code;
}

int hx_sqlite_connection_ask_journal(struct hx_sqlite_connection *connection, bool *ret_is_removed)
{
	return journal_mode(connection, "PRAGMA main.journal_mode", ret_is_removed);
}

/*
 * The switch needs exclusive access and does not call the busy handler: processes that open the
 * file at once take turns here.
 */
static enum hapax_status switch_to_wal(
	struct hx_sqlite_connection *connection, struct hapax_error *err)
{
	bool is_removed;
	int code;

	do {
		code = journal_mode(connection, "PRAGMA main.journal_mode = WAL", &is_removed);
	} while (hx_sqlite_is_busy(code) && hx_sqlite_connection_wait(connection));
	if (code != SQLITE_OK)
		return hx_sqlite_connection_fail(
			connection, code, HX_SQLITE_BEFORE_COMMIT,
			"could not enable the write-ahead log", err);
	if (!connection->is_wal)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"'%s' is on a file system without shared memory, which the write-ahead "
			"log needs; use a local disk",
			connection->name);
	return HAPAX_OK;
}

enum hapax_status hx_sqlite_connection_accept(
	struct hx_sqlite_connection *connection, bool switch_mode, struct hapax_error *err)
{
	enum hapax_status status = switch_mode ? switch_to_wal(connection, err) : HAPAX_OK;
	bool is_removed;
	int code;

	if (status != HAPAX_OK)
		return status;
	/*
	 * EXTRA is FULL, and for an owner's rollback journal it also syncs the directory. In
	 * write-ahead mode the log is synced before the shared index shows the frames; with a
	 * rollback journal, before the lock is released. So whatever a reader sees survives a
	 * power cut: observed implies durable (I2b).
	 *
	 * FAST erases deleted data if that costs no extra write.
	 */
	connection->has_reserve = switch_mode;
	code = hx_sqlite_exec(
		connection,
		"PRAGMA main.synchronous = EXTRA; PRAGMA main.cache_size = -8192;"
		"PRAGMA main.secure_delete = FAST; PRAGMA main.journal_size_limit = 67108864;");
	if (code == SQLITE_OK)
		code = sqlite3_db_config(connection->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
	if (code == SQLITE_OK && !switch_mode)
		code = hx_sqlite_connection_ask_journal(connection, &is_removed);
	if (code != SQLITE_OK)
		return hx_sqlite_connection_fail(
			connection, code, HX_SQLITE_BEFORE_COMMIT, "could not set up the database",
			err);
	return HAPAX_OK;
}

int hx_sqlite_connection_relax(struct hx_sqlite_connection *connection, bool is_relaxed)
{
	int code;

	is_relaxed = is_relaxed && connection->is_wal;
	if (connection->is_joined || connection->is_relaxed == is_relaxed)
		return SQLITE_OK;
	code = hx_sqlite_exec(
		connection,
		is_relaxed ? "PRAGMA main.synchronous = NORMAL"
			   : "PRAGMA main.synchronous = EXTRA");
	if (code == SQLITE_OK)
		connection->is_relaxed = is_relaxed;
	return code;
}

void hx_sqlite_connection_join(struct hx_sqlite_connection *connection, sqlite3 *db)
{
	assert(connection->db == NULL);
	connection->db = db;
	connection->is_joined = true;
}

void hx_sqlite_connection_close(struct hx_sqlite_connection *connection)
{
	if (connection->db == NULL)
		return;
	hx_sqlite_statements_done(connection);
	if (!connection->is_joined) {
		int code = sqlite3_close(connection->db);

		assert(code == SQLITE_OK);
		(void)code;
	}
	connection->db = NULL;
}

/* sqlite3_exec() takes several statements as one text; pragmas may return a row. */
int hx_sqlite_exec(struct hx_sqlite_connection *connection, const char *sql)
{
	int code;

	do {
		code = sqlite3_exec(connection->db, sql, NULL, NULL, NULL);
	} while (hx_sqlite_is_busy(code) && sqlite3_get_autocommit(connection->db) != 0 &&
		 hx_sqlite_connection_wait(connection));
	return code == SQLITE_OK ? code : sqlite3_extended_errcode(connection->db);
}

int hx_sqlite_query_number(
	struct hx_sqlite_connection *connection, const char *sql, int64_t *ret_number)
{
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v2(connection->db, sql, -1, &statement, NULL);

	if (code != SQLITE_OK)
		return code;
	code = sqlite3_step(statement);
	if (code == SQLITE_ROW) {
		*ret_number = sqlite3_column_int64(statement, 0);
		code = SQLITE_OK;
	}
	(void)sqlite3_finalize(statement);
	return code;
}

/* If readers block a checkpoint, it is retried every 16 MB, not at every commit. */
void hx_sqlite_connection_checkpoint(struct hx_sqlite_connection *connection)
{
	int frames = connection->is_short != 0 ? SHORT_FRAMES : CHECKPOINT_FRAMES;
	int mode = SQLITE_CHECKPOINT_PASSIVE;
	int code;

	if (connection->wal_frames < connection->checkpoint_frames + frames ||
	    connection->is_joined)
		return;
	if (connection->wal_frames >= RESTART_FRAMES)
		mode = SQLITE_CHECKPOINT_RESTART;
	connection->checkpoint_frames = connection->wal_frames;
	hx_sqlite_connection_set_timeout(connection, RESTART_WAIT_MS);
	code = sqlite3_wal_checkpoint_v2(connection->db, "main", mode, NULL, NULL);
	if (hx_sqlite_is_fatal(code))
		atomic_store(connection->is_failed, 1);
}

bool hx_sqlite_connection_has_space(struct hx_sqlite_connection *connection)
{
	bool has_space = !connection->has_reserve ||
		hx_sqlite_reserve_keep(sqlite3_db_filename(connection->db, "main"));

	if (!has_space)
		connection->is_short = 1;
	return has_space;
}

bool hx_sqlite_connection_make_space(struct hx_sqlite_connection *connection)
{
	bool is_released;

	if (!connection->has_reserve)
		return false;
	is_released = hx_sqlite_reserve_release(sqlite3_db_filename(connection->db, "main"));
	connection->is_short = 1;
	/* A log that is copied is written from its beginning, where it has space. */
	(void)sqlite3_wal_checkpoint_v2(
		connection->db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	return is_released;
}

/*
 * SQLite reports a shared index that could not grow as an I/O error; before COMMIT it is a full
 * disk.
 */
static int tell_full_disk(
	const struct hx_sqlite_connection *connection, int code, enum hx_sqlite_stage stage)
{
	bool is_full = (code & 0xff) == SQLITE_IOERR && code != SQLITE_IOERR_NOMEM &&
		stage == HX_SQLITE_BEFORE_COMMIT && sqlite3_system_errno(connection->db) == ENOSPC;

	return is_full ? SQLITE_FULL : code;
}

enum hapax_status hx_sqlite_connection_fail(
	struct hx_sqlite_connection *connection, int code, enum hx_sqlite_stage stage,
	const char *what, struct hapax_error *err)
{
	enum hapax_status status;

	code = tell_full_disk(connection, code, stage);
	status = hx_sqlite_status(code, stage);
	if (hx_sqlite_is_fatal(code))
		atomic_store(connection->is_failed, 1);
	return hx_error_set(
		err, status, 0, "%s: %s ('%s')", what, hx_sqlite_reason(code), connection->name);
}

bool hx_sqlite_connection_is_failed(const struct hx_sqlite_connection *connection)
{
	return atomic_load(connection->is_failed) != 0;
}
