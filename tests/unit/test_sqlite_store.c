/* SPDX-License-Identifier: Apache-2.0 */
/* What the conformance suite cannot see: the file, its locks, its clock, its pages. */
#include "store/sqlite/sqlite_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/thread.h"
#include "store/core.h"
#include "store/sqlite/sqlite_batch.h"
#include "store/sqlite/counter.h"
#include "store/sqlite/sqlite_sweep.h"
#include "support/crowd.h"
#include "support/store_case.h"
#include "support/virtual_clock.h"

static int set_up(void **state)
{
	struct store_case *c = calloc(1, sizeof(*c));

	if (!c)
		return -1;
	store_case_begin(c, "sqlite:");
	*state = c;
	return 0;
}

static int tear_down(void **state)
{
	store_case_done(*state);
	free(*state);
	return 0;
}

static sqlite3 *open_beside(const struct store_case *c)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(c->url + strlen("sqlite:"), &db), SQLITE_OK);
	return db;
}

static void exec(sqlite3 *db, const char *text)
{
	char *message = NULL;

	if (sqlite3_exec(db, text, NULL, NULL, &message) != SQLITE_OK)
		fail_msg("%s: %s", text, message);
}

static int64_t number(sqlite3 *db, const char *text)
{
	sqlite3_stmt *statement;
	int64_t result;

	assert_int_equal(sqlite3_prepare_v2(db, text, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	result = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return result;
}

static void must_hold(struct store_case *c, const char *text)
{
	sqlite3 *db = open_beside(c);

	if (number(db, text) != 1)
		fail_msg("not so: %s", text);
	sqlite3_close(db);
}

/* I13: a lock that another process holds too long ends in "nothing was done", in time. */
static void a_lock_held_too_long_is_unavailable(void **state)
{
	struct store_case *c = *state;
	sqlite3 *db = open_beside(c);
	struct hapax_op ops[3];
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;
	struct hapax_error err;
	int64_t begin_ns, took_ns;

	ops[0] = case_op(c, HAPAX_OP_CHECK, "done");
	assert_int_equal(case_run(c, &ops[0]), HAPAX_OK);
	c->options.timeout_ms = 60;
	store_case_reopen(c);
	exec(db, "BEGIN IMMEDIATE");

	begin_ns = hx_clock_mono_ns();
	ops[0] = case_op(c, HAPAX_OP_CHECK, "new");
	ops[1] = case_op(c, HAPAX_OP_CHECK, "done");
	ops[2] = case_op(c, HAPAX_OP_LOOKUP, "done");
	assert_int_equal(hapax_store_run(c->store, ops, 3, &err), HAPAX_ERR_UNAVAILABLE);
	took_ns = hx_clock_mono_ns() - begin_ns;
	assert_true(took_ns >= INT64_C(60) * 1000000);
	assert_int_equal(ops[0].status, HAPAX_ERR_UNAVAILABLE);
	/* Who only reads needs no lock. */
	assert_int_equal(ops[1].outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(ops[2].outcome, HAPAX_OUTCOME_FOUND);
	store_case_advance(c, 60000);
	assert_int_equal(hapax_store_sweep(c->store, &sweep, &err), HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "locked by another process"));

	exec(db, "COMMIT");
	assert_int_equal(number(db, "SELECT count(*) FROM hapax_record"), 1);
	sqlite3_close(db);
	assert_int_equal(case_claim(c, "new", NULL), HAPAX_OUTCOME_ACQUIRED);
}

/* I13, I14: each call has the time that it was promised, whatever calls share its batch. */
static void later_calls_may_wait_longer(void **state)
{
	struct store_case *c = *state;
	sqlite3 *db = open_beside(c);
	struct hx_sqlite_connection connection;
	struct hapax_store_options options;
	_Atomic uint32_t is_failed = 0;
	_Atomic uint64_t swept = 0;
	struct hx_sqlite_batch batch = {.connection = &connection, .swept = &swept};
	struct hapax_op ops[4];
	struct hx_sqlite_request requests[4];
	int64_t now_ns = hx_clock_mono_ns();

	assert_int_equal(hx_store_options_complete(&c->options, &options, NULL), HAPAX_OK);
	batch.workspace.options = &options;
	hx_sqlite_connection_init(&connection, c->url + strlen("sqlite:"), &is_failed);
	assert_int_equal(hx_sqlite_connection_open(&connection, 0, NULL), HAPAX_OK);
	assert_int_equal(hx_sqlite_connection_accept(&connection, false, NULL), HAPAX_OK);
	for (int i = 0; i < 4; i++) {
		ops[i] = case_op(c, HAPAX_OP_CHECK, (const char *[]){"a", "b", "c", "d"}[i]);
		ops[i].tenant = hapax_bytes_from_text("default");
		ops[i].group = hapax_bytes_from_text("default");
		requests[i] = (struct hx_sqlite_request){
			.next = i < 3 ? &requests[i + 1] : NULL,
			.ops = &ops[i],
			.count = 1,
			/* The time of two is up, that of two is not. */
			.deadline_ns = i < 2 ? now_ns - 1 + i : INT64_MAX,
		};
		hx_sqlite_ops_begin(&ops[i], 1);
	}
	exec(db, "BEGIN IMMEDIATE");
	assert_ptr_equal(hx_sqlite_batch_run(&batch, requests), &requests[2]);
	assert_int_equal(ops[0].status, HAPAX_ERR_UNAVAILABLE);
	assert_int_equal(ops[1].status, HAPAX_ERR_UNAVAILABLE);
	assert_null(requests[1].next);
	exec(db, "COMMIT");
	assert_null(hx_sqlite_batch_run(&batch, &requests[2]));
	assert_int_equal(ops[2].outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(ops[3].outcome, HAPAX_OUTCOME_ACQUIRED);
	hx_sqlite_workspace_done(&batch.workspace);
	hx_sqlite_connection_close(&connection);
	sqlite3_close(db);
	assert_int_equal(case_stats(c).keys, 2);
}

struct unlocker {
	sqlite3 *db;
	struct hx_event go;
};

static void unlock_when_told(void *arg)
{
	struct unlocker *unlocker = arg;

	/* Long enough that the store has met the lock; how long decides nothing. */
	(void)hx_event_wait_until_ns(&unlocker->go, hx_clock_mono_ns() + INT64_C(20000000));
	(void)sqlite3_exec(unlocker->db, "COMMIT", NULL, NULL, NULL);
}

/* And one that is given up in time is waited for. */
static void a_lock_given_up_is_waited_for(void **state)
{
	struct store_case *c = *state;
	struct unlocker unlocker = {.db = open_beside(c)};
	struct hx_thread thread;
	struct hapax_op op = case_op(c, HAPAX_OP_CLAIM, "k");

	hx_event_init(&unlocker.go);
	exec(unlocker.db, "BEGIN IMMEDIATE");
	assert_int_equal(
		hx_thread_start(&thread, unlock_when_told, &unlocker, "unlocker", NULL), HAPAX_OK);
	assert_int_equal(case_run(c, &op), HAPAX_OK);
	hx_thread_join(&thread);
	sqlite3_close(unlocker.db);
}

/* I8: the clock goes on over a reboot from the mark in the file; C: and never back. */
static void the_clock_mark_survives_a_reboot(void **state)
{
	struct store_case *c = *state;
	const int64_t hour = 3600 * 1000;
	int64_t before;

	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_ACQUIRED);
	store_case_advance(c, hour);
	/* A write that happens anyway takes the mark along when it is older than 10 s. */
	assert_int_equal(case_claim(c, "k2", NULL), HAPAX_OUTCOME_ACQUIRED);
	sqlite3 *db = open_beside(c);
	assert_int_equal(number(db, "SELECT store_ms FROM hapax_meta"), CASE_EPOCH_MS + hour);
	store_case_advance(c, 9000);
	assert_int_equal(case_claim(c, "k3", NULL), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(number(db, "SELECT store_ms FROM hapax_meta"), CASE_EPOCH_MS + hour);

	/* The wall clock stands in 1970 after the reboot: time goes on from the mark. */
	hx_virtual_clock_reboot(&c->clock);
	hx_virtual_clock_set_wall(&c->clock, 0);
	store_case_reopen(c);
	before = store_case_now(c);
	assert_int_equal(before, CASE_EPOCH_MS + hour);
	assert_int_equal(number(db, "SELECT boot_ms FROM hapax_meta"), 0);

	/* A store that only answers keeps its clock with its counters, and when it is closed. */
	store_case_advance(c, hour);
	assert_int_equal(case_claim(c, "k3", NULL), HAPAX_OUTCOME_ACQUIRED);
	store_case_advance(c, 11000);
	assert_int_equal(case_state(c, "k3"), HAPAX_STATE_CLAIMED);
	assert_int_equal(number(db, "SELECT store_ms FROM hapax_meta"), before + hour);
	store_case_reopen(c);
	assert_int_equal(number(db, "SELECT store_ms FROM hapax_meta"), before + hour + 11000);

	/* Two stores on one file compute one time, also when one was open over the reboot. */
	struct hapax_store *other;
	assert_int_equal(hapax_store_open(c->url, &c->options, &other, NULL), HAPAX_OK);
	hx_virtual_clock_reboot(&c->clock);
	hx_virtual_clock_set_wall(&c->clock, CASE_EPOCH_MS + 3 * hour);
	store_case_advance(c, 5);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_CLAIMED);
	struct hapax_stats stats = HAPAX_STATS_INIT;
	assert_int_equal(hapax_store_stats(other, &stats, NULL, NULL, NULL), HAPAX_OK);
	assert_int_equal(stats.now_ms, store_case_now(c));
	assert_int_equal(stats.now_ms, CASE_EPOCH_MS + 3 * hour + 5);
	hapax_store_close(other);
	sqlite3_close(db);
}

static int64_t fixed_ms(void *context)
{
	return *(const int64_t *)context;
}

static void no_boot_id(void *context, unsigned char boot_id[HAPAX_BOOT_ID_SIZE])
{
	(void)context;
	memset(boot_id, 0, HAPAX_BOOT_ID_SIZE);
}

/* Where the boot cannot be told, lookups still need no lock, and time does not go back. */
static void an_unknown_boot_does_not_make_readers_write(void **state)
{
	struct store_case *c = *state;
	int64_t now_ms = CASE_EPOCH_MS;
	struct hapax_clock clock = {fixed_ms, fixed_ms, no_boot_id, &now_ms};
	sqlite3 *db = open_beside(c);

	c->options.clock = &clock;
	c->options.timeout_ms = 50;
	store_case_reopen(c);
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_ACQUIRED);
	now_ms += 500;
	exec(db, "BEGIN IMMEDIATE");
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_CLAIMED);
	exec(db, "COMMIT");
	sqlite3_close(db);
	now_ms += 500;
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_ACQUIRED);
	now_ms -= 400;
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_IN_PROGRESS);
	hapax_store_close(c->store);
	c->store = NULL;
}

