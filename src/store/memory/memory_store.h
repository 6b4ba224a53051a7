/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_store.h - "memory:", the index without files.
 */
#ifndef HX_STORE_MEMORY_STORE_H
#define HX_STORE_MEMORY_STORE_H

#include <hapax/store.h>

/* See hapax_store_open(). path must be empty. */
enum hapax_status hx_memory_open(
	const char *url, const char *path, const struct hapax_store_options *options,
	struct hapax_store **ret_store, struct hapax_error *err);

#endif
