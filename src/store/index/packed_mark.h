/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed_mark.h - a mark in its packed form.
 *
 * A mark is done in one step, by check, with nothing to replay. Most records of a busy store are
 * marks, so reading and writing them skips struct hapax_record.
 *
 * Threads: any.
 */
#ifndef HX_STORE_INDEX_PACKED_MARK_H
#define HX_STORE_INDEX_PACKED_MARK_H

#include <assert.h>

#include "store/index/packed_layout.h"

struct hx_packed_mark {
	const unsigned char *fingerprint; /* NULL: none */
	int64_t expires_ms;
	uint64_t token;
	uint32_t profile_id;
	int64_t first_seen_ms; /* read only */
};

/* The bits of the head that are common to all marks, whatever the key and fingerprint. */
enum {
	HX_MARK_HEAD = (HAPAX_STATE_DONE - 1) << HX_HEAD_STATE_SHIFT |
		HAPAX_ORIGIN_CHECK << HX_HEAD_ORIGIN_SHIFT,
	HX_MARK_HEAD_ANY = 3 << HX_HEAD_ENCODING_SHIFT | HX_HEAD_PRINT | HX_HEAD_DEAD |
		HX_HEAD_FRESH | HX_HEAD_HIT,
};

/* The size of a mark, or 0: it needs the general form. */
static inline size_t hx_packed_mark_size(
	const struct hx_packed_key *key, const struct hx_packed_mark *mark,
	const struct hx_packed_base *base)
{
	int64_t expires = hx_packed_difference(mark->expires_ms, base->ms);
	int64_t token = hx_packed_difference((int64_t)mark->token, (int64_t)base->token);
	size_t size = HX_PACKED_NARROW_SIZE + hx_packed_key_part_size(key);

	/* Without an expiry the time of the mark must be stored. */
	if (mark->profile_id > UINT16_MAX || token < INT32_MIN || token > INT32_MAX ||
	    expires < 0 || expires >= HX_PACKED_NEVER32 || mark->expires_ms == HAPAX_TIME_NEVER)
		return 0;
	if (mark->fingerprint != NULL)
		size += HAPAX_FINGERPRINT_SHORT_SIZE;
	return size + (size & 1);
}

/* Write hx_packed_mark_size() bytes, which was not 0: the same as hx_packed_write(). */
static inline void hx_packed_write_mark(
	unsigned char *at, const struct hx_packed_key *key, const struct hx_packed_mark *mark,
	const struct hx_packed_base *base)
{
	uint16_t head = (uint16_t)(HX_MARK_HEAD | key->encoding << HX_HEAD_ENCODING_SHIFT);
	uint16_t profile = (uint16_t)mark->profile_id;
	uint32_t expires = (uint32_t)hx_packed_difference(mark->expires_ms, base->ms);
	int32_t token = (int32_t)hx_packed_difference((int64_t)mark->token, (int64_t)base->token);
	unsigned char *end;

	assert(((uintptr_t)at & 1) == 0);
	if (mark->fingerprint != NULL)
		head |= HX_HEAD_PRINT;
	/* No other thread sees these bytes yet, but the head is atomic for all. */
	atomic_store_explicit((_Atomic uint16_t *)(void *)at, head, memory_order_relaxed);
	memcpy(at + 2, &profile, sizeof(profile));
	memcpy(at + 4, &expires, sizeof(expires));
	memcpy(at + 8, &token, sizeof(token));
	end = hx_packed_key_write(at + HX_PACKED_NARROW_SIZE, key);
	if (mark->fingerprint != NULL) {
		memcpy(end, mark->fingerprint, HAPAX_FINGERPRINT_SHORT_SIZE);
		end += HAPAX_FINGERPRINT_SHORT_SIZE;
	}
	if ((end - at) & 1)
		*end = 0;
}

/* Read the record at at as a mark. False: it is not just a mark. */
static inline bool hx_packed_read_mark(
	const unsigned char *at, const struct hx_packed_base *base,
	struct hx_profile_table *profiles, struct hx_packed_mark *ret_mark)
{
	uint16_t head = hx_packed_head(at);
	const unsigned char *part = at + HX_PACKED_NARROW_SIZE;

	if ((head & ~HX_MARK_HEAD_ANY) != HX_MARK_HEAD)
		return false;
	ret_mark->profile_id = hx_packed_load16(at + 2);
	ret_mark->expires_ms = hx_packed_sum(base->ms, hx_packed_load32(at + 4));
	ret_mark->token = base->token + (uint64_t)(int64_t)(int32_t)hx_packed_load32(at + 8);
	ret_mark->first_seen_ms = hx_packed_difference(
		ret_mark->expires_ms, hx_profile_get(profiles, ret_mark->profile_id)->ttl_ms);
	ret_mark->fingerprint = NULL;
	if (head & HX_HEAD_PRINT) {
		(void)hx_packed_next_key(&part, hx_packed_encoding(head));
		ret_mark->fingerprint = part;
	}
	return true;
}

#endif
