/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_check.c - check the operations of callers.
 *
 * The backend never sees an operation that is refused here. Backends may therefore assert what
 * is checked here.
 */
#include "store/store_check.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/limits.h"
#include "record/cause.h"
#include "record/record.h"
#include "store/core.h"
#include "wire/scope_name.h"

static const struct hapax_bytes default_name = {"default", 7};

static const unsigned group_flags = HAPAX_OP_LINKED | HAPAX_OP_ALL_OR_NOTHING;

bool hx_store_check_bytes(struct hapax_bytes bytes, size_t size_max)
{
	return bytes.size <= size_max && (bytes.size == 0 || bytes.data != NULL);
}

static bool complete_ttl(struct hapax_op *op)
{
	if (op->flags & HAPAX_OP_TTL_IS_TIME)
		return op->ttl_ms > 0 && op->ttl_ms <= HX_UTC_MS_MAX;
	if (op->ttl_ms == 0)
		op->ttl_ms = HX_TTL_MS_DEFAULT;
	return op->ttl_ms == HAPAX_TTL_FOREVER || (op->ttl_ms > 0 && op->ttl_ms <= HX_TTL_MS_MAX);
}

static bool complete_lease(struct hapax_op *op)
{
	if (op->lease_ms == 0)
		op->lease_ms = HX_LEASE_MS_DEFAULT;
	return op->lease_ms > 0 && op->lease_ms <= HX_LEASE_MS_MAX;
}

/* Text for people is cut, not refused: it must never make a release fail. */
static bool cut_text(struct hapax_bytes *text, size_t size_max)
{
	if (text->size > size_max)
		text->size = size_max;
	return text->size == 0 || text->data != NULL;
}

static bool result_is_valid(const struct hapax_result *result)
{
	return result == NULL ||
		((unsigned)result->kind <= HAPAX_RESULT_EXEC &&
		 (unsigned)result->result_class <= HAPAX_RESULT_DEFINITIVE &&
		 hx_store_check_bytes(result->headers, HX_RESULT_HEADERS_SIZE_MAX) &&
		 hx_store_check_bytes(result->body, SIZE_MAX) &&
		 (result->omitted_bytes == 0 || result->body.size == 0));
}

static bool token_is_valid(const struct hapax_op *op)
{
	return op->token >= 1 && op->token <= HX_TOKEN_MAX;
}

static bool flags_are_within(const struct hapax_op *op, unsigned allowed)
{
	return (op->flags & ~(allowed | group_flags)) == 0;
}

/* A caller that forgot hapax_attempt_id() has all zeros: two such callers would share a claim. */
static bool attempt_id_is_valid(const unsigned char *attempt_id)
{
	static const unsigned char zeros[HAPAX_ATTEMPT_ID_SIZE];

	return attempt_id != NULL && memcmp(attempt_id, zeros, sizeof(zeros)) != 0;
}

static bool claim_is_valid(struct hapax_op *op)
{
	return flags_are_within(op, 0) && attempt_id_is_valid(op->attempt_id) &&
		(unsigned)op->on_lapse <= HAPAX_ON_LAPSE_PARK &&
		cut_text(&op->owner, HX_OWNER_SIZE_MAX) && hx_cause_is_valid(op->cause) &&
		complete_lease(op) && complete_ttl(op);
}

static bool set_is_valid(struct hapax_op *op)
{
	return flags_are_within(op, HAPAX_OP_KEEP_TTL | HAPAX_OP_TTL_IS_TIME) &&
		(unsigned)op->set_if <= HAPAX_SET_IF_EQUAL &&
		hx_store_check_bytes(op->expected, SIZE_MAX) && result_is_valid(op->result) &&
		complete_ttl(op);
}

/* A record of any origin, under the names of the operation. */
static bool load_is_valid(const struct hapax_op *op)
{
	struct hapax_record record;

	if (!flags_are_within(op, 0) || op->load == NULL)
		return false;
	record = *op->load;
	record.tenant = record.group = default_name;
	record.key = op->key;
	return record.result.body.size <= HX_RESULT_SIZE_LIMIT && hx_record_is_valid(&record);
}

