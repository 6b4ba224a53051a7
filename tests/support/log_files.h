/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_files.h - the files of a file: store of a case, looked at and spoilt from outside.
 *
 * Whatever goes wrong ends the program with a message.
 */
#ifndef TEST_SUPPORT_LOG_FILES_H
#define TEST_SUPPORT_LOG_FILES_H

#include <stdbool.h>
#include <sys/types.h>

#include "support/store_case.h"

enum { LOG_FILES_PATH_SIZE = 600, LOG_FILES_NAME_SIZE = 256 };

const char *log_files_directory(const struct store_case *c);

void log_files_path(const struct store_case *c, const char *name, char path[LOG_FILES_PATH_SIZE]);

/* The last segment whose name begins with prefix, or the first one; "" if there is none. */
void log_files_find(
	const struct store_case *c, const char *prefix, bool is_last,
	char name[LOG_FILES_NAME_SIZE]);

/* A file or a folder with all that is in it. */
void log_files_copy(const char *from, const char *to);

/* And what repairs have left beside it. */
void log_files_remove(const char *path);

/* Open a segment and read all of it, into memory that the next call uses; the file. */
int log_files_read(const struct store_case *c, const char *name, struct hapax_bytes *ret_bytes);

/* Where text lies in a segment; -1: nowhere. */
off_t log_files_place(struct hapax_bytes bytes, const char *text);

/* Spoil the frame of the log that holds text, in whatever segment it is. */
void log_files_damage(const struct store_case *c, const char *text);

#endif
