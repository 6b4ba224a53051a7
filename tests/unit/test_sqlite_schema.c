/* SPDX-License-Identifier: Apache-2.0 */
/* What a file is, and what becomes of it: I16, I10, and bad input at opening. */
#include "store/sqlite/sqlite_schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "support/store_case.h"

static int set_up(void **state)
{
	struct store_case *c = calloc(1, sizeof(*c));

	if (!c)
		return -1;
	store_case_init(c, "sqlite:");
	*state = c;
	return 0;
}

static int tear_down(void **state)
{
	store_case_done(*state);
	free(*state);
	return 0;
}

static const char *path_of(const struct store_case *c)
{
	return c->url + strlen("sqlite:");
}

/* Run SQL on the file as another program would. */
static void sql(const struct store_case *c, const char *text)
{
	sqlite3 *db;
	char *message = NULL;

	assert_int_equal(sqlite3_open(path_of(c), &db), SQLITE_OK);
	if (sqlite3_exec(db, text, NULL, NULL, &message) != SQLITE_OK)
		fail_msg("%s: %s", text, message);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int64_t sql_number(const struct store_case *c, const char *text)
{
	sqlite3 *db;
	sqlite3_stmt *statement;
	int64_t number;

	assert_int_equal(sqlite3_open(path_of(c), &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, text, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	number = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	return number;
}

struct contents {
	unsigned char *data;
	size_t size;
};

static struct contents read_file(const char *path)
{
	struct contents contents = {malloc(1 << 20), 0};
	FILE *file = fopen(path, "rb");

	assert_non_null(contents.data);
	assert_non_null(file);
	contents.size = fread(contents.data, 1, 1 << 20, file);
	assert_true(contents.size < 1 << 20);
	fclose(file);
	return contents;
}

static void write_file(const char *path, const void *data, size_t size)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static void must_not_open(
	struct store_case *c, const char *url, enum hapax_status status, const char *clue)
{
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};

	assert_string_equal(
		hapax_status_name(hapax_store_open(url, &c->options, &store, &err)),
		hapax_status_name(status));
	assert_null(store);
	assert_int_equal(err.status, status);
	if (!strstr(err.message, clue))
		fail_msg("'%s' does not say '%s'", err.message, clue);
}

/* Refused with that status, and every byte of the file as before. */
static void must_stay_untouched(struct store_case *c, enum hapax_status status, const char *clue)
{
	struct contents before = read_file(path_of(c));
	struct contents after;

	must_not_open(c, c->url, status, clue);
	after = read_file(path_of(c));
	assert_int_equal(after.size, before.size);
	assert_memory_equal(after.data, before.data, before.size);
	free(before.data);
	free(after.data);
}

static void a_new_file_is_made(void **state)
{
	struct store_case *c = *state;

	store_case_open(c);
	assert_int_equal(sql_number(c, "SELECT version FROM hapax_meta"), HX_SQLITE_SCHEMA_VERSION);
	assert_int_equal(sql_number(c, "PRAGMA application_id"), HX_SQLITE_APPLICATION_ID);
	assert_int_equal(sql_number(c, "SELECT created_ms FROM hapax_meta"), CASE_EPOCH_MS);
	/* Every table is STRICT. */
	assert_int_equal(
		sql_number(
			c,
			"SELECT count(*) FROM pragma_table_list WHERE name LIKE 'hapax_%' AND strict = 0"),
		0);
	assert_int_equal(
		sql_number(
			c, "SELECT count(*) FROM pragma_journal_mode WHERE journal_mode = 'wal'"),
		1);
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_ACQUIRED);
}

/* I2, I5: what was done is there when it is opened again, and tokens go on rising. */
static void an_opened_file_goes_on(void **state)
{
	struct store_case *c = *state;
	uint64_t token = 0, last = 0;
	char key[32];

	store_case_open(c);
	for (int i = 0; i < 5; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		assert_int_equal(case_claim(c, key, &token), HAPAX_OUTCOME_ACQUIRED);
		assert_true(token > last);
		assert_int_equal(case_complete(c, key, token), HAPAX_OK);
		last = token;
		store_case_reopen(c);
		assert_int_equal(case_claim(c, key, NULL), HAPAX_OUTCOME_REPLAY);
	}
	/* Forgotten records do not take their tokens back. */
	struct hapax_op forget = case_op(c, HAPAX_OP_FORGET, "k4");
	assert_int_equal(case_run(c, &forget), HAPAX_OK);
	store_case_reopen(c);
	assert_int_equal(case_claim(c, "k4", &token), HAPAX_OUTCOME_ACQUIRED);
	assert_true(token > last);
}

/* As `touch` or mktemp(1) leave it. */
static void an_empty_file_becomes_a_ledger(void **state)
{
	struct store_case *c = *state;

	write_file(path_of(c), "", 0);
	store_case_open(c);
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(sql_number(c, "PRAGMA application_id"), HX_SQLITE_APPLICATION_ID);
}

/* Killed between the switch to WAL and the tables: the next one makes them. */
static void a_half_made_file_is_finished(void **state)
{
	struct store_case *c = *state;

	sql(c, "PRAGMA journal_mode = WAL");
	store_case_open(c);
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_ACQUIRED);
}

