/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_case.h - a store case on a file: store, and short ways to look at its directory.
 */
#ifndef TEST_SUPPORT_LOG_CASE_H
#define TEST_SUPPORT_LOG_CASE_H

#include <stdint.h>

#include "support/store_case.h"

/* For cmocka: *state is a struct store_case, its store is open. */
int log_case_set_up(void **state);
int log_case_tear_down(void **state);

const char *log_case_directory(const struct store_case *c);

void log_case_close(struct store_case *c);

/* The outcome of a check of key, which must succeed. */
enum hapax_outcome log_case_check(struct store_case *c, const char *key);

/* Bytes of all files, and how many names begin with prefix. */
uint64_t log_case_measure(const char *directory, const char *prefix, unsigned *ret_count);

/* The store at url is not opened: status, and a message with that word in it. */
void log_case_refuses(
	struct store_case *c, const char *url, enum hapax_status status, const char *word);

#endif
