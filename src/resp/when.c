/* SPDX-License-Identifier: Apache-2.0 */
#include "resp/when.h"

#include <assert.h>

#include "base/checked.h"
#include "base/limits.h"

bool hx_resp_when_option(
	struct hx_resp_when *when, struct hapax_bytes word, struct hapax_bytes value)
{
	enum hx_resp_when_unit unit = HX_RESP_WHEN_NONE;

	if (hx_resp_is_word(word, "EX"))
		unit = HX_RESP_WHEN_SECONDS;
	else if (hx_resp_is_word(word, "PX"))
		unit = HX_RESP_WHEN_MS;
	else if (hx_resp_is_word(word, "EXAT"))
		unit = HX_RESP_WHEN_AT_SECONDS;
	else if (hx_resp_is_word(word, "PXAT"))
		unit = HX_RESP_WHEN_AT_MS;
	if (unit == HX_RESP_WHEN_NONE || (when->unit != HX_RESP_WHEN_NONE && when->unit != unit))
		return false;
	when->unit = unit;
	when->text = value;
	return true;
}

static bool when_refuse(struct hx_resp_call *call)
{
	return hx_resp_refuse_format(
		call, "ERR invalid expire time in '%s' command", call->command->name);
}

/* Converts the number to an expiry. */
static bool to_expiry(
	struct hx_resp_call *call, const struct hx_resp_when *when, int64_t value,
	struct hx_resp_expiry *ret_expiry)
{
	int64_t at_ms = 0;

	if ((when->unit == HX_RESP_WHEN_SECONDS || when->unit == HX_RESP_WHEN_AT_SECONDS) &&
	    hx_mul_i64(value, 1000, &value))
		return when_refuse(call);
	if (hx_resp_when_is_absolute(when->unit)) {
		at_ms = value;
		/* Only a time far in the past can overflow. */
		if (hx_sub_i64(value, hx_resp_service_now_ms(call->service), &value))
			value = -1;
	}
	/* Redis allows later times, up to the range of its clock; no client needs them. */
	if (value > HX_TTL_MS_MAX)
		return when_refuse(call);
	*ret_expiry = (struct hx_resp_expiry){.ttl_ms = value, .at_ms = at_ms};
	return true;
}

void hx_resp_expiry_put(const struct hx_resp_expiry *expiry, struct hapax_op *op)
{
	assert(expiry->ttl_ms > 0);
	op->ttl_ms = expiry->ttl_ms;
	if (expiry->at_ms != 0) {
		op->ttl_ms = expiry->at_ms;
		op->flags |= HAPAX_OP_TTL_IS_TIME;
	}
}

bool hx_resp_when_set(
	struct hx_resp_call *call, const struct hx_resp_when *when,
	struct hx_resp_expiry *ret_expiry)
{
	int64_t value;

	if (when->unit == HX_RESP_WHEN_NONE) {
		*ret_expiry = (struct hx_resp_expiry){.ttl_ms = HAPAX_TTL_FOREVER};
		return true;
	}
	if (!hx_resp_integer_arg(call, when->text, &value))
		return false;
	if (value <= 0)
		return when_refuse(call);
	return to_expiry(call, when, value, ret_expiry);
}

bool hx_resp_when_expire(
	struct hx_resp_call *call, const struct hx_resp_when *when,
	struct hx_resp_expiry *ret_expiry)
{
	int64_t value;

	return hx_resp_integer_arg(call, when->text, &value) &&
		to_expiry(call, when, value, ret_expiry);
}

bool hx_resp_when_ttl(
	struct hx_resp_call *call, const struct hx_resp_when *when, int64_t *ret_ttl_ms)
{
	struct hx_resp_expiry expiry = {0};

	assert(!hx_resp_when_is_absolute(when->unit));
	if (!hx_resp_when_set(call, when, &expiry))
		return false;
	*ret_ttl_ms = expiry.ttl_ms;
	return true;
}
