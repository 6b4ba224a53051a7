/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy_body.h - what the proxy finds in a whole request: a valid signature, if its route has
 * secrets, and then the key by the strategy of its route.
 *
 * Threads: the delivery's owner, which is its loop or a reader (large.h).
 */
#ifndef HX_SERVE_HTTP_PROXY_BODY_H
#define HX_SERVE_HTTP_PROXY_BODY_H

#include <stdbool.h>

#include <hapax/bytes.h>
#include <hapax/error.h>
#include <hapax/key.h>

#include "wire/http1/http1.h"

struct hx_config_proxy_route;

/* Whether the route uses the body, to check it or to make a key. */
bool hx_proxy_body_is_used(const struct hx_config_proxy_route *route);

enum hx_proxy_body_end {
	HX_PROXY_BODY_KEY,      /* of kind HAPAX_KEY_NONE if a part of it is missing */
	HX_PROXY_BODY_PASSES,   /* `pass` of the route names it, or it needs no key */
	HX_PROXY_BODY_UNSIGNED, /* its signature is missing or wrong; err says why */
	HX_PROXY_BODY_FAILED,   /* err says why: LIMIT, NO_MEMORY of scratch */
};

/*
 * Reads the fields that the upstream gets, and body, which is empty if it is not used. Nothing else
 * is read before the signature is checked.
 */
enum hx_proxy_body_end hx_proxy_body_read(
	const struct hx_config_proxy_route *route, const struct hx_http1_head *head,
	struct hapax_bytes body, bool needs_key, struct hapax_buf *scratch,
	struct hapax_key *ret_key, struct hapax_error *err);

#endif
