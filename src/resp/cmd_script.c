/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_script.c - DELEX, and EVAL of the scripts that lock libraries send.
 *
 * There is no interpreter. The scripts of resp_script.h are recognized by their text, or by its
 * SHA-1 once a client has sent them, and run as equivalent store operations. Any other script is
 * refused. Each script reads a key, then sets it, removes it or sets its expiry. The store does
 * this in one step.
 */
#include "base/bytes.h"
#include "base/hex.h"
#include "resp/resp_command.h"
#include "resp/commands.h"
#include "resp/resp_script.h"
#include "resp/when.h"

/* ---------------------------------------------------------------- compare and remove */

/* How many keys were changed. A claimed key has no value, so no script finds it equal. */
static void finish_script(struct hx_resp_answer *answer)
{
	int64_t count = 0;

	for (size_t i = 0; i < answer->count; i++)
		count += answer->ops[i].outcome == HAPAX_OUTCOME_APPLIED;
	(void)hx_resp_put_integer(answer->out, count);
}

static void plan_compare_and_remove(
	struct hx_resp_call *call, const struct hapax_bytes *keys, size_t count,
	struct hapax_bytes value, hx_resp_finish_fn *finish)
{
	struct hapax_bytes kept;

	if (!hx_resp_keep(call, value, &kept))
		return;
	for (size_t i = 0; i < count; i++) {
		struct hapax_op *op = hx_resp_add(call, HAPAX_OP_FORGET, keys[i], false, finish);

		if (op == NULL)
			return;
		op->flags = HAPAX_OP_SET_ONLY;
		op->set_if = HAPAX_SET_IF_EQUAL;
		op->expected = kept;
	}
}

/* DELEX key [IFEQ value], as in Redis 8.4. */
void hx_resp_plan_delex(struct hx_resp_call *call)
{
	if (call->argc == 2)
		hx_resp_plan_del(call);
	else if (call->argc == 4 && hx_resp_is_word(call->argv[2], "IFEQ"))
		plan_compare_and_remove(
			call, &call->argv[1], 1, call->argv[3], hx_resp_finish_applied);
	else
		hx_resp_refuse_syntax(call);
}

/* ---------------------------------------------------------------- compare and extend */

/* The value is unchanged: set the same value again with a new expiry. */
static void plan_compare_and_expire(
	struct hx_resp_call *call, struct hapax_bytes key, struct hapax_bytes value,
	struct hapax_bytes ms)
{
	struct hx_resp_when when = {.unit = HX_RESP_WHEN_MS, .text = ms};
	struct hapax_bytes kept;
	struct hapax_op *op;
	int64_t ttl_ms;

	if (!hx_resp_when_ttl(call, &when, &ttl_ms) || !hx_resp_keep(call, value, &kept))
		return;
	op = hx_resp_add(call, HAPAX_OP_SET, key, false, finish_script);
	if (op == NULL)
		return;
	op->set_if = HAPAX_SET_IF_EQUAL;
	op->expected = kept;
	op->ttl_ms = ttl_ms;
	hx_resp_batch_set_value(call->batch, kept);
}

/* ---------------------------------------------------------------- redis-py: extend */

/* entry->value holds the milliseconds to add; with flags, they count from now. */
static void finish_extend_looked(struct hx_resp_answer *answer)
{
	const struct hapax_op *op = &answer->ops[0];
	int64_t ttl_ms = answer->entry->value;
	struct hapax_bytes token = hapax_buf_bytes(&answer->session->kept);
	int64_t left_ms = op->expires_ms == HAPAX_TIME_NEVER
		? -1
		: op->expires_ms - hx_resp_service_now_ms(answer->session->service);
	struct hapax_op *step;

	if (!hx_resp_has_value(op) || !hx_bytes_equal(op->record->result.body, token) ||
	    left_ms < 0) {
		(void)hx_resp_put_integer(answer->out, 0);
		return;
	}
	if (answer->entry->flags == 0)
		ttl_ms += left_ms;
	step = hx_resp_add_step(answer, HAPAX_OP_SET, op->key, finish_script, &token);
	if (step == NULL)
		return;
	step->expected = token;
	step->set_if = HAPAX_SET_IF_EQUAL;
	step->ttl_ms = ttl_ms > 0 ? ttl_ms : 1;
	hx_resp_batch_set_value(answer->next, token);
	hx_buf_done(&answer->session->kept);
}