static int64_t second_ms(void *context)
{
	return ((const int64_t *)context)[1];
}

/*
 * I8: there the wall clock is believed once, when the store is opened, and not each
 * time that it is set; and the mark of those who know their boot stays theirs.
 */
static void an_unknown_boot_believes_the_wall_clock_once(void **state)
{
	struct store_case *c = *state;
	const int64_t day = INT64_C(86400) * 1000;
	int64_t times_ms[2] = {CASE_EPOCH_MS, 1000};
	struct hapax_clock clock = {fixed_ms, second_ms, no_boot_id, times_ms};
	struct hapax_op op = case_op(c, HAPAX_OP_CHECK, "k");
	sqlite3 *db = open_beside(c);
	int64_t boot_ids;

	op.ttl_ms = day;
	assert_int_equal(case_run(c, &op), HAPAX_OK);
	boot_ids = number(db, "SELECT count(*) FROM hapax_meta WHERE boot_id <> zeroblob(16)");
	assert_int_equal(boot_ids, 1);
	c->options.clock = &clock;
	store_case_reopen(c);
	op = case_op(c, HAPAX_OP_CHECK, "k2");
	op.ttl_ms = day;
	assert_int_equal(case_run(c, &op), HAPAX_OK);
	times_ms[0] += 2 * day;
	times_ms[1] += 1000;
	assert_int_equal(case_run(c, &op), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_REPLAY);
	times_ms[1] += 60 * 1000;
	assert_int_equal(case_claim(c, "other", NULL), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(
		number(db, "SELECT count(*) FROM hapax_meta WHERE boot_id <> zeroblob(16)"), 1);
	assert_int_equal(store_case_now(c), CASE_EPOCH_MS + 61 * 1000);
	sqlite3_close(db);
	hapax_store_close(c->store);
	c->store = NULL;
}

/* Counting waits for no other: a long lock does not hold up a duplicate. */
static void counters_do_not_wait_for_the_lock(void **state)
{
	struct store_case *c = *state;
	struct hapax_op op = case_op(c, HAPAX_OP_CHECK, "k");
	sqlite3 *db = open_beside(c);
	int64_t begin_ns;

	c->options.timeout_ms = 60 * 1000;
	store_case_reopen(c);
	assert_int_equal(case_run(c, &op), HAPAX_OK);
	exec(db, "BEGIN IMMEDIATE");
	assert_int_equal(case_run(c, &op), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_REPLAY);
	begin_ns = hx_clock_mono_ns();
	(void)case_stats(c);
	hapax_store_close(c->store);
	c->store = NULL;
	/* Half of the store's own timeout: only to tell the two apart. */
	assert_true(hx_clock_mono_ns() - begin_ns < INT64_C(30000000000));
	exec(db, "COMMIT");
	sqlite3_close(db);
}

/* I2b: what a sweep has settled others act on, so it is synced, also after counters were not. */
static void a_sweep_after_counting_is_synced(void **state)
{
	struct store_case *c = *state;
	struct hx_sqlite_connection connection;
	_Atomic uint32_t is_failed = 0;

	hx_sqlite_connection_init(&connection, c->url + strlen("sqlite:"), &is_failed);
	hx_sqlite_connection_set_timeout(&connection, 1000);
	assert_int_equal(hx_sqlite_connection_open(&connection, 0, NULL), HAPAX_OK);
	assert_int_equal(hx_sqlite_connection_accept(&connection, false, NULL), HAPAX_OK);
	assert_int_equal(hx_sqlite_counter_add(&connection, &c->options, NULL, 0, NULL), HAPAX_OK);
	assert_int_equal(number(connection.db, "PRAGMA main.synchronous"), 1);
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_ACQUIRED);
	store_case_advance(c, INT64_C(3600000));
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;
	sweep.count_max = 10;
	assert_int_equal(hx_sqlite_sweep(&connection, &c->options, &sweep, NULL), HAPAX_OK);
	assert_int_equal(number(connection.db, "PRAGMA main.synchronous"), 3);
	hx_sqlite_connection_close(&connection);
}

