/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_schema.h - the ledger's tables: told apart from other files, made, migrated.
 *
 * The version stands in hapax_meta, not in the file's header: a joined ledger lives
 * in a database whose header belongs to the application. A file of our own has an
 * application_id besides, by which file(1) and we know it.
 */
#ifndef HX_STORE_SQLITE_SQLITE_SCHEMA_H
#define HX_STORE_SQLITE_SQLITE_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/clock.h>
#include <hapax/error.h>

#include "store/sqlite/sqlite_connection.h"

enum {
	HX_SQLITE_SCHEMA_VERSION = 1,
	HX_SQLITE_APPLICATION_ID = 0x68707831, /* "hpx1" */
};

/* A list of SQL texts: the n-th one leads from version n to n + 1. */
struct hx_sqlite_migrations {
	const char *const *texts;
	size_t count;
};

/* Those of this version of hapax. */
struct hx_sqlite_migrations hx_sqlite_schema_migrations(void);

/* What a database holds. */
struct hx_sqlite_schema {
	int64_t version; /* 0: no ledger */
	bool is_ours;    /* a file of our own, made by the store's URL */
	bool is_empty;   /* no table at all */
};

/*
 * Read what the database holds, changing nothing. HAPAX_ERR_CORRUPT: it is not a
 * database, or what is named like a ledger is none. HAPAX_ERR_UNSUPPORTED: made by
 * a version that knows more migrations than these.
 */
enum hapax_status hx_sqlite_schema_inspect(
	struct hx_sqlite_connection *connection, struct hx_sqlite_migrations migrations,
	struct hx_sqlite_schema *ret_schema, struct hapax_error *err);

/*
 * Say why the ledger was not read. HAPAX_ERR_CORRUPT when what is there is no
 * database or no ledger; else as hx_sqlite_connection_fail().
 */
enum hapax_status hx_sqlite_schema_fail(
	struct hx_sqlite_connection *connection, int code, struct hapax_error *err);

/*
 * HAPAX_ERR_INVALID, with advice, when the database is another program's and holds
 * no ledger: opening by URL makes no tables in there, only a join does.
 */
enum hapax_status hx_sqlite_schema_refuse_foreign(
	const struct hx_sqlite_connection *connection, const struct hx_sqlite_schema *schema,
	struct hapax_error *err);

/*
 * Bring the ledger to the last version, in one transaction; many processes may try
 * at once. as_own marks an empty file as ours. The connection is in no transaction.
 */
enum hapax_status hx_sqlite_schema_migrate(
	struct hx_sqlite_connection *connection, struct hx_sqlite_migrations migrations,
	bool as_own, const struct hapax_clock *clock, struct hapax_error *err);

#endif
