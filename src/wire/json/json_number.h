/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_number.h - the value of a JSON number, without loss, and one text for it.
 *
 * A value is sign, digits and exponent: -12.50e3 is minus 125 times ten to the
 * second. Digits have no zeros in front or behind, so each value has one such form;
 * zero has no sign. Nothing is rounded: numbers of any length keep their value.
 *
 * Threads: any.
 */
#ifndef HX_JSON_NUMBER_H
#define HX_JSON_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>

struct hx_json_number {
	bool negative;
	const unsigned char *digits; /* borrowed from the text; a '.' may stand among them */
	size_t span;                 /* bytes at digits, with that '.' */
	size_t digit_count;          /* without it; 0: the value is zero */
	int64_t exponent;            /* of the last digit */
};

enum {
	/* How much longer than the number its text can be: zeros, point, exponent. */
	HX_JSON_NUMBER_TEXT_EXTRA = 48,

	/* Digits of the largest integer that is written out: 10^20, and any 64 bits. */
	HX_JSON_PLAIN_DIGITS_MAX = 21,
};

/*
 * Read a number that the tokenizer has found valid. False: its exponent is too large to be
 * meaningful (10^17, either way); *ret is then zero.
 */
bool hx_json_number_read(struct hapax_bytes text, struct hx_json_number *ret);

/*
 * Write the one text of a value: 1 for 1.0 and 10e-1, 1000 for 1e3, 12.5 for 12.50,
 * 1e400 for itself. Plain where people write it so, with an exponent where the zeros
 * would count more than the digits. The text is JSON, has room in
 * span + HX_JSON_NUMBER_TEXT_EXTRA bytes, and reads back to the same value.
 * Returns its size.
 */
size_t hx_json_number_write(const struct hx_json_number *number, unsigned char *out);

#endif
