/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc32c.c - CRC-32C by tables, and the choice of implementation.
 *
 * Slicing by eight: tables[k][b] is what byte b does to the register when k more
 * bytes follow it, so eight bytes are looked up at once instead of one by one.
 */
#include "base/crc32c.h"

#include <endian.h>
#include <stdatomic.h>
#include <string.h>

#include "base/thread.h"

enum { SLICES = 8 };

/* The Castagnoli polynomial, lowest power in the highest bit. */
#define POLYNOMIAL UINT32_C(0x82f63b78)

static uint32_t tables[SLICES][256];
static struct hx_once tables_once = HX_ONCE_INIT;

static uint32_t register_after_zero_bits(uint32_t value, int bits)
{
	for (int i = 0; i < bits; i++)
		value = (value >> 1) ^ (value & 1 ? POLYNOMIAL : 0);
	return value;
}

static void fill_tables(void)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		for (int slice = 0; slice < SLICES; slice++)
			tables[slice][byte] = register_after_zero_bits(byte, 8 * (slice + 1));
	}
}

static uint32_t eight_bytes(uint32_t value, const unsigned char *bytes)
{
	uint64_t word;
	uint32_t result = 0;

	memcpy(&word, bytes, sizeof(word));
	word = le64toh(word) ^ value;
	for (int i = 0; i < SLICES; i++)
		result ^= tables[SLICES - 1 - i][(word >> (8 * i)) & 0xff];
	return result;
}

uint32_t hx_crc32c_table(uint32_t crc, const void *data, size_t size)
{
	const unsigned char *bytes = data;
	uint32_t value = ~crc;

	hx_once_run(&tables_once, fill_tables);
	for (; size >= 8; size -= 8, bytes += 8)
		value = eight_bytes(value, bytes);
	for (; size > 0; size--, bytes++)
		value = (value >> 8) ^ tables[0][(value ^ *bytes) & 0xff];
	return ~value;
}

typedef uint32_t crc32c_fn(uint32_t crc, const void *data, size_t size);

static crc32c_fn choose;
static crc32c_fn *_Atomic chosen = choose;

/* Used until the first call; threads that race here choose the same. */
static uint32_t choose(uint32_t crc, const void *data, size_t size)
{
	crc32c_fn *best = hx_crc32c_x86_usable() ? hx_crc32c_x86 : hx_crc32c_table;

	atomic_store_explicit(&chosen, best, memory_order_relaxed);
	return best(crc, data, size);
}

uint32_t hx_crc32c(uint32_t crc, const void *data, size_t size)
{
	return atomic_load_explicit(&chosen, memory_order_relaxed)(crc, data, size);
}