/* Counters: kept in the file, added up over openings and stores, for 30 days. */
static int add_hours(const struct hapax_counters *counters, void *context)
{
	int64_t *sums = context;

	sums[0]++;
	sums[1] += (int64_t)counters->counts[HAPAX_DECISION_ACQUIRED];
	assert_int_equal(counters->hour_ms % 3600000, 0);
	return 0;
}

static void counters_are_kept_by_the_hour(void **state)
{
	struct store_case *c = *state;
	const int64_t day = INT64_C(86400) * 1000;
	struct hapax_stats stats = HAPAX_STATS_INIT;
	int64_t sums[2] = {0, 0};
	char key[32];

	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		struct hapax_op op = case_op(c, HAPAX_OP_CHECK, key);
		char group[32];
		snprintf(group, sizeof(group), "g%d", i);
		op.group = hapax_bytes_from_text(group);
		assert_int_equal(case_run(c, &op), HAPAX_OK);
	}
	store_case_reopen(c);
	store_case_advance(c, 3600000);
	assert_int_equal(case_claim(c, "later", NULL), HAPAX_OUTCOME_ACQUIRED);
	/* More rows than one page; each once. */
	assert_int_equal(hapax_store_stats(c->store, &stats, add_hours, sums, NULL), HAPAX_OK);
	assert_int_equal(sums[0], 101);
	assert_int_equal(sums[1], 101);
	assert_int_equal(stats.counts[HAPAX_DECISION_ACQUIRED], 101);
	/* After 30 days the hours go, at the next time that something is counted. */
	store_case_advance(c, 30 * day);
	assert_int_equal(case_claim(c, "much later", NULL), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(hapax_store_stats(c->store, &stats, NULL, NULL, NULL), HAPAX_OK);
	assert_int_equal(stats.counts[HAPAX_DECISION_ACQUIRED], 2);
	must_hold(c, "SELECT count(*) = 2 FROM hapax_counter");
}

