/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every way in which the ground can give way: the n-th read, write, sync, mapping or
 * allocation fails, once or forever, for all n. One run of operations, one oracle:
 *
 *  I2   what was answered OK is there when the store is opened again, byte for byte
 *  I13  what was answered with a definite error has left nothing
 *  I11  once the store has failed, nothing is answered OK until it is opened again
 *
 * judged twice: in the files as they lie after the failure, as a crash would leave
 * them, and after an orderly close.
 */
#include "store/sqlite/sqlite_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/alloc.h"
#include "support/scale.h"
#include "support/store_case.h"

/* Where a failure can be put. */
enum point {
	POINT_NONE,
	POINT_READ,
	POINT_WRITE,
	POINT_SYNC,
	POINT_SHM,
	POINT_OPEN,
	POINT_MALLOC,
	POINT_ALLOC
};

static struct {
	_Atomic int point;
	_Atomic int code;
	_Atomic int forever;
	_Atomic long left; /* calls until it fails */
	_Atomic long fired;
} injection;

static void arm(enum point point, int code, long nth, int forever)
{
	injection.code = code;
	injection.forever = forever;
	injection.left = nth;
	injection.fired = 0;
	injection.point = (int)point;
	if (point == POINT_ALLOC)
		hx_alloc_fail_at((uint64_t)nth, forever);
}

static void disarm(void)
{
	injection.point = POINT_NONE;
	hx_alloc_fail_at(0, 0);
}

/* The code with which this call must fail, or SQLITE_OK. */
static int strike(enum point point)
{
	long left;

	if (injection.point != (int)point)
		return SQLITE_OK;
	left = atomic_fetch_sub(&injection.left, 1);
	if (left > 1 || (left < 1 && !injection.forever))
		return SQLITE_OK;
	injection.fired++;
	return injection.code;
}

/*
 * A file layer over the system's, which strikes.
 */
struct shim_file {
	sqlite3_file base;
	sqlite3_file *real; /* lies behind */
};

static sqlite3_vfs shim;
static sqlite3_vfs *below;

static sqlite3_file *real_of(sqlite3_file *file)
{
	return ((struct shim_file *)file)->real;
}

static int shim_close(sqlite3_file *file)
{
	return real_of(file)->pMethods->xClose(real_of(file));
}

static int shim_read(sqlite3_file *file, void *data, int size, sqlite3_int64 offset)
{
	int code = strike(POINT_READ);

	return code ? code : real_of(file)->pMethods->xRead(real_of(file), data, size, offset);
}

static int shim_write(sqlite3_file *file, const void *data, int size, sqlite3_int64 offset)
{
	int code = strike(POINT_WRITE);

	/* What fell short has still written something. */
	if (code && size > 1)
		(void)real_of(file)->pMethods->xWrite(real_of(file), data, size / 2, offset);
	return code ? code : real_of(file)->pMethods->xWrite(real_of(file), data, size, offset);
}

static int shim_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	int code = strike(POINT_WRITE);

	return code ? code : real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int shim_sync(sqlite3_file *file, int flags)
{
	/* No machine crashes here, so nothing has to reach the disk. */
	(void)file;
	(void)flags;
	return strike(POINT_SYNC);
}

static int shim_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
	return real_of(file)->pMethods->xFileSize(real_of(file), ret_size);
}

