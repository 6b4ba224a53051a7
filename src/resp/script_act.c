/* SPDX-License-Identifier: Apache-2.0 */
#include "resp/script_act.h"

#include "base/bytes.h"
#include "resp/when.h"

enum { KEYS_MAX = 1024 /* limit of a group, see HAPAX_OP_LINKED */ };

/* ---------------------------------------------------------------- replies */

static const struct hx_resp_script *script_of(const struct hx_resp_answer *answer)
{
	return hx_resp_script_at(answer->entry->flags);
}

static void put_number_or_null(struct hx_resp_answer *answer, bool is_null, int64_t number)
{
	if (is_null)
		(void)hx_resp_put_null(answer->out, answer->protocol);
	else
		(void)hx_resp_put_integer(answer->out, number);
}

/* Each key for itself. A claimed key has no value, so no script finds it equal. */
static void finish_each(struct hx_resp_answer *answer)
{
	const struct hx_resp_script *script = script_of(answer);
	int64_t count = 0;

	for (size_t i = 0; i < answer->count; i++)
		count += answer->ops[i].outcome == HAPAX_OUTCOME_APPLIED;
	if (script->reply == HX_RESP_SCRIPT_NUMBERS && count > 0)
		count = script->yes;
	else if (script->reply == HX_RESP_SCRIPT_NUMBERS)
		count = answer->ops[0].outcome == HAPAX_OUTCOME_ABSENT ? script->absent
								       : script->no;
	(void)hx_resp_put_integer(answer->out, count);
}

static bool is_applied(const struct hx_resp_answer *answer)
{
	for (size_t i = 0; i < answer->count; i++) {
		if (answer->ops[i].outcome != HAPAX_OUTCOME_APPLIED)
			return false;
	}
	return true;
}

/* All keys or none. The number of keys counts a repeated one twice, as Redis does. */
static void finish_all(struct hx_resp_answer *answer)
{
	bool is_done = is_applied(answer);

	if (script_of(answer)->reply != HX_RESP_SCRIPT_STATUS)
		(void)hx_resp_put_integer(answer->out, is_done ? answer->entry->value : 0);
	else if (is_done)
		(void)hx_resp_put_simple(answer->out, "OK");
	else
		(void)hx_resp_put_null(answer->out, answer->protocol);
}

/* ---------------------------------------------------------------- several keys in one step */

static bool is_repeated(const struct hx_resp_script_keys *keys, size_t index)
{
	for (size_t i = 0; i < index; i++) {
		if (hx_bytes_equal(keys->first[i], keys->first[index]))
			return true;
	}
	return false;
}

/* Links the operation that was added last to the earlier ones of this call, from first on. */
static void link_last(struct hx_resp_batch *batch, size_t first)
{
	size_t last = batch->count - 1;

	if (last == first)
		return;
	batch->ops[last - 1].flags |= HAPAX_OP_LINKED;
	batch->ops[first].flags |= HAPAX_OP_ALL_OR_NOTHING;
}

/* False: refused. */
static bool can_link(struct hx_resp_call *call, size_t count)
{
	if (count > KEYS_MAX)
		return hx_resp_refuse(call, "ERR a lock must have at most 1024 keys");
	return count <= 1 ||
		(hapax_store_capabilities(call->service->options.store) & HAPAX_STORE_MULTI_KEY) !=
		0 ||
		hx_resp_refuse(call, "ERR this store cannot lock several keys in one step");
}

/* ---------------------------------------------------------------- remove */

bool hx_resp_add_remove_equal(
	struct hx_resp_call *call, struct hapax_bytes key, struct hapax_bytes kept,
	hx_resp_finish_fn *finish)
{
	struct hapax_op *op = hx_resp_add(call, HAPAX_OP_FORGET, key, false, finish);

	if (op == NULL)
		return false;
	op->flags = HAPAX_OP_SET_ONLY;
	op->set_if = HAPAX_SET_IF_EQUAL;
	op->expected = kept;
	return true;
}

static void plan_remove(
	struct hx_resp_call *call, const struct hx_resp_script_keys *keys, struct hapax_bytes value)
{
	struct hapax_bytes kept;

