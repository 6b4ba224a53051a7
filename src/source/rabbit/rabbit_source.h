/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rabbit_source.h - a RabbitMQ queue as a source (librabbitmq).
 */
#ifndef HX_SOURCE_RABBIT_SOURCE_H
#define HX_SOURCE_RABBIT_SOURCE_H

#include <hapax/ext/source_ops.h>

/* INVALID: invalid URL. Connects later. */
enum hapax_status hx_rabbit_source_open(
	const char *url, struct hapax_source **ret_source, struct hapax_error *err);

/* Check the URL without connecting. */
enum hapax_status hx_rabbit_source_check(const char *url, struct hapax_error *err);

#endif
