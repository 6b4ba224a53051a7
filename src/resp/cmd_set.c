/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_set.c - commands that write values: SET and its variants, GETDEL, DEL.
 *
 * A value is the result of a record that set made. A time to live is relative to the store's clock;
 * a point in time becomes relative when the command is read.
 */
#include "base/bytes.h"
#include "base/limits.h"
#include "resp/resp_command.h"
#include "resp/commands.h"
#include "resp/when.h"

enum set_flag {
	SET_NX = 1 << 0,
	SET_XX = 1 << 1,
	SET_GET = 1 << 2,
	SET_KEEP_TTL = 1 << 3,
	SET_IF_EQUAL = 1 << 4,
	SET_AS_INTEGER = 1 << 5, /* SETNX: 1 or 0 */
};

/*
 * The previous value. With NX, null means that the key was set. A claimed or parked key has no
 * value but must not return null: the client would run its work.
 */
static void put_old_value(struct hx_resp_answer *answer, const struct hapax_op *op, unsigned flags)
{
	if ((flags & SET_NX) && hx_resp_exists(op) && !hx_resp_has_value(op))
		hx_resp_put_busy(answer);
	else
		hx_resp_put_value(answer, op);
}

static void put_set(struct hx_resp_answer *answer, bool is_set)
{
	const struct hapax_op *op = &answer->ops[0];
	unsigned flags = answer->entry->flags;

	if (op->outcome == HAPAX_OUTCOME_BUSY)
		hx_resp_put_busy(answer);
	else if (flags & SET_GET)
		put_old_value(answer, op, flags);
	else if (flags & SET_AS_INTEGER)
		(void)hx_resp_put_integer(answer->out, is_set);
	else if (is_set)
		(void)hx_resp_put_simple(answer->out, "OK");
	else
		(void)hx_resp_put_null(answer->out, answer->protocol);
}

static void finish_set(struct hx_resp_answer *answer)
{
	put_set(answer, answer->ops[0].outcome == HAPAX_OUTCOME_APPLIED);
}

/* SET with an expiry in the past: the key is absent afterward. */
static void finish_set_past(struct hx_resp_answer *answer)
{
	const struct hapax_op *op = &answer->ops[0];
	unsigned flags = answer->entry->flags;
	bool is_set = true;

	if (flags & SET_NX)
		is_set = !hx_resp_exists(op);
	else if (flags & SET_XX)
		is_set = op->outcome == HAPAX_OUTCOME_APPLIED;
	put_set(answer, is_set);
}

static void plan_set_past(struct hx_resp_call *call, unsigned flags)
{
	struct hapax_op *op;

	if (flags & SET_NX) {
		(void)hx_resp_add(call, HAPAX_OP_LOOKUP, call->argv[1], true, finish_set_past);
	} else {
		op = hx_resp_add(call, HAPAX_OP_FORGET, call->argv[1], true, finish_set_past);
		if (op != NULL)
			op->flags = HAPAX_OP_SET_ONLY;
	}
	call->entry->flags = flags;
}

static void plan_set(
	struct hx_resp_call *call, struct hapax_bytes value, unsigned flags,
	const struct hx_resp_expiry *expiry, struct hapax_bytes expected)
{
	struct hapax_bytes kept = expected;
	struct hapax_op *op;

	if ((flags & SET_IF_EQUAL) && !hx_resp_keep(call, expected, &kept))
		return;
	op = hx_resp_add(call, HAPAX_OP_SET, call->argv[1], (flags & SET_GET) != 0, finish_set);
	if (op == NULL)
		return;
	hx_resp_expiry_put(expiry, op);
	if (flags & SET_KEEP_TTL)
		op->flags |= HAPAX_OP_KEEP_TTL;
	if (flags & SET_NX)
		op->set_if = HAPAX_SET_IF_ABSENT;
	else if (flags & SET_XX)
		op->set_if = HAPAX_SET_IF_PRESENT;
	else if (flags & SET_IF_EQUAL) {
		op->set_if = HAPAX_SET_IF_EQUAL;
		op->expected = kept;
	}
	call->entry->flags = flags;
	(void)hx_resp_set_value(call, value);
}

struct set_options {
	unsigned flags;
	struct hx_resp_when when;
	struct hapax_bytes expected;
};

