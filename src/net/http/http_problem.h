/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_problem.h - an error as JSON for programs (RFC 9457).
 *
 * Threads: any.
 */
#ifndef HX_NET_HTTP_HTTP_PROBLEM_H
#define HX_NET_HTTP_HTTP_PROBLEM_H

#include <hapax/bytes.h>
#include <hapax/error.h>

/* Texts are UTF-8; detail may be NULL. */
struct hx_http_problem {
	unsigned status;
	const char *type;   /* a URI; NULL: the status says it all */
	const char *title;  /* the same for every problem of the type; NULL: that of the status */
	const char *detail; /* about this one */
	/*
	 * NULL: none. The type and the code of an `error` member, as in APIs like Stripe's. Its
	 * libraries look for errors there: stripe-node treats a document without it as success,
	 * whatever its status.
	 */
	const char *error_type;
	const char *error_code; /* NULL: none */
};

/* The error type of Stripe's API for a status without details. */
const char *hx_http_problem_error_type(unsigned status);

#define HX_HTTP_PROBLEM_CONTENT_TYPE "application/problem+json"

/* Append the document and a newline. NO_MEMORY, LIMIT: out is unchanged. */
enum hapax_status hx_http_problem_write(
	const struct hx_http_problem *problem, struct hapax_buf *out);

#endif