/* A sweep is bounded, says when it is done, and takes no lock when there is nothing to do. */
static void a_sweep_comes_in_pieces(void **state)
{
	struct store_case *c = *state;
	enum { COUNT = 1500 };
	static char keys[COUNT][16];
	static struct hapax_op ops[COUNT];
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;
	sqlite3 *db = open_beside(c);

	for (int i = 0; i < COUNT; i++) {
		snprintf(keys[i], sizeof(keys[i]), "%d", i);
		ops[i] = case_op(c, HAPAX_OP_CHECK, keys[i]);
	}
	assert_int_equal(hapax_store_run(c->store, ops, COUNT, NULL), HAPAX_OK);
	exec(db, "BEGIN IMMEDIATE");
	assert_int_equal(hapax_store_sweep(c->store, &sweep, NULL), HAPAX_OK);
	assert_true(sweep.done);
	assert_int_equal(sweep.remaining, COUNT);
	exec(db, "COMMIT");
	sqlite3_close(db);

	store_case_advance(c, 60000);
	assert_int_equal(case_stats(c).expired, COUNT);
	sweep.count_max = 700;
	for (int left = COUNT; left > 0; left -= 700) {
		int expected = left < 700 ? left : 700;

		assert_int_equal(hapax_store_sweep(c->store, &sweep, NULL), HAPAX_OK);
		assert_int_equal(sweep.looked, expected);
		assert_int_equal(sweep.removed, expected);
		assert_int_equal(sweep.remaining, left - expected);
		assert_int_equal(sweep.done, left < 700);
	}
	assert_int_equal(case_stats(c).swept, COUNT);
}

