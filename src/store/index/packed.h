/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed.h - a record in memory, as small as possible without loss.
 *
 * A mark of a UUID key takes 28 bytes. Scope and ttl are one interned number (the profile).
 * Times and tokens are offsets from the chunk that holds the record. UUID and hexadecimal text
 * is packed to its bits. Records that do not fit the short form use a wide one; nothing is ever
 * rounded. The fingerprint keeps its first 16 bytes. A result that is elsewhere keeps its sizes
 * and the place.
 *
 * Published records never change, except for some bits in their head, dead and use. Therefore
 * the head is atomic.
 *
 * Threads: any for reading; a record is written before it is published.
 */
#ifndef HX_STORE_INDEX_PACKED_H
#define HX_STORE_INDEX_PACKED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hapax/record.h>

#include "store/index/elsewhere.h"
#include "store/index/packed_key.h"
#include "store/index/packed_layout.h"
#include "store/index/profile.h"

/* The packed form of a record: its parts, and its size, which is even. */
struct hx_packed_shape {
	bool is_wide;
	uint8_t more;
	uint8_t result;
	uint32_t size;
};

/*
 * profile_id is the record's profile; ttl_is_own says that this profile leaves the ttl to the
 * record. elsewhere is the place of its result's bytes, of which only the sizes are read; NULL:
 * in the record.
 */
struct hx_packed_shape hx_packed_shape(
	const struct hapax_record *record, const struct hx_elsewhere *elsewhere,
	const struct hx_packed_key *key, const struct hx_packed_base *base, uint32_t profile_id,
	bool ttl_is_own);

/* Write shape.size bytes; shape is hx_packed_shape() of the same. */
void hx_packed_write(
	unsigned char *at, const struct hapax_record *record, const struct hx_elsewhere *elsewhere,
	const struct hx_packed_key *key, const struct hx_packed_base *base, uint32_t profile_id,
	struct hx_packed_shape shape);

/* The size of the record at at. */
size_t hx_packed_read_size(const unsigned char *at);

/*
 * Read the record without its key: a caller that looked for it has the key, and unpacking costs
 * time. Bytes point into at. Exceptions: tenant and group, which are the scope's, and a result
 * that is elsewhere (hx_result_is_elsewhere()).
 */
void hx_packed_read(
	const unsigned char *at, const struct hx_packed_base *base,
	struct hx_profile_table *profiles, struct hapax_record *ret_record);

/* The place and size of the result of the record at at. False: it is in the record. */
bool hx_packed_read_elsewhere(
	const unsigned char *at, struct hx_elsewhere *ret_elsewhere, uint64_t *ret_bytes);

/* The key as text: unpacked into key_text, or in at. */
struct hapax_bytes hx_packed_read_text(
	const unsigned char *at, unsigned char key_text[HX_KEY_TEXT_SIZE]);

/* The key of the record at at. data points into at. */
void hx_packed_read_key(
	const unsigned char *at, struct hx_profile_table *profiles, struct hx_packed_key *ret_key);

/* The scope of the record at at. */
struct hx_scope *hx_packed_scope(const unsigned char *at, struct hx_profile_table *profiles);

/* Superseded or removed: the index no longer points here. See also hx_packed_is_dead(). */
void hx_packed_set_dead(unsigned char *at);

/*
 * How recently a record was used, for eviction: 2 hit, 1 new or hit before the hand last passed,
 * 0 neither. raise never lowers; fade subtracts one.
 */
unsigned hx_packed_use(const unsigned char *at);
void hx_packed_raise_use(unsigned char *at, unsigned use);
void hx_packed_fade_use(unsigned char *at);

#endif
