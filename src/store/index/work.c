/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work.c - one operation on the index, in steps, and all operations of a submit.
 *
 * Operations that only read (a duplicate, a lookup) take no lock; a write holds the lock of its
 * key's shard. For a batch, buckets and records are prefetched, so that the cache misses of many
 * keys overlap.
 */
#include "store/index/work.h"

#include <assert.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "record/record.h"
#include "store/core.h"
#include "store/index/index_group.h"
#include "store/index/mark.h"
#include "store/index/write_ahead.h"

/* The size of a record beside the bytes from the caller. */
enum { RECORD_BYTES = 96 };

void hx_work_bind(struct hx_work *work, const struct hx_index_key *key, struct hapax_op *op)
{
	work->op = op;
	work->key = key;
	work->place = 0;
	work->staged = 0;
	work->is_admitted = false;
}

/* What holds between two steps. Locks: the key's shard. */
static void work_assert(const struct hx_work *work)
{
	assert(hx_shard_is_locked(work->key->shard));
	assert(work->staged == 0 || work->staged != work->place);
	assert(work->staged == 0 || work->transition.effect == HX_EFFECT_PUT);
	/* Only a new key counts against the limit of keys. */
	assert(!work->is_admitted || work->place == 0);
	assert(!work->is_admitted || work->transition.effect == HX_EFFECT_PUT);
}

/*
 * A result that is elsewhere: the record is handed out with room for its bytes at the end of the
 * buffer. Until they are read, this room holds a note of where they are. private_state then has
 * the number of the file, and op counts as its user.
 */
static enum hapax_status give_place(struct hx_work *work, struct hx_elsewhere_users *users)
{
	struct hapax_op *op = work->op;
	struct hapax_record record = work->record;
	struct hapax_bytes headers = record.result.headers;
	struct hapax_bytes body = record.result.body;
	struct hx_elsewhere elsewhere;
	bool is_elsewhere = hx_shard_elsewhere(work->key->shard, work->place, &elsewhere);
	enum hapax_status status;
	unsigned char *at;

	assert(op->private_state == 0);
	assert(headers.size + body.size >= sizeof(elsewhere));
	assert(is_elsewhere);
	if (!is_elsewhere)
		return HAPAX_ERR_CORRUPT;
	record.result.headers = hx_bytes(NULL, 0);
	record.result.body = hx_bytes(NULL, 0);
	hx_buf_clear(op->buf);
	/* All at once: pointers into it must stay valid. */
	status = hx_buf_reserve(
		op->buf,
		record.tenant.size + record.group.size + record.key.size + record.owner.size +
			record.error.size + record.cause.size + headers.size + body.size);
	if (status == HAPAX_OK)
		status = hx_record_copy(&record, op->record, op->buf);
	if (status != HAPAX_OK)
		return status;
	at = op->buf->data + op->buf->size;
	op->buf->size += headers.size + body.size;
	assert(op->buf->size <= op->buf->capacity);
	op->record->result.headers = hx_bytes(at, headers.size);
	op->record->result.body = hx_bytes(at + headers.size, body.size);
	memcpy(at, &elsewhere, sizeof(elsewhere));
	hx_elsewhere_hold(users, elsewhere.file);
	op->private_state = elsewhere.file;
	return HAPAX_OK;
}

bool hx_work_read_back(
	const struct hapax_op *op, struct hx_elsewhere *ret_elsewhere, unsigned char **ret_data,
	size_t *ret_size)
{
	if (op->private_state == 0)
		return false;
	*ret_size = (size_t)hx_result_bytes(&op->record->result);
	assert(*ret_size > HX_RESULT_IN_MEMORY_MAX);
	assert(*ret_size <= op->buf->size);
	*ret_data = op->buf->data + op->buf->size - *ret_size;
	memcpy(ret_elsewhere, *ret_data, sizeof(*ret_elsewhere));
	assert(ret_elsewhere->file == op->private_state);
	return true;
}

void hx_work_forget_place(struct hapax_op *op, struct hx_elsewhere_users *users)
{
	assert(op->private_state < HX_ELSEWHERE_FILES);
	if (op->private_state != 0)
		hx_elsewhere_release(users, (uint16_t)op->private_state);
	op->private_state = 0;
}

/* The record that was found. A caller with a different payload does not get its result (I7). */
static enum hapax_status give_found(struct hx_work *work, struct hx_elsewhere_users *users)
{
	struct hapax_op *op = work->op;

