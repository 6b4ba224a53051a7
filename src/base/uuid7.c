/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uuid7.c - UUIDs that sort by time, and UUID text.
 */
#include "base/uuid7.h"

#include <stdatomic.h>
#include <string.h>

#include "base/hex.h"
#include "base/random.h"

enum { COUNTER_MAX = (1 << 12) - 1 };

#define TIME_MS_MAX ((INT64_C(1) << 48) - 1)

void hx_uuid7_init(struct hx_uuid7 *gen)
{
	*gen = (struct hx_uuid7){.last_ms = 0};
	hx_lock_init(&gen->lock);
}

/*
 * A new millisecond starts the counter at a random value, so that two generators
 * differ, in the lower half of its range, so that there is room to count.
 */
static uint32_t counter_start(const unsigned char random[2])
{
	return ((uint32_t)random[0] << 8 | random[1]) & (COUNTER_MAX >> 1);
}

/* Locks: gen->lock held. */
static void step(struct hx_uuid7 *gen, int64_t wall_ms, uint32_t start)
{
	if (wall_ms > gen->last_ms) {
		gen->last_ms = wall_ms;
		gen->counter = start;
	} else if (gen->counter < COUNTER_MAX) {
		gen->counter++;
	} else {
		gen->last_ms += gen->last_ms < TIME_MS_MAX;
		gen->counter = start;
	}
}

void hx_uuid7_next(struct hx_uuid7 *gen, int64_t wall_ms, unsigned char out[HX_UUID_SIZE])
{
	unsigned char random[10];
	uint64_t time_ms;
	uint32_t counter;

	hx_random_bytes(random, sizeof(random));
	if (wall_ms > TIME_MS_MAX)
		wall_ms = TIME_MS_MAX;

	hx_lock_acquire(&gen->lock);
	step(gen, wall_ms, counter_start(random + 8));
	time_ms = (uint64_t)gen->last_ms;
	counter = gen->counter;
	hx_lock_release(&gen->lock);

	for (unsigned i = 0; i < 6; i++)
		out[i] = (unsigned char)(time_ms >> (40 - 8 * i));
	out[6] = (unsigned char)(0x70 | counter >> 8);
	out[7] = (unsigned char)counter;
	memcpy(out + 8, random, 8);
	out[8] = (out[8] & 0x3f) | 0x80;
}

bool hx_uuid7_time_ms(const unsigned char uuid[HX_UUID_SIZE], int64_t *ret)
{
	int64_t time_ms = 0;

	if (uuid[6] >> 4 != 7 || uuid[8] >> 6 != 2)
		return false;
	for (int i = 0; i < 6; i++)
		time_ms = time_ms << 8 | uuid[i];
	*ret = time_ms;
	return true;
}

void hx_uuid7_unpack(const unsigned char uuid[HX_UUID_SIZE], char out[HX_UUID_TEXT_SIZE])
{
	out[8] = out[13] = out[18] = out[23] = '-';
	hx_hex_encode(uuid, 4, out);
	hx_hex_encode(uuid + 4, 2, out + 9);
	hx_hex_encode(uuid + 6, 2, out + 14);
	hx_hex_encode(uuid + 8, 2, out + 19);
	hx_hex_encode(uuid + 10, 6, out + 24);
}

void hx_uuid7_format(const unsigned char uuid[HX_UUID_SIZE], char out[HX_UUID_TEXT_SIZE + 1])
{
	hx_uuid7_unpack(uuid, out);
	out[HX_UUID_TEXT_SIZE] = '\0';
}

bool hx_uuid7_parse(struct hapax_bytes text, unsigned char out[HX_UUID_SIZE])
{
	char lower[HX_UUID_TEXT_SIZE];

	if (text.size != sizeof(lower))
		return false;
	memcpy(lower, text.data, sizeof(lower));
	for (size_t i = 0; i < sizeof(lower); i++) {
		if (lower[i] >= 'A' && lower[i] <= 'F')
			lower[i] = (char)(lower[i] - 'A' + 'a');
	}
	return hx_uuid7_pack(lower, out);
}

/* The position of each byte's two digits; a hyphen is in every gap. */
static const unsigned char digits_at[HX_UUID_SIZE] = {
	0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34};

bool hx_uuid7_pack_scalar(const char text[HX_UUID_TEXT_SIZE], unsigned char out[HX_UUID_SIZE])
{
	unsigned char uuid[HX_UUID_SIZE];

	if (text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-')
		return false;
	for (int i = 0; i < HX_UUID_SIZE; i++) {
		int high = hx_hex_digit((unsigned char)text[digits_at[i]]);
		int low = hx_hex_digit((unsigned char)text[digits_at[i] + 1]);

		if (high < 0 || low < 0)
			return false;
		uuid[i] = (unsigned char)(high << 4 | low);
	}
	memcpy(out, uuid, sizeof(uuid));
	return true;
}

typedef bool uuid_pack_fn(const char text[HX_UUID_TEXT_SIZE], unsigned char out[HX_UUID_SIZE]);

static uuid_pack_fn choose;
static uuid_pack_fn *_Atomic chosen = choose;

/* Used until the first call; threads that race here choose the same. */
static bool choose(const char text[HX_UUID_TEXT_SIZE], unsigned char out[HX_UUID_SIZE])
{
	uuid_pack_fn *best = hx_uuid7_pack_x86_usable() ? hx_uuid7_pack_x86 : hx_uuid7_pack_scalar;

	atomic_store_explicit(&chosen, best, memory_order_relaxed);
	return best(text, out);
}

bool hx_uuid7_pack(const char text[HX_UUID_TEXT_SIZE], unsigned char out[HX_UUID_SIZE])
{
	return atomic_load_explicit(&chosen, memory_order_relaxed)(text, out);
}
