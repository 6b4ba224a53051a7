/* SPDX-License-Identifier: Apache-2.0 */
/*
 * siphash.c - SipHash-1-3 of any number of bytes.
 */
#include "base/siphash.h"

/*
 * What is left after the last whole word, 0 to 7 bytes, and the size on top. The
 * bytes before it are there to be read again: one load and a shift beat a copy of
 * unknown length.
 */
static uint64_t last_word(const unsigned char *bytes, size_t size)
{
	size_t rest = size % 8;
	uint64_t word = 0;

	if (size < 8) {
		for (size_t i = 0; i < rest; i++)
			word |= (uint64_t)bytes[i] << (8 * i);
	} else if (rest > 0) {
		word = hx_siphash_load(bytes + (size - 8)) >> (8 * (8 - rest));
	}
	return word | (uint64_t)size << 56;
}

uint64_t hx_siphash13(const uint64_t key[2], const void *data, size_t size)
{
	struct hx_siphash_state s = hx_siphash_begin(key);
	const unsigned char *bytes = data;

	for (size_t i = 0; i < size / 8; i++)
		hx_siphash_word(&s, hx_siphash_load(bytes + 8 * i));
	hx_siphash_word(&s, last_word(bytes, size));
	return hx_siphash_end(&s);
}
