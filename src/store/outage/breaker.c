/* SPDX-License-Identifier: Apache-2.0 */
#include "store/outage/breaker.h"

#include <assert.h>

#include "base/backoff.h"

bool hx_breaker_fail(struct hx_breaker *breaker, int64_t now_ms, uint64_t random)
{
	bool was_open = breaker->is_open;
	int64_t wait_ms;

	assert(breaker->failures_max > 0);
	if (breaker->failures < breaker->failures_max)
		breaker->failures++;
	if (breaker->failures < breaker->failures_max && !was_open)
		return false;
	/* Operations in progress when it opened do not extend the wait. */
	if (was_open && now_ms < breaker->retry_ms)
		return false;
	breaker->is_open = true;
	breaker->retries = was_open ? breaker->retries + 1 : 0;
	wait_ms = hx_backoff(
		breaker->backoff_ms_min, breaker->backoff_ms_max, breaker->retries, random);
	breaker->retry_ms = now_ms + wait_ms;
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
