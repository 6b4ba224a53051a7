/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_get.c - commands that read: values, existence, time to live.
 */
#include "base/bytes.h"
#include "resp/resp_command.h"
#include "resp/commands.h"
#include "resp/when.h"

static void count_lookup(struct hx_resp_answer *answer, bool is_hit)
{
	struct hx_resp_service *service = answer->session->service;

	atomic_fetch_add_explicit(
		is_hit ? &service->hits : &service->misses, 1, memory_order_relaxed);
}

static bool finish_get(struct hx_resp_answer *answer)
{
	if (hx_resp_put_failure(answer, &answer->ops[0]))
		return true;
	count_lookup(answer, hx_resp_has_value(&answer->ops[0]));
	hx_resp_put_value(answer, &answer->ops[0]);
	return true;
}

void hx_resp_plan_get(struct hx_resp_call *call)
{
	(void)hx_resp_add(call, HAPAX_OP_LOOKUP, call->argv[1], true, finish_get);
}

static bool finish_mget(struct hx_resp_answer *answer)
{
	for (size_t i = 0; i < answer->count; i++) {
		if (hx_resp_put_failure(answer, &answer->ops[i]))
			return true;
	}
	(void)hx_resp_put_array(answer->out, answer->count);
	for (size_t i = 0; i < answer->count; i++) {
		count_lookup(answer, hx_resp_has_value(&answer->ops[i]));
		hx_resp_put_value(answer, &answer->ops[i]);
	}
	return true;
}

static void plan_lookups(struct hx_resp_call *call, hx_resp_finish_fn *finish)
{
	for (size_t i = 1; i < call->argc; i++) {
		if (hx_resp_add(call, HAPAX_OP_LOOKUP, call->argv[i], true, finish) == NULL)
			return;
	}
}

void hx_resp_plan_mget(struct hx_resp_call *call)
{
	plan_lookups(call, finish_mget);
}

static bool finish_strlen(struct hx_resp_answer *answer)
{
	const struct hapax_op *op = &answer->ops[0];

	if (hx_resp_put_failure(answer, op))
		return true;
	(void)hx_resp_put_integer(
		answer->out, hx_resp_has_value(op) ? (int64_t)op->record->result.body.size : 0);
	return true;
}

void hx_resp_plan_strlen(struct hx_resp_call *call)
{
	(void)hx_resp_add(call, HAPAX_OP_LOOKUP, call->argv[1], true, finish_strlen);
}

static bool finish_exists(struct hx_resp_answer *answer)
{
	int64_t count = 0;

	for (size_t i = 0; i < answer->count; i++) {
		if (hx_resp_put_failure(answer, &answer->ops[i]))
			return true;
		count += hx_resp_exists(&answer->ops[i]);
	}
	(void)hx_resp_put_integer(answer->out, count);
	return true;
}

void hx_resp_plan_exists(struct hx_resp_call *call)
{
	plan_lookups(call, finish_exists);
}

static bool finish_type(struct hx_resp_answer *answer)
{
	if (!hx_resp_put_failure(answer, &answer->ops[0]))
		(void)hx_resp_put_simple(
			answer->out, hx_resp_exists(&answer->ops[0]) ? "string" : "none");
	return true;
}

void hx_resp_plan_type(struct hx_resp_call *call)
{
	(void)hx_resp_add(call, HAPAX_OP_LOOKUP, call->argv[1], true, finish_type);
}

/* ---------------------------------------------------------------- time to live */

enum ttl_flag {
	TTL_IN_MS = 1 << 0,
	TTL_ABSOLUTE = 1 << 1,
};

/* -2: there is no key. -1: the key never expires. */
static bool finish_ttl(struct hx_resp_answer *answer)
{
	const struct hapax_op *op = &answer->ops[0];
	unsigned flags = answer->entry->flags;
	int64_t value;

	if (hx_resp_put_failure(answer, op))
		return true;
	if (!hx_resp_exists(op)) {
		value = -2;
	} else if (op->expires_ms == HAPAX_TIME_NEVER) {
		value = -1;
	} else {
		value = op->expires_ms;
		if (!(flags & TTL_ABSOLUTE)) {
			value -= hx_resp_service_now_ms(answer->session->service);
			/* The store's clock is known only to a few milliseconds. */
			if (value > op->record->ttl_ms)
				value = op->record->ttl_ms;
			if (value < 0)
				value = 0;
		}
		if (!(flags & TTL_IN_MS))
			value = (value + 500) / 1000;
	}
	(void)hx_resp_put_integer(answer->out, value);
	return true;
}

static void plan_ttl(struct hx_resp_call *call, unsigned flags)
{
	(void)hx_resp_add(call, HAPAX_OP_LOOKUP, call->argv[1], true, finish_ttl);
	call->entry->flags = flags;
}

void hx_resp_plan_ttl(struct hx_resp_call *call)
{
	plan_ttl(call, 0);
}

void hx_resp_plan_pttl(struct hx_resp_call *call)
{
	plan_ttl(call, TTL_IN_MS);
}

void hx_resp_plan_expiretime(struct hx_resp_call *call)
{
	plan_ttl(call, TTL_ABSOLUTE);
}

void hx_resp_plan_pexpiretime(struct hx_resp_call *call)
{
	plan_ttl(call, TTL_ABSOLUTE | TTL_IN_MS);
}