/* I16: an older ledger is migrated in one step and keeps what it holds. */
static void an_older_ledger_is_migrated(void **state)
{
	struct store_case *c = *state;
	const char *texts[HX_SQLITE_SCHEMA_VERSION + 2];
	struct hx_sqlite_migrations known = hx_sqlite_schema_migrations();
	struct hx_sqlite_migrations later = {texts, HX_SQLITE_SCHEMA_VERSION + 2};
	struct hx_sqlite_connection connection;
	struct hx_sqlite_schema schema;
	_Atomic uint32_t failed = 0;
	struct hapax_error err;

	store_case_open(c);
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_ACQUIRED);
	hapax_store_close(c->store);
	c->store = NULL;

	for (size_t i = 0; i < known.count; i++)
		texts[i] = known.texts[i];
	texts[known.count] = "ALTER TABLE main.hapax_record ADD COLUMN color TEXT";
	texts[known.count + 1] = "UPDATE main.hapax_record SET color = 'red'";
	hx_sqlite_connection_init(&connection, path_of(c), &failed);
	assert_int_equal(hx_sqlite_connection_open(&connection, 0, &err), HAPAX_OK);
	assert_int_equal(hx_sqlite_schema_inspect(&connection, later, &schema, &err), HAPAX_OK);
	assert_int_equal(schema.version, HX_SQLITE_SCHEMA_VERSION);
	assert_true(schema.is_ours);
	assert_int_equal(
		hx_sqlite_schema_migrate(&connection, later, true, c->options.clock, &err),
		HAPAX_OK);
	hx_sqlite_connection_close(&connection);
	assert_int_equal(
		sql_number(c, "SELECT version FROM hapax_meta"), HX_SQLITE_SCHEMA_VERSION + 2);
	assert_int_equal(sql_number(c, "SELECT count(*) FROM hapax_record WHERE color = 'red'"), 1);

	/* Which is one that this version must refuse. */
	must_stay_untouched(c, HAPAX_ERR_UNSUPPORTED, "newer hapax");
}

