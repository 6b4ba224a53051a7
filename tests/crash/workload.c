/* SPDX-License-Identifier: Apache-2.0 */
#include "crash/workload.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "support/store_case.h"

static const struct {
	struct hapax_bytes tenant;
	struct hapax_bytes group;
} scopes[] = {
	{{NULL, 0}, {NULL, 0}},
	{{"acme", 4}, {"billing", 7}},
};
enum { SCOPES = sizeof(scopes) / sizeof(scopes[0]) };

static const int64_t ttls_ms[] = {5, 50, 5000, 3600000, 86400000, HAPAX_TTL_FOREVER};
static const int64_t leases_ms[] = {2, 20, 1000, 30000};
static const int64_t steps_ms[] = {0, 0, 0, 1, 3, 40, 1000, 60000, 4000000, 90000000};

static size_t below(struct workload *workload, size_t n)
{
	return (size_t)hx_prng_below(&workload->prng, n);
}

#define PICK(workload, table) ((table)[below((workload), sizeof(table) / sizeof((table)[0]))])

void workload_init(struct workload *workload, uint64_t seed)
{
	static const size_t batches[] = {1, 1, 3, WORKLOAD_OPS_MAX};
	static const size_t bodies[] = {8, 100, 300, MODEL_BODY_MAX};
	static const unsigned groups[] = {0, 20, 60};

	*workload = (struct workload){.key_count = 0};
	hx_prng_seed(&workload->prng, seed);
	workload->key_count = 1 + below(workload, WORKLOAD_KEYS_MAX);
	workload->scope_count = 1 + below(workload, SCOPES);
	workload->batch_max = PICK(workload, batches);
	workload->group_percent = PICK(workload, groups);
	workload->body_max = PICK(workload, bodies);
	for (unsigned type = HAPAX_OP_CLAIM; type < WORKLOAD_TYPES; type++) {
		workload->weights[type] = (unsigned)below(workload, 6);
		if (type == HAPAX_OP_CLAIM || type == HAPAX_OP_COMPLETE)
			workload->weights[type] += 4;
		workload->weight_sum += workload->weights[type];
	}
	for (size_t i = 0; i < WORKLOAD_KEYS_MAX; i++)
		/* Of both kinds that an index packs, and plain. */
		snprintf(
			workload->key_names[i], sizeof(workload->key_names[i]),
			i % 3 == 0           ? "k%zu"
				: i % 3 == 1 ? "0198c1a2-7b3c-7def-8123-4567%08zx"
					     : "e3b0c44298fc1c149afbf4c8%08zx",
			i);
}

int64_t workload_step_ms(struct workload *workload)
{
	return PICK(workload, steps_ms);
}

static enum hapax_op_type choose_type(struct workload *workload)
{
	unsigned at = (unsigned)below(workload, workload->weight_sum);

	for (unsigned type = HAPAX_OP_CLAIM; type < WORKLOAD_TYPES; type++) {
		if (at < workload->weights[type])
			return (enum hapax_op_type)type;
		at -= workload->weights[type];
	}
	return HAPAX_OP_LOOKUP;
}

/* The record's own mostly; else one without a holder. */
static uint64_t choose_token(
	struct workload *workload, const struct model *model, const struct hapax_op *op,
	int64_t now_ms)
{
	const struct model_record *record =
		model_find(model, now_ms, op->tenant, op->group, op->key);

	if (record && below(workload, 8))
		return record->token;
	return 1 + below(workload, (size_t)model->token_max + 1);
}

static void fill_claim(struct workload *workload, struct hapax_op *op, struct workload_slot *slot)
{
	uint64_t number = ++workload->attempts;
	int size = snprintf(slot->owner, sizeof(slot->owner), "worker-%zu", below(workload, 4));

	memset(slot->attempt_id, 0xc4, sizeof(slot->attempt_id));
	memcpy(slot->attempt_id, &number, sizeof(number));
	op->attempt_id = slot->attempt_id;
	op->owner = (struct hapax_bytes){slot->owner, (size_t)size};
	op->fingerprint = case_fingerprint("AAAB"[below(workload, 4)]);
	op->lease_ms = PICK(workload, leases_ms);
	op->on_lapse = below(workload, 4) ? HAPAX_ON_LAPSE_RETRY : HAPAX_ON_LAPSE_PARK;
}

static void fill_result(struct workload *workload, struct hapax_op *op, struct workload_slot *slot)
{
	size_t size = below(workload, workload->body_max + 1);

	for (size_t i = 0; i < size; i++)
		slot->body[i] = (unsigned char)(hx_prng_next(&workload->prng) & 0xff);
	slot->result = (struct hapax_result){
		.kind = HAPAX_RESULT_BYTES,
		.status = (int32_t)below(workload, 600),
		.body = {slot->body, size},
	};
	op->result = &slot->result;
}