static bool by_type_is_valid(struct hapax_op *op)
{
	switch (op->type) {
	case HAPAX_OP_CLAIM: return claim_is_valid(op);
	case HAPAX_OP_RENEW:
		return flags_are_within(op, 0) && token_is_valid(op) && complete_lease(op);
	case HAPAX_OP_COMPLETE:
		return flags_are_within(op, 0) && token_is_valid(op) && result_is_valid(op->result);
	case HAPAX_OP_RELEASE:
	case HAPAX_OP_PARK:
		return flags_are_within(op, 0) && token_is_valid(op) &&
			cut_text(&op->error, HX_ERROR_TEXT_SIZE_MAX);
	case HAPAX_OP_CHECK: return flags_are_within(op, 0) && complete_ttl(op);
	case HAPAX_OP_LOOKUP: return flags_are_within(op, 0);
	case HAPAX_OP_FORGET:
		return flags_are_within(op, HAPAX_OP_FORCE | HAPAX_OP_SET_ONLY) &&
			hx_store_check_bytes(op->expected, SIZE_MAX);
	case HAPAX_OP_SET: return set_is_valid(op);
	case HAPAX_OP_EXPIRE: return flags_are_within(op, HAPAX_OP_TTL_IS_TIME) && complete_ttl(op);
	case HAPAX_OP_LOAD: return load_is_valid(op);
	}
	return false;
}

static void reset_answer(struct hapax_op *op)
{
	hx_store_refuse(op, HAPAX_OK);
	op->private_scope = 0;
	op->private_state = 0;
}

/* Empty, or filled in here for an operation that is reused. */
static bool is_default(struct hapax_bytes name)
{
	return name.size == 0 || (name.data == default_name.data && name.size == default_name.size);
}

/* Only these can write without a record; all others find nothing in an unknown scope. */
static bool may_begin(const struct hapax_op *op)
{
	return op->type == HAPAX_OP_CLAIM || op->type == HAPAX_OP_CHECK ||
		op->type == HAPAX_OP_SET || op->type == HAPAX_OP_LOAD;
}

/* The scope by number. Empty names are replaced by their defaults. */
static enum hapax_status find_scope(struct hapax_store *store, struct hapax_op *op)
{
	struct hx_scope_table *scopes = hx_store_scopes(store);
	enum hapax_status status = HAPAX_OK;
	struct hx_scope *scope;

	if (is_default(op->tenant) && is_default(op->group)) {
		op->private_scope = HX_SCOPE_DEFAULT;
	} else {
		if (!hx_store_check_bytes(op->tenant, HX_SCOPE_PART_SIZE_MAX) ||
		    !hx_store_check_bytes(op->group, HX_SCOPE_PART_SIZE_MAX))
			return HAPAX_ERR_INVALID;
		/* A record that is there can be read, ended, forgotten and copied all the same. */
		if (may_begin(op) && op->type != HAPAX_OP_LOAD &&
		    (hx_scope_name_fault(op->tenant) != NULL ||
		     hx_scope_name_fault(op->group) != NULL))
			return HAPAX_ERR_INVALID;
		scope = may_begin(op)
			? hx_scope_table_intern(scopes, op->tenant, op->group, &status)
			: hx_scope_table_find(scopes, op->tenant, op->group);
		if (status != HAPAX_OK)
			return status;
		op->private_scope = scope != NULL ? scope->id : HX_SCOPE_NOWHERE;
	}
	if (op->tenant.size == 0)
		op->tenant = default_name;
	if (op->group.size == 0)
		op->group = default_name;
	return HAPAX_OK;
}

/* Permanent: hx_store_fail() does not change it, since it depends on nothing that a store holds. */
static void store_check_refuse(struct hapax_op *op, enum hapax_status status)
{
	assert(status != HAPAX_OK);
	op->status = status;
	op->private_scope = HX_SCOPE_REFUSED;
}

