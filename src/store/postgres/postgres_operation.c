/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_operation.c - operations as arguments.
 */
#include "store/postgres/postgres_operation.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "record/record.h"
#include "store/core.h"
#include "store/postgres/postgres_place.h"
#include "store/room.h"

enum {
	ARGUMENT_BYTES_MAX = 1 << 30,
};

/* Flags of type hapax_op in schema.sql. */
enum {
	FLAG_RECORD = 1,
	FLAG_PARK = 2,
	FLAG_FORCE = 4,
	FLAG_SET_ONLY = 8,
	FLAG_KEEP_TTL = 16,
	FLAG_IF_ABSENT = 32,
	FLAG_IF_PRESENT = 64,
	FLAG_IF_EQUAL = 128,
	FLAG_OVER = 256,
	FLAG_ROOM_IS_ALL = 512,
	FLAG_LISTENS = 1024,
	FLAG_TTL_IS_TIME = 2048,
};

const Oid hx_postgres_argument_types[HX_POSTGRES_ARGUMENTS] = {
	HX_POSTGRES_INT8,        HX_POSTGRES_INT2,        HX_POSTGRES_BOOL,
	HX_POSTGRES_INT8,        HX_POSTGRES_INT2_ARRAY,  HX_POSTGRES_INT4_ARRAY,
	HX_POSTGRES_INT8_ARRAY,  HX_POSTGRES_BYTEA_ARRAY, HX_POSTGRES_BYTEA_ARRAY,
	HX_POSTGRES_BYTEA_ARRAY, HX_POSTGRES_BYTEA_ARRAY, HX_POSTGRES_BYTEA_ARRAY,
	HX_POSTGRES_BYTEA_ARRAY, HX_POSTGRES_BYTEA_ARRAY, HX_POSTGRES_BYTEA_ARRAY,
	HX_POSTGRES_INT8_ARRAY,  HX_POSTGRES_INT8_ARRAY,  HX_POSTGRES_INT8_ARRAY,
	HX_POSTGRES_INT2_ARRAY,  HX_POSTGRES_INT2_ARRAY,  HX_POSTGRES_INT4_ARRAY,
	HX_POSTGRES_INT8_ARRAY,  HX_POSTGRES_BYTEA_ARRAY, HX_POSTGRES_BYTEA_ARRAY,
	HX_POSTGRES_INT2_ARRAY,  HX_POSTGRES_INT2_ARRAY,  HX_POSTGRES_INT8_ARRAY,
	HX_POSTGRES_INT8_ARRAY,  HX_POSTGRES_INT8_ARRAY,  HX_POSTGRES_INT8_ARRAY,
	HX_POSTGRES_BYTEA_ARRAY,
};

/* The arrays, in the order of hapax_operate(). */
enum column {
	COLUMN_TYPE,
	COLUMN_FLAGS,
	COLUMN_ROOM,
	COLUMN_TENANT,
	COLUMN_GROUP,
	COLUMN_KEY,
	COLUMN_PRINT,
	COLUMN_ATTEMPT_ID,
	COLUMN_OWNER,
	COLUMN_ERROR,
	COLUMN_EXPECTED,
	COLUMN_LEASE,
	COLUMN_TTL,
	COLUMN_TOKEN,
	COLUMN_KIND,
	COLUMN_CLASS,
	COLUMN_STATUS,
	COLUMN_OMITTED,
	COLUMN_HEADERS,
	COLUMN_BODY,
	COLUMN_STATE,
	COLUMN_ORIGIN,
	COLUMN_ATTEMPT,
	COLUMN_FIRST_SEEN,
	COLUMN_CHANGED,
	COLUMN_EXPIRES,
	COLUMN_CAUSE,
	COLUMN_COUNT,
};

_Static_assert(
	HX_POSTGRES_SCALARS + COLUMN_COUNT == HX_POSTGRES_ARGUMENTS, "one argument for each");

/* ---------------------------------------------------------------- room */

bool hx_postgres_op_make_room(struct hapax_op *const *ops, size_t count, const char *detail)
{
	char *end = NULL;
	unsigned long place = detail == NULL ? 0 : strtoul(detail, &end, 10);
	unsigned long long size = end == NULL ? 0 : strtoull(end, NULL, 10);

	return place >= 1 && place <= count && size != 0 && hx_room_make(ops[place - 1], size);
}

/* ---------------------------------------------------------------- arguments */