static int shim_lock(sqlite3_file *file, int level)
{
	return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int shim_unlock(sqlite3_file *file, int level)
{
	return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int shim_is_reserved(sqlite3_file *file, int *ret_reserved)
{
	return real_of(file)->pMethods->xCheckReservedLock(real_of(file), ret_reserved);
}

static int shim_control(sqlite3_file *file, int op, void *arg)
{
	return real_of(file)->pMethods->xFileControl(real_of(file), op, arg);
}

static int shim_sector_size(sqlite3_file *file)
{
	return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int shim_device(sqlite3_file *file)
{
	return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int shim_shm_map(
	sqlite3_file *file, int page, int size, int extend, void volatile **ret_memory)
{
	int code = strike(POINT_SHM);

	return code
		? code
		: real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, ret_memory);
}

static int shim_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
	return real_of(file)->pMethods->xShmLock(real_of(file), offset, count, flags);
}

static void shim_shm_barrier(sqlite3_file *file)
{
	real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int shim_shm_unmap(sqlite3_file *file, int delete)
{
	return real_of(file)->pMethods->xShmUnmap(real_of(file), delete);
}

static const sqlite3_io_methods shim_methods = {
	.iVersion = 2,
	.xClose = shim_close,
	.xRead = shim_read,
	.xWrite = shim_write,
	.xTruncate = shim_truncate,
	.xSync = shim_sync,
	.xFileSize = shim_size,
	.xLock = shim_lock,
	.xUnlock = shim_unlock,
	.xCheckReservedLock = shim_is_reserved,
	.xFileControl = shim_control,
	.xSectorSize = shim_sector_size,
	.xDeviceCharacteristics = shim_device,
	.xShmMap = shim_shm_map,
	.xShmLock = shim_shm_lock,
	.xShmBarrier = shim_shm_barrier,
	.xShmUnmap = shim_shm_unmap,
};

static int shim_open(
	sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
	struct shim_file *target = (struct shim_file *)file;
	int code = strike(POINT_OPEN);

	(void)vfs;
	target->base.pMethods = NULL;
	target->real = (sqlite3_file *)(target + 1);
	if (code == SQLITE_OK)
		code = below->xOpen(below, name, target->real, flags, ret_flags);
	if (code == SQLITE_OK)
		target->base.pMethods = &shim_methods;
	return code;
}

/* SQLite's allocator, which strikes. */
static sqlite3_mem_methods mem_below;

static void *mem_malloc(int size)
{
	return strike(POINT_MALLOC) ? NULL : mem_below.xMalloc(size);
}

static void *mem_realloc(void *memory, int size)
{
	return strike(POINT_MALLOC) ? NULL : mem_below.xRealloc(memory, size);
}

static void install(void)
{
	static sqlite3_mem_methods mem;

	if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &mem_below) != SQLITE_OK)
		abort();
	mem = mem_below;
	mem.xMalloc = mem_malloc;
	mem.xRealloc = mem_realloc;
	if (sqlite3_config(SQLITE_CONFIG_MALLOC, &mem) != SQLITE_OK ||
	    sqlite3_initialize() != SQLITE_OK)
		abort();
	below = sqlite3_vfs_find(NULL);
	shim = *below;
	shim.zName = "shim";
	shim.szOsFile = below->szOsFile + (int)sizeof(struct shim_file);
	shim.xOpen = shim_open;
	shim.pNext = NULL;
	if (sqlite3_vfs_register(&shim, 1) != SQLITE_OK)
		abort();
}

/*
 * The run and its oracle: for each key, in which states it may be.
 */
enum { KEYS = 4, BODY_SIZE = 6000 };

struct oracle {
	unsigned allowed[KEYS]; /* a bit per enum hapax_state */
	uint64_t tokens[KEYS];  /* 0: not known */
	bool has_failed;        /* HAPAX_ERR_FAILED was answered */
	bool broke_latch;       /* and then HAPAX_OK */
};

static const char *const key_names[KEYS] = {"a", "b", "c", "d"};

static unsigned char body[BODY_SIZE];

static void judge(struct oracle *oracle, int key, const struct hapax_op *op, enum hapax_state next)
{
	if (op->status == HAPAX_OK) {
		oracle->broke_latch |= oracle->has_failed;
		if (op->outcome == HAPAX_OUTCOME_ACQUIRED || op->outcome == HAPAX_OUTCOME_APPLIED)
			oracle->allowed[key] = 1u << next;
	} else if (op->status == HAPAX_ERR_UNCERTAIN) {
		oracle->allowed[key] |= 1u << next;
	}
	oracle->has_failed |= op->status == HAPAX_ERR_FAILED;
}

static void step(
	struct store_case *c, struct oracle *oracle, int key, enum hapax_op_type type,
	enum hapax_state next)
{
	struct hapax_op op = case_op(c, type, key_names[key]);
	struct hapax_result result = {.kind = HAPAX_RESULT_BYTES, .body = {body, BODY_SIZE}};
	bool needs_token = type == HAPAX_OP_COMPLETE || type == HAPAX_OP_RELEASE ||
		type == HAPAX_OP_PARK || type == HAPAX_OP_RENEW;

	if (needs_token && oracle->tokens[key] == 0)
		return;
	if (needs_token)
		op.token = oracle->tokens[key];
	op.result = &result;
	(void)hapax_store_run(c->store, &op, 1, NULL);
	judge(oracle, key, &op, next);
	if (type == HAPAX_OP_CLAIM)
		oracle->tokens[key] = op.status == HAPAX_OK ? op.token : 0;
}

/* Two claims in one step. */
static void step_group(struct store_case *c, struct oracle *oracle)
{
	struct hapax_op ops[2] = {
		case_op(c, HAPAX_OP_CLAIM, key_names[2]), case_op(c, HAPAX_OP_CLAIM, key_names[3])};

	ops[1].attempt_id = ops[0].attempt_id;
	ops[0].flags = HAPAX_OP_LINKED | HAPAX_OP_ALL_OR_NOTHING;
	(void)hapax_store_run(c->store, ops, 2, NULL);
	for (int i = 0; i < 2; i++) {
		judge(oracle, 2 + i, &ops[i], HAPAX_STATE_CLAIMED);
		oracle->tokens[2 + i] =
			ops[i].status == HAPAX_OK && ops[i].outcome == HAPAX_OUTCOME_ACQUIRED
			? ops[i].token
			: 0;
	}
}

static int ignore(const struct hapax_record *record, void *context)
{
	(void)record;
	(void)context;
	return 0;
}

static int ignore_counters(const struct hapax_counters *counters, void *context)
{
	(void)counters;
	(void)context;
	return 0;
}

static void run_steps(struct store_case *c, struct oracle *oracle)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;
	struct hapax_cursor cursor = {0};
	enum hapax_outcome outcome;

	step(c, oracle, 0, HAPAX_OP_CLAIM, HAPAX_STATE_CLAIMED);
	step(c, oracle, 0, HAPAX_OP_COMPLETE, HAPAX_STATE_DONE);
	step(c, oracle, 0, HAPAX_OP_LOOKUP, HAPAX_STATE_DONE);
	step(c, oracle, 1, HAPAX_OP_SET, HAPAX_STATE_DONE);
	step_group(c, oracle);
	step(c, oracle, 2, HAPAX_OP_PARK, HAPAX_STATE_PARKED);
	step(c, oracle, 3, HAPAX_OP_RELEASE, HAPAX_STATE_FAILED);
	(void)hapax_store_check(c->store, hapax_bytes_from_text("soon gone"), 1, &outcome, NULL);
	store_case_advance(c, 1);
	(void)hapax_store_scan(c->store, NULL, &cursor, ignore, NULL, NULL);
	(void)hapax_store_sweep(c->store, &sweep, NULL);
	(void)hapax_store_stats(c->store, &stats, ignore_counters, NULL, NULL);
	step(c, oracle, 1, HAPAX_OP_FORGET, HAPAX_STATE_ABSENT);
	step(c, oracle, 2, HAPAX_OP_COMPLETE, HAPAX_STATE_DONE);
	step(c, oracle, 3, HAPAX_OP_CLAIM, HAPAX_STATE_CLAIMED);
}