	assert(work->place != 0);
	assert(work->record.token != 0);
	if (!hx_result_is_elsewhere(&work->record.result))
		return hx_record_copy(&work->record, op->record, op->buf);
	if (op->outcome != HAPAX_OUTCOME_MISMATCH)
		return give_place(work, users);
	memset(&work->record.result, 0, sizeof(work->record.result));
	return hx_record_copy(&work->record, op->record, op->buf);
}

/* The record that op asks for: the old one for set and forget, the new one for all others. */
static enum hapax_status give_record(struct hx_work *work, const struct hx_work_context *context)
{
	struct hapax_op *op = work->op;
	bool wants_old = op->type == HAPAX_OP_SET || op->type == HAPAX_OP_FORGET;

	if (op->record == NULL)
		return HAPAX_OK;
	/* An earlier try may have left a place. */
	hx_work_forget_place(op, context->index->users);
	if (!wants_old && work->transition.effect == HX_EFFECT_PUT)
		return hx_record_copy(&work->transition.next, op->record, op->buf);
	return work->transition.was_absent ? HAPAX_OK : give_found(work, context->index->users);
}

static void transit(struct hx_work *work, const struct hx_work_context *context)
{
	if (work->place != 0) {
		hx_shard_unpack(work->key->shard, work->place, &work->record);
		work->record.key = work->op->key;
	}
	hx_transition(
		work->place != 0 ? &work->record : NULL, work->op, &context->rules,
		&work->transition);
	assert(work->place != 0 || work->transition.was_absent);
}

static void note_use(
	struct hx_work *work, const struct hx_work_context *context, uint32_t place, unsigned use)
{
	if (context->index->evict == HAPAX_EVICT_LRU && place != 0)
		hx_packed_raise_use(hx_arena_at(&work->key->shard->arena, place), use);
}

bool hx_work_read(struct hx_work *work, const struct hx_work_context *context)
{
	enum hapax_op_type type = work->op->type;
	enum hapax_status status;
	uint64_t sequence;

	assert(work->staged == 0);
	if (type != HAPAX_OP_CHECK && type != HAPAX_OP_CLAIM && type != HAPAX_OP_LOOKUP)
		return false;
	if (!hx_shard_read(
		    work->key->shard, &work->key->packed, work->key->hash, &work->place, &sequence))
		return false;
	if (work->place == 0 && type != HAPAX_OP_LOOKUP)
		return false;
	transit(work, context);
	if (work->transition.effect != HX_EFFECT_NONE)
		return false;
	note_use(work, context, work->place, 2);
	status = give_record(work, context);
	if (status != HAPAX_OK)
		hx_store_refuse(work->op, status);
	return true;
}

/* Parked keys must not pile up without bound: beyond parked_max, no new claims. */
static bool parks_too_many(const struct hx_work *work, const struct hx_work_context *context)
{
	return work->op->type == HAPAX_OP_CLAIM && work->transition.takes_token &&
		atomic_load_explicit(
			&hx_scope_table_get(context->index->scopes, work->op->private_scope)
				 ->parked,
			memory_order_relaxed) >= context->parked_max;
}

void hx_work_decide(struct hx_work *work, const struct hx_work_context *context)
{
	assert(work->staged == 0);
	assert(!work->is_admitted);
	assert(hx_shard_is_locked(work->key->shard));
	work->place = hx_shard_find(work->key->shard, &work->key->packed, work->key->hash);
	transit(work, context);
	assert(work->transition.effect != HX_EFFECT_REMOVE || work->place != 0);
	if (parks_too_many(work, context)) {
		work->transition.effect = HX_EFFECT_NONE;
		hx_store_refuse(work->op, HAPAX_ERR_LIMIT);
	}
}

uint64_t hx_work_bytes(const struct hapax_op *op, uint64_t result_size_max)
{
	uint64_t size = RECORD_BYTES + op->key.size;

	if (op->type == HAPAX_OP_CLAIM)
		size += op->owner.size + op->cause.size;
	if (op->type == HAPAX_OP_RELEASE || op->type == HAPAX_OP_PARK)
		size += op->error.size;
	if ((op->type == HAPAX_OP_COMPLETE || op->type == HAPAX_OP_SET) && op->result != NULL) {
		size += op->result->headers.size;
		if (op->result->body.size <= result_size_max)
			size += op->result->body.size;
	}
	if (op->type == HAPAX_OP_LOAD)
		size += op->load->owner.size + op->load->error.size + op->load->cause.size +
			op->load->result.headers.size + op->load->result.body.size;
	return hx_arena_room(size);
}

