/* SPDX-License-Identifier: Apache-2.0 */
#include "support/temp_dir.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

void temp_dir_init(struct temp_dir *dir)
{
	const char *parent = getenv("HAPAX_TEST_DIR");

	if (!parent || !*parent)
		parent = getenv("TMPDIR");
	if (!parent || !*parent)
		parent = "/tmp";
	int size = snprintf(dir->path, sizeof(dir->path), "%s/hapax-test-XXXXXX", parent);
	if (size < 0 || (size_t)size >= sizeof(dir->path) || !mkdtemp(dir->path)) {
		perror(parent);
		abort();
	}
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
	(void)status;
	(void)type;
	(void)place;
	return remove(path);
}

void temp_dir_done(struct temp_dir *dir)
{
	if (nftw(dir->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0)
		perror(dir->path);
}
