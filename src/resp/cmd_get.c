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

void hx_resp_plan_lookup(struct hx_resp_call *call)
{
	call->entry->flags = call->command->variant;
	for (size_t i = 1; i < call->argc; i++) {
		if (hx_resp_add(
			    call, HAPAX_OP_LOOKUP, call->argv[i], true, call->command->finish) ==
		    NULL)
			return;
	}
}

void hx_resp_finish_get(struct hx_resp_answer *answer)
{
	count_lookup(answer, hx_resp_has_value(&answer->ops[0]));
	hx_resp_put_value(answer, &answer->ops[0]);
}

void hx_resp_finish_mget(struct hx_resp_answer *answer)
{
	(void)hx_resp_put_array(answer->out, answer->count);
	for (size_t i = 0; i < answer->count; i++) {
		count_lookup(answer, hx_resp_has_value(&answer->ops[i]));
		hx_resp_put_value(answer, &answer->ops[i]);
	}
}

void hx_resp_finish_strlen(struct hx_resp_answer *answer)
{
	const struct hapax_op *op = &answer->ops[0];

	(void)hx_resp_put_integer(
		answer->out, hx_resp_has_value(op) ? (int64_t)op->record->result.body.size : 0);
}

void hx_resp_finish_exists(struct hx_resp_answer *answer)
{
	int64_t count = 0;

	for (size_t i = 0; i < answer->count; i++)
		count += hx_resp_exists(&answer->ops[i]);
	(void)hx_resp_put_integer(answer->out, count);
}

void hx_resp_finish_type(struct hx_resp_answer *answer)
{
	(void)hx_resp_put_simple(answer->out, hx_resp_exists(&answer->ops[0]) ? "string" : "none");
}

/* -2: there is no key. -1: the key never expires. */
void hx_resp_finish_ttl(struct hx_resp_answer *answer)
{
	const struct hapax_op *op = &answer->ops[0];
	enum hx_resp_when_unit unit = (enum hx_resp_when_unit)answer->entry->flags;
	int64_t value;

	if (!hx_resp_exists(op)) {
		value = -2;
	} else if (op->expires_ms == HAPAX_TIME_NEVER) {
		value = -1;
	} else {
		value = op->expires_ms;
		if (!hx_resp_when_is_absolute(unit)) {
			value -= hx_resp_service_now_ms(answer->session->service);
			/* The store's clock is known only to a few milliseconds. */
			if (value > op->record->ttl_ms)
				value = op->record->ttl_ms;
			if (value < 0)
				value = 0;
		}
		if (!hx_resp_when_is_ms(unit))
			value = (value + 500) / 1000;
	}
	(void)hx_resp_put_integer(answer->out, value);
}
