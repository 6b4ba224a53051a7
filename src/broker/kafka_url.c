/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_url.c - the common part of the kafka:// URLs of sinks and sources.
 */
#include "broker/kafka_url.h"

#include <string.h>

#include "base/error.h"

char *hx_kafka_url_decode(struct hx_kafka_url *url, struct hapax_bytes part)
{
	char *at = url->text + ((const char *)part.data - url->text);

	return hx_url_text(part, at, part.size + 1) ? at : NULL;
}

/* "HOST:PORT,[ADDRESS]:PORT": is every port a number? */
static bool are_servers(struct hapax_bytes hosts)
{
	struct hapax_bytes host;

	while (hx_url_next(&hosts, ',', &host)) {
		const char *text = host.data;
		const char *end = text + host.size;
		const char *bracket = host.size == 0 ? NULL : memrchr(text, ']', host.size);
		const char *colon = bracket != NULL ? bracket + 1 : memchr(text, ':', host.size);

		if (colon == NULL || colon == end)
			continue;
		if (*colon != ':' || colon + 1 == end)
			return false;
		while (++colon < end)
			if (*colon < '0' || *colon > '9')
				return false;
	}
	return true;
}

enum hapax_status hx_kafka_url_begin(
	const char *text, struct hx_kafka_url *ret_url, struct hx_url *ret_parts,
	struct hapax_error *err)
{
	*ret_url = (struct hx_kafka_url){.property_count = 0};
	if (strlen(text) >= sizeof(ret_url->text))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "Kafka URL is too long: limit %d bytes",
			HX_KAFKA_URL_SIZE - 1);
	memcpy(ret_url->text, text, strlen(text));
	if (!hx_url_split(ret_url->text, ret_parts) || !hx_url_has_scheme(ret_parts, "kafka") ||
	    ret_parts->hosts.size == 0)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the Kafka URL has no server; use kafka://HOST/TOPIC");
	if (ret_parts->user.data != NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the Kafka URL has a user before the '@'; set the user with the option "
			"sasl.username");
	/* What follows a slash in a password, and what comes before it. */
	if (!are_servers(ret_parts->hosts) ||
	    (ret_parts->path.size > 0 &&
	     memchr(ret_parts->path.data, '@', ret_parts->path.size) != NULL))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the Kafka URL has no valid host and port; use kafka://HOST[:PORT]/TOPIC, and "
			"set user and password with the options sasl.username and sasl.password");
	ret_url->servers = hx_kafka_url_decode(ret_url, ret_parts->hosts);
	return ret_url->servers != NULL
		? HAPAX_OK
		: hx_error_set(
			  err, HAPAX_ERR_INVALID, 0, "invalid server '%.*s' in the Kafka URL",
			  (int)ret_parts->hosts.size,
			  text + ((const char *)ret_parts->hosts.data - ret_url->text));
}

enum hapax_status hx_kafka_url_take(
	struct hx_kafka_url *url, enum hx_kafka_use use, struct hapax_bytes name,
	struct hapax_bytes value, struct hapax_error *err)
{
	struct hx_kafka_property property = {NULL, NULL};
	enum hapax_status status;

	/* A host follows a '@': everything before it may be user and password. */
	if (name.size > 0 && strchr(name.data, '@') != NULL &&
	    hx_kafka_property_view(name) == HX_OPTION_HIDDEN)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"unknown property in the Kafka URL, or a '?' that is not percent-encoded; 'man "
			"hapax' lists the supported properties");
	if (name.size > 0 && value.data != NULL) {
		property.name = hx_kafka_url_decode(url, name);
		property.value = hx_kafka_url_decode(url, value);
	}
	if (property.name == NULL || property.value == NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"invalid option in the Kafka URL: use NAME=VALUE");
	status = hx_kafka_property_check(&property, use, err);
	if (status != HAPAX_OK)
		return status;
	if (url->property_count == HX_KAFKA_PROPERTIES_MAX)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "too many properties in the Kafka URL: limit %d",
			HX_KAFKA_PROPERTIES_MAX);
	url->properties[url->property_count++] = property;
	return HAPAX_OK;
}
