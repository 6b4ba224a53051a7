/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed_key.c - keys that are not UUIDs, in their packed form.
 */
#include "store/index/packed_key.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/hex.h"
#include "base/limits.h"

/* Below this the size byte cancels the gain. */
enum { HEX_TEXT_SIZE_MIN = 8 };

_Static_assert(HX_SCOPES_MAX < 1 << 30, "a scope leaves room for the encoding in the suffix");

void hx_packed_key_assert(const struct hx_packed_key *key)
{
	assert(key->scope_id < HX_SCOPES_MAX);
	assert(key->encoding <= HX_KEY_HEX);
	assert(key->size >= 1);
	assert(key->size <= HX_KEY_SIZE_MAX);
	assert(key->encoding != HX_KEY_UUID || key->size == HX_UUID_SIZE);
	assert(key->encoding != HX_KEY_HEX || key->size <= HX_KEY_TEXT_SIZE / 2);
}

static bool pack_hex(struct hx_packed_key *packed, struct hapax_bytes key)
{
	return key.size % 2 == 0 && key.size >= HEX_TEXT_SIZE_MIN && key.size <= HX_KEY_TEXT_SIZE &&
		hx_hex_decode(key, packed->packed);
}

void hx_packed_key_init_other(struct hx_packed_key *packed, struct hapax_bytes key)
{
	assert(key.size >= 1);
	assert(key.size <= HX_KEY_SIZE_MAX);
	if (pack_hex(packed, key)) {
		packed->encoding = HX_KEY_HEX;
		packed->size = (uint16_t)(key.size / 2);
		assert(packed->size <= sizeof(packed->packed));
		assert(packed->data == packed->packed);
	} else {
		packed->encoding = HX_KEY_RAW;
		packed->size = (uint16_t)key.size;
		packed->data = key.data;
	}
}

uint64_t hx_packed_key_hash_other(const struct hx_packed_key *key, const uint64_t hash_key[2])
{
	uint32_t suffix = hx_packed_key_suffix(key);
	unsigned char message[HX_KEY_SIZE_MAX + sizeof(suffix)];

	hx_packed_key_assert(key);
	assert(key->encoding != HX_KEY_UUID);
	memcpy(message, key->data, key->size);
	memcpy(message + key->size, &suffix, sizeof(suffix));
	return hx_siphash13(hash_key, message, key->size + sizeof(suffix));
}
