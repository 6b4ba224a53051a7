/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_source.h - Kafka topics as a source (librdkafka).
 */
#ifndef HX_SOURCE_KAFKA_SOURCE_H
#define HX_SOURCE_KAFKA_SOURCE_H

#include <hapax/ext/source_ops.h>

/* INVALID: invalid URL, or a property that librdkafka does not know. Connects later. */
enum hapax_status hx_kafka_open(
	const char *url, struct hapax_source **ret_source, struct hapax_error *err);

/* INVALID, as from hx_kafka_open(). Starts no thread and asks no broker. */
enum hapax_status hx_kafka_check(const char *url, struct hapax_error *err);

#endif
