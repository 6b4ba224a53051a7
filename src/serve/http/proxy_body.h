/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy_body.h - what the proxy finds in a whole request: the key by the strategy of its route.
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

/* Whether the strategy of the route uses the body. */
bool hx_proxy_body_is_used(const struct hx_config_proxy_route *route);

/*
 * Makes the key from the fields that the upstream gets, and from body; empty if it is not used. A
 * request without a part of its key has a key of kind HAPAX_KEY_NONE. LIMIT, NO_MEMORY: scratch.
 */
enum hapax_status hx_proxy_body_key(
	const struct hx_config_proxy_route *route, const struct hx_http1_head *head,
	struct hapax_bytes body, struct hapax_buf *scratch, struct hapax_key *ret_key,
	struct hapax_error *err);

#endif
