/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limit.c - how full the ledger may get.
 *
 *  (1) Only new records are refused. An existing record may always be released, parked or
 *      renewed, because it needs no more room.
 *  (2) New records leave a sixteenth of bytes_max free, so that held claims can be completed with
 *      their results when the store is full; beyond that, without them.
 *  (3) Expired records are removed before anything is refused, a bounded number at a time.
 */
#include "store/sqlite/limit.h"

#include "record/codec.h"
#include "record/record.h"
#include "store/sqlite/sqlite_sweep.h"

enum {
	RESERVE_DIVISOR = 16,

	/* Expired records that one group removes, beside as many as it adds. */
	ROOM_COUNT = 64,
};

/* The part of bytes_max that new records may use. */
static uint64_t bytes_for_new(const struct hapax_store_options *options)
{
	return options->bytes_max - options->bytes_max / RESERVE_DIVISOR;
}

/* The size of a record in the file, including its share of the indexes. */
static uint64_t size_of(const struct hapax_record *record)
{
	return hx_record_encoded_size(record) +
		2 * (record->tenant.size + record->group.size + record->key.size);
}

static int check_bytes(
	struct hx_sqlite_transaction *transaction, const struct hapax_op *op,
	struct hx_transition *transition, bool has_row, struct hx_sqlite_growth *growth,
	bool *ret_over)
{
	const struct hapax_store_options *options = transaction->options;
	bool is_new = transition->takes_token && (!has_row || op->type == HAPAX_OP_SET);
	uint64_t room = is_new ? bytes_for_new(options) : options->bytes_max;
	uint64_t size = size_of(&transition->next);
	uint64_t used = 0;
	int code;

	*ret_over = false;
	if (options->bytes_max == 0 || (!is_new && op->type != HAPAX_OP_COMPLETE))
		return SQLITE_OK;
	code = hx_sqlite_transaction_bytes(transaction, &used);
	if (code != SQLITE_OK)
		return code;
	used += growth->bytes;
	*ret_over = used > room || size > room - used;
	if (*ret_over && op->type == HAPAX_OP_COMPLETE) {
		/* The completion stays, as a tombstone. */
		hx_record_result_omit_body(&transition->next.result);
		size = size_of(&transition->next);
		*ret_over = false;
	}
	growth->bytes += size;
	return SQLITE_OK;
}

static int scope_parked(
	struct hx_sqlite_transaction *transaction, const struct hapax_op *op, uint64_t *ret_parked)
{
	sqlite3_stmt *statement;
	int code = hx_sqlite_statement(transaction->connection, HX_SQLITE_SCOPE_PARKED, &statement);

	if (code != SQLITE_OK)
		return code;
	code |= hx_sqlite_bind_bytes(statement, 1, op->tenant);
	code |= hx_sqlite_bind_bytes(statement, 2, op->group);
	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	*ret_parked = code == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(statement, 0) : 0;
	(void)sqlite3_reset(statement);
	return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

/* If too many records are parked, no new claims begin in that scope. */
static int check_parked(
	struct hx_sqlite_transaction *transaction, const struct hapax_op *op,
	const struct hx_transition *transition, bool *ret_over)
{
	uint64_t parked_max = transaction->options->parked_max;
	uint64_t parked = 0;
	int code;

	*ret_over = false;
	if (op->type != HAPAX_OP_CLAIM || !transition->takes_token)
		return SQLITE_OK;
	/* Usually all scopes together are below the limit of one, so no lookup is needed. */
	if (transaction->meta.counts[HAPAX_STATE_PARKED] < parked_max)
		return SQLITE_OK;
	code = scope_parked(transaction, op, &parked);
	*ret_over = code == SQLITE_OK && parked >= parked_max;
	return code;
}

int hx_sqlite_limit_check(
	struct hx_sqlite_transaction *transaction, const struct hapax_op *op,
	struct hx_transition *transition, bool has_row, struct hx_sqlite_growth *growth,
	bool *ret_over)
{
	uint64_t keys_max = transaction->options->keys_max;
	int code;

	*ret_over = keys_max != 0 && !has_row &&
		hx_sqlite_meta_records(&transaction->meta) + growth->rows >= keys_max;
	if (*ret_over)
		return SQLITE_OK;
	code = check_bytes(transaction, op, transition, has_row, growth, ret_over);
	if (code == SQLITE_OK && !*ret_over)
		code = check_parked(transaction, op, transition, ret_over);
	growth->rows += !has_row && !*ret_over;
	return code;
}

int hx_sqlite_limit_make_room(struct hx_sqlite_transaction *transaction, size_t count)
{
	const struct hapax_store_options *options = transaction->options;
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;
	bool is_full = options->keys_max != 0 &&
		hx_sqlite_meta_records(&transaction->meta) + count > options->keys_max;
	uint64_t used = 0;
	int code = SQLITE_OK;

	if (!is_full && options->bytes_max != 0) {
		code = hx_sqlite_transaction_bytes(transaction, &used);
		is_full = used >= bytes_for_new(options);
	}
	if (code != SQLITE_OK || !is_full)
		return code;
	code = hx_sqlite_sweep_some(transaction, ROOM_COUNT + count, &sweep);
	transaction->removed += sweep.removed;
	return code;
}