static void fill_op(
	struct workload *workload, size_t at, enum hapax_op_type type, size_t scope, size_t key,
	const struct model *model, int64_t now_ms)
{
	struct hapax_op *op = &workload->ops[at];
	struct workload_slot *slot = &workload->slots[at];

	*op = (struct hapax_op){
		.type = type,
		.tenant = scopes[scope].tenant,
		.group = scopes[scope].group,
		.key = hapax_bytes_from_text(workload->key_names[key]),
	};
	slot->tenant = op->tenant;
	slot->group = op->group;
	if (type == HAPAX_OP_CLAIM)
		fill_claim(workload, op, slot);
	if (type == HAPAX_OP_CHECK)
		op->fingerprint = case_fingerprint('A');
	if (type == HAPAX_OP_COMPLETE || type == HAPAX_OP_SET)
		fill_result(workload, op, slot);
	if (type == HAPAX_OP_SET)
		op->set_if = (enum hapax_set_if)below(workload, 3);
	if (type == HAPAX_OP_RENEW)
		op->lease_ms = PICK(workload, leases_ms);
	if (type == HAPAX_OP_RELEASE || type == HAPAX_OP_PARK) {
		int size =
			snprintf(slot->error, sizeof(slot->error), "error %zu", below(workload, 3));

		op->error = (struct hapax_bytes){slot->error, (size_t)size};
	}
	if (type == HAPAX_OP_FORGET && below(workload, 2))
		op->flags |= HAPAX_OP_FORCE;
	if (type == HAPAX_OP_CLAIM || type == HAPAX_OP_CHECK || type == HAPAX_OP_SET ||
	    type == HAPAX_OP_EXPIRE)
		op->ttl_ms = PICK(workload, ttls_ms);
	if (type >= HAPAX_OP_RENEW && type <= HAPAX_OP_PARK)
		op->token = choose_token(workload, model, op, now_ms);
}

/* One step over several keys: claims of one attempt, or one claim and other things. */
static size_t fill_group(
	struct workload *workload, size_t count, const struct model *model, int64_t now_ms)
{
	size_t places = workload->key_count * workload->scope_count;
	size_t start = below(workload, places);
	bool together = below(workload, 2);
	bool claims = below(workload, 2);

	count = count < places ? count : places;
	for (size_t i = 0; i < count; i++) {
		size_t place = (start + i) % places;
		enum hapax_op_type type = claims ? HAPAX_OP_CLAIM : choose_type(workload);

		/* Only claims share a token. */
		if (together && !claims && i > 0 &&
		    (type == HAPAX_OP_CLAIM || type == HAPAX_OP_CHECK || type == HAPAX_OP_SET))
			type = HAPAX_OP_COMPLETE;
		fill_op(workload, i, type, place % workload->scope_count,
			place / workload->scope_count, model, now_ms);
		if (claims && together && i > 0)
			memcpy(workload->slots[i].attempt_id, workload->slots[0].attempt_id,
			       HAPAX_ATTEMPT_ID_SIZE);
		if (i + 1 < count)
			workload->ops[i].flags |= HAPAX_OP_LINKED;
	}
	if (together && count > 1)
		workload->ops[0].flags |= HAPAX_OP_ALL_OR_NOTHING;
	return count;
}

size_t workload_fill(struct workload *workload, const struct model *model, int64_t now_ms)
{
	size_t places = workload->key_count * workload->scope_count;
	size_t count = 1 + below(workload, workload->batch_max);

	if (count > 1 && below(workload, 100) < workload->group_percent)
		return fill_group(workload, count, model, now_ms);
	for (size_t i = 0; i < count; i++) {
		size_t place = below(workload, places);

		fill_op(workload, i, choose_type(workload), place % workload->scope_count,
			place / workload->scope_count, model, now_ms);
	}
	return count;
}

void workload_restore(struct workload *workload, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		workload->ops[i].tenant = workload->slots[i].tenant;
		workload->ops[i].group = workload->slots[i].group;
	}
}

void workload_print(const struct hapax_op *ops, size_t count, int64_t now_ms)
{
	for (size_t i = 0; i < count; i++) {
		const struct hapax_op *op = &ops[i];

		printf("# %10" PRId64 " %-8s %.*s/%.*s flags %x token %" PRIu64 " ttl %" PRId64
		       " -> %s %s\n",
		       now_ms - CASE_EPOCH_MS, hapax_op_type_name(op->type), (int)op->tenant.size,
		       (const char *)op->tenant.data, (int)op->key.size, (const char *)op->key.data,
		       op->flags, op->token, op->ttl_ms, hapax_status_name(op->status),
		       hapax_outcome_name(op->outcome));
	}
	fflush(stdout);
}
