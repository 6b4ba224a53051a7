/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offset.h - up to where a consumer is done, in the database that has its effects.
 *
 * Below the offset that is set all of a partition is done. Set in the transaction of an
 * effect, it stands or falls with it. Two transactions that set the same one do not wait for
 * each other: one of them leaves it to the other.
 *
 * Threads: that of the connection. Blocks.
 */
#ifndef HX_STORE_POSTGRES_TX_OFFSET_H
#define HX_STORE_POSTGRES_TX_OFFSET_H

#include <stdint.h>

#include <libpq-fe.h>

#include <hapax/error.h>

/* Whose: of which group, in which partition of which topic. */
struct hx_postgres_offset {
	const char *group;
	const char *topic;
	int32_t partition;
};

/* Once for a connection, before the others. schema: that of the ledger. */
enum hapax_status hx_postgres_offset_prepare(
	PGconn *conn, const char *schema, struct hapax_error *err);

/* *ret_next is -1 where nothing was set. */
enum hapax_status hx_postgres_offset_get(
	PGconn *conn, const struct hx_postgres_offset *offset, int64_t *ret_next,
	struct hapax_error *err);

enum hapax_status hx_postgres_offset_set(
	PGconn *conn, const struct hx_postgres_offset *offset, int64_t next,
	struct hapax_error *err);

#endif
