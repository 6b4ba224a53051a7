/* SPDX-License-Identifier: Apache-2.0 */
#include "support/bank.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hapax/sqlite.h>

bool bank_execute(struct bank *bank, const char *sql)
{
	char *message = NULL;
	bool ok = sqlite3_exec(bank->db, sql, NULL, NULL, &message) == SQLITE_OK;

	if (!ok)
		snprintf(
			bank->err.message, sizeof(bank->err.message), "%s: %s", sql,
			message ? message : "no memory");
	sqlite3_free(message);
	return ok;
}

void bank_open(struct bank *bank, const char *path, const char *journal, int timeout_ms)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	char mode[64];

	memset(bank, 0, sizeof(*bank));
	snprintf(mode, sizeof(mode), "PRAGMA journal_mode = %s", journal);
	options.timeout_ms = timeout_ms;
	bank->buf = hapax_buf_new(1 << 16);
	if (bank->buf && sqlite3_open(path, &bank->db) == SQLITE_OK &&
	    sqlite3_busy_timeout(bank->db, timeout_ms) == SQLITE_OK && bank_execute(bank, mode) &&
	    bank_execute(bank, "PRAGMA synchronous = OFF") &&
	    bank_execute(
		    bank,
		    "CREATE TABLE IF NOT EXISTS payment (key TEXT, payer INTEGER);"
		    "CREATE TABLE IF NOT EXISTS account (balance INTEGER);"
		    "INSERT INTO account SELECT 0 WHERE NOT EXISTS (SELECT * FROM account)") &&
	    hapax_sqlite_join(bank->db, &options, &bank->store, &bank->err) == HAPAX_OK &&
	    hapax_processor_new(bank->store, NULL, &bank->processor, &bank->err) == HAPAX_OK)
		return;
	fprintf(stderr, "# %s: %s\n", path, bank->err.message);
	abort();
}

void bank_close(struct bank *bank)
{
	hapax_processor_free(bank->processor);
	hapax_store_close(bank->store);
	if (sqlite3_close(bank->db) != SQLITE_OK)
		abort();
	hapax_buf_free(bank->buf);
}

int64_t bank_number(struct bank *bank, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	int64_t result = -1;

	if (sqlite3_prepare_v2(bank->db, sql, -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW)
		result = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return result;
}

int64_t bank_balance(struct bank *bank)
{
	return bank_number(bank, "SELECT balance FROM account");
}

int64_t bank_payments(struct bank *bank, const char *key)
{
	char sql[128];

	snprintf(sql, sizeof(sql), "SELECT count(*) FROM payment WHERE key = '%s'", key);
	return bank_number(bank, sql);
}

static enum hapax_run_outcome pay(struct hapax_work *work, void *context)
{
	struct bank *bank = context;
	char text[128];

	snprintf(text, sizeof(text), "INSERT INTO payment VALUES ('%s', %d)", bank->key, getpid());
	if (!bank_execute(bank, text) ||
	    !bank_execute(bank, "UPDATE account SET balance = balance - 10"))
		return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, bank->err.message);
	snprintf(text, sizeof(text), "paid by %d", getpid());
	if (hapax_work_write(work, text, strlen(text)) != HAPAX_OK)
		return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, "no memory");
	return HAPAX_RUN_OK;
}

enum hapax_outcome bank_pay(struct bank *bank, const char *key, bool is_in_ours)
{
	struct hapax_request request = HAPAX_REQUEST_INIT;
	struct hapax_answer answer = HAPAX_ANSWER_INIT;

