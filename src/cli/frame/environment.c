/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment.c - the environment variables that hapax reads.
 */
#include "cli/frame/environment.h"

#include <pwd.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

const char *hx_environment(const char *name)
{
	/* This process never changes its environment, and threads start later. */
	const char *value = getenv(name); /* NOLINT(concurrency-mt-unsafe) */

	return value != NULL && value[0] != '\0' ? value : NULL;
}

const char *hx_environment_home(char text[HX_HOME_ROOM_SIZE])
{
	const char *home = hx_environment("HOME");
	struct passwd user, *found = NULL;

	if (home != NULL)
		return home;
	if (getpwuid_r(geteuid(), &user, text, HX_HOME_ROOM_SIZE, &found) != 0 || found == NULL)
		return NULL;
	return user.pw_dir != NULL && user.pw_dir[0] == '/' ? user.pw_dir : NULL;
}