	if (!hx_resp_keep(call, value, &kept))
		return;
	for (size_t i = 0; i < keys->count; i++) {
		if (!hx_resp_add_remove_equal(call, keys->first[i], kept, finish_each))
			return;
	}
}

static void plan_remove_all(
	struct hx_resp_call *call, const struct hx_resp_script_keys *keys, struct hapax_bytes value)
{
	struct hapax_bytes kept;

	if (!can_link(call, keys->count) || !hx_resp_keep(call, value, &kept))
		return;
	for (size_t i = 0; i < keys->count; i++) {
		if (is_repeated(keys, i))
			continue;
		if (!hx_resp_add_remove_equal(call, keys->first[i], kept, finish_all))
			return;
		link_last(call->batch, call->entry->first);
	}
}

static void plan_reset(struct hx_resp_call *call, struct hapax_bytes key)
{
	struct hapax_op *op =
		hx_resp_add(call, HAPAX_OP_FORGET, key, false, hx_resp_finish_applied);

	if (op != NULL)
		op->flags = HAPAX_OP_SET_ONLY;
}

/* ---------------------------------------------------------------- lock and extend */

/* An extended key gets the same value again, with a new expiry. */
static void plan_set_all(
	struct hx_resp_call *call, const struct hx_resp_script_keys *keys, struct hapax_bytes value,
	int64_t ttl_ms, enum hapax_set_if set_if, hx_resp_finish_fn *finish)
{
	struct hapax_bytes kept;

	if (!can_link(call, keys->count) || !hx_resp_keep(call, value, &kept))
		return;
	for (size_t i = 0; i < keys->count; i++) {
		struct hapax_op *op;

		if (is_repeated(keys, i))
			continue;
		/* Others look at the value that is in the way. */
		op = hx_resp_add(call, HAPAX_OP_SET, keys->first[i], finish != finish_all, finish);
		if (op == NULL || !hx_resp_set_value(call, kept))
			return;
		op->set_if = set_if;
		op->expected = kept;
		op->ttl_ms = ttl_ms;
		link_last(call->batch, call->entry->first);
	}
	call->entry->value = (int64_t)keys->count;
}

/* Whether each value begins with the caller's token, the first token_size bytes of value. */
static bool has_token(
	const struct hx_resp_answer *answer, struct hapax_bytes value, int64_t token_size)
{
	if (token_size < 1 || token_size > (int64_t)value.size)
		return false;
	for (size_t i = 0; i < answer->count; i++) {
		const struct hapax_op *op = &answer->ops[i];
		struct hapax_bytes token = {value.data, (size_t)token_size};

		if (!hx_resp_has_value(op) || op->record->result.body.size < token.size ||
		    !hx_bytes_equal(hx_bytes(op->record->result.body.data, token.size), token))
			return false;
	}
	return true;
}

/* The keys exist: their holder may lock them again, with another value behind the token. */
static void finish_obtain(struct hx_resp_answer *answer)
{
	const struct hapax_op *ops = answer->ops;
	struct hapax_bytes value = ops[0].expected;
	size_t count = answer->count;

	if (is_applied(answer) || !has_token(answer, value, answer->entry->value)) {
		finish_all(answer);
		return;
	}
	if (!hx_resp_batch_keep(answer->next, value, &value)) {
		(void)hx_resp_put_error(answer->out, "OOM not enough memory for the command");
		return;
	}
	for (size_t i = 0; i < count; i++) {
		struct hapax_bytes old = ops[i].record->result.body;
		struct hapax_op *step =
			hx_resp_add_step(answer, HAPAX_OP_SET, ops[i].key, finish_all, &old);

		if (step == NULL)
			return;
		step->set_if = HAPAX_SET_IF_EQUAL;
		step->expected = old;
		step->ttl_ms = ops[i].ttl_ms;
		hx_resp_batch_set_value(answer->next, value);
		link_last(answer->next, answer->entry->first);
	}
}

