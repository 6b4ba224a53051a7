/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_source.h - topics of Kafka as a source (librdkafka).
 */
#ifndef HX_SOURCE_KAFKA_SOURCE_H
#define HX_SOURCE_KAFKA_SOURCE_H

#include <hapax/ext/source_ops.h>

/* INVALID: the URL is wrong, or librdkafka does not know a property. Connects later. */
enum hapax_status hx_kafka_open(
	const char *url, struct hapax_source **ret_source, struct hapax_error *err);

/* INVALID, as hx_kafka_open() would say it. No thread is started and no broker is asked. */
enum hapax_status hx_kafka_check(const char *url, struct hapax_error *err);

#endif
