/* SPDX-License-Identifier: Apache-2.0 */
/*
 * migrate.h - the ledger's tables and functions: made, and brought up to date.
 *
 * Opening a store changes nothing in a database; this does, and in one transaction. The
 * tables change by versions, one SQL file each; the functions are replaced as a whole.
 *
 * Threads: any; one connection of its own.
 */
#ifndef HX_STORE_POSTGRES_MIGRATE_H
#define HX_STORE_POSTGRES_MIGRATE_H

#include <hapax/store.h>

/* See hapax_store_migrate(). Blocks. */
enum hapax_status hx_postgres_migrate(
	const char *url, struct hapax_migration *ret_migration, struct hapax_error *err);

#endif