static void plan_obtain(
	struct hx_resp_call *call, const struct hx_resp_script_keys *keys, struct hapax_bytes value,
	int64_t ttl_ms)
{
	int64_t token_size;

	if (!hx_resp_integer_arg(call, keys->args[1], &token_size))
		return;
	plan_set_all(call, keys, value, ttl_ms, HAPAX_SET_IF_ABSENT, finish_obtain);
	call->entry->value = token_size;
	call->session->is_last = true;
}

static void finish_extend_or_lock(struct hx_resp_answer *answer)
{
	const struct hapax_op *op = &answer->ops[0];
	struct hapax_bytes value = op->expected;
	struct hapax_op *step;

	if (is_applied(answer)) {
		finish_all(answer);
		return;
	}
	step = hx_resp_add_step(answer, HAPAX_OP_SET, op->key, finish_all, &value);
	if (step == NULL)
		return;
	step->set_if = HAPAX_SET_IF_ABSENT;
	step->ttl_ms = op->ttl_ms;
	hx_resp_batch_set_value(answer->next, value);
}

/* ---------------------------------------------------------------- look first */

/* The value to compare with is in op->expected. */
static bool is_equal(const struct hapax_op *op)
{
	return hx_resp_has_value(op) && hx_bytes_equal(op->record->result.body, op->expected);
}

/* -1: it does not expire. */
static int64_t left_ms(const struct hx_resp_answer *answer, const struct hapax_op *op)
{
	int64_t now_ms = hx_resp_service_now_ms(answer->session->service);

	if (op->expires_ms == HAPAX_TIME_NEVER)
		return -1;
	return op->expires_ms > now_ms ? op->expires_ms - now_ms : 0;
}

static void plan_look(
	struct hx_resp_call *call, const struct hx_resp_script_keys *keys, struct hapax_bytes value,
	hx_resp_finish_fn *finish)
{
	struct hapax_bytes kept;

	if (!hx_resp_keep(call, value, &kept))
		return;
	for (size_t i = 0; i < keys->count; i++) {
		struct hapax_op *op =
			hx_resp_add(call, HAPAX_OP_LOOKUP, keys->first[i], true, finish);

		if (op == NULL)
			return;
		op->expected = kept;
	}
}

/* The shortest time left of those that expire. */
static void finish_time_left(struct hx_resp_answer *answer)
{
	const struct hx_resp_script *script = script_of(answer);
	int64_t shortest = script->yes;

	for (size_t i = 0; i < answer->count; i++) {
		int64_t left = left_ms(answer, &answer->ops[i]);

		if (!is_equal(&answer->ops[i])) {
			put_number_or_null(
				answer, script->reply == HX_RESP_SCRIPT_STATUS, script->no);
			return;
		}
		if (left > 0 && (shortest <= 0 || left < shortest))
			shortest = left;
	}
	(void)hx_resp_put_integer(answer->out, shortest);
}

static void prolong(struct hx_resp_answer *answer, bool adds)
{
	const struct hx_resp_script *script = script_of(answer);
	const struct hapax_op *op = &answer->ops[0];
	struct hapax_bytes value = op->expected;
	int64_t left = left_ms(answer, op);
	int64_t ttl_ms = answer->entry->value + (adds ? left : 0);
	struct hapax_op *step;

	if (!is_equal(op) || left < 0) {
		(void)hx_resp_put_integer(answer->out, is_equal(op) ? script->absent : script->no);
		return;
	}
	step = hx_resp_add_step(answer, HAPAX_OP_SET, op->key, finish_each, &value);
	if (step == NULL)
		return;
	step->expected = value;
	step->set_if = HAPAX_SET_IF_EQUAL;
	step->ttl_ms = ttl_ms;
	hx_resp_batch_set_value(answer->next, value);
}

static void finish_prolong(struct hx_resp_answer *answer)
{
	prolong(answer, false);
}

static void finish_prolong_adding(struct hx_resp_answer *answer)
{
	prolong(answer, true);
}

static void plan_prolong(
	struct hx_resp_call *call, const struct hx_resp_script_keys *keys, struct hapax_bytes value,
	int64_t ttl_ms, bool adds)
{
	plan_look(call, keys, value, adds ? finish_prolong_adding : finish_prolong);
	call->entry->value = ttl_ms;
	call->session->is_last = true;
}

