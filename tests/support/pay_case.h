/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pay_case.h - hapax_tx_process() on the tables of trade_case.h, with a handler that pays: inserts a row, and then
 * ends in the way that it is told.
 */
#ifndef TEST_SUPPORT_PAY_CASE_H
#define TEST_SUPPORT_PAY_CASE_H

#include <libpq-fe.h>

#include <hapax/hapax.h>

enum pay_manner {
	PAY,
	FAIL,
	BREAK,
	BREAK_AND_FAIL,
	COMMIT_ITSELF,
	BEGIN_ANEW,
	ROLL_BACK_AND_BEGIN,
	VIOLATE_LATER,
	RAISE_LATER,
	LOSE_ITS_CLAIM,
	PAY_ANOTHER,
	FAIL_ANOTHER,
};

struct pay_case {
	PGconn *conn;
	enum pay_manner manner;
	int calls;
	struct hapax_store *store; /* of PAY_ANOTHER */
	const char *key;           /* NULL: "paid" */
	struct hapax_error err;    /* of the last run */
};

/* A run of key; answer points at nothing afterwards. */
enum hapax_status pay_case_process(
	struct hapax_store *store, struct pay_case *bank, const char *key,
	struct hapax_answer *answer);

/* One that pays, under its own key. */
enum hapax_status pay_case_trade(
	PGconn *conn, struct hapax_store *store, const char *key, enum hapax_outcome *ret_outcome);

/* The same; its token, 0: it did not run. */
uint64_t pay_case_token(PGconn *conn, struct hapax_store *store, const char *key);

#endif
