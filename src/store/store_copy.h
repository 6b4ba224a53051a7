/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_copy.h - the parts of store_copy.c that other tools need.
 */
#ifndef HX_STORE_STORE_COPY_H
#define HX_STORE_STORE_COPY_H

#include <hapax/store.h>

/*
 * Make the store's tokens continue 2^40 above the larger of its last one and token. *ret_token
 * is the new last one. LIMIT: tokens would pass 2^53.
 */
enum hapax_status hx_store_raise_token(
	struct hapax_store *store, uint64_t token, uint64_t *ret_token, struct hapax_error *err);

/* INVALID: the store holds part of an interrupted copy. */
enum hapax_status hx_store_refuse_part(struct hapax_store *store, struct hapax_error *err);

#endif
