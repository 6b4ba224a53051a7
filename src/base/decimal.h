/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decimal.h - whole numbers as decimal digits, where snprintf() would be the most of the work.
 *
 * Threads: any.
 */
#ifndef HX_DECIMAL_H
#define HX_DECIMAL_H

#include <stddef.h>
#include <stdint.h>

/* The sign and 19 digits, and the NUL. */
enum { HX_DECIMAL_SIZE = 21 };

/* Writes it, with a NUL; returns the size without that. */
size_t hx_decimal_write(char out[HX_DECIMAL_SIZE], int64_t value);

#endif
