/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bracket.h - parts of the caller's transaction that can be undone by themselves.
 *
 *  (1) A bracket is a savepoint named by its depth, or, if no transaction was open, the
 *      transaction itself, which is then ours to commit.
 *  (2) When one of ours is gone, the transaction was ended behind our back, by the caller's
 *      own SQL. From then on nothing is kept, and the store is latched.
 *  (3) If no transaction was open when the first began, none is when it has ended.
 *
 * Threads: the one that uses the connection.
 */
#ifndef HX_STORE_POSTGRES_BRACKET_H
#define HX_STORE_POSTGRES_BRACKET_H

#include <stdbool.h>

#include <libpq-fe.h>

#include <hapax/ext/store_ops.h>

struct hx_postgres_brackets {
	PGconn *conn;
	unsigned depth;     /* that are open */
	unsigned own_depth; /* of the one that began the transaction; 0: it is the caller's */
	bool is_lost;       /* join again */
};

/* As hapax_store_bracket_fn. */
enum hapax_status hx_postgres_bracket(
	struct hx_postgres_brackets *brackets, enum hapax_bracket bracket, struct hapax_error *err);

#endif