/* What the new record takes over from the old one, beyond what op brings. */
static uint64_t kept_bytes(const struct hx_work *work)
{
	return hx_transition_has_token(work->op) ? work->transition.next.cause.size : 0;
}

static void leave_out_all(struct hapax_record *next)
{
	hx_record_result_omit_body(&next->result);
	next->result.headers = hx_bytes(NULL, 0);
	next->error = hx_bytes(NULL, 0);
	next->cause = hx_bytes(NULL, 0);
	assert(hx_result_bytes(&next->result) == 0);
}

/* Never refused, or the work would run again: the body goes first, then all that may go. */
static void admit_end(
	struct hx_work *work, const struct hx_work_context *context, struct hx_admission *admission)
{
	/* It replaces the claim, so that there is no key to count out if it is canceled. */
	assert(admission->keys == 0);
	assert(work->place != 0);
	if (hx_index_admit(context->index, admission, context->rules.now_ms) == HAPAX_OK)
		return;
	hx_record_result_omit_body(&work->transition.next.result);
	admission->bytes = hx_work_bytes(work->op, 0) + kept_bytes(work);
	if (hx_index_admit(context->index, admission, context->rules.now_ms) != HAPAX_OK)
		leave_out_all(&work->transition.next);
}

static enum hapax_status admit_limited(
	struct hx_work *work, const struct hx_work_context *context, bool may_evict)
{
	struct hx_admission admission = {
		.shard = work->key->shard,
		.place = work->place,
		.keys = work->place == 0,
		.bytes = hx_work_bytes(work->op, context->rules.result_size_max) + kept_bytes(work),
		.from_reserve = work->place != 0 && work->op->type != HAPAX_OP_SET,
		.may_evict = may_evict,
	};
	enum hapax_status status;

	assert(!work->is_admitted);
	if (hx_transition_has_token(work->op)) {
		admit_end(work, context, &admission);
		return HAPAX_OK;
	}
	status = hx_index_admit(context->index, &admission, context->rules.now_ms);
	work->is_admitted = status == HAPAX_OK && work->place == 0;
	return status;
}

static enum hapax_status admit(
	struct hx_work *work, const struct hx_work_context *context, bool may_evict)
{
	if (work->transition.effect != HX_EFFECT_PUT || !hx_index_is_limited(context->index))
		return HAPAX_OK;
	return admit_limited(work, context, may_evict);
}

/* Stage the new record. */
static enum hapax_status put(
	struct hx_work *work, const struct hx_work_context *context, unsigned staged)
{
	enum hapax_status status = hx_shard_stage(
		work->key->shard, &work->transition.next, &work->key->packed, staged,
		context->rules.now_ms, &work->staged);

	assert((status == HAPAX_OK) == (work->staged != 0));
	/* The next operation of the group must see it. */
	if (status == HAPAX_OK && hx_index_is_limited(context->index))
		hx_shard_charge(work->key->shard);
	return status;
}

static enum hapax_status stage(
	struct hx_work *work, const struct hx_work_context *context, uint64_t token,
	unsigned staged)
{
	enum hapax_status status = HAPAX_OK;

	if (work->transition.takes_token) {
		if (token == 0)
			return HAPAX_ERR_LIMIT;
		/* Fencing: a later holder has a larger token. */
		assert(work->place == 0 || token > work->record.token);
		work->transition.next.token = token;
		work->op->token = token;
	}
	if (work->op->type == HAPAX_OP_LOAD)
		hx_index_raise_token(context->index, work->transition.next.token);
	if (work->transition.effect == HX_EFFECT_PUT) {
		status = put(work, context, staged);
		if (status == HAPAX_ERR_LIMIT && hx_transition_has_token(work->op)) {
			leave_out_all(&work->transition.next);
			status = put(work, context, staged);
		}
	}
	return status == HAPAX_OK ? give_record(work, context) : status;
}

