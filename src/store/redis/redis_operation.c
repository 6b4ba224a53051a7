/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_operation.c - a group of operations as one command.
 */
#include "store/redis/redis_operation.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/limits.h"
#include "record/record.h"
#include "store/core.h"
#include "store/redis/redis_member.h"
#include "store/room.h"
#include "wire/resp/resp_reply.h"

enum {
	ARGUMENTS = 4,     /* all_or_nothing and three limits */
	OP_ARGUMENTS = 19, /* see operate.lua */
	CLAIM_ARGUMENTS = 8,
	COMPLETE_ARGUMENTS = 9,

	/* Size of a usual operation without its texts. */
	OP_SIZE = 512,

	/* Numbers, names and lengths of an answer, with and without its record. */
	ANSWER_SIZE = 256,
	RECORD_SIZE = 1024,

	/* An error instead of answers. */
	ERROR_SIZE_MAX = 4096,
};

size_t hx_redis_group_count(const struct hapax_op *ops, size_t count)
{
	size_t left = 0;

	for (size_t i = 0; i < count; i++)
		left += ops[i].status == HAPAX_OK;
	return left;
}

bool hx_redis_group_may_ask(const struct hapax_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (ops[i].status == HAPAX_OK && hx_room_may_grow(&ops[i]))
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

/* The body to store: one that is too large leaves a tombstone. */
static struct hapax_bytes body_to_store(const struct hapax_result *result, uint64_t size_max)
{
	return result->body.size > size_max ? hx_bytes(NULL, 0) : result->body;
}

static size_t result_size(const struct hapax_op *op)
{
	return op->result == NULL ? 0 : op->result->headers.size + op->result->body.size;
}

size_t hx_redis_group_reply_size_max(const struct hapax_op *ops, size_t count)
{
	size_t size = ERROR_SIZE_MAX;

	for (size_t i = 0; i < count; i++) {
		size += ANSWER_SIZE;
		if (ops[i].record != NULL)
			size += RECORD_SIZE + HX_ROOM_PEOPLE_MAX + HX_RESULT_HEADERS_SIZE_MAX +
				HX_RESULT_SIZE_LIMIT;
	}
	return size;
}

size_t hx_redis_group_reply_size(const struct hapax_op *ops, size_t count)
{
	size_t size = ANSWER_SIZE;

	for (size_t i = 0; i < count; i++)
		size += ops[i].record == NULL ? (size_t)ANSWER_SIZE
					      : (size_t)ANSWER_SIZE + RECORD_SIZE + HX_ROOM_FIRST;
	return size;
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
	if (hx_room_is_all(op))
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
	if (op->flags & HAPAX_OP_TTL_IS_TIME)
		*at++ = 't';
	if (op->type == HAPAX_OP_SET && op->set_if != HAPAX_SET_ALWAYS)
		*at++ = set_if[op->set_if];
	if (op->type == HAPAX_OP_FORGET && op->set_if == HAPAX_SET_IF_EQUAL)
		*at++ = set_if[HAPAX_SET_IF_EQUAL];
	if (op->type == HAPAX_OP_SET && op->result != NULL &&
	    op->result->body.size > result_size_max)
		*at++ = 'o';
	return at;
}

static void put_hex(struct hx_resp_words *command, const unsigned char *data, size_t size)
{
	char text[2 * HAPAX_FINGERPRINT_SIZE];

	if (data == NULL)
		size = 0;
	else
		hx_hex_encode(data, size, text);
	hx_resp_word(command, hx_bytes(text, 2 * size));
}

/* A number; empty if it is the one that goes without saying. */
static void put_unless(struct hx_resp_words *command, int64_t number, int64_t usual)
{
	if (number == usual)
		hx_resp_word_text(command, "");
	else
		hx_resp_word_integer(command, number);
}

static void put_result(
	struct hx_resp_words *command, const struct hapax_result *result, uint64_t result_size_max)
{
	struct hapax_bytes body = body_to_store(result, result_size_max);
	uint64_t omitted =
		body.size == result->body.size ? result->omitted_bytes : result->body.size;

	hx_resp_word_text(
		command,
		result->kind == HAPAX_RESULT_NONE ? "" : hapax_result_kind_name(result->kind));
	hx_resp_word_text(
		command,
		result->result_class == HAPAX_RESULT_OK
			? ""
			: hapax_result_class_name(result->result_class));
	put_unless(command, result->status, 0);
	put_unless(command, omitted > INT64_MAX ? 0 : (int64_t)omitted, 0);
	hx_resp_word(command, result->headers);
	hx_resp_word(command, body);
}

/* The arguments of an operation beside its type, flags and room. */
struct arguments {
	int64_t lease_ms;
	int64_t ttl_ms;
	const unsigned char *fingerprint; /* NULL: none */
	size_t fingerprint_size;
	const unsigned char *attempt_id; /* NULL: none */
	struct hapax_bytes owner;
	struct hapax_bytes cause;
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
		.cause = is_claim ? op->cause : hx_bytes(NULL, 0),
		.error = op->error,
		.token = op->token,
		.expected = op->expected,
		.result = op->result == NULL ? &no_result : op->result,
	};
}

