/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random.h - the randomness seam, and a deterministic generator beside it.
 *
 * hx_random_bytes() is for values that must not be guessed or repeated: hash keys, attempt IDs,
 * UUIDs. struct hx_prng is for tests and benchmarks, where the same seed must give the same run; it
 * protects nothing.
 *
 * Threads: hx_random_* any; a struct hx_prng one at a time.
 * Fork: safe, nothing is buffered.
 */
#ifndef HX_RANDOM_H
#define HX_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* From the kernel. Blocks only before the system has gathered entropy at boot. */
void hx_random_bytes(void *out, size_t size);

static inline uint64_t hx_random_u64(void)
{
	uint64_t number;

	hx_random_bytes(&number, sizeof(number));
	return number;
}

/*
 * Make hx_random_bytes() repeatable from now on; 0 restores the kernel's. With several threads the
 * stream repeats, but not which thread gets which part.
 */
void hx_random_seed_for_tests(uint64_t seed);

struct hx_prng {
	uint64_t state[4];
};

void hx_prng_seed(struct hx_prng *prng, uint64_t seed);
uint64_t hx_prng_next(struct hx_prng *prng);

/* Uniform in 0 .. n - 1, without bias; n is not 0. */
uint64_t hx_prng_below(struct hx_prng *prng, uint64_t n);

#endif
