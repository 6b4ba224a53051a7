/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operation.c - a group of operations as one command.
 */
#include "store/redis/operation.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/limits.h"
#include "record/record.h"
#include "store/core.h"
#include "wire/resp_reply.h"

enum {
	ARGUMENTS = 4,     /* all_or_nothing and three limits */
	OP_ARGUMENTS = 18, /* see operate.lua */

	/* Texts of a record without its result. */
	PEOPLE_SIZE_MAX = HX_OWNER_SIZE_MAX + HX_ERROR_TEXT_SIZE_MAX,

	/* What most old values fit; more is asked for. */
	ROOM_FIRST = 4096,

	/* Numbers, names and lengths of an answer, with and without its record. */
	ANSWER_SIZE = 256,
	RECORD_SIZE = 1024,

	/* An error in place of answers. */
	ERROR_SIZE_MAX = 4096,
};

/* In op->private_state. */
enum {
	ROOM_IS_ALL = 1 << 0,    /* the buffer cannot grow any more ... */
	ROOM_NO_MEMORY = 1 << 1, /* ... because memory ran out, not because of its limit */
};

size_t hx_redis_group_count(const struct hapax_op *ops, size_t count)
{
	size_t left = 0;

	for (size_t i = 0; i < count; i++)
		left += ops[i].status == HAPAX_OK;
	return left;
}

static size_t base_size(const struct hapax_op *op)
{
	return op->tenant.size + op->group.size + op->key.size;
}

static bool may_ask(const struct hapax_op *op)
{
	return op->record != NULL &&
		(op->type == HAPAX_OP_SET || op->type == HAPAX_OP_FORGET ||
	         op->type == HAPAX_OP_EXPIRE);
}

bool hx_redis_group_may_ask(const struct hapax_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (ops[i].status == HAPAX_OK && may_ask(&ops[i]))
			return true;
	}
	return false;
}

bool hx_redis_group_only_reads(const struct hapax_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (ops[i].status == HAPAX_OK && ops[i].type != HAPAX_OP_LOOKUP)
			return false;
	}
	return true;
}

/* The body that will be stored: one that is too large leaves a tombstone. */
static struct hapax_bytes body_to_store(const struct hapax_result *result, uint64_t size_max)
{
	return result->body.size > size_max ? hx_bytes(NULL, 0) : result->body;
}

static size_t result_size(const struct hapax_op *op)
{
	return op->result == NULL ? 0 : op->result->headers.size + op->result->body.size;
}

/* What the record takes that the operation hands out if it changes something. */
static size_t room_wanted(const struct hapax_op *op)
{
	if (may_ask(op))
		return ROOM_FIRST;
	if (op->type == HAPAX_OP_COMPLETE)
		return base_size(op) + result_size(op);
	if (op->type == HAPAX_OP_LOAD)
		return base_size(op) + PEOPLE_SIZE_MAX + op->load->result.headers.size +
			op->load->result.body.size;
	return op->type == HAPAX_OP_LOOKUP ? 0 : base_size(op) + PEOPLE_SIZE_MAX;
}

size_t hx_redis_group_reply_size_max(const struct hapax_op *ops, size_t count)
{
	size_t size = ERROR_SIZE_MAX;

	for (size_t i = 0; i < count; i++) {
		size += ANSWER_SIZE;
		if (ops[i].record != NULL)
			size += RECORD_SIZE + PEOPLE_SIZE_MAX + HX_RESULT_HEADERS_SIZE_MAX +
				HX_RESULT_SIZE_LIMIT;
	}
	return size;
}

size_t hx_redis_group_reply_size(const struct hapax_op *ops, size_t count)
{
	size_t size = ANSWER_SIZE;

	for (size_t i = 0; i < count; i++)
		size += ops[i].record == NULL ? (size_t)ANSWER_SIZE
					      : (size_t)ANSWER_SIZE + RECORD_SIZE + ROOM_FIRST;
	return size;
}