static int count_one(const struct hapax_record *record, void *context)
{
	(void)record;
	++*(size_t *)context;
	return 0;
}

/* I12: a full store lets go of what has expired by itself, a little at a time. */
static void a_full_store_makes_room(void **state)
{
	struct store_case *c = *state;
	char key[32];

	c->options.keys_max = 300;
	store_case_reopen(c);
	for (int i = 0; i < 600; i++) {
		struct hapax_op op;

		if (i == 300)
			store_case_advance(c, 60000);
		snprintf(key, sizeof(key), "%d", i);
		op = case_op(c, HAPAX_OP_CHECK, key);
		assert_int_equal(case_run(c, &op), HAPAX_OK);
	}
	assert_int_equal(case_stats(c).keys, 300);
	assert_int_equal(case_stats(c).swept, 300);
	struct hapax_op op = case_op(c, HAPAX_OP_CHECK, "one more");
	assert_int_equal(case_run(c, &op), HAPAX_ERR_LIMIT);
}

/* A group as large as allowed, and one behind it. */
static void a_large_group_is_one_step(void **state)
{
	struct store_case *c = *state;
	enum { COUNT = 1024 };
	static char keys[COUNT][16];
	static struct hapax_op ops[COUNT];
	enum hapax_outcome outcome = HAPAX_OUTCOME_NONE;
	size_t index;

	for (int i = 0; i < COUNT; i++) {
		snprintf(keys[i], sizeof(keys[i]), "%04d", i);
		ops[i] = case_op(c, HAPAX_OP_CLAIM, keys[i]);
	}
	assert_int_equal(
		hapax_store_claim_all(c->store, ops, COUNT, &outcome, &index, NULL), HAPAX_OK);
	assert_int_equal(outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(case_stats(c).claimed, COUNT);
	assert_int_equal(case_stats(c).token, ops[0].token);
	assert_int_equal(case_claim(c, "0500", NULL), HAPAX_OUTCOME_IN_PROGRESS);
}

/* I5, LIMIT: tokens end where JSON's integers do, and nothing is done beyond. */
static void tokens_end_below_two_to_the_53(void **state)
{
	struct store_case *c = *state;
	sqlite3 *db = open_beside(c);
	uint64_t token;

	assert_int_equal(case_claim(c, "old", &token), HAPAX_OUTCOME_ACQUIRED);
	exec(db, "UPDATE hapax_meta SET token = 9007199254740990");
	uint64_t last = 0;
	assert_int_equal(case_claim(c, "a", &last), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(last, HX_TOKEN_MAX);
	struct hapax_op op = case_op(c, HAPAX_OP_CLAIM, "b");
	assert_int_equal(case_run(c, &op), HAPAX_ERR_LIMIT);
	op = case_op(c, HAPAX_OP_CHECK, "b");
	assert_int_equal(case_run(c, &op), HAPAX_ERR_LIMIT);
	assert_int_equal(case_complete(c, "a", last), HAPAX_OK);
	assert_int_equal(case_complete(c, "old", token), HAPAX_OK);
	assert_int_equal(number(db, "SELECT count(*) FROM hapax_record"), 2);
	sqlite3_close(db);
}

/* The file was moved away while it was open: no process would see what we would write. */
static void a_moved_file_is_not_written(void **state)
{
	struct store_case *c = *state;
	char target[300];
	struct hapax_op op;

	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_ACQUIRED);
	snprintf(target, sizeof(target), "%s/moved.db", c->dir.path);
	assert_int_equal(rename(c->url + strlen("sqlite:"), target), 0);
	op = case_op(c, HAPAX_OP_CLAIM, "other");
	assert_int_equal(case_run(c, &op), HAPAX_ERR_FAILED);
	/* Another process has made a new one in its place. */
	struct hapax_store *other;
	assert_int_equal(hapax_store_open(c->url, &c->options, &other, NULL), HAPAX_OK);
	op = case_op(c, HAPAX_OP_LOOKUP, "k");
	assert_int_equal(case_run(c, &op), HAPAX_ERR_FAILED);
	op = case_op(c, HAPAX_OP_CLAIM, "other");
	assert_int_equal(hapax_store_run(other, &op, 1, NULL), HAPAX_OK);
	hapax_store_close(other);
	store_case_reopen(c);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_ABSENT);
	assert_int_equal(case_state(c, "other"), HAPAX_STATE_CLAIMED);
}

