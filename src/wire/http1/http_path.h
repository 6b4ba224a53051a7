/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_path.h - paths that two readers take for two places.
 *
 * A route is chosen by the path as it stands here, and the path then goes to an upstream that
 * may decode it once or twice, take a backslash for a slash, drop `;parameters` of a segment,
 * join slashes and walk through `..`. Then `/v1/..%2fadmin` and `/v1/..;/admin` are `/admin`
 * there. So a path has a second form, that of the reader that does all of this: a path is safe
 * when that form has no dot segments and leads to the same route.
 *
 * Threads: any.
 */
#ifndef HX_HTTP_PATH_H
#define HX_HTTP_PATH_H

#include <hapax/bytes.h>

#include "wire/http1/http1.h"

/*
 * The form of the loosest reader, without a query: path itself, or in space. *ret_fault: what
 * makes the path unsafe whatever the routes are, else NULL: dot segments, control characters,
 * ASCII in an overlong form of UTF-8, a percent sign without two digits.
 */
struct hapax_bytes hx_http_path_loosest(
	struct hapax_bytes path, char space[HX_HTTP1_LINE_MAX], const char **ret_fault);

#endif
