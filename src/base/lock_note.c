/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock_note.c - the text of a lock file.
 */
#include "base/lock_note.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "base/process.h"

static const char digits[] = "0123456789";
static const char url_bytes[] = "abcdefghijklmnopqrstuvwxyz"
				"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				"0123456789-._~:/[]+@,=";

static bool is_url(const char *text)
{
	return strncmp(text, "http", 4) == 0 && text[strspn(text, url_bytes)] == '\0' &&
		strlen(text) < HX_LOCK_NOTE_URL_SIZE;
}

/* Cut the line of these bytes from *rest. False: it has others, no end, or does not fit. */
static bool take_line(char **rest, const char *bytes, char *ret_line, size_t size)
{
	size_t length = strspn(*rest, bytes);

	if (length == 0 || length >= size || (*rest)[length] != '\n')
		return false;
	memcpy(ret_line, *rest, length);
	ret_line[length] = '\0';
	*rest += length + 1;
	return true;
}

bool hx_lock_note_read(const struct hx_io *io, int file, struct hx_lock_note *ret_note)
{
	char text[HX_LOCK_NOTE_PID_SIZE + HX_LOCK_NOTE_URL_SIZE];
	struct hx_lock_note note = {0};
	char *rest = text;
	ssize_t size = hx_io_read_full(io, file, text, sizeof(text), 0);
	bool is_note = size >= 0 && (size_t)size < sizeof(text);

	*ret_note = note;
	if (!is_note || size == 0)
		return is_note;
	text[size] = '\0';
	is_note = take_line(&rest, digits, note.pid, sizeof(note.pid));
	if (is_note && rest != text + size)
		is_note = take_line(&rest, url_bytes, note.url, sizeof(note.url)) &&
			is_url(note.url) && rest == text + size;
	if (is_note)
		*ret_note = note;
	return is_note;
}

bool hx_lock_note_find(const struct hx_io *io, const char *path, struct hx_lock_note *ret_note)
{
	int file = io->ops->open(io->context, path, HX_IO_READ, 0);
	bool is_note;

	memset(ret_note, 0, sizeof(*ret_note));
	if (file < 0)
		return false;
	is_note = hx_lock_note_read(io, file, ret_note);
	(void)io->ops->close(io->context, file);
	return is_note;
}

static void write_text(const struct hx_io *io, int file, const char *text)
{
	/* First the new text: a reader finds a holder at every moment. */
	(void)hx_io_write_full(io, file, text, strlen(text), 0);
	(void)io->ops->ftruncate(io->context, file, strlen(text));
}

static void format_pid(char text[HX_LOCK_NOTE_PID_SIZE])
{
	int size = snprintf(text, HX_LOCK_NOTE_PID_SIZE, "%ld", (long)hx_process_id());

	assert(size > 0);
	assert(size < HX_LOCK_NOTE_PID_SIZE);
}

void hx_lock_note_write(const struct hx_io *io, int file)
{
	char pid[HX_LOCK_NOTE_PID_SIZE];
	char text[HX_LOCK_NOTE_PID_SIZE + 1];

	format_pid(pid);
	(void)snprintf(text, sizeof(text), "%s\n", pid);
	write_text(io, file, text);
}

void hx_lock_note_add(const struct hx_io *io, const char *path, const char *url)
{
	char pid[HX_LOCK_NOTE_PID_SIZE];
	char text[HX_LOCK_NOTE_PID_SIZE + HX_LOCK_NOTE_URL_SIZE + 1];
	struct hx_lock_note note;
	int file;

	format_pid(pid);
	if (!is_url(url) || !hx_lock_note_find(io, path, &note) || strcmp(note.pid, pid) != 0)
		return;
	file = io->ops->open(io->context, path, HX_IO_READ | HX_IO_WRITE, 0);
	if (file < 0)
		return;
	(void)snprintf(text, sizeof(text), "%s\n%s\n", pid, url);
	write_text(io, file, text);
	(void)io->ops->close(io->context, file);
}
