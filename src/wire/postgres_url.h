/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_url.h - URLs of PostgreSQL that libpq reads in another way than their author.
 *
 * libpq ends a password at its first '@' or '/', and would show the rest in messages as host, port
 * or database. Such a URL is refused before libpq sees it.
 *
 * Threads: any.
 */
#ifndef HX_WIRE_POSTGRES_URL_H
#define HX_WIRE_POSTGRES_URL_H

#include <stdbool.h>

/* Is the text free of a '@' behind the slash that ends host and port? */
bool hx_postgres_url_is_good(const char *url);

/* Is the value, which libpq has read for keyword, what it should be? It may be NULL. */
bool hx_postgres_url_part_is_good(const char *keyword, const char *value);

#endif
