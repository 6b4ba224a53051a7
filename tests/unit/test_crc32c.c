/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crc32c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/random.h"

typedef uint32_t crc_fn(uint32_t crc, const void *data, size_t size);

/* The definition: one bit at a time, nothing to get wrong. */
static uint32_t crc_by_definition(uint32_t crc, const unsigned char *data, size_t size)
{
	crc = ~crc;
	for (size_t i = 0; i < size; i++) {
		crc ^= data[i];
		for (int bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ (crc & 1 ? UINT32_C(0x82f63b78) : 0);
	}
	return ~crc;
}

/* Those that this machine can run; returns how many. */
static size_t implementations(crc_fn *ret[3])
{
	ret[0] = hx_crc32c;
	ret[1] = hx_crc32c_table;
	ret[2] = hx_crc32c_x86;
	return hx_crc32c_x86_usable() ? 3 : 2;
}

/* RFC 3720 B.4, and the check value of the catalogues. */
static void published_vectors(void **state)
{
	static const unsigned char read_command[48] = {
		0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0,    0, 0, 0,    0, 0, 0, 0,
		0x14, 0,    0, 0, 0, 0, 4, 0, 0,    0, 0, 0x14, 0, 0, 0, 0x18,
		0x28, 0,    0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0,    0, 0, 0, 0};
	unsigned char zeros[32], ones[32], up[32], down[32];
	crc_fn *crcs[3];
	size_t count = implementations(crcs);

	(void)state;
	for (int i = 0; i < 32; i++) {
		zeros[i] = 0;
		ones[i] = 0xff;
		up[i] = (unsigned char)i;
		down[i] = (unsigned char)(31 - i);
	}
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(crcs[i](0, zeros, 32), UINT32_C(0x8a9136aa));
		assert_int_equal(crcs[i](0, ones, 32), UINT32_C(0x62a8ab43));
		assert_int_equal(crcs[i](0, up, 32), UINT32_C(0x46dd794e));
		assert_int_equal(crcs[i](0, down, 32), UINT32_C(0x113fdb5c));
		assert_int_equal(crcs[i](0, read_command, 48), UINT32_C(0xd9963a56));
		assert_int_equal(crcs[i](0, "123456789", 9), UINT32_C(0xe3069283));
	}
}

static void nothing_changes_nothing(void **state)
{
	crc_fn *crcs[3];
	size_t count = implementations(crcs);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(crcs[i](0, NULL, 0), 0);
		assert_int_equal(crcs[i](0xdeadbeef, NULL, 0), 0xdeadbeef);
	}
}

static void all_lengths_and_alignments_agree(void **state)
{
	unsigned char data[600 + 8];
	crc_fn *crcs[3];
	size_t count = implementations(crcs);

	(void)state;
	hx_random_bytes(data, sizeof(data));
	for (size_t shift = 0; shift < 8; shift++) {
		for (size_t size = 0; size <= 600; size++) {
			uint32_t start = (uint32_t)(size * 2654435761u);
			uint32_t expected = crc_by_definition(start, data + shift, size);

			for (size_t i = 0; i < count; i++)
				assert_int_equal(crcs[i](start, data + shift, size), expected);
		}
	}
}

/* Around whole numbers of long blocks, where the joins are. */
static void long_inputs_agree(void **state)
{
	static unsigned char data[3 * 4080 + 400];
	crc_fn *crcs[3];
	size_t count = implementations(crcs);

	(void)state;
	hx_random_bytes(data, sizeof(data));
	for (size_t blocks = 1; blocks <= 3; blocks++) {
		for (size_t size = 4080 * blocks - 9; size <= 4080 * blocks + 400; size += 7) {
			uint32_t expected = crc_by_definition(7, data, size);

			for (size_t i = 0; i < count; i++)
				assert_int_equal(crcs[i](7, data, size), expected);
		}
	}
}

static void pieces_make_the_whole(void **state)
{
	unsigned char data[5000];
	uint32_t whole;

	(void)state;
	hx_random_bytes(data, sizeof(data));
	whole = hx_crc32c(0, data, sizeof(data));
	for (size_t cut = 0; cut <= sizeof(data); cut += 13)
		assert_int_equal(
			hx_crc32c(hx_crc32c(0, data, cut), data + cut, sizeof(data) - cut), whole);
}

static void one_bit_is_noticed(void **state)
{
	unsigned char data[512] = {0};
	uint32_t whole = hx_crc32c(0, data, sizeof(data));

	(void)state;
	for (size_t bit = 0; bit < 8 * sizeof(data); bit++) {
		data[bit / 8] ^= (unsigned char)(1 << bit % 8);
		assert_int_not_equal(hx_crc32c(0, data, sizeof(data)), whole);
		data[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
	/* Nor may zeros be lost or added. */
	assert_int_not_equal(hx_crc32c(0, data, sizeof(data) - 1), whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_vectors),
		cmocka_unit_test(nothing_changes_nothing),
		cmocka_unit_test(all_lengths_and_alignments_agree),
		cmocka_unit_test(long_inputs_agree),
		cmocka_unit_test(pieces_make_the_whole),
		cmocka_unit_test(one_bit_is_noticed),
	};

	return cmocka_run_group_tests_name("crc32c", tests, NULL, NULL);
}
