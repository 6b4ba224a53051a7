/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: the memory store and its index (src/store/memory, src/store/index), the
 * store core (src/store) and the rules (src/record/transition.c).
 *
 * The bytes are the choices of a history: its shape, its operations, the steps of
 * its clock. Every answer is compared with the model of tests/conformance.
 */
#include <stdlib.h>

#include "base/random.h"
#include "conformance/history.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { OPERATIONS_MAX = 400 };

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct history_report report;
	struct choices choices;

	/* The same bytes must be the same history: no random hash keys. */
	hx_random_seed_for_tests(1);
	choices_from_bytes(&choices, data, size);
	if (!history_run("memory:", &choices, OPERATIONS_MAX, &report))
		abort();
	return 0;
}
