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

bool hx_decimal_read(const char *text, size_t size, uint32_t max, uint32_t *ret)
{
	uint64_t value = 0;

	if (size == 0 || (size > 1 && text[0] == '0'))
		return false;
	for (size_t i = 0; i < size; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		value = value * 10 + (uint64_t)(text[i] - '0');
		if (value > max)
			return false;
	}
	*ret = (uint32_t)value;
	return true;
}