void hx_postgres_arguments_init(struct hx_postgres_arguments *arguments)
{
	memset(arguments, 0, sizeof(*arguments));
	hx_buf_init(&arguments->bytes, ARGUMENT_BYTES_MAX);
}

void hx_postgres_arguments_done(struct hx_postgres_arguments *arguments)
{
	hx_buf_done(&arguments->bytes);
}

/* Insertion sort: stable, and most batches are small. */
void hx_postgres_ops_sort(struct hapax_op **ops, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct hapax_op *op = ops[i];
		size_t at = i;

		for (; at > 0 && hx_store_compare_names(ops[at - 1], op) > 0; at--)
			ops[at] = ops[at - 1];
		ops[at] = op;
	}
}

/* One element. */
struct value {
	bool is_null;
	int64_t number;
	struct hapax_bytes bytes;
};

static const struct value no_value = {.is_null = true};

static struct value number(int64_t number)
{
	return (struct value){.number = number};
}

/* NULL for a time or span without an end. */
static struct value span(int64_t ms)
{
	return ms == HAPAX_TIME_NEVER ? no_value : number(ms);
}

static struct value text(struct hapax_bytes bytes)
{
	return bytes.size == 0 ? no_value : (struct value){.bytes = bytes};
}

static struct value binary(const unsigned char *data, size_t size)
{
	return data == NULL ? no_value : (struct value){.bytes = {data, size}};
}

static int32_t flags_of(const struct hapax_op *op, const struct hx_postgres_rules *rules)
{
	static const int32_t conditions[] = {
		[HAPAX_SET_ALWAYS] = 0,
		[HAPAX_SET_IF_ABSENT] = FLAG_IF_ABSENT,
		[HAPAX_SET_IF_PRESENT] = FLAG_IF_PRESENT,
		[HAPAX_SET_IF_EQUAL] = FLAG_IF_EQUAL,
	};
	int32_t flags = op->record == NULL ? 0 : FLAG_RECORD;

	if ((op->type == HAPAX_OP_CLAIM && op->on_lapse == HAPAX_ON_LAPSE_PARK) ||
	    (op->type == HAPAX_OP_LOAD && op->load->on_lapse == HAPAX_ON_LAPSE_PARK))
		flags |= FLAG_PARK;
	if (op->flags & HAPAX_OP_FORCE)
		flags |= FLAG_FORCE;
	if (op->flags & HAPAX_OP_SET_ONLY)
		flags |= FLAG_SET_ONLY;
	if (op->flags & HAPAX_OP_KEEP_TTL)
		flags |= FLAG_KEEP_TTL;
	if (op->flags & HAPAX_OP_TTL_IS_TIME)
		flags |= FLAG_TTL_IS_TIME;
	if (op->type == HAPAX_OP_SET)
		flags |= conditions[op->set_if];
	if (op->type == HAPAX_OP_FORGET && op->set_if == HAPAX_SET_IF_EQUAL)
		flags |= FLAG_IF_EQUAL;
	if (op->type == HAPAX_OP_SET && op->result != NULL &&
	    op->result->body.size > rules->result_size_max)
		flags |= FLAG_OVER;
	if (hx_room_is_all(op))
		flags |= FLAG_ROOM_IS_ALL;
	if (rules->is_listening)
		flags |= FLAG_LISTENS;
	return flags;
}

static struct value result_value(
	const struct hapax_op *op, enum column column, const struct hx_postgres_rules *rules)
{
	const struct hapax_result *result = hx_postgres_op_result(op);
	bool is_over;

	if (result == NULL)
		return no_value;
	is_over = op->type != HAPAX_OP_LOAD && result->body.size > rules->result_size_max;
	switch (column) {
	case COLUMN_KIND: return number(result->kind);
	case COLUMN_CLASS: return number(result->result_class);
	case COLUMN_STATUS: return number(result->status);
	case COLUMN_OMITTED:
		return number((int64_t)(is_over ? result->body.size : result->omitted_bytes));
	case COLUMN_HEADERS: return text(result->headers);
	default: return is_over ? no_value : text(result->body);
	}
}

