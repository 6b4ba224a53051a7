/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decimal.h - whole numbers as decimal digits: written where snprintf() would be the most of the
 * work, and read from settings and paths.
 *
 * Threads: any.
 */
#ifndef HX_DECIMAL_H
#define HX_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The sign and 19 digits, and the NUL. */
enum { HX_DECIMAL_SIZE = 21 };

/* Writes it, with a NUL; returns the size without that. */
size_t hx_decimal_write(char out[HX_DECIMAL_SIZE], int64_t value);

/*
 * Reads digits without a zero in front, which could mean octal. False: something else, or a number
 * above max.
 */
bool hx_decimal_read(const char *text, size_t size, uint32_t max, uint32_t *ret);

#endif
