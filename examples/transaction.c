/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transaction.c - a payment that is booked exactly once: the store is in the bank's own
 * SQLite database, and claim, booking, completion and receipt are one transaction.
 */
#include <stdio.h>
#include <stdlib.h>

#include <hapax/hapax.h>
#include <hapax/sqlite.h>

#include <sqlite3.h>

struct transfer {
	sqlite3 *db; /* the connection that the store is joined to */
	const char *id;
	int amount;
};

static int execute(sqlite3 *db, const char *format, int amount)
{
	char *sql = sqlite3_mprintf(format, amount);
	int code = sqlite3_exec(db, sql, NULL, NULL, NULL);

	sqlite3_free(sql);
	return code == SQLITE_OK;
}

/* Knows nothing of transactions, nor of duplicates. What it did goes with its failure. */
static enum hapax_run_outcome book(struct hapax_work *work, void *context)
{
	const struct transfer *transfer = context;
	sqlite3 *db = transfer->db;

	if (!execute(
		    db, "UPDATE account SET balance = balance - %d WHERE name = 'ann'",
		    transfer->amount) ||
	    !execute(
		    db, "UPDATE account SET balance = balance + %d WHERE name = 'bob'",
		    transfer->amount))
		return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, sqlite3_errmsg(db));
	if (hapax_work_write(work, "receipt 4711", 12) != HAPAX_OK)
		return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, "no memory for the receipt");
	return HAPAX_RUN_OK;
}

static int book_once(
	struct hapax_processor *processor, struct transfer *transfer, struct hapax_buf *buf)
{
	struct hapax_request request = HAPAX_REQUEST_INIT;
	struct hapax_answer answer = HAPAX_ANSWER_INIT;
	struct hapax_error err;

	request.key = hapax_bytes_from_text(transfer->id);
	if (hapax_tx_process(processor, &request, book, transfer, &answer, buf, &err) != HAPAX_OK) {
		(void)printf("%s: nothing was booked: %s\n", transfer->id, err.message);
		return 1;
	}
	(void)printf(
		"%s: %s%.*s\n", transfer->id, hapax_answer_was_replay(&answer) ? "replayed: " : "",
		(int)answer.result.body.size, (const char *)answer.result.body.data);
	return 0;
}

static int print_balance(void *context, int count, char **values, char **names)
{
	(void)context, (void)count, (void)names;
	(void)printf("%s has %s\n", values[0], values[1]);
	return 0;
}

static sqlite3 *open_bank(const char *path)
{
	static const char sql[] = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
				  "CREATE TABLE IF NOT EXISTS account"
				  " (name TEXT PRIMARY KEY, balance INTEGER CHECK (balance >= 0));"
				  "INSERT OR IGNORE INTO account VALUES ('ann', 100), ('bob', 0);";
	sqlite3 *db = NULL;

	if (sqlite3_open(path, &db) == SQLITE_OK && sqlite3_busy_timeout(db, 5000) == SQLITE_OK &&
	    sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK)
		return db;
	(void)fprintf(stderr, "transaction: %s: %s\n", path, sqlite3_errmsg(db));
	(void)sqlite3_close(db);
	return NULL;
}

/* transaction [ID [AMOUNT [FILE]]] */
int main(int argc, char **argv)
{
	struct transfer transfer = {NULL, argc > 1 ? argv[1] : "transfer-17", 30};
	struct hapax_processor *processor = NULL;
	struct hapax_store *store = NULL;
	struct hapax_buf *buf = hapax_buf_new(1 << 20);
	struct hapax_error err;
	int status = 1;

	if (argc > 2)
		transfer.amount = (int)strtol(argv[2], NULL, 10);
	transfer.db = open_bank(argc > 3 ? argv[3] : "bank.db");
	if (transfer.db == NULL)
		return 1;
	if (hapax_sqlite_join(transfer.db, NULL, &store, &err) == HAPAX_OK &&
	    hapax_processor_new(store, NULL, &processor, &err) == HAPAX_OK)
		status = book_once(processor, &transfer, buf);
	else
		(void)fprintf(stderr, "transaction: %s\n", err.message);
	(void)sqlite3_exec(
		transfer.db, "SELECT * FROM account ORDER BY name", print_balance, NULL, NULL);
	hapax_processor_free(processor);
	hapax_store_close(store);
	(void)sqlite3_close(transfer.db);
	hapax_buf_free(buf);
	return status;
}
