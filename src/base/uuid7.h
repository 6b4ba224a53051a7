/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uuid7.h - UUIDs that sort by time (RFC 9562 version 7), and UUID text.
 *
 * Layout: 48 bits of milliseconds, version 7, 12 bits of counter (rand_a), variant,
 * 62 random bits. Within one generator each UUID is larger than the one before,
 * whatever the clock does: when the clock stands or goes back, the counter counts
 * on, and an overflow borrows the next millisecond (RFC 9562 6.2, method 1).
 *
 * Threads: any, also several on one generator.
 */
#ifndef HX_UUID7_H
#define HX_UUID7_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/bytes.h>

#include "base/thread.h"

enum { HX_UUID_SIZE = 16, HX_UUID_TEXT_SIZE = 36 };

/* A struct of zeros is a new generator. Locks: lock guards the rest. */
struct hx_uuid7 {
	struct hx_lock lock;
	uint32_t counter;
	int64_t last_ms;
};

void hx_uuid7_init(struct hx_uuid7 *gen);

/*
 * The next UUID. wall_ms is clamped to the 48 bits there are; at their end (in the
 * year 10889) UUIDs stay unique but are no longer ordered.
 */
void hx_uuid7_next(struct hx_uuid7 *gen, int64_t wall_ms, unsigned char out[HX_UUID_SIZE]);

/* Its creation time in milliseconds since 1970; false if it is not version 7. */
bool hx_uuid7_time_ms(const unsigned char uuid[HX_UUID_SIZE], int64_t *ret);

/* Lower case 8-4-4-4-12 and a NUL. */
void hx_uuid7_format(const unsigned char uuid[HX_UUID_SIZE], char out[HX_UUID_TEXT_SIZE + 1]);

/* Either case, 8-4-4-4-12, nothing before or after. False: out is untouched. */
bool hx_uuid7_parse(struct hapax_bytes text, unsigned char out[HX_UUID_SIZE]);

/*
 * Text to 16 bytes without loss: true only for the very text that
 * hx_uuid7_unpack() gives back, so upper case is refused. Any version and variant.
 * False: out is untouched.
 */
bool hx_uuid7_pack(const char text[HX_UUID_TEXT_SIZE], unsigned char out[HX_UUID_SIZE]);

/* Writes 36 bytes and no NUL. */
void hx_uuid7_unpack(const unsigned char uuid[HX_UUID_SIZE], char out[HX_UUID_TEXT_SIZE]);

/* The two implementations that hx_uuid7_pack() chooses from; for tests. */
bool hx_uuid7_pack_scalar(const char text[HX_UUID_TEXT_SIZE], unsigned char out[HX_UUID_SIZE]);
bool hx_uuid7_pack_x86(const char text[HX_UUID_TEXT_SIZE], unsigned char out[HX_UUID_SIZE]);

/* Whether this machine can run hx_uuid7_pack_x86(). */
bool hx_uuid7_pack_x86_usable(void);

#endif
