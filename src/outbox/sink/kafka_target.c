/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_target.c - the URL of a sink that is Kafka, taken apart.
 */
#include "outbox/sink/kafka_target.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "wire/percent.h"

static const char scheme[] = "kafka://";

/* What stands before the first of stops, which is cut out; *text moves behind it. */
static char *cut(char **text, const char *stops, char *ret_stop)
{
	char *begin = *text;
	size_t size = strcspn(begin, stops);

	*ret_stop = begin[size];
	*text = begin + size + (begin[size] != '\0');
	begin[size] = '\0';
	return begin;
}

static bool decode(char *text)
{
	size_t size = strlen(text);

	return hx_percent_decode_text(text, size, text, size + 1);
}

static enum hapax_status take_property(
	struct hx_kafka_target *target, char *property, struct hapax_error *err)
{
	char stop;
	char *name = cut(&property, "=", &stop);
	char *value = property;
	enum hapax_status status;

	if (stop != '=' || name[0] == '\0' || !decode(name) || !decode(value))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"an option of the sink's URL was not of the form NAME=VALUE");
	status = hx_kafka_property_check(
		&(struct hx_kafka_property){name, value}, HX_KAFKA_USE_SINK, err);
	if (status != HAPAX_OK)
		return status;
	if (target->property_count == HX_KAFKA_TARGET_PROPERTIES)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the sink's URL has more than %d properties",
			HX_KAFKA_TARGET_PROPERTIES);
	target->properties[target->property_count++] = (struct hx_kafka_property){name, value};
	return HAPAX_OK;
}

enum hapax_status hx_kafka_target_parse(
	const char *url, struct hx_kafka_target *target, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;
	const char *topic = "";
	char *rest = target->text;
	char stop;

	memset(target, 0, sizeof(*target));
	if (strncmp(url, scheme, sizeof(scheme) - 1) != 0 || strlen(url) >= sizeof(target->text))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the sink's URL is malformed; it looks like 'kafka://host:port/topic'");
	(void)snprintf(target->text, sizeof(target->text), "%s", url + sizeof(scheme) - 1);
	target->servers = cut(&rest, "/?", &stop);
	if (target->servers[0] == '\0' || strchr(target->servers, '@') != NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the sink's URL names no server, or a user, whose place is sasl.username");
	if (stop == '/')
		topic = cut(&rest, "?", &stop);
	if (!hx_percent_decode_text(topic, strlen(topic), target->topic, sizeof(target->topic)))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the topic in the sink's URL is no name of at most %d bytes",
			HX_KAFKA_TARGET_NAME_SIZE - 1);
	while (status == HAPAX_OK && stop != '\0') {
		char *property = cut(&rest, "&", &stop);

		/* "a.b=1&" ends with nothing. */
		if (property[0] != '\0')
			status = take_property(target, property, err);
	}
	if (status == HAPAX_OK)
		status = hx_kafka_properties_check(target->properties, target->property_count, err);
	return status;
}
