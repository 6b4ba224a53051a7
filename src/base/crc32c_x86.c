/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc32c_x86.c - CRC-32C by the instruction of SSE 4.2.
 *
 * The instruction takes eight bytes a cycle but answers after three, so one chain of them wastes
 * two thirds. Three neighboring blocks are therefore done side by side, the later two from a
 * register of zero, and joined afterwards: a register value a followed by n zero bytes becomes a *
 * x^(8n) modulo the polynomial, and crc(a, block) = crc(a, zeros) ^ crc(0, block).
 *
 * The product is one carry-less multiplication of 32 by 32 bits. In the reversed
 * bit order its 63 bits stand one place low in 64, and reducing them with the crc
 * instruction multiplies by x^32 besides; the factor for n bytes is therefore
 * x^(8n - 33) modulo the polynomial. The unit test compares with the definition.
 */
#include "base/crc32c.h"

#include <assert.h>

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

/* Three long blocks nearly fill a page, which is what frames consist of. */
enum { LONG_BYTES = 1360, SHORT_BYTES = 128 };

/* Factors that move a register over one and over two blocks. */
struct shift {
	uint32_t one, two;
};

static const struct shift long_shift = {0x3f70cc6f, 0x5aa1f3cf};
static const struct shift short_shift = {0x0d3b6092, 0xb9e02b86};

#define TARGET __attribute__((target("sse4.2,pclmul")))

TARGET static inline uint64_t load(const unsigned char *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

TARGET static inline uint64_t multiply(uint64_t value, uint32_t factor)
{
	__m128i product = _mm_clmulepi64_si128(
		_mm_cvtsi64_si128((long long)value), _mm_cvtsi64_si128((long long)factor), 0);

	return (uint64_t)_mm_cvtsi128_si64(product);
}

/* Three neighboring blocks of block_bytes each, which is a multiple of 8. */
TARGET static inline uint64_t three_blocks(
	uint64_t value, const unsigned char *bytes, size_t block_bytes, struct shift shift)
{
	uint64_t first = value, second = 0, third = 0;

	for (size_t i = 0; i < block_bytes; i += 8) {
		first = _mm_crc32_u64(first, load(bytes + i));
		second = _mm_crc32_u64(second, load(bytes + block_bytes + i));
		third = _mm_crc32_u64(third, load(bytes + 2 * block_bytes + i));
	}
	return third ^ _mm_crc32_u64(0, multiply(first, shift.two) ^ multiply(second, shift.one));
}

TARGET uint32_t hx_crc32c_x86(uint32_t crc, const void *data, size_t size)
{
	const unsigned char *bytes = data;
	uint64_t value = ~crc;
	uint32_t last;

	for (; size >= 3 * LONG_BYTES; size -= 3 * LONG_BYTES, bytes += 3 * LONG_BYTES)
		value = three_blocks(value, bytes, LONG_BYTES, long_shift);
	for (; size >= 3 * SHORT_BYTES; size -= 3 * SHORT_BYTES, bytes += 3 * SHORT_BYTES)
		value = three_blocks(value, bytes, SHORT_BYTES, short_shift);
	for (; size >= 8; size -= 8, bytes += 8)
		value = _mm_crc32_u64(value, load(bytes));
	last = (uint32_t)value;
	for (; size > 0; size--, bytes++)
		last = _mm_crc32_u8(last, *bytes);
	return ~last;
}

bool hx_crc32c_x86_usable(void)
{
	return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

#else

uint32_t hx_crc32c_x86(uint32_t crc, const void *data, size_t size)
{
	(void)data;
	(void)size;
	assert(!"hx_crc32c_x86() needs hx_crc32c_x86_usable()");
	return crc;
}

bool hx_crc32c_x86_usable(void)
{
	return false;
}

#endif
