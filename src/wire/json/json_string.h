/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_string.h - the text between the quotes of a JSON string.
 *
 * A raw string is the text between the quotes as it came, escapes included, after
 * hx_json_string_scan() has found it valid. Its value is the UTF-8 that it stands
 * for. Order by the bytes of UTF-8 is order by code point.
 *
 * Threads: any.
 */
#ifndef HX_JSON_STRING_H
#define HX_JSON_STRING_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <hapax/bytes.h>

/* The first byte is the lowest, on every machine. */
static inline uint64_t hx_json_load_u64(const unsigned char *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return le64toh(word);
}

/* Two words, so that it travels in registers. */
struct hx_json_string {
	const unsigned char *data;
	uint32_t size;
	bool escaped; /* has a backslash */
};

/* Does a byte in a string mean itself, with nothing to check? */
static inline bool hx_json_is_plain(unsigned char byte)
{
	return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

#if defined(__SSE2__)

/*
 * The first byte from at on that is not plain; never past end. Nearly every byte of
 * nearly every text is plain, so many are looked at together.
 */
static inline const unsigned char *hx_json_skip_plain(
	const unsigned char *at, const unsigned char *end)
{
	while (end - at >= 16) {
		__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
		__m128i quotes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
		__m128i backslashes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
		/* Signed: controls and everything from 0x80 on are less than a blank. */
		__m128i low = _mm_cmplt_epi8(bytes, _mm_set1_epi8(' '));
		int found = _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quotes, backslashes), low));

		if (found != 0)
			return at + __builtin_ctz((unsigned)found);
		at += 16;
	}
	while (at < end && hx_json_is_plain(*at))
		at++;
	return at;
}

#else

static inline const unsigned char *hx_json_skip_plain(
	const unsigned char *at, const unsigned char *end)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);

	while (end - at >= 8) {
		uint64_t word = hx_json_load_u64(at);
		uint64_t quote = word ^ (ones * '"');
		uint64_t backslash = word ^ (ones * '\\');
		uint64_t found;

		/*
		 * The high bit of each byte that is not plain. A borrow may set it in bytes
		 * above such a byte too, but never below the first.
		 */
		found = ((quote - ones) | (backslash - ones) | (word - ones * 0x20) | word) &
			(ones * 0x80);
		if (found != 0)
			return at + (__builtin_ctzll(found) >> 3);
		at += 8;
	}
	while (at < end && hx_json_is_plain(*at))
		at++;
	return at;
}

#endif

/*
 * Find the end of a string whose first byte, after the quote, is at. Returns the
 * closing quote. NULL: the string is not valid; *ret_at is the offending byte and
 * *ret_reason says why.
 */
const unsigned char *hx_json_string_scan(
	const unsigned char *at, const unsigned char *end, bool *ret_escaped,
	const unsigned char **ret_at, const char **ret_reason);

/*
 * Read one character of a raw string at *at, which is not at its end: the bytes of
 * its UTF-8 go into out. Returns how many there are, and moves *at.
 */
size_t hx_json_string_step(
	const unsigned char **at, const unsigned char *end, unsigned char out[4]);

/* The code point at *at, which is not at the end of the raw string; moves *at. */
uint32_t hx_json_string_code_point(const unsigned char **at, const unsigned char *end);

/*
 * Write the value to out, which has room for string.size bytes: a value is never
 * longer than its raw string. Returns its size.
 */
size_t hx_json_string_value(struct hx_json_string string, unsigned char *out);

/* Below, equal or above zero, by the code points of the values. */
int hx_json_string_compare(struct hx_json_string a, struct hx_json_string b);

/* Is the value equal to these bytes? */
bool hx_json_string_equal(struct hx_json_string string, struct hapax_bytes value);

/* The bytes of a value in one piece of it. */
enum { HX_JSON_PIECE_SIZE = 7 };

/*
 * Seven bytes of the value, most significant first and zeros after its end; the lowest byte says
 * how many there are. So values are ordered as their first pieces that differ, and are equal
 * when they are equal up to a piece that is not full. *place is 0 for the first piece, is moved to
 * the next one, and has four times as many at most as the raw string has bytes.
 */
uint64_t hx_json_string_piece_slow(struct hx_json_string string, uint32_t *place);

static inline uint64_t hx_json_string_piece(struct hx_json_string string, uint32_t *place)
{
	uint32_t at = *place >> 2;

	if (string.escaped || string.size - at <= HX_JSON_PIECE_SIZE)
		return hx_json_string_piece_slow(string, place);
	*place += HX_JSON_PIECE_SIZE << 2;
	return (__builtin_bswap64(hx_json_load_u64(string.data + at)) & ~UINT64_C(0xff)) |
		HX_JSON_PIECE_SIZE;
}

static inline bool hx_json_piece_is_full(uint64_t piece)
{
	return (piece & 0xff) == HX_JSON_PIECE_SIZE;
}

/* As hx_json_string_prefix(), byte by byte; for escaped strings and the text's end. */
static inline uint64_t hx_json_string_prefix_slow(struct hx_json_string string)
{
	uint32_t place = 0;

	return hx_json_string_piece(string, &place);
}

/*
 * The first piece of the value. end is where the whole text ends: bytes up to there may be
 * read.
 */
static inline uint64_t hx_json_string_prefix(struct hx_json_string string, const unsigned char *end)
{
	uint64_t prefix;

	if (string.escaped || end - string.data < 8)
		return hx_json_string_prefix_slow(string);
	prefix = __builtin_bswap64(hx_json_load_u64(string.data));
	if (string.size >= HX_JSON_PIECE_SIZE)
		return (prefix & ~UINT64_C(0xff)) | HX_JSON_PIECE_SIZE;
	/* What follows the value is cut off; a shift by 64 would not be defined. */
	return string.size == 0 ? 0 : (prefix & UINT64_MAX << (64 - 8 * string.size)) | string.size;
}

#endif
