/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_schema.h - the ledger's tables: recognizes, creates and migrates them.
 *
 * The version is in hapax_meta, not in the file's header: a joined ledger is in a database whose
 * header belongs to the application. Our own files also have an application_id, by which file(1)
 * and we recognize them.
 */
#ifndef HX_STORE_SQLITE_SQLITE_SCHEMA_H
#define HX_STORE_SQLITE_SQLITE_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/clock.h>
#include <hapax/error.h>

#include "store/sqlite/sqlite_connection.h"

enum {
	HX_SQLITE_SCHEMA_VERSION = 2,
	HX_SQLITE_APPLICATION_ID = 0x68707831, /* "hpx1" */
};

/* A list of SQL texts: the n-th leads from version n to n + 1. */
struct hx_sqlite_migrations {
	const char *const *texts;
	size_t count;
};

/* The migrations of this version of hapax. */
struct hx_sqlite_migrations hx_sqlite_schema_migrations(void);

/* The contents of a database. */
struct hx_sqlite_schema {
	int64_t version; /* 0: no ledger */
	bool is_ours;    /* our own file, created by the store's URL */
	bool is_empty;   /* no table at all */
};

/*
 * Inspect the database without changes. HAPAX_ERR_CORRUPT: it is not a database, or its tables
 * are not a ledger. HAPAX_ERR_UNSUPPORTED: a version with more migrations wrote it.
 */
enum hapax_status hx_sqlite_schema_inspect(
	struct hx_sqlite_connection *connection, struct hx_sqlite_migrations migrations,
	struct hx_sqlite_schema *ret_schema, struct hapax_error *err);

/*
 * Report why the ledger was not read. HAPAX_ERR_CORRUPT: not a database or not a ledger; else see
 * hx_sqlite_connection_fail().
 */
enum hapax_status hx_sqlite_schema_fail(
	struct hx_sqlite_connection *connection, int code, struct hapax_error *err);

/*
 * HAPAX_ERR_INVALID, with a hint, if the database belongs to another program and has no ledger: a
 * URL creates no tables there, only a join does.
 */
enum hapax_status hx_sqlite_schema_refuse_foreign(
	const struct hx_sqlite_connection *connection, const struct hx_sqlite_schema *schema,
	struct hapax_error *err);

/*
 * Migrate the ledger to the last version in one transaction; many processes may try at once.
 * as_own marks an empty file as ours. The connection must not be in a transaction.
 */
enum hapax_status hx_sqlite_schema_migrate(
	struct hx_sqlite_connection *connection, struct hx_sqlite_migrations migrations,
	bool as_own, const struct hapax_clock *clock, struct hapax_error *err);

#endif