/* A10, I16: a ledger from before events were remembered. Its records have none, later ones do. */
static void a_ledger_without_events_is_migrated(void **state)
{
	const struct hapax_cause cause = {.id = {"evt_1", 5}};
	unsigned char buffer[HAPAX_CAUSE_SIZE_MAX];
	struct store_case *c = *state;
	struct hx_sqlite_migrations first = {hx_sqlite_schema_migrations().texts, 1};
	struct hx_sqlite_connection connection;
	_Atomic uint32_t failed = 0;
	struct hapax_error err;
	struct hapax_op op;

	write_file(path_of(c), "", 0);
	hx_sqlite_connection_init(&connection, path_of(c), &failed);
	assert_int_equal(hx_sqlite_connection_open(&connection, 0, &err), HAPAX_OK);
	assert_int_equal(
		hx_sqlite_schema_migrate(&connection, first, true, c->options.clock, &err),
		HAPAX_OK);
	hx_sqlite_connection_close(&connection);
	sql(c,
	    "INSERT INTO hapax_record (tenant, grp, key, state, origin, on_lapse, attempt, token,"
	    " first_seen_ms, changed_ms, lease_ends_ms, due_ms, ttl_ms, owner, result_kind,"
	    " result_class, result_status, result_omitted, result_body, attempt_id) VALUES"
	    " (CAST('default' AS BLOB), CAST('default' AS BLOB), CAST('done' AS BLOB), 2, 0, 0, 1, 7,"
	    "  1767225600000, 1767225600000, 0, NULL, NULL, NULL, 1, 0, 0, 0, x'616263', NULL),"
	    " (CAST('default' AS BLOB), CAST('default' AS BLOB), CAST('held' AS BLOB), 1, 0, 0, 1, 8,"
	    "  1767225600000, 1767225600000, 1767225700000, NULL, NULL, x'77', 0, 0, 0, 0, NULL,"
	    "  x'00112233445566778899aabbccddeeff');"
	    "UPDATE hapax_meta SET token = 8, claimed = 1, done = 1");

	store_case_open(c);
	assert_int_equal(sql_number(c, "SELECT version FROM hapax_meta"), 2);
	assert_int_equal(case_state(c, "done"), HAPAX_STATE_DONE);
	assert_true(case_bytes_are(c->record.result.body, "abc", 3));
	assert_int_equal(c->record.cause.size, 0);
	assert_int_equal(case_state(c, "held"), HAPAX_STATE_CLAIMED);
	assert_int_equal(c->record.cause.size, 0);
	assert_int_equal(case_complete(c, "held", 8), HAPAX_OK);
	assert_int_equal(c->record.cause.size, 0);
	op = case_op(c, HAPAX_OP_CLAIM, "new");
	op.cause = hapax_cause_write(&cause, buffer);
	assert_int_equal(case_run(c, &op), HAPAX_OK);
	assert_int_equal(op.token, 9);
	store_case_reopen(c);
	assert_int_equal(case_state(c, "new"), HAPAX_STATE_CLAIMED);
	assert_true(case_bytes_are(c->record.cause, buffer, 11 + 5));
}

/* A migration that fails leaves the version that was there. */
static void a_failed_migration_changes_nothing(void **state)
{
	struct store_case *c = *state;
	const char *texts[HX_SQLITE_SCHEMA_VERSION + 2];
	struct hx_sqlite_migrations known = hx_sqlite_schema_migrations();
	struct hx_sqlite_migrations later = {texts, HX_SQLITE_SCHEMA_VERSION + 2};
	struct hx_sqlite_connection connection;
	_Atomic uint32_t failed = 0;
	struct hapax_error err;

	store_case_open(c);
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_ACQUIRED);
	for (size_t i = 0; i < known.count; i++)
		texts[i] = known.texts[i];
	texts[known.count] = "ALTER TABLE main.hapax_record ADD COLUMN color TEXT";
	texts[known.count + 1] = "UPDATE main.no_such_table SET color = 'red'";
	hx_sqlite_connection_init(&connection, path_of(c), &failed);
	assert_int_equal(hx_sqlite_connection_open(&connection, 0, &err), HAPAX_OK);
	assert_int_not_equal(
		hx_sqlite_schema_migrate(&connection, later, true, c->options.clock, &err),
		HAPAX_OK);
	hx_sqlite_connection_close(&connection);
	store_case_reopen(c);
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_IN_PROGRESS);
	assert_int_equal(
		sql_number(
			c,
			"SELECT count(*) FROM pragma_table_info('hapax_record') WHERE name = 'color'"),
		0);
}

/* I16: both versions are named, and what to do; nothing is written. */
static void a_newer_ledger_is_refused(void **state)
{
	struct store_case *c = *state;

	store_case_open(c);
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_ACQUIRED);
	hapax_store_close(c->store);
	c->store = NULL;
	sql(c, "UPDATE hapax_meta SET version = 99");
	must_stay_untouched(c, HAPAX_ERR_UNSUPPORTED, "store version 99");
	must_stay_untouched(c, HAPAX_ERR_UNSUPPORTED, "up to 2");
	/* Also when the newer one has left a log behind. */
	sql(c, "PRAGMA journal_mode = DELETE");
	must_stay_untouched(c, HAPAX_ERR_UNSUPPORTED, "store version 99");
}

