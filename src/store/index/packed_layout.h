/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed_layout.h - the layout of a packed record, and the questions of every lookup.
 *
 * packed.c shows the layout. These functions are inline because a duplicate costs a store little
 * else.
 *
 * Threads: any.
 */
#ifndef HX_STORE_INDEX_PACKED_LAYOUT_H
#define HX_STORE_INDEX_PACKED_LAYOUT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "store/index/packed_key.h"
#include "store/index/profile.h"

/* The base of times and tokens in a chunk's records. */
struct hx_packed_base {
	int64_t ms;
	uint64_t token;
};

enum hx_head {
	HX_HEAD_STATE_SHIFT = 0,  /* 2 bits: state - 1 */
	HX_HEAD_ORIGIN_SHIFT = 2, /* 2 bits */
	HX_HEAD_PARK = 1 << 4,
	HX_HEAD_PRINT = 1 << 5,
	HX_HEAD_ENCODING_SHIFT = 6, /* 2 bits */
	HX_HEAD_MORE = 1 << 8,
	HX_HEAD_RESULT = 1 << 9,
	HX_HEAD_WIDE = 1 << 10,
	HX_HEAD_DEAD = 1 << 11,  /* changes after publication */
	HX_HEAD_FRESH = 1 << 12, /* changes after publication */
	HX_HEAD_HIT = 1 << 13,   /* changes after publication */
	HX_HEAD_CAUSE = 1 << 14,
	HX_HEAD_CHANGES = HX_HEAD_DEAD | HX_HEAD_FRESH | HX_HEAD_HIT,
};

enum {
	HX_PACKED_NARROW_SIZE = 12,
	HX_PACKED_WIDE_SIZE = 22,
};

/* The narrow form of an expiry that never comes. */
#define HX_PACKED_NEVER32 UINT32_MAX

_Static_assert(HAPAX_STATE_CLAIMED == 1 && HAPAX_STATE_PARKED == 4, "a state fits in two bits");

static inline uint16_t hx_packed_head(const unsigned char *at)
{
	return atomic_load_explicit(
		(const _Atomic uint16_t *)(const void *)at, memory_order_relaxed);
}

/* Unaligned loads; the process that wrote the memory reads it. */
static inline uint16_t hx_packed_load16(const unsigned char *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline uint32_t hx_packed_load32(const unsigned char *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline uint64_t hx_packed_load64(const unsigned char *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* Differences wrap, and are undone the same way. */
static inline int64_t hx_packed_difference(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

static inline int64_t hx_packed_sum(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline unsigned hx_packed_encoding(uint16_t head)
{
	return (head >> HX_HEAD_ENCODING_SHIFT) & 3u;
}

static inline const unsigned char *hx_packed_parts(const unsigned char *at, uint16_t head)
{
	return at + (head & HX_HEAD_WIDE ? HX_PACKED_WIDE_SIZE : HX_PACKED_NARROW_SIZE);
}

static inline uint32_t hx_packed_profile(const unsigned char *at, uint16_t head)
{
	return head & HX_HEAD_WIDE ? hx_packed_load32(at + 2) : hx_packed_load16(at + 2);
}

/* The packed key at *at, which moves behind it. */
static inline struct hapax_bytes hx_packed_next_key(const unsigned char **at, unsigned encoding)
{
	size_t size = HX_UUID_SIZE;
	struct hapax_bytes key;

	if (encoding == HX_KEY_HEX) {
		size = *(*at)++;
		assert(size <= HX_KEY_TEXT_SIZE / 2);
	} else if (encoding == HX_KEY_RAW) {
		size = hx_packed_load16(*at);
		*at += sizeof(uint16_t);
		assert(size >= 1);
		assert(size <= HX_KEY_SIZE_MAX);
	}
	key = hx_bytes(*at, size);
	*at += size;
	return key;
}

/* The same as the end of hx_packed_key_matches(), for a key that is not a UUID. */
bool hx_packed_other_matches(const unsigned char *part, const struct hx_packed_key *key);

/* Is this the record of key? */
static inline bool hx_packed_key_matches(
	const unsigned char *at, struct hx_profile_table *profiles, const struct hx_packed_key *key)
{
	uint16_t head = hx_packed_head(at);
	const unsigned char *part = hx_packed_parts(at, head);

	if (hx_packed_encoding(head) != key->encoding ||
	    hx_profile_get(profiles, hx_packed_profile(at, head))->scope_id != key->scope_id)
		return false;
	/* Two words, the case that matters most. */
	if (key->encoding == HX_KEY_UUID)
		return hx_packed_load64(part) == hx_packed_load64(key->data) &&
			hx_packed_load64(part + 8) == hx_packed_load64(key->data + 8);
	return hx_packed_other_matches(part, key);
}

static inline enum hapax_state hx_packed_state(const unsigned char *at)
{
	return (enum hapax_state)(((hx_packed_head(at) >> HX_HEAD_STATE_SHIFT) & 3) + 1);
}

static inline int64_t hx_packed_expires_ms(
	const unsigned char *at, const struct hx_packed_base *base)
{
	uint32_t expires;

	if (hx_packed_head(at) & HX_HEAD_WIDE)
		return (int64_t)hx_packed_load64(at + 6);
	expires = hx_packed_load32(at + 4);
	return expires == HX_PACKED_NEVER32 ? HAPAX_TIME_NEVER : hx_packed_sum(base->ms, expires);
}

static inline bool hx_packed_is_dead(const unsigned char *at)
{
	return (hx_packed_head(at) & HX_HEAD_DEAD) != 0;
}

#endif
