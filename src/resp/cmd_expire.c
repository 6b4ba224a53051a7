/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_expire.c - commands that change when a value expires.
 *
 * EXPIRE with a condition and PERSIST read first and then write. Another client may write between
 * the two steps; the write is correct for the value that was read.
 */
#include "base/bytes.h"
#include "base/checked.h"
#include "resp/resp_command.h"
#include "resp/commands.h"
#include "resp/when.h"

enum expire_flag {
	EXPIRE_NX = 1 << 0,
	EXPIRE_XX = 1 << 1,
	EXPIRE_GT = 1 << 2,
	EXPIRE_LT = 1 << 3,
	EXPIRE_AT = 1 << 4, /* entry->value is a point in time, else a time to live */
};

/* A time in the past removes the key. */
static void set_expiry(struct hapax_op *op, const struct hx_resp_expiry *expiry)
{
	if (expiry->ttl_ms > 0) {
		op->type = HAPAX_OP_EXPIRE;
		hx_resp_expiry_put(expiry, op);
	} else {
		op->type = HAPAX_OP_FORGET;
		op->flags |= HAPAX_OP_SET_ONLY;
	}
}

/* The expiry that hx_resp_plan_expire() and hx_resp_plan_persist() stored in the entry. */
static struct hx_resp_expiry entry_expiry(const struct hx_resp_answer *answer)
{
	struct hx_resp_expiry expiry = {.ttl_ms = answer->entry->value};

	if (answer->entry->flags & EXPIRE_AT) {
		expiry.at_ms = expiry.ttl_ms;
		if (hx_sub_i64(
			    expiry.at_ms, hx_resp_service_now_ms(answer->session->service),
			    &expiry.ttl_ms))
			expiry.ttl_ms = -1;
	}
	return expiry;
}

static bool condition_holds(
	const struct hx_resp_answer *answer, const struct hx_resp_expiry *expiry,
	const struct hapax_op *op)
{
	unsigned flags = answer->entry->flags;
	bool is_forever = op->expires_ms == HAPAX_TIME_NEVER;
	int64_t asked = expiry->ttl_ms;
	int64_t has = 0;

	/* Two points in time are compared directly; a time to live needs the clock. */
	if (!is_forever && (flags & EXPIRE_AT)) {
		asked = expiry->at_ms;
		has = op->expires_ms;
	} else if (!is_forever) {
		has = op->expires_ms - hx_resp_service_now_ms(answer->session->service);
	}
	if ((flags & EXPIRE_NX) && !is_forever)
		return false;
	if ((flags & EXPIRE_XX) && is_forever)
		return false;
	if ((flags & EXPIRE_GT) && (is_forever || asked <= has))
		return false;
	return !(flags & EXPIRE_LT) || is_forever || asked < has;
}

static void finish_condition(struct hx_resp_answer *answer)
{
	const struct hapax_op *op = &answer->ops[0];
	struct hx_resp_expiry expiry = entry_expiry(answer);
	struct hapax_op *step;

	if (!hx_resp_exists(op) || !condition_holds(answer, &expiry, op)) {
		(void)hx_resp_put_integer(answer->out, 0);
		return;
	}
	step = hx_resp_add_step(answer, HAPAX_OP_EXPIRE, op->key, hx_resp_finish_applied, NULL);
	if (step != NULL)
		set_expiry(step, &expiry);
}

/* False: refused. */
static bool read_conditions(struct hx_resp_call *call, unsigned *flags)
{
	for (size_t i = 3; i < call->argc; i++) {
		if (hx_resp_is_word(call->argv[i], "NX"))
			*flags |= EXPIRE_NX;
		else if (hx_resp_is_word(call->argv[i], "XX"))
			*flags |= EXPIRE_XX;
		else if (hx_resp_is_word(call->argv[i], "GT"))
			*flags |= EXPIRE_GT;
		else if (hx_resp_is_word(call->argv[i], "LT"))
			*flags |= EXPIRE_LT;
		else
			return hx_resp_refuse_format(
				call, "ERR Unsupported option %.*s", HX_RESP_SHOWN(call->argv[i]));
	}
	if ((*flags & EXPIRE_NX) && (*flags & (EXPIRE_XX | EXPIRE_GT | EXPIRE_LT)))
		return hx_resp_refuse(
			call,
			"ERR NX and XX, GT or LT options at the same time are not compatible");
	if ((*flags & EXPIRE_GT) && (*flags & EXPIRE_LT))
		return hx_resp_refuse(
			call, "ERR GT and LT options at the same time are not compatible");
	return true;
}

