/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h - the file of an SQLite database: its name and its creation.
 *
 * Threads: any.
 */
#ifndef HX_SQLITE_FILE_H
#define HX_SQLITE_FILE_H

/*
 * The path for SQLite, or NULL: no memory. Many builds of SQLite take "file:..." for a URI and
 * ":memory:" for no file; a "./" in front makes both plain names. Free it with hx_free().
 */
char *hx_sqlite_plain_path(const char *name);

/*
 * Create the file if it is absent, for its owner alone (0600): keys and results are private, and
 * SQLite would follow the umask. SQLite's other files copy this mode. SQLite reports failures
 * better. path is a plain one.
 */
void hx_sqlite_make_private(const char *path);

#endif
