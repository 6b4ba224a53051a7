/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random.c - bytes from the kernel, or repeatable ones.
 */
#include "base/random.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/thread.h"

/* Locks: test_lock guards test_prng. */
static struct hx_lock test_lock;
static struct hx_prng test_prng;
static _Atomic bool test_seeded;

static void fill_from_prng(struct hx_prng *prng, unsigned char *out, size_t size)
{
	while (size > 0) {
		uint64_t word = hx_prng_next(prng);
		size_t part = size < sizeof(word) ? size : sizeof(word);

		memcpy(out, &word, part);
		out += part;
		size -= part;
	}
}

static void fill_from_kernel(unsigned char *out, size_t size)
{
	while (size > 0) {
		ssize_t part = getrandom(out, size, 0);

		if (part < 0 && errno == EINTR)
			continue;
		/* Guessable ids would be worse than no process. */
		if (part <= 0)
			abort();
		out += part;
		size -= (size_t)part;
	}
}

void hx_random_bytes(void *out, size_t size)
{
	if (__builtin_expect(!atomic_load_explicit(&test_seeded, memory_order_relaxed), 1)) {
		fill_from_kernel(out, size);
		return;
	}
	hx_lock_acquire(&test_lock);
	fill_from_prng(&test_prng, out, size);
	hx_lock_release(&test_lock);
}

void hx_random_seed_for_tests(uint64_t seed)
{
	hx_lock_acquire(&test_lock);
	hx_prng_seed(&test_prng, seed);
	atomic_store(&test_seeded, seed != 0);
	hx_lock_release(&test_lock);
}

/* SplitMix64: spreads a seed of any quality, 0 included, over all bits. */
static uint64_t splitmix_next(uint64_t *state)
{
	uint64_t word = *state += UINT64_C(0x9e3779b97f4a7c15);

	word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
	return word ^ (word >> 31);
}

static uint64_t rotate(uint64_t word, unsigned bits)
{
	return (word << bits) | (word >> (64 - bits));
}

void hx_prng_seed(struct hx_prng *prng, uint64_t seed)
{
	for (size_t i = 0; i < 4; i++)
		prng->state[i] = splitmix_next(&seed);
}

/* xoshiro256**. */
uint64_t hx_prng_next(struct hx_prng *prng)
{
	uint64_t *s = prng->state;
	uint64_t result = rotate(s[1] * 5, 7) * 9;
	uint64_t shifted = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= shifted;
	s[3] = rotate(s[3], 45);
	return result;
}

uint64_t hx_prng_below(struct hx_prng *prng, uint64_t n)
{
	uint64_t spare, word;

	assert(n > 0);
	/* 2^64 mod n values at the bottom would make the lowest results likelier. */
	spare = -n % n;
	do
		word = hx_prng_next(prng);
	while (word < spare);
	return word % n;
}