/* Have room for the record. When the buffer cannot have all, the script decides with what it has. */
static enum hapax_status reserve_room(struct hapax_op *op, size_t wanted)
{
	if (op->record == NULL || (op->private_state & ROOM_IS_ALL))
		return HAPAX_OK;
	hx_buf_clear(op->buf);
	if (wanted >= op->buf->size_max) {
		wanted = op->buf->size_max;
		op->private_state |= ROOM_IS_ALL;
	}
	return hx_buf_reserve(op->buf, wanted);
}

static char *letters(const struct hapax_op *op, uint64_t result_size_max, char *at)
{
	static const char set_if[] = {
		[HAPAX_SET_ALWAYS] = '\0',
		[HAPAX_SET_IF_ABSENT] = 'a',
		[HAPAX_SET_IF_PRESENT] = 'x',
		[HAPAX_SET_IF_EQUAL] = 'e',
	};

	if (op->record != NULL)
		*at++ = 'w';
	if (op->private_state & ROOM_IS_ALL)
		*at++ = 'l';
	if ((op->type == HAPAX_OP_CLAIM && op->on_lapse == HAPAX_ON_LAPSE_PARK) ||
	    (op->type == HAPAX_OP_LOAD && op->load->on_lapse == HAPAX_ON_LAPSE_PARK))
		*at++ = 'p';
	if (op->flags & HAPAX_OP_FORCE)
		*at++ = 'f';
	if (op->flags & HAPAX_OP_SET_ONLY)
		*at++ = 's';
	if (op->flags & HAPAX_OP_KEEP_TTL)
		*at++ = 'k';
	if (op->type == HAPAX_OP_SET && op->set_if != HAPAX_SET_ALWAYS)
		*at++ = set_if[op->set_if];
	if (op->type == HAPAX_OP_SET && op->result != NULL &&
	    op->result->body.size > result_size_max)
		*at++ = 'o';
	return at;
}

static enum hapax_status put_hex(struct hapax_buf *buf, const unsigned char *data, size_t size)
{
	char text[2 * HAPAX_FINGERPRINT_SIZE];

	if (data == NULL)
		return hx_resp_put_text(buf, "");
	hx_hex_encode(data, size, text);
	return hx_resp_put_bulk(buf, hx_bytes(text, 2 * size));
}

/* A duration; for ever is empty. */
static enum hapax_status put_span(struct hapax_buf *buf, int64_t span_ms)
{
	return span_ms == HAPAX_TTL_FOREVER ? hx_resp_put_text(buf, "")
					    : hx_resp_put_bulk_integer(buf, span_ms);
}

static enum hapax_status put_result(
	struct hapax_buf *buf, const struct hapax_result *result, uint64_t result_size_max)
{
	struct hapax_bytes body = body_to_store(result, result_size_max);
	uint64_t omitted =
		body.size == result->body.size ? result->omitted_bytes : result->body.size;
	enum hapax_status status = hx_resp_put_text(
		buf, result->kind == HAPAX_RESULT_NONE ? "" : hapax_result_kind_name(result->kind));

	if (status == HAPAX_OK)
		status = hx_resp_put_text(
			buf,
			result->result_class == HAPAX_RESULT_OK
				? ""
				: hapax_result_class_name(result->result_class));
	if (status == HAPAX_OK)
		status = result->status == 0 ? hx_resp_put_text(buf, "")
					     : hx_resp_put_bulk_integer(buf, result->status);
	if (status == HAPAX_OK)
		status = omitted == 0 || omitted > INT64_MAX
			? hx_resp_put_text(buf, "")
			: hx_resp_put_bulk_integer(buf, (int64_t)omitted);
	if (status == HAPAX_OK)
		status = hx_resp_put_bulk(buf, result->headers);
	return status == HAPAX_OK ? hx_resp_put_bulk(buf, body) : status;
}