static struct value load_value(const struct hapax_record *load, enum column column)
{
	switch (column) {
	case COLUMN_PRINT:
		return load->fingerprint_size == 0
			? no_value
			: binary(load->fingerprint, load->fingerprint_size);
	case COLUMN_ATTEMPT_ID:
		return load->state == HAPAX_STATE_CLAIMED || load->state == HAPAX_STATE_PARKED
			? binary(load->attempt_id, HAPAX_ATTEMPT_ID_SIZE)
			: no_value;
	case COLUMN_OWNER: return text(load->owner);
	case COLUMN_ERROR: return text(load->error);
	case COLUMN_LEASE: return number(load->lease_ends_ms);
	case COLUMN_TTL: return span(load->ttl_ms);
	case COLUMN_TOKEN: return number((int64_t)load->token);
	case COLUMN_STATE: return number(load->state);
	case COLUMN_ORIGIN: return number(load->origin);
	case COLUMN_ATTEMPT: return number(load->attempt);
	case COLUMN_FIRST_SEEN: return number(load->first_seen_ms);
	case COLUMN_CHANGED: return number(load->changed_ms);
	case COLUMN_EXPIRES: return span(load->expires_ms);
	case COLUMN_CAUSE: return text(load->cause);
	default: return no_value;
	}
}

static struct value value_of(
	const struct hapax_op *op, enum column column, const struct hx_postgres_rules *rules)
{
	bool is_claim = op->type == HAPAX_OP_CLAIM;

	switch (column) {
	case COLUMN_TYPE: return number(op->type);
	case COLUMN_FLAGS: return number(flags_of(op, rules));
	case COLUMN_ROOM: return number((int64_t)hx_room_size(op));
	case COLUMN_TENANT: return (struct value){.bytes = op->tenant};
	case COLUMN_GROUP: return (struct value){.bytes = op->group};
	case COLUMN_KEY: return (struct value){.bytes = op->key};
	case COLUMN_KIND:
	case COLUMN_CLASS:
	case COLUMN_STATUS:
	case COLUMN_OMITTED:
	case COLUMN_HEADERS:
	case COLUMN_BODY: return result_value(op, column, rules);
	default: break;
	}
	if (op->type == HAPAX_OP_LOAD)
		return load_value(op->load, column);
	switch (column) {
	case COLUMN_PRINT:
		return is_claim || op->type == HAPAX_OP_CHECK
			? binary(op->fingerprint, HAPAX_FINGERPRINT_SIZE)
			: no_value;
	case COLUMN_ATTEMPT_ID:
		return is_claim ? binary(op->attempt_id, HAPAX_ATTEMPT_ID_SIZE) : no_value;
	case COLUMN_OWNER: return is_claim ? text(op->owner) : no_value;
	case COLUMN_ERROR: return text(op->error);
	case COLUMN_EXPECTED:
		return op->set_if == HAPAX_SET_IF_EQUAL ? (struct value){.bytes = op->expected}
							: no_value;
	case COLUMN_LEASE: return number(op->lease_ms);
	case COLUMN_TTL: return span(op->ttl_ms);
	case COLUMN_TOKEN: return number((int64_t)op->token);
	case COLUMN_CAUSE: return is_claim ? text(op->cause) : no_value;
	default: return no_value;
	}
}

void hx_postgres_put_i64(unsigned char out[8], int64_t number)
{
	uint64_t big = htobe64((uint64_t)number);

	memcpy(out, &big, sizeof(big));
}

static enum hapax_status append_number(struct hapax_buf *buf, int64_t number, size_t size)
{
	unsigned char bytes[8];

	hx_postgres_put_i64(bytes, number);
	return hx_buf_append(buf, bytes + sizeof(bytes) - size, size);
}

enum hapax_status hx_postgres_append_bytes(struct hapax_buf *buf, struct hapax_bytes bytes)
{
	enum hapax_status status = append_number(buf, (int64_t)bytes.size, 4);

	return status == HAPAX_OK ? hx_buf_append(buf, bytes.data, bytes.size) : status;
}

enum hapax_status hx_postgres_append_array(struct hapax_buf *buf, Oid element, size_t count)
{
	const int64_t head[5] = {1, 1, element, (int64_t)count, 1};
	enum hapax_status status = HAPAX_OK;

	for (size_t i = 0; i < HX_COUNT(head) && status == HAPAX_OK; i++)
		status = append_number(buf, head[i], 4);
	return status;
}

static Oid element_type(Oid array)
{
	switch (array) {
	case HX_POSTGRES_INT2_ARRAY: return HX_POSTGRES_INT2;
	case HX_POSTGRES_INT4_ARRAY: return HX_POSTGRES_INT4;
	case HX_POSTGRES_INT8_ARRAY: return HX_POSTGRES_INT8;
	default: return HX_POSTGRES_BYTEA;
	}
}

