/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_path.h - detect paths that hapax and an upstream may read differently.
 *
 * hapax chooses a route by the path as received. The upstream may then decode the path once or
 * twice, treat a backslash as a slash, drop `;parameters` of a segment, join slashes and resolve
 * `..`. So `/v1/..%2fadmin` and `/v1/..;/admin` may mean `/admin` there. This file computes the
 * form that results from all of these steps. A path is safe if that form has no dot segments
 * and leads to the same route.
 *
 * Threads: any.
 */
#ifndef HX_HTTP_PATH_H
#define HX_HTTP_PATH_H

#include <hapax/bytes.h>

#include "wire/http1/http1.h"

/*
 * That form, without the query: path itself, or a copy in space. *ret_fault: why the path is
 * unsafe with any routes, else NULL: dot segments, control characters, ASCII in overlong UTF-8, a
 * percent sign without two digits.
 */
struct hapax_bytes hx_http_path_loosest(
	struct hapax_bytes path, char space[HX_HTTP1_LINE_MAX], const char **ret_fault);

/* The path of a target; *ret_query: its query, without "?", or empty. */
struct hapax_bytes hx_http_path_split(struct hapax_bytes target, struct hapax_bytes *ret_query);

#endif
