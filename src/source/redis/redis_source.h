/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_source.h - a stream of Redis as a source, with a group of consumers.
 */
#ifndef HX_SOURCE_REDIS_SOURCE_H
#define HX_SOURCE_REDIS_SOURCE_H

#include <hapax/ext/source_ops.h>

/* INVALID: the URL is wrong, or a file for TLS is. Connects later. */
enum hapax_status hx_redis_source_open(
	const char *url, struct hapax_source **ret_source, struct hapax_error *err);

/* Is the URL right, as far as nobody need be asked? */
enum hapax_status hx_redis_source_check(const char *url, struct hapax_error *err);

#endif
