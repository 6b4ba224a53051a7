/* SPDX-License-Identifier: Apache-2.0 */
/* append.c - no engine at all: append 4 KiB to a file, fdatasync. What a lone commit is held to. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "contest.h"
#include "durable.h"

enum { APPEND_BYTES = 4096 };

static int file;

static void engine_open(const char *folder, uint64_t threads)
{
	char path[600];

	(void)threads;
	snprintf(path, sizeof(path), "%s/log", folder);
	file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (file < 0)
		contest_fail("'%s' was not made", path);
}

static uint64_t engine_mark(uint64_t thread, const char (*keys)[KEY_TEXT_SIZE], uint64_t count)
{
	static char page[APPEND_BYTES];

	(void)thread;
	memcpy(page, keys[0], KEY_TEXT_SIZE);
	if (write(file, page, sizeof(page)) != (ssize_t)sizeof(page) || fdatasync(file) != 0)
		contest_fail("the append failed");
	return count;
}

static void engine_close(void)
{
	close(file);
}

int main(int argc, char **argv)
{
	const struct durable_engine engine = {
		.name = "append and fdatasync",
		.version = "4 KiB",
		.open = engine_open,
		.mark = engine_mark,
		.close = engine_close,
	};

	return durable_main(argc, argv, &engine);
}