/* The same for a record to load; see operate.lua. */
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
		.cause = record->cause,
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

static void put_op(
	const struct hx_redis_encoder *encoder, struct hx_resp_words *command,
	const struct hapax_op *op)
{
	struct arguments arguments;
	char flags[16];
	char *end = letters(op, encoder->options->result_size_max, flags);

	if (op->type == HAPAX_OP_LOAD)
		gather_load(op->load, &arguments);
	else
		gather(op, &arguments);
	hx_resp_word_text(command, hapax_op_type_name(op->type));
	hx_resp_word(command, hx_bytes(flags, (size_t)(end - flags)));
	hx_resp_word_integer(command, (int64_t)hx_room_size(op));
	hx_resp_word_integer(command, (int64_t)hx_room_name_size(op));
	put_unless(command, arguments.lease_ms, 0);
	put_unless(command, arguments.ttl_ms, HAPAX_TTL_FOREVER);
	put_hex(command, arguments.fingerprint, arguments.fingerprint_size);
	put_hex(command, arguments.attempt_id, HAPAX_ATTEMPT_ID_SIZE);
	hx_resp_word(command, arguments.owner);
	hx_resp_word(command, arguments.error);
	hx_resp_word_integer(command, (int64_t)arguments.token);
	hx_resp_word(command, arguments.expected);
	put_result(command, arguments.result, encoder->options->result_size_max);
	hx_resp_word(command, arguments.cause);
}

static void put_name(
	struct hx_redis_encoder *encoder, struct hx_resp_words *command, const struct hapax_op *op)
{
	struct hapax_buf *member = &encoder->member;
	enum hapax_status status;

	hx_buf_clear(member);
	status = hx_buf_append(member, encoder->prefix.data, encoder->prefix.size);
	if (status == HAPAX_OK)
		status = hx_buf_append_byte(member, ':');
	if (status == HAPAX_OK)
		status = hx_redis_member_append(member, op->tenant, op->group, op->key);
	if (status != HAPAX_OK)
		command->status = status;
	hx_resp_word(command, hx_bytes(member->data, member->size));
}

/* "keys_max bytes_max parked_max" */
static void put_limits(struct hx_resp_words *command, const struct hapax_store_options *options)
{
	char text[3 * HX_RESP_NUMBER_SIZE_MAX + 4];
	int size = snprintf(
		text, sizeof(text), "%llu %llu %llu", (unsigned long long)options->keys_max,
		(unsigned long long)options->bytes_max, (unsigned long long)options->parked_max);

	hx_resp_word(command, hx_bytes(text, (size_t)size));
}

/* The flags and "room base", or nothing if no record is wanted. */
static void put_flags(
	const struct hx_redis_encoder *encoder, struct hx_resp_words *command,
	const struct hapax_op *op)
{
	char text[2 * HX_RESP_NUMBER_SIZE_MAX + 4];
	char *end = letters(op, encoder->options->result_size_max, text);
	int size = 0;

	hx_resp_word(command, hx_bytes(text, (size_t)(end - text)));
	if (op->record != NULL)
		size = snprintf(
			text, sizeof(text), "%zu %zu", hx_room_size(op), hx_room_name_size(op));
	hx_resp_word(command, hx_bytes(text, (size_t)size));
}

/* In the format of claim.lua. */
static void put_claim(
	const struct hx_redis_encoder *encoder, struct hx_resp_words *command,
	const struct hapax_op *op)
{
	struct arguments arguments;

	gather(op, &arguments);
	put_flags(encoder, command, op);
	hx_resp_word_integer(command, arguments.lease_ms);
	put_unless(command, arguments.ttl_ms, HAPAX_TTL_FOREVER);
	put_hex(command, arguments.fingerprint, arguments.fingerprint_size);
	put_hex(command, arguments.attempt_id, HAPAX_ATTEMPT_ID_SIZE);
	hx_resp_word(command, arguments.owner);
	hx_resp_word(command, arguments.cause);
}

