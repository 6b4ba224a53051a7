/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_check.h - can a URL be a source, as far as Kafka need not be asked?
 */
#ifndef HX_SOURCE_KAFKA_CHECK_H
#define HX_SOURCE_KAFKA_CHECK_H

#include <hapax/error.h>

/* INVALID, as hx_kafka_open() would say it. No thread is started and nobody is asked. */
enum hapax_status hx_kafka_check(const char *url, struct hapax_error *err);

#endif
