/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin.h - for whom a request or a connection counts.
 *
 * A peer is trusted that is on this machine (a unix socket, loopback) or in
 * http.trusted_proxies. A trusted peer has no limit of its own: what it sends counts for the
 * last address in its X-Forwarded-For that is not trusted itself, since those before it can be
 * written by anybody. A request of another peer counts for that peer, whatever it says.
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

/* Set is_trusted and origin of a request. */
void hx_origin_find(const struct hx_config_http *http, struct hx_http_exchange *exchange);

/*
 * For whom a wrong password counts: as origin, and for this machine itself as well. "": for
 * nobody, as of a unix socket or a trusted proxy that names nobody.
 */
const char *hx_origin_of_failure(const char *client, const char *origin);

#endif