static void must_agree(struct store_case *c, const struct oracle *oracle, const char *when)
{
	for (int key = 0; key < KEYS; key++) {
		enum hapax_state state = case_state(c, key_names[key]);

		if (!(oracle->allowed[key] & 1u << state))
			fail_msg(
				"%s: key %s is %s, allowed were %#x", when, key_names[key],
				hapax_state_name(state), oracle->allowed[key]);
		if (state == HAPAX_STATE_DONE)
			assert_true(case_bytes_are(c->record.result.body, body, BODY_SIZE));
	}
}

static void copy_file(const char *source, const char *target)
{
	static char buffer[1 << 22];
	FILE *in = fopen(source, "rb");
	FILE *out;
	size_t size;

	if (!in)
		return;
	out = fopen(target, "wb");
	assert_non_null(out);
	size = fread(buffer, 1, sizeof(buffer), in);
	assert_true(size < sizeof(buffer));
	assert_int_equal(fwrite(buffer, 1, size, out), size);
	fclose(in);
	assert_int_equal(fclose(out), 0);
}

/* The files as they lie, without the shared index, which no crash of the machine leaves. */
static void must_agree_after_crash(struct store_case *c, const struct oracle *oracle)
{
	struct hapax_store *store = c->store;
	char url[sizeof(c->url)];
	char source[300], target[300];

	memcpy(url, c->url, sizeof(url));
	for (int i = 0; i < 3; i++) {
		static const char *const tails[] = {"", "-wal", "-journal"};

		snprintf(source, sizeof(source), "%s%s", url + 7, tails[i]);
		snprintf(target, sizeof(target), "%s/crashed.db%s", c->dir.path, tails[i]);
		copy_file(source, target);
	}
	snprintf(c->url, sizeof(c->url), "sqlite:%.200s/crashed.db", c->dir.path);
	store_case_open(c);
	must_agree(c, oracle, "after a crash");
	hapax_store_close(c->store);
	c->store = store;
	memcpy(c->url, url, sizeof(url));
}

