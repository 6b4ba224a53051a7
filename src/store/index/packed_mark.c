/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed_mark.c - how a mark is written.
 */
#include "store/index/packed_mark.h"

#include <assert.h>

size_t hx_packed_mark_size(
	const struct hx_packed_key *key, const struct hx_packed_mark *mark,
	const struct hx_packed_base *base)
{
	int64_t expires = hx_packed_difference(mark->expires_ms, base->ms);
	int64_t token = hx_packed_difference((int64_t)mark->token, (int64_t)base->token);
	size_t size = HX_PACKED_NARROW_SIZE + hx_packed_key_part_size(key);

	/* Without an expiry the time of the mark must be spelt out. */
	if (mark->profile_id > UINT16_MAX || token < INT32_MIN || token > INT32_MAX ||
	    expires < 0 || expires >= HX_PACKED_NEVER32 || mark->expires_ms == HAPAX_TIME_NEVER)
		return 0;
	if (mark->fingerprint != NULL)
		size += HAPAX_FINGERPRINT_SHORT_SIZE;
	return size + (size & 1);
}

void hx_packed_write_mark(
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
	/* Nobody else sees these bytes yet, but the head is atomic for all. */
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
