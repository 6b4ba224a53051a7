/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin.h - finds the address that a request or a connection counts for.
 *
 * A peer is trusted if it is on this machine (a unix socket, loopback) or in http.trusted_proxies.
 * A trusted peer has no limit of its own. Its requests count for the last untrusted address in its
 * X-Forwarded-For, since any client can forge the earlier ones. A request of an untrusted peer
 * counts for that peer, whatever its fields say.
 *
 * Threads: any; the functions keep nothing.
 */
#ifndef HX_SERVE_DAEMON_ORIGIN_H
#define HX_SERVE_DAEMON_ORIGIN_H

#include <stdbool.h>

#include "config/config.h"
#include "net/http/http_server.h"

/* client is in digits, as in struct hx_http_exchange; "": a unix socket. */
bool hx_origin_is_trusted(const struct hx_config_http *http, const char *client);

/* Sets is_trusted and origin of a request. */
void hx_origin_find(const struct hx_config_http *http, struct hx_http_exchange *exchange);

/*
 * The address that a wrong password counts for: the origin, or this machine's own. "": none,
 * for a unix socket or a trusted proxy that names no client.
 */
const char *hx_origin_of_failure(const char *client, const char *origin);

#endif