static struct hx_write_ahead_change change_of(
	const struct hx_work *work, const struct hx_work_context *context)
{
	enum hapax_op_type type = work->op->type;

	assert(work->transition.effect != HX_EFFECT_NONE);
	assert(work->transition.was_absent || work->place != 0);
	/* Nothing is removed that a reader could not have seen. */
	assert(work->transition.effect == HX_EFFECT_PUT || !work->transition.was_absent);
	return (struct hx_write_ahead_change){
		.key = work->key,
		.next = work->transition.effect == HX_EFFECT_PUT ? &work->transition.next : NULL,
		.replaced = work->transition.was_absent ? NULL : &work->record,
		.now_ms = context->rules.now_ms,
		.ends_claim = type == HAPAX_OP_RENEW || type == HAPAX_OP_COMPLETE ||
			type == HAPAX_OP_RELEASE || type == HAPAX_OP_PARK ||
			type == HAPAX_OP_FORGET,
	};
}

static enum hapax_status reserve(struct hx_work *work, const struct hx_work_context *context)
{
	struct hx_write_ahead_change change;

	if (context->write_ahead == NULL || work->transition.effect == HX_EFFECT_NONE)
		return HAPAX_OK;
	change = change_of(work, context);
	return context->write_ahead->reserve(context->write_ahead, &change);
}

static void write_journal(struct hx_work *work, const struct hx_work_context *context)
{
	struct hx_write_ahead_change change;

	if (context->write_ahead == NULL || work->transition.effect == HX_EFFECT_NONE)
		return;
	change = change_of(work, context);
	context->write_ahead->write(context->write_ahead, &change);
}

/* Room in the journal. The end of a claim that does not fit a full disk is kept with less. */
static enum hapax_status reserve_or_leave_out(
	struct hx_work *work, const struct hx_work_context *context, unsigned staged)
{
	enum hapax_status status = reserve(work, context);

	if (status != HAPAX_ERR_LIMIT || work->staged == 0 || context->write_ahead->is_full ||
	    !hx_transition_has_token(work->op))
		return status;
	hx_shard_unstage(work->key->shard, work->staged);
	work->staged = 0;
	leave_out_all(&work->transition.next);
	status = put(work, context, staged);
	if (status == HAPAX_OK)
		status = give_record(work, context);
	return status == HAPAX_OK ? reserve(work, context) : status;
}

enum hapax_status hx_work_prepare(
	struct hx_work *work, const struct hx_work_context *context, uint64_t token,
	unsigned staged, bool may_evict)
{
	enum hapax_status status = work->op->status;

	if (status != HAPAX_OK)
		return status;
	work_assert(work);
	assert(work->staged == 0);
	assert(staged >= 1);
	status = admit(work, context, may_evict);
	if (status == HAPAX_OK)
		status = stage(work, context, token, staged);
	if (status == HAPAX_OK)
		status = reserve_or_leave_out(work, context, staged);
	if (status != HAPAX_OK) {
		hx_work_cancel(work, context);
		hx_store_refuse(work->op, status);
	}
	work_assert(work);
	return status;
}

void hx_work_commit(struct hx_work *work, const struct hx_work_context *context)
{
	work_assert(work);
	assert(hx_table_is_begun(&work->key->shard->table));
	assert(work->op->status == HAPAX_OK || work->transition.effect == HX_EFFECT_NONE);
	/* First: a reader of the new record must find that it is being written. */
	write_journal(work, context);
	switch (work->transition.effect) {
	case HX_EFFECT_NONE: note_use(work, context, work->place, 2); break;
	case HX_EFFECT_PUT:
		assert(work->staged != 0);
		hx_shard_publish(work->key->shard, work->key->hash, work->place, work->staged);
		note_use(work, context, work->staged, 1);
		break;
	case HX_EFFECT_REMOVE:
		assert(work->staged == 0);
		hx_shard_remove(work->key->shard, work->key->hash, work->place);
		hx_index_unadmit(context->index);
		break;
	}
}

void hx_work_skip(struct hx_work *work, const struct hx_work_context *context)
{
	enum hapax_status status;

	/* Canceled, or never staged: a staged record would stay forever. */
	assert(work->staged == 0);
	assert(!work->is_admitted);
	work->transition.effect = HX_EFFECT_NONE;
	hx_store_skip(work->op);
	if (work->op->status != HAPAX_OK)
		return;
	if (work->op->outcome == HAPAX_OUTCOME_SKIPPED && !work->transition.was_absent)
		hx_transition_describe(&work->record, context->rules.now_ms, work->op);
	status = give_record(work, context);
	if (status != HAPAX_OK)
		hx_store_refuse(work->op, status);
}

