/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_store.h - "redis://", one ledger for many machines. See README.md.
 */
#ifndef HX_STORE_REDIS_STORE_H
#define HX_STORE_REDIS_STORE_H

#include <hapax/store.h>

#include "net/system.h"

/* See hapax_store_open() and, for the URL, redis_place.h. Blocks until connected. */
enum hapax_status hx_redis_open(
	const char *url, const char *path, const struct hapax_store_options *options,
	struct hapax_store **ret_store, struct hapax_error *err);

/* The same over the caller's network, which must outlive the store. For tests. */
enum hapax_status hx_redis_open_on(
	const struct hx_net *net, const char *url, const struct hapax_store_options *options,
	struct hapax_store **ret_store, struct hapax_error *err);

#endif
