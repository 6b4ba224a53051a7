/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_limit.c - how much memory this process may use.
 *
 * /proc/self/cgroup names the group of the process, as seen from the root of its cgroup namespace:
 * "0::/a/b" in v2, "4:memory:/a/b" in v1. Without a namespace of its own a container sees the
 * host's path there, which does not exist below its /sys/fs/cgroup; the mount's root is then the
 * container's own group. So every parent is read, up to the mount's root, and missing ones are
 * skipped.
 */
#include "base/memory_limit.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <hapax/bytes.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/io.h"

enum {
	PATH_SIZE = 4096,
	FILE_SIZE_MAX = 64 * 1024,
};

/* Where groups are mounted, and the file with the limit. */
struct hierarchy {
	const char *mount;
	const char *file;
};

static const struct hierarchy v1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes"};
static const struct hierarchy v2 = {"/sys/fs/cgroup", "memory.max"};
static const struct hierarchy v2_beside_v1 = {"/sys/fs/cgroup/unified", "memory.max"};

/* The number at the front of a text; false: there is none, or it is not below 2^64. */
static bool read_number(struct hapax_bytes text, uint64_t *ret)
{
	const unsigned char *at = text.data;
	uint64_t value = 0;
	size_t i = 0;

	for (; i < text.size && at[i] >= '0' && at[i] <= '9'; i++) {
		if (value > (UINT64_MAX - (uint64_t)(at[i] - '0')) / 10)
			return false;
		value = value * 10 + (uint64_t)(at[i] - '0');
	}
	*ret = value;
	return i > 0;
}

static bool read_file(
	const struct hx_io *io, const char *root, const char *path, struct hapax_buf *text)
{
	char whole[PATH_SIZE];
	int size = snprintf(whole, sizeof(whole), "%s%s", root, path);

	hx_buf_clear(text);
	return size > 0 && (size_t)size < sizeof(whole) &&
		hx_io_read_all(io, whole, FILE_SIZE_MAX, text, NULL) == HAPAX_OK;
}

/* The smaller of two limits, where 0 is none. */
static uint64_t smaller(uint64_t one, uint64_t other)
{
	if (one == 0 || other == 0)
		return one + other;
	return one < other ? one : other;
}

/* Of the group at path and its parents; path is changed. */
static uint64_t group_limit(
	const struct hx_io *io, const char *root, const struct hierarchy *hierarchy, char *path,
	struct hapax_buf *text)
{
	char file[PATH_SIZE];
	uint64_t limit = 0;
	uint64_t value;

	for (;;) {
		char *slash = strrchr(path, '/');
		int size = snprintf(
			file, sizeof(file), "%s%s/%s", hierarchy->mount, path, hierarchy->file);

		/* "max", in v2, is not a number: no limit. */
		if (size > 0 && (size_t)size < sizeof(file) && read_file(io, root, file, text) &&
		    read_number(hapax_buf_bytes(text), &value))
			limit = smaller(limit, value);
		if (slash == NULL)
			return limit;
		*slash = '\0';
	}
}

/* Is name one of the controllers in "cpu,memory"? */
static bool has_memory(const char *list, size_t size)
{
	while (size > 0) {
		const char *comma = memchr(list, ',', size);
		size_t part = comma == NULL ? size : (size_t)(comma - list);

		if (part == 6 && memcmp(list, "memory", 6) == 0)
			return true;
		part += comma != NULL;
		list += part;
		size -= part;
	}
	return false;
}

/* "4:memory:/a/b" or "0::/a/b". */
static uint64_t line_limit(
	const struct hx_io *io, const char *root, const char *line, size_t size,
	struct hapax_buf *text)
{
	const char *first = memchr(line, ':', size);
	const char *second =
		first == NULL ? NULL : memchr(first + 1, ':', size - (size_t)(first + 1 - line));
	char path[PATH_SIZE];
	size_t path_size;

	if (second == NULL)
		return 0;
	path_size = size - (size_t)(second + 1 - line);
	if (path_size >= sizeof(path))
		return 0;
	memcpy(path, second + 1, path_size);
	path[path_size] = '\0';
	/* A group outside of the namespace: only the mount's root can be read. */
	if (strstr(path, "..") != NULL || strcmp(path, "/") == 0)
		path[0] = '\0';
	if (second == first + 1) {
		char again[PATH_SIZE];

		memcpy(again, path, path_size + 1);
		return smaller(
			group_limit(io, root, &v2, path, text),
			group_limit(io, root, &v2_beside_v1, again, text));
	}
	if (has_memory(first + 1, (size_t)(second - first - 1)))
		return group_limit(io, root, &v1, path, text);
	return 0;
}

/* "MemTotal:       16384 kB", the first line. */
static uint64_t machine_memory(const struct hx_io *io, const char *root, struct hapax_buf *text)
{
	static const char name[] = "MemTotal:";
	const char *at;
	size_t size;
	uint64_t kib;

	if (!read_file(io, root, "/proc/meminfo", text))
		return 0;
	at = memmem(text->data, text->size, name, sizeof(name) - 1);
	if (at == NULL)
		return 0;
	at += sizeof(name) - 1;
	size = (size_t)((const char *)text->data + text->size - at);
	while (size > 0 && *at == ' ') {
		at++;
		size--;
	}
	if (!read_number(hx_bytes(at, size), &kib) || kib > UINT64_MAX / 1024)
		return 0;
	return kib * 1024;
}

uint64_t hx_memory_limit(const struct hx_io *io, const char *root)
{
	struct hapax_buf groups;
	struct hapax_buf text;
	uint64_t limit;
	size_t at = 0;

	hx_buf_init(&groups, FILE_SIZE_MAX);
	hx_buf_init(&text, FILE_SIZE_MAX);
	limit = machine_memory(io, root, &text);
	if (!read_file(io, root, "/proc/self/cgroup", &groups))
		hx_buf_clear(&groups);
	while (at < groups.size) {
		const char *line = (const char *)groups.data + at;
		const char *end = memchr(line, '\n', groups.size - at);
		size_t size = end == NULL ? groups.size - at : (size_t)(end - line);

		/* v1 expresses "no limit" as a number larger than any machine's memory. */
		limit = smaller(limit, line_limit(io, root, line, size, &text));
		at += size + 1;
	}
	hx_buf_done(&groups);
	hx_buf_done(&text);
	return limit;
}
