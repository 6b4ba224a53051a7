/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tx_processes.c - hapax_tx_process() by several processes on one SQLite file, and
 * by one that is killed at every step: never two effects, never one that is lost.
 *
 * Issue 6: two processes, one key, exactly one business row, 10,000 rounds in proof;
 * kill -9 at every step. A step is a call of SQLite's to the system, or the beginning or
 * end of an SQL statement: between two of them nothing changes that anybody else can see.
 * Children are forked while this process has no connection.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include <hapax/hapax.h>
#include <hapax/sqlite.h>

#include "support/scale.h"
#include "support/temp_dir.h"

enum { CHILD_OK = 0, CHILD_ERROR = 12 };

static struct temp_dir dir;
static char path[256];

static int begin(void **state)
{
	(void)state;
	temp_dir_init(&dir);
	snprintf(path, sizeof(path), "%s/bank.db", dir.path);
	return 0;
}

static int end(void **state)
{
	(void)state;
	temp_dir_done(&dir);
	return 0;
}

/* A bank: an account, its payments, and the ledger beside them. */
struct bank {
	sqlite3 *db;
	struct hapax_store *store;
	struct hapax_processor *processor;
	struct hapax_buf *buf;
	const char *key; /* of the order that is being paid */
};

static bool execute(struct bank *bank, const char *sql)
{
	char *message = NULL;
	bool ok = sqlite3_exec(bank->db, sql, NULL, NULL, &message) == SQLITE_OK;

	if (!ok)
		fprintf(stderr, "# %s: %s\n", sql, message);
	sqlite3_free(message);
	return ok;
}

static void give_up(const char *what, const struct hapax_error *err)
{
	fprintf(stderr, "# %s: %s\n", what, err->message);
	abort();
}

static void bank_open(struct bank *bank, const char *journal)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_error err = {.message = "SQLite refused"};
	char mode[64];

	memset(bank, 0, sizeof(*bank));
	snprintf(mode, sizeof(mode), "PRAGMA journal_mode = %s", journal);
	options.timeout_ms = 60000;
	bank->buf = hapax_buf_new(1 << 16);
	/* No machine crashes here: what is written need not reach a disk. */
	if (sqlite3_open(path, &bank->db) != SQLITE_OK ||
	    sqlite3_busy_timeout(bank->db, 60000) != SQLITE_OK || !execute(bank, mode) ||
	    !execute(bank, "PRAGMA synchronous = OFF") ||
	    !execute(
		    bank,
		    "CREATE TABLE IF NOT EXISTS payment (key TEXT, payer INTEGER);"
		    "CREATE TABLE IF NOT EXISTS account (balance INTEGER)") ||
	    hapax_sqlite_join(bank->db, &options, &bank->store, &err) != HAPAX_OK ||
	    hapax_processor_new(bank->store, NULL, &bank->processor, &err) != HAPAX_OK)
		give_up("open", &err);
}

static void bank_close(struct bank *bank)
{
	hapax_processor_free(bank->processor);
	hapax_store_close(bank->store);
	if (sqlite3_close(bank->db) != SQLITE_OK)
		abort();
	hapax_buf_free(bank->buf);
}

