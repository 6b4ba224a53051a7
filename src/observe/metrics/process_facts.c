/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_facts.c - Linux's figures about this process (proc(5)).
 */
#include "observe/metrics/process_facts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"

enum { FILE_SIZE_MAX = 256 * 1024 };

/* Fields of /proc/self/stat, counted from the one after the name, which is field 3. */
enum {
	FIELD_UTIME = 14 - 3,
	FIELD_STIME = 15 - 3,
	FIELD_THREADS = 20 - 3,
	FIELD_START = 22 - 3,
	FIELD_VSIZE = 23 - 3,
	FIELD_RSS = 24 - 3,
	FIELDS = 25 - 3,
};

/* The whole file as text, or NULL. */
static const char *read_text(const struct hx_io *io, const char *path, struct hapax_buf *buf)
{
	hx_buf_clear(buf);
	if (hx_io_read_all(io, path, FILE_SIZE_MAX, buf, NULL) != HAPAX_OK ||
	    hx_buf_append_byte(buf, '\0') != HAPAX_OK)
		return NULL;
	return (const char *)buf->data;
}

/* The number after word at the beginning of a line. */
static bool find_number(const char *text, const char *word, uint64_t *ret)
{
	size_t size = strlen(word);

	for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, word, size) == 0) {
			*ret = strtoull(line + size, NULL, 10);
			return true;
		}
	}
	return false;
}

/* The name of the program is in parentheses, and may contain anything. */
static bool parse_stat(const char *text, uint64_t fields[FIELDS])
{
	const char *at = strrchr(text, ')');

	if (at == NULL || at[1] != ' ')
		return false;
	at += 2;
	for (size_t i = 0; i < FIELDS; i++) {
		fields[i] = strtoull(at, NULL, 10);
		at = strchr(at, ' ');
		if (at == NULL)
			return false;
		at++;
	}
	return true;
}

static int count_name(void *arg, const char *name)
{
	(void)name;
	++*(uint64_t *)arg;
	return 0;
}

static bool read_facts(
	const struct hx_io *io, struct hapax_buf *buf, struct hx_process_facts *facts)
{
	double ticks = (double)sysconf(_SC_CLK_TCK);
	uint64_t fields[FIELDS], boot = 0;
	const char *text = read_text(io, "/proc/self/stat", buf);

	if (text == NULL || !parse_stat(text, fields) || ticks <= 0)
		return false;
	facts->cpu_seconds = (double)(fields[FIELD_UTIME] + fields[FIELD_STIME]) / ticks;
	facts->threads = fields[FIELD_THREADS];
	facts->virtual_bytes = fields[FIELD_VSIZE];
	facts->resident_bytes = fields[FIELD_RSS] * (uint64_t)sysconf(_SC_PAGESIZE);
	text = read_text(io, "/proc/stat", buf);
	if (text != NULL && find_number(text, "btime ", &boot))
		facts->start_seconds = (double)boot + (double)fields[FIELD_START] / ticks;
	text = read_text(io, "/proc/self/limits", buf);
	/* "unlimited" is read as 0. */
	if (text != NULL)
		(void)find_number(text, "Max open files", &facts->max_fds);
	(void)io->ops->list(io->context, "/proc/self/fd", count_name, &facts->open_fds);
	return true;
}

bool hx_process_facts_read(const struct hx_io *io, struct hx_process_facts *ret_facts)
{
	struct hx_process_facts facts = {0};
	struct hapax_buf buf;
	bool is_read;

	hx_buf_init(&buf, FILE_SIZE_MAX + 1);
	is_read = read_facts(io, &buf, &facts);
	hx_buf_done(&buf);
	if (is_read)
		*ret_facts = facts;
	return is_read;
}
