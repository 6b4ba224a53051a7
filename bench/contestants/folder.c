/* SPDX-License-Identifier: Apache-2.0 */
#include "folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "contest.h"

static unsigned long long bytes_seen;

void folder_make(const char *parent, char path[FOLDER_PATH_SIZE])
{
	int size = snprintf(path, FOLDER_PATH_SIZE, "%s/round-XXXXXX", parent);

	if (size < 0 || size >= FOLDER_PATH_SIZE || mkdtemp(path) == NULL)
		contest_fail("no folder can be made in '%s'", parent);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
	(void)status;
	(void)type;
	(void)place;
	return remove(path);
}

static int evict_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
	int file;

	(void)status;
	(void)place;
	if (type != FTW_F)
		return 0;
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return 0;
	(void)fdatasync(file);
	(void)posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
	(void)close(file);
	return 0;
}

static int count_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
	(void)path;
	(void)place;
	if (type == FTW_F)
		bytes_seen += (unsigned long long)status->st_blocks * 512;
	return 0;
}

void folder_remove(const char *path)
{
	if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0)
		contest_fail("'%s' was not removed", path);
}

static void copy_file(const char *source_path, const char *target_path)
{
	static char block[1 << 20];
	int source = open(source_path, O_RDONLY | O_CLOEXEC);
	int target = open(target_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ssize_t got = 0;

	while (source >= 0 && target >= 0 && (got = read(source, block, sizeof(block))) > 0)
		if (write(target, block, (size_t)got) != got)
			break;
	if (source < 0 || target < 0 || got != 0 || fsync(target) != 0)
		contest_fail("'%s' was not copied", source_path);
	(void)close(source);
	(void)close(target);
}

void folder_copy(const char *path, const char *target)
{
	DIR *dir = opendir(path);

	if (dir == NULL || mkdir(target, 0700) != 0)
		contest_fail("'%s' was not copied", path);
	for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		char from[2 * FOLDER_PATH_SIZE], to[2 * FOLDER_PATH_SIZE];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(from, sizeof(from), "%s/%s", path, entry->d_name);
		snprintf(to, sizeof(to), "%s/%s", target, entry->d_name);
		copy_file(from, to);
	}
	(void)closedir(dir);
}

unsigned long long folder_room(const char *path)
{
	struct statvfs room;

	if (statvfs(path, &room) != 0)
		return 0;
	return (unsigned long long)room.f_bavail * room.f_frsize;
}

void folder_evict(const char *path)
{
	(void)nftw(path, evict_entry, 16, FTW_PHYS);
}

unsigned long long folder_bytes(const char *path)
{
	bytes_seen = 0;
	(void)nftw(path, count_entry, 16, FTW_PHYS);
	return bytes_seen;
}
