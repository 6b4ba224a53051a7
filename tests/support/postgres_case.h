/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_case.h - a connection of the test's own to the server that tests/postgres/with_postgres
 * has started, and short ways to ask it things. Whatever fails ends the program with a message.
 */
#ifndef TEST_SUPPORT_POSTGRES_CASE_H
#define TEST_SUPPORT_POSTGRES_CASE_H

#include <stddef.h>

#include <libpq-fe.h>

/* A URL of the superuser; options follow as in "&schema=x". */
void postgres_case_url(char *url, size_t size, const char *options);

PGconn *postgres_case_connect(void);

/* The first column of the first row; "" when there is none. Valid until the next call. */
const char *postgres_case_query(PGconn *conn, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The same as a number. */
long long postgres_case_number(PGconn *conn, const char *sql);

#endif
