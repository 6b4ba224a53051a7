/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8.h - check text from outside: is it UTF-8, and does it contain control characters?
 *
 * Strict, as in RFC 3629: shortest forms only, no surrogates, nothing above U+10FFFF.
 *
 * Threads: any.
 */
#ifndef HX_UTF8_H
#define HX_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <hapax/bytes.h>

/*
 * Whether the eight bytes at at are all from ' ' to '~'. The lowest byte that is not shows in its
 * highest bit: itself, or when 1 is added, or when ' ' is taken off; those below it carry nothing.
 */
static inline bool hx_ascii_is_printable8(const unsigned char *at)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return ((word | (word + ones) | (word - ones * ' ')) & (ones * 0x80)) == 0;
}

/* Whether one of the eight bytes at at is byte. */
static inline bool hx_ascii_has8(const unsigned char *at, unsigned char byte)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	word ^= ones * byte;
	return ((word - ones) & ~word & (ones * 0x80)) != 0;
}

/* The size of the UTF-8 character at the front of text, or 0 if it is invalid. */
size_t hx_utf8_size(struct hapax_bytes text, uint32_t *ret_code);

/* C0, DEL and C1. */
bool hx_utf8_is_control(uint32_t code);

/*
 * Characters that are invisible, or change the order or the lines of the text around them:
 * Unicode's Default_Ignorable_Code_Point and Bidi_Control, U+2028, U+2029 and U+FFF9 to U+FFFB. Two
 * texts that differ only in these look alike.
 */
bool hx_utf8_is_hidden(uint32_t code);

bool hx_utf8_is_valid(struct hapax_bytes text);

/* The first characters of valid text that are at most size_max bytes together. */
struct hapax_bytes hx_utf8_cut(struct hapax_bytes text, size_t size_max);

enum { HX_UTF8_FAULT_SIZE = 96 };

/*
 * Is text unsuitable for people to type and read? It must be 1 to size_max bytes without controls.
 * why then continues a sentence about it: "is empty", "is not UTF-8 at offset 2 (byte 0xff)".
 */
bool hx_utf8_fault(struct hapax_bytes text, size_t size_max, char why[HX_UTF8_FAULT_SIZE]);

#endif
