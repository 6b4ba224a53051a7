/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trade_case.h - a ledger in PostgreSQL joined to a connection, beside the tables of a business.
 */
#ifndef TEST_SUPPORT_TRADE_CASE_H
#define TEST_SUPPORT_TRADE_CASE_H

#include <libpq-fe.h>

#include <hapax/hapax.h>

/* A ledger of its own in schema "ledger", and tables of a business in "work". */
void trade_case_begin(PGconn *conn);

/* For cmocka: *state is a connection, with these created again. */
int trade_case_set_up(void **state);
int trade_case_tear_down(void **state);

struct hapax_store *trade_case_join(PGconn *conn, int64_t timeout_ms);

/* A claim with an attempt_id of its own. */
struct hapax_op trade_case_claim_of(
	const char *key, unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE]);

/* HAPAX_OUTCOME_NONE: it was not answered. */
enum hapax_outcome trade_case_claim(
	struct hapax_store *store, const char *key, uint64_t *ret_token);
enum hapax_status trade_case_complete(struct hapax_store *store, const char *key, uint64_t token);

#endif