/* ---------------------------------------------------------------- reserving */

/*
 * The existing value, or null if the key was set. A claimed key must not return null: the client
 * would run its work.
 */
static void finish_check_and_set(struct hx_resp_answer *answer)
{
	const struct hapax_op *op = &answer->ops[0];

	if (op->outcome == HAPAX_OUTCOME_APPLIED)
		(void)hx_resp_put_null(answer->out, answer->protocol);
	else if (hx_resp_has_value(op))
		hx_resp_put_value(answer, op);
	else
		hx_resp_put_busy(answer);
}

/* 1: a duplicate. */
static void finish_check_and_reserve(struct hx_resp_answer *answer)
{
	(void)hx_resp_put_integer(answer->out, answer->ops[0].outcome != HAPAX_OUTCOME_APPLIED);
}

/* ---------------------------------------------------------------- any script */

static bool has_time(enum hx_resp_act act)
{
	return act != HX_RESP_ACT_REMOVE && act != HX_RESP_ACT_REMOVE_ALL &&
		act != HX_RESP_ACT_RESET && act != HX_RESP_ACT_TIME_LEFT;
}

static void plan_act(
	struct hx_resp_call *call, const struct hx_resp_script *script,
	const struct hx_resp_script_keys *keys, int64_t ttl_ms)
{
	const struct hapax_bytes value = keys->args[script->value];

	switch (script->act) {
	case HX_RESP_ACT_REMOVE: plan_remove(call, keys, value); break;
	case HX_RESP_ACT_REMOVE_ALL: plan_remove_all(call, keys, value); break;
	case HX_RESP_ACT_RESET: plan_reset(call, keys->first[0]); break;
	case HX_RESP_ACT_LOCK:
		plan_set_all(call, keys, value, ttl_ms, HAPAX_SET_IF_ABSENT, finish_all);
		break;
	case HX_RESP_ACT_OBTAIN: plan_obtain(call, keys, value, ttl_ms); break;
	case HX_RESP_ACT_EXTEND:
		plan_set_all(call, keys, value, ttl_ms, HAPAX_SET_IF_EQUAL, finish_all);
		break;
	case HX_RESP_ACT_EXTEND_OR_LOCK:
		plan_set_all(call, keys, value, ttl_ms, HAPAX_SET_IF_EQUAL, finish_extend_or_lock);
		call->session->is_last = true;
		break;
	case HX_RESP_ACT_PROLONG:
		plan_prolong(
			call, keys, value, ttl_ms,
			script->arg_count > 2 && hx_bytes_equal(keys->args[2], HX_BYTES_LIT("0")));
		break;
	case HX_RESP_ACT_TIME_LEFT: plan_look(call, keys, value, finish_time_left); break;
	case HX_RESP_ACT_CHECK_AND_SET:
		plan_set_all(call, keys, value, ttl_ms, HAPAX_SET_IF_ABSENT, finish_check_and_set);
		break;
	case HX_RESP_ACT_CHECK_AND_RESERVE:
		plan_set_all(
			call, keys, value, ttl_ms, HAPAX_SET_IF_ABSENT, finish_check_and_reserve);
		break;
	}
}

void hx_resp_script_act(
	struct hx_resp_call *call, const struct hx_resp_script *script,
	const struct hx_resp_script_keys *keys)
{
	struct hx_resp_script_keys locks = *keys;
	struct hx_resp_when when = {
		.unit = script->is_in_seconds ? HX_RESP_WHEN_SECONDS : HX_RESP_WHEN_MS,
		.text = keys->args[script->time]};
	int64_t ttl_ms = 0;

	if (script->has_database && !hx_bytes_equal(keys->args[0], HX_BYTES_LIT("0"))) {
		hx_resp_refuse(call, "ERR DB index is out of range");
		return;
	}
	if (has_time(script->act) && !hx_resp_when_ttl(call, &when, &ttl_ms))
		return;
	call->entry->flags = hx_resp_script_index(script);
	if (script->key_count > 0)
		locks.count = 1;
	plan_act(call, script, &locks, ttl_ms);
}
