/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_float.h - a number as Python's repr() of its double.
 *
 * Threads: any. The process' locale does not matter.
 */
#ifndef HX_JSON_FLOAT_H
#define HX_JSON_FLOAT_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/json/json_number.h"

enum { HX_JSON_FLOAT_TEXT_SIZE = 32 };

/*
 * Write repr(float(number)) to out. negative is given apart, because -0.0 keeps its
 * sign in Python. Returns the size.
 */
size_t hx_json_float_write(
	const struct hx_json_number *number, bool negative,
	unsigned char out[HX_JSON_FLOAT_TEXT_SIZE]);

/* Infinity or -Infinity, as Python prints it; it is not JSON. Returns the size. */
size_t hx_json_float_infinity(bool negative, unsigned char out[HX_JSON_FLOAT_TEXT_SIZE]);

#endif