static void plan_extend(struct hx_resp_call *call, const struct hapax_bytes *args)
{
	struct hx_resp_when when = {.unit = HX_RESP_WHEN_MS, .text = args[2]};
	struct hapax_buf *kept = &call->session->kept;
	int64_t ttl_ms;

	if (!hx_resp_when_ttl(call, &when, &ttl_ms))
		return;
	hx_buf_clear(kept);
	if (hx_buf_append(kept, args[1].data, args[1].size) != HAPAX_OK) {
		hx_resp_refuse(call, "OOM not enough memory for the command");
		return;
	}
	(void)hx_resp_add(call, HAPAX_OP_LOOKUP, args[0], true, finish_extend_looked);
	call->entry->value = ttl_ms;
	call->entry->flags = !hx_bytes_equal(args[3], HX_BYTES_LIT("0"));
	call->session->is_last = true;
}

/* ---------------------------------------------------------------- redlock: several keys */

enum { KEYS_MAX = 1024 /* limit of a group, see HAPAX_OP_LINKED */ };

/* The keys of a script call. */
struct keys {
	const struct hapax_bytes *first;
	size_t count;
	const struct hapax_bytes *args;
};

static bool is_repeated(const struct keys *keys, size_t index)
{
	for (size_t i = 0; i < index; i++) {
		if (hx_bytes_equal(keys->first[i], keys->first[index]))
			return true;
	}
	return false;
}

/* All or nothing: the number of keys, or 0. */
static void finish_set_all(struct hx_resp_answer *answer)
{
	bool is_applied = true;

	for (size_t i = 0; i < answer->count; i++)
		is_applied = is_applied && answer->ops[i].outcome == HAPAX_OUTCOME_APPLIED;
	(void)hx_resp_put_integer(answer->out, is_applied ? answer->entry->value : 0);
}

/* Links the operation that was added last to the earlier ones of this call. */
static void link_last(struct hx_resp_call *call)
{
	struct hapax_op *ops = call->batch->ops;
	size_t last = call->batch->count - 1;

	if (last == call->entry->first)
		return;
	ops[last - 1].flags |= HAPAX_OP_LINKED;
	ops[call->entry->first].flags |= HAPAX_OP_ALL_OR_NOTHING;
}

static void plan_set_all(
	struct hx_resp_call *call, const struct keys *keys, enum hapax_set_if set_if)
{
	struct hx_resp_when when = {.unit = HX_RESP_WHEN_MS, .text = keys->args[1]};
	struct hapax_bytes value;
	int64_t ttl_ms;

	if (keys->count > KEYS_MAX) {
		hx_resp_refuse(call, "ERR a lock must have at most 1024 keys");
		return;
	}
	if (keys->count > 1 &&
	    !(hapax_store_capabilities(call->service->options.store) & HAPAX_STORE_MULTI_KEY)) {
		hx_resp_refuse(call, "ERR this store cannot lock several keys in one step");
		return;
	}
	if (!hx_resp_when_ttl(call, &when, &ttl_ms) || !hx_resp_keep(call, keys->args[0], &value))
		return;
	for (size_t i = 0; i < keys->count; i++) {
		struct hapax_op *op;

		if (is_repeated(keys, i))
			continue;
		op = hx_resp_add(call, HAPAX_OP_SET, keys->first[i], false, finish_set_all);
		if (op == NULL || !hx_resp_set_value(call, value))
			return;
		op->set_if = set_if;
		op->expected = value;
		op->ttl_ms = ttl_ms;
		link_last(call);
	}
	call->entry->value = (int64_t)keys->count;
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

static void plan_check_and_set(
	struct hx_resp_call *call, struct hapax_bytes key, struct hapax_bytes value,
	struct hapax_bytes seconds, hx_resp_finish_fn *finish)
{
	struct hx_resp_when when = {.unit = HX_RESP_WHEN_SECONDS, .text = seconds};
	struct hapax_op *op;
	int64_t ttl_ms;

