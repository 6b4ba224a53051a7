/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_status.h - what the status of an HTTP response means for the run that asked for it.
 *
 * The gateway, the proxy and the sources all hand work to HTTP services, and must agree on which
 * responses end a run. The rule is one table in http_status.c:
 *
 *	2xx                         done
 *	3xx                         an event: transient; a request of the proxy: done
 *	401 403                     transient: an administrator will put it right
 *	404                         an event: transient; a request of the proxy: definitive
 *	408 409 421 425 429         transient: another time or another place
 *	other 4xx                   definitive: it would be the same again
 *	5xx, and all that is not a status    transient
 *
 * The proxy differs because its clients follow redirections and ask for things that are not there.
 *
 *	outcome = hx_http_status_outcome(HX_HTTP_STATUS_OF_EVENT, NULL, response->status);
 *
 * Threads: any; nothing is kept.
 */
#ifndef HX_PROCESSOR_HTTP_STATUS_H
#define HX_PROCESSOR_HTTP_STATUS_H

#include <hapax/processor.h>

enum hx_http_status_of {
	HX_HTTP_STATUS_OF_EVENT,   /* sent on by the gateway or a source */
	HX_HTTP_STATUS_OF_REQUEST, /* of a client of the proxy */
};

/* The statuses that own has a word for. */
enum { HX_HTTP_STATUS_MIN = 200, HX_HTTP_STATUS_MAX = 599 };

/*
 * own: what is said instead, an enum hapax_run_outcome for each status from HX_HTTP_STATUS_MIN on,
 * or -1 where the table above has the word; NULL: it has it everywhere.
 */
enum hapax_run_outcome hx_http_status_outcome(
	enum hx_http_status_of of, const signed char *own, unsigned status);

#endif
