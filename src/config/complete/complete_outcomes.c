/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complete_outcomes.c - a route's own outcomes, by status.
 */
#include <stdlib.h>
#include <string.h>

#include "config/complete/complete.h"

enum { STATUSES = HX_CONFIG_STATUS_MAX - HX_CONFIG_STATUS_MIN + 1, UNSAID = -1 };

/* The outcomes of a route: where faults are reported, and what was written. */
struct outcomes {
	struct hx_complete *complete;
	const char *route;
	const struct hx_place *place;
	const struct hx_config_outcomes *written;
};

/* Enter the exact statuses of a list, or its classes. */
static void enter(
	const struct outcomes *outcomes, const char *const *texts, size_t count,
	enum hapax_run_outcome outcome, bool is_class, signed char table[STATUSES])
{
	for (size_t i = 0; i < count; i++) {
		bool is_one = texts[i][1] != 'x';
		size_t first = is_one ? strtoul(texts[i], NULL, 10) - HX_CONFIG_STATUS_MIN
				      : (size_t)(texts[i][0] - '0') * 100 - HX_CONFIG_STATUS_MIN;

		if (is_one == is_class)
			continue;
		if (table[first] != UNSAID)
			hx_fault(
				outcomes->complete->faults, HAPAX_ERR_INVALID, outcomes->place,
				"route '%.64s': status '%.3s' has several outcomes",
				outcomes->route, texts[i]);
		for (size_t k = first; k < first + (is_one ? 1 : 100); k++)
			table[k] = (signed char)outcome;
	}
}

static void enter_all(const struct outcomes *outcomes, bool is_class, signed char table[STATUSES])
{
	const struct hx_config_outcomes *written = outcomes->written;

	memset(table, UNSAID, STATUSES);
	enter(outcomes, written->ok, written->ok_count, HAPAX_RUN_OK, is_class, table);
	enter(outcomes, written->definitive, written->definitive_count, HAPAX_RUN_DEFINITIVE,
	      is_class, table);
	enter(outcomes, written->transient, written->transient_count, HAPAX_RUN_TRANSIENT, is_class,
	      table);
	enter(outcomes, written->ambiguous, written->ambiguous_count, HAPAX_RUN_AMBIGUOUS, is_class,
	      table);
}

void hx_complete_outcomes(
	struct hx_complete *complete, const char *route, const struct hx_place *place,
	struct hx_config_outcomes *written)
{
	const struct outcomes outcomes = {complete, route, place, written};
	signed char *table = hx_complete_alloc(complete, place, STATUSES, 1);
	signed char exact[STATUSES];

	if (table == NULL)
		return;
	enter_all(&outcomes, true, table);
	enter_all(&outcomes, false, exact);
	for (size_t i = 0; i < STATUSES; i++) {
		if (exact[i] != UNSAID)
			table[i] = exact[i];
	}
	written->table = table;
}
