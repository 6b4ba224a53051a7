/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_target.h - parses the URL of a Kafka sink.
 *
 *	kafka://HOST[:PORT][,HOST[:PORT]...][/TOPIC][?NAME=VALUE&...]
 *
 * Without TOPIC, each event goes to its own topic. Names are the properties of librdkafka that
 * broker/kafka_property.h allows. Values are percent-decoded.
 *
 * Threads: any; the functions keep nothing.
 */
#ifndef HX_OUTBOX_SINK_KAFKA_TARGET_H
#define HX_OUTBOX_SINK_KAFKA_TARGET_H

#include <hapax/error.h>

#include "broker/kafka_url.h"

struct hx_kafka_target {
	struct hx_kafka_url url;
	char topic[HX_KAFKA_TOPIC_SIZE]; /* empty: the event's */
};

/* INVALID says what is wrong; the message never contains a value. */
enum hapax_status hx_kafka_target_parse(
	const char *text, struct hx_kafka_target *target, struct hapax_error *err);

#endif