static int64_t number(struct bank *bank, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	int64_t result = -1;

	if (sqlite3_prepare_v2(bank->db, sql, -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW)
		result = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return result;
}

/* Two changes, so that half of them is possible. */
static enum hapax_run_outcome pay(struct hapax_work *work, void *context)
{
	struct bank *bank = context;
	char sql[128];

	snprintf(sql, sizeof(sql), "INSERT INTO payment VALUES ('%s', %d)", bank->key, getpid());
	if (!execute(bank, sql) || !execute(bank, "UPDATE account SET balance = balance - 10"))
		return HAPAX_RUN_TRANSIENT;
	snprintf(sql, sizeof(sql), "paid by %d", getpid());
	if (hapax_work_write(work, sql, strlen(sql)) != HAPAX_OK)
		return HAPAX_RUN_TRANSIENT;
	return HAPAX_RUN_OK;
}

static enum hapax_outcome bank_pay(struct bank *bank, const char *key, bool is_in_ours)
{
	struct hapax_request request = HAPAX_REQUEST_INIT;
	struct hapax_answer answer = HAPAX_ANSWER_INIT;
	struct hapax_error err;

	bank->key = key;
	request.key = hapax_bytes_from_text(key);
	if (is_in_ours && !execute(bank, "BEGIN IMMEDIATE"))
		return HAPAX_OUTCOME_NONE;
	if (hapax_tx_process(bank->processor, &request, pay, bank, &answer, bank->buf, &err) !=
	    HAPAX_OK) {
		fprintf(stderr, "# %s: %s\n", key, err.message);
		return HAPAX_OUTCOME_NONE;
	}
	if (is_in_ours && !execute(bank, "COMMIT"))
		return HAPAX_OUTCOME_NONE;
	/* B5: whoever ran, its pid is in the result. */
	if (answer.result.body.size < 9 || memcmp(answer.result.body.data, "paid by ", 8) != 0)
		return HAPAX_OUTCOME_NONE;
	return answer.outcome;
}

/* Two processes that do each round at the same moment. */
struct race {
	pthread_barrier_t barrier;
	_Atomic uint64_t acquired;
	_Atomic uint64_t replayed;
	_Atomic uint64_t wrong;
};

static struct race *race_new(void)
{
	struct race *race = mmap(
		NULL, sizeof(*race), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_barrierattr_t shared;

	assert_true(race != MAP_FAILED);
	assert_int_equal(pthread_barrierattr_init(&shared), 0);
	assert_int_equal(pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED), 0);
	assert_int_equal(pthread_barrier_init(&race->barrier, &shared, 2), 0);
	pthread_barrierattr_destroy(&shared);
	return race;
}

static void run_race(struct race *race, uint64_t rounds)
{
	struct bank bank;

	bank_open(&bank, "WAL");
	for (uint64_t round = 0; round < rounds; round++) {
		enum hapax_outcome outcome;
		char key[32];

		snprintf(key, sizeof(key), "order-%llu", (unsigned long long)round);
		pthread_barrier_wait(&race->barrier);
		outcome = bank_pay(&bank, key, round % 4 == 3);
		if (outcome == HAPAX_OUTCOME_ACQUIRED)
			atomic_fetch_add(&race->acquired, 1);
		else if (outcome == HAPAX_OUTCOME_REPLAY)
			atomic_fetch_add(&race->replayed, 1);
		else
			atomic_fetch_add(&race->wrong, 1);
	}
	bank_close(&bank);
}

static int status_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void make_bank(const char *journal)
{
	struct bank bank;

	bank_open(&bank, journal);
	assert_true(execute(&bank, "INSERT INTO account VALUES (0)"));
	bank_close(&bank);
}

/* B6: exactly one row for each key, whoever comes first; the other waits, then replays. */
static void two_processes_one_row(void **state)
{
	uint64_t rounds = scale_count(10000, 1000);
	double begun = scale_seconds();
	struct race *race = race_new();
	struct bank bank;
	pid_t pids[2];

	(void)state;
	make_bank("WAL");
	for (int i = 0; i < 2; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			run_race(race, rounds);
			_exit(CHILD_OK);
		}
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(status_of(pids[i]), 0);
	assert_int_equal(race->wrong, 0);
	assert_int_equal(race->acquired, rounds);
	assert_int_equal(race->replayed, rounds);
	bank_open(&bank, "WAL");
	assert_int_equal(number(&bank, "SELECT count(*) FROM payment"), rounds);
	assert_int_equal(number(&bank, "SELECT count(DISTINCT key) FROM payment"), rounds);
	assert_int_equal(number(&bank, "SELECT balance FROM account"), -10 * (int64_t)rounds);
	/* Both have run: else it was no race. */
	assert_int_equal(number(&bank, "SELECT count(DISTINCT payer) FROM payment"), 2);
	bank_close(&bank);
	munmap(race, sizeof(*race));
	scale_report(
		"two processes, one key, one transaction: rounds", rounds, scale_seconds() - begun,
		true);
}

/* The death of a process, so many steps from now. */
static long steps_left;

static void step(void)
{
	if (steps_left > 0 && --steps_left == 0)
		kill(getpid(), SIGKILL);
}

static ssize_t dying_pwrite(int fd, const void *data, size_t size, off_t offset)
{
	step();
	return pwrite(fd, data, size, offset);
}

static ssize_t dying_write(int fd, const void *data, size_t size)
{
	step();
	return write(fd, data, size);
}

static int dying_ftruncate(int fd, off_t size)
{
	step();
	return ftruncate(fd, size);
}

static int dying_unlink(const char *name)
{
	step();
	return unlink(name);
}

static int dying_fsync(int fd)
{
	step();
	return fsync(fd);
}

/* Locks, mostly. */
static int dying_fcntl(int fd, int command, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	step();
	return fcntl(fd, command, argument);
}

static int on_statement(unsigned kind, void *context, void *statement, void *more)
{
	(void)kind, (void)context, (void)statement, (void)more;
	step();
	return 0;
}

static void die_at(struct bank *bank, long steps)
{
	static const struct {
		const char *name;
		sqlite3_syscall_ptr call;
	} calls[] = {
		{"write", (sqlite3_syscall_ptr)dying_write},
		{"pwrite", (sqlite3_syscall_ptr)dying_pwrite},
		{"pwrite64", (sqlite3_syscall_ptr)dying_pwrite},
		{"ftruncate", (sqlite3_syscall_ptr)dying_ftruncate},
		{"unlink", (sqlite3_syscall_ptr)dying_unlink},
		{"fsync", (sqlite3_syscall_ptr)dying_fsync},
		{"fcntl", (sqlite3_syscall_ptr)dying_fcntl},
	};
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (vfs->xGetSystemCall(vfs, calls[i].name))
			(void)vfs->xSetSystemCall(vfs, calls[i].name, calls[i].call);
	}
	(void)sqlite3_trace_v2(
		bank->db, SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE, on_statement, NULL);
	steps_left = steps;
}

