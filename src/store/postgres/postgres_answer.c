/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_answer.c - rows as answers.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "record/record.h"
#include "record/transition.h"
#include "store/core.h"
#include "store/postgres/postgres_operation.h"
#include "store/room.h"

/* Below zero in the outcome: a status, or this. */
enum { OUTCOME_NO_ROOM = -20 };

/* Columns of type hapax_answer in schema.sql. */
enum answer {
	ANSWER_PLACE,
	ANSWER_OUTCOME,
	ANSWER_UNVERIFIED,
	ANSWER_TOKEN,
	ANSWER_ATTEMPT,
	ANSWER_FIRST_SEEN,
	ANSWER_EXPIRES,
	ANSWER_LEASE_LEFT,
	ANSWER_STATE,
	ANSWER_ORIGIN,
	ANSWER_ON_LAPSE,
	ANSWER_KIND,
	ANSWER_CLASS,
	ANSWER_OWN,
	ANSWER_CHANGED,
	ANSWER_LEASE_ENDS,
	ANSWER_TTL,
	ANSWER_STATUS,
	ANSWER_OMITTED,
	ANSWER_FINGERPRINT,
	ANSWER_ATTEMPT_ID,
	ANSWER_OWNER,
	ANSWER_ERROR,
	ANSWER_HEADERS,
	ANSWER_BODY,
	ANSWER_RECORD_TOKEN,
	ANSWER_RECORD_ATTEMPT,
	ANSWER_RECORD_FIRST_SEEN,
	ANSWER_RECORD_EXPIRES,
	ANSWER_CHANGES = 30,
	ANSWER_CAUSE,
};

bool hx_postgres_get_number(const PGresult *result, int row, int column, int64_t *ret_number)
{
	const unsigned char *data = (const unsigned char *)PQgetvalue(result, row, column);
	int size = PQgetlength(result, row, column);
	uint64_t number;

	if (PQgetisnull(result, row, column) || size < 1 || size > 8)
		return false;
	/* Sign first, for int2 and int4; a boolean is 0 or 1. */
	number = size > 1 && (data[0] & 0x80) ? UINT64_MAX : 0;
	for (int i = 0; i < size; i++)
		number = number << 8 | data[i];
	*ret_number = (int64_t)number;
	return true;
}

struct hapax_bytes hx_postgres_get_bytes(const PGresult *result, int row, int column)
{
	if (PQgetisnull(result, row, column))
		return hx_bytes(NULL, 0);
	return hx_bytes(PQgetvalue(result, row, column), (size_t)PQgetlength(result, row, column));
}

/* A number, or absent for NULL. */
static int64_t get_or(const PGresult *result, int row, int column, int64_t absent)
{
	int64_t number;

	return hx_postgres_get_number(result, row, column, &number) ? number : absent;
}

int64_t hx_postgres_number(const PGresult *result, int row, int column)
{
	return get_or(result, row, column, 0);
}

static bool read_result(
	const PGresult *result, int row, int column, const struct hapax_op *own,
	struct hapax_result *ret)
{
	ret->kind = (enum hapax_result_kind)get_or(result, row, column + ANSWER_KIND, 0);
	ret->result_class = (enum hapax_result_class)get_or(result, row, column + ANSWER_CLASS, 0);
	ret->status = (int32_t)get_or(result, row, column + ANSWER_STATUS, 0);
	ret->omitted_bytes = (uint64_t)get_or(result, row, column + ANSWER_OMITTED, 0);
	if (get_or(result, row, column + ANSWER_OWN, 0) == 0) {
		ret->headers = hx_postgres_get_bytes(result, row, column + ANSWER_HEADERS);
		ret->body = hx_postgres_get_bytes(result, row, column + ANSWER_BODY);
		return true;
	}
	if (own == NULL)
		return false;
	/* The operation's own result, unless it was too large. */
	if (hx_postgres_op_result(own) != NULL) {
		ret->headers = hx_postgres_op_result(own)->headers;
		if (own->type == HAPAX_OP_LOAD ||
		    ret->omitted_bytes == hx_postgres_op_result(own)->omitted_bytes)
			ret->body = hx_postgres_op_result(own)->body;
	}
	return true;
}

