/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meta.h - the one row of the ledger that every transaction reads first.
 */
#ifndef HX_STORE_SQLITE_META_H
#define HX_STORE_SQLITE_META_H

#include <stdint.h>

#include <hapax/record.h>

#include "store/clock_mark.h"
#include "store/sqlite/sqlite_connection.h"

struct hx_sqlite_meta {
	int64_t version;                         /* of the schema; only a migration changes it */
	uint64_t token;                          /* the last one granted */
	uint64_t counts[HAPAX_STATE_PARKED + 1]; /* records by state; ABSENT stays 0 */
	struct hx_clock_mark mark;
};

/* SQLITE_CORRUPT: the row is missing or invalid. */
int hx_sqlite_meta_load(struct hx_sqlite_connection *connection, struct hx_sqlite_meta *ret_meta);

int hx_sqlite_meta_save(struct hx_sqlite_connection *connection, const struct hx_sqlite_meta *meta);

/* All records, expired ones included. */
uint64_t hx_sqlite_meta_records(const struct hx_sqlite_meta *meta);

#endif