static void victim(const char *journal, const char *key, bool is_in_ours, long steps, int said)
{
	struct bank bank;

	bank_open(&bank, journal);
	die_at(&bank, steps);
	if (bank_pay(&bank, key, is_in_ours) == HAPAX_OUTCOME_NONE)
		_exit(CHILD_ERROR);
	/* Acknowledged from here on. */
	if (write(said, "!", 1) != 1)
		_exit(CHILD_ERROR);
	steps_left = 0;
	_exit(CHILD_OK);
}

static int64_t rows_of(struct bank *bank, const char *key)
{
	char sql[128];

	snprintf(sql, sizeof(sql), "SELECT count(*) FROM payment WHERE key = '%s'", key);
	return number(bank, sql);
}

static bool is_done(struct bank *bank, const char *key)
{
	struct hapax_record record = {0};
	struct hapax_op op = {.type = HAPAX_OP_LOOKUP, .key = hapax_bytes_from_text(key)};

	op.record = &record;
	op.buf = bank->buf;
	assert_int_equal(hapax_store_run(bank->store, &op, 1, NULL), HAPAX_OK);
	/* Half a run is seen by nobody. */
	if (op.outcome == HAPAX_OUTCOME_FOUND)
		assert_int_equal(record.state, HAPAX_STATE_DONE);
	return op.outcome == HAPAX_OUTCOME_FOUND;
}

/* What a death left behind, and what the next delivery makes of it. */
static void expect_all_or_nothing(
	const char *journal, const char *key, bool was_acknowledged, int64_t *balance)
{
	struct bank bank;
	int64_t rows;

	bank_open(&bank, journal);
	rows = rows_of(&bank, key);
	assert_in_range(rows, was_acknowledged ? 1 : 0, 1);
	assert_int_equal(is_done(&bank, key), rows == 1);
	assert_int_equal(number(&bank, "SELECT balance FROM account"), *balance - 10 * rows);
	assert_int_equal(
		bank_pay(&bank, key, false),
		rows == 1 ? HAPAX_OUTCOME_REPLAY : HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(rows_of(&bank, key), 1);
	*balance -= 10;
	assert_int_equal(number(&bank, "SELECT balance FROM account"), *balance);
	bank_close(&bank);
}

/* Dies at each step in turn. Returns how many there were. */
static long kill_at_every_step(const char *journal, bool is_in_ours)
{
	int64_t balance = 0;
	long deaths = 0;
	int status;

	make_bank(journal);
	do {
		char key[32];
		int said[2];
		char byte;
		pid_t pid;

		snprintf(key, sizeof(key), "order-%ld", deaths);
		assert_int_equal(pipe(said), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			victim(journal, key, is_in_ours, deaths + 1, said[1]);
		close(said[1]);
		status = status_of(pid);
		assert_true(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
		expect_all_or_nothing(journal, key, read(said[0], &byte, 1) == 1, &balance);
		close(said[0]);
		deaths++;
	} while (status != 0);
	return deaths - 1;
}

static void a_killed_process_leaves_all_or_nothing(void **state)
{
	static const char *const journals[] = {"WAL", "DELETE"};
	double begun = scale_seconds();
	long deaths = 0;

	for (size_t i = 0; i < 2; i++) {
		for (int is_in_ours = 0; is_in_ours < 2; is_in_ours++) {
			long steps = kill_at_every_step(journals[i], is_in_ours);

			printf("# %s, %s transaction: %ld steps\n", journals[i],
			       is_in_ours ? "the caller's" : "its own", steps);
			/* Begin, claim, two changes, complete, commit: there must be many. */
			assert_true(steps > 30);
			deaths += steps;
			(void)end(state);
			(void)begin(state);
		}
	}
	scale_report(
		"kill -9 at every step of a transaction", (uint64_t)deaths, scale_seconds() - begun,
		true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(two_processes_one_row, begin, end),
		cmocka_unit_test_setup_teardown(a_killed_process_leaves_all_or_nothing, begin, end),
	};

	/* Nor need it wait for one. */
	if (access("/dev/shm", W_OK) == 0)
		(void)setenv("TMPDIR", "/dev/shm", 0);
	return cmocka_run_group_tests_name("tx_processes", tests, NULL, NULL);
}