	bank->key = key;
	bank->err.status = HAPAX_ERR_INVALID;
	request.key = hapax_bytes_from_text(key);
	if (is_in_ours && !bank_execute(bank, "BEGIN IMMEDIATE"))
		return HAPAX_OUTCOME_NONE;
	if (hapax_tx_process(
		    bank->processor, &request, pay, bank, &answer, bank->buf, &bank->err) !=
	    HAPAX_OK) {
		if (is_in_ours && sqlite3_get_autocommit(bank->db) == 0)
			(void)sqlite3_exec(bank->db, "ROLLBACK", NULL, NULL, NULL);
		return HAPAX_OUTCOME_NONE;
	}
	if (is_in_ours && !bank_execute(bank, "COMMIT")) {
		bank->err.status = HAPAX_ERR_UNCERTAIN;
		(void)sqlite3_exec(bank->db, "ROLLBACK", NULL, NULL, NULL);
		return HAPAX_OUTCOME_NONE;
	}
	/* B5: the pid of the run is in the result, unless there was no memory to hand it out. */
	if (answer.result.omitted_bytes > 0)
		return answer.outcome;
	if (answer.result.body.size < 9 || memcmp(answer.result.body.data, "paid by ", 8) != 0)
		return HAPAX_OUTCOME_NONE;
	return answer.outcome;
}

enum hapax_state bank_state(struct bank *bank, const char *key)
{
	struct hapax_record record = {0};
	struct hapax_op op = {.type = HAPAX_OP_LOOKUP, .key = hapax_bytes_from_text(key)};

	op.record = &record;
	op.buf = bank->buf;
	if (hapax_store_run(bank->store, &op, 1, &bank->err) != HAPAX_OK) {
		fprintf(stderr, "# %s: %s\n", key, bank->err.message);
		abort();
	}
	return op.outcome == HAPAX_OUTCOME_FOUND ? record.state : HAPAX_STATE_ABSENT;
}

static bank_step_fn *fate_of_step;

/* False: the call fails, with errno set. */
static bool step(void)
{
	int error = fate_of_step();

	if (error != 0)
		errno = error;
	return error == 0;
}

static ssize_t step_pwrite(int fd, const void *data, size_t size, off_t offset)
{
	return step() ? pwrite(fd, data, size, offset) : -1;
}

static ssize_t step_write(int fd, const void *data, size_t size)
{
	return step() ? write(fd, data, size) : -1;
}

static int step_ftruncate(int fd, off_t size)
{
	return step() ? ftruncate(fd, size) : -1;
}

static int step_unlink(const char *name)
{
	return step() ? unlink(name) : -1;
}

static int step_fsync(int fd)
{
	return step() ? fsync(fd) : -1;
}

/* Locks, mostly. */
static int step_fcntl(int fd, int command, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	/* SQLite takes every failure for a lock that is held, and tries for ten seconds. */
	(void)fate_of_step();
	return fcntl(fd, command, argument);
}

static int step_statement(unsigned kind, void *context, void *statement, void *more)
{
	(void)kind, (void)context, (void)statement, (void)more;
	(void)fate_of_step();
	return 0;
}

void bank_step_by(struct bank *bank, bank_step_fn *fate)
{
	static const struct {
		const char *name;
		sqlite3_syscall_ptr call;
	} calls[] = {
		{"write", (sqlite3_syscall_ptr)(void *)step_write},
		{"pwrite", (sqlite3_syscall_ptr)(void *)step_pwrite},
		{"pwrite64", (sqlite3_syscall_ptr)(void *)step_pwrite},
		{"ftruncate", (sqlite3_syscall_ptr)(void *)step_ftruncate},
		{"unlink", (sqlite3_syscall_ptr)(void *)step_unlink},
		{"fsync", (sqlite3_syscall_ptr)(void *)step_fsync},
		{"fcntl", (sqlite3_syscall_ptr)(void *)step_fcntl},
	};
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);

	fate_of_step = fate;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (vfs->xGetSystemCall(vfs, calls[i].name))
			(void)vfs->xSetSystemCall(vfs, calls[i].name, calls[i].call);
	}
	(void)sqlite3_trace_v2(
		bank->db, SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE, step_statement, NULL);
}

void bank_step_freely(struct bank *bank)
{
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);

	(void)vfs->xSetSystemCall(vfs, NULL, NULL);
	(void)sqlite3_trace_v2(bank->db, 0, NULL, NULL);
}
