/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_folder.h - where the locks of runs on this host are.
 */
#ifndef HX_CLI_RUN_RUN_FOLDER_H
#define HX_CLI_RUN_RUN_FOLDER_H

#include <stddef.h>

/* PATH_MAX of Linux, as for all files here. */
enum { HX_RUN_PATH_SIZE = 4096 };
enum { HX_RUN_FOLDERS_MAX = 4 };

/*
 * A lock is created in the first usable folder, and looked for in all of them: a shell has
 * XDG_RUNTIME_DIR, cron does not.
 */
struct hx_cmd_run_folders {
	char paths[HX_RUN_FOLDERS_MAX][HX_RUN_PATH_SIZE];
	size_t make_count; /* a lock may be created in these */
	size_t count;
};

/* Read the environment. May find no folder. */
void hx_cmd_run_folders_find(struct hx_cmd_run_folders *folders);

#endif
