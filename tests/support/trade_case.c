/* SPDX-License-Identifier: Apache-2.0 */
#include "support/trade_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include <hapax/postgres.h>

#include "support/postgres_case.h"

static const char tables[] =
	"DROP SCHEMA IF EXISTS work CASCADE; CREATE SCHEMA work;"
	" CREATE TABLE work.trade (key text NOT NULL, pid integer NOT NULL);"
	" CREATE TABLE work.processed_events (id uuid PRIMARY KEY DEFAULT gen_random_uuid(),"
	" idempotency_key varchar(255) NOT NULL, consumer_group varchar(100) NOT NULL,"
	" processed_at timestamptz NOT NULL DEFAULT now(),"
	" CONSTRAINT uq UNIQUE (idempotency_key, consumer_group))";

/* A ledger of its own in schema "ledger", and tables of a business in "work". */
void trade_case_begin(PGconn *conn)
{
	char url[256];
	struct hapax_error err;

	postgres_case_query(conn, "DROP SCHEMA IF EXISTS ledger CASCADE");
	postgres_case_query(conn, "%s", tables);
	postgres_case_url(url, sizeof(url), "&schema=ledger");
	assert_int_equal(hapax_store_migrate(url, NULL, &err), HAPAX_OK);
}

struct hapax_store *trade_case_join(PGconn *conn, int64_t timeout_ms)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_store *store = NULL;
	struct hapax_error err;

	options.timeout_ms = timeout_ms;
	postgres_case_query(conn, "SET search_path = ledger");
	if (hapax_postgres_join(conn, &options, &store, &err) != HAPAX_OK) {
		printf("# join: %s\n", err.message);
		abort();
	}
	return store;
}

int trade_case_set_up(void **state)
{
	PGconn *conn = postgres_case_connect();

	trade_case_begin(conn);
	*state = conn;
	return 0;
}

int trade_case_tear_down(void **state)
{
	PQfinish(*state);
	return 0;
}

struct hapax_op trade_case_claim_of(
	const char *key, unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE])
{
	hapax_attempt_id(attempt_id);
	return (struct hapax_op){
		.type = HAPAX_OP_CLAIM,
		.key = hapax_bytes_from_text(key),
		.attempt_id = attempt_id,
	};
}

enum hapax_outcome trade_case_claim(struct hapax_store *store, const char *key, uint64_t *ret_token)
{
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	struct hapax_op op = trade_case_claim_of(key, attempt_id);

	if (hapax_store_run(store, &op, 1, NULL) != HAPAX_OK)
		return HAPAX_OUTCOME_NONE;
	*ret_token = op.token;
	return op.outcome;
}

enum hapax_status trade_case_complete(struct hapax_store *store, const char *key, uint64_t token)
{
	struct hapax_result result = {
		.kind = HAPAX_RESULT_BYTES, .body = hapax_bytes_from_text("traded")};
	struct hapax_op op = {
		.type = HAPAX_OP_COMPLETE,
		.key = hapax_bytes_from_text(key),
		.token = token,
		.result = &result,
	};

	return hapax_store_run(store, &op, 1, NULL);
}