/* I16, I11: migrated by a newer hapax while we have it open: nothing more is written. */
static void a_ledger_migrated_under_us_is_left_alone(void **state)
{
	struct store_case *c = *state;
	struct hapax_op op;

	store_case_open(c);
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_ACQUIRED);
	sql(c, "UPDATE hapax_meta SET version = 99");
	op = case_op(c, HAPAX_OP_CLAIM, "other");
	assert_int_equal(case_run(c, &op), HAPAX_ERR_FAILED);
	sql(c, "UPDATE hapax_meta SET version = 2");
	op = case_op(c, HAPAX_OP_LOOKUP, "k");
	assert_int_equal(case_run(c, &op), HAPAX_ERR_FAILED);
	assert_int_equal(sql_number(c, "SELECT count(*) FROM hapax_record"), 1);
	store_case_reopen(c);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_CLAIMED);
}

static void another_programs_database_is_refused(void **state)
{
	struct store_case *c = *state;

	sql(c,
	    "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO customers VALUES (1, 'x')");
	must_stay_untouched(c, HAPAX_ERR_INVALID, "the database of another program");
	/* Marked by its owner, though it has no tables yet. */
	sql(c, "DROP TABLE customers; PRAGMA application_id = 1234");
	must_stay_untouched(c, HAPAX_ERR_INVALID, "the database of another program");
}

/* A write-ahead log that its owner left behind is the owner's to check in. */
static void another_programs_log_is_left_alone(void **state)
{
	struct store_case *c = *state;
	char copy[256], log[256], copied_log[300];
	struct contents contents;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path_of(c), &db), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(
			db,
			"PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;"
			"CREATE TABLE customers (id INTEGER); INSERT INTO customers VALUES (1)",
			NULL, NULL, NULL),
		SQLITE_OK);
	/* A copy of both files is what a crash would have left. */
	snprintf(copy, sizeof(copy), "%s/crashed.db", c->dir.path);
	snprintf(log, sizeof(log), "%s-wal", path_of(c));
	snprintf(copied_log, sizeof(copied_log), "%s-wal", copy);
	contents = read_file(path_of(c));
	write_file(copy, contents.data, contents.size);
	free(contents.data);
	contents = read_file(log);
	assert_true(contents.size > 0);
	write_file(copied_log, contents.data, contents.size);
	sqlite3_close(db);

	snprintf(c->url, sizeof(c->url), "sqlite:%.200s", copy);
	must_stay_untouched(c, HAPAX_ERR_INVALID, "the database of another program");
	struct contents after = read_file(copied_log);
	assert_int_equal(after.size, contents.size);
	assert_memory_equal(after.data, contents.data, contents.size);
	free(after.data);
	free(contents.data);
	assert_int_equal(sql_number(c, "SELECT id FROM customers"), 1);
}

/* A ledger inside an application's database can be read by URL; its journal mode stays. */
static void a_joined_database_keeps_its_journal(void **state)
{
	struct store_case *c = *state;
	struct hx_sqlite_connection connection;
	_Atomic uint32_t failed = 0;
	struct hapax_error err;

	sql(c, "CREATE TABLE customers (id INTEGER)");
	hx_sqlite_connection_init(&connection, path_of(c), &failed);
	assert_int_equal(hx_sqlite_connection_open(&connection, 0, &err), HAPAX_OK);
	assert_int_equal(
		hx_sqlite_schema_migrate(
			&connection, hx_sqlite_schema_migrations(), false, c->options.clock, &err),
		HAPAX_OK);
	hx_sqlite_connection_close(&connection);
	assert_int_equal(sql_number(c, "PRAGMA application_id"), 0);

	store_case_open(c);
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(
		sql_number(
			c,
			"SELECT count(*) FROM pragma_journal_mode WHERE journal_mode = 'delete'"),
		1);
	assert_int_equal(sql_number(c, "PRAGMA application_id"), 0);
	store_case_reopen(c);
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_IN_PROGRESS);
}

