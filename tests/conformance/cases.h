/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cases.h - the one list of cases that every store must pass.
 *
 * A case gets a struct store_case in *state: a fresh store of the kind under test.
 * It uses the public API alone, so that it means the same on every store. Names
 * begin with what they show: invariants (I…) of research/reliability.md 3 and the
 * items of REQUIREMENTS.md.
 */
#ifndef TEST_CONFORMANCE_CASES_H
#define TEST_CONFORMANCE_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/store_case.h"

/* Which stores a case is for. */
enum conformance_need {
	NEEDS_NOTHING = 0,
	NEEDS_EVICTION = 1,   /* memory: alone has it */
	NEEDS_DURABLE = 2,    /* what was answered survives closing */
	NEEDS_FILES = 3,      /* lives somewhere */
	NEEDS_SHARING = 4,    /* several may have it open: not file:, which one process owns */
	NEEDS_OWN_CLOCK = 5,  /* keeps its time over restarts, instead of asking a server */
	NEEDS_LIMITS = 6,     /* keys_max and bytes_max: not where others fill it too */
	NEEDS_OWN_MEMORY = 8, /* no part of it is played by another thread of the test: no server */
	NEEDS_WHOLE = 7,      /* tokens and groups over all keys: no Redis Cluster */
};

struct conformance_case {
	const char *name; /* NULL ends a list */
	void (*run)(void **state);
	enum conformance_need needs;
};

extern const struct conformance_case async_cases[];
extern const struct conformance_case cause_cases[];
extern const struct conformance_case claim_cases[];
extern const struct conformance_case fingerprint_cases[];
extern const struct conformance_case group_cases[];
extern const struct conformance_case input_cases[];
extern const struct conformance_case limit_cases[];
extern const struct conformance_case load_cases[];
extern const struct conformance_case memory_failure_cases[];
extern const struct conformance_case process_cases[];
extern const struct conformance_case result_cases[];
extern const struct conformance_case scan_cases[];
extern const struct conformance_case set_cases[];
extern const struct conformance_case stats_cases[];
extern const struct conformance_case thread_cases[];
extern const struct conformance_case time_cases[];
extern const struct conformance_case token_cases[];

/* Claim key, which must be ACQUIRED, and return its token. */
uint64_t must_claim(struct store_case *c, const char *key);

/* Run an operation that must end with HAPAX_OK and that outcome. */
void must_run(struct store_case *c, struct hapax_op *op, enum hapax_outcome outcome);

#endif
