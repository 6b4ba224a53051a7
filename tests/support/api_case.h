/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_case.h - the API over a store in memory, on a thread of this process, for the server
 * store: on the clock of the case, which a daemon by itself would not go by.
 *
 * Linked into a program, it gives store_case.h the kind "http:".
 */
#ifndef TEST_SUPPORT_API_CASE_H
#define TEST_SUPPORT_API_CASE_H

#include <hapax/store.h>

struct api_case;

/* Serve a store of url with these options on a free port. Ends the program on failure. */
struct api_case *api_case_begin(const char *url, const struct hapax_store_options *options);
void api_case_end(struct api_case *c);

/* "http://127.0.0.1:PORT". Borrowed from c. */
const char *api_case_url(const struct api_case *c);

/* The store behind it. */
struct hapax_store *api_case_store(struct api_case *c);

#endif