static bool copy_fixed(
	struct hapax_bytes bytes, unsigned char *out, size_t size_max, uint32_t *ret_size)
{
	if (bytes.size > size_max)
		return false;
	if (bytes.size > 0)
		memcpy(out, bytes.data, bytes.size);
	if (ret_size != NULL)
		*ret_size = (uint32_t)bytes.size;
	return true;
}

bool hx_postgres_record_read(
	const PGresult *result, int row, int column, const struct hapax_op *own,
	struct hapax_record *ret_record)
{
	struct hapax_record *record = ret_record;

	memset(record, 0, sizeof(*record));
	if (PQgetisnull(result, row, column + ANSWER_STATE))
		return false;
	record->state = (enum hapax_state)get_or(result, row, column + ANSWER_STATE, 0);
	record->origin = (enum hapax_origin)get_or(result, row, column + ANSWER_ORIGIN, 0);
	record->on_lapse = (enum hapax_on_lapse)get_or(result, row, column + ANSWER_ON_LAPSE, 0);
	record->attempt = (uint32_t)get_or(result, row, column + ANSWER_RECORD_ATTEMPT, 0);
	record->token = (uint64_t)get_or(result, row, column + ANSWER_RECORD_TOKEN, 0);
	record->first_seen_ms = get_or(result, row, column + ANSWER_RECORD_FIRST_SEEN, 0);
	record->changed_ms = get_or(result, row, column + ANSWER_CHANGED, 0);
	record->lease_ends_ms = get_or(result, row, column + ANSWER_LEASE_ENDS, 0);
	record->expires_ms = get_or(result, row, column + ANSWER_RECORD_EXPIRES, HAPAX_TIME_NEVER);
	record->ttl_ms = get_or(result, row, column + ANSWER_TTL, HAPAX_TTL_FOREVER);
	record->owner = hx_postgres_get_bytes(result, row, column + ANSWER_OWNER);
	record->error = hx_postgres_get_bytes(result, row, column + ANSWER_ERROR);
	record->cause = hx_postgres_get_bytes(result, row, column + ANSWER_CAUSE);
	return copy_fixed(
		       hx_postgres_get_bytes(result, row, column + ANSWER_FINGERPRINT),
		       record->fingerprint, sizeof(record->fingerprint),
		       &record->fingerprint_size) &&
		copy_fixed(
			hx_postgres_get_bytes(result, row, column + ANSWER_ATTEMPT_ID),
			record->attempt_id, sizeof(record->attempt_id), NULL) &&
		read_result(result, row, column, own, &record->result);
}

/* Copy the record of the answer into the caller's buffer. */
static void take_record(const PGresult *result, int row, struct hapax_op *op)
{
	struct hapax_record record;

	if (op->record == NULL)
		return;
	if (!hx_postgres_record_read(result, row, 0, op, &record)) {
		if (op->outcome == HAPAX_OUTCOME_SKIPPED)
			memset(op->record, 0, sizeof(*op->record));
		if (record.state != HAPAX_STATE_ABSENT)
			hx_store_refuse(op, HAPAX_ERR_CORRUPT);
		return;
	}
	hx_room_fill(op, &record);
}

