/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checker.h - is there an order in which what many threads saw of one key makes
 * sense?
 *
 * Every call on the key is an event with the moments of its begin and end. The
 * checker searches for an order of the events that keeps to these moments and in
 * which each answer is the one that the rules give (Wing and Gong's search with
 * Lowe's memory of states). If there is none, a caller got an untrue answer:
 * two live holders (I1b), a second success (I1), a token that came back (I5).
 *
 * Time: an event happened at some time between now_first_ms and now_last_ms, so a
 * deadline in between may have passed for it or not.
 */
#ifndef TEST_CONFORMANCE_CHECKER_H
#define TEST_CONFORMANCE_CHECKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/store.h>

enum { CHECKER_EVENTS_MAX = 64 };

struct checker_event {
	uint64_t begun; /* from one counter, so that all moments differ */
	uint64_t ended;
	int64_t now_first_ms;
	int64_t now_last_ms;
	/* claim, check, renew, complete, release, park, lookup; forget is forced. */
	enum hapax_op_type type;
	uint64_t attempt_number; /* claim: stands for its attempt_id */
	int64_t lease_ms;
	int64_t ttl_ms;
	uint64_t value; /* complete: what it stored. REPLAY and FOUND of DONE: what was seen */
	uint64_t token; /* in, or out when ACQUIRED */
	enum hapax_status status;
	enum hapax_outcome outcome;
	uint32_t attempt;       /* when ACQUIRED */
	enum hapax_state state; /* when FOUND */
};

enum checker_verdict {
	CHECKER_ACCEPTED,
	CHECKER_REJECTED,
	CHECKER_GAVE_UP, /* too many states; says nothing */
};

/* Events of one key that was absent at first; at most CHECKER_EVENTS_MAX, in any order. */
enum checker_verdict checker_run(const struct checker_event *events, size_t count);

/* Print them by their begin, as TAP comments. */
void checker_print(const struct checker_event *events, size_t count);

#endif
