/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_target.h - the URL of a sink that is Kafka, taken apart.
 *
 *	kafka://HOST[:PORT][,HOST[:PORT]...][/TOPIC][?NAME=VALUE&...]
 *
 * Without a topic an event goes to its own. Names are the properties of librdkafka that
 * broker/kafka_property.h allows. Values are percent-decoded.
 *
 * Threads: any; the functions keep nothing.
 */
#ifndef HX_OUTBOX_SINK_KAFKA_TARGET_H
#define HX_OUTBOX_SINK_KAFKA_TARGET_H

#include <stddef.h>

#include <hapax/error.h>

#include "broker/kafka_property.h"

enum {
	HX_KAFKA_TARGET_SIZE = 4096,     /* of a URL */
	HX_KAFKA_TARGET_NAME_SIZE = 250, /* of a topic, and its NUL */
	HX_KAFKA_TARGET_PROPERTIES = 64,
};

struct hx_kafka_target {
	char text[HX_KAFKA_TARGET_SIZE]; /* all texts lie here */
	const char *servers;
	char topic[HX_KAFKA_TARGET_NAME_SIZE]; /* empty: the event's */
	struct hx_kafka_property
		properties[HX_KAFKA_TARGET_PROPERTIES + 1]; /* the last has no name */
	size_t property_count;
};

/* INVALID with what is wrong; values are never in the message. */
enum hapax_status hx_kafka_target_parse(
	const char *url, struct hx_kafka_target *target, struct hapax_error *err);

#endif
