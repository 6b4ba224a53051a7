/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_store.h - "http://": the ledger of a daemon, over its API.
 */
#ifndef HX_STORE_SERVER_STORE_H
#define HX_STORE_SERVER_STORE_H

#include <hapax/store.h>

enum hapax_status hx_server_open(
	const char *url, const char *path, const struct hapax_store_options *options,
	struct hapax_store **ret_store, struct hapax_error *err);

#endif
