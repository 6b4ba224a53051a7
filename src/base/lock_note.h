/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock_note.h - the text of a lock file: the pid of its holder and, if the holder is a daemon, the
 * URL of its API. It is for people; only the lock itself counts.
 *
 * Threads: any.
 */
#ifndef HX_LOCK_NOTE_H
#define HX_LOCK_NOTE_H

#include <stdbool.h>

struct hx_io;

enum { HX_LOCK_NOTE_PID_SIZE = 24, HX_LOCK_NOTE_URL_SIZE = 160 };

/* Digits, and characters that a terminal and a shell take as they are: any file may hold others. */
struct hx_lock_note {
	char pid[HX_LOCK_NOTE_PID_SIZE]; /* empty: nothing was written yet */
	char url[HX_LOCK_NOTE_URL_SIZE]; /* empty: the holder has no API */
};

/* Read the note of an open file. False: it holds something else; *ret_note is empty then. */
bool hx_lock_note_read(const struct hx_io *io, int file, struct hx_lock_note *ret_note);

/* The same by path. False also if there is no such file. */
bool hx_lock_note_find(const struct hx_io *io, const char *path, struct hx_lock_note *ret_note);

/* Write the note of this process to file, which it has locked. Never synced. */
void hx_lock_note_write(const struct hx_io *io, int file);

/* Add url to the note at path, if this process wrote that. A URL that does not fit is left out. */
void hx_lock_note_add(const struct hx_io *io, const char *path, const char *url);

#endif
