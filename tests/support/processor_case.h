/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processor_case.h - a processor on a store that the test holds, on a clock that the
 * test moves, and calls that remember their steps.
 */
#ifndef TEST_SUPPORT_PROCESSOR_CASE_H
#define TEST_SUPPORT_PROCESSOR_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/hapax.h>

#include "support/held_store.h"
#include "support/store_case.h"

enum { CALL_STEPS_MAX = 16, CALL_BODY_MAX = 64 };

struct processor_case {
	struct store_case store;
	struct held_store held;
	struct hapax_processor_options options; /* change them before open */
	struct hapax_processor *processor;
	uint64_t random;
	unsigned wakes;
};

/* A request on its way. */
struct call {
	struct hapax_run *run;
	enum hapax_step steps[CALL_STEPS_MAX];
	size_t step_count;
	bool has_ended;
	struct hapax_answer answer; /* of the last step; its bytes are copied below */
	char body[CALL_BODY_MAX];
	char error[CALL_BODY_MAX];
	char owner[CALL_BODY_MAX];
	char cause_id[CALL_BODY_MAX];
	/* When it is told to run: finish at once. */
	bool finishes;
	enum hapax_run_outcome outcome;
	const struct hapax_result *result;
};

/* On "memory:". Lease 900 ms, ttl 60 s, poll 100 ms, timeout 1 s. */
void processor_case_init(struct processor_case *c);
void processor_case_open(struct processor_case *c);
void processor_case_begin(struct processor_case *c); /* init and open */
void processor_case_done(struct processor_case *c);

/* Time passes in one step, then tick; or millisecond by millisecond, with a tick each. */
void processor_case_jump(struct processor_case *c, int64_t ms);
void processor_case_pass(struct processor_case *c, int64_t ms);

/* A request for key, with the processor's own options and that wait. */
void call_begin(struct processor_case *c, struct call *call, const char *key, int64_t wait_ms);
void call_begin_with(
	struct processor_case *c, struct call *call, const char *key, char letter,
	const struct hapax_run_options *options);

/* What makes a call out of any request. */
struct hapax_request call_request(struct call *call, const char *key);

/* Finish it as ok with that text, or as failed. */
void call_finish_ok(struct call *call, const char *text);
void call_finish_failed(struct call *call, enum hapax_run_outcome outcome, const char *why);

bool call_was_told(const struct call *call, enum hapax_step step);
size_t call_told_count(const struct call *call, enum hapax_step step);

struct hapax_processor_stats processor_case_stats(struct processor_case *c);

#endif