/* What an operation says beside its type, flags and room. */
struct arguments {
	int64_t lease_ms;
	int64_t ttl_ms;
	const unsigned char *fingerprint; /* NULL: none */
	size_t fingerprint_size;
	const unsigned char *attempt_id; /* NULL: none */
	struct hapax_bytes owner;
	struct hapax_bytes error;
	uint64_t token;
	struct hapax_bytes expected;
	const struct hapax_result *result;
	char head[192]; /* of a record to load */
};

static const struct hapax_result no_result;

static void gather(const struct hapax_op *op, struct arguments *out)
{
	bool is_claim = op->type == HAPAX_OP_CLAIM;
	bool has_print = is_claim || op->type == HAPAX_OP_CHECK;

	*out = (struct arguments){
		.lease_ms = op->lease_ms,
		.ttl_ms = op->ttl_ms,
		.fingerprint = has_print ? op->fingerprint : NULL,
		.fingerprint_size = HAPAX_FINGERPRINT_SIZE,
		.attempt_id = is_claim ? op->attempt_id : NULL,
		.owner = is_claim ? op->owner : hx_bytes(NULL, 0),
		.error = op->error,
		.token = op->token,
		.expected = op->expected,
		.result = op->result == NULL ? &no_result : op->result,
	};
}

/* The same of a record to load; see operate.lua. */
static void gather_load(const struct hapax_record *record, struct arguments *out)
{
	bool has_id = record->state == HAPAX_STATE_CLAIMED || record->state == HAPAX_STATE_PARKED;
	char expires[24] = "-";
	int size;

	*out = (struct arguments){
		.lease_ms = record->lease_ends_ms,
		.ttl_ms = record->ttl_ms,
		.fingerprint = record->fingerprint_size == 0 ? NULL : record->fingerprint,
		.fingerprint_size = record->fingerprint_size,
		.attempt_id = has_id ? record->attempt_id : NULL,
		.owner = record->owner,
		.error = record->error,
		.token = record->token,
		.result = &record->result,
	};
	if (record->expires_ms != HAPAX_TIME_NEVER)
		(void)snprintf(expires, sizeof(expires), "%lld", (long long)record->expires_ms);
	size = snprintf(
		out->head, sizeof(out->head), "%s %u %lld %lld %s %s",
		hapax_state_name(record->state), (unsigned)record->attempt,
		(long long)record->first_seen_ms, (long long)record->changed_ms, expires,
		hapax_origin_name(record->origin));
	assert(size > 0 && (size_t)size < sizeof(out->head));
	out->expected = hx_bytes(out->head, (size_t)size);
}

static enum hapax_status put_op(
	const struct hx_redis_encoder *encoder, struct hapax_buf *buf, const struct hapax_op *op)
{
	struct arguments arguments;
	char flags[16];
	char *end = letters(op, encoder->options->result_size_max, flags);
	size_t room = op->record == NULL ? 0 : op->buf->capacity;
	enum hapax_status status = hx_resp_put_text(buf, hapax_op_type_name(op->type));

	if (op->type == HAPAX_OP_LOAD)
		gather_load(op->load, &arguments);
	else
		gather(op, &arguments);
	if (op->private_state & ROOM_IS_ALL && room > op->buf->size_max)
		room = op->buf->size_max;
	if (status == HAPAX_OK)
		status = hx_resp_put_bulk(buf, hx_bytes(flags, (size_t)(end - flags)));
	if (status == HAPAX_OK)
		status = hx_resp_put_bulk_integer(buf, (int64_t)room);
	if (status == HAPAX_OK)
		status = hx_resp_put_bulk_integer(buf, (int64_t)base_size(op));
	if (status == HAPAX_OK)
		status = arguments.lease_ms == 0
			? hx_resp_put_text(buf, "")
			: hx_resp_put_bulk_integer(buf, arguments.lease_ms);
	if (status == HAPAX_OK)
		status = put_span(buf, arguments.ttl_ms);
	if (status == HAPAX_OK)
		status = put_hex(buf, arguments.fingerprint, arguments.fingerprint_size);
	if (status == HAPAX_OK)
		status = put_hex(buf, arguments.attempt_id, HAPAX_ATTEMPT_ID_SIZE);
	if (status == HAPAX_OK)
		status = hx_resp_put_bulk(buf, arguments.owner);
	if (status == HAPAX_OK)
		status = hx_resp_put_bulk(buf, arguments.error);
	if (status == HAPAX_OK)
		status = hx_resp_put_bulk_integer(buf, (int64_t)arguments.token);
	if (status == HAPAX_OK)
		status = hx_resp_put_bulk(buf, arguments.expected);
	if (status != HAPAX_OK)
		return status;
	return put_result(buf, arguments.result, encoder->options->result_size_max);
}

