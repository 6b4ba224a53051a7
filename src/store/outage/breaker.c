/* SPDX-License-Identifier: Apache-2.0 */
#include "store/outage/breaker.h"

#include <assert.h>

/* Between half of it and all of it. */
static int64_t with_jitter(int64_t ms, uint64_t random)
{
	return ms - (int64_t)(random % ((uint64_t)ms / 2 + 1));
}

bool hx_breaker_fail(struct hx_breaker *breaker, int64_t now_ms, uint64_t random)
{
	bool was_open = breaker->is_open;

	assert(breaker->failures_max > 0 && breaker->backoff_ms_min > 0);
	if (breaker->failures < breaker->failures_max)
		breaker->failures++;
	if (breaker->failures < breaker->failures_max && !was_open)
		return false;
	/* Those that were under way when it opened do not make the wait longer. */
	if (was_open && now_ms < breaker->retry_ms)
		return false;
	breaker->is_open = true;
	breaker->backoff_ms = was_open ? 2 * breaker->backoff_ms : breaker->backoff_ms_min;
	if (breaker->backoff_ms > breaker->backoff_ms_max)
		breaker->backoff_ms = breaker->backoff_ms_max;
	breaker->retry_ms = now_ms + with_jitter(breaker->backoff_ms, random);
	return !was_open;
}

void hx_breaker_succeed(struct hx_breaker *breaker)
{
	if (!breaker->is_open)
		breaker->failures = 0;
}

void hx_breaker_close(struct hx_breaker *breaker)
{
	breaker->is_open = false;
	breaker->failures = 0;
}

bool hx_breaker_is_due(const struct hx_breaker *breaker, int64_t now_ms)
{
	return breaker->is_open && now_ms >= breaker->retry_ms;
}