/* Can this be the answer? A malformed reply must not start a run or report a result as stored. */
static bool is_answer(
	const PGresult *result, int row, const struct hapax_op *op, int64_t outcome, bool has_token)
{
	int64_t token = get_or(result, row, ANSWER_TOKEN, 0);
	int64_t attempt = get_or(result, row, ANSWER_ATTEMPT, 0);

	if (outcome < 0)
		return outcome >= HAPAX_ERR_FAILED || outcome == OUTCOME_NO_ROOM;
	if (outcome == 0 || outcome > HAPAX_OUTCOME_SKIPPED || token < 0 ||
	    token > (int64_t)HX_TOKEN_MAX || attempt < 0 || attempt > UINT32_MAX)
		return false;
	if (outcome == HAPAX_OUTCOME_SKIPPED)
		return true;
	if (has_token)
		return outcome == HAPAX_OUTCOME_APPLIED;
	if (op->type == HAPAX_OP_CLAIM || op->type == HAPAX_OP_CHECK)
		return outcome <= HAPAX_OUTCOME_PARKED && token > 0 && attempt > 0;
	return op->type != HAPAX_OP_LOOKUP || outcome == HAPAX_OUTCOME_FOUND ||
		outcome == HAPAX_OUTCOME_ABSENT;
}

static bool take_answer(const PGresult *result, int row, struct hapax_op *op)
{
	int64_t outcome = get_or(result, row, ANSWER_OUTCOME, 0);
	bool has_token = hx_transition_has_token(op);

	/* A second answer to one operation would leave another without one. */
	if (op->status != HAPAX_OK || op->outcome != HAPAX_OUTCOME_NONE ||
	    !is_answer(result, row, op, outcome, has_token))
		return false;
	if (outcome == OUTCOME_NO_ROOM) {
		hx_store_refuse(op, hx_room_status(op));
		return true;
	}
	if (outcome < 0) {
		hx_store_refuse(op, (enum hapax_status)outcome);
		return true;
	}
	op->status = HAPAX_OK;
	op->outcome = (enum hapax_outcome)outcome;
	op->unverified = get_or(result, row, ANSWER_UNVERIFIED, 0) != 0;
	op->repeated = outcome == HAPAX_OUTCOME_APPLIED && has_token &&
		get_or(result, row, ANSWER_CHANGES, 1) == 0;
	op->attempt = (uint32_t)get_or(result, row, ANSWER_ATTEMPT, 0);
	op->first_seen_ms = get_or(result, row, ANSWER_FIRST_SEEN, 0);
	op->expires_ms = get_or(result, row, ANSWER_EXPIRES, HAPAX_TIME_NEVER);
	op->lease_left_ms = get_or(result, row, ANSWER_LEASE_LEFT, 0);
	if (!has_token)
		op->token = hx_transition_tells_token(op)
			? (uint64_t)get_or(result, row, ANSWER_TOKEN, 0)
			: 0;
	take_record(result, row, op);
	return true;
}

static bool take_answers(const PGresult *result, struct hapax_op *const *ops, size_t count)
{
	if (PQnfields(result) != HX_POSTGRES_COLUMNS || PQntuples(result) != (int)count)
		return false;
	for (int row = 0; row < (int)count; row++) {
		int64_t place = get_or(result, row, ANSWER_PLACE, 0);

		if (place < 1 || place > (int64_t)count ||
		    !take_answer(result, row, ops[place - 1]))
			return false;
	}
	return true;
}

bool hx_postgres_answers_decode(const PGresult *result, struct hapax_op *const *ops, size_t count)
{
	if (take_answers(result, ops, count))
		return true;
	/* One malformed answer invalidates the whole reply. */
	for (size_t i = 0; i < count; i++)
		hx_store_refuse(ops[i], HAPAX_OK);
	return false;
}

uint64_t hx_postgres_answer_holder(const PGresult *result, int row, size_t *ret_place)
{
	*ret_place = (size_t)get_or(result, row, ANSWER_PLACE, 0);
	if (get_or(result, row, ANSWER_OUTCOME, 0) != HAPAX_OUTCOME_IN_PROGRESS)
		return 0;
	return (uint64_t)get_or(result, row, ANSWER_TOKEN, 0);
}

/* ---------------------------------------------------------------- claim and completion of a run */

