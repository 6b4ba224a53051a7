/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rabbit_source.h - a queue of RabbitMQ as a source (librabbitmq).
 */
#ifndef HX_SOURCE_RABBIT_SOURCE_H
#define HX_SOURCE_RABBIT_SOURCE_H

#include <hapax/ext/source_ops.h>

/* INVALID: the URL is wrong. Connects later. */
enum hapax_status hx_rabbit_source_open(
	const char *url, struct hapax_source **ret_source, struct hapax_error *err);

/* Is the URL right, as far as nobody need be asked? */
enum hapax_status hx_rabbit_source_check(const char *url, struct hapax_error *err);

#endif