static size_t number_size(Oid element)
{
	return element == HX_POSTGRES_INT2 ? 2 : element == HX_POSTGRES_INT4 ? 4 : 8;
}

static enum hapax_status append_element(struct hapax_buf *buf, Oid element, struct value value)
{
	enum hapax_status status;

	if (value.is_null)
		return append_number(buf, -1, 4);
	if (element != HX_POSTGRES_BYTEA) {
		status = append_number(buf, (int64_t)number_size(element), 4);
		return status == HAPAX_OK ? append_number(buf, value.number, number_size(element))
					  : status;
	}
	return hx_postgres_append_bytes(buf, value.bytes);
}

/* Append an array in PostgreSQL's binary form, or nothing if all elements are NULL. */
static enum hapax_status append_array(
	struct hapax_buf *buf, enum column column, struct hapax_op *const *ops, size_t count,
	const struct hx_postgres_rules *rules, bool *ret_is_null)
{
	Oid element = element_type(hx_postgres_argument_types[HX_POSTGRES_SCALARS + column]);
	enum hapax_status status;

	*ret_is_null = true;
	for (size_t i = 0; i < count && *ret_is_null; i++)
		*ret_is_null = value_of(ops[i], column, rules).is_null;
	if (*ret_is_null)
		return HAPAX_OK;
	status = hx_postgres_append_array(buf, element, count);
	for (size_t i = 0; i < count && status == HAPAX_OK; i++)
		status = append_element(buf, element, value_of(ops[i], column, rules));
	return status;
}

static enum hapax_status append_scalars(
	struct hx_postgres_arguments *arguments, enum hx_postgres_group kind,
	const struct hx_postgres_rules *rules)
{
	struct hapax_buf *buf = &arguments->bytes;
	const struct {
		int64_t number;
		size_t size;
	} scalars[HX_POSTGRES_SCALARS] = {
		{rules->now_ms, 8},
		{kind, 2},
		{rules->is_joined, 1},
		{rules->parked_max > INT64_MAX ? INT64_MAX : (int64_t)rules->parked_max, 8},
	};
	enum hapax_status status = HAPAX_OK;

	for (size_t i = 0; i < HX_POSTGRES_SCALARS && status == HAPAX_OK; i++) {
		arguments->offsets[i] = buf->size;
		arguments->lengths[i] = (int)scalars[i].size;
		status = append_number(buf, scalars[i].number, scalars[i].size);
	}
	if (rules->now_ms < 0)
		arguments->offsets[0] = SIZE_MAX;
	return status;
}

enum hapax_status hx_postgres_arguments_encode(
	struct hx_postgres_arguments *arguments, struct hapax_op *const *ops, size_t count,
	enum hx_postgres_group kind, const struct hx_postgres_rules *rules)
{
	struct hapax_buf *buf = &arguments->bytes;
	enum hapax_status status;

	assert(count > 0 && count <= HX_POSTGRES_OPS_MAX);
	hx_buf_clear(buf);
	status = append_scalars(arguments, kind, rules);
	for (unsigned i = 0; i < COLUMN_COUNT && status == HAPAX_OK; i++) {
		size_t begin = buf->size;
		bool is_null;

		status = append_array(buf, (enum column)i, ops, count, rules, &is_null);
		arguments->offsets[HX_POSTGRES_SCALARS + i] = is_null ? SIZE_MAX : begin;
		arguments->lengths[HX_POSTGRES_SCALARS + i] = (int)(buf->size - begin);
	}
	if (status != HAPAX_OK)
		return status;
	for (size_t i = 0; i < HX_POSTGRES_ARGUMENTS; i++) {
		bool is_null = arguments->offsets[i] == SIZE_MAX;

		arguments->values[i] =
			is_null ? NULL : (const char *)buf->data + arguments->offsets[i];
		arguments->formats[i] = 1;
	}
	return HAPAX_OK;
}

/* ---------------------------------------------------------------- one operation */

static void add_number(struct hx_postgres_scalars *scalars, int64_t number)
{
	unsigned char *out = scalars->numbers[scalars->count];

	hx_postgres_put_i64(out, number);
	scalars->values[scalars->count] = (const char *)out;
	scalars->lengths[scalars->count] = 8;
	scalars->formats[scalars->count++] = 1;
}

static void add_now(struct hx_postgres_scalars *scalars, const struct hx_postgres_rules *rules)
{
	add_number(scalars, rules->now_ms);
	if (rules->now_ms < 0)
		scalars->values[scalars->count - 1] = NULL;
}

