/* SPDX-License-Identifier: Apache-2.0 */
#include "support/log_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void must(bool is_done, const char *what, const char *path)
{
	if (is_done)
		return;
	printf("# %s was not %s\n", path, what);
	abort();
}

const char *log_files_directory(const struct store_case *c)
{
	return c->url + strlen("file:");
}

void log_files_path(const struct store_case *c, const char *name, char path[LOG_FILES_PATH_SIZE])
{
	(void)snprintf(path, LOG_FILES_PATH_SIZE, "%s/%s", log_files_directory(c), name);
}

void log_files_find(
	const struct store_case *c, const char *prefix, bool is_last,
	char name[LOG_FILES_NAME_SIZE])
{
	DIR *dir = opendir(log_files_directory(c));

	must(dir != NULL, "opened", log_files_directory(c));
	name[0] = '\0';
	for (struct dirent *entry; (entry = readdir(dir));) {
		int order = strcmp(entry->d_name, name);

		if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 ||
		    !strstr(entry->d_name, ".seg"))
			continue;
		if (name[0] == '\0' || (is_last ? order > 0 : order < 0))
			(void)snprintf(name, LOG_FILES_NAME_SIZE, "%s", entry->d_name);
	}
	closedir(dir);
}

void log_files_copy(const char *from, const char *to)
{
	char command[4000];

	(void)snprintf(command, sizeof(command), "cp -r '%s' '%s'", from, to);
	must(system(command) == 0, "copied", from);
}

void log_files_remove(const char *path)
{
	char command[4000];

	(void)snprintf(command, sizeof(command), "rm -rf '%s' '%s'.*", path, path);
	must(system(command) == 0, "removed", path);
}

int log_files_read(const struct store_case *c, const char *name, struct hapax_bytes *ret_bytes)
{
	static unsigned char bytes[4 << 20];
	char path[LOG_FILES_PATH_SIZE];
	ssize_t size;
	int file;

	log_files_path(c, name, path);
	file = open(path, O_RDWR);
	must(file >= 0, "opened", path);
	size = pread(file, bytes, sizeof(bytes), 0);
	must(size > 0 && size < (ssize_t)sizeof(bytes), "read", path);
	*ret_bytes = (struct hapax_bytes){bytes, (size_t)size};
	return file;
}

off_t log_files_place(struct hapax_bytes bytes, const char *text)
{
	const unsigned char *at = memmem(bytes.data, bytes.size, text, strlen(text));

	return at ? at - (const unsigned char *)bytes.data : -1;
}

static bool damage(const struct store_case *c, const char *name, const char *text)
{
	struct hapax_bytes bytes;
	int file = log_files_read(c, name, &bytes);
	off_t at = log_files_place(bytes, text);

	must(at < 0 || pwrite(file, "\xff", 1, at) == 1, "changed", name);
	must(close(file) == 0, "closed", name);
	return at >= 0;
}

void log_files_damage(const struct store_case *c, const char *text)
{
	DIR *dir = opendir(log_files_directory(c));
	bool is_done = false;

	must(dir != NULL, "opened", log_files_directory(c));
	for (struct dirent *entry; !is_done && (entry = readdir(dir));)
		is_done = strncmp(entry->d_name, "log-", 4) == 0 && damage(c, entry->d_name, text);
	closedir(dir);
	must(is_done, "found in the log", text);
}