static enum hapax_status check_op(struct hapax_store *store, struct hapax_op *op)
{
	reset_answer(op);
	if (op->key.size == 0 || !hx_store_check_bytes(op->key, HX_KEY_SIZE_MAX) ||
	    (op->record != NULL && op->buf == NULL) || !by_type_is_valid(op))
		return HAPAX_ERR_INVALID;
	if ((op->flags & group_flags) && !(hapax_store_capabilities(store) & HAPAX_STORE_MULTI_KEY))
		return HAPAX_ERR_UNSUPPORTED;
	return find_scope(store, op);
}

/* By name: unknown scopes have no number of their own. */
static bool same_key(const struct hapax_op *a, const struct hapax_op *b)
{
	return hx_bytes_equal(a->key, b->key) && hx_bytes_equal(a->tenant, b->tenant) &&
		hx_bytes_equal(a->group, b->group);
}

static bool group_repeats_a_key(const struct hapax_op *ops, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++) {
		/* A refused operation may have an unreadable key. */
		for (size_t k = first; k < i && ops[i].status == HAPAX_OK; k++) {
			if (ops[k].status == HAPAX_OK && same_key(&ops[i], &ops[k]))
				return true;
		}
	}
	return false;
}

/* Claims that share a token must be settled by one attempt_id. */
static bool claims_share_attempt(const struct hapax_op *ops, size_t first, size_t end)
{
	const unsigned char *attempt_id = NULL;

	for (size_t i = first; i < end; i++) {
		if (ops[i].type != HAPAX_OP_CLAIM)
			continue;
		if (attempt_id != NULL &&
		    memcmp(attempt_id, ops[i].attempt_id, HAPAX_ATTEMPT_ID_SIZE) != 0)
			return false;
		attempt_id = ops[i].attempt_id;
	}
	return true;
}

static enum hapax_status check_group(const struct hapax_op *ops, size_t first, size_t end)
{
	bool all_or_nothing = (ops[first].flags & HAPAX_OP_ALL_OR_NOTHING) != 0;

	for (size_t i = first; i < end; i++) {
		if (all_or_nothing && ops[i].status != HAPAX_OK)
			return ops[i].status;
		if (i > first && (ops[i].flags & HAPAX_OP_ALL_OR_NOTHING))
			return HAPAX_ERR_INVALID;
	}
	if (end - first == 1)
		return HAPAX_OK;
	if (end - first > HX_GROUP_OPS_MAX || group_repeats_a_key(ops, first, end))
		return HAPAX_ERR_INVALID;
	if (all_or_nothing && !claims_share_attempt(ops, first, end))
		return HAPAX_ERR_INVALID;
	return HAPAX_OK;
}

static void check_groups(struct hapax_op *ops, size_t count)
{
	size_t end;

	for (size_t first = 0; first < count; first = end) {
		enum hapax_status status;

		end = hx_store_group_end(ops, count, first);
		status = check_group(ops, first, end);
		for (size_t i = first; i < end && status != HAPAX_OK; i++)
			store_check_refuse(&ops[i], status);
	}
}

size_t hx_store_check_ops(struct hapax_store *store, struct hapax_op *ops, size_t count)
{
	unsigned flags = 0;
	size_t left = 0;

	for (size_t i = 0; i < count; i++) {
		enum hapax_status status = check_op(store, &ops[i]);

		if (status != HAPAX_OK)
			store_check_refuse(&ops[i], status);
		flags |= ops[i].flags;
		left += status == HAPAX_OK;
	}
	if (!(flags & group_flags))
		return left;
	/* A group whose end lies beyond the array was cut by mistake. */
	if (ops[count - 1].flags & HAPAX_OP_LINKED)
		store_check_refuse(&ops[count - 1], HAPAX_ERR_INVALID);
	check_groups(ops, count);
	left = 0;
	for (size_t i = 0; i < count; i++)
		left += ops[i].status == HAPAX_OK;
	return left;
}
