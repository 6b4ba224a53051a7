/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offset.h - a consumer's progress, in the database that holds its effects.
 *
 * All messages of a partition below the offset are done. An offset set in the transaction of an
 * effect commits or rolls back with it. Two transactions that set the same offset do not wait for
 * each other: one skips it.
 *
 * Threads: that of the connection. Blocks.
 */
#ifndef HX_STORE_POSTGRES_TX_OFFSET_H
#define HX_STORE_POSTGRES_TX_OFFSET_H

#include <stdint.h>

#include <libpq-fe.h>

#include <hapax/error.h>

/* The consumer group, topic and partition. */
struct hx_postgres_offset {
	const char *group;
	const char *topic;
	int32_t partition;
};

/* Call once for a connection, before the others. schema: that of the ledger. */
enum hapax_status hx_postgres_offset_prepare(
	PGconn *conn, const char *schema, struct hapax_error *err);

/* *ret_next is -1 if no offset was set. */
enum hapax_status hx_postgres_offset_get(
	PGconn *conn, const struct hx_postgres_offset *offset, int64_t *ret_next,
	struct hapax_error *err);

enum hapax_status hx_postgres_offset_set(
	PGconn *conn, const struct hx_postgres_offset *offset, int64_t next,
	struct hapax_error *err);

#endif
