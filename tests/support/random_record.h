/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_record.h - records of every shape that a store may hold, from a seed.
 *
 * Sizes lean to the ends of what limits.h allows and to the places where a codec
 * changes its form; keys are raw bytes, UUIDs, hexadecimal text and what nearly is.
 */
#ifndef TEST_SUPPORT_RANDOM_RECORD_H
#define TEST_SUPPORT_RANDOM_RECORD_H

#include <stdbool.h>

#include <hapax/record.h>

#include "base/limits.h"
#include "base/random.h"

/* What a record points at. */
struct random_record {
	struct hapax_record record;
	unsigned char tenant[HX_SCOPE_PART_SIZE_MAX];
	unsigned char group[HX_SCOPE_PART_SIZE_MAX];
	unsigned char key[HX_KEY_SIZE_MAX];
	unsigned char owner[HX_OWNER_SIZE_MAX];
	unsigned char error[HX_ERROR_TEXT_SIZE_MAX];
	unsigned char cause[HAPAX_CAUSE_SIZE_MAX];
	unsigned char headers[2048];
	unsigned char body[8192];
};

/* Make a valid record around now_ms. It points into *random. */
void random_record_make(struct random_record *random, struct hx_prng *prng, int64_t now_ms);

/* The first member in which the two differ, or NULL. fingerprint_size bytes of that count. */
const char *random_record_difference(
	const struct hapax_record *a, const struct hapax_record *b, size_t fingerprint_size);

#endif
