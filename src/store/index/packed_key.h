/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed_key.h - a key as it is hashed, compared and stored.
 *
 * UUIDs and hexadecimal digests, which are most keys, take half their text or less.
 *
 * Threads: any.
 */
#ifndef HX_STORE_INDEX_PACKED_KEY_H
#define HX_STORE_INDEX_PACKED_KEY_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <hapax/bytes.h>

#include "base/siphash.h"
#include "base/uuid7.h"

/* The longest key that is stored packed, as text. */
enum { HX_KEY_TEXT_SIZE = 64 };

enum hx_key_encoding {
	HX_KEY_RAW = 0,
	HX_KEY_UUID = 1, /* 16 bytes for 36 of lower-case text */
	HX_KEY_HEX = 2,  /* half the size of lower-case text, which is at most HX_KEY_TEXT_SIZE */
};

struct hx_packed_key {
	uint32_t scope_id;
	uint8_t encoding; /* enum hx_key_encoding */
	uint16_t size;    /* of data */
	const unsigned char *data;
	unsigned char packed[HX_KEY_TEXT_SIZE / 2]; /* data points here unless the key is raw */
};

/* What every key promises, whether it was made of text or read from a record. */
void hx_packed_key_assert(const struct hx_packed_key *key);

/* Keys that are not UUIDs. */
void hx_packed_key_init_other(struct hx_packed_key *packed, struct hapax_bytes key);
uint64_t hx_packed_key_hash_other(const struct hx_packed_key *key, const uint64_t hash_key[2]);

/* key stays borrowed when its encoding is raw. */
static inline void hx_packed_key_init(
	struct hx_packed_key *packed, uint32_t scope_id, struct hapax_bytes key)
{
	packed->scope_id = scope_id;
	packed->data = packed->packed;
	packed->encoding = HX_KEY_UUID;
	packed->size = HX_UUID_SIZE;
	if (key.size != HX_UUID_TEXT_SIZE || !hx_uuid7_pack(key.data, packed->packed))
		hx_packed_key_init_other(packed, key);
}

/* The encoding counts: a UUID and the same digits without dashes are two keys with two hashes. */
static inline uint32_t hx_packed_key_suffix(const struct hx_packed_key *key)
{
	return key->scope_id | (uint32_t)key->encoding << 30;
}

static inline uint64_t hx_packed_key_hash(
	const struct hx_packed_key *key, const uint64_t hash_key[2])
{
	if (key->encoding == HX_KEY_UUID)
		return hx_siphash13_20(hash_key, key->data, hx_packed_key_suffix(key));
	return hx_packed_key_hash_other(key, hash_key);
}

/* The size of a key in a record: its bytes, and their size unless the encoding implies it. */
static inline size_t hx_packed_key_part_size(const struct hx_packed_key *key)
{
	if (key->encoding == HX_KEY_UUID)
		return HX_UUID_SIZE;
	return key->size + (key->encoding == HX_KEY_HEX ? 1u : 2u);
}

/* Write that part; returns its end. */
static inline unsigned char *hx_packed_key_write(unsigned char *at, const struct hx_packed_key *key)
{
	unsigned char *begin = at;

	/* A constant size compiles to two moves instead of a call. */
	if (key->encoding == HX_KEY_UUID) {
		memcpy(at, key->data, HX_UUID_SIZE);
		return at + HX_UUID_SIZE;
	}
	if (key->encoding == HX_KEY_HEX) {
		*at++ = (unsigned char)key->size;
	} else {
		memcpy(at, &key->size, sizeof(key->size));
		at += sizeof(key->size);
	}
	memcpy(at, key->data, key->size);
	at += key->size;
	assert((size_t)(at - begin) == hx_packed_key_part_size(key));
	return at;
}

#endif