static enum hapax_status put_names(
	struct hx_redis_encoder *encoder, struct hapax_buf *buf, const struct hapax_op *ops,
	size_t count)
{
	enum hapax_status status = HAPAX_OK;

	for (size_t i = 0; i < count && status == HAPAX_OK; i++) {
		struct hapax_buf *member = &encoder->member;

		if (ops[i].status != HAPAX_OK)
			continue;
		hx_buf_clear(member);
		status = hx_buf_append(
			member, encoder->place->prefix, strlen(encoder->place->prefix));
		if (status == HAPAX_OK)
			status = hx_buf_append_byte(member, ':');
		if (status == HAPAX_OK)
			status = hx_redis_member_append(
				member, ops[i].tenant, ops[i].group, ops[i].key);
		if (status == HAPAX_OK)
			status = hx_resp_put_bulk(buf, hx_bytes(member->data, member->size));
	}
	return status;
}

static enum hapax_status put_group(
	struct hx_redis_encoder *encoder, struct hapax_buf *buf, const struct hapax_op *ops,
	size_t count, int64_t now_ms)
{
	const struct hapax_store_options *options = encoder->options;
	size_t left = hx_redis_group_count(ops, count);
	enum hapax_status status = hx_redis_script_begin(
		buf, encoder->scripts, HX_REDIS_OPERATE, encoder->place, left,
		ARGUMENTS + left * OP_ARGUMENTS);

	if (status == HAPAX_OK)
		status = put_names(encoder, buf, ops, count);
	if (status == HAPAX_OK)
		status = hx_redis_script_arguments(buf, encoder->place, now_ms);
	if (status == HAPAX_OK)
		status = hx_resp_put_text(buf, (ops[0].flags & HAPAX_OP_ALL_OR_NOTHING) ? "1" : "");
	if (status == HAPAX_OK)
		status = hx_resp_put_bulk_integer(buf, (int64_t)options->keys_max);
	if (status == HAPAX_OK)
		status = hx_resp_put_bulk_integer(buf, (int64_t)options->bytes_max);
	if (status == HAPAX_OK)
		status = hx_resp_put_bulk_integer(buf, (int64_t)options->parked_max);
	for (size_t i = 0; i < count && status == HAPAX_OK; i++) {
		if (ops[i].status == HAPAX_OK)
			status = put_op(encoder, buf, &ops[i]);
	}
	return status;
}

enum hapax_status hx_redis_group_encode(
	struct hx_redis_encoder *encoder, struct hapax_buf *buf, struct hapax_op *ops, size_t count,
	int64_t now_ms)
{
	size_t before = buf->size;
	enum hapax_status status = HAPAX_OK;

	for (size_t i = 0; i < count; i++) {
		enum hapax_status room = HAPAX_OK;

		if (ops[i].status == HAPAX_OK)
			room = reserve_room(&ops[i], room_wanted(&ops[i]));
		if (room != HAPAX_OK) {
			hx_store_refuse(&ops[i], room);
			status = room;
		}
	}
	if (status == HAPAX_OK)
		status = put_group(encoder, buf, ops, count, now_ms);
	if (status != HAPAX_OK)
		buf->size = before;
	return status;
}

