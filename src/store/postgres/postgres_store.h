/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_store.h - "postgres://", one ledger in a database. See README.md.
 */
#ifndef HX_STORE_POSTGRES_STORE_H
#define HX_STORE_POSTGRES_STORE_H

#include <hapax/store.h>

/* See hapax_store_open(); place.h says what a URL may hold. Blocks until it is connected. */
enum hapax_status hx_postgres_open(
	const char *url, const char *path, const struct hapax_store_options *options,
	struct hapax_store **ret_store, struct hapax_error *err);

/* Options that a ledger in PostgreSQL cannot have. */
enum hapax_status hx_postgres_refuse_options(
	const struct hapax_store_options *options, struct hapax_error *err);

#endif
