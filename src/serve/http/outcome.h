/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outcome.h - what a response means for the run, and what a request may be answered with.
 *
 * Threads: any.
 */
#ifndef HX_SERVE_HTTP_OUTCOME_H
#define HX_SERVE_HTTP_OUTCOME_H

#include <stdbool.h>

#include <hapax/bytes.h>
#include <hapax/processor.h>

/*
 * As hx_http_handler_outcome(), for requests of the proxy, whose clients follow redirections and ask for things
 * that are not there: 3xx is done, 404 the same again. table: what a route says instead
 * (hx_config_proxy_route).
 */
enum hapax_run_outcome hx_outcome_of_proxied(const signed char *table, unsigned status);

/* Whether the value of Accept names JSON; a wildcard does not. */
bool hx_accept_names_json(struct hapax_bytes accept);

#endif
