/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_answer.c - the reply to a group as the answers of its operations.
 */
#include "store/redis/redis_operation.h"

#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/limits.h"
#include "record/record.h"
#include "record/transition.h"
#include "store/core.h"
#include "store/room.h"
#include "wire/resp/resp_reply.h"

static const struct {
	const char *word;
	enum hapax_status status;
	enum hapax_outcome outcome;
} outcomes[] = {
	{"acquired", HAPAX_OK, HAPAX_OUTCOME_ACQUIRED},
	{"applied", HAPAX_OK, HAPAX_OUTCOME_APPLIED},
	{"replay", HAPAX_OK, HAPAX_OUTCOME_REPLAY},
	{"in_progress", HAPAX_OK, HAPAX_OUTCOME_IN_PROGRESS},
	{"found", HAPAX_OK, HAPAX_OUTCOME_FOUND},
	{"absent", HAPAX_OK, HAPAX_OUTCOME_ABSENT},
	{"fenced", HAPAX_ERR_FENCED, HAPAX_OUTCOME_NONE},
	{"mismatch", HAPAX_OK, HAPAX_OUTCOME_MISMATCH},
	{"parked", HAPAX_OK, HAPAX_OUTCOME_PARKED},
	{"busy", HAPAX_OK, HAPAX_OUTCOME_BUSY},
	{"not_met", HAPAX_OK, HAPAX_OUTCOME_NOT_MET},
	{"skipped", HAPAX_OK, HAPAX_OUTCOME_SKIPPED},
	{"limit", HAPAX_ERR_LIMIT, HAPAX_OUTCOME_NONE},
	{"corrupt", HAPAX_ERR_CORRUPT, HAPAX_OUTCOME_NONE},
	{"unknown", HAPAX_ERR_UNCERTAIN, HAPAX_OUTCOME_NONE},
};

/* Like hx_resp_next_integer(); an empty text is absent. */
static bool next_or(struct hapax_bytes *rest, int64_t absent, int64_t *ret_integer)
{
	struct hapax_bytes text;

	if (!hx_resp_next_text(rest, &text))
		return false;
	if (text.size == 0) {
		*ret_integer = absent;
		return true;
	}
	return hx_resp_parse_integer(text, ret_integer);
}

