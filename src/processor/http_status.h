/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_status.h - maps the status of an HTTP response to the outcome of a run.
 *
 * The gateway, the proxy and the sources all send work to HTTP services and must agree on which
 * responses end a run. One table in http_status.c has the rule:
 *
 *	status                      event        message      request
 *	2xx                         done         done         done
 *	3xx                         transient    transient    done
 *	401 403                     transient: an administrator will fix it
 *	404                         transient    transient    definitive
 *	408 409 421 425 429         transient: a retry may succeed
 *	other 4xx                   transient    definitive   definitive
 *	5xx, and invalid statuses   transient
 *
 * An event comes from anyone who knows its id: if a refusal were stored, a forged event would block
 * the genuine one. A message comes from a broker and a request of the proxy has a credential: a
 * retry of these would get the same answer. Clients of the proxy follow redirects and ask for
 * resources that do not exist.
 *
 *	outcome = hx_http_status_outcome(HX_HTTP_STATUS_OF_EVENT, NULL, response->status);
 *
 * Threads: any; nothing is kept.
 */
#ifndef HX_PROCESSOR_HTTP_STATUS_H
#define HX_PROCESSOR_HTTP_STATUS_H

#include <hapax/processor.h>

enum hx_http_status_of {
	HX_HTTP_STATUS_OF_EVENT,   /* from a sender of the gateway */
	HX_HTTP_STATUS_OF_MESSAGE, /* from a broker */
	HX_HTTP_STATUS_OF_REQUEST, /* from a client of the proxy */
};

/* The statuses that own can override. */
enum { HX_HTTP_STATUS_MIN = 200, HX_HTTP_STATUS_MAX = 599 };

/*
 * own overrides the table: an enum hapax_run_outcome for each status from HX_HTTP_STATUS_MIN on, or
 * -1 to use the table. NULL: always use the table.
 */
enum hapax_run_outcome hx_http_status_outcome(
	enum hx_http_status_of of, const signed char *own, unsigned status);

#endif
