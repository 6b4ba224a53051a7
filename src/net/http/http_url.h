/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_url.h - parse the URL of a service to call.
 *
 * It accepts http://HOST[:PORT][/PATH] and, if TLS was built in, https. User, query and fragment
 * are refused: they would not be sent, though a reader of the file would expect it.
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
	struct hapax_bytes path; /* without trailing slashes */
};

/* False: it also writes what is wrong, in words that follow the text. */
bool hx_http_url_parse(
	const char *text, struct hx_http_url *ret_url, char why[HX_HTTP_URL_WHY_SIZE]);

#endif
