/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uuid7_x86.c - UUID text to bytes with the byte shuffle of SSSE3.
 *
 * Three overlapping loads cover the 36 bytes and nothing beyond. Shuffles gather
 * the 32 digits into two registers without the hyphens, a multiply-add joins pairs
 * of digits, and a pack makes 16 bytes of them.
 */
#include "base/uuid7.h"

#include <assert.h>

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("ssse3")))

/* A shuffle index with the high bit set gives zero. */
enum { NO = -1 };

TARGET static inline __m128i load(const char *text)
{
	return _mm_loadu_si128((const void *)text);
}

/* Digits 0 to 15: the text without its hyphens at 8 and 13. */
TARGET static inline __m128i first_digits(__m128i from_0, __m128i from_16)
{
	const __m128i places_0 =
		_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 14, 15, NO, NO);
	const __m128i places_16 =
		_mm_setr_epi8(NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, 0, 1);

	return _mm_or_si128(
		_mm_shuffle_epi8(from_0, places_0), _mm_shuffle_epi8(from_16, places_16));
}

/* Digits 16 to 31: the text from 19 on, without its hyphen at 23. */
TARGET static inline __m128i last_digits(__m128i from_16, __m128i from_20)
{
	const __m128i places_16 =
		_mm_setr_epi8(3, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO);
	const __m128i places_20 =
		_mm_setr_epi8(NO, 0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);

	return _mm_or_si128(
		_mm_shuffle_epi8(from_16, places_16), _mm_shuffle_epi8(from_20, places_20));
}

/* Whether the bytes whose bits are set in places are hyphens. */
TARGET static inline bool has_hyphens(__m128i text, int places)
{
	int found = _mm_movemask_epi8(_mm_cmpeq_epi8(text, _mm_set1_epi8('-')));

	return (found & places) == places;
}

/* All ones in each byte that is at least low and at most low + width. */
TARGET static inline __m128i in_range(__m128i bytes, char low, char width)
{
	__m128i above = _mm_sub_epi8(bytes, _mm_set1_epi8(low));

	return _mm_cmpeq_epi8(_mm_min_epu8(above, _mm_set1_epi8(width)), above);
}

/*
 * Eight bytes, in 16 bits each, of 16 digits; *valid loses the places that are not digits. The low
 * four bits of '0' to '9' are their value, those of 'a' to 'f' lack nine; then the first of two
 * digits counts 16 times.
 */
TARGET static inline __m128i join_digits(__m128i digits, __m128i *valid)
{
	__m128i letters = in_range(digits, 'a', 5);
	__m128i values = _mm_add_epi8(
		_mm_and_si128(digits, _mm_set1_epi8(15)), _mm_and_si128(letters, _mm_set1_epi8(9)));

	*valid = _mm_and_si128(*valid, _mm_or_si128(letters, in_range(digits, '0', 9)));
	return _mm_maddubs_epi16(values, _mm_set1_epi16(0x0110));
}

TARGET bool hx_uuid7_pack_x86(const char text[HX_UUID_TEXT_SIZE], unsigned char out[HX_UUID_SIZE])
{
	__m128i from_0 = load(text);
	__m128i from_16 = load(text + 16);
	__m128i valid = _mm_set1_epi8(-1);
	__m128i first = join_digits(first_digits(from_0, from_16), &valid);
	__m128i last = join_digits(last_digits(from_16, load(text + 20)), &valid);

	if (_mm_movemask_epi8(valid) != 0xffff || !has_hyphens(from_0, 1 << 8 | 1 << 13) ||
	    !has_hyphens(from_16, 1 << (18 - 16) | 1 << (23 - 16)))
		return false;
	_mm_storeu_si128((void *)out, _mm_packus_epi16(first, last));
	return true;
}

bool hx_uuid7_pack_x86_usable(void)
{
	return __builtin_cpu_supports("ssse3");
}

#else

bool hx_uuid7_pack_x86(const char text[HX_UUID_TEXT_SIZE], unsigned char out[HX_UUID_SIZE])
{
	(void)text;
	(void)out;
	assert(!"hx_uuid_pack_x86() needs hx_uuid_pack_x86_usable()");
	return false;
}

bool hx_uuid7_pack_x86_usable(void)
{
	return false;
}

#endif
