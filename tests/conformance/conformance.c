/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance.c - runs the list of cases on the store of argv[1]: "memory:",
 * "sqlite:". A second argument keeps to the cases whose names contain it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/cases.h"

enum { CASES_MAX = 256 };

static const char *kind = "memory:";

static const struct conformance_case *const lists[] = {
	claim_cases,  token_cases,          fingerprint_cases, time_cases,
	result_cases, input_cases,          limit_cases,       group_cases,
	set_cases,    scan_cases,           stats_cases,       async_cases,
	thread_cases, memory_failure_cases, load_cases,        process_cases,
	cause_cases,
};

uint64_t must_claim(struct store_case *c, const char *key)
{
	uint64_t token = 0;

	assert_int_equal(case_claim(c, key, &token), HAPAX_OUTCOME_ACQUIRED);
	assert_true(token > 0);
	return token;
}

void must_run(struct store_case *c, struct hapax_op *op, enum hapax_outcome outcome)
{
	assert_string_equal(hapax_status_name(case_run(c, op)), "ok");
	assert_string_equal(hapax_outcome_name(op->outcome), hapax_outcome_name(outcome));
}

static int set_up(void **state)
{
	struct store_case *c = calloc(1, sizeof(*c));

	if (!c)
		return -1;
	store_case_begin(c, kind);
	*state = c;
	return 0;
}

static int tear_down(void **state)
{
	struct store_case *c = *state;

	store_case_done(c);
	free(c);
	return 0;
}

/* Does the store of this kind have what a case needs? A fresh one tells. */
static bool meets(enum conformance_need need)
{
	struct store_case c;
	bool answer = true;

	if (need == NEEDS_NOTHING)
		return true;
	store_case_begin(&c, kind);
	if (need == NEEDS_EVICTION)
		answer = strcmp(kind, "memory:") == 0;
	if (need == NEEDS_DURABLE)
		answer = store_case_is_durable(&c);
	if (need == NEEDS_FILES)
		answer = c.has_dir;
	if (need == NEEDS_SHARING)
		answer = c.has_dir && strcmp(kind, "file:") != 0;
	if (need == NEEDS_WHOLE)
		answer = store_case_is_whole(&c);
	if (need == NEEDS_OWN_CLOCK)
		answer = store_case_is_durable(&c) && store_case_has_own_clock(&c);
	if (need == NEEDS_OWN_MEMORY)
		answer = strcmp(kind, "http:") != 0;
	if (need == NEEDS_LIMITS)
		answer = store_case_has_limits(&c);
	store_case_done(&c);
	return answer;
}

int main(int argc, char **argv)
{
	static struct CMUnitTest tests[CASES_MAX];
	size_t count = 0;

	/* Line by line, so that a crash leaves the last line readable. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1)
		kind = argv[1];
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		for (const struct conformance_case *item = lists[i]; item->name; item++) {
			if (!meets(item->needs))
				continue;
			if (argc > 2 && !strstr(item->name, argv[2]))
				continue;
			if (count == CASES_MAX)
				abort();
			tests[count++] =
				(struct CMUnitTest){item->name, item->run, set_up, tear_down, NULL};
		}
	}
	return _cmocka_run_group_tests("conformance", tests, count, NULL, NULL);
}
