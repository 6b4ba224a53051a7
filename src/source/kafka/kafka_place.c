/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_place.c - parses the URL of a Kafka source.
 */
#include "source/kafka/kafka_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/duration.h"
#include "base/error.h"
#include "source/source.h"

/* A number of messages, or a duration. */
static bool read_warm_up(const char *text, int64_t *ret_ms, int64_t *ret_count)
{
	size_t digits = strspn(text, "0123456789");

	if (digits > 0 && text[digits] == '\0') {
		*ret_count = digits < 10 ? strtol(text, NULL, 10) : 0;
		return digits < 10;
	}
	return hx_duration_parse(hapax_bytes_from_text(text), ret_ms, NULL) == HAPAX_OK &&
		*ret_ms > 0;
}

static bool is_warm_up(const char *text)
{
	int64_t ms, count;

	return read_warm_up(text, &ms, &count);
}

static const struct hx_url_option rows[] = {
	{"group", HX_URL_TEXT, "NAME", HX_URL_MEMBER(struct hx_kafka_place, group)},
	{"instance", HX_URL_TEXT, "NAME", HX_URL_MEMBER(struct hx_kafka_place, instance)},
	{"start", HX_URL_WORD, "earliest|latest",
	 HX_URL_MEMBER(struct hx_kafka_place, starts_latest)},
	{"warm_up", HX_URL_TEXT, "TIME|COUNT", HX_URL_MEMBER(struct hx_kafka_place, warm_up),
	 .is_good = is_warm_up},
	{"held_max", HX_URL_NUMBER, "bytes", HX_URL_MEMBER(struct hx_kafka_place, held_max),
	 .min = 1, .max = HX_KAFKA_HELD_MAX_MAX},
	{.kind = HX_URL_END},
};

static hx_url_other_fn take_property;

static const struct hx_url_options options = {
	.of = "a Kafka source",
	.rows = rows,
	.also = "properties of librdkafka",
	.other = take_property};

static enum hapax_status take_property(
	void *place, struct hapax_bytes name, struct hapax_bytes value, struct hapax_error *err)
{
	if (value.data != NULL && memchr(name.data, '.', name.size) == NULL &&
	    hx_kafka_property_view(name) == HX_OPTION_HIDDEN)
		return hx_url_option_refuse(&options, name, value, err);
	return hx_kafka_url_take(
		&((struct hx_kafka_place *)place)->url, HX_KAFKA_USE_SOURCE, name, value, err);
}

/* The path after its slash: "TOPIC,TOPIC" */
static enum hapax_status take_topics(
	struct hx_kafka_place *place, struct hapax_bytes topics, struct hapax_error *err)
{
	struct hapax_bytes part;

	while (hx_url_next(&topics, ',', &part)) {
		char *topic = hx_kafka_url_decode(&place->url, part);

		if (topic == NULL || topic[0] == '\0' || strlen(topic) >= HX_KAFKA_TOPIC_SIZE)
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"invalid or missing topic; use kafka://HOST/TOPIC?group=G");
		if (place->topic_count == HX_KAFKA_TOPICS_MAX)
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0, "too many topics: limit %d",
				HX_KAFKA_TOPICS_MAX);
		place->topics[place->topic_count++] = topic;
	}
	return HAPAX_OK;
}

enum hapax_status hx_kafka_place_parse(
	const char *text, struct hx_kafka_place *place, struct hapax_error *err)
{
	struct hx_url parts;
	enum hapax_status status;

	*place = (struct hx_kafka_place){.group = "hapax", .held_max = HX_KAFKA_HELD_MAX_DEFAULT};
	status = hx_kafka_url_begin(text, &place->url, &parts, err);
	if (status == HAPAX_OK && parts.path.size == 0)
		status = hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"missing topic in the URL; use kafka://HOST/TOPIC?group=G");
	if (status == HAPAX_OK)
		status = take_topics(
			place, hx_bytes((const char *)parts.path.data + 1, parts.path.size - 1),
			err);
	if (status == HAPAX_OK)
		status = hx_url_options_read(&options, parts.query, true, place, err);
	if (status == HAPAX_OK)
		status = hx_kafka_properties_check(
			place->url.properties, place->url.property_count, err);
	if (status != HAPAX_OK)
		return status;
	(void)read_warm_up(place->warm_up, &place->warm_up_ms, &place->warm_up_count);
	(void)snprintf(place->origin, sizeof(place->origin), "kafka://%.2000s", place->url.servers);
	(void)snprintf(
		place->shown, sizeof(place->shown), "%.2000s/%.500s?group=%.500s", place->origin,
		place->topics[0], place->group);
	return HAPAX_OK;
}

enum hapax_status hx_kafka_place_letters(
	struct hx_kafka_place *place, const char *target, struct hapax_buf *ret_topics,
	struct hapax_error *err)
{
	size_t count = place->topic_count;
	size_t group_size = strlen(place->group);
	size_t used = 0;

	place->topic_count = 0;
	for (size_t i = 0; i < count; i++) {
		const char *topic = place->topics[i];
		char *dead = place->dead + used;

		if (topic[0] == '^')
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"the dead letters of a pattern of topics are not known; name the topics");
		if (hx_buf_append(ret_topics, topic, strlen(topic) + 1) != HAPAX_OK ||
		    !hx_source_letters_target(target, topic, dead, sizeof(place->dead) - used))
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"the names of the dead letters are too long");
		used += strlen(dead) + 1;
		/* All of them go to one target. */
		if (place->topic_count == 0 || target[0] == '\0')
			place->topics[place->topic_count++] = dead;
	}
	(void)snprintf(place->group + group_size, sizeof(place->group) - group_size, ".letters");
	place->is_letters = true;
	place->instance[0] = '\0';
	place->starts_latest = false;
	place->warm_up_ms = 0;
	place->warm_up_count = 0;
	return HAPAX_OK;
}
