/* SPDX-License-Identifier: Apache-2.0 */
/*
 * migrate.h - creates and updates the ledger's tables and functions.
 *
 * Opening a store changes nothing in a database; a migration does, in one transaction. The tables
 * change by versions, one SQL file each. The functions are replaced as a whole.
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
