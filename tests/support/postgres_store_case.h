/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_store_case.h - a store on the server of postgres_case.h: open it, be refused, create its
 * tables, check a key. What must succeed and does not fails the test.
 */
#ifndef TEST_SUPPORT_POSTGRES_STORE_CASE_H
#define TEST_SUPPORT_POSTGRES_STORE_CASE_H

#include <hapax/hapax.h>

/* Without housekeeping; NULL: it was not opened. */
struct hapax_store *postgres_store_open(const char *url, struct hapax_error *err);

/* It does not open, with that status, and the message says what to do. */
void postgres_store_must_refuse(const char *url, enum hapax_status status, const char *hint);

/* options as in postgres_case_url(). */
void postgres_store_migrate(const char *options);

enum hapax_status postgres_store_check(
	struct hapax_store *store, const char *tenant, const char *key, enum hapax_outcome *ret);

#endif
