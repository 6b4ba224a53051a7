/* SPDX-License-Identifier: Apache-2.0 */
/*
 * public_url.h - hide the secrets of a URL, for logs, replies and messages.
 *
 *	postgres://app:***@db/shop?sslmode=require&password=***&***
 *
 * The password before the host is hidden. Options after the ? are shown if they are known to hold
 * no secret. A known secret keeps its name. Anything else becomes ***, since it may be part of a
 * password that was not percent-encoded.
 *
 * Threads: any.
 */
#ifndef HX_PUBLIC_URL_H
#define HX_PUBLIC_URL_H

#include <hapax/bytes.h>
#include <hapax/error.h>

struct hapax_buf;

enum hx_option_view {
	HX_OPTION_HIDDEN, /* unknown option */
	HX_OPTION_SECRET, /* its name is shown */
	HX_OPTION_SHOWN,
};

/* The visible part of the option with this name, as written in the URL. */
typedef enum hx_option_view hx_option_view_fn(struct hapax_bytes name);

/*
 * Make url public, in place. more, unless NULL, decides about options that are neither hapax's own
 * nor libpq's. Possible secrets are hidden as well: hiding too much is the better mistake. LIMIT,
 * NO_MEMORY: url is empty.
 */
enum hapax_status hx_public_url(struct hapax_buf *url, hx_option_view_fn *more);

#endif
