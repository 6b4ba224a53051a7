/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_place.h - parses the URL of a Kafka source.
 *
 *	kafka://HOST[:PORT][,HOST[:PORT]...]/TOPIC[,TOPIC...][?NAME=VALUE&...]
 *
 * A topic that begins with ^ is a pattern. Names: group (hapax), instance, start (earliest,
 * latest), warm_up (10m, or a number of messages), held_max (bytes), and the properties of
 * librdkafka that broker/kafka_property.h allows. Values are percent-decoded.
 */
#ifndef HX_SOURCE_KAFKA_PLACE_H
#define HX_SOURCE_KAFKA_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/error.h>

#include "broker/kafka_url.h"

enum {
	HX_KAFKA_TOPICS_MAX = 64,
	HX_KAFKA_NAME_SIZE = 1024,
	HX_KAFKA_HELD_MAX_DEFAULT = 128 * 1024 * 1024,
	HX_KAFKA_HELD_MAX_MAX = 1024 * 1024 * 1024,
};

struct hx_kafka_place {
	struct hx_kafka_url url;        /* stores the topics, too */
	char shown[HX_KAFKA_URL_SIZE];  /* the URL without secrets */
	char origin[HX_KAFKA_URL_SIZE]; /* kafka://HOST... */
	const char *topics[HX_KAFKA_TOPICS_MAX];
	size_t topic_count;
	char dead[HX_KAFKA_URL_SIZE]; /* stores the topics of dead letters instead */
	bool is_letters;              /* read all partitions, without joining the group */
	char group[HX_KAFKA_NAME_SIZE];
	char instance[HX_KAFKA_NAME_SIZE]; /* empty: none */
	bool starts_latest;
	char warm_up[32];      /* as in the URL; parsed: */
	int64_t warm_up_ms;    /* how much of the past to read; 0: see warm_up_count */
	int64_t warm_up_count; /* messages per partition; both 0: none */
	size_t held_max;       /* bytes of messages in flight */
};

/* INVALID says what is wrong; the message never contains a value. */
enum hapax_status hx_kafka_place_parse(
	const char *text, struct hx_kafka_place *ret_place, struct hapax_error *err);

/*
 * Turn to the dead letters of its topics: in target, or if that is empty, each in its topic with
 * .dead, by a group of its own. ret_topics gets the topics, each with its NUL.
 */
enum hapax_status hx_kafka_place_letters(
	struct hx_kafka_place *place, const char *target, struct hapax_buf *ret_topics,
	struct hapax_error *err);

#endif
