/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bank.h - an application with its own SQLite database: an account, its payments, and
 * the ledger beside them, in one file. For tests of transactional processing.
 *
 * A payment is two changes, so that half of one is possible. Nothing here depends on how
 * the machine ends: what is written need not reach a disk.
 */
#ifndef TEST_SUPPORT_BANK_H
#define TEST_SUPPORT_BANK_H

#include <stdbool.h>
#include <stdint.h>

#include <sqlite3.h>

#include <hapax/hapax.h>

struct bank {
	sqlite3 *db;
	struct hapax_store *store;
	struct hapax_processor *processor;
	struct hapax_buf *buf;
	const char *key; /* of the order that is being paid */
	struct hapax_error err;
};

/*
 * Open or make it, in that journal mode; a lock is waited for as long as that. Whatever
 * goes wrong ends the program.
 */
void bank_open(struct bank *bank, const char *path, const char *journal, int timeout_ms);
void bank_close(struct bank *bank);

/* False, and said on stderr: SQLite refused. */
bool bank_execute(struct bank *bank, const char *sql);

/* The first value that the query finds, or -1. */
int64_t bank_number(struct bank *bank, const char *sql);
int64_t bank_balance(struct bank *bank);
int64_t bank_payments(struct bank *bank, const char *key);

/*
 * Pay the order by hapax_tx_process(), in a transaction of its own, or of ours, which is
 * committed then. Returns the outcome, or NONE: bank->err says why, and UNCERTAIN if our
 * own COMMIT failed. A result that is not a receipt counts as an error, too.
 */
enum hapax_outcome bank_pay(struct bank *bank, const char *key, bool is_in_ours);

/* The state of the key's record. */
enum hapax_state bank_state(struct bank *bank, const char *key);

/*
 * From now on count every step: a call of SQLite's to the system, and the beginning and
 * end of a statement on bank's connection. Between two of them nothing changes that
 * other processes can see. fate is asked at each; it may end the process, or say by which
 * errno the call must fail (0: it must not; locks and statements cannot be failed so).
 */
typedef int bank_step_fn(void);
void bank_step_by(struct bank *bank, bank_step_fn *fate);
void bank_step_freely(struct bank *bank);

#endif