	if (!hx_resp_when_ttl(call, &when, &ttl_ms))
		return;
	op = hx_resp_add(call, HAPAX_OP_SET, key, true, finish);
	if (op == NULL)
		return;
	op->set_if = HAPAX_SET_IF_ABSENT;
	op->ttl_ms = ttl_ms;
	(void)hx_resp_set_value(call, value);
}

/* ---------------------------------------------------------------- known scripts */

#define UNKNOWN                                                                     \
	"ERR unknown script; hapax runs no Lua, only the scripts of common locks: " \
	"use SET with NX or IFEQ, and DELEX with IFEQ"

static void plan_one(struct hx_resp_call *call, const struct keys *keys, enum hx_resp_script script)
{
	const struct hapax_bytes *args = keys->args;

	switch (script) {
	case HX_RESP_SCRIPT_REMOVE:
	case HX_RESP_SCRIPT_REMOVE_ALL:
		plan_compare_and_remove(call, keys->first, keys->count, args[0], finish_script);
		break;
	case HX_RESP_SCRIPT_EXPIRE:
		plan_compare_and_expire(call, keys->first[0], args[0], args[1]);
		break;
	case HX_RESP_SCRIPT_EXTEND: plan_extend(call, keys->first); break;
	case HX_RESP_SCRIPT_LOCK_ALL: plan_set_all(call, keys, HAPAX_SET_IF_ABSENT); break;
	case HX_RESP_SCRIPT_EXTEND_ALL: plan_set_all(call, keys, HAPAX_SET_IF_EQUAL); break;
	case HX_RESP_SCRIPT_CHECK_AND_SET:
		plan_check_and_set(call, keys->first[0], args[0], args[1], finish_check_and_set);
		break;
	case HX_RESP_SCRIPT_CHECK_AND_RESERVE:
		plan_check_and_set(
			call, keys->first[0], args[1], args[0], finish_check_and_reserve);
		break;
	case HX_RESP_SCRIPT_NONE: break;
	}
}

static void plan_script(struct hx_resp_call *call, enum hx_resp_script script)
{
	struct keys keys = {.first = &call->argv[3]};
	int64_t count;

	if (!hx_resp_integer_arg(call, call->argv[2], &count))
		return;
	if (count < 0 || count > (int64_t)(call->argc - 3)) {
		hx_resp_refuse(
			call,
			count < 0 ? "ERR Number of keys can't be negative"
				  : "ERR Number of keys can't be greater than number of args");
		return;
	}
	keys.count = (size_t)count;
	keys.args = keys.first + keys.count;
	if (call->argc - 3 - keys.count < hx_resp_script_arg_count(script))
		hx_resp_refuse(call, "ERR this script has more arguments");
	else if (keys.count == 0 || (keys.count > 1 && !hx_resp_script_has_keys(script)))
		hx_resp_refuse(call, "ERR this script has one key");
	else
		plan_one(call, &keys, script);
}

/* Remembers its SHA-1. False: refused. */
static bool learn(
	struct hx_resp_call *call, struct hapax_bytes text, enum hx_resp_script *ret_script,
	char digits[HX_RESP_SHA1_DIGITS + 1])
{
	unsigned char sha1[HX_SHA1_SIZE];

	*ret_script = hx_resp_script_find(text);
	if (*ret_script == HX_RESP_SCRIPT_NONE)
		return hx_resp_refuse(call, UNKNOWN);
	if (!hx_sha1(text.data, text.size, sha1))
		return hx_resp_refuse(call, "ERR SHA-1 is not available on this machine");
	hx_hex_encode(sha1, sizeof(sha1), digits);
	digits[HX_RESP_SHA1_DIGITS] = '\0';
	hx_resp_service_learn(call->service, digits, *ret_script);
	return true;
}

void hx_resp_plan_eval(struct hx_resp_call *call)
{
	char digits[HX_RESP_SHA1_DIGITS + 1];
	enum hx_resp_script script;

	if (learn(call, call->argv[1], &script, digits))
		plan_script(call, script);
}

void hx_resp_plan_evalsha(struct hx_resp_call *call)
{
	enum hx_resp_script script = hx_resp_service_recall(call->service, call->argv[1]);

	if (script == HX_RESP_SCRIPT_NONE)
		hx_resp_refuse(call, "NOSCRIPT No matching script. Please use EVAL.");
	else
		plan_script(call, script);
}

void hx_resp_plan_script_load(struct hx_resp_call *call)
{
	char digits[HX_RESP_SHA1_DIGITS + 1];
	enum hx_resp_script script;

	if (learn(call, call->argv[2], &script, digits))
		(void)hx_resp_put_text(call->text, digits);
}

void hx_resp_plan_script_exists(struct hx_resp_call *call)
{
	enum hapax_status status = hx_resp_put_array(call->text, call->argc - 2);

	for (size_t i = 2; i < call->argc && status == HAPAX_OK; i++)
		status = hx_resp_put_integer(
			call->text,
			hx_resp_service_recall(call->service, call->argv[i]) !=
				HX_RESP_SCRIPT_NONE);
	if (status != HAPAX_OK)
		call->session->is_closing = call->session->is_abrupt = true;
}
