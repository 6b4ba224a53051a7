/* SPDX-License-Identifier: Apache-2.0 */
#include "base/backoff.h"

#include <assert.h>

int64_t hx_backoff(int64_t first, int64_t last, uint64_t failures, uint64_t random)
{
	int64_t span = last, wait;

	assert(first > 0 && last > 0);
	/*
	 * Shifting last right instead of first left cannot overflow.
	 */
	if (failures < 63 && first <= last >> failures)
		span = first << failures;
	wait = span - (int64_t)(random % ((uint64_t)span / 2 + 1));
	assert(wait > 0 && wait <= span && span <= last && span - wait <= span / 2);
	return wait;
}
