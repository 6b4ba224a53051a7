/* SPDX-License-Identifier: Apache-2.0 */
#include "support/scale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

bool scale_is_proof(void)
{
	const char *text = getenv("HAPAX_PROOF");

	return text && *text && strcmp(text, "0") != 0;
}

uint64_t scale_count(uint64_t proof, uint64_t usual)
{
	if (scale_is_proof())
		return proof;

	const char *text = getenv("HAPAX_TEST_SCALE");
	double factor = text && *text ? strtod(text, NULL) : 1.0;
	double count = factor > 0 ? (double)usual * factor : 0;

	return count < 1 ? 1 : (uint64_t)count;
}

/* Is there such a number? */
static bool read_seed(const char *variable, uint64_t *ret_seed)
{
	const char *text = getenv(variable);

	if (!text || !*text)
		return false;
	*ret_seed = strtoull(text, NULL, 0);
	return true;
}

bool scale_seed(uint64_t *ret_seed)
{
	if (read_seed("HAPAX_TEST_SEED", ret_seed))
		return true;
	(void)read_seed("HAPAX_TEST_FIRST_SEED", ret_seed);
	return false;
}

double scale_seconds(void)
{
	return (double)hx_clock_mono_ns() / 1e9;
}

void scale_report(const char *what, uint64_t count, double seconds, bool ok)
{
	printf("# proof: %s %llu %.1fs %s\n", what, (unsigned long long)count, seconds,
	       ok ? "ok" : "FAILED");
	fflush(stdout);
}
