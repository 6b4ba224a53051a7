/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.h - the keys of a round, made from a seed and never stored.
 *
 * Key number i of a seed is the same UUID for every contestant, in whatever
 * language, so nothing has to be handed over. A second pass asks for the same keys
 * in another order, because records lie in the order of the first one and walking
 * them in it would hide the misses that a real duplicate pays.
 *
 * Threads: any; the functions keep nothing.
 */
#ifndef BENCH_KEYS_H
#define BENCH_KEYS_H

#include <stddef.h>
#include <stdint.h>

enum { KEY_TEXT_SIZE = 36 };

/* splitmix64: the next number of the sequence at *state. */
uint64_t key_random(uint64_t *state);

/* The text of key number index: version 4, lower case, no NUL. */
void key_text(uint64_t seed, uint64_t index, char text[KEY_TEXT_SIZE]);

/* Where the shuffled order of count keys has its place-th key: a permutation of 0 .. count-1. */
uint64_t key_shuffled(uint64_t seed, uint64_t count, uint64_t place);

/* Bytes that depend on seed and index: fingerprints, attempt ids, results. size <= 32. */
void key_bytes(uint64_t seed, uint64_t index, unsigned char *bytes, size_t size);

#endif
