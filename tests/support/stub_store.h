/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stub_store.h - a store that keeps nothing, to test what stands around stores.
 *
 * Every operation that was not refused is answered with the outcome that the test
 * has set. What the store is asked to sweep and to count is noted.
 *
 * Threads: as a store; the test reads swept and kept when nothing is under way.
 */
#ifndef TEST_SUPPORT_STUB_STORE_H
#define TEST_SUPPORT_STUB_STORE_H

#include <hapax/ext/store_ops.h>

#include "base/thread.h"

struct stub_store {
	struct hapax_store base;
	enum hapax_outcome outcome;
	enum hapax_status count_status; /* what count answers */
	uint64_t kept[HAPAX_DECISION_COUNT];
	char names[256];       /* "tenant/group " of each row that was kept */
	struct hx_event swept; /* set by the first sweep */
};

/* Closed with hapax_store_close(). The stub itself is the caller's. */
void stub_store_open(struct stub_store *stub, unsigned flags);

#endif
