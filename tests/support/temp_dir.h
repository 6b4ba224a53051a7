/* SPDX-License-Identifier: Apache-2.0 */
/*
 * temp_dir.h - a folder of its own for one test, gone when it ends.
 *
 * Under HAPAX_TEST_DIR, else TMPDIR, else /tmp. A failure to make one ends the
 * test program: nothing that follows would mean anything.
 */
#ifndef TEST_SUPPORT_TEMP_DIR_H
#define TEST_SUPPORT_TEMP_DIR_H

struct temp_dir {
	char path[200];
};

void temp_dir_init(struct temp_dir *dir);

/* Remove it with everything in it. */
void temp_dir_done(struct temp_dir *dir);

#endif
