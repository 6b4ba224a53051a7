/* SPDX-License-Identifier: Apache-2.0 */
/*
 * siphash.h - SipHash-1-3, the keyed hash of the index.
 *
 * The key is secret and random per store, so that senders that choose their keys cannot choose the
 * buckets. One round per word and three at the end are enough for that; it is not a message
 * authentication code.
 *
 * Threads: any.
 */
#ifndef HX_SIPHASH_H
#define HX_SIPHASH_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* data may be NULL when size is 0. */
uint64_t hx_siphash13(const uint64_t key[2], const void *data, size_t size);

struct hx_siphash_state {
	uint64_t v0, v1, v2, v3;
};

static inline uint64_t hx_siphash_rotate(uint64_t value, unsigned bits)
{
	return (value << bits) | (value >> (64 - bits));
}

static inline uint64_t hx_siphash_load(const unsigned char data[8])
{
	uint64_t word;

	memcpy(&word, data, sizeof(word));
	return le64toh(word);
}

static inline void hx_siphash_round(struct hx_siphash_state *s)
{
	s->v0 += s->v1;
	s->v2 += s->v3;
	s->v1 = hx_siphash_rotate(s->v1, 13) ^ s->v0;
	s->v3 = hx_siphash_rotate(s->v3, 16) ^ s->v2;
	s->v0 = hx_siphash_rotate(s->v0, 32);
	s->v2 += s->v1;
	s->v0 += s->v3;
	s->v1 = hx_siphash_rotate(s->v1, 17) ^ s->v2;
	s->v3 = hx_siphash_rotate(s->v3, 21) ^ s->v0;
	s->v2 = hx_siphash_rotate(s->v2, 32);
}

static inline struct hx_siphash_state hx_siphash_begin(const uint64_t key[2])
{
	/* "somepseudorandomlygeneratedbytes", the constant of the paper. */
	return (struct hx_siphash_state){
		key[0] ^ UINT64_C(0x736f6d6570736575),
		key[1] ^ UINT64_C(0x646f72616e646f6d),
		key[0] ^ UINT64_C(0x6c7967656e657261),
		key[1] ^ UINT64_C(0x7465646279746573),
	};
}

static inline void hx_siphash_word(struct hx_siphash_state *s, uint64_t word)
{
	s->v3 ^= word;
	hx_siphash_round(s);
	s->v0 ^= word;
}

static inline uint64_t hx_siphash_end(struct hx_siphash_state *s)
{
	s->v2 ^= 0xff;
	hx_siphash_round(s);
	hx_siphash_round(s);
	hx_siphash_round(s);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

/* The hash of 20 bytes by their words. */
static inline uint64_t hx_siphash13_words(
	const uint64_t key[2], uint64_t first, uint64_t second, uint64_t scope)
{
	struct hx_siphash_state s = hx_siphash_begin(key);

	hx_siphash_word(&s, first);
	hx_siphash_word(&s, second);
	/* The last word holds the remaining bytes, and the size in its top byte. */
	hx_siphash_word(&s, (UINT64_C(20) << 56) | scope);
	return hx_siphash_end(&s);
}

/*
 * hx_siphash13() of the 20 bytes key16 || scope in little endian, unrolled: what a
 * packed UUID key costs on every operation.
 */
static inline uint64_t hx_siphash13_20(
	const uint64_t key[2], const unsigned char key16[16], uint32_t scope)
{
	return hx_siphash13_words(key, hx_siphash_load(key16), hx_siphash_load(key16 + 8), scope);
}

/* Messages of 20 bytes side by side, as their three words, the last without the size. */
enum { HX_SIPHASH_LANES = 16 };
struct hx_siphash_lanes {
	uint64_t first[HX_SIPHASH_LANES];
	uint64_t second[HX_SIPHASH_LANES];
	uint64_t scope[HX_SIPHASH_LANES];
};

/* hx_siphash13_20() of the first count lanes; several at once if the machine can. */
void hx_siphash13_20_lanes(
	const uint64_t key[2], const struct hx_siphash_lanes *lanes, size_t count,
	uint64_t ret_hashes[HX_SIPHASH_LANES]);

#endif
