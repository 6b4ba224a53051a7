/* SPDX-License-Identifier: Apache-2.0 */
/*
 * public_url.h - what people may see of a URL: it goes into logs, replies and messages.
 *
 *	postgres://app:***@db/shop?sslmode=require&password=***&***
 *
 * The password before the host is hidden. Of the options behind the ? those are shown that are
 * known to hold no secret; a known secret keeps its name; anything else is *** as a whole, since
 * it may be part of a password that was not percent-encoded.
 *
 * Threads: any.
 */
#ifndef HX_PUBLIC_URL_H
#define HX_PUBLIC_URL_H

#include <hapax/bytes.h>
#include <hapax/error.h>

struct hapax_buf;

enum hx_option_view {
	HX_OPTION_HIDDEN, /* it is not known here */
	HX_OPTION_SECRET, /* its name is shown */
	HX_OPTION_SHOWN,
};

/* What may be shown of the option with this name, as it stands in the URL. */
typedef enum hx_option_view hx_option_view_fn(struct hapax_bytes name);

/*
 * Make url public, in place. more, unless NULL, is asked about options that are neither hapax'
 * own nor libpq's. What may be a secret is hidden, too: to hide too much is the better mistake.
 * LIMIT, NO_MEMORY: url is empty.
 */
enum hapax_status hx_public_url(struct hapax_buf *url, hx_option_view_fn *more);

#endif
