/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_place.h - parses the URL of a PostgreSQL store.
 *
 *	postgres://[user[:password]@][host[:port]][/database][?option=value&...]
 *
 * libpq reads the URL (postgresql:// is the same), its environment and ~/.pgpass. Our own options
 * are hidden from libpq: schema=NAME of the ledger (public), tenant=NAME the only tenant of this
 * store, pool=N connections (4), require=durable.
 */
#ifndef HX_STORE_POSTGRES_POSTGRES_PLACE_H
#define HX_STORE_POSTGRES_POSTGRES_PLACE_H

#include <stdbool.h>

#include <hapax/error.h>

#include "base/buf.h"
#include "base/limits.h"

enum {
	HX_POSTGRES_URL_SIZE = 2048,
	HX_POSTGRES_NAME_SIZE = 64, /* of an identifier, with its NUL */
	HX_POSTGRES_POOL_DEFAULT = 4,
	HX_POSTGRES_POOL_MAX = 64,
};

struct hx_postgres_place {
	char url[HX_POSTGRES_URL_SIZE]; /* for libpq */
	char schema[HX_POSTGRES_NAME_SIZE];
	char tenant[HX_SCOPE_PART_SIZE_MAX + 1]; /* empty: all */
	unsigned pool;
	bool requires_durable;
};

/* INVALID: err says what is wrong, and never contains the password. */
enum hapax_status hx_postgres_place_parse(
	const char *text, struct hx_postgres_place *ret_place, struct hapax_error *err);

/* True if it may also stand quoted inside SQL texts, as sql_append() puts it there. */
bool hx_postgres_schema_is_good(const char *schema);

/* text with every "@@" replaced by the quoted schema and a dot, NUL at the end. */
enum hapax_status hx_postgres_sql_append(
	struct hapax_buf *buf, const char *schema, const char *text);

#endif