void hx_resp_plan_expire(struct hx_resp_call *call)
{
	struct hx_resp_when when = {.unit = call->command->variant, .text = call->argv[2]};
	unsigned flags = 0;
	struct hx_resp_expiry expiry;
	struct hapax_op *op;

	if (!read_conditions(call, &flags) || !hx_resp_when_expire(call, &when, &expiry))
		return;
	call->entry->flags = flags | (expiry.at_ms != 0 ? (unsigned)EXPIRE_AT : 0);
	call->entry->value = expiry.at_ms != 0 ? expiry.at_ms : expiry.ttl_ms;
	if (flags != 0) {
		(void)hx_resp_add(call, HAPAX_OP_LOOKUP, call->argv[1], true, finish_condition);
		call->session->is_last = true;
		return;
	}
	op = hx_resp_add(call, HAPAX_OP_EXPIRE, call->argv[1], false, hx_resp_finish_applied);
	if (op != NULL)
		set_expiry(op, &expiry);
}

void hx_resp_plan_persist(struct hx_resp_call *call)
{
	(void)hx_resp_add(call, HAPAX_OP_LOOKUP, call->argv[1], true, finish_condition);
	call->entry->flags = EXPIRE_XX;
	call->entry->value = HAPAX_TTL_FOREVER;
}

/* ---------------------------------------------------------------- GETEX */

static void finish_getex(struct hx_resp_answer *answer)
{
	if (answer->ops[0].outcome == HAPAX_OUTCOME_BUSY)
		hx_resp_put_busy(answer);
	else
		hx_resp_put_value(answer, &answer->ops[0]);
}

/* Redis checks the time only if there is a value to keep. */
static void finish_getex_refused(struct hx_resp_answer *answer)
{
	if (!hx_resp_exists(&answer->ops[0]))
		(void)hx_resp_put_null(answer->out, answer->protocol);
	else
		(void)hx_resp_put_error(
			answer->out,
			answer->entry->value != 0 ? "ERR value is not an integer or out of range"
						  : "ERR invalid expire time in 'getex' command");
}

static void plan_getex_time(struct hx_resp_call *call, const struct hx_resp_when *when)
{
	size_t before = call->text->size;
	struct hx_resp_expiry expiry;
	int64_t number;
	struct hapax_op *op;

	if (hx_resp_when_set(call, when, &expiry)) {
		op = hx_resp_add(call, HAPAX_OP_EXPIRE, call->argv[1], true, finish_getex);
		if (op != NULL)
			set_expiry(op, &expiry);
		return;
	}
	call->text->size = before;
	(void)hx_resp_add(call, HAPAX_OP_LOOKUP, call->argv[1], true, finish_getex_refused);
	call->entry->value = !hx_resp_parse_integer(when->text, &number);
}

void hx_resp_plan_getex(struct hx_resp_call *call)
{
	struct hx_resp_when when = {.unit = HX_RESP_WHEN_NONE};
	bool persists = false;
	struct hapax_op *op;

	for (size_t i = 2; i < call->argc; i++) {
		if (hx_resp_is_word(call->argv[i], "PERSIST") && when.unit == HX_RESP_WHEN_NONE) {
			persists = true;
		} else if (
			!persists && i + 1 < call->argc &&
			hx_resp_when_option(&when, call->argv[i], call->argv[i + 1])) {
			i++;
		} else {
			hx_resp_refuse_syntax(call);
			return;
		}
	}
	if (when.unit != HX_RESP_WHEN_NONE) {
		plan_getex_time(call, &when);
	} else if (persists) {
		op = hx_resp_add(call, HAPAX_OP_EXPIRE, call->argv[1], true, finish_getex);
		if (op != NULL)
			op->ttl_ms = HAPAX_TTL_FOREVER;
	} else {
		(void)hx_resp_add(call, HAPAX_OP_LOOKUP, call->argv[1], true, hx_resp_finish_get);
	}
}
