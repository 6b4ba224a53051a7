/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_folder.h - where the locks of runs on this host are.
 */
#ifndef HX_CLI_RUN_RUN_FOLDER_H
#define HX_CLI_RUN_RUN_FOLDER_H

#include <stddef.h>

/* PATH_MAX of Linux, as for files everywhere here. */
enum { HX_RUN_PATH_SIZE = 4096 };
enum { HX_RUN_FOLDERS_MAX = 4 };

/*
 * A lock is made in the first folder that can be used, and looked for in all of them: a
 * shell has XDG_RUNTIME_DIR, cron has not.
 */
struct hx_cmd_run_folders {
	char paths[HX_RUN_FOLDERS_MAX][HX_RUN_PATH_SIZE];
	size_t make_count; /* in these one may be made */
	size_t count;
};

/* From the environment. May find none. */
void hx_cmd_run_folders_find(struct hx_cmd_run_folders *folders);

#endif