/* ---------------------------------------------------------------- answers */

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
};

static bool next_text(struct hapax_bytes *rest, struct hapax_bytes *ret_text)
{
	struct hx_resp_value value;

	return hx_resp_next(rest, &value) && hx_resp_text(&value, ret_text);
}

static bool next_integer(struct hapax_bytes *rest, int64_t *ret_integer)
{
	struct hx_resp_value value;

	return hx_resp_next(rest, &value) && hx_resp_integer(&value, ret_integer);
}

/* As next_integer; empty stands for absent. */
static bool next_or(struct hapax_bytes *rest, int64_t absent, int64_t *ret_integer)
{
	struct hapax_bytes text;

	if (!next_text(rest, &text))
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

/* The number of a word in a list of names; -1: none. Empty is the first. */
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

	if (!next_text(rest, &text))
		return false;
	*ret_number = number_of(text, name, count);
	return *ret_number >= 0;
}

/* Of one of the two sizes, or none. */
static bool next_hex(
	struct hapax_bytes *rest, unsigned char *out, size_t size, size_t short_size,
	uint32_t *ret_size)
{
	struct hapax_bytes text;

	if (!next_text(rest, &text))
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
	    !next_text(rest, &ret_result->headers) || !next_text(rest, &ret_result->body) ||
	    status < INT32_MIN || status > INT32_MAX || omitted < 0)
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
	    !next_integer(rest, &token) || !next_integer(rest, &attempt) ||
	    !next_integer(rest, &record->first_seen_ms) ||
	    !next_integer(rest, &record->changed_ms) || !next_or(rest, 0, &record->lease_ends_ms) ||
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
	    !next_text(rest, &record->owner) || !next_text(rest, &record->error) || token < 0 ||
	    attempt < 0 || attempt > UINT32_MAX)
		return false;
	record->state = (enum hapax_state)state;
	record->on_lapse = (enum hapax_on_lapse)lapse;
	record->origin = (enum hapax_origin)origin;
	record->token = (uint64_t)token;
	record->attempt = (uint32_t)attempt;
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
	if (value.type != HX_RESP_ARRAY || value.integer != 15 || !read_head(rest, ret_record) ||
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

/* The record that the answer hands out, into the caller's buffer. */
static bool take_record(struct hapax_bytes *rest, struct hapax_op *op)
{
	struct hapax_record record;
	struct hx_resp_value value;
	bool is_present;
	enum hapax_status status;

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
	record.tenant = op->tenant;
	record.group = op->group;
	record.key = op->key;
	if (!hx_record_is_valid(&record)) {
		hx_store_refuse(op, HAPAX_ERR_CORRUPT);
		return true;
	}
	status = hx_record_copy(&record, op->record, op->buf);
	if (status != HAPAX_OK)
		hx_store_refuse(op, status);
	return true;
}

static bool take_numbers(struct hapax_bytes *rest, struct hapax_op *op)
{
	int64_t unverified = 0, token = 0, attempt = 0;
	bool has_token = op->type >= HAPAX_OP_RENEW && op->type <= HAPAX_OP_PARK;

	if (!next_integer(rest, &unverified) || !next_integer(rest, &token) ||
	    !next_integer(rest, &attempt) || !next_integer(rest, &op->first_seen_ms) ||
	    !next_or(rest, HAPAX_TIME_NEVER, &op->expires_ms) ||
	    !next_integer(rest, &op->lease_left_ms) || token < 0 || attempt < 0 ||
	    attempt > UINT32_MAX)
		return false;
	op->unverified = unverified != 0;
	op->attempt = (uint32_t)attempt;
	if (!has_token)
		op->token = (uint64_t)token;
	return true;
}

static bool set_outcome(struct hapax_op *op, struct hapax_bytes word)
{
	if (text_is(word, "no_room")) {
		op->status =
			op->private_state & ROOM_NO_MEMORY ? HAPAX_ERR_NO_MEMORY : HAPAX_ERR_LIMIT;
		op->outcome = HAPAX_OUTCOME_NONE;
		return true;
	}
	for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
		if (text_is(word, outcomes[i].word)) {
			op->status = outcomes[i].status;
			op->outcome = outcomes[i].outcome;
			return true;
		}
	}
	return false;
}

