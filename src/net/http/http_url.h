/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_url.h - the URL of a service that is called, taken apart.
 *
 * http://HOST[:PORT][/PATH] and https, where TLS was built in. Without user, query or
 * fragment: they would be sent to nobody, and a reader of the file would think they were.
 *
 * Threads: any.
 */
#ifndef HX_NET_HTTP_HTTP_URL_H
#define HX_NET_HTTP_HTTP_URL_H

#include <stdbool.h>

#include <hapax/bytes.h>

#include "net/address.h"

enum { HX_HTTP_URL_WHY_SIZE = 256 };

/* Points into the text. */
struct hx_http_url {
	bool is_tls;
	struct hx_endpoint endpoint;
	struct hapax_bytes authority;
	struct hapax_bytes path; /* without the slashes at its end */
};

/* False after writing why it is none, in words that follow the text. */
bool hx_http_url_parse(
	const char *text, struct hx_http_url *ret_url, char why[HX_HTTP_URL_WHY_SIZE]);

#endif
