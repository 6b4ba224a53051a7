/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_folder.c - where the locks of runs on this host are.
 */
#include "cli/run/run_folder.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/frame/environment.h"

/* A path that is too long is skipped. */
__attribute__((format(printf, 2, 3))) static void add(
	struct hx_cmd_run_folders *folders, const char *format, ...)
{
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vsnprintf(folders->paths[folders->count], HX_RUN_PATH_SIZE, format, arguments);
	va_end(arguments);
	if (size > 0 && size < HX_RUN_PATH_SIZE)
		folders->count++;
}

void hx_cmd_run_folders_find(struct hx_cmd_run_folders *folders)
{
	const char *runtime = hx_environment("XDG_RUNTIME_DIR");
	const char *state = hx_environment("XDG_STATE_HOME");
	char room[HX_HOME_ROOM_SIZE];
	const char *home = hx_environment_home(room);

	folders->count = 0;
	/* The specification says to ignore a relative path. */
	if (runtime != NULL && runtime[0] == '/')
		add(folders, "%s/hapax/run", runtime);
	if (state != NULL && state[0] == '/')
		add(folders, "%s/hapax/run", state);
	else if (home != NULL)
		add(folders, "%s/.local/state/hapax/run", home);
	/* A system service has neither of these. */
	if (geteuid() == 0)
		add(folders, "/run/hapax/run");
	folders->make_count = folders->count;
	/* A session of the same user keeps its locks here; cron lacks the variable. */
	if (runtime == NULL)
		add(folders, "/run/user/%u/hapax/run", (unsigned)geteuid());
}
