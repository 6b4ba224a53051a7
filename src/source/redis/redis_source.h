/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_source.h - a Redis stream as a source, with a consumer group.
 */
#ifndef HX_SOURCE_REDIS_SOURCE_H
#define HX_SOURCE_REDIS_SOURCE_H

#include <hapax/ext/source_ops.h>

/* INVALID: invalid URL or TLS file. Connects later. */
enum hapax_status hx_redis_source_open(
	const char *url, struct hapax_source **ret_source, struct hapax_error *err);

/* Check the URL without connecting. */
enum hapax_status hx_redis_source_check(const char *url, struct hapax_error *err);

#endif