static bool take_answer(struct hapax_bytes *rest, struct hapax_op *op)
{
	struct hx_resp_value value;
	struct hapax_bytes word;

	if (!hx_resp_next(rest, &value) || value.type != HX_RESP_ARRAY || value.integer != 8 ||
	    !next_text(rest, &word) || !set_outcome(op, word) || !take_numbers(rest, op) ||
	    !take_record(rest, op))
		return false;
	if (op->status != HAPAX_OK)
		hx_store_refuse(op, op->status);
	return true;
}

/* {'room', i, size}: have that much for the i-th operation that was sent. */
static enum hx_redis_verdict take_room(struct hapax_bytes rest, struct hapax_op *ops, size_t count)
{
	int64_t index = 0, size = 0;
	struct hapax_op *op = NULL;
	enum hapax_status status;

	if (!next_integer(&rest, &index) || !next_integer(&rest, &size) || size < 0)
		return HX_REDIS_BROKEN;
	for (size_t i = 0; i < count && index > 0; i++) {
		if (ops[i].status == HAPAX_OK && --index == 0)
			op = &ops[i];
	}
	if (op == NULL || op->record == NULL || (op->private_state & ROOM_IS_ALL))
		return HX_REDIS_BROKEN;
	hx_buf_clear(op->buf);
	status = hx_buf_reserve(op->buf, (size_t)size);
	if (status != HAPAX_OK)
		op->private_state |= ROOM_IS_ALL;
	if (status == HAPAX_ERR_NO_MEMORY)
		op->private_state |= ROOM_NO_MEMORY;
	return HX_REDIS_AGAIN;
}

static void fail_all(struct hapax_op *ops, size_t count, enum hapax_status status)
{
	for (size_t i = 0; i < count; i++) {
		if (ops[i].status == HAPAX_OK && ops[i].outcome == HAPAX_OUTCOME_NONE)
			hx_store_refuse(&ops[i], status);
	}
}

enum hapax_status hx_redis_error_status(const struct hx_resp_value *error, bool *ret_is_gone)
{
	static const struct {
		const char *code;
		enum hapax_status status;
		bool is_gone; /* another server, or another session, may do better */
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
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		if (hx_resp_is_error(error, codes[i].code)) {
			*ret_is_gone = codes[i].is_gone;
			return codes[i].status;
		}
	}
	/* An error inside of a script: what it had done until then stays done. */
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
	if (value.type == HX_RESP_ERROR || value.type == HX_RESP_BULK_ERROR) {
		enum hapax_status status = hx_redis_error_status(&value, &is_gone);

		fail_all(ops, count, status);
		return is_gone ? HX_REDIS_MOVED_ON : HX_REDIS_DECIDED;
	}
	if (value.type != HX_RESP_ARRAY || value.integer < 1 || !hx_resp_next(&rest, &value))
		return HX_REDIS_BROKEN;
	if (hx_resp_text(&value, &word) && text_is(word, "room"))
		return take_room(rest, ops, count);
	if (!hx_resp_integer(&value, &removed) || removed < 0)
		return HX_REDIS_BROKEN;
	*ret_removed = (uint64_t)removed;
	for (size_t i = 0; i < count; i++) {
		if (ops[i].status == HAPAX_OK && !take_answer(&rest, &ops[i])) {
			hx_store_refuse(&ops[i], HAPAX_OK);
			return HX_REDIS_BROKEN;
		}
	}
	return HX_REDIS_DECIDED;
}
