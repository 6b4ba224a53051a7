/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history.h - random histories of a store, checked against the model.
 *
 * A history draws its own shape first (how many keys and scopes, how long leases
 * and times to live, which operations and how often, limits), then submits random
 * batches to a fresh store on a clock of its own, which moves by random steps
 * while the wall clock is set at will. Every answer goes to the model; so does the
 * whole content at the end. Equal choices give equal histories.
 */
#ifndef TEST_CONFORMANCE_HISTORY_H
#define TEST_CONFORMANCE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"

/* Where the choices come from: a seed, or the bytes of a fuzzer until they end. */
struct choices {
	struct hx_prng prng;
	const unsigned char *data; /* NULL: the generator */
	size_t size;
	size_t used;
};

void choices_from_seed(struct choices *choices, uint64_t seed);
void choices_from_bytes(struct choices *choices, const unsigned char *data, size_t size);

struct history_report {
	bool ok;
	uint64_t operations;
	uint64_t submits;
	uint64_t fenced;
	uint64_t trace; /* a hash over every operation and its answer */
	char why[600];  /* when not ok */
};

/*
 * Run one history of about that many operations on a new store of that kind. When
 * it differs from the model, the last operations are printed as TAP comments.
 */
bool history_run(
	const char *kind, struct choices *choices, uint64_t operations,
	struct history_report *ret_report);

#endif