/* I12: a real full disk, where mounting is allowed. Nothing half-written, and room helps. */
static void a_small_disk_fills_up(void **state)
{
	struct store_case *c = *state;
	static char body[20000];
	struct hapax_result result = {.kind = HAPAX_RESULT_BYTES, .body = {body, sizeof(body)}};
	char directory[256], key[32];
	enum hapax_status status = HAPAX_OK;
	uint64_t held = 0;
	int filled = 0;

	hapax_store_close(c->store);
	c->store = NULL;
	snprintf(directory, sizeof(directory), "%s/small", c->dir.path);
	assert_int_equal(mkdir(directory, 0700), 0);
	if (mount("tmpfs", directory, "tmpfs", 0, "size=2m") != 0) {
		print_message("# skipped: mounts are refused here, errno %d\n", errno);
		skip();
	}
	snprintf(c->url, sizeof(c->url), "sqlite:%.200s/hapax.db", directory);
	store_case_open(c);
	assert_int_equal(case_claim(c, "held", &held), HAPAX_OUTCOME_ACQUIRED);
	for (; status == HAPAX_OK; filled++) {
		struct hapax_op op;

		assert_true(filled < 200);
		snprintf(key, sizeof(key), "%d", filled);
		op = case_op(c, HAPAX_OP_SET, key);
		op.result = &result;
		status = case_run(c, &op);
	}
	filled--;
	assert_true(filled > 10);
	assert_string_equal(hapax_status_name(status), "limit");
	snprintf(key, sizeof(key), "%d", filled);
	assert_int_equal(case_state(c, key), HAPAX_STATE_ABSENT);
	assert_int_equal(case_state(c, "0"), HAPAX_STATE_DONE);
	/* A store cannot be opened on a full disk, or it can; never something in between. */
	hapax_store_close(c->store);
	c->store = NULL;
	assert_int_equal(mount("tmpfs", directory, "tmpfs", MS_REMOUNT, "size=4m"), 0);
	store_case_open(c);
	for (int i = 0; i < filled; i++) {
		snprintf(key, sizeof(key), "%d", i);
		assert_int_equal(case_state(c, key), HAPAX_STATE_DONE);
	}
	assert_int_equal(case_complete(c, "held", held), HAPAX_OK);
	must_hold(c, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'");
	hapax_store_close(c->store);
	c->store = NULL;
	assert_int_equal(umount(directory), 0);
}

/* Threads that submit, scan, sweep and count at once: both connections, one file. */
struct mix {
	struct store_case *c;
	_Atomic uint32_t acquired;
	_Atomic uint32_t errors;
};

static void do_all_at_once(size_t index, void *context)
{
	struct mix *mix = context;
	struct hapax_store *store = mix->c->store;

	for (int i = 0; i < 30; i++) {
		struct hapax_stats stats = HAPAX_STATS_INIT;
		struct hapax_sweep sweep = HAPAX_SWEEP_INIT;
		struct hapax_cursor cursor = {0};
		enum hapax_outcome outcome = HAPAX_OUTCOME_NONE;
		enum hapax_status status = HAPAX_OK;
		size_t seen = 0;
		char key[16];

		snprintf(key, sizeof(key), "%d", i);
		switch (index % 4) {
		case 0:
			status = hapax_store_scan(store, NULL, &cursor, count_one, &seen, NULL);
			break;
		case 1: status = hapax_store_sweep(store, &sweep, NULL); break;
		case 2: status = hapax_store_stats(store, &stats, NULL, NULL, NULL); break;
		default: break;
		}
		if (status == HAPAX_OK)
			status = hapax_store_check(
				store, hapax_bytes_from_text(key), 0, &outcome, NULL);
		mix->errors += status != HAPAX_OK;
		mix->acquired += outcome == HAPAX_OUTCOME_ACQUIRED;
	}
}

static void threads_use_both_connections(void **state)
{
	struct mix mix = {.c = *state};
	struct crowd crowd;

	crowd_init(&crowd, 8);
	crowd_run(&crowd, do_all_at_once, &mix);
	crowd_done(&crowd);
	assert_int_equal(mix.errors, 0);
	assert_int_equal(mix.acquired, 30);
}

/* The log is copied into the database now and then, and does not grow without end. */
static void the_log_stays_bounded(void **state)
{
	struct store_case *c = *state;
	static char body[100 * 1024];
	struct hapax_result result = {.kind = HAPAX_RESULT_BYTES, .body = {body, sizeof(body)}};
	char log[300];
	struct stat status;

	for (int i = 0; i < 600; i++) {
		struct hapax_op op = case_op(c, HAPAX_OP_SET, "k");

		memset(body, i, sizeof(body));
		op.result = &result;
		assert_int_equal(case_run(c, &op), HAPAX_OK);
	}
	snprintf(log, sizeof(log), "%s-wal", c->url + strlen("sqlite:"));
	assert_int_equal(stat(log, &status), 0);
	assert_true(status.st_size > 0);
	assert_true(status.st_size < 40 * 1024 * 1024);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_lock_held_too_long_is_unavailable, set_up, tear_down),
		cmocka_unit_test_setup_teardown(later_calls_may_wait_longer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_lock_given_up_is_waited_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			the_clock_mark_survives_a_reboot, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			an_unknown_boot_does_not_make_readers_write, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			an_unknown_boot_believes_the_wall_clock_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			counters_do_not_wait_for_the_lock, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_sweep_after_counting_is_synced, set_up, tear_down),
		cmocka_unit_test_setup_teardown(counters_are_kept_by_the_hour, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_sweep_comes_in_pieces, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_full_store_makes_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_large_group_is_one_step, set_up, tear_down),
		cmocka_unit_test_setup_teardown(tokens_end_below_two_to_the_53, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_moved_file_is_not_written, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_small_disk_fills_up, set_up, tear_down),
		cmocka_unit_test_setup_teardown(threads_use_both_connections, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_log_stays_bounded, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("sqlite_store", tests, NULL, NULL);
}
