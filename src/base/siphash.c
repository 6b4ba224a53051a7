/* SPDX-License-Identifier: Apache-2.0 */
/*
 * siphash.c - SipHash-1-3 of any number of bytes.
 */
#include "base/siphash.h"

#include <assert.h>
#include <stdatomic.h>

/*
 * The 0 to 7 bytes after the last whole word, and the size on top. The bytes before them can be
 * read again: one load and a shift beat a copy of unknown length.
 */
static uint64_t last_word(const unsigned char *bytes, size_t size)
{
	size_t rest = size % 8;
	uint64_t word = 0;

	if (size < 8) {
		for (size_t i = 0; i < rest; i++)
			word |= (uint64_t)bytes[i] << (8 * i);
	} else if (rest > 0) {
		word = hx_siphash_load(bytes + (size - 8)) >> (8 * (8 - rest));
	}
	return word | (uint64_t)size << 56;
}

uint64_t hx_siphash13(const uint64_t key[2], const void *data, size_t size)
{
	struct hx_siphash_state s = hx_siphash_begin(key);
	const unsigned char *bytes = data;

	for (size_t i = 0; i < size / 8; i++)
		hx_siphash_word(&s, hx_siphash_load(bytes + 8 * i));
	hx_siphash_word(&s, last_word(bytes, size));
	return hx_siphash_end(&s);
}

/* Four lanes to a register where the loop is compiled for AVX2: compilers do that by themselves. */
static inline void hash_lanes(
	const uint64_t key[2], const struct hx_siphash_lanes *lanes, size_t count, uint64_t *hashes)
{
	for (size_t i = 0; i < count; i++)
		hashes[i] =
			hx_siphash13_words(key, lanes->first[i], lanes->second[i], lanes->scope[i]);
}

typedef void hash_lanes_fn(
	const uint64_t key[2], const struct hx_siphash_lanes *lanes, size_t count,
	uint64_t *hashes);

static void hash_lanes_plain(
	const uint64_t key[2], const struct hx_siphash_lanes *lanes, size_t count, uint64_t *hashes)
{
	hash_lanes(key, lanes, count, hashes);
}

#if defined(__x86_64__)

__attribute__((target("avx2"))) static void hash_lanes_avx2(
	const uint64_t key[2], const struct hx_siphash_lanes *lanes, size_t count, uint64_t *hashes)
{
	hash_lanes(key, lanes, count, hashes);
}

static hash_lanes_fn *best_hash_lanes(void)
{
	return __builtin_cpu_supports("avx2") ? hash_lanes_avx2 : hash_lanes_plain;
}

#else

static hash_lanes_fn *best_hash_lanes(void)
{
	return hash_lanes_plain;
}

#endif

static hash_lanes_fn choose;
static hash_lanes_fn *_Atomic chosen = choose;

/* Used until the first call; threads that race here choose the same. */
static void choose(
	const uint64_t key[2], const struct hx_siphash_lanes *lanes, size_t count, uint64_t *hashes)
{
	hash_lanes_fn *best = best_hash_lanes();

	atomic_store_explicit(&chosen, best, memory_order_relaxed);
	best(key, lanes, count, hashes);
}

void hx_siphash13_20_lanes(
	const uint64_t key[2], const struct hx_siphash_lanes *lanes, size_t count,
	uint64_t ret_hashes[HX_SIPHASH_LANES])
{
	assert(count <= HX_SIPHASH_LANES);
	atomic_load_explicit(&chosen, memory_order_relaxed)(key, lanes, count, ret_hashes);
}