/* Reads the option at index. Returns the number of arguments read; 0: not valid there. */
static size_t read_set_option(
	const struct hx_resp_call *call, size_t index, struct set_options *options)
{
	const unsigned conditions = SET_NX | SET_XX | SET_IF_EQUAL;
	struct hapax_bytes word = call->argv[index];
	bool has_next = index + 1 < call->argc;

	if (hx_resp_is_word(word, "NX") && !(options->flags & (conditions & ~(unsigned)SET_NX))) {
		options->flags |= SET_NX;
		return 1;
	}
	if (hx_resp_is_word(word, "XX") && !(options->flags & (conditions & ~(unsigned)SET_XX))) {
		options->flags |= SET_XX;
		return 1;
	}
	if (hx_resp_is_word(word, "GET")) {
		options->flags |= SET_GET;
		return 1;
	}
	if (hx_resp_is_word(word, "KEEPTTL") && options->when.unit == HX_RESP_WHEN_NONE) {
		options->flags |= SET_KEEP_TTL;
		return 1;
	}
	if (hx_resp_is_word(word, "IFEQ") && has_next && !(options->flags & conditions)) {
		options->flags |= SET_IF_EQUAL;
		options->expected = call->argv[index + 1];
		return 2;
	}
	if (has_next && !(options->flags & SET_KEEP_TTL) &&
	    hx_resp_when_option(&options->when, word, call->argv[index + 1]))
		return 2;
	return 0;
}

void hx_resp_plan_set(struct hx_resp_call *call)
{
	struct set_options options = {.flags = 0};
	struct hx_resp_expiry expiry;

	for (size_t i = 3, step; i < call->argc; i += step) {
		step = read_set_option(call, i, &options);
		if (step == 0) {
			hx_resp_refuse_syntax(call);
			return;
		}
	}
	if (!hx_resp_when_set(call, &options.when, &expiry))
		return;
	if (expiry.ttl_ms <= 0 && !(options.flags & SET_IF_EQUAL)) {
		plan_set_past(call, options.flags);
		return;
	}
	if (expiry.ttl_ms <= 0)
		expiry = (struct hx_resp_expiry){.ttl_ms = 1};
	plan_set(call, call->argv[2], options.flags, &expiry, options.expected);
}

void hx_resp_plan_setnx(struct hx_resp_call *call)
{
	const struct hx_resp_expiry expiry = {.ttl_ms = HAPAX_TTL_FOREVER};

	plan_set(call, call->argv[2], SET_NX | SET_AS_INTEGER, &expiry, hx_bytes(NULL, 0));
}

void hx_resp_plan_getset(struct hx_resp_call *call)
{
	const struct hx_resp_expiry expiry = {.ttl_ms = HAPAX_TTL_FOREVER};

	plan_set(call, call->argv[2], SET_GET, &expiry, hx_bytes(NULL, 0));
}

void hx_resp_plan_setex(struct hx_resp_call *call)
{
	struct hx_resp_when when = {.unit = call->command->variant, .text = call->argv[2]};
	struct hx_resp_expiry expiry;

	if (hx_resp_when_set(call, &when, &expiry))
		plan_set(call, call->argv[3], 0, &expiry, hx_bytes(NULL, 0));
}

/* ---------------------------------------------------------------- removing */

static void finish_del(struct hx_resp_answer *answer)
{
	int64_t removed = 0;
	bool is_busy = false;

	for (size_t i = 0; i < answer->count; i++) {
		removed += answer->ops[i].outcome == HAPAX_OUTCOME_APPLIED;
		is_busy = is_busy || answer->ops[i].outcome == HAPAX_OUTCOME_BUSY;
	}
	if (is_busy)
		hx_resp_put_busy(answer);
	else
		(void)hx_resp_put_integer(answer->out, removed);
}

void hx_resp_plan_del(struct hx_resp_call *call)
{
	for (size_t i = 1; i < call->argc; i++) {
		struct hapax_op *op =
			hx_resp_add(call, HAPAX_OP_FORGET, call->argv[i], false, finish_del);

		if (op == NULL)
			return;
		op->flags = HAPAX_OP_SET_ONLY;
	}
}

static void finish_getdel(struct hx_resp_answer *answer)
{
	const struct hapax_op *op = &answer->ops[0];

	if (op->outcome == HAPAX_OUTCOME_BUSY)
		hx_resp_put_busy(answer);
	else if (op->outcome == HAPAX_OUTCOME_APPLIED)
		hx_resp_put_value(answer, op);
	else
		(void)hx_resp_put_null(answer->out, answer->protocol);
}

void hx_resp_plan_getdel(struct hx_resp_call *call)
{
	struct hapax_op *op =
		hx_resp_add(call, HAPAX_OP_FORGET, call->argv[1], true, finish_getdel);

	if (op != NULL)
		op->flags = HAPAX_OP_SET_ONLY;
}
