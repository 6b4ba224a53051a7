/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_url.h - the common part of the kafka:// URLs of sinks and sources.
 *
 *	kafka://HOST[:PORT][,HOST[:PORT]...][/PATH][?NAME=VALUE&...]
 *
 * The URL is copied, and its parts are decoded in place. The reader calls hx_kafka_url_begin(),
 * reads the path, then the options (wire/url.h). It passes options without a row to
 * hx_kafka_url_take(), and finally calls hx_kafka_properties_check().
 *
 * Threads: any; the functions keep nothing.
 */
#ifndef HX_BROKER_KAFKA_URL_H
#define HX_BROKER_KAFKA_URL_H

#include <stddef.h>

#include <hapax/error.h>

#include "broker/kafka_property.h"
#include "wire/url.h"

enum {
	HX_KAFKA_URL_SIZE = 4096,
	HX_KAFKA_TOPIC_SIZE = 250, /* with its NUL */
	HX_KAFKA_PROPERTIES_MAX = 64,
};

struct hx_kafka_url {
	char text[HX_KAFKA_URL_SIZE]; /* storage of all texts */
	const char *servers;
	struct hx_kafka_property properties[HX_KAFKA_PROPERTIES_MAX + 1]; /* the last has no name */
	size_t property_count;
};

/* Copy text and find its servers; *ret_parts has the path and the query of the copy. */
enum hapax_status hx_kafka_url_begin(
	const char *text, struct hx_kafka_url *ret_url, struct hx_url *ret_parts,
	struct hapax_error *err);

/* Decode a part of url->text in place; the byte after it becomes a NUL. NULL: malformed. */
char *hx_kafka_url_decode(struct hx_kafka_url *url, struct hapax_bytes part);

/* Store NAME=VALUE as a property, if this use allows it. */
enum hapax_status hx_kafka_url_take(
	struct hx_kafka_url *url, enum hx_kafka_use use, struct hapax_bytes name,
	struct hapax_bytes value, struct hapax_error *err);

#endif
