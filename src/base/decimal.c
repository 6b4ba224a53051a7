/* SPDX-License-Identifier: Apache-2.0 */
#include "base/decimal.h"

#include <string.h>

size_t hx_decimal_write(char out[HX_DECIMAL_SIZE], int64_t value)
{
	uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
	char digits[HX_DECIMAL_SIZE];
	size_t at = sizeof(digits);
	size_t size;

	digits[--at] = '\0';
	do {
		digits[--at] = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest > 0);
	if (value < 0)
		digits[--at] = '-';
	size = sizeof(digits) - at;
	memcpy(out, digits + at, size);
	return size - 1;
}