static bool text_is(struct hapax_bytes text, const char *word)
{
	return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

/* The index of a word in a list of names; -1: none. An empty text is the first. */
static int number_of(struct hapax_bytes text, const char *(*name)(int), int count)
{
	if (text.size == 0)
		return 0;
	for (int i = 0; i < count; i++) {
		if (text_is(text, name(i)))
			return i;
	}
	return -1;
}

static const char *state_name(int number)
{
	return hapax_state_name((enum hapax_state)number);
}

static const char *origin_name(int number)
{
	return hapax_origin_name((enum hapax_origin)number);
}

static const char *lapse_name(int number)
{
	return hapax_on_lapse_name((enum hapax_on_lapse)number);
}

static const char *kind_name(int number)
{
	return hapax_result_kind_name((enum hapax_result_kind)number);
}

static const char *class_name(int number)
{
	return hapax_result_class_name((enum hapax_result_class)number);
}

static bool next_word(
	struct hapax_bytes *rest, const char *(*name)(int), int count, int *ret_number)
{
	struct hapax_bytes text;

	if (!hx_resp_next_text(rest, &text))
		return false;
	*ret_number = number_of(text, name, count);
	return *ret_number >= 0;
}

/* Hex text of one of the two sizes, or empty. */
static bool next_hex(
	struct hapax_bytes *rest, unsigned char *out, size_t size, size_t short_size,
	uint32_t *ret_size)
{
	struct hapax_bytes text;

	if (!hx_resp_next_text(rest, &text))
		return false;
	*ret_size = (uint32_t)(text.size / 2);
	return text.size == 0 ||
		((text.size == 2 * size || text.size == 2 * short_size) &&
		 hx_hex_decode(text, out));
}

static bool read_result(struct hapax_bytes *rest, struct hapax_result *ret_result)
{
	int kind = 0, class_number = 0;
	int64_t status = 0, omitted = 0;

	if (!next_word(rest, kind_name, HAPAX_RESULT_EXEC + 1, &kind) ||
	    !next_word(rest, class_name, HAPAX_RESULT_DEFINITIVE + 1, &class_number) ||
	    !next_or(rest, 0, &status) || !next_or(rest, 0, &omitted) ||
	    !hx_resp_next_text(rest, &ret_result->headers) ||
	    !hx_resp_next_text(rest, &ret_result->body) || status < INT32_MIN ||
	    status > INT32_MAX || omitted < 0)
		return false;
	ret_result->kind = (enum hapax_result_kind)kind;
	ret_result->result_class = (enum hapax_result_class)class_number;
	ret_result->status = (int32_t)status;
	ret_result->omitted_bytes = (uint64_t)omitted;
	return true;
}

static bool read_head(struct hapax_bytes *rest, struct hapax_record *record)
{
	int state = 0, lapse = 0, origin = 0;
	int64_t token = 0, attempt = 0;
	uint32_t attempt_id_size = 0;

	if (!next_word(rest, state_name, HAPAX_STATE_PARKED + 1, &state) ||
	    !hx_resp_next_integer(rest, &token) || !hx_resp_next_integer(rest, &attempt) ||
	    !hx_resp_next_integer(rest, &record->first_seen_ms) ||
	    !hx_resp_next_integer(rest, &record->changed_ms) ||
	    !next_or(rest, 0, &record->lease_ends_ms) ||
	    !next_or(rest, HAPAX_TIME_NEVER, &record->expires_ms) ||
	    !next_or(rest, HAPAX_TTL_FOREVER, &record->ttl_ms) ||
	    !next_word(rest, lapse_name, HAPAX_ON_LAPSE_PARK + 1, &lapse) ||
	    !next_word(rest, origin_name, HAPAX_ORIGIN_SET + 1, &origin) ||
	    !next_hex(
		    rest, record->fingerprint, HAPAX_FINGERPRINT_SIZE, HAPAX_FINGERPRINT_SHORT_SIZE,
		    &record->fingerprint_size) ||
	    !next_hex(
		    rest, record->attempt_id, HAPAX_ATTEMPT_ID_SIZE, HAPAX_ATTEMPT_ID_SIZE,
		    &attempt_id_size) ||
	    !hx_resp_next_text(rest, &record->owner) || !hx_resp_next_text(rest, &record->error) ||
	    !hx_resp_next_text(rest, &record->cause) || token < 0 || attempt < 0 ||
	    attempt > UINT32_MAX)
		return false;
	record->state = (enum hapax_state)state;
	record->on_lapse = (enum hapax_on_lapse)lapse;
	record->origin = (enum hapax_origin)origin;
	record->token = (uint64_t)token;
	record->attempt = (uint32_t)attempt;
	/* A version that does not know events makes a mark of a failed claim and leaves its event. */
	if (record->origin != HAPAX_ORIGIN_CLAIM)
		record->cause = (struct hapax_bytes){0};
	return true;
}

bool hx_redis_record_read(
	struct hapax_bytes *rest, const struct hapax_op *own, struct hapax_record *ret_record,
	bool *ret_present)
{
	struct hx_resp_value value;

	memset(ret_record, 0, sizeof(*ret_record));
	*ret_present = false;
	if (!hx_resp_next(rest, &value))
		return false;
	if (value.type == HX_RESP_NULL)
		return true;
	if (value.type != HX_RESP_ARRAY || value.integer != 16 || !read_head(rest, ret_record) ||
	    !hx_resp_next(rest, &value))
		return false;
	*ret_present = true;
	if (value.type == HX_RESP_NULL)
		return true;
	if (value.type == HX_RESP_INTEGER && own != NULL) {
		if (own->result != NULL)
			ret_record->result = *own->result;
		return true;
	}
	return value.type == HX_RESP_ARRAY && value.integer == 6 &&
		read_result(rest, &ret_record->result);
}

/* Copy the record of the answer into the caller's buffer. */
static bool take_record(struct hapax_bytes *rest, struct hapax_op *op)
{
	struct hapax_record record;
	struct hx_resp_value value;
	bool is_present;

	if (op->record == NULL) {
		if (!hx_resp_next(rest, &value))
			return false;
		hx_resp_skip(rest, &value);
		return true;
	}
	if (!hx_redis_record_read(rest, op, &record, &is_present))
		return false;
	if (!is_present) {
		if (op->outcome == HAPAX_OUTCOME_SKIPPED)
			memset(op->record, 0, sizeof(*op->record));
		return true;
	}
	hx_room_fill(op, &record);
	return true;
}

static bool take_numbers(struct hapax_bytes *rest, struct hapax_op *op)
{
	int64_t mark = 0, token = 0, attempt = 0;

	if (!hx_resp_next_integer(rest, &mark) || !hx_resp_next_integer(rest, &token) ||
	    !hx_resp_next_integer(rest, &attempt) ||
	    !hx_resp_next_integer(rest, &op->first_seen_ms) ||
	    !next_or(rest, HAPAX_TIME_NEVER, &op->expires_ms) ||
	    !hx_resp_next_integer(rest, &op->lease_left_ms) || token < 0 || attempt < 0 ||
	    attempt > UINT32_MAX)
		return false;
	op->unverified = mark != 0 && !hx_transition_has_token(op);
	op->repeated = mark != 0 && hx_transition_has_token(op);
	op->attempt = (uint32_t)attempt;
	if (!hx_transition_has_token(op))
		op->token = hx_transition_tells_token(op) ? (uint64_t)token : 0;
	return true;
}

static bool set_outcome(struct hapax_op *op, struct hapax_bytes word)
{
	if (text_is(word, "no_room")) {
		op->status = hx_room_status(op);
		op->outcome = HAPAX_OUTCOME_NONE;
		return true;
	}
	for (size_t i = 0; i < HX_COUNT(outcomes); i++) {
		if (text_is(word, outcomes[i].word)) {
			op->status = outcomes[i].status;
			op->outcome = outcomes[i].outcome;
			return true;
		}
	}
	return false;
}

/* The eight values of an answer. */
static bool take_answer(struct hapax_bytes *rest, struct hapax_op *op)
{
	struct hapax_bytes word;

	if (!hx_resp_next_text(rest, &word) || !set_outcome(op, word) || !take_numbers(rest, op) ||
	    !take_record(rest, op))
		return false;
	if (op->status != HAPAX_OK)
		hx_store_refuse(op, op->status);
	return true;
}

/* Reserve the room that the record of an operation needs. */
static enum hx_redis_verdict take_room(struct hapax_bytes *rest, struct hapax_op *op)
{
	int64_t size = 0;

	if (!hx_resp_next_integer(rest, &size) || size < 0 || !hx_room_make(op, (size_t)size))
		return HX_REDIS_BROKEN;
	return HX_REDIS_AGAIN;
}

/* {'room', i, size}: for the i-th operation that was sent. */
static enum hx_redis_verdict take_group_room(
	struct hapax_bytes rest, struct hapax_op *ops, size_t count)
{
	int64_t index = 0;

	if (!hx_resp_next_integer(&rest, &index))
		return HX_REDIS_BROKEN;
	for (size_t i = 0; i < count && index > 0; i++) {
		if (ops[i].status == HAPAX_OK && --index == 0)
			return take_room(&rest, &ops[i]);
	}
	return HX_REDIS_BROKEN;
}

/* ---------------------------------------------------------------- short replies */

/* A token: there was no record, now there is one. */
static bool take_token(int64_t token, int64_t now_ms, struct hapax_op *op)
{
	bool is_claim = op->type == HAPAX_OP_CLAIM;

	if ((!is_claim && op->type != HAPAX_OP_CHECK) || token < 1 || token > (int64_t)HX_TOKEN_MAX)
		return false;
	op->outcome = HAPAX_OUTCOME_ACQUIRED;
	op->token = (uint64_t)token;
	op->attempt = 1;
	op->unverified = 0;
	op->first_seen_ms = now_ms;
	op->expires_ms = is_claim || op->ttl_ms == HAPAX_TTL_FOREVER ? HAPAX_TIME_NEVER
								     : now_ms + op->ttl_ms;
	op->lease_left_ms = is_claim ? op->lease_ms : 0;
	hx_room_fill_made(op, now_ms, is_claim ? now_ms + op->lease_ms : 0);
	return true;
}

/* attempt, seen, expires or -1: the claim is complete. */
static bool take_ended(struct hapax_bytes *rest, struct hapax_op *op)
{
	int64_t attempt = 0, expires_ms = 0;

	if (op->type != HAPAX_OP_COMPLETE || !hx_resp_next_integer(rest, &attempt) ||
	    !hx_resp_next_integer(rest, &op->first_seen_ms) ||
	    !hx_resp_next_integer(rest, &expires_ms) || attempt < 1 || attempt > UINT32_MAX)
		return false;
	op->outcome = HAPAX_OUTCOME_APPLIED;
	op->attempt = (uint32_t)attempt;
	op->unverified = 0;
	op->expires_ms = expires_ms < 0 ? HAPAX_TIME_NEVER : expires_ms;
	op->lease_left_ms = 0;
	return true;
}

bool hx_redis_answers_begin(
	struct hx_redis_answers *answers, struct hapax_bytes reply, size_t count)
{
	struct hx_resp_value value;
	struct hapax_bytes word;
	int64_t removed = 0;

	*answers = (struct hx_redis_answers){.rest = reply};
	if (!hx_resp_next(&answers->rest, &value) || value.type != HX_RESP_ARRAY ||
	    value.integer != (int64_t)count + 3 || !hx_resp_next_text(&answers->rest, &word) ||
	    !text_is(word, "each") || !hx_resp_next_integer(&answers->rest, &answers->now_ms) ||
	    !hx_resp_next_integer(&answers->rest, &removed) || removed < 0 || answers->now_ms < 0 ||
	    answers->now_ms > (int64_t)HX_TOKEN_MAX)
		return false;
	answers->removed = (uint64_t)removed;
	return true;
}

enum hx_redis_verdict hx_redis_answers_next(struct hx_redis_answers *answers, struct hapax_op *op)
{
	struct hx_resp_value value;
	struct hapax_bytes word;
	bool is_good = false;

	if (!hx_resp_next(&answers->rest, &value))
		return HX_REDIS_BROKEN;
	if (value.type == HX_RESP_INTEGER)
		is_good = take_token(value.integer, answers->now_ms, op);
	else if (value.type == HX_RESP_ARRAY && value.integer == 3)
		is_good = take_ended(&answers->rest, op);
	else if (value.type == HX_RESP_ARRAY && value.integer == 8)
		is_good = take_answer(&answers->rest, op);
	else if (
		value.type == HX_RESP_ARRAY && value.integer == 2 &&
		hx_resp_next_text(&answers->rest, &word) && text_is(word, "room"))
		return take_room(&answers->rest, op);
	if (is_good)
		return HX_REDIS_DECIDED;
	hx_store_refuse(op, HAPAX_OK);
	return HX_REDIS_BROKEN;
}

/* ---------------------------------------------------------------- whole replies */

bool hx_redis_error_is_elsewhere(const struct hx_resp_value *error)
{
	static const char *const codes[] = {"MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN"};

	for (size_t i = 0; i < HX_COUNT(codes); i++) {
		if (hx_resp_is_error(error, codes[i]))
			return true;
	}
	return false;
}

enum hapax_status hx_redis_error_status(const struct hx_resp_value *error, bool *ret_is_gone)
{
	static const struct {
		const char *code;
		enum hapax_status status;
		bool is_gone; /* another server or session may succeed */
	} codes[] = {
		{"OOM", HAPAX_ERR_LIMIT, false},
		{"WRONGTYPE", HAPAX_ERR_CORRUPT, false},
		{"NOSCRIPT", HAPAX_ERR_UNAVAILABLE, false},
		{"BUSY", HAPAX_ERR_UNAVAILABLE, false},
		{"MISCONF", HAPAX_ERR_UNAVAILABLE, false},
		{"NOREPLICAS", HAPAX_ERR_UNAVAILABLE, false},
		{"NOPERM", HAPAX_ERR_UNAVAILABLE, false},
		{"CLUSTERDOWN", HAPAX_ERR_UNAVAILABLE, false},
		{"TRYAGAIN", HAPAX_ERR_UNAVAILABLE, false},
		{"LOADING", HAPAX_ERR_UNAVAILABLE, true},
		{"READONLY", HAPAX_ERR_UNAVAILABLE, true},
		{"MASTERDOWN", HAPAX_ERR_UNAVAILABLE, true},
		{"NOAUTH", HAPAX_ERR_UNAVAILABLE, true},
		{"MOVED", HAPAX_ERR_UNAVAILABLE, true},
		{"ASK", HAPAX_ERR_UNAVAILABLE, true},
	};

	*ret_is_gone = false;
	for (size_t i = 0; i < HX_COUNT(codes); i++) {
		if (hx_resp_is_error(error, codes[i].code)) {
			*ret_is_gone = codes[i].is_gone;
			return codes[i].status;
		}
	}
	/* After an error inside a script, its earlier effects remain. */
	return HAPAX_ERR_UNCERTAIN;
}

enum hx_redis_verdict hx_redis_group_decode(
	struct hapax_bytes reply, struct hapax_op *ops, size_t count, uint64_t *ret_removed)
{
	struct hx_resp_value value;
	struct hapax_bytes rest = reply;
	struct hapax_bytes word;
	int64_t removed;
	bool is_gone;

	*ret_removed = 0;
	if (!hx_resp_next(&rest, &value))
		return HX_REDIS_BROKEN;
	if (hx_resp_is_error(&value, "NOSCRIPT"))
		return HX_REDIS_NO_SCRIPT;
	if (hx_redis_error_is_elsewhere(&value))
		return HX_REDIS_ELSEWHERE;
	if (value.type == HX_RESP_ERROR || value.type == HX_RESP_BULK_ERROR) {
		enum hapax_status status = hx_redis_error_status(&value, &is_gone);

		for (size_t i = 0; i < count; i++)
			hx_store_fail_undecided(&ops[i], status);
		return is_gone ? HX_REDIS_MOVED_ON : HX_REDIS_DECIDED;
	}
	if (value.type != HX_RESP_ARRAY || value.integer < 1 || !hx_resp_next(&rest, &value))
		return HX_REDIS_BROKEN;
	if (hx_resp_text(&value, &word) && text_is(word, "room"))
		return take_group_room(rest, ops, count);
	if (!hx_resp_integer(&value, &removed) || removed < 0)
		return HX_REDIS_BROKEN;
	*ret_removed = (uint64_t)removed;
	for (size_t i = 0; i < count; i++) {
		if (ops[i].status != HAPAX_OK)
			continue;
		if (!hx_resp_next(&rest, &value) || value.type != HX_RESP_ARRAY ||
		    value.integer != 8 || !take_answer(&rest, &ops[i])) {
			hx_store_refuse(&ops[i], HAPAX_OK);
			return HX_REDIS_BROKEN;
		}
	}
	return HX_REDIS_DECIDED;
}