/* The number at that place in a value of count numbers. False: another type, or below min. */
static bool packed_number(
	const PGresult *result, int count, int place, int64_t min, int64_t *ret_number)
{
	const unsigned char *data = (const unsigned char *)PQgetvalue(result, 0, 0);
	uint64_t number = 0;

	if (PQgetisnull(result, 0, 0) || PQgetlength(result, 0, 0) != 8 * count)
		return false;
	for (int i = 0; i < 8; i++)
		number = number << 8 | data[8 * place + i];
	*ret_number = (int64_t)number;
	return *ret_number >= min;
}

static bool take_new(const PGresult *result, struct hapax_op *op)
{
	int64_t token, now_ms;

	if (!packed_number(result, 2, 0, 1, &token) || token > (int64_t)HX_TOKEN_MAX ||
	    !packed_number(result, 2, 1, INT64_MIN, &now_ms))
		return false;
	hx_store_refuse(op, HAPAX_OK);
	op->outcome = HAPAX_OUTCOME_ACQUIRED;
	op->token = (uint64_t)token;
	op->attempt = 1;
	op->first_seen_ms = now_ms;
	/* In the caller's transaction it has no lease. */
	hx_room_fill_made(op, now_ms, now_ms);
	return true;
}

static uint32_t read_u32(const unsigned char *data)
{
	return (uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 | data[3];
}

/* Unpack a value of type hapax_answer into its row. NULL: another type, or no memory. */
static PGresult *unpack_answer(const PGresult *packed, int column)
{
	static char name[] = "";
	PGresAttDesc columns[HX_POSTGRES_COLUMNS];
	char *at = PQgetvalue(packed, 0, column);
	char *end = at + PQgetlength(packed, 0, column);
	PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
	bool is_good = end - at >= 4 && read_u32((const unsigned char *)at) == HX_POSTGRES_COLUMNS;

	for (int i = 0; i < HX_POSTGRES_COLUMNS; i++)
		columns[i] = (PGresAttDesc){.name = name, .format = 1};
	is_good = is_good && result != NULL &&
		PQsetResultAttrs(result, HX_POSTGRES_COLUMNS, columns) != 0;
	at += 4;
	/* Each has its type, its size (-1: NULL) and its bytes. */
	for (int i = 0; i < HX_POSTGRES_COLUMNS && is_good; i++) {
		int size = end - at >= 8 ? (int)read_u32((const unsigned char *)at + 4) : -2;

		is_good = size >= -1 && end - at - 8 >= size &&
			PQsetvalue(result, 0, i, size < 0 ? NULL : at + 8, size) != 0;
		at += 8 + (size > 0 ? size : 0);
	}
	if (is_good)
		return result;
	PQclear(result);
	return NULL;
}

bool hx_postgres_taken_decode(const PGresult *result, struct hapax_op *op)
{
	PGresult *answer;
	bool is_good;

	if (PQntuples(result) != 1 || PQnfields(result) != 2)
		return false;
	if (!PQgetisnull(result, 0, 0))
		return take_new(result, op);
	answer = PQgetisnull(result, 0, 1) ? NULL : unpack_answer(result, 1);
	is_good = answer != NULL && hx_postgres_answers_decode(answer, &op, 1);
	PQclear(answer);
	return is_good;
}

bool hx_postgres_finished_decode(const PGresult *result, struct hapax_op *op)
{
	int64_t attempt, first_seen_ms, expires_ms;

	if (PQntuples(result) != 1 || PQnfields(result) != 1 ||
	    !packed_number(result, 3, 0, 1, &attempt) || attempt > UINT32_MAX ||
	    !packed_number(result, 3, 1, INT64_MIN, &first_seen_ms) ||
	    !packed_number(result, 3, 2, INT64_MIN, &expires_ms))
		return false;
	hx_store_refuse(op, HAPAX_OK);
	op->outcome = HAPAX_OUTCOME_APPLIED;
	op->attempt = (uint32_t)attempt;
	op->first_seen_ms = first_seen_ms;
	op->expires_ms = expires_ms;
	return true;
}
