/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h - the file of an SQLite database: its name, and how it is made.
 *
 * Threads: any.
 */
#ifndef HX_SQLITE_FILE_H
#define HX_SQLITE_FILE_H

/*
 * The path as SQLite must get it, or NULL: no memory. Many builds of SQLite take what begins
 * with "file:" for a URI and ":memory:" for no file; with a "./" in front both are plain names.
 * Free it with hx_free().
 */
char *hx_sqlite_plain_path(const char *name);

/*
 * Make the file if it is absent, for its owner alone (0600): keys and results are nobody else's
 * business, and SQLite would leave that to the umask; its other files take after this one. What
 * goes wrong here SQLite will say better. path is a plain one.
 */
void hx_sqlite_make_private(const char *path);

#endif