/* One run with one failure. How many calls were made at that point, up to the end. */
static long run_once(enum point point, int code, long nth, int forever)
{
	struct oracle oracle = {.allowed = {1, 1, 1, 1}};
	struct hapax_error err = {0};
	struct store_case c;
	uint64_t asked;
	long calls;

	store_case_init(&c, "sqlite:");
	c.options.timeout_ms = 50;
	asked = hx_alloc_count();
	arm(point, code, nth, forever);
	if (hapax_store_open(c.url, &c.options, &c.store, &err) == HAPAX_OK)
		run_steps(&c, &oracle);
	else
		c.store = NULL;
	calls = point == POINT_ALLOC ? (long)(hx_alloc_count() - asked) : nth - injection.left;
	disarm();
	if (oracle.broke_latch)
		fail_msg("point %d code %d nth %ld: OK after FAILED", point, code, nth);
	must_agree_after_crash(&c, &oracle);
	hapax_store_close(c.store);
	c.store = NULL;
	store_case_open(&c);
	must_agree(&c, &oracle, "after a close");
	store_case_done(&c);
	return calls;
}

/* Every place with HAPAX_PROOF=1; otherwise about as many as RUNS, evenly spread. */
static void run_all(const char *what, enum point point, int code)
{
	enum { RUNS = 150, BEYOND = 1 << 30 };
	double begin = scale_seconds();
	long calls = run_once(point, code, BEYOND, 0);
	long runs = (long)scale_count((uint64_t)calls, RUNS);
	long stride = calls > runs ? calls / runs : 1;
	uint64_t places = 0;

	assert_true(calls > 0);
	for (long n = 1; n <= calls; n += stride) {
		(void)run_once(point, code, n, 0);
		(void)run_once(point, code, n, 1);
		places += 2;
	}
	scale_report(what, places, scale_seconds() - begin, true);
}

static void the_nth_write_fails(void **state)
{
	(void)state;
	run_all("I11: write", POINT_WRITE, SQLITE_IOERR_WRITE);
}

/* I12, I13: a full disk is definite. */
static void the_disk_is_full_at_the_nth_write(void **state)
{
	(void)state;
	run_all("I12: full", POINT_WRITE, SQLITE_FULL);
}

static void the_nth_sync_fails(void **state)
{
	(void)state;
	run_all("I11: sync", POINT_SYNC, SQLITE_IOERR_FSYNC);
}

static void the_nth_read_fails(void **state)
{
	(void)state;
	run_all("I11: read", POINT_READ, SQLITE_IOERR_READ);
}

static void the_nth_mapping_fails(void **state)
{
	(void)state;
	run_all("I11: shared index", POINT_SHM, SQLITE_IOERR_SHMMAP);
}

static void the_nth_open_fails(void **state)
{
	(void)state;
	run_all("I13: open", POINT_OPEN, SQLITE_CANTOPEN);
}