/* I10: bytes that are not a database, or no longer one. */
static void what_is_no_database_is_refused(void **state)
{
	struct store_case *c = *state;
	unsigned char noise[8192];

	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (unsigned char)(i * 31 + 7);
	write_file(path_of(c), noise, sizeof(noise));
	must_stay_untouched(c, HAPAX_ERR_CORRUPT, "not a SQLite database");
	write_file(path_of(c), "key,value\n", 10);
	must_stay_untouched(c, HAPAX_ERR_CORRUPT, "not a SQLite database");
	/* The right beginning, and then nothing that makes sense. */
	memcpy(noise, "SQLite format 3", 16);
	write_file(path_of(c), noise, sizeof(noise));
	must_stay_untouched(c, HAPAX_ERR_CORRUPT, "database");
}

static void what_only_looks_like_a_ledger_is_refused(void **state)
{
	struct store_case *c = *state;

	sql(c, "CREATE TABLE hapax_meta (color TEXT)");
	must_stay_untouched(c, HAPAX_ERR_CORRUPT, "not those of hapax");
	sql(c, "DROP TABLE hapax_meta; CREATE TABLE hapax_meta (id INTEGER, version INTEGER)");
	must_stay_untouched(c, HAPAX_ERR_CORRUPT, "not those of hapax");
	sql(c, "INSERT INTO hapax_meta VALUES (1, 0)");
	must_stay_untouched(c, HAPAX_ERR_CORRUPT, "not those of hapax");
	/* A version that is ours, and tables that are not. */
	sql(c, "UPDATE hapax_meta SET version = 1");
	must_not_open(c, c->url, HAPAX_ERR_CORRUPT, "not those of hapax");
	sql(c, "UPDATE hapax_meta SET version = 2");
	must_not_open(c, c->url, HAPAX_ERR_CORRUPT, "not those of hapax");
}

static void bad_paths_are_told_apart(void **state)
{
	struct store_case *c = *state;
	char url[300];

	must_not_open(c, "sqlite:", HAPAX_ERR_INVALID, "missing file");
	must_not_open(c, "sqlite::memory:", HAPAX_ERR_INVALID, "use 'memory:'");
	snprintf(url, sizeof(url), "sqlite:%s/none/x.db", c->dir.path);
	must_not_open(c, url, HAPAX_ERR_UNAVAILABLE, "its directory does not exist");
	snprintf(url, sizeof(url), "sqlite:%s", c->dir.path);
	must_not_open(c, url, HAPAX_ERR_INVALID, "is not a file");
	write_file(path_of(c), "", 0);
	snprintf(url, sizeof(url), "%s/x.db", c->url);
	must_not_open(c, url, HAPAX_ERR_INVALID, "Not a directory");
	/* No user can create files here, not even root. */
	must_not_open(c, "sqlite:/proc/self/x.db", HAPAX_ERR_UNAVAILABLE, "/proc/self/x.db");
	/* Only root may put a write-ahead log beside it. */
	if (geteuid() == 0)
		must_not_open(c, "sqlite:/dev/full", HAPAX_ERR_LIMIT, "the disk is full");

	c->options.flags |= HAPAX_STORE_MUST_EXIST;
	snprintf(url, sizeof(url), "sqlite:%s/absent.db", c->dir.path);
	must_not_open(c, url, HAPAX_ERR_UNAVAILABLE, "does not exist");
	assert_int_equal(access(url + 7, F_OK), -1);
	/* The file is there, and the ledger is not. */
	must_stay_untouched(c, HAPAX_ERR_UNAVAILABLE, "has no store");
	c->options.flags &= ~(unsigned)HAPAX_STORE_MUST_EXIST;

	c->options.evict = HAPAX_EVICT_LRU;
	must_not_open(c, c->url, HAPAX_ERR_UNSUPPORTED, "cannot evict");
}

