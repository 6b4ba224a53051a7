/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_text.h - the bytes of HTTP: character classes, names in either case, lists.
 *
 * Threads: any.
 */
#ifndef HX_HTTP1_TEXT_H
#define HX_HTTP1_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <hapax/bytes.h>

enum hx_http1_class {
	HX_HTTP1_TOKEN = 1 << 0, /* tchar: methods, names, codings */

	/*
	 * Visible ASCII without " # < > and \. RFC 3986 has fewer, but browsers send { | } and ^
	 * unencoded, and all readers agree on them.
	 */
	HX_HTTP1_TARGET = 1 << 1,
	HX_HTTP1_VALUE = 1 << 2,   /* visible, blank, tab, and all from 0x80 on */
	HX_HTTP1_REGNAME = 1 << 3, /* of a host: unreserved, sub-delims and % */
	HX_HTTP1_PLAIN = 1 << 4,   /* of a name: letters, digits and - */
};

extern const unsigned char hx_http1_classes[256];

static inline bool hx_http1_is(unsigned char byte, unsigned classes)
{
	return (hx_http1_classes[byte] & classes) != 0;
}

static inline bool hx_http1_is_blank(unsigned char byte)
{
	return byte == ' ' || byte == '\t';
}

static inline bool hx_http1_is_digit(unsigned char byte)
{
	return byte >= '0' && byte <= '9';
}

/* The value of a hexadecimal digit, or -1. */
static inline int hx_http1_hex(unsigned char byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	if (byte >= 'a' && byte <= 'f')
		return byte - 'a' + 10;
	if (byte >= 'A' && byte <= 'F')
		return byte - 'A' + 10;
	return -1;
}

/* The first byte from at on that is not allowed in a value; never past end. */
static inline const unsigned char *hx_http1_skip_value(
	const unsigned char *at, const unsigned char *end)
{
#if defined(__SSE2__)
	while (end - at >= 16) {
		__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
		__m128i limit = _mm_set1_epi8(0x1f);
		__m128i low = _mm_cmpeq_epi8(_mm_min_epu8(bytes, limit), bytes);
		__m128i tabs = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\t'));
		__m128i deletes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f));
		int found = _mm_movemask_epi8(_mm_or_si128(_mm_andnot_si128(tabs, low), deletes));

		if (found != 0)
			return at + __builtin_ctz((unsigned)found);
		at += 16;
	}
#endif
	while (at < end && hx_http1_is(*at, HX_HTTP1_VALUE))
		at++;
	return at;
}

/* The same for texts of one size; not for callers. */
bool hx_http1_text_equal_size(const unsigned char *a, const unsigned char *b, size_t size);

/*
 * Are both equal except for the case of ASCII letters? Most differ in their size or in their first
 * byte.
 */
static inline bool hx_http1_text_equal(struct hapax_bytes a, struct hapax_bytes b)
{
	const unsigned char *left = a.data;
	const unsigned char *right = b.data;

	return a.size == b.size &&
		(a.size == 0 ||
		 ((left[0] | 0x20) == (right[0] | 0x20) &&
		  hx_http1_text_equal_size(left, right, a.size)));
}

/* At least one byte, all of them tchar. */
bool hx_http1_is_token(struct hapax_bytes text);

/*
 * Letters, digits and - only. CGI, WSGI and similar interfaces map all other characters to -, so
 * that X_User reaches an application as X-User.
 */
bool hx_http1_is_plain_name(struct hapax_bytes name);

/* Without blanks and tabs at both ends. */
struct hapax_bytes hx_http1_trim(struct hapax_bytes text);

/* Take the next element that is not empty off a list with commas. False: none is left. */
bool hx_http1_list_next(struct hapax_bytes *list, struct hapax_bytes *ret);

#endif