void hx_work_cancel(struct hx_work *work, const struct hx_work_context *context)
{
	work_assert(work);
	if (work->staged != 0)
		hx_shard_unstage(work->key->shard, work->staged);
	if (work->is_admitted)
		hx_index_unadmit(context->index);
	work->staged = 0;
	work->is_admitted = false;
}

/* Locks: the shard's. */
static enum hapax_status settle(
	const struct hx_work_context *context, const struct hx_index_key *key, uint32_t place,
	bool *ret_is_settled)
{
	struct hx_shard *shard = key->shard;
	struct hapax_record record;
	struct hx_transition transition;
	struct hx_write_ahead_change change = {
		.key = key,
		.next = &transition.next,
		.replaced = &record,
		.now_ms = context->rules.now_ms,
		.ends_claim = true,
	};
	enum hapax_status status;
	uint32_t settled;

	hx_shard_unpack(shard, place, &record);
	record.key = hx_bytes(key->packed.data, key->packed.size); /* decides nothing */
	hx_transition_sweep(&record, &context->rules, &transition);
	if (transition.effect != HX_EFFECT_PUT)
		return HAPAX_OK;
	assert(record.state == HAPAX_STATE_CLAIMED);
	assert(transition.next.state != HAPAX_STATE_CLAIMED);
	status = hx_shard_stage(
		shard, &transition.next, &key->packed, 0, context->rules.now_ms, &settled);
	if (status != HAPAX_OK)
		return status;
	if (context->write_ahead != NULL) {
		status = context->write_ahead->reserve(context->write_ahead, &change);
		if (status != HAPAX_OK) {
			hx_shard_unstage(shard, settled);
			return status;
		}
		context->write_ahead->write(context->write_ahead, &change);
	}
	hx_table_begin(&shard->table);
	hx_shard_publish(shard, key->hash, place, settled);
	hx_table_end(&shard->table);
	*ret_is_settled = true;
	return HAPAX_OK;
}

enum hapax_status hx_work_settle(
	const struct hx_work_context *context, const struct hx_index_key *key, bool *ret_is_settled)
{
	struct hx_shard *shard = key->shard;
	enum hapax_status status = HAPAX_OK;
	uint32_t place;

	*ret_is_settled = false;
	hx_lock_acquire(&shard->lock);
	place = hx_shard_find(shard, &key->packed, key->hash);
	if (place != 0)
		status = settle(context, key, place, ret_is_settled);
	assert(status == HAPAX_OK || !*ret_is_settled);
	hx_shard_charge(shard);
	hx_shard_assert(shard);
	hx_lock_release(&shard->lock);
	return status;
}

/*
 * The number of keys prefetched at a time: as many as the caches have in flight. More would
 * evict prefetched data from the first cache before it is used.
 */
enum { AHEAD = HX_SIPHASH_LANES };

/* Under the lock of the key's shard. */
static void write_one(struct hx_work *work, const struct hx_work_context *context)
{
	struct hx_shard *shard = work->key->shard;
	uint64_t token = 0;

	hx_lock_acquire(&shard->lock);
	hx_work_decide(work, context);
	if (work->transition.takes_token && work->op->status == HAPAX_OK)
		token = hx_index_take_tokens(context->index, 1);
	if (hx_work_prepare(work, context, token, 1, true) == HAPAX_OK) {
		hx_table_begin(&shard->table);
		hx_work_commit(work, context);
		hx_table_end(&shard->table);
		hx_shard_tidy(shard, context->rules.now_ms);
		hx_shard_charge(shard);
	} else {
		assert(work->staged == 0);
		assert(!work->is_admitted);
	}
	hx_shard_assert(shard);
	hx_lock_release(&shard->lock);
}

static bool is_full(const struct hx_work_context *context)
{
	return context->write_ahead != NULL && context->write_ahead->is_full;
}

static void run_slowly(
	const struct hx_work_context *context, const struct hx_index_key *key, struct hapax_op *op)
{
	struct hx_work work;

	/* Operations that the check refused do not come here. */
	assert(op->status == HAPAX_OK);
	hx_work_bind(&work, key, op);
	if (!hx_work_read(&work, context))
		write_one(&work, context);
}

