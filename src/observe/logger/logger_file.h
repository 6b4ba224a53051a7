/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logger_file.h - a file that a log appends to.
 *
 * The writer of a log holds the file locked, so that two daemons do not write the same one and
 * 'hapax decisions erase' does not rewrite one that still grows. A file that another program has
 * renamed is still written; the next one is opened when the log gets it by hx_logger_reopen().
 *
 * Threads: any.
 */
#ifndef HX_LOGGER_FILE_H
#define HX_LOGGER_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/error.h>

/* Open a file, created for its owner alone if absent, and lock it. INVALID: another one writes it. */
enum hapax_status hx_logger_file_open(const char *path, int *ret_file, struct hapax_error *err);

void hx_logger_file_close(int file);

/* Is that the file at path? */
bool hx_logger_file_is_at(int file, const char *path);

/*
 * Append at the present end, which a rotation may have moved. Returns 0 or a negative errno; the
 * file is then as before.
 */
int hx_logger_file_append(int file, const void *data, size_t size);

#endif
