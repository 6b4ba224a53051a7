/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_store.h - "sqlite:FILE", one file for many processes. See README.md.
 */
#ifndef HX_STORE_SQLITE_STORE_H
#define HX_STORE_SQLITE_STORE_H

#include <hapax/store.h>

/*
 * See hapax_store_open(). path is a plain file name, not a URI. A file that is not a ledger is
 * refused and unchanged: HAPAX_ERR_CORRUPT if it is not an SQLite database, HAPAX_ERR_INVALID if
 * it is another program's, HAPAX_ERR_UNSUPPORTED if a newer hapax wrote it.
 */
enum hapax_status hx_sqlite_open(
	const char *url, const char *path, const struct hapax_store_options *options,
	struct hapax_store **ret_store, struct hapax_error *err);

#endif