/* Open url without a umask; the database at path and the files that SQLite puts beside it. */
static void must_be_its_owners_alone(struct store_case *c, const char *url, const char *path)
{
	static const char *const endings[] = {"", "-wal", "-shm"};
	struct hapax_store *store = NULL;
	mode_t old = umask(0);

	assert_int_equal(hapax_store_open(url, &c->options, &store, NULL), HAPAX_OK);
	(void)umask(old);
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		char name[300];
		struct stat about;

		snprintf(name, sizeof(name), "%s%s", path, endings[i]);
		assert_int_equal(stat(name, &about), 0);
		assert_int_equal(about.st_mode & 0777, 0600);
	}
	hapax_store_close(store);
}

/* Whatever the umask says, and where a symbolic link points at a file that is not there yet. */
static void files_are_their_owners_alone(void **state)
{
	struct store_case *c = *state;
	char link[300], target[300], url[320];

	must_be_its_owners_alone(c, c->url, path_of(c));
	snprintf(link, sizeof(link), "%s/link.db", c->dir.path);
	snprintf(target, sizeof(target), "%s/target.db", c->dir.path);
	snprintf(url, sizeof(url), "sqlite:%s", link);
	assert_int_equal(symlink(target, link), 0);
	must_be_its_owners_alone(c, url, target);
	assert_int_equal(unlink(link), 0);
}

/* Without root's powers: a directory or a file that may not be written. */
static void what_is_not_writable_is_refused(void **state)
{
	struct store_case *c = *state;
	char url[300];

	snprintf(url, sizeof(url), "sqlite:%s/x.db", c->dir.path);
	write_file(path_of(c), "", 0);
	assert_int_equal(chmod(path_of(c), 0444), 0);
	assert_int_equal(chmod(c->dir.path, 0555), 0);
	if (geteuid() == 0 && seteuid(65534) != 0)
		skip();
	must_not_open(c, url, HAPAX_ERR_UNAVAILABLE, "not writable");
	must_not_open(c, c->url, HAPAX_ERR_UNAVAILABLE, "not writable");
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod(c->dir.path, 0755), 0);
}

/* '?', '%', '#' and a scheme in a name mean nothing: it is not a URI. */
static void names_are_taken_as_they_are(void **state)
{
	struct store_case *c = *state;
	static const char *const names[] = {"a?mode=ro", "a%20b",       "a#b",
					    "file:x",    ":memory:",    "name with blanks",
					    "\xff\xfe",  "?immutable=1"};
	char before[4096];

	assert_non_null(getcwd(before, sizeof(before)));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[300];

		snprintf(path, sizeof(path), "%s/%s", c->dir.path, names[i]);
		snprintf(c->url, sizeof(c->url), "sqlite:%.240s", path);
		store_case_open(c);
		hapax_store_close(c->store);
		c->store = NULL;
		assert_int_equal(access(path, F_OK), 0);
	}
	/* The same relative to here, where a path could begin with a scheme. */
	assert_int_equal(chdir(c->dir.path), 0);
	snprintf(c->url, sizeof(c->url), "sqlite:file:relative.db?mode=memory");
	store_case_open(c);
	assert_int_equal(access("file:relative.db?mode=memory", F_OK), 0);
	/* And it stays the same file wherever the process goes. */
	assert_int_equal(chdir(before), 0);
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(case_stats(c).claimed, 1);
	hapax_store_close(c->store);
	c->store = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_new_file_is_made, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_opened_file_goes_on, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_empty_file_becomes_a_ledger, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_half_made_file_is_finished, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_older_ledger_is_migrated, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_ledger_without_events_is_migrated, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_failed_migration_changes_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_newer_ledger_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_ledger_migrated_under_us_is_left_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			another_programs_database_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			another_programs_log_is_left_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_joined_database_keeps_its_journal, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_database_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_only_looks_like_a_ledger_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(bad_paths_are_told_apart, set_up, tear_down),
		cmocka_unit_test_setup_teardown(files_are_their_owners_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_not_writable_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_are_taken_as_they_are, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("sqlite_schema", tests, NULL, NULL);
}
