/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment.c - the variables that the program reads.
 */
#include "cli/environment.h"

#include <stddef.h>
#include <stdlib.h>

const char *hx_environment(const char *name)
{
	/* Nothing in this process writes to the environment, and threads start later. */
	const char *value = getenv(name); /* NOLINT(concurrency-mt-unsafe) */

	return value != NULL && value[0] != '\0' ? value : NULL;
}