/* In the format of complete.lua. */
static void put_complete(
	const struct hx_redis_encoder *encoder, struct hx_resp_words *command,
	const struct hapax_op *op)
{
	put_flags(encoder, command, op);
	hx_resp_word_integer(command, (int64_t)op->token);
	put_result(
		command, op->result == NULL ? &no_result : op->result,
		encoder->options->result_size_max);
}

bool hx_redis_op_is_usual(const struct hapax_op *op)
{
	return op->type == HAPAX_OP_CLAIM || op->type == HAPAX_OP_CHECK ||
		op->type == HAPAX_OP_COMPLETE;
}

size_t hx_redis_op_size(const struct hapax_op *op)
{
	return OP_SIZE + hx_room_name_size(op) + op->owner.size + op->cause.size + result_size(op);
}

static void set_prefix(struct hx_redis_encoder *encoder, unsigned partition)
{
	encoder->prefix.data = encoder->prefix_text;
	encoder->prefix.size =
		hx_redis_partition_prefix(encoder->place, partition, encoder->prefix_text);
}

enum hapax_status hx_redis_usual_encode(
	struct hx_redis_encoder *encoder, struct hapax_buf *buf, struct hapax_op *const *ops,
	size_t count, unsigned partition, int64_t now_ms)
{
	bool is_complete = ops[0]->type == HAPAX_OP_COMPLETE;
	size_t stride = is_complete ? COMPLETE_ARGUMENTS : CLAIM_ARGUMENTS;
	size_t before = buf->size;
	struct hx_resp_words command;

	set_prefix(encoder, partition);
	hx_redis_script_begin(
		&command, buf, encoder->scripts, is_complete ? HX_REDIS_COMPLETE : HX_REDIS_CLAIM,
		encoder->prefix, count, 2 + count * stride);
	for (size_t i = 0; i < count; i++)
		put_name(encoder, &command, ops[i]);
	hx_redis_script_arguments(&command, encoder->prefix, now_ms);
	put_limits(&command, encoder->options);
	hx_resp_word_text(&command, hapax_op_type_name(ops[0]->type));
	for (size_t i = 0; i < count; i++) {
		if (is_complete)
			put_complete(encoder, &command, ops[i]);
		else
			put_claim(encoder, &command, ops[i]);
	}
	if (command.status != HAPAX_OK)
		buf->size = before;
	return command.status;
}

static enum hapax_status put_group(
	struct hx_redis_encoder *encoder, struct hapax_buf *buf, const struct hapax_op *ops,
	size_t count, int64_t now_ms)
{
	const struct hapax_store_options *options = encoder->options;
	size_t left = hx_redis_group_count(ops, count);
	struct hx_resp_words command;

	hx_redis_script_begin(
		&command, buf, encoder->scripts, HX_REDIS_OPERATE, encoder->prefix, left,
		ARGUMENTS + left * OP_ARGUMENTS);
	for (size_t i = 0; i < count; i++) {
		if (ops[i].status == HAPAX_OK)
			put_name(encoder, &command, &ops[i]);
	}
	hx_redis_script_arguments(&command, encoder->prefix, now_ms);
	hx_resp_word_text(&command, (ops[0].flags & HAPAX_OP_ALL_OR_NOTHING) ? "1" : "");
	hx_resp_word_integer(&command, (int64_t)options->keys_max);
	hx_resp_word_integer(&command, (int64_t)options->bytes_max);
	hx_resp_word_integer(&command, (int64_t)options->parked_max);
	for (size_t i = 0; i < count; i++) {
		if (ops[i].status == HAPAX_OK)
			put_op(encoder, &command, &ops[i]);
	}
	return command.status;
}

enum hapax_status hx_redis_group_encode(
	struct hx_redis_encoder *encoder, struct hapax_buf *buf, struct hapax_op *ops, size_t count,
	unsigned partition, int64_t now_ms)
{
	size_t before = buf->size;
	enum hapax_status status = HAPAX_OK;

	set_prefix(encoder, partition);
	for (size_t i = 0; i < count; i++) {
		enum hapax_status room = HAPAX_OK;

		if (ops[i].status == HAPAX_OK)
			room = hx_room_reserve(&ops[i]);
		if (room != HAPAX_OK)
			status = room;
	}
	if (status == HAPAX_OK)
		status = put_group(encoder, buf, ops, count, now_ms);
	if (status != HAPAX_OK)
		buf->size = before;
	return status;
}