static void sqlite_has_no_memory(void **state)
{
	(void)state;
	run_all("I13: SQLite's memory", POINT_MALLOC, SQLITE_NOMEM);
}

static void we_have_no_memory(void **state)
{
	(void)state;
	run_all("I13: our memory", POINT_ALLOC, 0);
}

/* I11: after a sync that failed, the one that follows would succeed and prove nothing. */
static void a_failed_sync_latches(void **state)
{
	struct store_case c;
	struct hapax_op op;
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;
	struct hapax_cursor cursor = {0};
	struct hapax_error err;

	(void)state;
	store_case_begin(&c, "sqlite:");
	assert_int_equal(case_claim(&c, "before", NULL), HAPAX_OUTCOME_ACQUIRED);
	arm(POINT_SYNC, SQLITE_IOERR_FSYNC, 1, 0);
	op = case_op(&c, HAPAX_OP_CLAIM, "k");
	assert_int_equal(case_run(&c, &op), HAPAX_ERR_UNCERTAIN);
	assert_int_equal(injection.fired, 1);
	for (unsigned type = HAPAX_OP_CLAIM; type <= HAPAX_OP_EXPIRE; type++) {
		op = case_op_token(&c, (enum hapax_op_type)type, "before", 1);
		assert_int_equal(case_run(&c, &op), HAPAX_ERR_FAILED);
	}
	assert_int_equal(hapax_store_stats(c.store, &stats, NULL, NULL, &err), HAPAX_ERR_FAILED);
	assert_non_null(strstr(err.message, "reopen it"));
	assert_int_equal(hapax_store_sweep(c.store, &sweep, &err), HAPAX_ERR_FAILED);
	assert_int_equal(
		hapax_store_scan(c.store, NULL, &cursor, ignore, NULL, &err), HAPAX_ERR_FAILED);
	disarm();
	store_case_reopen(&c);
	assert_int_equal(case_claim(&c, "before", NULL), HAPAX_OUTCOME_IN_PROGRESS);
	assert_int_equal(case_claim(&c, "after", NULL), HAPAX_OUTCOME_ACQUIRED);
	store_case_done(&c);
}

