/* SPDX-License-Identifier: Apache-2.0 */
#include "keys.h"

#include <assert.h>
#include <string.h>

uint64_t key_random(uint64_t *state)
{
	*state += UINT64_C(0x9e3779b97f4a7c15);

	uint64_t z = *state;

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static uint64_t key_state(uint64_t seed, uint64_t index)
{
	return seed ^ (index * UINT64_C(0xd1342543de82ef95));
}

/* Eight digits, the highest first. Generating must cost little beside what is measured. */
static void put_digits(uint32_t value, char text[8])
{
	uint64_t digits = value;
	uint64_t letters;

	digits = (digits | digits << 16) & UINT64_C(0x0000ffff0000ffff);
	digits = (digits | digits << 8) & UINT64_C(0x00ff00ff00ff00ff);
	digits = (digits | digits << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	letters = ((digits + UINT64_C(0x0606060606060606)) >> 4) & UINT64_C(0x0101010101010101);
	digits += UINT64_C(0x3030303030303030) + letters * ('a' - '0' - 10);
	for (unsigned i = 0; i < 8; i++)
		text[i] = (char)(digits >> (56 - 8 * i));
}

void key_text(uint64_t seed, uint64_t index, char text[KEY_TEXT_SIZE])
{
	uint64_t state = key_state(seed, index);
	char digits[32];
	uint64_t words[2];

	words[0] = (key_random(&state) & ~UINT64_C(0xf000)) | UINT64_C(0x4000);
	words[1] = (key_random(&state) & ~(UINT64_C(3) << 62)) | (UINT64_C(2) << 62);
	put_digits((uint32_t)(words[0] >> 32), digits);
	put_digits((uint32_t)words[0], digits + 8);
	put_digits((uint32_t)(words[1] >> 32), digits + 16);
	put_digits((uint32_t)words[1], digits + 24);
	memcpy(text, digits, 8);
	memcpy(text + 9, digits + 8, 4);
	memcpy(text + 14, digits + 12, 4);
	memcpy(text + 19, digits + 16, 4);
	memcpy(text + 24, digits + 20, 12);
	text[8] = text[13] = text[18] = text[23] = '-';
}

/*
 * A Feistel network over the smallest even number of bits that holds count, walked
 * until it lands inside: each step is a permutation, so the whole is one.
 */
uint64_t key_shuffled(uint64_t seed, uint64_t count, uint64_t place)
{
	unsigned half_bits = 1;

	assert(place < count);
	while (half_bits < 31 && (UINT64_C(1) << (2 * half_bits)) < count)
		half_bits++;

	const uint64_t mask = (UINT64_C(1) << half_bits) - 1;

	do {
		uint64_t left = place >> half_bits;
		uint64_t right = place & mask;

		for (uint64_t round = 0; round < 4; round++) {
			uint64_t state = seed ^ (round << 56) ^ right;
			uint64_t mixed = left ^ (key_random(&state) & mask);

			left = right;
			right = mixed;
		}
		place = (left << half_bits) | right;
	} while (place >= count);
	return place;
}

void key_bytes(uint64_t seed, uint64_t index, unsigned char *bytes, size_t size)
{
	uint64_t state = key_state(~seed, index);
	uint64_t words[4];

	assert(size <= sizeof(words));
	for (size_t i = 0; i < 4; i++)
		words[i] = key_random(&state);
	memcpy(bytes, words, size);
}