static void add_columns(
	struct hx_postgres_scalars *scalars, const enum column *columns, size_t count,
	const struct hapax_op *op, const struct hx_postgres_rules *rules)
{
	for (size_t i = 0; i < count; i++) {
		Oid array = hx_postgres_argument_types[HX_POSTGRES_SCALARS + columns[i]];
		struct value value = value_of(op, columns[i], rules);

		add_number(scalars, value.number);
		if (element_type(array) == HX_POSTGRES_BYTEA) {
			scalars->values[scalars->count - 1] =
				value.bytes.size == 0 ? "" : value.bytes.data;
			scalars->lengths[scalars->count - 1] = (int)value.bytes.size;
		}
		if (value.is_null)
			scalars->values[scalars->count - 1] = NULL;
	}
}

void hx_postgres_scalars_claim(
	struct hx_postgres_scalars *scalars, const struct hapax_op *op,
	const struct hx_postgres_rules *rules, int64_t wait_ms)
{
	static const enum column columns[] = {
		COLUMN_FLAGS, COLUMN_ROOM,       COLUMN_TENANT, COLUMN_GROUP, COLUMN_KEY,
		COLUMN_PRINT, COLUMN_ATTEMPT_ID, COLUMN_OWNER,  COLUMN_TTL,   COLUMN_CAUSE};

	scalars->count = 0;
	add_number(scalars, wait_ms);
	add_now(scalars, rules);
	add_number(scalars, rules->parked_max > INT64_MAX ? INT64_MAX : (int64_t)rules->parked_max);
	add_columns(scalars, columns, HX_COUNT(columns), op, rules);
	assert(scalars->count == HX_POSTGRES_CLAIM_SCALARS);
}

void hx_postgres_scalars_complete(
	struct hx_postgres_scalars *scalars, const struct hapax_op *op,
	const struct hx_postgres_rules *rules)
{
	static const enum column columns[] = {
		COLUMN_TENANT, COLUMN_GROUP,  COLUMN_KEY,     COLUMN_TOKEN,   COLUMN_KIND,
		COLUMN_CLASS,  COLUMN_STATUS, COLUMN_OMITTED, COLUMN_HEADERS, COLUMN_BODY};

	scalars->count = 0;
	add_now(scalars, rules);
	add_columns(scalars, columns, HX_COUNT(columns), op, rules);
	assert(scalars->count == HX_POSTGRES_COMPLETE_SCALARS);
}

enum hapax_status hx_postgres_call_append(
	struct hapax_buf *buf, const char *schema, const char *function, unsigned count)
{
	enum hapax_status status = hx_buf_append(buf, "SELECT * FROM ", 14);

	if (status == HAPAX_OK)
		status = hx_postgres_sql_append(buf, schema, "@@");
	if (status != HAPAX_OK)
		return status;
	buf->size--; /* the NUL */
	status = hx_buf_printf(buf, "%s(", function);
	for (unsigned i = 0; i < count && status == HAPAX_OK; i++)
		status = hx_buf_printf(buf, "%s$%u", i == 0 ? "" : ", ", i + 1);
	return status == HAPAX_OK ? hx_buf_append(buf, ")", 2) : status;
}

bool hx_postgres_ops_only_read(struct hapax_op *const *ops, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (ops[i]->type != HAPAX_OP_LOOKUP)
			return false;
	}
	return true;
}

size_t hx_postgres_segment_end(
	const struct hapax_op *ops, size_t count, size_t first, size_t count_max,
	enum hx_postgres_group *ret_kind)
{
	size_t end = first;

	*ret_kind = HX_POSTGRES_APART;
	if (ops[first].flags & HAPAX_OP_LINKED)
		*ret_kind = HX_POSTGRES_TOGETHER;
	if (ops[first].flags & HAPAX_OP_ALL_OR_NOTHING)
		*ret_kind = HX_POSTGRES_ALL_OR_NOTHING;
	if (*ret_kind != HX_POSTGRES_APART)
		return hx_store_group_end(ops, count, first);
	while (end < count && end - first < count_max && !(ops[end].flags & HAPAX_OP_LINKED))
		end++;
	return end;
}

bool hx_postgres_op_answer_locked(struct hapax_op *op)
{
	if (op->type != HAPAX_OP_CLAIM && op->type != HAPAX_OP_CHECK)
		return false;
	hx_store_refuse(op, HAPAX_OK);
	op->outcome = HAPAX_OUTCOME_IN_PROGRESS;
	return true;
}