void hx_index_run_one(
	const struct hx_work_context *context, const struct hx_index_key *key, struct hapax_op *op)
{
	/* With a full journal, the same operation is tried again. */
	if (!hx_mark_run(context, key, op) && !is_full(context))
		run_slowly(context, key, op);
}

/*
 * Can they run together? A mix runs one by one, since operations on one key take effect in their
 * order. So do journaled operations, since the journal may stop at any of them.
 */
static bool are_checks(
	const struct hx_work_context *context, const struct hapax_op *ops, size_t count)
{
	bool fit = context->write_ahead == NULL;

	for (size_t i = 0; i < count; i++)
		fit &= hx_mark_fits(&ops[i]);
	return fit;
}

/* Single operations, at most AHEAD of them, whose records are prefetched. Returns how many. */
static size_t run_some(
	const struct hx_work_context *context, const struct hx_index_key *keys,
	struct hapax_op *ops, size_t count)
{
	assert(count <= AHEAD);
	if (are_checks(context, ops, count)) {
		unsigned left = hx_mark_run_all(context, keys, ops, (unsigned)count);

		for (; left != 0; left &= left - 1) {
			unsigned i = (unsigned)__builtin_ctz(left);

			run_slowly(context, &keys[i], &ops[i]);
		}
		return count;
	}
	for (size_t i = 0; i < count; i++) {
		hx_index_run_one(context, &keys[i], &ops[i]);
		if (is_full(context)) {
			hx_store_refuse(&ops[i], HAPAX_OK);
			return i;
		}
	}
	return count;
}

/* Prepare keys, and prefetch their buckets. */
static void begin_some(
	const struct hx_work_context *context, struct hx_index_key *keys,
	const struct hapax_op *ops, size_t count)
{
	hx_index_keys_init(context->index, keys, ops, count);
	for (size_t i = 0; i < count; i++)
		hx_index_prefetch_bucket(&keys[i]);
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * Single operations, AHEAD at a time. While these wait for their records, the next ones are
 * prepared; their buckets arrive while these run. Returns how many.
 */
static size_t run_ahead(const struct hx_work_context *context, struct hapax_op *ops, size_t count)
{
	struct hx_index_key keys[2][AHEAD];
	struct hx_index_key *behind[AHEAD]; /* whose bucket overflows */
	uint32_t overflow[AHEAD];
	size_t here = min_size(count, AHEAD);
	size_t first = 0;
	unsigned turn = 0;

	begin_some(context, keys[0], ops, here);
	while (here != 0) {
		unsigned seat = hx_epoch_enter(&context->index->epoch);
		size_t next = min_size(count - first - here, AHEAD);
		size_t count_behind = 0;
		size_t ran;

		for (size_t i = 0; i < here; i++) {
			overflow[count_behind] = hx_index_probe(&keys[turn][i]);
			behind[count_behind] = &keys[turn][i];
			count_behind += overflow[count_behind] != 0;
		}
		begin_some(context, keys[turn ^ 1], ops + first + here, next);
		for (size_t i = 0; i < count_behind; i++)
			hx_index_probe_overflow(behind[i], overflow[i]);
		ran = run_some(context, keys[turn], ops + first, here);
		hx_epoch_leave(&context->index->epoch, seat);
		assert(ran <= here);
		/* Only a full journal stops it. */
		assert(ran == here || is_full(context));
		first += ran;
		here = ran == here ? next : 0;
		turn ^= 1;
	}
	return first;
}

/* How many operations from first on are single and not refused. */
static size_t count_plain(const struct hapax_op *ops, size_t count, size_t first)
{
	size_t end = first;

	while (end < count && ops[end].status == HAPAX_OK && !hx_work_is_grouped(&ops[end]))
		end++;
	return end - first;
}

size_t hx_index_run_all(const struct hx_work_context *context, struct hapax_op *ops, size_t count)
{
	size_t i = 0;

	while (i < count && !is_full(context)) {
		size_t plain = count_plain(ops, count, i);

		if (plain != 0) {
			i += run_ahead(context, ops + i, plain);
		} else if (hx_work_is_grouped(&ops[i])) {
			size_t end = hx_store_group_end(ops, count, i);

			assert(end > i);
			assert(end <= count);
			if (hx_index_group(context, ops + i, end - i))
				i = end;
		} else {
			assert(ops[i].status != HAPAX_OK);
			i++; /* refused by the check */
		}
	}
	assert(i <= count);
	return i;
}