/* A full disk latches nothing, stops no replay, and is over when there is room again. */
static void a_full_disk_is_over_when_there_is_room(void **state)
{
	struct store_case c;
	struct hapax_op ops[4];
	uint64_t token;

	(void)state;
	store_case_begin(&c, "sqlite:");
	assert_int_equal(case_claim(&c, "held", &token), HAPAX_OUTCOME_ACQUIRED);
	ops[0] = case_op(&c, HAPAX_OP_CHECK, "done");
	assert_int_equal(case_run(&c, &ops[0]), HAPAX_OK);
	arm(POINT_WRITE, SQLITE_FULL, 1, 1);
	ops[0] = case_op(&c, HAPAX_OP_CHECK, "new");
	ops[1] = case_op(&c, HAPAX_OP_CHECK, "done");
	ops[2] = case_op(&c, HAPAX_OP_LOOKUP, "new");
	ops[3] = case_op_token(&c, HAPAX_OP_COMPLETE, "held", token);
	assert_int_equal(hapax_store_run(c.store, ops, 4, NULL), HAPAX_ERR_LIMIT);
	assert_int_equal(ops[0].status, HAPAX_ERR_LIMIT);
	assert_int_equal(ops[1].status, HAPAX_OK);
	assert_int_equal(ops[1].outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(ops[2].outcome, HAPAX_OUTCOME_ABSENT);
	assert_int_equal(ops[3].status, HAPAX_ERR_LIMIT);
	disarm();
	assert_int_equal(hapax_store_run(c.store, ops, 4, NULL), HAPAX_OK);
	assert_int_equal(ops[0].outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(ops[3].outcome, HAPAX_OUTCOME_APPLIED);
	store_case_done(&c);
}

/* What each code means for the caller: nothing was done, unknown, or start again. */
static void codes_have_their_status(void **state)
{
	static const struct {
		int code;
		enum hapax_status before, in;
		bool fatal;
	} rows[] = {
		{SQLITE_BUSY, HAPAX_ERR_UNAVAILABLE, HAPAX_ERR_UNAVAILABLE, false},
		{SQLITE_BUSY_SNAPSHOT, HAPAX_ERR_UNAVAILABLE, HAPAX_ERR_UNAVAILABLE, false},
		{SQLITE_BUSY_RECOVERY, HAPAX_ERR_UNAVAILABLE, HAPAX_ERR_UNAVAILABLE, false},
		{SQLITE_LOCKED, HAPAX_ERR_UNAVAILABLE, HAPAX_ERR_UNAVAILABLE, false},
		{SQLITE_PROTOCOL, HAPAX_ERR_UNAVAILABLE, HAPAX_ERR_UNAVAILABLE, false},
		{SQLITE_FULL, HAPAX_ERR_LIMIT, HAPAX_ERR_LIMIT, false},
		{SQLITE_TOOBIG, HAPAX_ERR_LIMIT, HAPAX_ERR_LIMIT, false},
		{SQLITE_NOMEM, HAPAX_ERR_NO_MEMORY, HAPAX_ERR_UNCERTAIN, false},
		{SQLITE_IOERR_NOMEM, HAPAX_ERR_NO_MEMORY, HAPAX_ERR_UNCERTAIN, false},
		{SQLITE_INTERRUPT, HAPAX_ERR_UNAVAILABLE, HAPAX_ERR_UNCERTAIN, false},
		{SQLITE_READONLY, HAPAX_ERR_UNAVAILABLE, HAPAX_ERR_UNCERTAIN, false},
		{SQLITE_CANTOPEN, HAPAX_ERR_UNAVAILABLE, HAPAX_ERR_UNCERTAIN, false},
		{SQLITE_READONLY_DBMOVED, HAPAX_ERR_FAILED, HAPAX_ERR_UNCERTAIN, true},
		{SQLITE_IOERR_FSYNC, HAPAX_ERR_FAILED, HAPAX_ERR_UNCERTAIN, true},
		{SQLITE_IOERR_WRITE, HAPAX_ERR_FAILED, HAPAX_ERR_UNCERTAIN, true},
		{SQLITE_CORRUPT, HAPAX_ERR_FAILED, HAPAX_ERR_UNCERTAIN, true},
		{SQLITE_NOTADB, HAPAX_ERR_FAILED, HAPAX_ERR_UNCERTAIN, true},
		{SQLITE_SCHEMA, HAPAX_ERR_FAILED, HAPAX_ERR_UNCERTAIN, true},
		{SQLITE_CONSTRAINT, HAPAX_ERR_FAILED, HAPAX_ERR_UNCERTAIN, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(
			hx_sqlite_status(rows[i].code, HX_SQLITE_BEFORE_COMMIT), rows[i].before);
		assert_int_equal(hx_sqlite_status(rows[i].code, HX_SQLITE_IN_COMMIT), rows[i].in);
		assert_int_equal(hx_sqlite_is_fatal(rows[i].code), rows[i].fatal);
		assert_true(strlen(hx_sqlite_reason(rows[i].code)) > 0);
	}
	assert_false(hx_sqlite_is_fatal(SQLITE_OK));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codes_have_their_status),
		cmocka_unit_test(a_failed_sync_latches),
		cmocka_unit_test(a_full_disk_is_over_when_there_is_room),
		cmocka_unit_test(the_nth_write_fails),
		cmocka_unit_test(the_disk_is_full_at_the_nth_write),
		cmocka_unit_test(the_nth_sync_fails),
		cmocka_unit_test(the_nth_read_fails),
		cmocka_unit_test(the_nth_mapping_fails),
		cmocka_unit_test(the_nth_open_fails),
		cmocka_unit_test(sqlite_has_no_memory),
		cmocka_unit_test(we_have_no_memory),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	install();
	for (size_t i = 0; i < sizeof(body); i++)
		body[i] = (unsigned char)(i * 131 + i / 256);
	return cmocka_run_group_tests_name("sqlite_fault", tests, NULL, NULL);
}
