/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scale.h - how much a test does, from which seed, and how it says so.
 *
 * A test has two counts: a usual one, for `make test`, and the one that the issues
 * ask for, taken with HAPAX_PROOF=1. HAPAX_TEST_SCALE multiplies the usual count
 * (0.25 under sanitizers, 10 for a longer look). HAPAX_TEST_SEED replaces the seed
 * of a random test, so that a failure that printed its seed can be repeated.
 *
 * Threads: the first call of each before others run.
 */
#ifndef TEST_SUPPORT_SCALE_H
#define TEST_SUPPORT_SCALE_H

#include <stdbool.h>
#include <stdint.h>

/* HAPAX_PROOF is set to something other than 0. */
bool scale_is_proof(void);

/* proof with HAPAX_PROOF=1, else usual times HAPAX_TEST_SCALE; never below one. */
uint64_t scale_count(uint64_t proof, uint64_t usual);

/*
 * HAPAX_TEST_SEED if it is set: then *ret_seed is written, and that seed alone is meant.
 * HAPAX_TEST_FIRST_SEED is written, too, where seeds begin with it; that returns false.
 */
bool scale_seed(uint64_t *ret_seed);

/* Seconds since some moment in the past, for the lines below. */
double scale_seconds(void);

/* Print "# proof: <what> <count> <seconds>s <verdict>", which `make proof` collects. */
void scale_report(const char *what, uint64_t count, double seconds, bool ok);

#endif
