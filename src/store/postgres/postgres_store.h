/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_store.h - "postgres://", one ledger in a database. See README.md.
 */
#ifndef HX_STORE_POSTGRES_STORE_H
#define HX_STORE_POSTGRES_STORE_H

#include <hapax/store.h>

struct hx_postgres_place;
struct pg_conn;

/* See hapax_store_open() and, for the URL, postgres_place.h. Blocks until connected. */
enum hapax_status hx_postgres_open(
	const char *url, const char *path, const struct hapax_store_options *options,
	struct hapax_store **ret_store, struct hapax_error *err);

/* The place of a store of hx_postgres_open(), for further connections; NULL: another kind. */
const struct hx_postgres_place *hx_postgres_place_of(const struct hapax_store *store);

/* The connection that a store was joined to, and the ledger's schema; NULL: another kind. */
struct pg_conn *hx_postgres_joined(const struct hapax_store *store, const char **ret_schema);

/* Refuse options that PostgreSQL does not support. */
enum hapax_status hx_postgres_refuse_options(
	const struct hapax_store_options *options, struct hapax_error *err);

#endif
