/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_target.c - parses the URL of a Kafka sink.
 */
#include "outbox/sink/kafka_target.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"

static enum hapax_status take_property(
	void *target, struct hapax_bytes name, struct hapax_bytes value, struct hapax_error *err)
{
	return hx_kafka_url_take(
		&((struct hx_kafka_target *)target)->url, HX_KAFKA_USE_SINK, name, value, err);
}

enum hapax_status hx_kafka_target_parse(
	const char *text, struct hx_kafka_target *target, struct hapax_error *err)
{
	static const struct hx_url_option rows[] = {{.kind = HX_URL_END}};
	static const struct hx_url_options options = {
		.of = "a Kafka sink", .rows = rows, .other = take_property};
	struct hx_url parts;
	enum hapax_status status = hx_kafka_url_begin(text, &target->url, &parts, err);

	target->topic[0] = '\0';
	if (status == HAPAX_OK && parts.path.size > 1 &&
	    !hx_url_text(
		    hx_bytes((const char *)parts.path.data + 1, parts.path.size - 1), target->topic,
		    sizeof(target->topic)))
		status = hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"invalid topic in the URL of the sink: it must be at most %d bytes long",
			HX_KAFKA_TOPIC_SIZE - 1);
	if (status == HAPAX_OK)
		status = hx_url_options_read(&options, parts.query, true, target, err);
	if (status == HAPAX_OK)
		status = hx_kafka_properties_check(
			target->url.properties, target->url.property_count, err);
	assert(memchr(target->topic, '\0', sizeof(target->topic)) != NULL);
	assert(status != HAPAX_OK || target->url.property_count <= HX_KAFKA_PROPERTIES_MAX);
	return status;
}
