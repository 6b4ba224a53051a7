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

#include "base/buf.h"
#include "store/postgres/postgres_place.h"

/* What a migration says when it fails. */
struct hx_postgres_migrator_words {
	const char *failed;
	const char *uncertain; /* the answer to COMMIT was lost */
	const char *no_memory;
};

/* A connection that makes or changes tables and functions; the store and the outbox use it. */
struct hx_postgres_migrator {
	const struct hx_postgres_migrator_words *words;
	struct hx_postgres_place place;
	struct pg_conn *conn;
	struct hapax_buf sql; /* scratch */
};

/* Connect to url. Close it also after a failure. Blocks. */
enum hapax_status hx_postgres_migrator_open(
	struct hx_postgres_migrator *migrator, const char *url,
	const struct hx_postgres_migrator_words *words, struct hapax_error *err);
void hx_postgres_migrator_close(struct hx_postgres_migrator *migrator);

/*
 * Run SQL text of one or more statements ("@@" as in postgres_place.h). *ret_number, if not NULL,
 * is the number that the last one selects; it stays if there is none.
 */
enum hapax_status hx_postgres_migrator_run(
	struct hx_postgres_migrator *migrator, const char *text, int64_t *ret_number,
	struct hapax_error *err);

/*
 * Note owner and grants of the functions, within the transaction and before a version that drops
 * some of them. Regrant gives them to the functions of the same names that replaced those.
 */
enum hapax_status hx_postgres_migrator_keep_grants(
	struct hx_postgres_migrator *migrator, struct hapax_error *err);
enum hapax_status hx_postgres_migrator_regrant(
	struct hx_postgres_migrator *migrator, struct hapax_error *err);

/* See hapax_store_migrate(). Blocks. */
enum hapax_status hx_postgres_migrate(
	const char *url, struct hapax_migration *ret_migration, struct hapax_error *err);

#endif
