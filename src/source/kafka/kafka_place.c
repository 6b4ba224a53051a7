/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_place.c - a Kafka source's URL, taken apart.
 */
#include "source/kafka/kafka_place.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/error.h"
#include "source/source_option.h"
#include "wire/http1/http1_text.h"

static const char scheme[] = "kafka://";

/* In place. False: a % without two digits, or a NUL. */
static bool decode(char *text)
{
	char *out = text;

	for (const char *at = text; *at != '\0'; at++) {
		int high = *at == '%' ? hx_http1_hex((unsigned char)at[1]) : -1;
		int low = high >= 0 ? hx_http1_hex((unsigned char)at[2]) : -1;

		if (*at != '%') {
			*out++ = *at;
		} else if (low < 0 || (high == 0 && low == 0)) {
			return false;
		} else {
			*out++ = (char)(high << 4 | low);
			at += 2;
		}
	}
	*out = '\0';
	return true;
}

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

static enum hapax_status take_topics(
	struct hx_kafka_place *place, char *topics, struct hapax_error *err)
{
	char stop = ',';

	while (stop == ',') {
		char *topic = cut(&topics, ",", &stop);

		if (!decode(topic) || topic[0] == '\0' || strlen(topic) > 249)
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"a topic was missing or not a name; kafka://HOST/TOPIC?group=G");
		if (place->topic_count == HX_KAFKA_TOPICS_MAX)
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0, "there were more than %d topics",
				HX_KAFKA_TOPICS_MAX);
		place->topics[place->topic_count++] = topic;
	}
	return HAPAX_OK;
}

static enum hapax_status take_property(
	struct hx_kafka_place *place, const char *name, const char *value, struct hapax_error *err)
{
	const struct hx_kafka_property property = {name, value};
	enum hapax_status status;

	if (strchr(name, '.') == NULL &&
	    hx_kafka_property_view(hapax_bytes_from_text(name)) == HX_OPTION_HIDDEN)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"unknown option '%.64s'; use group, instance, start, warm_up, held_max or a "
			"property of librdkafka",
			name);
	status = hx_kafka_property_check(&property, HX_KAFKA_USE_SOURCE, err);
	if (status != HAPAX_OK)
		return status;
	if (place->property_count == HX_KAFKA_PROPERTIES_MAX)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "there were too many properties");
	place->properties[place->property_count++] = property;
	return HAPAX_OK;
}

/* A number of messages, or a length of time. */
static enum hapax_status take_warm_up(
	struct hx_kafka_place *place, const char *value, struct hapax_error *err)
{
	size_t digits = strspn(value, "0123456789");

	if (digits == 0 || value[digits] != '\0') {
		struct hapax_error ignored;

		if (hx_duration_parse(hapax_bytes_from_text(value), &place->warm_up_ms, &ignored) ==
		            HAPAX_OK &&
		    place->warm_up_ms > 0)
			return HAPAX_OK;
	} else if (digits < 10) {
		place->warm_up_count = strtol(value, NULL, 10);
		return HAPAX_OK;
	}
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"warm_up is a length of time, as 10m, or a number of messages");
}

static enum hapax_status take_held_max(
	struct hx_kafka_place *place, const char *value, struct hapax_error *err)
{
	const struct hx_option option = {.value = hapax_bytes_from_text(value)};
	int64_t number;

	if (!hx_option_number(&option, HX_KAFKA_HELD_MAX_MAX, &number))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "held_max is a number of bytes up to %d",
			HX_KAFKA_HELD_MAX_MAX);
	place->held_max = (size_t)number;
	return HAPAX_OK;
}

static enum hapax_status take_option(
	struct hx_kafka_place *place, char *option, struct hapax_error *err)
{
	char stop;
	char *name = cut(&option, "=", &stop);
	char *value = option;

	if (stop != '=' || name[0] == '\0' || !decode(name) || !decode(value))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "an option was not of the form NAME=VALUE");
	if (strcmp(name, "group") == 0 && value[0] != '\0') {
		place->group = value;
	} else if (strcmp(name, "instance") == 0 && value[0] != '\0') {
		place->instance = value;
	} else if (strcmp(name, "start") == 0) {
		if (strcmp(value, "earliest") != 0 && strcmp(value, "latest") != 0)
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0, "start is earliest or latest");
		place->start = value;
	} else if (strcmp(name, "warm_up") == 0) {
		return take_warm_up(place, value, err);
	} else if (strcmp(name, "held_max") == 0) {
		return take_held_max(place, value, err);
	} else {
		return take_property(place, name, value, err);
	}
	return HAPAX_OK;
}

enum hapax_status hx_kafka_place_parse(
	const char *url, struct hx_kafka_place *place, struct hapax_error *err)
{
	enum hapax_status status;
	char *rest, *topics;
	char stop;

	memset(place, 0, sizeof(*place));
	if (strncmp(url, scheme, sizeof(scheme) - 1) != 0 || strlen(url) >= sizeof(place->text))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "a URL of Kafka is kafka://HOST/TOPIC?group=G");
	(void)snprintf(place->text, sizeof(place->text), "%s", url + sizeof(scheme) - 1);
	rest = place->text;
	place->group = "hapax";
	place->start = "earliest";
	place->held_max = HX_KAFKA_HELD_MAX_DEFAULT;
	place->servers = cut(&rest, "/?", &stop);
	if (place->servers[0] == '\0' || strchr(place->servers, '@') != NULL || stop != '/')
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the URL named no server and topic, or a user, whose place is sasl.username");
	topics = cut(&rest, "?", &stop);
	(void)snprintf(
		place->origin, sizeof(place->origin), "%.2000s%.2000s", scheme, place->servers);
	status = take_topics(place, topics, err);
	for (stop = stop == '?' ? '&' : '\0'; stop == '&' && status == HAPAX_OK;) {
		char *option = cut(&rest, "&", &stop);

		status = take_option(place, option, err);
	}
	if (status == HAPAX_OK)
		status = hx_kafka_properties_check(place->properties, place->property_count, err);
	if (status == HAPAX_OK)
		(void)snprintf(
			place->shown, sizeof(place->shown), "%.2000s/%.500s?group=%.500s",
			place->origin, place->topics[0], place->group);
	return status;
}
